"""Files of structures: `read` and `write`, by format.

>>> for format in FORMATS.values():
...     print(format.name, *format.extensions)
conll .conll .tsv .txt .iob .iob2 .bio .train .testa .testb .test .dev
conllu .conllu
fasta .fasta .fa .faa .fna
jsonl .jsonl .ndjson

A name may end in ``.gz``. ``-`` is standard input or output, CoNLL columns unless a format is named.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any

from fuda import files
from fuda.errors import DataError
from fuda.formats import conll, conllu, fasta, jsonl
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


@dataclass(frozen=True)
class Format:
    """A format: `module` has ``read(text, name, **options)`` and ``write(records, **options)``."""

    name: str
    module: ModuleType
    extensions: tuple[str, ...]
    description: str

    @property
    def read_options(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.module.read).parameters)[2:]

    @property
    def write_options(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.module.write).parameters)[1:]


FORMATS = {
    format.name: format
    for format in (
        Format(
            "conll",
            conll,
            (
                ".conll",
                ".tsv",
                ".txt",
                ".iob",
                ".iob2",
                ".bio",
                ".train",
                ".testa",
                ".testb",
                ".test",
                ".dev",
            ),
            "CoNLL columns: a token a line, its label in the last column",
        ),
        Format("conllu", conllu, (".conllu",), "CoNLL-U: sentences with dependency trees or graphs"),
        Format(
            "fasta",
            fasta,
            (".fasta", ".fa", ".faa", ".fna"),
            "FASTA: residues, with lines of labels or marked sites",
        ),
        Format("jsonl", jsonl, (".jsonl", ".ndjson"), "JSON lines: any structure, any observation"),
    )
}


def format_of(path: str | Path, format: str | None = None) -> Format:
    """The format named, or else that of the path's extension.

    >>> format_of("esp.train.gz").name
    'conll'
    """
    if format is not None:
        if not isinstance(format, str) or format not in FORMATS:
            raise DataError(f"format {format!r} is not known; choose one of {', '.join(FORMATS)}")
        return FORMATS[format]
    if str(path) == "-":
        return FORMATS["conll"]
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

    `options` are those of the format's own ``read``: see `fuda.formats.conll`, `conllu`, `fasta` and `jsonl`.
    """
    found = format_of(path, format)
    _check_options(found, found.read_options, options, "reading")
    dataset: Dataset = found.module.read(files.read_text(path), files.display_name(path), **options)
    return dataset


def write(dataset: Dataset, path: str | Path, format: str | None = None, **options: Any) -> None:
    """Write a dataset whole or not at all; `options` are those of the format's own ``write``."""
    found = format_of(path, format)
    _check_options(found, found.write_options, options, "writing")
    if not dataset.records:
        raise DataError(f"{path}: there are no structures to write")
    files.write_text(path, found.module.write(dataset.records, **options))


def _check_options(format: Format, known: tuple[str, ...], options: dict[str, Any], action: str) -> None:
    for option in options:
        if option not in known:
            listed = ", ".join(known) or "none"
            raise DataError(f"{action} {format.name} takes no option {option!r}; it takes: {listed}")
