"""Tagging schemes: segments of a sequence written as one label a node.

A segment is ``(type, start, end)``: the nodes start..end−1, as Python slices count. Segments do not overlap.
A label is ``O`` outside of every segment, and otherwise a prefix and the type, ``B-PER``. The prefix says
where in its segment the node stands:

======  ======  =====  ======  ====  ==================================================================
scheme  single  first  inside  last  and
======  ======  =====  ======  ====  ==================================================================
IOB1    I       I      I       I     B at the first node, if a twin ends just before it
IOB2    B       B      I       I
IOE1    I       I      I       I     E at the last node, if a twin begins just after it
IOE2    E       I      I       E
IOBES   S       B      I       E
BILOU   U       B      I       L     also named BILUO
======  ======  =====  ======  ====  ==================================================================

*Twins* are two segments of one type that touch. A label sequence is *well-formed* if it encodes some set of
segments. Its neighbouring pairs decide that, with an O added before and after: `legal` gives the pairs, for
decoders. In a pair a → b of one type, b *continues* the segment of a if a is B or I and b is I, E or L. In
any other pair, a must be able to end a segment (or be O) and b to begin one (or be O).

Labels that are not well-formed have no right reading, only agreed ones. `entities` reads them as seqeval
does: leniently without a scheme, like the CoNLL evaluation script, and strictly with one. A label without a
type, as in ``B I O``, has the type ``_``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from fuda.errors import DataError, place

Segment = tuple[str, int, int]
_Parts = tuple[str, str]  # the prefix and the type of a label

OUTSIDE = "O"
UNTYPED = "_"


@dataclass(frozen=True)
class _Rules:
    """The prefixes of single, first, inside and last nodes, and those that may begin and end a segment."""

    letters: str
    begin: str
    end: str
    begin_after_twin: str = ""
    end_before_twin: str = ""

    @property
    def prefixes(self) -> str:
        return "".join(sorted({*self.letters, *self.begin_after_twin, *self.end_before_twin}))

    def may_begin(self, before: _Parts, here: _Parts) -> bool:
        return here[0] in self.begin or (here[0] in self.begin_after_twin and _same_type(before, here))

    def may_end(self, here: _Parts, after: _Parts) -> bool:
        return here[0] in self.end or (here[0] in self.end_before_twin and _same_type(here, after))

    def allows(self, a: _Parts, b: _Parts) -> bool:
        """Whether b may follow a in a well-formed sequence."""
        return _continues(a, b) or (
            (a[0] == OUTSIDE or self.may_end(a, b)) and (b[0] == OUTSIDE or self.may_begin(a, b))
        )


_RULES = {
    "IOB1": _Rules("IIII", begin="I", end="BI", begin_after_twin="B"),
    "IOB2": _Rules("BBII", begin="B", end="BI"),
    "IOE1": _Rules("IIII", begin="EI", end="I", end_before_twin="E"),
    "IOE2": _Rules("EIIE", begin="EI", end="E"),
    "IOBES": _Rules("SBIE", begin="BS", end="ES"),
    "BILOU": _Rules("UBIL", begin="BU", end="LU"),
}

# seqeval lets an E begin an IOE1 segment only after a twin, and so misses some well-formed segments.
_SEQEVAL_RULES = {**_RULES, "IOE1": replace(_RULES["IOE1"], begin="I", begin_after_twin="E")}

SCHEMES = tuple(_RULES)


def scheme_name(name: str) -> str:
    """The scheme's name as this module writes it, in capitals and BILOU for BILUO.

    >>> scheme_name("biluo")
    'BILOU'
    """
    known = str(name).upper().replace("BILUO", "BILOU")
    if known not in _RULES:
        raise DataError(f"there is no tagging scheme {name!r}; the schemes are {', '.join(SCHEMES)}")
    return known


def split_label(label: str) -> tuple[str, str]:
    """The prefix and the type of a label, as seqeval's default reading splits it: first character and rest.

    >>> split_label("B-PER"), split_label("I"), split_label("O")
    (('B', 'PER'), ('I', '_'), ('O', '_'))
    """
    if not isinstance(label, str) or not label:
        raise DataError(_no_segment_label(label))
    return label[0], label[1:].split("-", maxsplit=1)[-1] or UNTYPED


def entities(labels: Iterable[str], scheme: str | None = None) -> list[Segment]:
    """The segments that seqeval reads from the labels, in order: by default, or in strict mode with a scheme.

    >>> entities(["B-PER", "I-PER", "O", "I-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4)]
    >>> entities(["B-PER", "I-PER", "O", "I-LOC"], scheme="IOB2")
    [('PER', 0, 2)]
    """
    labels = list(labels)
    check_labels(labels, scheme)
    return _lenient_entities(labels) if scheme is None else _strict_entities(labels, scheme_name(scheme))


def check_labels(labels: Iterable[Any], scheme: str | None = None, structure: int | None = None) -> None:
    """Raise a DataError at the first label that `entities` cannot read, naming the structure and the node."""
    prefixes = None if scheme is None else _RULES[scheme_name(scheme)].prefixes + OUTSIDE
    for node, label in enumerate(labels):
        if not isinstance(label, str) or not label:
            raise DataError(f"{place(structure, node)}: {_no_segment_label(label)}")
        if prefixes is not None and label[0] not in prefixes:
            raise DataError(f"{place(structure, node)}: {_foreign_label(label, scheme)}")


def encode(segments: Iterable[Segment], length: int, scheme: str) -> list[str]:
    """The labels of `length` nodes that say these segments. The type ``_`` is written as a bare prefix.

    >>> encode([("PER", 0, 2), ("LOC", 3, 4)], 5, "IOBES")
    ['B-PER', 'E-PER', 'O', 'S-LOC', 'O']
    """
    rules = _RULES[scheme_name(scheme)]
    ordered = _checked_segments(segments, length)
    labels = [OUTSIDE] * length
    nothing: Segment = (OUTSIDE, -1, -1)
    for before, (kind, start, end), after in zip(
        [nothing, *ordered], ordered, [*ordered[1:], nothing], strict=False
    ):
        single, first, inside, last = tuple(rules.letters)
        prefixes = [single] if end - start == 1 else [first, *[inside] * (end - start - 2), last]
        if rules.begin_after_twin and before[0] == kind and before[2] == start:
            prefixes[0] = rules.begin_after_twin
        if rules.end_before_twin and after[0] == kind and after[1] == end:
            prefixes[-1] = rules.end_before_twin
        labels[start:end] = prefixes if kind == UNTYPED else [f"{prefix}-{kind}" for prefix in prefixes]
    return labels


def convert(labels: Iterable[str], from_scheme: str, to_scheme: str) -> list[str]:
    """Labels of one scheme written in another. They must be well-formed, so that nothing is lost.

    >>> convert(["I-PER", "I-PER", "B-PER", "O"], "IOB1", "BILOU")
    ['B-PER', 'L-PER', 'U-PER', 'O']
    """
    labels = list(labels)
    name = scheme_name(from_scheme)
    rules = _RULES[name]
    parts = [_parts(label, name, place(node=node)) for node, label in enumerate(labels)]
    outside = (OUTSIDE, UNTYPED)
    for node, (a, b) in enumerate(pairwise([outside, *parts, outside])):
        if not rules.allows(a, b):
            before = repr(labels[node - 1]) if node else "the beginning"
            here = repr(labels[node]) if node < len(labels) else "the end"
            raise DataError(
                f"{place(node=min(node, len(labels) - 1))}: {here} cannot follow {before} in {name}; "
                "correct the labels or name another scheme, or repair them by the lenient reading: "
                "encode(entities(labels), len(labels), scheme)"
            )
    # The lenient reading is right for well-formed labels of any scheme, but knows L and U only as E and S.
    known = {"L": "E", "U": "S"}
    segments = _lenient_entities([f"{known.get(prefix, prefix)}-{kind}" for prefix, kind in parts])
    return encode(segments, len(labels), to_scheme)


def legal(labels: Iterable[str], scheme: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boolean masks (start, transition, end) that accept exactly the well-formed sequences over these labels.

    start (L,): may begin a sequence; transition (L, L): the column may follow the row; end (L,): may end one.

    >>> start, transition, end = legal(["O", "B-PER", "I-PER"], "IOB2")
    >>> start.tolist(), end.tolist()
    ([True, True, False], [True, True, True])
    >>> transition[0].tolist()
    [True, True, False]
    """
    name = scheme_name(scheme)
    rules = _RULES[name]
    parts = [_parts(label, name, f"label {i} of the label set") for i, label in enumerate(labels)]
    outside = (OUTSIDE, UNTYPED)
    start = np.array([rules.allows(outside, b) for b in parts], dtype=bool)
    transition = np.array([[rules.allows(a, b) for b in parts] for a in parts], dtype=bool)
    end = np.array([rules.allows(a, outside) for a in parts], dtype=bool)
    return start, transition.reshape(len(parts), len(parts)), end


def forbid(
    scores: np.ndarray,
    transitions: np.ndarray,
    classes: Iterable[str],
    scheme: str,
    first: np.ndarray,
    last: np.ndarray,
) -> np.ndarray:
    """Make −∞ what a scheme does not allow, so that decoders find well-formed sequences only.

    Parameters
    ----------
    scores : array of shape (N, L)
        Of the labels of nodes; changed in place.
    transitions : array of shape (…, L, L)
        Of pairs of neighbouring labels.
    classes : iterable of str
        The L labels.
    scheme : str
    first, last : array of int
        The nodes that begin and end a sequence.

    Returns
    -------
    array
        The transitions, as a copy.
    """
    start, pairs, end = _penalties(tuple(classes), scheme)
    scores[first] += start
    scores[last] += end
    return transitions + pairs


@lru_cache(64)
def _penalties(classes: tuple[str, ...], scheme: str) -> tuple[np.ndarray, ...]:
    """What `legal` allows as scores: 0, or −∞ where something is not allowed."""
    return tuple(np.where(allowed, 0.0, -np.inf) for allowed in legal(classes, scheme))


def guess_scheme(label_lists: Iterable[Iterable[Any]]) -> str | None:
    """The one scheme in which all label lists are well-formed; None if there is none, or more than one.

    Labels not known (None) are no evidence. Labels without any segment fit every scheme, so they give None.

    >>> guess_scheme([["B-PER", "I-PER", "O"], ["O", "B-LOC"]])
    'IOB2'
    >>> guess_scheme([["I-PER", "I-PER", "O"]]) is None  # IOB1 or IOE1
    True
    """
    lists = [list(labels) for labels in label_lists]
    known = [label for labels in lists for label in labels if label is not None]
    if not all(isinstance(label, str) for label in known):
        return None
    alphabet = set(known)
    pairs = {pair for labels in lists for pair in pairwise([OUTSIDE, *labels, OUTSIDE]) if None not in pair}
    fitting = [
        name
        for name, rules in _RULES.items()
        if all(_is_written_in(label, rules) for label in alphabet)
        and all(rules.allows(split_label(a), split_label(b)) for a, b in pairs)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _lenient_entities(labels: list[str]) -> list[Segment]:
    """seqeval's default reading. Prefixes other than B I E S O and the dot cut only where types change."""
    parts_of = {label: split_label(label) for label in {*labels, OUTSIDE}}
    found = []
    first = 0
    previous, previous_type = OUTSIDE, ""
    for node, label in enumerate([*labels, OUTSIDE]):
        prefix, kind = parts_of[label]
        changed = kind != previous_type
        if previous in "ES" or (previous in "BI" and prefix in "BSO") or (changed and previous not in "O."):
            found.append((previous_type, first, node))
        if prefix in "BS" or (prefix in "EI" and previous in "ESO") or (changed and prefix not in "O."):
            first = node
        previous, previous_type = prefix, kind
    return found


def _strict_entities(labels: list[str], name: str) -> list[Segment]:
    """seqeval's strict reading: a run of labels that continue each other counts if both ends are right."""
    rules = _SEQEVAL_RULES[name]
    parts_of = {label: (label[0], label[1:].strip("-") or UNTYPED) for label in {*labels, OUTSIDE}}
    found = []
    first: int | None = None
    before = parts_of[OUTSIDE]
    for node, label in enumerate([*labels, OUTSIDE]):
        here = parts_of[label]
        if first is not None and not _continues(before, here):
            # seqeval also drops an IOB1 segment that ends in B just before the (malformed) B of another type.
            stray = name == "IOB1" and before[0] == here[0] == "B" and before[1] != here[1]
            if rules.may_end(before, here) and not stray:
                found.append((before[1], first, node))
            first = None
        if first is None and rules.may_begin(before, here):
            first = node
        before = here
    return found


def _continues(a: _Parts, b: _Parts) -> bool:
    """Whether b stands in the same segment as a, the label before it."""
    return a[0] in "BI" and b[0] in "IEL" and a[1] == b[1]


def _same_type(a: _Parts, b: _Parts) -> bool:
    return a[1] == b[1] and OUTSIDE not in (a[0], b[0])


def _is_written_in(label: str, rules: _Rules) -> bool:
    """Whether the label is O, or a prefix of the scheme alone or before a hyphen and a type."""
    prefix, hyphen, kind = label.partition("-")
    return label == OUTSIDE or (len(prefix) == 1 and prefix in rules.prefixes and bool(hyphen) == bool(kind))


def _parts(label: Any, name: str, where: str) -> _Parts:
    if not isinstance(label, str) or not label:
        raise DataError(f"{where}: {_no_segment_label(label)}")
    if not _is_written_in(label, _RULES[name]):
        raise DataError(f"{where}: {_foreign_label(label, name)}")
    return split_label(label)


def _no_segment_label(label: object) -> str:
    return (
        f"the label {label!r} ({type(label).__name__}) says no segment; "
        "segments are read from labels such as 'B-PER', 'I-PER' and 'O'"
    )


def _foreign_label(label: str, scheme: str | None) -> str:
    name = scheme_name(str(scheme))
    shown = ", ".join(f"{prefix}-" for prefix in _RULES[name].prefixes)
    return (
        f"the label {label!r} is not of the scheme {name}, whose labels are O or begin with {shown}; "
        "correct the label or name another scheme"
    )


def _checked_segments(segments: Iterable[Segment], length: int) -> list[Segment]:
    """The segments in order, or an error that names the first that is bad."""
    given = list(segments)
    for kind, start, end in given:
        if not isinstance(kind, str) or not kind:
            raise DataError(f"segment {(kind, start, end)}: a type is a string that is not empty")
        if not 0 <= start < end <= length:
            raise DataError(
                f"segment {(kind, start, end)}: it goes from start to end − 1 and has at least one node, "
                f"so 0 ≤ start < end ≤ {length} for {length} nodes"
            )
    ordered = sorted(given, key=lambda segment: segment[1])
    for a, b in pairwise(ordered):
        if b[1] < a[2]:
            raise DataError(
                f"segments {tuple(a)} and {tuple(b)} overlap at node {b[1]}; a node is in one segment at most"
            )
    return ordered
