"""JSON lines: one object per line, one structure per object, of every shape and observation.

=============  =====================================================================
key            value
=============  =====================================================================
observations   an array, one observation per node; or under the key ``tokens``
labels         an array of strings, integers or null (unknown); optional; or under
               the key ``ner_tags``, or that of the option `label`
heads          the parents of a tree, −1 at a root; makes the structure a tree
edges          an array of [parent, child] pairs; makes the structure a DAG
text           the text that the nodes are parts of; with
offsets        an array of [start, end] pairs: where each node is in the text
start          where the text begins in its file; 0 if absent
spans          an array of {"start", "end", "label"} objects: the labels as spans of the
               text (`fuda.formats.spans`); written, and compared with the labels when read
comments       an array of strings; optional
=============  =====================================================================

All other keys are kept in ``Record.more`` and written again. A file's own names for observations
and labels are kept, too. ``marginals``, an array of objects from labels to probabilities, is
written if these are known.

Without heads and edges the structure is a sequence. An observation is one of:

=============================  =====================================================
JSON                           Python
=============================  =====================================================
``"word"``                     a string
``7``                          an integer
``["f", "g"]``                 a list of feature names
``[0.5, 1]``                   a numeric vector, read as 64-bit floats
``{"columns": ["w", "NP"]}``   a tuple of columns
``{"set": ["f", "g"]}``        a set of feature names
``{"features": {"f": 0.5}}``   a dict from features to numbers, strings or booleans
=============================  =====================================================

A frozenset is read back as a set. Characters at which some tools break lines, such as U+2028, are
written as escapes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fuda.checks import is_whole
from fuda.data import structures
from fuda.data.observations import Observation, from_json, to_json
from fuda.data.structures import Dag, Structure, Tree
from fuda.data.text import Text, check_offsets
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats.dataset import Dataset, Label, Record, labels_to_write, text_to_write
from fuda.formats.spans import Span, spans_of

NODES = ("observations", "tokens")
LABELS = ("labels", "ner_tags")
ARRAYS = ("heads", "edges", "comments")
_LINE_BREAKERS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of observations and labels in a file, where they are not the usual ones."""

    nodes: str
    labels: str


def read(text: str, name: str, label: str | None = LABELS[0]) -> Dataset:
    """Read structures, each of the shape that its keys determine.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    label : str or None
        The key of the labels; by default ``labels`` or else ``ner_tags``; None means that there
        are no labels.

    Returns
    -------
    Dataset
        One record per line that is not blank.

    Examples
    --------
    >>> line = '{"observations": ["Ana", "sleeps"], "heads": [1, -1], "labels": ["N", null]}'
    >>> X, y = read(line, "example")
    >>> X, y
    ([Tree(['Ana', 'sleeps'], 2 nodes)], [['N', None]])
    """
    return Dataset(list(records(split_lines(text, name), name, [], label)))


def records(lines: Iterable[str], name: str, notes: list[str], label: str | None) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; there are no notes."""
    if label is not None and not isinstance(label, str):
        raise DataError(f"label={label!r}: name the key of the labels")
    example = '{"observations": ["a", "b"], "labels": ["X", "Y"]}'
    return objects(lines, name, lambda content: _record(content, label), example)


def objects(
    lines: Iterable[str], name: str, record: Callable[[dict[str, Any]], Record], example: str
) -> Iterator[Record]:
    """Yield the records of the JSON objects on lines; `example` is one for messages."""
    empty = True
    for number, line in enumerate(lines, 1):
        if not line.strip(" \t"):
            continue
        try:
            content = _parse(line)
            if not isinstance(content, dict):
                raise DataError(f"a record is an object such as {example}, not {short(content)}")
            parsed = record(content)
        except DataError as error:
            raise fault(name, number, str(error)) from None
        empty = False
        yield parsed
    if empty:
        raise DataError(f"{name}: no records; write each as a line, {example}")


def write(records: Sequence[Record], after: Record | None = None) -> str:
    """Write one line per record, without keys that are not needed; those in ``more`` come last.

    Parameters
    ----------
    records : list of Record
        The structures and labels.
    after : Record, optional
        The first record of the file, if `records` are to follow others in it.

    Returns
    -------
    str
        The content of the file.
    """
    return "".join(json_line(index, _content(index, record)) for index, record in enumerate(records))


def json_line(index: int, content: dict[str, Any]) -> str:
    """The line of the object of record `index`, which no tool breaks in two."""
    try:
        line = json.dumps(content, ensure_ascii=False, allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        message = f"a value has no form in JSON ({error}); give strings, finite numbers, lists and dicts"
        raise DataError(f"{place(index)}: {message}") from None
    return _LINE_BREAKERS.sub(lambda match: f"\\u{ord(match[0]):04x}", line) + "\n"


def _content(index: int, record: Record) -> dict[str, Any]:
    """The object of a record."""
    structure = record.structure
    keys = record.rows if isinstance(record.rows, Keys) else Keys(NODES[0], LABELS[0])
    content: dict[str, Any] = {}
    labels = labels_to_write(index, record)
    if record.text is not None:
        text = text_to_write(index, record)
        content["text"] = text.content
        if text.start:
            content["start"] = text.start
        if _are_texts(labels):
            content["spans"] = span_objects(spans_of(index, record)[1])
    content[keys.nodes] = (
        list(structure.observations)
        if set(map(type, structure.observations)) == {str}  # as nearly always
        else [_observation(x, index, node) for node, x in enumerate(structure.observations)]
    )
    if record.text is not None:
        content["offsets"] = [list(pair) for pair in record.text.offsets]
    if labels is not None and set(map(type, labels)) == {str}:
        content[keys.labels] = labels
    elif labels is not None:
        content[keys.labels] = [_json_label(x, place(index, t)) for t, x in enumerate(labels)]
    if isinstance(structure, Tree):
        content["heads"] = structure.heads.tolist()
    elif isinstance(structure, Dag):
        content["edges"] = structure.edges.tolist()
    if record.comments:
        content["comments"] = record.comments
    if record.marginals is not None:
        content["marginals"] = rounded(record.marginals)
    return content | {key: value for key, value in record.more.items() if key not in content}


def _are_texts(labels: list[Label] | None) -> bool:
    """Whether all labels are known and can be those of spans."""
    return labels is not None and all(isinstance(label, str) and label for label in labels)


def span_objects(spans: Iterable[Span]) -> list[dict[str, Any]]:
    """Spans as objects of JSON."""
    return [{"start": start, "end": end, "label": label} for start, end, label in spans]


def rounded(marginals: Iterable[dict[Label, float]]) -> list[dict[str, float]]:
    """Probabilities to six places, by the text of the label."""
    return [{str(label): round(float(p), 6) for label, p in node.items()} for node in marginals]


def _parse(line: str) -> Any:
    """The JSON value of a line."""
    try:
        content = json.loads(line, object_pairs_hook=_unique, parse_constant=_not_a_number)
    except DataError:
        raise
    except RecursionError:
        raise DataError("brackets are nested too deeply for a record; write an object of arrays") from None
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error.msg} at column {error.colno}; write one object per line") from None
    except ValueError as error:  # a number of thousands of digits
        raise DataError(f"not a usable number: {error}") from None
    if _SURROGATE_ESCAPE.search(line):
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            message = r"half of a surrogate pair (\ud800 to \udfff) is not a character; replace it"
            raise DataError(message) from None
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of the pairs, whose keys must differ."""
    content = dict(pairs)
    if len(content) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise DataError(f"the key {short(twice)} is given twice; keep it once")
    return content


def _not_a_number(constant: str) -> NoReturn:
    """Refuse NaN and the infinities, which Python's parser accepts."""
    raise DataError(f"{constant} is not a number in JSON; give finite numbers, or null for an unknown label")


def _record(content: dict[str, Any], label: str | None) -> Record:
    """The record of a JSON object."""
    nodes = next((key for key in NODES if key in content), None)
    if nodes is None:
        raise DataError(_no_observations(content))
    if label == LABELS[0]:
        label = next((key for key in LABELS if key in content), LABELS[0])
    used = {nodes, *([] if label is None else [label]), *ARRAYS} & content.keys()
    for key in used:
        if not isinstance(content[key], list):
            raise DataError(
                f"{key} must be an array, not {short(content[key])}; leave the key out if there are none"
            )
    if nodes == NODES[1] and any(isinstance(token, dict) and "start" in token for token in content[nodes]):
        message = "tokens are objects, as in Prodigy; pass format='prodigy' (on the command line --format"
        raise DataError(f"{message} prodigy)")
    structure = _structure(content, nodes)
    labels: list[Label] | None = None if label is None else content.get(label)
    if labels is not None:
        for node, value in enumerate(labels):
            _json_label(value, place(node=node))
        if len(labels) != len(structure):
            problem = f"{len(labels)} labels for {len(structure)} observations"
            raise DataError(f"{problem}; give one per node, null if it is unknown")
    comments = content.get("comments", [])
    if not all(isinstance(comment, str) for comment in comments):
        raise DataError("comments must be an array of strings; quote each")
    keys = Keys(nodes, label or LABELS[0])
    record = Record(structure, labels, comments, None if keys == Keys(NODES[0], LABELS[0]) else keys)
    if "offsets" in content:
        used |= _add_text(record, content)
    record.more = {key: value for key, value in content.items() if key not in used}
    return record


def _no_observations(content: dict[str, Any]) -> str:
    """What is wrong with an object without observations."""
    message = 'the key "observations" is missing; give an array, one observation per node, or "tokens"'
    if "text" not in content:
        return message
    name = "prodigy" if "spans" in content else "doccano"
    return f"{message}; for texts with spans pass format='{name}' (on the command line --format {name})"


def _add_text(record: Record, content: dict[str, Any]) -> set[str]:
    """Add the text of a record; returns the keys that it was read from."""
    text, offsets, start = content.get("text"), content["offsets"], content.get("start", 0)
    if not isinstance(text, str) or not isinstance(offsets, list) or not is_whole(start, 0):
        problem = "offsets are an array of [start, end] pairs within the string text, start is a number"
        raise DataError(f"{problem} of at least 0; correct them, or leave the key offsets out")
    check_offsets(offsets, len(text))
    if len(offsets) != len(record.structure):
        raise DataError(f"{len(offsets)} offsets for {len(record.structure)} observations; give one per node")
    record.text = Text(text, [(first, last) for first, last in offsets], start)
    if "spans" not in content or not _are_texts(record.labels):
        return {"text", "offsets", "start"}
    if content["spans"] != span_objects(spans_of(0, record)[1]):
        raise DataError("spans and labels do not say the same; correct one of them, or leave out spans")
    return {"text", "offsets", "start", "spans"}


def _structure(content: dict[str, Any], nodes: str) -> Structure:
    """The structure of the shape that the keys determine."""
    if "heads" in content and "edges" in content:
        raise DataError("both heads and edges are given; keep heads for a tree, edges for a DAG")
    observations = []
    for node, value in enumerate(content[nodes]):
        try:
            observations.append(from_json(value))
        except DataError as error:
            raise DataError(f"{place(node=node)}: {error}") from None
    if "heads" in content:
        return Tree(observations, content["heads"])
    if "edges" in content:
        for edge in content["edges"]:
            if not isinstance(edge, list):
                raise DataError(f"edges are [parent, child] pairs, but {short(edge)} was found; write [0, 1]")
        return Dag(observations, content["edges"])
    return structures.Sequence(observations)


def _observation(x: Observation, index: int, node: int) -> Any:
    """The JSON value of an observation."""
    try:
        return to_json(x)
    except DataError as error:
        raise DataError(f"{place(index, node)}: {error}") from None


def _json_label(label: Label, where: str) -> str | int | None:
    """A label as a JSON value that is read back as the same label."""
    value = label.item() if isinstance(label, np.generic) else label
    if not (value is None or isinstance(value, str) or is_whole(value)):
        raise DataError(f"{where}: the label {short(label)} is neither a string, an integer nor null (None)")
    return value
