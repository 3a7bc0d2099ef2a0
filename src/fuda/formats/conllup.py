"""CoNLL-U Plus: the lines of CoNLL-U with the columns that the first line names.

::

    # global.columns = ID FORM UPOS HEAD DEPREL PARSEME:MWE
    1	Ana	PROPN	2	nsubj	*

ID and FORM are required. A label or an observed column is named as in the first line, or as a key
of FEATS or MISC. Trees need HEAD, enhanced graphs DEPS. All lines are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from fuda.errors import DataError, short
from fuda.files import fault, split_lines
from fuda.formats import conllu
from fuda.formats.conllu import Rows, layout_records, layout_text, options_for_model
from fuda.formats.conllu_fields import Layout
from fuda.formats.dataset import Dataset, Record

_COLUMNS = re.compile(r"#[ \t]*global\.columns[ \t]*=[ \t]*(.*\S)[ \t]*")

__all__ = ["options_for_model", "read", "records", "write"]


def read(
    text: str,
    name: str,
    label: str | None = "UPOS",
    absent: str | None = "O",
    graph: str = "tree",
    columns: str | Sequence[str] = ("FORM",),
    cyclic: str = "error",
) -> Dataset:
    """Read sentences as trees, DAGs or sequences.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    label : str or None
        The column or key of the label; None means that there are no labels.
    absent : str or None
        The label of a word without the key.
    graph : {"tree", "dag", "sequence"}
        The shape of the structures.
    columns : str or list of str
        The observed columns or keys, as a list or separated by commas.
    cyclic : {"error", "skip", "break"}
        What is done with a graph that has cycles, as in `fuda.formats.conllu`.

    Returns
    -------
    Dataset
        One record per sentence.

    Examples
    --------
    >>> text = "# global.columns = ID FORM NE\\n1\\tLima\\tLOC\\n"
    >>> X, y = read(text, "f", label="NE", graph="sequence")
    >>> X, y
    ([Sequence(['Lima'], 1 nodes)], [['LOC']])
    """
    notes: list[str] = []
    record_iterator = records(split_lines(text, name), name, notes, label, absent, graph, columns, cyclic)
    return Dataset(list(record_iterator), notes)


def records(
    lines: Iterable[str],
    name: str,
    notes: list[str],
    label: str | None,
    absent: str | None,
    graph: str,
    columns: str | Sequence[str],
    cyclic: str,
) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; notes are added at the end."""
    lines = iter(lines)
    first = next(lines, "")
    match = _COLUMNS.fullmatch(first)
    if match is None:
        remedy = "write # global.columns = ID FORM … there"
        raise fault(name, 1, f"the first line {short(first)} does not name the columns; {remedy}")
    names = tuple(match[1].split())
    if not {"ID", "FORM"} <= set(names) or len(set(names)) < len(names):
        raise fault(
            name, 1, f"columns are named once, ID and FORM among them, not {short(match[1])}; correct it"
        )
    options = (label, absent, graph, columns, cyclic)
    # The line of the names stays the first comment, for the writer to find.
    yield from layout_records(chain([first], lines), name, notes, *options, Layout(names))


def write(
    records: Sequence[Record],
    label: str | None = None,
    absent: str | None = "O",
    columns: str | Sequence[str] = ("FORM",),
    after: Record | None = None,
) -> str:
    """Write the lines that were read with new labels, or new lines for other formats.

    Parameters
    ----------
    records : list of Record
        The structures and labels.
    label : str, optional
        The column or key of the labels; by default that from which they were read, and UPOS for
        other formats.
    absent : str or None
        The label for which the key is removed.
    columns : str or list of str
        The columns of the observations of other formats: one for strings, several for tuples.
    after : Record, optional
        The first record of the file, if `records` are to follow others in it.

    Returns
    -------
    str
        The content of the file.
    """
    first = after or records[0]
    layout = first.rows.layout if isinstance(first.rows, Rows) else conllu.CONLLU
    for record in records:
        if isinstance(record.rows, Rows) and record.rows.layout != layout:
            raise DataError("structures of files with different columns; write a file for each")
    text = layout_text(records, label, absent, columns, after, layout)
    if after is not None or _COLUMNS.match(text.partition("\n")[0]):
        return text
    return f"# global.columns = {' '.join(layout.names)}\n{text}"
