"""doccano's JSON lines: a text and the labels of spans of its characters.

::

    {"id": 1, "text": "Ana Díaz sings.", "label": [[0, 8, "PER"]]}
    {"text": "Bo!", "entities": [{"id": 7, "label": "PER", "start_offset": 0, "end_offset": 2}]}

Each text is one sequence, however many lines or sentences it has. It is cut into tokens, and these
are labelled as described in `fuda.formats.spans`. A record without a key for spans has no labels;
one with an empty array has only O. All other keys are kept, and so is what is known of a span
(such as its id), as long as a token has its label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fuda.errors import DataError, short
from fuda.files import split_lines
from fuda.formats.dataset import Dataset, Record
from fuda.formats.jsonl import json_line, objects
from fuda.formats.spans import Span, check_spans, labelled_record, spans_of, written_as

KEYS = ("label", "labels", "entities")
EXAMPLE = '{"text": "Ana sings.", "label": [[0, 3, "PER"]]}'


@dataclass(frozen=True, slots=True)
class Entries:
    """The key of the spans of a record, and the entry of each span."""

    key: str
    known: dict[Span, Any]


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
        How tokens are found: by the rules of `fuda.data.text`, or between blanks.

    Returns
    -------
    Dataset
        One record per line that is not blank.

    Examples
    --------
    >>> read('{"text": "Ana sings.", "label": [[0, 3, "PER"]]}', "example").y
    [['B-PER', 'O', 'O']]
    """
    return Dataset(list(records(split_lines(text, name), name, [], scheme, tokenizer)))


def records(
    lines: Iterable[str], name: str, notes: list[str], scheme: str | None, tokenizer: str
) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; there are no notes."""
    return objects(lines, name, lambda content: _record(content, scheme, tokenizer), EXAMPLE)


def write(records: Sequence[Record], after: Record | None = None) -> str:
    """Write a text with its spans per line.

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
        check_spans(index, record, "doccano")
        text, spans = spans_of(index, record)
        entries = record.rows if isinstance(record.rows, Entries) else Entries(KEYS[0], {})
        content: dict[str, Any] = {"text": text.content}
        if record.labels is not None:
            content[entries.key] = [_entry(span, entries, content) for span in spans]
            if entries.key == "entities":
                _number(content["entities"])
        other_keys = {key: value for key, value in record.more.items() if key not in content}
        lines.append(json_line(index, content | other_keys))
    return "".join(lines)


def text_in(content: dict[str, Any]) -> str:
    """The text of a record."""
    text = content.get("text")
    if not isinstance(text, str):
        raise DataError(f'the key "text" has the value {short(text)}; give a text, as in {EXAMPLE}')
    return text


def entries_in(content: dict[str, Any], key: str) -> list[Any]:
    """The spans of a record, as they are in the file."""
    if not isinstance(content[key], list):
        raise DataError(f"{key} must be an array of spans, not {short(content[key])}; write [] for none")
    entries: list[Any] = content[key]
    return entries


def _record(content: dict[str, Any], scheme: str | None, tokenizer: str) -> Record:
    """The record of an object."""
    text = text_in(content)
    key = next((key for key in KEYS if key in content), None)
    spans = None
    if key is not None:
        entries = entries_in(content, key)
        spans = [_span(entry, key) for entry in entries]
    record = labelled_record(text, spans, scheme, tokenizer)
    if key is not None and spans is not None:
        known = zip(spans, entries, strict=True)
        record.rows = Entries(key, {written_as(record, span): entry for span, entry in known})
    record.more = {name: value for name, value in content.items() if name not in ("text", key)}
    return record


def _span(entry: Any, key: str) -> Span:
    """The span of an entry."""
    if key == "entities" and isinstance(entry, dict):
        return entry.get("start_offset", -1), entry.get("end_offset", -1), entry.get("label", "")
    if key != "entities" and isinstance(entry, list) and len(entry) == 3:
        return entry[0], entry[1], entry[2]
    form = '{"start_offset": 0, "end_offset": 3, "label": "PER"}' if key == "entities" else '[0, 3, "PER"]'
    raise DataError(f"{key} contains {short(entry)}; write each span as {form}")


def _entry(span: Span, entries: Entries, content: dict[str, Any]) -> Any:
    """The entry of a span: that of the file, or a new one."""
    start, end, label = span
    if span in entries.known:
        return entries.known[span]
    if entries.key == "entities":
        return {"label": label, "start_offset": start, "end_offset": end}
    return [start, end, label]


def _number(entities: list[dict[str, Any]]) -> None:
    """Give new entities numbers that no other has."""
    free = max((x["id"] for x in entities if isinstance(x.get("id"), int)), default=-1) + 1
    for place, entity in enumerate(entities):
        if "id" not in entity:
            entities[place] = {"id": free, **entity}
            free += 1
