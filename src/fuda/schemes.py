"""Tagging schemes: segments of a sequence, encoded as one label per node.

A segment is ``(type, start, end)``: the nodes start..end−1, as in Python slices. Segments do not
overlap. A label is ``O`` outside of all segments, and otherwise a prefix and the type, ``B-PER``.
The prefix is the position of the node in its segment:

======  ======  =====  ======  ====  ============================================================
scheme  single  first  inside  last  and
======  ======  =====  ======  ====  ============================================================
IOB1    I       I      I       I     B at the first node, if a twin ends just before it
IOB2    B       B      I       I
IOE1    I       I      I       I     E at the last node, if a twin begins just after it
IOE2    E       I      I       E
IOBES   S       B      I       E
BILOU   U       B      I       L     also named BILUO
======  ======  =====  ======  ====  ============================================================

*Twins* are two adjacent segments of one type. A label sequence is *well-formed* if it encodes some
set of segments. That depends only on its neighbouring pairs, with an O added before and after:
`legal` returns the allowed pairs, for decoders. In a pair a → b of one type, b *continues* the
segment of a if a is B or I and b is I, E or L. In any other pair, a must be able to end a segment
(or be O) and b to begin one (or be O).

Labels that are not well-formed have no correct interpretation, only conventional ones. `entities`
uses those of seqeval: lenient without a scheme, like the CoNLL evaluation script, and strict with
one. A label without a type, as in ``B I O``, has the type ``_``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from fuda.errors import DataError, place, short

Segment = tuple[str, int, int]
_Parts = tuple[str, str]  # the prefix and the type of a label

OUTSIDE, UNTYPED = "O", "_"


@dataclass(frozen=True)
class _Rules:
    """The prefixes of single, first, inside and last nodes; those that begin and end segments."""

    letters: str
    begin: str
    end: str
    begin_after_twin: str = ""
    end_before_twin: str = ""

    @property
    def prefixes(self) -> str:
        """All prefixes but O."""
        return "".join(sorted({*self.letters, *self.begin_after_twin, *self.end_before_twin}))

    def may_begin(self, before: _Parts, here: _Parts) -> bool:
        """Whether a label may begin a segment."""
        return here[0] in self.begin or (here[0] in self.begin_after_twin and _same_type(before, here))

    def may_end(self, here: _Parts, after: _Parts) -> bool:
        """Whether a label may end a segment."""
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

# In seqeval an E begins an IOE1 segment only after a twin, so it misses some well-formed segments.
_SEQEVAL_RULES = {**_RULES, "IOE1": replace(_RULES["IOE1"], begin="I", begin_after_twin="E")}

SCHEMES = tuple(_RULES)


def scheme_name(name: str) -> str:
    """Return the name of a scheme as this module writes it.

    Parameters
    ----------
    name : str
        In upper or lower case; BIO is IOB2, BIOES is IOBES, BILUO is BILOU.

    Returns
    -------
    str
        One of `SCHEMES`.

    Examples
    --------
    >>> scheme_name("bio")
    'IOB2'
    """
    known = str(name).upper()
    known = {"BIO": "IOB2", "BIOES": "IOBES", "BILUO": "BILOU"}.get(known, known)
    if known not in _RULES:
        raise DataError(f"there is no tagging scheme {short(name)}; the schemes are {', '.join(SCHEMES)}")
    return known


def split_label(label: str) -> tuple[str, str]:
    """Split a label into prefix and type, as seqeval does by default.

    Parameters
    ----------
    label : str
        A label such as ``B-PER``.

    Returns
    -------
    prefix : str
        The first character.
    type : str
        The rest, ``_`` if there is none.

    Examples
    --------
    >>> split_label("B-PER"), split_label("I"), split_label("O")
    (('B', 'PER'), ('I', '_'), ('O', '_'))
    """
    if not isinstance(label, str) or not label:
        raise _label_error(label)
    return label[0], label[1:].split("-", maxsplit=1)[-1] or UNTYPED


def is_segment_label(label: Any) -> bool:
    """Return whether a label looks like part of a segment.

    Parameters
    ----------
    label : Any
        A label.

    Returns
    -------
    bool
        True for a prefix of a scheme, a hyphen and a type.

    Examples
    --------
    >>> is_segment_label("B-PER"), is_segment_label("PER"), is_segment_label("O")
    (True, False, False)
    """
    return isinstance(label, str) and len(label) > 2 and label[0] in "BIESLU" and label[1] == "-"


def entities(labels: Iterable[str], scheme: str | None = None) -> list[Segment]:
    """Return the segments that seqeval finds in labels.

    Parameters
    ----------
    labels : iterable of str
        The labels of the nodes.
    scheme : str, optional
        Default: the lenient interpretation; with a scheme, the strict one.

    Returns
    -------
    list of (type, start, end)
        The segments, in order.

    Examples
    --------
    >>> entities(["B-PER", "I-PER", "O", "I-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4)]
    >>> entities(["B-PER", "I-PER", "O", "I-LOC"], scheme="IOB2")
    [('PER', 0, 2)]
    """
    labels = list(labels)
    check_labels(labels, scheme)
    return _lenient_entities(labels) if scheme is None else _strict_entities(labels, scheme_name(scheme))


def check_labels(labels: Iterable[Any], scheme: str | None = None, structure: int | None = None) -> None:
    """Raise DataError at the first label that `entities` cannot read.

    Parameters
    ----------
    labels : iterable
        The labels of the nodes.
    scheme : str, optional
        The scheme whose prefixes are allowed. Default: all prefixes.
    structure : int, optional
        The index of the structure, for the message.

    Examples
    --------
    >>> check_labels(["B-PER", "L-PER"], "IOB2")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fuda.errors.DataError: node 1: the label 'L-PER' is not of the scheme IOB2, ...
    """
    name = "" if scheme is None else scheme_name(scheme)
    prefixes = _RULES[name].prefixes + OUTSIDE if name else ""
    for node, label in enumerate(labels):
        if not isinstance(label, str) or not label or (name and label[0] not in prefixes):
            raise _label_error(label, f"{place(structure, node)}: ", name)


def encode(segments: Iterable[Segment], length: int, scheme: str) -> list[str]:
    """Return the labels that encode segments.

    Parameters
    ----------
    segments : iterable of (type, start, end)
        Segments that do not overlap. The type ``_`` is written as a bare prefix.
    length : int
        The number of nodes.
    scheme : str
        The scheme to use.

    Returns
    -------
    list of str
        A label per node.

    Examples
    --------
    >>> encode([("PER", 0, 2), ("LOC", 3, 4)], 5, "IOBES")
    ['B-PER', 'E-PER', 'O', 'S-LOC', 'O']
    """
    rules = _RULES[scheme_name(scheme)]
    ordered = _checked_segments(segments, length)
    labels = [OUTSIDE] * length
    single, first, inside, last = tuple(rules.letters)
    starts = {(kind, start) for kind, start, _ in ordered}
    ends = {(kind, end) for kind, _, end in ordered}
    for kind, start, end in ordered:
        prefixes = [single] if end - start == 1 else [first, *[inside] * (end - start - 2), last]
        if rules.begin_after_twin and (kind, start) in ends:
            prefixes[0] = rules.begin_after_twin
        if rules.end_before_twin and (kind, end) in starts:
            prefixes[-1] = rules.end_before_twin
        labels[start:end] = prefixes if kind == UNTYPED else [f"{prefix}-{kind}" for prefix in prefixes]
    return labels


def convert(labels: Iterable[str], from_scheme: str, to_scheme: str) -> list[str]:
    """Convert labels from one scheme to another.

    Parameters
    ----------
    labels : iterable of str
        The labels of the nodes; they must be well-formed, so that nothing is lost.
    from_scheme, to_scheme : str
        The scheme of the labels, and that of the result.

    Returns
    -------
    list of str
        A label per node.

    Examples
    --------
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
                "correct the labels, name another scheme, or repair them by the lenient interpretation: "
                "encode(entities(labels), len(labels), scheme)"
            )
    # The lenient interpretation is correct for well-formed labels, but has E and S for L and U.
    known = {"L": "E", "U": "S"}
    segments = _lenient_entities([f"{known.get(prefix, prefix)}-{kind}" for prefix, kind in parts])
    return encode(segments, len(labels), to_scheme)


def legal(labels: Iterable[str], scheme: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return boolean masks that accept exactly the well-formed sequences over some labels.

    Parameters
    ----------
    labels : iterable of str
        The L labels.
    scheme : str
        The scheme of the labels.

    Returns
    -------
    start : (L,) array of bool
        Whether the label may begin a sequence.
    transition : (L, L) array of bool
        Whether the column may follow the row.
    end : (L,) array of bool
        Whether the label may end a sequence.

    Examples
    --------
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
    """Set to −∞ what a scheme does not allow, so that decoders return well-formed sequences only.

    Parameters
    ----------
    scores : array of shape (N, L)
        The scores of the labels of nodes; changed in place.
    transitions : array of shape (…, L, L)
        The scores of pairs of neighbouring labels.
    classes : iterable of str
        The L labels.
    scheme : str
        The scheme of the labels.
    first, last : array of int
        The nodes that begin and end a sequence.

    Returns
    -------
    array
        The changed transitions, as a copy.

    Examples
    --------
    >>> scores, ends = np.zeros((2, 3)), (np.array([0]), np.array([1]))
    >>> pairs = forbid(scores, np.zeros((3, 3)), ["B-PER", "I-PER", "O"], "IOB2", *ends)
    >>> scores[0].tolist(), pairs[2].tolist()  # at the first node; after O
    ([0.0, -inf, 0.0], [0.0, -inf, 0.0])
    """
    start, pairs, end = _penalties(tuple(classes), scheme)
    scores[first] += start
    scores[last] += end
    return transitions + pairs


@lru_cache(64)
def _penalties(classes: tuple[str, ...], scheme: str) -> tuple[np.ndarray, ...]:
    """The masks of `legal` as scores: 0 if allowed, else −∞."""
    return tuple(np.where(is_legal, 0.0, -np.inf) for is_legal in legal(classes, scheme))


def guess_scheme(label_lists: Iterable[Iterable[Any]]) -> str | None:
    """Return the one scheme in which all label lists are well-formed.

    Parameters
    ----------
    label_lists : iterable of iterables
        The labels of each structure; None for unknown labels, which are ignored.

    Returns
    -------
    str or None
        None if no scheme fits or more than one does, as for labels without any segment.

    Examples
    --------
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

    def fits(rules: _Rules) -> bool:
        written = all(_is_written_in(label, rules) for label in alphabet)
        return written and all(rules.allows(split_label(a), split_label(b)) for a, b in pairs)

    fitting = [name for name, rules in _RULES.items() if fits(rules)]
    return fitting[0] if len(fitting) == 1 else None


def _lenient_entities(labels: list[str]) -> list[Segment]:
    """seqeval's default: prefixes other than B I E S O and the dot separate only unlike types."""
    parts_of = {label: split_label(label) for label in {*labels, OUTSIDE}}
    segments = []
    first = 0
    previous, previous_type = OUTSIDE, ""
    for node, label in enumerate([*labels, OUTSIDE]):
        prefix, kind = parts_of[label]
        changed = kind != previous_type
        if previous in "ES" or (previous in "BI" and prefix in "BSO") or (changed and previous not in "O."):
            segments.append((previous_type, first, node))
        if prefix in "BS" or (prefix in "EI" and previous in "ESO") or (changed and prefix not in "O."):
            first = node
        previous, previous_type = prefix, kind
    return segments


def _strict_entities(labels: list[str], name: str) -> list[Segment]:
    """seqeval's strict mode: labels that continue each other count if both ends are valid."""
    rules = _SEQEVAL_RULES[name]
    parts_of = {label: (label[0], label[1:].strip("-") or UNTYPED) for label in {*labels, OUTSIDE}}
    segments = []
    first: int | None = None
    before = parts_of[OUTSIDE]
    for node, label in enumerate([*labels, OUTSIDE]):
        here = parts_of[label]
        if first is not None and not _continues(before, here):
            # seqeval also drops an IOB1 segment that ends in B before the (malformed) B of
            # another type.
            stray = name == "IOB1" and before[0] == here[0] == "B" and before[1] != here[1]
            if rules.may_end(before, here) and not stray:
                segments.append((before[1], first, node))
            first = None
        if first is None and rules.may_begin(before, here):
            first = node
        before = here
    return segments


def _continues(a: _Parts, b: _Parts) -> bool:
    """Whether b is in the same segment as a, the label before it."""
    return a[0] in "BI" and b[0] in "IEL" and a[1] == b[1]


def _same_type(a: _Parts, b: _Parts) -> bool:
    """Whether two labels are of segments of the same type."""
    return a[1] == b[1] and OUTSIDE not in (a[0], b[0])


def _is_written_in(label: str, rules: _Rules) -> bool:
    """Whether the label is O, or a prefix of the scheme alone or before a hyphen and a type."""
    prefix, hyphen, kind = label.partition("-")
    return label == OUTSIDE or (len(prefix) == 1 and prefix in rules.prefixes and bool(hyphen) == bool(kind))


def _parts(label: Any, name: str, where: str) -> _Parts:
    """The prefix and type of a label of a scheme, checked."""
    if not isinstance(label, str) or not label or not _is_written_in(label, _RULES[name]):
        raise _label_error(label, f"{where}: ", name)
    return split_label(label)


def _label_error(label: Any, where: str = "", name: str = "") -> DataError:
    """The error for a label that is not a non-empty string, or else not of a scheme."""
    if not isinstance(label, str) or not label:
        problem = f"({type(label).__name__}) encodes no segment; give labels such as 'B-PER', 'I-PER' and 'O'"
    else:
        prefixes = ", ".join(f"{prefix}-" for prefix in _RULES[name].prefixes)
        problem = (
            f"is not of the scheme {name}, whose labels are O or begin with {prefixes}; correct the label or "
            "name another scheme"
        )
    return DataError(f"{where}the label {label!r} {problem}")


def _checked_segments(segments: Iterable[Segment], length: int) -> list[Segment]:
    """The segments in order, or an error that names the first that is invalid."""
    ordered = sorted(segments, key=lambda segment: segment[1])
    for kind, start, end in ordered:
        if not isinstance(kind, str) or not kind:
            raise DataError(f"segment {(kind, start, end)}: its type must be a non-empty string")
        if not 0 <= start < end <= length:
            raise DataError(
                f"segment {(kind, start, end)}: give 0 ≤ start < end ≤ {length}, the number of nodes"
            )
    for a, b in pairwise(ordered):
        if b[1] < a[2]:
            raise DataError(f"segments {tuple(a)} and {tuple(b)} overlap at node {b[1]}; give disjoint ones")
    return ordered
