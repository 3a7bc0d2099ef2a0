"""CoNLL-U: ten columns separated by tabs, one word per line, a blank line after each sentence.

======  ==============================================================================
column  content
======  ==============================================================================
ID      1, 2, … for words; ``1-2`` a multiword token; ``5.1`` an empty node after word 5
FORM …  FORM, LEMMA, UPOS, XPOS, FEATS: the word and its properties
HEAD    the ID of its parent in the basic tree, 0 at the root; DEPREL is the relation
DEPS    its parents in the enhanced graph, ``4:nsubj|8.1:dep``
MISC    anything else, ``key=value|key=value``
======  ==============================================================================

A label or an observed column is named by its column, or as ``MISC:KEY`` or ``FEATS:KEY``. ``_`` is
an unknown label (None).

A sentence is read as a tree (HEAD), a DAG (DEPS) or a sequence (the order of the words). Empty
nodes are nodes of the DAG, at their position between the words, but not of trees and sequences.
Multiword tokens are never nodes. Where probabilities of labels are known, that of a word's label
is written as ``MISC:P``. All lines are kept, so that writing reproduces a file that was
read byte for byte, except for the labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuda.checks import check_choice
from fuda.data import structures
from fuda.data.structures import Dag, Structure, Tree
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats import dataset
from fuda.formats.conllu_fields import (
    COLUMNS,
    CONLLU,
    EMPTY,
    Field,
    LabelField,
    Layout,
    parse_field,
)
from fuda.formats.conllu_lines import new_lines, text_comment, text_of
from fuda.formats.cycles import without_cycles
from fuda.formats.dataset import Dataset, Label, Record, check_line

PROBABILITY = Field(COLUMNS.index("MISC"), "P")

_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})\Z")
_EMPTY_NODE = re.compile(r"(0|[1-9][0-9]*)\.([1-9][0-9]*)\Z")
_NUMBER = re.compile(r"[0-9]{1,9}\Z")


@dataclass(slots=True)
class Rows:
    """The lines of one sentence, the indices of those of each node, and the label field."""

    lines: list[str]
    nodes: list[list[int]]
    label: LabelField | None
    layout: Layout = CONLLU


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
        The column or key of the label, such as ``UPOS`` or ``MISC:NE``; None means that there are
        no labels.
    absent : str or None
        The label of a word without the key.
    graph : {"tree", "dag", "sequence"}
        The shape of the structures: the basic tree, the enhanced graph, or the order of the words.
    columns : str or list of str
        The observed columns or keys, as a list or separated by commas. One column gives a string,
        several a tuple, with ``_`` where a key is absent.
    cyclic : {"error", "skip", "break"}
        Enhanced graphs may have cycles: refuse them; leave such sentences out; or read them
        without the edges that close a cycle on a walk from the root (`fuda.formats.cycles`). The
        notes count what was left out. The lines of a file are written unchanged in any case.

    Returns
    -------
    Dataset
        One record per sentence.

    Examples
    --------
    >>> row = "1\\tLima\\tLima\\tPROPN\\t_\\t_\\t0\\troot\\t_\\tNE=U-LOC\\n\\n"
    >>> X, y = read(row, "example", label="MISC:NE")
    >>> X, y
    ([Tree(['Lima'], 1 nodes)], [['U-LOC']])
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
    return layout_records(lines, name, notes, label, absent, graph, columns, cyclic, CONLLU)


def layout_records(
    lines: Iterable[str],
    name: str,
    notes: list[str],
    label: str | None,
    absent: str | None,
    graph: str,
    columns: str | Sequence[str],
    cyclic: str,
    layout: Layout,
) -> Iterator[Record]:
    """Yield the records of a file with the columns of a layout."""
    check_choice("graph", graph, ("tree", "dag", "sequence"))
    check_choice("cyclic", cyclic, ("error", "skip", "break"))
    label_field = None if label is None else LabelField(parse_field(label, "label", layout), absent)
    observed = _observed(columns, label_field, layout)
    total = skipped = trailing = broken = left_out = 0
    for sentence in _sentences(lines, name, layout):
        if not sentence.lines:
            trailing = len(sentence.comments)
            break
        nodes = _nodes(sentence, graph)
        observations, labels = _values(sentence, nodes, observed, label_field)
        total += 1
        edges, roots = _edges(graph, sentence, nodes)
        if cyclic == "break":
            kept_edges = without_cycles(len(nodes), edges, roots)
            broken += len(kept_edges) < len(edges)
            left_out += len(edges) - len(kept_edges)
            edges = kept_edges
        try:
            structure = _structure(graph, observations, edges)
        except _CycleError as error:
            if cyclic == "skip":
                skipped += 1
                continue
            remedy = (
                "pass cyclic='skip' to leave it out, or 'break' to read it without the last edge of a cycle "
                "(on the command line --option cyclic=skip)"
            )
            raise sentence.fault(0, f"sentence {sentence.sent_id}: {error}, or {remedy}") from None
        rows = Rows(sentence.lines, list(nodes.values()), label_field, layout)
        text = text_of(sentence.comments, [sentence.rows[row] for row, *_ in nodes.values()], layout)
        known_labels = None if label_field is None else labels
        yield Record(structure, known_labels, sentence.comments, rows, text)
    if broken:
        notes.append(
            f"{name}: {left_out} edges of {broken} of {total} sentences left out: they close a cycle"
        )
    if skipped == total:
        cause = "every one has a cycle: remove an edge"
        form = f"give lines of {len(layout.names)} columns"
        raise DataError(f"{name}: no sentences; {cause if skipped else form}")
    if skipped:
        notes.append(f"{name}: {skipped} of {total} sentences left out: their graph has a cycle")
    notes += dataset.trailing_note(name, trailing)


def write(
    records: Sequence[Record],
    label: str | None = None,
    absent: str | None = "O",
    columns: str | Sequence[str] = ("FORM",),
    after: Record | None = None,
) -> str:
    """Write the lines that were read with new labels, or new lines for other formats.

    A tree fills HEAD, a DAG fills DEPS with the relation ``dep``, and a sequence neither: read it
    with ``graph="sequence"``.

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
    return layout_text(records, label, absent, columns, after, CONLLU)


def layout_text(
    records: Sequence[Record],
    label: str | None,
    absent: str | None,
    columns: str | Sequence[str],
    after: Record | None,
    layout: Layout,
    usual: str = "UPOS",
) -> str:
    """The text of a file with the columns of a layout; other formats' labels go to `usual`."""
    chosen_field = None if label is None else LabelField(parse_field(label, "label", layout), absent)
    labelled = any(record.labels is not None for record in (after, *records) if record)
    lines: list[str] = []
    for index, record in enumerate(records):
        labels = dataset.labels_to_write(index, record)
        if isinstance(record.rows, Rows) and record.rows.layout == layout:
            dataset.check_rows(index, record, len(record.rows.nodes))
            label_field = chosen_field or record.rows.label
            body, nodes = list(record.rows.lines), record.rows.nodes
        else:
            label_field = chosen_field or LabelField(parse_field(usual, "label", layout), absent)
            if labels is None and labelled:
                labels = [None] * len(record.structure)
            fields = _observed(columns, label_field if labelled else None, layout)
            body, nodes = new_lines(index, record, fields, layout)
            record = replace(record, comments=[*record.comments, *text_comment(record)])
        if labels is not None:
            if label_field is None:
                message = "has labels now, but was read without; name their field, such as label='MISC:NE'"
                raise DataError(f"{place(index)}: {message}")
            for node, row in ((node, row) for node, rows in enumerate(nodes) for row in rows):
                cells = body[row].split("\t")
                label_field.put(cells, labels[node], index, node)
                if record.marginals is not None:
                    PROBABILITY.put(cells, dataset.probability_text(record, node))
                body[row] = "\t".join(cells)
        lines += [*_comment_lines(index, record), *(check_line(line, index) for line in body), ""]
    return "\n".join(lines) + "\n"


def options_for_model(path: str, given: dict, stored: dict | None, labelled: bool) -> dict[str, Any]:
    """Require ``label`` for a model trained on another format, so that UPOS is not replaced."""
    if stored is None and "label" not in given:
        message = "the model was not trained on such files; name the field of the labels, such as"
        raise DataError(f"{path}: {message} --label MISC:NE")
    return (stored or {}) | given


class _CycleError(DataError):
    """The edges of a sentence close a cycle."""


def _observed(columns: str | Sequence[str], label: LabelField | None, layout: Layout) -> list[Field]:
    """The fields of the observed columns."""
    names = [name.strip() for name in columns.split(",")] if isinstance(columns, str) else columns
    if not isinstance(names, list | tuple) or not names:
        raise DataError(f"columns={columns!r}: name at least one column to observe, such as FORM")
    fields = [parse_field(name, "columns", layout) for name in names]
    for number, field in enumerate(fields):
        column = field.title
        if any(field.overlaps(other) for other in fields[:number]):
            raise DataError(f"columns: {column} is named twice; name it once")
        if label is not None and field.overlaps(label.field):
            raise DataError(f"columns: {column} is both observed and the label; leave it out of one")
    return fields


class _Sentence:
    """The lines of a sentence, the line number of the first row, and the cells of all rows."""

    def __init__(self, name: str, start: int, comments: list[str], lines: list[str], layout: Layout) -> None:
        self.name, self.start, self.comments, self.lines = name, start, comments, lines
        self.layout = layout
        self.rows = [line.split("\t") for line in lines]

    def fault(self, row: int, message: str) -> DataError:
        """An error in a row."""
        return fault(self.name, self.start + row, message)

    @property
    def sent_id(self) -> str:
        """The identifier in the comments."""
        match = re.search(r"^#[ \t]*sent_id[ \t]*=[ \t]*(.*)", "\n".join(self.comments), re.MULTILINE)
        return match[1] if match else "without sent_id"


def _sentences(lines: Iterable[str], name: str, layout: Layout) -> Iterator[_Sentence]:
    """Yield the sentences; after the last, one without rows if comments follow it."""
    comments: list[str] = []
    rows: list[str] = []
    number = 0
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            if rows:
                message = f"a comment inside a sentence: {short(line)}; move it before the first word"
                raise fault(name, number, message)
            comments.append(line)
        elif line.strip(" \t"):
            if (count := line.count("\t") + 1) != len(layout.names):
                message = f"{count} columns where {len(layout.names)} are expected: {short(line)}"
                remedy = "separate them by single tabs and write _ for an empty one"
                raise fault(name, number, f"{message}; {remedy}")
            rows.append(line)
        elif rows:
            yield _Sentence(name, number - len(rows), comments, rows, layout)
            comments, rows = [], []
    if rows or comments:
        yield _Sentence(name, number + 1 - len(rows), comments, rows, layout)


def _nodes(sentence: _Sentence, graph: str) -> dict[str, list[int]]:
    """The rows of each node by its ID; checks the order of words, ranges and empty nodes."""
    nodes: dict[str, list[int]] = {}
    words = empties = covered = range_row = 0
    names, where = sentence.layout.names, sentence.layout.names.index("ID")
    for row, cells in enumerate(sentence.rows):
        if "" in cells:
            raise sentence.fault(row, f"{names[cells.index('')]} is empty; write _ where there is no value")
        ident = cells[where]
        if ident == str(words + 1):
            words, empties = words + 1, 0
            nodes[ident] = [row]
        elif sentence.layout.repeats and words and ident == str(words):
            if graph == "tree":
                raise sentence.fault(row, f"word {ident} has several heads; read the file with graph='dag'")
            nodes[ident].append(row)
        elif match := _RANGE.match(ident):
            first, last = int(match[1]), int(match[2])
            if first != words + 1 or last < first or first <= covered:
                message = f"the range {ident} comes before word {words + 1}"
                raise sentence.fault(row, f"{message}; put ranges before their first word, without overlap")
            covered, range_row = last, row
        elif _EMPTY_NODE.match(ident):
            empties += 1
            if ident != (expected := f"{words}.{empties}"):
                message = f"the empty node {ident} was found where {expected} is expected; renumber it"
                raise sentence.fault(row, message)
            if graph == "dag":
                nodes[ident] = [row]
        else:
            message = f"the ID {short(ident)} was found where {words + 1} is expected; number words 1, 2, …"
            raise sentence.fault(row, message)
    if covered > words:
        message = f"a range ends at {covered}, but the sentence has {words} words; correct the range"
        raise sentence.fault(range_row, message)
    if not nodes:
        raise sentence.fault(0, "a sentence without words; remove it")
    return nodes


def _values(
    sentence: _Sentence, nodes: dict[str, list[int]], observed: list[Field], label: LabelField | None
) -> tuple[list[str | tuple[str, ...]], list[Label]]:
    """The observations and the labels of the nodes."""
    observations: list[str | tuple[str, ...]] = []
    labels: list[Label] = []
    for row, *_ in nodes.values():
        cells = sentence.rows[row]
        try:
            values = tuple(field.get(cells) or EMPTY for field in observed)
            observations.append(values if len(values) > 1 else values[0])
            if label is not None:
                labels.append(label.get(cells))
        except DataError as error:
            raise sentence.fault(row, str(error)) from None
    return observations, labels


def _edges(
    graph: str, sentence: _Sentence, nodes: dict[str, list[int]]
) -> tuple[list[tuple[int, int]], list[int]]:
    """The edges of a sentence in the shape `graph`, and the nodes that it calls roots."""
    if graph == "sequence":
        return [], []
    numbers = {ident: node for node, ident in enumerate(nodes)}
    words = sum(ident.isdecimal() for ident in numbers)
    enhanced = graph == "dag" and not sentence.layout.repeats
    edges: set[tuple[int, int]] = set()
    roots = []
    for child, rows in enumerate(nodes.values()):
        parents = set(_parents(sentence, rows[0], numbers) if enhanced else _heads(sentence, rows, words))
        if -1 in parents:
            roots.append(child)
        edges |= {(parent, child) for parent in parents if parent >= 0}
    return sorted(edges), roots


def _structure(graph: str, observations: list, edges: list[tuple[int, int]]) -> Structure:
    """The structure of a sentence, in the shape `graph`."""
    if graph == "sequence":
        return structures.Sequence(observations)
    if graph == "dag":
        return _acyclic(Dag, observations, edges)
    heads = [-1] * len(observations)
    for parent, child in edges:
        heads[child] = parent
    return _acyclic(Tree, observations, heads)


def _acyclic(shape: Callable[..., Structure], observations: list, links: list) -> Structure:
    """A tree or DAG; everything except cycles was checked before, where the line was known."""
    try:
        return shape(observations, links)
    except DataError as error:
        raise _CycleError(str(error)) from None


def _heads(sentence: _Sentence, rows: list[int], words: int) -> Iterator[int]:
    """The parents of a word by the column HEAD, −1 at the root, in a sentence of so many words."""
    column = sentence.layout.index("HEAD")
    for row in rows:
        head = EMPTY if column is None else sentence.rows[row][column]
        if not _NUMBER.match(head):
            message = f"HEAD is {short(head)}, not a number; read a file without trees with graph='sequence'"
            raise sentence.fault(row, message)
        if int(head) > words:
            message = f"HEAD is {head}, but the sentence has {words} words; correct it (0 is the root)"
            raise sentence.fault(row, message)
        yield int(head) - 1


def _parents(sentence: _Sentence, row: int, numbers: dict[str, int]) -> Iterator[int]:
    """The parents of a node in the enhanced graph, −1 at the root."""
    column = sentence.layout.index("DEPS")
    deps = EMPTY if column is None else sentence.rows[row][column]
    if deps == EMPTY:
        message = "DEPS is _: the file has no enhanced graph here; read it with graph='tree'"
        raise sentence.fault(row, message)
    for item in deps.split("|"):
        head, colon, relation = item.partition(":")
        if not colon or not relation:
            message = f"DEPS contains {short(item)}; write each parent as ID:relation, such as 4:nsubj"
            raise sentence.fault(row, message)
        if head in numbers or head == "0":
            yield numbers.get(head, -1)
        else:
            message = f"DEPS names the node {short(head)}, which the sentence does not have; correct it"
            raise sentence.fault(row, message)


def _comment_lines(index: int, record: Record) -> list[str]:
    """The comments, each with a ``#``, without the blank lines among those of CoNLL columns."""
    comments = [check_line(comment, index) for comment in record.comments if comment.strip(" \t")]
    return [comment if comment.startswith("#") else f"# {comment}" for comment in comments]
