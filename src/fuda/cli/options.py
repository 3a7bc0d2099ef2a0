"""Options that several subcommands share: how a file is read, and values given as NAME=VALUE."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

import click

from fuda.errors import DataError
from fuda.formats.dataset import Dataset
from fuda.formats.files import display_name
from fuda.progress import stage


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--format, --label, --columns, --graph and --option, which say how input is read."""
    for option in reversed(
        [
            click.option("--format", "format_name", metavar="NAME", help="conll, conllu, fasta or jsonl; by default "
                         "what the file's extension says."),
            click.option("--label", metavar="WHERE", help="Where labels stand: a column number (conll), a column's name or "
                         "MISC:KEY (conllu); 'none' for a file without labels."),
            click.option("--columns", metavar="LIST", help="Which columns are the observation, as 1 or 1,2 (conll) or "
                         "FORM,UPOS (conllu)."),
            click.option("--graph", type=click.Choice(["sequence", "tree", "dag"]), help="conllu: the shape to read."),
            click.option("--option", "options", metavar="NAME=VALUE", multiple=True, help="Any further option of the format, "
                         "as --option absent=O."),
        ]
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
    return keywords | assignments(options, "--option")


def assignments(pairs: Iterable[str], option: str) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is a Python literal where it reads as one, else text."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise DataError(f"{option} {pair}: write NAME=VALUE, for example {option} window=1")
        if name in values:
            raise DataError(f"{option} {pair}: {name} is given twice")
        values[name] = literal(value)
    return values


def literal(text: str) -> Any:
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def read(path: str, keywords: dict[str, Any]) -> Dataset:
    """Read a file, with progress; what the reader has to say goes to standard error."""
    from fuda import formats

    with stage(f"reading {display_name(path)}") as say:
        data = formats.read(path, **keywords)
        say(describe(data))
    for note in data.notes:
        click.echo(f"fuda: {note}", err=True)
    return data


def read_as_trained(path: str, model: Any, keywords: dict[str, Any]) -> Dataset:
    """Read a file as those that the model was trained on, if its format is theirs; `keywords` take precedence."""
    from fuda.formats import format_of

    same = format_of(path, keywords.get("format")).name == model.reading_.get("format")
    return read(path, (model.reading_ if same else {}) | keywords)


def how_read(path: str, keywords: dict[str, Any], data: Dataset) -> dict[str, Any]:
    """What a model remembers of the files it was trained on."""
    from fuda.formats import format_of

    kept = keywords | {"format": format_of(path, keywords.get("format")).name}
    if kept["format"] == "conll":
        kept["width"] = data.records[0].rows.table.width
    return kept


def describe(data: Dataset) -> str:
    """How many structures and nodes, in words."""
    nodes = sum(len(structure) for structure in data.X)
    shape = data.records[0].structure.shape if data.records else "structure"
    return f"{len(data):,} {shape}s, {nodes:,} nodes"


def _number_or_text(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text
