"""CoNLL-U: ten columns separated by tabs, one word a line, a blank line after each sentence.

======  ==============================================================================
column  what
======  ==============================================================================
ID      1, 2, … for words; ``1-2`` a multiword token; ``5.1`` an empty node after word 5
FORM …  FORM, LEMMA, UPOS, XPOS, FEATS: what is known of the word
HEAD    the ID of its parent in the basic tree, 0 at the root; DEPREL is the relation
DEPS    its parents in the enhanced graph, ``4:nsubj|8.1:dep``
MISC    anything else, ``key=value|key=value``
======  ==============================================================================

A label or an observed column is named by its column, or as ``MISC:KEY`` or ``FEATS:KEY``. ``_`` is a label
not known (None).

The view of a sentence is a tree (HEAD), a DAG (DEPS) or a sequence (the order of the words alone). Empty
nodes are nodes of the DAG, in their place between the words, and are no nodes of the other two views.
Multiword tokens are never nodes. All lines are kept, so writing gives a file that was read back byte for
byte, labels replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fuda.checks import check_choice
from fuda.data import structures
from fuda.data.structures import Dag, Structure, Tree
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats.conllu_fields import COLUMNS, EMPTY, Field, LabelField, check_value, named
from fuda.formats.dataset import (
    Dataset,
    Label,
    Record,
    check_line,
    check_rows,
    column_values,
    labels_to_write,
)

ID, HEAD, DEPREL, DEPS = (COLUMNS.index(name) for name in ("ID", "HEAD", "DEPREL", "DEPS"))

_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})\Z")
_EMPTY_NODE = re.compile(r"(0|[1-9][0-9]*)\.([1-9][0-9]*)\Z")
_NUMBER = re.compile(r"[0-9]{1,9}\Z")


@dataclass(slots=True)
class Rows:
    """The lines of one sentence as they stood, which of them are the nodes, and where the labels were."""

    lines: list[str]
    nodes: list[int]
    label: LabelField | None


def read(
    text: str,
    name: str,
    label: str | None = "UPOS",
    absent: str | None = "O",
    graph: str = "tree",
    columns: str | Sequence[str] = ("FORM",),
    cyclic: str = "error",
) -> Dataset:
    """Sentences as trees (`graph` "tree"), DAGs ("dag") or sequences ("sequence").

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    label : str or None
        The column or key of the label, such as ``UPOS`` or ``MISC:NE``; None means that there are no labels.
    absent : str or None
        The label of a word without the key.
    graph : {"tree", "dag", "sequence"}
    columns : str or list of str
        What is observed, as a list or with commas between. One column gives a string, several a tuple, with
        ``_`` where a key is absent.
    cyclic : {"error", "skip"}
        Enhanced graphs may have cycles: refuse them, or leave such sentences out and count them in the notes.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> row = "1\\tLima\\tLima\\tPROPN\\t_\\t_\\t0\\troot\\t_\\tNE=U-LOC\\n\\n"
    >>> X, y = read(row, "example", label="MISC:NE")
    >>> X, y
    ([Tree(['Lima'], 1 nodes)], [['U-LOC']])
    """
    check_choice("graph", graph, ("tree", "dag", "sequence"))
    check_choice("cyclic", cyclic, ("error", "skip"))
    where = None if label is None else LabelField(named(label, "label"), absent)
    observed = _observed(columns, where)
    records: list[Record] = []
    skipped = 0
    trailing: list[str] = []
    for sentence in _sentences(split_lines(text, name), name):
        if not sentence.lines:
            trailing = sentence.comments
            break
        nodes = _nodes(sentence, empty_nodes=graph == "dag")
        observations, labels = _values(sentence, nodes, observed, where)
        try:
            structure = _structure(graph, sentence, nodes, observations)
        except _CycleError as error:
            if cyclic == "skip":
                skipped += 1
                continue
            message = f"sentence {sentence.sent_id}: {error}, or pass cyclic='skip' to leave it out"
            raise sentence.fault(0, message) from None
        rows = Rows(sentence.lines, list(nodes.values()), where)
        records.append(Record(structure, None if where is None else labels, sentence.comments, rows))
    if not records:
        why = (
            "every one has a cycle: remove an edge"
            if skipped
            else "give lines of ten columns and a blank line"
        )
        raise DataError(f"{name}: no sentences; {why}")
    notes = []
    if skipped:
        notes.append(
            f"{name}: {skipped} of {skipped + len(records)} sentences left out: their graph has a cycle"
        )
    if trailing:
        notes.append(
            f"{name}: {len(trailing)} comment line(s) after the last sentence left out: no sentence has them"
        )
    return Dataset(records, notes)


def write(
    records: Sequence[Record],
    label: str | None = None,
    absent: str | None = "O",
    columns: str | Sequence[str] = ("FORM",),
) -> str:
    """The lines that were read, labels replaced; structures of other formats get fresh lines.

    A tree fills HEAD, a DAG fills DEPS with the relation ``dep``, and a sequence neither: read it with
    ``graph="sequence"``.

    Parameters
    ----------
    records : list of Record
    label : str, optional
        Where labels go; by default where they were read from, and UPOS for other formats.
    absent : str or None
        The label that takes the key out.
    columns : str or list of str
        Where the observations of other formats go: one column for strings, several for tuples.

    Returns
    -------
    str
    """
    given = None if label is None else LabelField(named(label, "label"), absent)
    labelled = any(record.labels is not None for record in records)
    lines: list[str] = []
    for index, record in enumerate(records):
        labels = labels_to_write(index, record)
        if isinstance(record.rows, Rows):
            where = given or record.rows.label
            check_rows(index, record, len(record.rows.nodes))
            body = list(record.rows.lines)
            nodes = record.rows.nodes
        else:
            where = given or LabelField(named("UPOS", "label"), absent)
            if labels is None and labelled:
                labels = [None] * len(record.structure)
            body = _fresh_lines(index, record, _observed(columns, where if labelled else None))
            nodes = list(range(len(body)))
        if labels is not None:
            if where is None:
                raise DataError(
                    f"{place(index)}: it has labels now, but was read without; say where they go, such as "
                    "label='MISC:NE'"
                )
            for node, row in enumerate(nodes):
                cells = body[row].split("\t")
                where.put(cells, labels[node], index, node)
                body[row] = "\t".join(cells)
        lines += _comment_lines(index, record)
        lines += [check_line(line, index) for line in body]
        lines.append("")
    return "\n".join(lines) + "\n"


class _CycleError(DataError):
    """The edges of a sentence close a cycle."""


def _observed(columns: str | Sequence[str], label: LabelField | None) -> list[Field]:
    names = [name.strip() for name in columns.split(",")] if isinstance(columns, str) else columns
    if not isinstance(names, list | tuple) or not names:
        raise DataError(f"columns={columns!r}: name at least one column to observe, such as FORM")
    fields = [named(name, "columns") for name in names]
    for number, field in enumerate(fields):
        if any(field.overlaps(other) for other in fields[:number]):
            raise DataError(f"columns: {COLUMNS[field.column]} is named twice; name it once")
        if label is not None and field.overlaps(label.field):
            raise DataError(
                f"columns: {COLUMNS[field.column]} is both observed and the label; leave it out, or name "
                "another label"
            )
    return fields


class _Sentence:
    """The lines of a sentence, the number of the first row, and the cells of all rows."""

    def __init__(self, name: str, start: int, comments: list[str], lines: list[str]) -> None:
        self.name, self.start, self.comments, self.lines = name, start, comments, lines
        self.rows = [line.split("\t") for line in lines]

    def fault(self, row: int, message: str) -> DataError:
        return fault(self.name, self.start + row, message)

    @property
    def sent_id(self) -> str:
        for comment in self.comments:
            if found := re.match(r"#[ \t]*sent_id[ \t]*=[ \t]*(.*)", comment):
                return found[1]
        return "without sent_id"


def _sentences(lines: list[str], name: str) -> Iterator[_Sentence]:
    """The sentences; after the last, one without rows if comments follow it."""
    comments: list[str] = []
    rows: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            if rows:
                message = f"a comment inside a sentence: {short(line)}; move it before the first word"
                raise fault(name, number, message)
            comments.append(line)
        elif line.strip(" \t"):
            if (found := line.count("\t") + 1) != len(COLUMNS):
                raise fault(
                    name,
                    number,
                    f"{found} columns where {len(COLUMNS)} are expected: {short(line)}; separate them by "
                    "single tabs and fill an empty one with _",
                )
            rows.append(line)
        elif rows:
            yield _Sentence(name, number - len(rows), comments, rows)
            comments, rows = [], []
    if rows or comments:
        yield _Sentence(name, len(lines) + 1 - len(rows), comments, rows)


def _nodes(sentence: _Sentence, empty_nodes: bool) -> dict[str, int]:
    """The row of each node by its ID. IDs must count up; ranges and empty nodes stand in their places."""
    nodes: dict[str, int] = {}
    words = empties = covered = range_row = 0
    for row, cells in enumerate(sentence.rows):
        if "" in cells:
            column = COLUMNS[cells.index("")]
            raise sentence.fault(row, f"{column} is empty; write _ where there is no value")
        ident = cells[ID]
        if ident == str(words + 1):
            words, empties = words + 1, 0
            nodes[ident] = row
        elif match := _RANGE.match(ident):
            first, last = int(match[1]), int(match[2])
            if first != words + 1 or last < first or first <= covered:
                raise sentence.fault(
                    row,
                    f"the range {ident} stands before word {words + 1}; put ranges before their first "
                    "word, one after the other",
                )
            covered, range_row = last, row
        elif _EMPTY_NODE.match(ident):
            if ident != (expected := f"{words}.{empties + 1}"):
                raise sentence.fault(
                    row, f"the empty node {ident} stands where {expected} is expected; renumber it"
                )
            empties += 1
            if empty_nodes:
                nodes[ident] = row
        else:
            expected = str(words + 1)
            raise sentence.fault(
                row, f"the ID {short(ident)} stands where {expected} is expected; number words 1, 2, …"
            )
    if covered > words:
        message = f"a range ends at {covered}, but the sentence has {words} words; correct the range"
        raise sentence.fault(range_row, message)
    if not nodes:
        raise sentence.fault(0, "a sentence without words; remove it")
    return nodes


def _values(
    sentence: _Sentence, nodes: dict[str, int], observed: list[Field], label: LabelField | None
) -> tuple[list[str | tuple[str, ...]], list[Label]]:
    """The observations and the labels of the nodes."""
    observations: list[str | tuple[str, ...]] = []
    labels: list[Label] = []
    for row in nodes.values():
        cells = sentence.rows[row]
        try:
            values = tuple(field.get(cells) or EMPTY for field in observed)
            observations.append(values if len(values) > 1 else values[0])
            if label is not None:
                labels.append(label.get(cells))
        except DataError as error:
            raise sentence.fault(row, str(error)) from None
    return observations, labels


def _structure(graph: str, sentence: _Sentence, nodes: dict[str, int], observations: list) -> Structure:
    if graph == "sequence":
        return structures.Sequence(observations)
    if graph == "tree":
        return _acyclic(Tree, observations, [_head(sentence, row, len(nodes)) for row in nodes.values()])
    numbers = {ident: node for node, ident in enumerate(nodes)}
    edges = {
        (parent, child)
        for child, row in enumerate(nodes.values())
        for parent in _parents(sentence, row, numbers)
    }
    return _acyclic(Dag, observations, sorted(edges))


def _acyclic(shape: Callable[..., Structure], observations: list, links: list) -> Structure:
    """A tree or DAG; all but cycles was checked before, where the line was known."""
    try:
        return shape(observations, links)
    except DataError as error:
        raise _CycleError(str(error)) from None


def _head(sentence: _Sentence, row: int, words: int) -> int:
    head = sentence.rows[row][HEAD]
    if not _NUMBER.match(head):
        message = f"HEAD is {short(head)}, not a number; read a file without trees with graph='sequence'"
        raise sentence.fault(row, message)
    if int(head) > words:
        message = f"HEAD is {head}, but the sentence has {words} words; correct it (0 is the root)"
        raise sentence.fault(row, message)
    return int(head) - 1


def _parents(sentence: _Sentence, row: int, numbers: dict[str, int]) -> Iterator[int]:
    deps = sentence.rows[row][DEPS]
    if deps == EMPTY:
        message = "DEPS is _: the file has no enhanced graph here; read it with graph='tree'"
        raise sentence.fault(row, message)
    for item in deps.split("|"):
        head, colon, relation = item.partition(":")
        if not colon or not relation:
            message = f"DEPS holds {short(item)}; write each parent as ID:relation, such as 4:nsubj"
            raise sentence.fault(row, message)
        if head == "0":
            continue
        if head not in numbers:
            message = f"DEPS names the node {short(head)}, which the sentence does not have; correct it"
            raise sentence.fault(row, message)
        yield numbers[head]


def _fresh_lines(index: int, record: Record, fields: list[Field]) -> list[str]:
    """Ten columns a node for a structure that comes from another format."""
    structure = record.structure
    rows = []
    for node, observation in enumerate(structure.observations):
        cells = [str(node + 1)] + [EMPTY] * (len(COLUMNS) - 1)
        if isinstance(structure, Tree):
            cells[HEAD] = str(structure.heads[node] + 1)
            cells[DEPREL] = "root" if structure.heads[node] < 0 else EMPTY
        values = column_values(observation, index, node)
        if len(values) != len(fields):
            raise DataError(
                f"{place(index, node)}: an observation of {len(values)} columns, but {len(fields)} are "
                "named; name as many in columns, such as columns=['FORM', 'XPOS']"
            )
        for field, value in zip(fields, values, strict=True):
            check_value(value, field, index, node)
            field.put(cells, value)
        rows.append(cells)
    if isinstance(structure, Dag):
        parents: list[list[str]] = [[] for _ in rows]
        for parent, child in structure.edges.tolist():
            parents[child].append(f"{parent + 1}:dep")
        for cells, above in zip(rows, parents, strict=True):
            cells[DEPS] = "|".join(above) or "0:root"
    return ["\t".join(cells) for cells in rows]


def _comment_lines(index: int, record: Record) -> list[str]:
    """The comments, each with a ``#``; blank lines, which the comments of CoNLL columns may hold, are
    dropped."""
    comments = [check_line(comment, index) for comment in record.comments if comment.strip(" \t")]
    return [comment if comment.startswith("#") else f"# {comment}" for comment in comments]


def as_trained(
    path: str, given: dict[str, Any], learned: dict[str, Any] | None, labelled: bool
) -> dict[str, Any]:
    """Labels must not replace UPOS unasked where the model was trained on files of another format."""
    if learned is None and "label" not in given:
        raise DataError(
            f"{path}: the model was not trained on conllu files; say where labels stand in this one, such as "
            "--label MISC:NE"
        )
    return (learned or {}) | given
