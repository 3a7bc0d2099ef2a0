"""Lines of CoNLL-U and its relatives for structures of other formats."""

from __future__ import annotations

from fuda.data.structures import Dag, Structure, Tree
from fuda.errors import DataError, place
from fuda.formats import dataset
from fuda.formats.conllu_fields import EMPTY, Field, Layout, check_value
from fuda.formats.dataset import Record


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
        found = _linked(cells, structure, node, parents[node], layout)
        nodes.append(list(range(len(lines), len(lines) + len(found))))
        lines += found
    return lines, nodes


def _linked(
    cells: list[str], structure: Structure, node: int, parents: list[int], layout: Layout
) -> list[str]:
    """The line of a node with its parents; several, where each line has room for one."""

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
