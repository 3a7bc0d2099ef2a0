"""The report of the experiments: a Markdown file whose tables are written by the command.

A table stands between two comments, ``<!-- fuda: NAME -->`` and ``<!-- end -->``; everything else
in the file is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuda.errors import DataError
from fuda.files import read_text, write_text

_TABLE = re.compile(r"<!-- fuda: (?P<name>[^>]*?) -->\n.*?<!-- end -->", re.DOTALL)


def markdown(table: Any, without: tuple[str, ...] = ()) -> str:
    """Write a table of rich as Markdown.

    Parameters
    ----------
    table : Table
        The table.
    without : tuple of str
        Headings of columns to leave out.

    Returns
    -------
    str
        A line per row.
    """
    columns = [column for column in table.columns if column.header not in without]
    rows = zip(*(column.cells for column in columns), strict=True)
    lines = [[column.header for column in columns], ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(' '.join(str(cell).split()) for cell in line)} |\n" for line in lines)


def check_places(path: str | Path, experiments: Iterable[str]) -> None:
    """Check, before hours of work, that a report has places for tables of all experiments.

    Parameters
    ----------
    path : str or Path
        The report.
    experiments : iterable of str
        The names of the experiments.
    """
    names = {found["name"] for found in _TABLE.finditer(read_text(path))}
    for experiment in experiments:
        if f"{experiment} 1" not in names:
            raise _missing(path, f"{experiment} 1")


def replace_table(path: str | Path, name: str, table: str) -> None:
    """Replace a table of a report.

    Parameters
    ----------
    path : str or Path
        The report.
    name : str
        The name of the table.
    table : str
        Its new text.
    """
    text = read_text(path)
    place = re.compile(_TABLE.pattern.replace("[^>]*?", re.escape(name)), re.DOTALL)
    if not place.search(text):
        raise _missing(path, name)
    write_text(path, place.sub(lambda found: f"<!-- fuda: {name} -->\n\n{table}\n<!-- end -->", text))


def _missing(path: str | Path, name: str) -> DataError:
    """The error for a report without a place for a table."""
    return DataError(f"{path}: has no place for {name}; add '<!-- fuda: {name} -->' and '<!-- end -->'")
