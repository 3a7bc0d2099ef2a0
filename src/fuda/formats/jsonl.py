"""JSON lines: one object per line, one structure per object, of every shape and observation.

=============  =====================================================================
key            value
=============  =====================================================================
observations   an array, one observation per node
labels         an array of strings, integers or null (unknown); optional
heads          the parents of a tree, −1 at a root; makes the structure a tree
edges          an array of [parent, child] pairs; makes the structure a DAG
comments       an array of strings; optional
=============  =====================================================================

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
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from fuda.checks import is_whole
from fuda.data import structures
from fuda.data.observations import Observation, from_json, to_json
from fuda.data.structures import Dag, Structure, Tree
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats.dataset import Dataset, Label, Record, labels_to_write

KEYS = ("observations", "labels", "heads", "edges", "comments")
_LINE_BREAKERS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def read(text: str, name: str) -> Dataset:
    """Read structures, each of the shape that its keys determine.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.

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
    return Dataset(list(records(split_lines(text, name), name, [])))


def records(lines: Iterable[str], name: str, notes: list[str]) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; there are no notes."""
    empty = True
    for number, line in enumerate(lines, 1):
        if not line.strip(" \t"):
            continue
        try:
            record = _record(_parse(line))
        except DataError as error:
            raise fault(name, number, str(error)) from None
        empty = False
        yield record
    if empty:
        example = '{"observations": ["a", "b"], "labels": ["X", "Y"]}'
        raise DataError(f"{name}: no records; write each as a line, {example}")


def write(records: Sequence[Record], after: Record | None = None) -> str:
    """Write one line per record, without keys that are not needed.

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
    lines = []
    for index, record in enumerate(records):
        structure = record.structure
        observations = [_observation(x, index, node) for node, x in enumerate(structure.observations)]
        content: dict[str, Any] = {"observations": observations}
        labels = labels_to_write(index, record)
        if labels is not None:
            content["labels"] = [_json_label(x, place(index, t)) for t, x in enumerate(labels)]
        if isinstance(structure, Tree):
            content["heads"] = structure.heads.tolist()
        elif isinstance(structure, Dag):
            content["edges"] = structure.edges.tolist()
        if record.comments:
            content["comments"] = record.comments
        line = json.dumps(content, ensure_ascii=False, allow_nan=False)
        lines.append(_LINE_BREAKERS.sub(lambda match: f"\\u{ord(match[0]):04x}", line) + "\n")
    return "".join(lines)


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


def _record(content: Any) -> Record:
    """The record of a JSON value."""
    if not isinstance(content, dict):
        raise DataError(f"""a record is an object such as {{"observations": […]}}, not {short(content)}""")
    if "observations" not in content:
        raise DataError('the key "observations" is missing; give an array, one observation per node')
    for key, value in content.items():
        if key not in KEYS:
            raise DataError(f"the key {short(key)} is not known; the keys are {', '.join(KEYS)}")
        if not isinstance(value, list):
            raise DataError(
                f"{key} must be an array, not {short(value)}; leave the key out if there are none"
            )
    structure = _structure(content)
    labels: list[Label] | None = content.get("labels")
    if labels is not None:
        for node, label in enumerate(labels):
            _json_label(label, place(node=node))
        if len(labels) != len(structure):
            problem = f"{len(labels)} labels for {len(structure)} observations"
            raise DataError(f"{problem}; give one per node, null if it is unknown")
    comments = content.get("comments", [])
    if not all(isinstance(comment, str) for comment in comments):
        raise DataError("comments must be an array of strings; quote each")
    return Record(structure, labels, comments)


def _structure(content: dict[str, Any]) -> Structure:
    """The structure of the shape that the keys determine."""
    if "heads" in content and "edges" in content:
        raise DataError("both heads and edges are given; keep heads for a tree, edges for a DAG")
    observations = []
    for node, value in enumerate(content["observations"]):
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
