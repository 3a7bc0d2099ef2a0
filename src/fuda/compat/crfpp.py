"""CRF++'s models as text, written by ``crf_learn -t``: five parts, each ended by an empty line.

======================  ============================================================
``version: 100`` …      header, with ``cost-factor``, ``maxid`` and ``xsize``
``B-LOC`` …             labels
``U00:%x[0,0]`` …       template
``0 B``, ``9 U00:a`` …  features, with the number of the first of their weights
``0.25`` …              weights: one per label (U) or pair of labels (B)
======================  ============================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import numpy as np

from fuda.compat.models import finite, make_template_crf, read_model
from fuda.errors import DataError, ModelFileError, short
from fuda.features.templates import Template
from fuda.models.crf import CRF

MAGIC = b"version:"
_Number = TypeVar("_Number", int, float)


def read(path: str | Path) -> CRF:
    """Read a model of CRF++ from text.

    Observations of the model are strings, or tuples of the columns that its template reads
    (``xsize``) where these are several.

    Parameters
    ----------
    path : str or Path
        The file, which may be gzipped.

    Returns
    -------
    CRF
        A fitted model.

    Raises
    ------
    ModelFileError
        If it is not such a file, or is damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> header = "version: 100\\ncost-factor: 1\\nmaxid: 2\\nxsize: 1"
    >>> parts = [header, "PER\\nO", "U00:%x[0,0]", "0 U00:Ana", "1.5\\n-1.5"]
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.txt"
    ...     _ = path.write_text("\\n\\n".join(parts) + "\\n")
    ...     model = read(path)
    >>> model.predict([["Ana"]])[0]
    ['PER']
    """
    data = read_model(path)
    try:
        return _parse(path, data.decode())
    except ModelFileError as error:
        problem = str(error)
    except (DataError, UnicodeDecodeError) as error:
        problem = str(error)
    raise ModelFileError(f"{path}: not a usable CRF++ model: {problem}; write it again by crf_learn -t")


def _parse(path: str | Path, text: str) -> CRF:
    """The model of a text."""
    parts = text.replace("\r\n", "\n").split("\n\n", 4)
    if len(parts) < 5 or not text.startswith(MAGIC.decode()):
        raise ModelFileError(f"it has {len(parts)} of five parts")
    header = dict(line.partition(":")[::2] for line in parts[0].split("\n"))
    labels, template = parts[1].split("\n"), parts[2]
    cost = _number(header.get("cost-factor", "1"), float)
    columns, count = (_number(header.get(name, "-1"), int) for name in ("xsize", "maxid"))
    with np.errstate(all="ignore"):  # what is not finite then is refused
        weights = finite(cost * np.array([_number(line, float) for line in parts[4].split()]))
    if columns < 1 or len(weights) != count:
        raise ModelFileError(f"it has {len(weights):,} weights and {columns} columns by maxid {count:,}")
    sizes = {"U": len(labels), "B": len(labels) ** 2}
    weights_by_text: dict[str, np.ndarray] = {}
    for line in parts[3].split("\n"):
        first, _, name = line.partition(" ")
        size = sizes.get(name[:1], 0)
        start = _number(first, int)
        if not size or not 0 <= start <= count - size:
            raise ModelFileError(f"its feature {short(line)} has no weights")
        weights_by_text[name] = weights[start : start + size]
    if not any(line.startswith("B") for line in template.split("\n")):
        template += "\nB"  # every model here has transitions; they are 0
    return make_template_crf(path, labels, Template(template, "template"), columns, weights_by_text)


def _number(text: str, kind: type[_Number]) -> _Number:
    try:
        return kind(text)
    except ValueError:
        raise ModelFileError(f"{short(text)} where a number is expected") from None
