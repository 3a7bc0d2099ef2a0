"""Moving over from other programs: their models, and their interfaces.

`load` reads model files of CRFsuite, CRF++ (text) and Wapiti; `fuda.compat.sklearn_crfsuite` is a
replacement for sklearn-crfsuite.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuda.features.templates import Template
    from fuda.models.crf import CRF

__all__ = ["load"]


def load(path: str | Path, template: Template | None = None) -> CRF:
    """Read the model of another program into a fitted `CRF`, which predicts as that program does.

    Where labelings score exactly the same, another of them may be predicted.

    Parameters
    ----------
    path : str or Path
        A model file of CRFsuite, a model of CRF++ as text (``crf_learn -t``), or a model of Wapiti
        or a dump of one; it may be gzipped.
    template : Template, optional
        The patterns of a dumped model of Wapiti, ``Template(text, name, wapiti=True)``.

    Returns
    -------
    CRF
        The model, with the program's labels in its order. CRFsuite's has collections of attributes
        as observations, the others strings or tuples of columns.

    Raises
    ------
    ModelFileError
        If it is not one of these files, or is damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from fuda import CRF
    >>> from fuda.compat import crfsuite
    >>> X, y = [[["w=Ana"], ["w=sings"]]], [["PER", "O"]]
    >>> model = CRF(window=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     crfsuite.write(model, f"{folder}/names.crfsuite")
    ...     same = load(f"{folder}/names.crfsuite")
    >>> same.predict(X)[0]
    ['PER', 'O']
    """
    from fuda.compat import crfpp, crfsuite, wapiti
    from fuda.compat.models import read_model
    from fuda.errors import ModelFileError

    data = read_model(path)
    if data.startswith(crfsuite.MAGIC):
        return crfsuite.read(path)
    if data.startswith(crfpp.MAGIC):
        return crfpp.read(path)
    if data.startswith(wapiti.MAGIC) or template is not None:
        return wapiti.read(path, template)
    raise ModelFileError(
        f"{path}: neither a model of CRFsuite, nor of CRF++ as text, nor of Wapiti; fuda's own are read by "
        "fuda.load, and a dump of Wapiti needs template="
    )
