"""Labels as segments: kinds, and the place of a node in its segment.

Under a tag scheme a segment has a *kind*, the type in its labels, and its labels say where it
begins, where it ends, or both. A node outside of all segments is a kind of its own, ``O``. Without
a scheme every label is a kind, and its runs are its segments.

==============  ==========================  ==========================
scheme          the first node is shown by  the last node is shown by
==============  ==========================  ==========================
IOB2            B, not I
IOE2                                        E, not I
IOBES, BILOU    B and S (U), not I and E    E (L) and S, not I and B
==============  ==========================  ==========================

In IOB1 and IOE1 a label depends on the segment next to it; they are converted by
`fuda.schemes.convert`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.errors import DataError, short
from fuda.runtime.compiled import compiled
from fuda.schemes import OUTSIDE, SCHEMES, guess_scheme, legal, scheme_name, split_label

Array = np.ndarray
# The prefix of a node that is neither first nor last of its segment, last, first, and both.
PREFIXES = {"IOB2": "IIBB", "IOE2": "IEIE", "IOBES": "IEBS", "BILOU": "ILBU"}
NAMES = (None, *SCHEMES)  # model files contain the number of the scheme in this list
# Where the length is not set, it is taken from the data and is at most this.
LENGTH = 30
NEW, JOINED = 1, 2  # bits of boundary flags: what a boundary must not be


def check_scheme(scheme: Any) -> None:
    """Raise DataError where a parameter is not a scheme whose labels say where segments are."""
    if scheme is not None and scheme_name(scheme) not in PREFIXES:
        raise DataError(
            f"scheme={short(scheme)}: a label of {scheme_name(scheme)} depends on the segment next to it; "
            "convert the labels to IOB2 by fuda.schemes.convert, and give scheme='IOB2'"
        )


def scheme_of(scheme: Any, classes: list[Any], labels: Array, offsets: Array) -> str | None:
    """The scheme of labels: the one given, or the only one that fits them all; None for runs."""
    if scheme is not None:
        return scheme_name(scheme)
    names = np.array([*classes, None], dtype=object)[labels].tolist()
    guessed = guess_scheme(names[a:b] for a, b in pairwise(offsets.tolist()))
    return guessed if guessed in PREFIXES else None


class SegmentLabels:
    """Between labels and the kinds of segments.

    Parameters
    ----------
    classes : list
        The labels.
    scheme : str or None
        A key of `PREFIXES`; None where runs of a label are its segments.

    Attributes
    ----------
    kinds : list
        The kinds of segments, sorted.
    kind_of : (L,) array of int
        The kind of each label.
    first, last : (L,) arrays of int8
        Whether a label says that its node is the first, or the last, of a segment: 1 yes, 0 no,
        −1 where it does not say.
    label_of : (K, 4) array of int
        The label of nodes that are neither first nor last, last, first, and both; −1 if there is
        none.
    twins : (K,) array of bool
        Whether two segments of a kind may be next to each other.
    joins, singles : (K,) arrays of bool
        Whether a segment may be of any length, and of one node, by the labels that there are.
    """

    def __init__(self, classes: list[Any], scheme: str | None) -> None:
        self.classes, self.scheme = list(classes), scheme
        if scheme is not None:
            legal(self.classes, scheme)  # checks every label
        parts = [self._parts(label) for label in self.classes]
        self.kinds = sorted({kind for kind, _ in parts})
        number = {kind: k for k, kind in enumerate(self.kinds)}
        self.kind_of = np.array([number[kind] for kind, _ in parts], dtype=np.int64)
        prefixes = PREFIXES.get(scheme or "", "")
        roles = [
            [k for k, known in enumerate(prefixes) if known == prefix] or [0, 1, 2, 3] for _, prefix in parts
        ]
        self.first = np.array([_agreed([k & 2 for k in label_roles]) for label_roles in roles], dtype=np.int8)
        self.last = np.array([_agreed([k & 1 for k in label_roles]) for label_roles in roles], dtype=np.int8)
        self.label_of = np.full((len(self.kinds), 4), -1, dtype=np.int64)
        for label, label_roles in enumerate(roles):
            self.label_of[self.kind_of[label], label_roles] = label
        self.twins = ~self.outside if scheme is not None else np.zeros(len(self.kinds), dtype=bool)
        self.joins, self.singles = self.label_of[:, 0] >= 0, self.label_of[:, 3] >= 0

    def _parts(self, label: Any) -> tuple[Any, str]:
        """The kind of a label, and its prefix."""
        if self.scheme is None:
            return label, ""
        if label == OUTSIDE:
            return (OUTSIDE, ""), ""
        prefix, kind = split_label(label)
        return (kind, "-"), prefix

    @property
    def names(self) -> list[Any]:
        """The kinds as they are shown: types, O, or labels."""
        return self.kinds if self.scheme is None else [kind for kind, _ in self.kinds]

    @property
    def outside(self) -> Array:
        """(K,) whether a kind is that of nodes outside of all segments."""
        return np.array([kind in (OUTSIDE, (OUTSIDE, "")) for kind in self.kinds])

    def limits(self, labels: Array, offsets: Array) -> tuple[Array, Array]:
        """Which segmentations fit known labels: arguments of `fuda.inference.segments.Limits`.

        Parameters
        ----------
        labels : (N,) array of int
            Label numbers, −1 where not known.
        offsets : (n + 1,) array of int
            The bounds of the sequences.

        Returns
        -------
        ahead, boundary_flags : arrays
            The longest chunk of each kind that may start at a node, and what the boundary before
            it must not be.
        """
        kind_of_node, first, last = self._kinds_and_ends(labels)
        possible = (kind_of_node[:, None] == np.arange(len(self.kinds))) | (kind_of_node < 0)[:, None]
        possible[offsets[1:] - 1] &= (last[offsets[1:] - 1] != 0)[:, None]
        before = np.append(-1, last[:-1])
        before[offsets[:-1]] = -1
        boundary_flags = NEW * ((first == 0) | (before == 0)) + JOINED * ((first == 1) | (before == 1))
        boundary_flags = boundary_flags.astype(np.uint8)
        ahead = np.empty(possible.shape, dtype=np.int32)
        _fill_ahead(offsets, possible, boundary_flags, ahead)
        return ahead, boundary_flags

    def segments(self, labels: Array, offsets: Array) -> Array:
        """(segments, 3) kind, first node and end of the segments in label numbers.

        A segment ends where a label is not known.
        """
        kinds, first, last = self._kinds_and_ends(labels)
        starts = np.append(True, (kinds[1:] != kinds[:-1]) | (first[1:] == 1) | (last[:-1] == 1))
        starts[offsets[:-1]] = True
        bounds = np.flatnonzero(np.append(starts, True))
        segments = np.column_stack([kinds[bounds[:-1]], bounds[:-1], bounds[1:]])
        return segments[segments[:, 0] >= 0]

    def longest(self, labels: Array, offsets: Array, most: int | None) -> Array:
        """(K,) D: the longest segment of each kind, up to `most` where longer ones can be joined.

        With `most` None, the length that 99 % of the segments do not exceed, up to `LENGTH`.
        """
        segments, longest = self.segments(labels, offsets), np.ones(len(self.kinds), dtype=np.int64)
        for kind in np.unique(segments[:, 0]).tolist():
            sizes = np.diff(segments[segments[:, 0] == kind, 1:], axis=1).ravel()
            usual = np.quantile(sizes, 0.99, method="higher")
            limit = most if most is not None else min(int(usual), LENGTH)
            longest[kind] = min(sizes.max(), limit) if self.joins[kind] else sizes.max()
        wider = (self.label_of[:, 2] >= 0) & (self.label_of[:, 2] != self.label_of[:, 3]) & ~self.joins
        longest[wider] = np.maximum(longest[wider], 2)  # some labels begin what others end
        longest[self.outside] = 1
        return longest

    def _kinds_and_ends(self, labels: Array) -> tuple[Array, Array, Array]:
        """The kinds of label numbers, and whether they are first and last; −1 where unknown."""
        first, last = (np.append(flags, np.int8(-1))[labels] for flags in (self.first, self.last))
        return np.append(self.kind_of, -1)[labels], first, last

    def check(self, labels: Array, corpus: Corpus) -> None:
        """Raise DataError at the first two known labels that cannot follow each other."""
        if self.scheme is None:
            return
        start, pairs, end = legal(self.classes, self.scheme)
        known, nodes = labels >= 0, np.arange(len(labels))
        first, last = np.isin(nodes, corpus.offsets[:-1]), np.isin(nodes, corpus.offsets[1:] - 1)
        both = known & ~first & np.roll(known, 1)
        places = {
            "at the beginning": known & first & ~start[labels],
            "at the end": known & last & ~end[labels],
            "after the label before it": both & ~pairs[np.roll(labels, 1), labels],
        }
        bad = [(int(flags.argmax()), where) for where, flags in places.items() if flags.any()]
        for node, where in sorted(bad)[:1]:
            raise DataError(
                f"{corpus.place(node)}: the label {self.classes[labels[node]]!r} is not possible {where} in "
                f"{self.scheme}; correct the labels, or give scheme=None"
            )


@lru_cache(64)
def segment_labels(classes: tuple[Any, ...], scheme: str | None) -> SegmentLabels:
    """The `SegmentLabels` of these labels, made once."""
    return SegmentLabels(list(classes), scheme)


def _agreed(values: list[int]) -> int:
    """1 where all are not 0, 0 where all are, else −1."""
    flags = {bool(value) for value in values}
    return -1 if len(flags) > 1 else int(flags.pop())


@compiled
def _fill_ahead(offsets: Array, possible: Array, boundary_flags: Array, ahead: Array) -> None:
    """The lengths of runs of possible nodes that start at each node and cross no boundary."""
    for i in range(len(offsets) - 1):
        for t in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            crosses = t + 1 < offsets[i + 1] and not boundary_flags[t + 1] & JOINED
            for a in range(possible.shape[1]):
                more = ahead[t + 1, a] if crosses else 0
                ahead[t, a] = 1 + more if possible[t, a] else 0
