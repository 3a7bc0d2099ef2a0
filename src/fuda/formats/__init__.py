"""Files of structures: `read` and `write`, by format.

>>> for format in FORMATS.values():
...     print(format.name, *format.extensions)
conll .conll .tsv .txt .iob .iob2 .bio .train .testa .testb .test .dev
conllu .conllu
fasta .fasta .fa .faa .fna
jsonl .jsonl .ndjson

A name may end in ``.gz``. ``-`` is standard input or output, CoNLL columns unless a format is named.

To add a format, write a module that ends in ``FORMAT = Format(…)`` and add it to `FORMATS`.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

from fuda.errors import DataError
from fuda.formats import conll, conllu, fasta, jsonl
from fuda.formats.base import Format
from fuda.formats.dataset import Dataset, Record
from fuda.formats.graph import from_networkx, to_networkx

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

# The first is the format of standard input and output, unless another is named.
FORMATS = {format.name: format for format in (conll.FORMAT, conllu.FORMAT, fasta.FORMAT, jsonl.FORMAT)}


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
