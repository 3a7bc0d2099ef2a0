"""Lines of CoNLL-U and its relatives for structures of other formats, and the offsets in them.

A structure with a text has the comment ``# text = …`` and, in MISC, ``TokenRange=start:end``,
which counts from the beginning of the file that the text comes from, as in the output of UDPipe.
"""

from __future__ import annotations

import re

from fuda.data.structures import Dag, Structure, Tree
from fuda.data.text import Text
from fuda.errors import DataError, place
from fuda.formats import dataset
from fuda.formats.conllu_fields import EMPTY, Field, Layout, check_value
from fuda.formats.dataset import Record

_TEXT = re.compile("# text = (.*)", re.DOTALL)
_RANGE = re.compile(r"(?:^|\|)TokenRange=([0-9]{1,15}):([0-9]{1,15})(?:$|\|)")


def new_lines(
    index: int, record: Record, fields: list[Field], layout: Layout
) -> tuple[list[str], list[list[int]]]:
    """Lines for a structure that was read from another format, and those of each node."""
    structure = record.structure
    parents: list[list[int]] = [[] for _ in structure.observations]
    for parent, child in structure.edges.tolist():
        parents[child].append(parent + 1)
    lines: list[str] = []
    nodes = []
    for node, observation in enumerate(structure.observations):
        cells = [EMPTY] * len(layout.names)
        values = dataset.column_values(observation, index, node)
        if len(values) != len(fields):
            message = f"an observation of {len(values)} columns, but {len(fields)} are named; name as many"
            raise DataError(f"{place(index, node)}: {message} in columns, such as columns=['FORM', 'XPOS']")
        for field, value in zip(fields, values, strict=True):
            check_value(value, field, index, node)
            field.put(cells, value)
        if record.text is not None and "MISC" in layout.names:
            start, end = (record.text.start + edge for edge in record.text.offsets[node])
            Field(layout.names.index("MISC"), "TokenRange").put(cells, f"{start}:{end}")
        dependencies = _linked(cells, structure, node, parents[node], layout)
        nodes.append(list(range(len(lines), len(lines) + len(dependencies))))
        lines += dependencies
    return lines, nodes


def text_comment(record: Record) -> list[str]:
    """The comment with the text of a structure, if it has one on one line and no such comment."""
    if record.text is None or any(map(_TEXT.match, record.comments)):
        return []
    content = record.text.content
    return [] if "\n" in content or "\r" in content else [f"# text = {content}"]


def text_of(comments: list[str], rows: list[list[str]], layout: Layout) -> Text | None:
    """The text of a sentence whose words have positions in it; `rows` are the nodes' rows."""
    misc, form = layout.index("MISC"), layout.index("FORM")
    if misc is None or form is None or "TokenRange=" not in rows[0][misc]:
        return None
    content = next((match[1] for match in map(_TEXT.match, comments) if match), "")
    ranges = [_RANGE.search(cells[misc]) for cells in rows]
    edges = [(int(match[1]), int(match[2])) for match in ranges if match]
    start = edges[0][0] - content.find(rows[0][form]) if edges else 0
    offsets = [(first - start, last - start) for first, last in edges]
    if start < 0 or [content[first:last] for first, last in offsets] != [cells[form] for cells in rows]:
        return None
    try:
        return Text(content, offsets, start)
    except DataError:  # words out of order: they are read all the same
        return None


def _linked(
    cells: list[str], structure: Structure, node: int, parents: list[int], layout: Layout
) -> list[str]:
    """The line of a node with its parents; several lines, where a line has one parent only."""

    def line(**values: str) -> str:
        for name, value in values.items():
            where = layout.index(name)
            if where is not None:
                cells[where] = value
        return "\t".join(cells)

    ident = str(node + 1)
    if isinstance(structure, Dag) and layout.repeats:
        return [line(ID=ident, HEAD=str(parent)) for parent in parents or [0]]
    if isinstance(structure, Dag):
        return [line(ID=ident, DEPS="|".join(f"{parent}:dep" for parent in parents) or "0:root")]
    if isinstance(structure, Tree):
        known = {} if parents or not _is_free(cells, layout) else {"DEPREL": "root"}
        return [line(ID=ident, HEAD=str(parents[0] if parents else 0), **known)]
    return [line(ID=ident)]


def _is_free(cells: list[str], layout: Layout) -> bool:
    """Whether DEPREL has no value yet."""
    where = layout.index("DEPREL")
    return where is not None and cells[where] == EMPTY
