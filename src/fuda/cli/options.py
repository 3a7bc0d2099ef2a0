"""Shared by subcommands: options for reading files, NAME=VALUE pairs, errors with file names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from fuda.cli.values import literal
from fuda.errors import DataError
from fuda.progress import stage

if TYPE_CHECKING:
    from fuda.formats import Dataset, Format

# {} is replaced by the names or the help of the formats.
_FORMAT = "{}; by default that of the file's extension."
_LABEL = "The column of the labels: {}; 'none' for a file without labels."
_COLUMNS = "The columns of the observation, {}."
_GRAPH = "The shape to read: {}."
_OPTION = "Any other option of the format: --option cyclic=skip."


class _FormatOption(click.Option):
    """An option whose help is completed by the formats, which are imported when help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help."""
        from fuda.formats import FORMATS

        record = super().get_help_record(ctx)
        if record is None:
            return None
        formats: dict[str, list[str]] = {}  # by what the option means for them
        for format in FORMATS.values():
            if text := format.help.get(str(self.name)):
                formats.setdefault(text, []).append(format.name)
        helps = [f"{text} ({', '.join(names)})" for text, names in formats.items()]
        return record[0], record[1].format(", ".join(helps or FORMATS))


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --format, --label, --columns, --graph and --option to a command that reads files."""
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


def reading_keywords(
    format_name: str | None, label: str | None, columns: str | None, graph: str | None, options: Iterable[str]
) -> dict[str, Any]:
    """The keywords for `fuda.formats.read` from those `reading_options` that were given."""
    by_name = {"format": format_name, "label": label, "columns": columns, "graph": graph}
    keywords: dict[str, Any] = {name: value for name, value in by_name.items() if value is not None}
    if label is not None:
        keywords["label"] = None if label.lower() == "none" else _number_or_text(label)
    if columns is not None:
        keywords["columns"] = [_number_or_text(part.strip()) for part in columns.split(",")]
    further = assignments(options, "--option")
    for name in further:
        if name in by_name:
            raise DataError(f"--option {name}=…: write --{name} instead")
    return keywords | further


def assignments(
    pairs: Iterable[str], option: str, convert: Callable[[str, str], Any] = lambda name, text: literal(text)
) -> dict[str, Any]:
    """The values of NAME=VALUE pairs by name: Python literals where possible, else text.

    `convert` makes a value of a name and a text in another way.
    """
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise DataError(f"{option} {pair}: write {option} NAME=VALUE")
        if name in values:
            raise DataError(f"{option} {pair}: {name} is given twice; give it once")
        try:
            values[name] = convert(name, value)
        except DataError as error:
            raise DataError(f"{option} {pair}: {error}") from None
    return values


def check_output(path: str, *others: str) -> None:
    """Refuse, before any work, an output that cannot be written or is one of the `others`."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise DataError(f"{path}: is a folder; name a file")
    if not os.path.isdir(folder):
        raise DataError(f"{path}: there is no folder {folder}; make it first, or name another file")
    if not os.path.exists(path) and not os.access(folder, os.W_OK):
        raise DataError(f"{path}: the folder {folder} cannot be written to; name another file")
    for input_path in others:
        same = os.path.abspath(path) == os.path.abspath(input_path)
        if same or (
            os.path.exists(path) and os.path.exists(input_path) and os.path.samefile(path, input_path)
        ):
            raise DataError(f"{path}: is used twice by the same command and would be lost; name another file")
    outputs[path] = _version(path)


outputs: dict[str, tuple[int, ...]] = {}  # of the command that runs, as they were when it began


def _version(path: str) -> tuple[int, ...]:
    """Numbers that differ for another content of a file; none where there is no file."""
    if not os.path.exists(path):
        return ()
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def written() -> str:
    """Which of the outputs that were checked have been written since."""
    changed = [path for path, before in outputs.items() if _version(path) not in ((), before)]
    return f"written: {', '.join(changed)}" if changed else "no file was written or changed"


def read(path: str, keywords: dict[str, Any]) -> Dataset:
    """Read a file, with progress; the notes of the reader are printed to standard error."""
    from fuda.formats import format_of

    options = dict(keywords)
    format = format_of(path, options.pop("format", None))
    return _read(path, format, format.from_command(options))


def read_as_trained(path: str, model: Any, keywords: dict[str, Any], labelled: bool) -> Dataset:
    """Read a file with progress, with the options of `as_trained`."""
    return _read(path, *as_trained(path, model, keywords, labelled))


def read_unlabelled(path: str, stored: dict[str, Any], trained_on: str) -> Dataset:
    """Read a file whose labels do not matter, with progress.

    `stored` are the options of the training file `trained_on`, whose columns count in files of the
    same format. A file whose extension belongs to no format is raw text.
    """
    from fuda.formats import format_of

    same_name = os.path.splitext(path.removesuffix(".gz"))[1] == os.path.splitext(trained_on)[1]
    format = format_of(path, None, stored["format"] if same_name else "text")
    like: dict[str, Any] = {"label": None} if "label" in format.help else {}
    if format.name == stored["format"] and "columns" in stored:
        like["columns"] = stored["columns"]
    return _read(path, format, format.from_command(like))


def _read(path: str, format: Format, options: dict[str, Any]) -> Dataset:
    """Read a file, with progress; the notes of the reader are printed to standard error."""
    from fuda.files import display_name

    with stage(f"reading {display_name(path)}") as show:
        data = format.read_file(path, options)
        show(describe(data))
    for note in data.notes:
        click.echo(f"fuda: {note}", err=True)
    return data


def joined(paths: Sequence[str], parts: Sequence[Dataset]) -> tuple[Dataset, list[str]]:
    """The records of files as one dataset, and what its structures are called in messages.

    A name is the number within a file, after the name of the file where there are several.
    """
    from fuda.files import display_name
    from fuda.formats import Dataset

    data = Dataset([record for part in parts for record in part.records])
    if len(paths) == 1:
        return data, [str(i) for i in range(len(data))]
    short = [os.path.basename(display_name(path)) for path in paths]
    return data, [f"{name} {i}" for name, part in zip(short, parts, strict=True) for i in range(len(part))]


def as_trained(
    path: str, model: Any, keywords: dict[str, Any], labelled: bool
) -> tuple[Format, dict[str, Any]]:
    """The format of a file and its options, like the training files if it has their format.

    `keywords` take precedence. Standard input, and a file whose extension belongs to no format,
    have the format of the training files. `labelled` is true if labels are required.
    """
    from fuda.formats import format_of

    stored = model.reading_
    format = format_of(path, keywords.get("format"), stored.get("format"))
    assigned = {name: value for name, value in keywords.items() if name != "format"}
    same = {name: value for name, value in stored.items() if name != "format"}
    same_format = format.name == stored.get("format")
    options = format.options_for_model(path, assigned, same if same_format else None, labelled)
    return format, format.from_command(options)


def options_to_store(path: str, keywords: dict[str, Any], data: Dataset) -> dict[str, Any]:
    """The options with which a model that was trained on a file reads others."""
    from fuda.formats import format_of

    format = format_of(path, keywords.get("format"))
    return keywords | {"format": format.name} | format.options_to_store(data)


@contextmanager
def errors_name_file(paths: Sequence[str], parts: Sequence[Dataset], before: int = 0) -> Iterator[None]:
    """Add the file to errors, and count structures within their file instead of over all files.

    `before` is the number of structures of the first file that come before its part.
    """
    from fuda.files import display_name

    names = [display_name(path) for path in paths]
    several = len(names) > 1

    def within_file(match: re.Match[str]) -> str:
        index = int(match[1])
        if not several:
            return f"structure {index + before}"
        for name, part in zip(names, parts, strict=True):
            if index < len(part):
                return f"structure {index} of {name}"
            index -= len(part)
        return match[0]

    try:
        yield
    except DataError as error:
        message = str(error)
        located = re.sub(r"\bstructure (\d+)", within_file, message)
        if several and located != message:
            raise DataError(located) from None
        raise DataError(f"{names[0]}{' and others' if several else ''}: {located}") from None


def printer(err: bool = False, width: int = 0) -> Callable[..., None]:
    """A function that prints text and tables formatted by rich, to standard error if `err`.

    Lines are as long as those of the terminal, and at least `width`. The output is written by
    click: rich would end the process if the pipe is closed.
    """
    from rich.console import Console

    console = Console(highlight=False, stderr=err)
    console.width = max(console.width, width)

    def show(*values: Any, **style: Any) -> None:
        with console.capture() as captured:
            console.print(*values, **style)
        click.echo(captured.get(), nl=False, err=err)

    return show


def first_unlabelled(path: str, data: Dataset) -> str:
    """What to blame for the want of labels: the file, or the first of some structures in it."""
    from fuda.files import display_name

    bare = [i for i, record in enumerate(data.records) if record.labels is None]
    return f"{display_name(path)}:{'' if len(bare) == len(data) else f' structure {bare[0]}'}"


def warn_of_other_labels(name: str, labels: set[Any], known: set[Any]) -> None:
    """Say so where files have no label that a model learns, apart from O."""
    if (labels & known) - {"O"} or not labels - {"O"}:
        return
    file_labels, model_labels = (
        ", ".join(sorted(map(str, label_set - {"O"}))[:5]) for label_set in (labels, known)
    )
    click.echo(
        f"fuda: {name}: its labels ({file_labels}) and those of the model ({model_labels}) have nothing in "
        "common; name the right column or field with --label",
        err=True,
    )


def describe(*parts: Dataset) -> str:
    """The numbers of structures and nodes, in words."""
    structures = [structure for part in parts for structure in part.X]
    return f"{counted(len(structures), structures[0].shape)}, {counted(sum(map(len, structures)), 'node')}"


def counted(number: int, thing: str) -> str:
    """A number of things, in words.

    >>> counted(1, "tree"), counted(8323, "tree")
    ('1 tree', '8,323 trees')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _number_or_text(text: str) -> Any:
    """A column number, or the name of a column."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else text
