"""Prodigy's JSON lines: a text, its tokens, and spans with labels.

::

    {"text": "Ana sings.", "tokens": [{"text": "Ana", "start": 0, "end": 3, "id": 0}, …],
     "spans": [{"start": 0, "end": 3, "label": "PER", "token_start": 0, "token_end": 0}]}

(on one line). The tokens are the nodes; a text without them is cut into tokens by the rules of
`fuda.data.text`. Spans label tokens as described in `fuda.formats.spans`. A record without
``spans``, or whose ``answer`` is not ``accept``, has no labels. All other keys are kept, and so is
what is known of a span, as long as tokens have its label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fuda.data.text import Offsets, Text
from fuda.errors import DataError, short
from fuda.files import split_lines
from fuda.formats.dataset import Dataset, Record
from fuda.formats.doccano import entries_in, text_in
from fuda.formats.jsonl import json_line, objects
from fuda.formats.spans import Span, check_spans, labelled_record, spans_of, written_as

EXAMPLE = '{"text": "Ana sings.", "spans": [{"start": 0, "end": 3, "label": "PER"}]}'


@dataclass(frozen=True, slots=True)
class Entries:
    """The tokens of a record as they are in the file, if they are, and the entry of each span."""

    tokens: list[dict[str, Any]] | None
    known: dict[Span, dict[str, Any]]


def read(text: str, name: str, scheme: str | None = "IOB2", tokenizer: str = "words") -> Dataset:
    """Read texts as sequences of labelled tokens.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    scheme : str or None
        The tag scheme of the labels; None gives each token the label of its span.
    tokenizer : {"words", "blanks"}
        How tokens are found where the file has none.

    Returns
    -------
    Dataset
        One record per line that is not blank.

    Examples
    --------
    >>> line = '{"text": "Ana sings.", "spans": [{"start": 0, "end": 3, "label": "PER"}]}'
    >>> read(line, "example").y
    [['B-PER', 'O', 'O']]
    """
    return Dataset(list(records(split_lines(text, name), name, [], scheme, tokenizer)))


def records(
    lines: Iterable[str], name: str, notes: list[str], scheme: str | None, tokenizer: str
) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; there are no notes."""
    return objects(lines, name, lambda content: _record(content, scheme, tokenizer), EXAMPLE)


def write(records: Sequence[Record], after: Record | None = None) -> str:
    """Write a text with its tokens and spans per line.

    Parameters
    ----------
    records : list of Record
        The structures and labels; words of structures without a text are joined by spaces.
    after : Record, optional
        The first record of the file, if `records` are to follow others in it.

    Returns
    -------
    str
        The content of the file.
    """
    lines = []
    for index, record in enumerate(records):
        check_spans(index, record, "prodigy")
        text, spans = spans_of(index, record)
        entries = record.rows if isinstance(record.rows, Entries) else Entries(None, {})
        content: dict[str, Any] = {"text": text.content, "tokens": entries.tokens or _tokens(text)}
        if record.labels is not None:
            firsts = {start: node for node, (start, _) in enumerate(text.offsets)}
            lasts = {end: node for node, (_, end) in enumerate(text.offsets)}
            content["spans"] = [
                entries.known.get((start, end, label))
                or {"start": start, "end": end, "label": label}
                | {"token_start": firsts[start], "token_end": lasts[end]}
                for start, end, label in spans
            ]
        other_keys = {key: value for key, value in record.more.items() if key not in content}
        lines.append(json_line(index, content | other_keys))
    return "".join(lines)


def _record(content: dict[str, Any], scheme: str | None, tokenizer: str) -> Record:
    """The record of an object."""
    text = text_in(content)
    used = {"text", "tokens"}
    spans, entries = None, []
    if "spans" in content and content.get("answer", "accept") == "accept":
        entries = entries_in(content, "spans")
        spans = [_span(entry) for entry in entries]
        used.add("spans")
    tokens = content.get("tokens")
    record = labelled_record(text, spans, scheme, tokenizer, None if tokens is None else _offsets(tokens))
    known = zip(spans or [], entries, strict=True)
    record.rows = Entries(tokens, {written_as(record, span): entry for span, entry in known})
    record.more = {name: value for name, value in content.items() if name not in used}
    return record


def _offsets(tokens: Any) -> list[Offsets]:
    """The offsets of the tokens of a record."""
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise DataError(
            f'tokens are objects such as {{"start": 0, "end": 3}}, not {short(tokens)}; give these'
        )
    return [(token.get("start"), token.get("end")) for token in tokens]


def _span(entry: Any) -> Span:
    """The span of an entry."""
    if not isinstance(entry, dict):
        raise DataError(f"spans contains {short(entry)}; write each as in {EXAMPLE}")
    return entry.get("start", -1), entry.get("end", -1), entry.get("label", "")


def _tokens(text: Text) -> list[dict[str, Any]]:
    """The tokens of a text."""
    return [
        {"text": text.content[start:end], "start": start, "end": end, "id": node}
        | {"ws": text.content[end : end + 1] == " "}
        for node, (start, end) in enumerate(text.offsets)
    ]
