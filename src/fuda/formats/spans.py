"""Character spans and labels of tokens: what formats of annotated text have in common.

A span is ``(start, end, label)``: the characters start..end−1 of a text. Spans do not overlap.

- *Labels to spans*: labels of a tag scheme (``B-PER``, ``I-PER``, ``O``, or ``B``, ``I``, ``O``
  without types) are segments, read leniently as `fuda.schemes.entities` does, and each is a
  span. Of other labels, such as ``NOUN``, every node is a span by itself. ``O`` and unknown
  labels have none.
- *Spans to labels*: tokens in a span are labelled by a tag scheme, IOB2 by default; with
  ``scheme=None`` each gets the label of its span. Tokens in no span have the label ``O``. What is
  between tokens, as white space is, does not count. A token in which a span begins or ends is cut
  in two there, so that no span is lost; where a file gives the tokens itself, that is an error.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import itemgetter

from fuda import schemes
from fuda.checks import is_whole
from fuda.data import structures
from fuda.data.text import Offsets, Text, split_at, tokenize
from fuda.errors import DataError, place, short
from fuda.formats.dataset import Label, Record, labels_to_write, text_to_write

Span = tuple[int, int, str]

_SEGMENT = re.compile(r"[BIESLU]-.|[BI]\Z", re.DOTALL)
_AS_LENIENT = {"L": "E", "U": "S"}


def spans_of(index: int, record: Record) -> tuple[Text, list[Span]]:
    """The text of record `index` and its spans; labels that are not texts are refused."""
    text, labels = text_to_write(index, record), labels_to_write(index, record) or []
    for node, label in enumerate(labels):
        if label is not None and (not isinstance(label, str) or not label):
            message = f"the label {short(label)} is not a text, so that no span can have it; write jsonl"
            raise DataError(f"{place(index, node)}: {message}")
    spans = [
        (text.offsets[first][0], text.offsets[last - 1][1], kind) for kind, first, last in segments(labels)
    ]
    return text, spans


def segments(labels: Sequence[Label]) -> list[schemes.Segment]:
    """The segments of labels, by the rules in the docstring of this module.

    >>> segments(["B-PER", "I-PER", "O"]), segments(["DET", "NOUN"])
    ([('PER', 0, 2)], [('DET', 0, 1), ('NOUN', 1, 2)])
    """
    texts = [schemes.OUTSIDE if label is None else str(label) for label in labels]
    segment_labels = set(texts) - {schemes.OUTSIDE}
    if all(map(_SEGMENT.match, segment_labels)) and segment_labels != {"I"}:
        return schemes.entities([_AS_LENIENT.get(label[0], label[0]) + label[1:] for label in texts])
    return [(label, node, node + 1) for node, label in enumerate(texts) if label != schemes.OUTSIDE]


def check_spans(index: int, record: Record, format: str) -> None:
    """Refuse what spans cannot hold: edges, and labels that are not known beside such that are.

    Without a span the latter would be read as O.
    """
    if record.structure.shape != "sequence":
        raise DataError(
            f"{place(index)}: a {record.structure.shape} in {format} would lose its edges; write jsonl"
        )
    labels = labels_to_write(index, record) or []
    if None in labels and any(label is not None for label in labels):
        message = f"its label is not known, but {format} has only spans, so that it would be read as O"
        raise DataError(f"{place(index, labels.index(None))}: {message}; write jsonl")


def labelled_record(
    content: str,
    spans: Iterable[Span] | None,
    scheme: str | None,
    tokenizer: str = "words",
    tokens: Sequence[Offsets] | None = None,
    start: int = 0,
) -> Record:
    """The sequence of the tokens of a text, with the labels of its spans if there are any.

    `tokens` are those that a file gives; by default the tokenizer finds them. `start` is where the
    text begins in its file.
    """
    checked_spans = None if spans is None else [_checked(content, span) for span in spans]
    if tokens is None:
        edges = (edge for first, last, _ in checked_spans or () for edge in (first, last))
        offsets = split_at(tokenize(content, tokenizer), edges)
    else:
        offsets = list(tokens)
    if not offsets:
        raise DataError(f"the text {short(content)} has no tokens; remove the record")
    text = Text(content, offsets, start)
    sequence = structures.Sequence([content[first:last] for first, last in offsets])
    labels = None if checked_spans is None else _labels(checked_spans, offsets, scheme)
    return Record(sequence, labels, text=text)


def written_as(record: Record, span: Span) -> Span:
    """The span from the first to the last token in a span, as it is written."""
    assert record.text is not None
    first, last = _nodes(record.text.offsets, span)
    return record.text.offsets[first][0], record.text.offsets[last - 1][1], span[2]


def _checked(content: str, span: Span) -> Span:
    """The span, if it is one of the text."""
    start, end, label = span
    if not is_whole(start) or not is_whole(end) or not 0 <= start < end <= len(content):
        problem = (
            f"the span {short(start)} to {short(end)} is not within the text of {len(content)} characters"
        )
        raise DataError(f"{problem}; give start and end, counted from 0")
    if not isinstance(label, str) or not label:
        raise DataError(f"the span {start} to {end} has the label {short(label)}; give a text")
    return span


def _nodes(offsets: list[Offsets], span: Span) -> tuple[int, int]:
    """The nodes in a span, as a slice; it must not begin or end within a node."""
    start, end, label = span
    first = bisect_left(offsets, start, key=itemgetter(0))
    last = bisect_right(offsets, end, key=itemgetter(1))
    description = f"the span {start} to {end} ({short(label)})"
    if (first and offsets[first - 1][1] > start) or (last < len(offsets) and offsets[last][0] < end):
        raise DataError(f"{description} does not begin and end with tokens; correct the span or the tokens")
    if first >= last:
        raise DataError(f"{description} contains no token; remove it")
    return first, last


def _labels(spans: list[Span], offsets: list[Offsets], scheme: str | None) -> list[Label]:
    """The labels of tokens, none of which a span cuts."""
    placed = sorted((*_nodes(offsets, span), span) for span in spans)
    for (_, last, a), (first, _, b) in pairwise(placed):
        if first < last:
            problem = (
                f"the spans {a[0]} to {a[1]} ({short(a[2])}) and {b[0]} to {b[1]} ({short(b[2])}) overlap"
            )
            raise DataError(f"{problem}, but a token has one label; remove one of them")
    if scheme is not None:
        label_spans = [(label, first, last) for first, last, (_, _, label) in placed]
        return list(schemes.encode(label_spans, len(offsets), scheme))
    labels: list[Label] = [schemes.OUTSIDE] * len(offsets)
    for first, last, (_, _, label) in placed:
        labels[first:last] = [label] * (last - first)
    return labels
