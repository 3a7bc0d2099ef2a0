"""What several subcommands share: how files are read, NAME=VALUE options, errors that name their file."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from fuda.errors import DataError
from fuda.progress import stage

if TYPE_CHECKING:
    from fuda.formats import Dataset

# {} is filled in by the formats.
_FORMAT = "{}; by default what the file's extension says."
_LABEL = "Where labels stand: {}; 'none' for a file without labels."
_COLUMNS = "Which columns are the observation, {}."
_GRAPH = "The shape to read: {}."
_OPTION = "Any other option of the format, by the name that messages use: --option cyclic=skip."


class _FormatOption(click.Option):
    """An option whose help comes from the formats, which are imported only where help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from fuda.formats import FORMATS

        record = super().get_help_record(ctx)
        if record is None:
            return None
        of_formats = {format.name: format.help.get(str(self.name)) for format in FORMATS.values()}
        words = [f"{words} ({name})" for name, words in of_formats.items() if words]
        return record[0], record[1].format(", ".join(words or of_formats))


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--format, --label, --columns, --graph and --option, which say how input is read."""
    shapes = click.Choice(["sequence", "tree", "dag"])
    for option in (
        click.option("--option", "options", metavar="NAME=VALUE", multiple=True, help=_OPTION),
        click.option("--graph", type=shapes, help=_GRAPH, cls=_FormatOption),
        click.option("--columns", metavar="LIST", help=_COLUMNS, cls=_FormatOption),
        click.option("--label", metavar="WHERE", help=_LABEL, cls=_FormatOption),
        click.option("--format", "format_name", metavar="NAME", help=_FORMAT, cls=_FormatOption),
    ):
        command = option(command)
    return command


def reading(
    format_name: str | None, label: str | None, columns: str | None, graph: str | None, options: Iterable[str]
) -> dict[str, Any]:
    """The keywords for `fuda.formats.read` that the options ask for; what was not given is left out."""
    keywords: dict[str, Any] = {}
    if format_name is not None:
        keywords["format"] = format_name
    if label is not None:
        keywords["label"] = None if label.lower() == "none" else _number_or_text(label)
    if columns is not None:
        keywords["columns"] = [_number_or_text(part.strip()) for part in columns.split(",")]
    if graph is not None:
        keywords["graph"] = graph
    further = assignments(options, "--option")
    for name in further:
        if name in ("format", "label", "columns", "graph"):
            raise DataError(f"--option {name}=…: write --{name} instead")
    return keywords | further


def assignments(pairs: Iterable[str], option: str) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is a Python literal where it reads as one, else text."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise DataError(f"{option} {pair}: write {option} NAME=VALUE")
        if name in values:
            raise DataError(f"{option} {pair}: {name} is given twice; give it once")
        values[name] = literal(value)
    return values


def literal(text: str) -> Any:
    """A value from the command line.

    >>> [literal(text) for text in ("2", "0.5", "true", "None", "word", "'2'")]
    [2, 0.5, True, None, 'word', '2']
    """
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def check_output(path: str, *others: str) -> None:
    """Refuse, before any work, an output that could not be written, or that is one of the `others`."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise DataError(f"{path}: is a folder; name a file")
    if not os.path.isdir(folder):
        raise DataError(f"{path}: there is no folder {folder}; make it first, or name another file")
    if not os.path.exists(path) and not os.access(folder, os.W_OK):
        raise DataError(f"{path}: the folder {folder} cannot be written to; name another file")
    for other in others:
        if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise DataError(f"{path}: is read by the same command and would be lost; name another file")


def read(path: str, keywords: dict[str, Any]) -> Dataset:
    """Read a file, with progress; what the reader has to say goes to standard error."""
    from fuda.files import display_name
    from fuda.formats import format_of

    options = dict(keywords)
    format = format_of(path, options.pop("format", None))
    with stage(f"reading {display_name(path)}") as say:
        data = format.read_file(path, format.from_command(options))
        say(describe(data))
    for note in data.notes:
        click.echo(f"fuda: {note}", err=True)
    return data


def read_as_trained(path: str, model: Any, keywords: dict[str, Any], labelled: bool) -> tuple[Dataset, str]:
    """A file, read as those that the model was trained on if its format is theirs, and its format's name.

    `keywords` take precedence. Standard input has the format of the training files. `labelled` says whether
    labels are needed.
    """
    from fuda.formats import format_of

    learned = model.reading_
    named = keywords.get("format", learned.get("format") if path == "-" else None)
    format = format_of(path, named)
    same = format.name == learned.get("format")
    options = format.options_for_model(path, keywords, learned if same else None, labelled)
    return read(path, options | {"format": format.name}), format.name


def how_read(path: str, keywords: dict[str, Any], data: Dataset) -> dict[str, Any]:
    """What a model remembers of the files it was trained on."""
    from fuda.formats import format_of

    format = format_of(path, keywords.get("format"))
    return keywords | {"format": format.name} | format.options_to_store(data)


@contextmanager
def naming(paths: Sequence[str], parts: Sequence[Dataset]) -> Iterator[None]:
    """Errors inside name the file. Structures, which count through all files there, count within theirs."""
    from fuda.files import display_name

    names = [display_name(path) for path in paths]

    def within_file(found: re.Match[str]) -> str:
        index = int(found[1])
        for name, part in zip(names, parts, strict=True):
            if index < len(part):
                return f"structure {index} of {name}"
            index -= len(part)
        return found[0]

    try:
        yield
    except DataError as error:
        message, several = str(error), len(names) > 1
        located = re.sub(r"\bstructure (\d+)", within_file, message) if several else message
        if located != message:
            raise DataError(located) from None
        raise DataError(f"{names[0]}{' and others' if several else ''}: {message}") from None


def printer() -> Callable[..., None]:
    """A function that prints what rich lays out.

    The writing is click's: rich would end the process where the reader of the output goes away.
    """
    from rich.console import Console

    console = Console(highlight=False)

    def say(*shown: Any, **how: Any) -> None:
        with console.capture() as captured:
            console.print(*shown, **how)
        click.echo(captured.get(), nl=False)

    return say


def describe(*parts: Dataset) -> str:
    """How many structures and nodes, in words."""
    structures = [structure for part in parts for structure in part.X]
    return f"{counted(len(structures), structures[0].shape)}, {counted(sum(map(len, structures)), 'node')}"


def counted(number: int, thing: str) -> str:
    """
    >>> counted(1, "tree"), counted(8323, "tree")
    ('1 tree', '8,323 trees')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _number_or_text(text: str) -> Any:
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else text
