"""Files of structures: `read` and `write`, by format.

>>> for format in FORMATS.values():
...     print(format.name, *format.extensions)
conll .conll .tsv .txt .iob .iob2 .bio .train .testa .testb .test .dev
conllu .conllu
fasta .fasta .fa .faa .fna
jsonl .jsonl .ndjson

A name may end in ``.gz``. ``-`` is standard input or output, CoNLL columns unless a format is named.

To add a format, write a module ``fuda/formats/NAME.py`` and add a row to `FORMATS`. The module defines

- ``read(text, name, **options)``, which gives a `Dataset` (`name` is the file's, for messages), and
- ``write(records, **options)``, which gives a text; and where the format has rules of its own also
- ``from_command(options)``: options as the command line gives them, as `read` and `write` take them,
- ``remembered(dataset)``: further options by which a model that was trained on a dataset reads other files,
- ``as_trained(path, given, learned, labelled)``: the options to read a file for a model, from those given
  on the command line and those of the training files (None where these had another format); `labelled`
  says whether labels are needed.

Modules of formats load on first use, so that the command's help is quick.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from fuda import files
from fuda.errors import DataError

if TYPE_CHECKING:
    from fuda.formats.dataset import Dataset as Dataset
    from fuda.formats.dataset import Record as Record
    from fuda.formats.graph import from_networkx as from_networkx
    from fuda.formats.graph import to_networkx as to_networkx

_HOME = {
    "Dataset": "fuda.formats.dataset",
    "Record": "fuda.formats.dataset",
    "from_networkx": "fuda.formats.graph",
    "to_networkx": "fuda.formats.graph",
}

__all__ = [
    "FORMATS",
    "Dataset",
    "Format",
    "Record",
    "format_of",
    "from_networkx",
    "read",
    "to_networkx",
    "write",
]

Options = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    name : str
        Also that of its module.
    extensions : tuple of str
        Those of its files, in lower case with the dot.
    help : dict of str
        What ``--label``, ``--columns`` and ``--graph`` of the command mean to the format, for those it has.
    """

    name: str
    extensions: tuple[str, ...]
    help: Mapping[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name not in ("read", "write", "from_command", "remembered", "as_trained"):
            raise AttributeError(f"a format has no attribute {name!r}")
        return getattr(import_module(f"fuda.formats.{self.name}"), name, _DEFAULTS.get(name))

    @property
    def read_options(self) -> tuple[str, ...]:
        """The names of the options of `read`."""
        return tuple(inspect.signature(self.read).parameters)[2:]

    @property
    def write_options(self) -> tuple[str, ...]:
        """The names of the options of `write`."""
        return tuple(inspect.signature(self.write).parameters)[1:]

    def read_file(self, path: str | Path, options: Options) -> Dataset:
        """The dataset in a file, in its gzip, or from standard input (``-``)."""
        self._check_options("reading", self.read_options, options)
        name = files.display_name(path)
        try:
            dataset: Dataset = self.read(files.read_text(path), name, **options)
        except MemoryError:
            raise DataError(f"{name}: there is not enough memory to read it; split the file") from None
        return dataset

    def write_file(self, dataset: Dataset, path: str | Path, options: Options) -> None:
        """Write a dataset, whole or not at all."""
        self._check_options("writing", self.write_options, options)
        if not dataset.records:
            raise DataError(f"{path}: there are no structures to write; give at least one")
        files.write_text(path, self.write(dataset.records, **options))

    def _check_options(self, action: str, known: tuple[str, ...], options: Options) -> None:
        """Refuse an option that the format does not have."""
        for option in options:
            if option not in known:
                listed = ", ".join(known) or "none"
                raise DataError(f"{action} {self.name} takes no option {option!r}; it takes: {listed}")


# Of formats without rules of their own.
_DEFAULTS: dict[str, Callable[..., Options]] = {
    "from_command": lambda options: options,
    "remembered": lambda dataset: {},
    "as_trained": lambda path, given, learned, labelled: (learned or {}) | given,
}

_CONLL = (".conll", ".tsv", ".txt", ".iob", ".iob2", ".bio", ".train", ".testa", ".testb", ".test", ".dev")
_CONLLU = {"label": "a column's name or MISC:KEY", "columns": "as FORM,UPOS", "graph": "a tree by default"}

# The first is the format of standard input and output, unless another is named.
FORMATS = {
    format.name: format
    for format in (
        Format("conll", _CONLL, {"label": "a column number", "columns": "as 1 or 1,2"}),
        Format("conllu", (".conllu",), _CONLLU),
        Format("fasta", (".fasta", ".fa", ".faa", ".fna")),
        Format("jsonl", (".jsonl", ".ndjson")),
    )
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fuda.formats' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def format_of(path: str | Path, format: str | None = None) -> Format:
    """The format of that name, or else that of the path's extension.

    Parameters
    ----------
    path : str or Path
        A file's name, or ``-``.
    format : str, optional
        One of `FORMATS`.

    Returns
    -------
    Format

    Examples
    --------
    >>> format_of("esp.train.gz").name
    'conll'
    """
    if format is not None:
        if not isinstance(format, str) or format not in FORMATS:
            raise DataError(f"format {format!r} is not known; choose one of {', '.join(FORMATS)}")
        return FORMATS[format]
    if str(path) == "-":
        return next(iter(FORMATS.values()))
    extension = PurePath(str(path).lower().removesuffix(".gz")).suffix
    for known in FORMATS.values():
        if extension in known.extensions:
            return known
    listed = "; ".join(f"{known.name} ({' '.join(known.extensions)})" for known in FORMATS.values())
    raise DataError(
        f"{path}: the extension {extension!r} names no format; pass format= (on the command line --format) "
        f"or rename the file. The formats: {listed}"
    )


def read(path: str | Path, format: str | None = None, **options: Any) -> Dataset:
    """The structures and labels of a file, of its gzip, or of standard input (``-``).

    A text of more than 2 GiB is refused unless the environment variable FUDA_MAX_BYTES allows it.

    Parameters
    ----------
    path : str or Path
    format : str, optional
        By default that of the file's extension.
    **options
        Those of the format's own ``read``: see `fuda.formats.conll`, `conllu`, `fasta` and `jsonl`.

    Returns
    -------
    Dataset
        ``X, y = read(path)`` unpacks into structures and labels.
    """
    return format_of(path, format).read_file(path, options)


def write(dataset: Dataset, path: str | Path, format: str | None = None, **options: Any) -> None:
    """Write a dataset whole or not at all.

    Parameters
    ----------
    dataset : Dataset
    path : str or Path
        A name that ends in ``.gz`` gives a gzipped file; ``-`` is standard output.
    format : str, optional
        By default that of the file's extension.
    **options
        Those of the format's own ``write``.
    """
    format_of(path, format).write_file(dataset, path, options)
