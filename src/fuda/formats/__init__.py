"""Reading and writing files of structures: `read` and `write`, by format.

>>> for format in FORMATS.values():
...     print(format.name, *format.extensions)
conll .conll .tsv .txt .iob .iob2 .bio .train .testa .testb .test .dev
conllu .conllu
fasta .fasta .fa .faa .fna
jsonl .jsonl .ndjson
crfsuite
text .txt
inline .inline .txt
conllx .conllx
conllup .conllup
csv .csv
brat .ann
graphml .graphml
doccano .jsonl
prodigy .jsonl
pssm .pssm

A file name may end in ``.gz``. ``-`` is standard input or output, in CoNLL columns unless another
format is named. An extension of several formats belongs to the first, or to that of a model's
training files.

To add a format, write a module ``fuda/formats/NAME.py`` and add a row to `FORMATS`. The module
defines

- ``read(text, name, **options)``, which returns a `Dataset` (`name` is the file's, for messages),
- ``records(lines, name, notes, **options)``, which yields the same records as the lines of a file
  come, and appends to the list `notes` at the end (options have no defaults, `read` has them);
  not if a file can be read only as a whole,
- ``write(records, **options)``, which returns a text; if a file can be written in pieces, with the
  argument `after`, the first record of the file, for all pieces but the first;

and, if the defaults do not suit the format,

- ``from_command(options)``: converts options from the command line to those of `read` and `write`,
- ``options_to_store(dataset)``: further options with which a model trained on `dataset` reads
  files,
- ``options_for_model(path, given, stored, labelled)``: the options for reading a file for a model,
  from those given on the command line and those of the training files (None if these had another
  format); `labelled` is true if labels are required,
- ``beside(records, path)``: the path and the text of a second file that belongs to the first.

Modules of formats are imported on first use, which keeps the help of the command fast.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from fuda import files
from fuda.errors import DataError, described

if TYPE_CHECKING:
    from fuda.data.text import Text, tokenize
    from fuda.formats.dataset import Dataset, Record
    from fuda.formats.frames import from_pandas, to_pandas
    from fuda.formats.graph import from_networkx, to_networkx
    from fuda.formats.huggingface import from_datasets, to_datasets
    from fuda.formats.spacy_docs import from_spacy, to_spacy

__all__ = [
    "FORMATS",
    "Dataset",
    "Format",
    "Record",
    "Text",
    "format_of",
    "from_datasets",
    "from_networkx",
    "from_pandas",
    "from_spacy",
    "read",
    "to_datasets",
    "to_networkx",
    "to_pandas",
    "to_spacy",
    "tokenize",
    "write",
]

_MODULES = {
    "Dataset": "fuda.formats.dataset",
    "Record": "fuda.formats.dataset",
    "Text": "fuda.data.text",
    "from_datasets": "fuda.formats.huggingface",
    "to_datasets": "fuda.formats.huggingface",
    "from_pandas": "fuda.formats.frames",
    "to_pandas": "fuda.formats.frames",
    "from_spacy": "fuda.formats.spacy_docs",
    "to_spacy": "fuda.formats.spacy_docs",
    "from_networkx": "fuda.formats.graph",
    "to_networkx": "fuda.formats.graph",
    "tokenize": "fuda.data.text",
}

Options = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """A file format.

    Parameters
    ----------
    name : str
        The name of the format and of its module.
    extensions : tuple of str
        The extensions of its files, in lower case with the dot.
    help : dict of str
        The meaning of ``--label``, ``--columns`` and ``--graph`` of the command for the format;
        only the options that it has.
    holds : tuple of {"keys", "comments", "marginals"}
        What `write` writes of a record beside its structure and labels.

    Examples
    --------
    >>> conllu = FORMATS["conllu"]
    >>> conllu.extensions, conllu.read_options
    (('.conllu',), ('label', 'absent', 'graph', 'columns', 'cyclic'))
    """

    name: str
    extensions: tuple[str, ...]
    help: Mapping[str, str] = field(default_factory=dict)
    holds: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name not in ("read", "records", "write", *_DEFAULTS):
            raise AttributeError(f"a format has no attribute {name!r}")
        return getattr(import_module(f"fuda.formats.{self.name}"), name, _DEFAULTS.get(name))

    @property
    def read_options(self) -> tuple[str, ...]:
        """The names of the options of `read`."""
        return tuple(inspect.signature(self.read).parameters)[2:]

    @property
    def write_options(self) -> tuple[str, ...]:
        """The names of the options of `write`."""
        return tuple(name for name in self._write_parameters if name != "after")

    @property
    def appends(self) -> bool:
        """Whether a file can be written piece by piece, the first before the last is known."""
        return "after" in self._write_parameters

    @property
    def _write_parameters(self) -> tuple[str, ...]:
        """The names of the parameters of `write` past the first."""
        return tuple(inspect.signature(self.write).parameters)[1:]

    def read_file(self, path: str | Path, options: Options) -> Dataset:
        """Read a file, which may be gzipped, or standard input (``-``).

        Parameters
        ----------
        path : str or Path
            The name of the file, or ``-``.
        options : dict
            The options of `read`, by name.

        Returns
        -------
        Dataset
            The structures and labels.
        """
        self.check_options("reading", options)
        name = files.display_name(path)
        with _enough_memory(name):
            dataset: Dataset = self.read(files.read_text(path), name, **options)
        return dataset

    def read_lines(self, lines: files.Lines, options: Options, notes: list[str]) -> Iterator[Record]:
        """Yield the records of a file as its lines come.

        Parameters
        ----------
        lines : Lines
            The lines of the file.
        options : dict
            The options of `read`, by name.
        notes : list of str
            After the last record, what was left out is appended, one line each.

        Yields
        ------
        Record
            A structure, in file order.
        """
        self.check_options("reading", options)
        bound = inspect.signature(self.read).bind("", lines.name, **options)
        bound.apply_defaults()
        with _enough_memory(lines.name):
            if self.records is None:
                dataset = self.read("".join(f"{line}\n" for line in lines), *bound.args[1:])
                yield from dataset.records
                notes += dataset.notes
                return
            for record in self.records(lines, lines.name, notes, *bound.args[2:]):
                yield record
                lines.release()

    def write_file(self, dataset: Dataset, path: str | Path, options: Options) -> None:
        """Write a dataset; if this fails, the files are left as they were.

        Parameters
        ----------
        dataset : Dataset
            What to write; at least one record.
        path : str or Path
            The name of the file (gzipped if it ends in ``.gz``), or ``-`` for standard output.
        options : dict
            The options of `write`, by name.
        """
        self.check_options("writing", options)
        if not dataset.records:
            raise DataError(f"{path}: there are no structures to write; give at least one")
        text = self.write(dataset.records, **options)
        second_file = self.write_beside(dataset.records, path)
        try:
            files.write_text(path, text)
        except BaseException:
            if second_file is not None:
                second_file.unlink(missing_ok=True)
            raise

    def write_beside(self, records: list[Record], path: str | Path) -> Path | None:
        """Write the second file of a format that has one.

        Parameters
        ----------
        records : list of Record
            What the first file contains.
        path : str or Path
            The name of the first file.

        Returns
        -------
        Path or None
            The second file; None if it was there.
        """
        second_file: tuple[Path, str] | None = self.beside(records, path)
        if second_file is None:
            return None
        files.write_text(*second_file)
        return second_file[0]

    def check_options(self, action: str, options: Options) -> None:
        """Raise DataError for an option that the format does not have.

        Parameters
        ----------
        action : {"reading", "writing"}
            What the options are for.
        options : dict
            The options by name.
        """
        known = self.read_options if action == "reading" else self.write_options
        for option in options:
            if option not in known:
                listed = ", ".join(known) or "none"
                raise DataError(f"{action} {self.name} takes no option {option!r}; it takes: {listed}")


@contextmanager
def _enough_memory(name: str) -> Iterator[None]:
    """Within the block a MemoryError becomes a DataError."""
    try:
        yield
    except MemoryError:
        raise DataError(f"{name}: there is not enough memory to read it; split the file") from None


# The hooks of formats that do not define them.
_DEFAULTS: dict[str, Callable[..., Any]] = {
    "from_command": lambda options: options,
    "options_to_store": lambda dataset: {},
    "options_for_model": lambda path, given, stored, labelled: (stored or {}) | given,
    "beside": lambda records, path: None,
}

_CONLL = (".conll", ".tsv", ".txt", ".iob", ".iob2", ".bio", ".train", ".testa", ".testb", ".test", ".dev")
_CONLLU = {"label": "a column's name or MISC:KEY", "columns": "as FORM,UPOS", "graph": "a tree by default"}

_CONLLX = _CONLLU | {"label": "a column's name"}
_JSON = (".jsonl", ".ndjson")
_COLUMNS = ("comments", "marginals")

# The first is the format of standard input and output, unless another is named.
FORMATS = {
    format.name: format
    for format in (
        Format("conll", _CONLL, {"label": "a column number", "columns": "as 1 or 1,2"}, _COLUMNS),
        Format("conllu", (".conllu",), _CONLLU, _COLUMNS),
        Format("fasta", (".fasta", ".fa", ".faa", ".fna")),
        Format("jsonl", _JSON, {"label": "a key"}, ("keys", "marginals")),
        Format("crfsuite", ()),
        Format("text", (".txt",)),
        Format("inline", (".inline", ".txt")),
        Format("conllx", (".conllx",), _CONLLX, ("comments",)),
        Format("conllup", (".conllup",), _CONLLU, ("comments",)),
        Format("csv", (".csv",), {"label": "a column's name", "columns": "as word,pos"}),
        Format("brat", (".ann",)),
        Format(
            "graphml",
            (".graphml",),
            {"label": "an attribute", "columns": "an attribute", "graph": "a dag by default"},
        ),
        Format("doccano", _JSON[:1], holds=("keys",)),
        Format("prodigy", _JSON[:1], holds=("keys",)),
        Format("pssm", (".pssm",)),
    )
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'fuda.formats' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def format_of(path: str | Path, format: str | None = None, default: str | None = None) -> Format:
    """Return the named format, or else that of the file's extension, or else the default.

    Parameters
    ----------
    path : str or Path
        The name of a file, or ``-``.
    format : str, optional
        One of `FORMATS`.
    default : str, optional
        One of `FORMATS`, for ``-`` and extensions that belong to no format or to several.

    Returns
    -------
    Format
        A value of `FORMATS`.

    Raises
    ------
    DataError
        If neither the name nor the extension is known.

    Examples
    --------
    >>> format_of("esp.train.gz").name
    'conll'
    """
    if format is not None:
        if not isinstance(format, str) or format not in FORMATS:
            raise DataError(f"format {format!r} is not known; choose one of {', '.join(FORMATS)}")
        return FORMATS[format]
    extension = PurePath(str(path).lower().removesuffix(".gz")).suffix
    matching = [known for known in FORMATS.values() if extension in known.extensions]
    if matching:
        return next((known for known in matching if known.name == default), matching[0])
    if default is not None:
        return format_of(path, default)
    if str(path) == "-":
        return next(iter(FORMATS.values()))
    listed = "; ".join(
        f"{known.name} ({' '.join(known.extensions) or 'named'})" for known in FORMATS.values()
    )
    raise DataError(
        f"{path}: the extension {extension!r} does not belong to a format; pass format= (on the command "
        "line --format, or --to for what convert and export write) or rename the file. The formats: "
        f"{listed}"
    )


def read(path: str | Path, format: str | None = None, **options: Any) -> Dataset:
    """Read structures and labels from a file, possibly gzipped, or from standard input (``-``).

    A text of more than 2 GiB is refused unless the environment variable FUDA_MAX_BYTES allows it.

    Parameters
    ----------
    path : str or Path
        The name of the file, or ``-``.
    format : str, optional
        One of `FORMATS`; by default that of the file's extension.
    **options
        Those of the ``read`` of the format's module, such as `fuda.formats.conll`.

    Returns
    -------
    Dataset
        ``X, y = read(path)`` unpacks into structures and labels.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "names.conll"
    ...     _ = path.write_text("Ana B-PER\\nsings O\\n")
    ...     X, y = read(path)
    >>> X, y
    ([Sequence(['Ana', 'sings'], 2 nodes)], [['B-PER', 'O']])
    """
    return format_of(path, format).read_file(path, options)


def write(dataset: Dataset, path: str | Path, format: str | None = None, **options: Any) -> None:
    """Write a dataset to a file or to standard output; a failure leaves the file as it was.

    Parameters
    ----------
    dataset : Dataset
        What to write, such as ``data.with_labels(model.predict(data.X))``.
    path : str or Path
        The file is gzipped if its name ends in ``.gz``; ``-`` is standard output.
    format : str, optional
        One of `FORMATS`; by default that of the file's extension.
    **options
        Those of the ``write`` of the format's module.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from fuda import Sequence
    >>> from fuda.formats import Dataset, Record
    >>> data = Dataset([Record(Sequence(["Ana", "sings"]), ["B-PER", "O"])])
    >>> with TemporaryDirectory() as folder:
    ...     write(data, f"{folder}/names.conll")
    ...     Path(folder, "names.conll").read_text().splitlines()[0].split()
    ['Ana', 'B-PER']
    """
    if not hasattr(dataset, "records"):
        raise DataError(
            f"write(dataset, path): the dataset comes first, but {described(dataset)} was given; make one of "
            "lists by Dataset([Record(Sequence(words), labels), …])"
        )
    format_of(path, format).write_file(dataset, path, options)
