"""Tables as text, HTML and for the terminal."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple


class PrintedTable(NamedTuple):
    """A table of texts.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    rows : list of list of str
        The cells; all columns but the first are numbers and stand to the right.
    notes : tuple of str
        Lines that follow the table.
    """

    header: list[str]
    rows: list[list[str]]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the table as lines of text.

        Returns
        -------
        str
            The columns separated by two spaces.

        Examples
        --------
        >>> print(PrintedTable(["model", "F1"], [["crf", "50.1"], ["hmm", "9.3"]]).text())
        model    F1
        crf    50.1
        hmm     9.3
        """
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = []
        for first, *others in lines:
            cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
            texts.append("  ".join([f"{first:<{widths[0]}}", *cells]).rstrip())
        return "\n".join([*texts, *self.notes])

    def html(self) -> str:
        """Return the table as HTML.

        Returns
        -------
        str
            A table element, and paragraphs for the notes.
        """

        def row(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self.rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table><thead>{row(self.header, 'th')}</thead><tbody>{body}</tbody></table>{notes}"

    def rich(self) -> Any:
        """Return the table for `rich`, notes not included.

        Returns
        -------
        rich.table.Table
            The table.
        """
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for k, name in enumerate(self.header):
            table.add_column(Text(name), justify="right" if k else "left", no_wrap=k > 0, overflow="fold")
        for cells in self.rows:
            table.add_row(*map(Text, cells))
        return table


class Tabular:
    """Base of results that are shown as the table that `table` returns."""

    def table(self) -> PrintedTable:
        """Return the table."""
        raise NotImplementedError

    def text(self) -> str:
        """Return the table as text.

        Returns
        -------
        str
            Several lines.
        """
        return self.table().text()

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.table().html()
