"""Labels: non-empty strings or integers; None for an unknown label."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from fuda.checks import LARGEST, SMALLEST, listed
from fuda.errors import DataError, described, place
from fuda.schemes import OUTSIDE, is_segment_label

if TYPE_CHECKING:
    from fuda.data.corpus import Corpus

Label = Any  # str or int; None if the label is unknown
_NO_LABELS = (
    "no node has a label: every label in y is None, or in the part of y that a fold learns from; "
    "give labels, and leave out structures without any"
)


class NoLabelsError(DataError):
    """Data, or a part of them, in which every label is None."""


def plain_label(label: Any) -> Label:
    """Return a label as a Python str, int or None; the error does not name the node.

    >>> plain_label(np.int64(3)), plain_label(np.str_("O")), plain_label(None)
    (3, 'O', None)
    """
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, str) and label:
        return str(label)
    if label is None or type(label) is int:
        return label
    raise DataError(
        f"its label is {described(label)}; give an integer or a non-empty string, or None if it is not known"
    )


def encode_segments(labels: Iterable[Any]) -> bool:
    """Return whether labels encode segments, typed ones or, by O, B and I alone, untyped ones.

    >>> encode_segments(["B-PER", "O"]), encode_segments(["B", "I", "O"])
    (True, True)
    >>> encode_segments(["NOUN", "VERB"]), encode_segments(["B", "E", "H", "S"])
    (False, False)
    """
    alphabet = set(labels)
    return any(map(is_segment_label, alphabet)) or _are_bare(alphabet)


def reading_of(labels: Iterable[Any]) -> str | None:
    """Return the scheme by which labels that encode segments are read; None is leniently.

    The lenient interpretation is right for well-formed labels of all schemes but BILOU.

    >>> reading_of(["U-PER", "B-LOC", "L-LOC", "O"]), reading_of(["B-LOC", "I-LOC", "O"])
    ('BILOU', None)
    """
    inner = set(labels) - {OUTSIDE}
    if not all(map(is_segment_label, inner)) and not _are_bare({*inner, OUTSIDE}):
        return None
    prefixes = {label[0] for label in inner}
    return "BILOU" if prefixes <= set("BILU") and prefixes & set("LU") else None


def _are_bare(alphabet: set[Any]) -> bool:
    """Whether labels are prefixes without types."""
    return {OUTSIDE, "B", "I"} <= alphabet <= {OUTSIDE, *"BIESLU"}


def number_labels(y: Any, corpus: Corpus) -> tuple[list[Any], np.ndarray]:
    """Return the distinct labels, sorted, and the label numbers of all nodes, −1 if unknown."""
    labels = flat_labels(y, corpus)
    classes = sorted(set(labels) - {None})
    if not classes:
        raise NoLabelsError(_NO_LABELS)
    number = {label: i for i, label in enumerate(classes)} | {None: -1}
    return classes, np.fromiter(map(number.__getitem__, labels), dtype=np.int32, count=len(labels))


def renumbered(classes: list[Any], labels: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return the classes that occur in a part of the data, and its labels by their new numbers."""
    used = np.unique(labels[labels >= 0])
    if not len(used):
        raise NoLabelsError(_NO_LABELS)
    number = np.full(len(classes) + 1, -1, dtype=labels.dtype)  # the last for unknown labels
    number[used] = np.arange(len(used))
    return [classes[k] for k in used], number[labels]


def flat_labels(y: Any, corpus: Corpus) -> list[Any]:
    """Return the labels of all nodes in one list, after a check that y fits the corpus.

    Parameters
    ----------
    y : iterable of iterables
        A list of labels per structure: non-empty strings or integers, all of one type; None for
        unknown labels.
    corpus : Corpus

    Returns
    -------
    list
        The labels, as Python values.
    """
    flat: list[Any] = []
    entries = per_structure(y, "y", corpus)
    if all(type(given) is list and len(given) == size for _, given, size in entries):  # as a rule
        flat, entries = list(chain.from_iterable(given for _, given, _ in entries)), []
    for i, labels_given, size in entries:
        labels = listed(labels_given)
        if labels is None:
            raise DataError(
                f"{place(i)}: its labels are {described(labels_given)}; give a list of {size} labels, one "
                "per node, or, if X and y are one structure, wrap them in lists: [X], [y]"
            )
        if len(labels) != size:
            raise DataError(f"{place(i)} has {size} nodes but {len(labels)} labels; give one label per node")
        flat += labels
    kinds = set(map(type, flat)) - {type(None)}
    if not (kinds <= {str} or kinds <= {int}) or "" in flat:
        for node, label in enumerate(flat):
            try:
                flat[node] = plain_label(label)
            except DataError as error:
                raise DataError(f"{corpus.place(node)}: {error}") from None
        first = next((label for label in flat if label is not None), None)
        for node, label in enumerate(flat):
            if label is not None and type(label) is not type(first):
                raise DataError(
                    f"{corpus.place(node)}: its label is {described(label)}, where others are like "
                    f"{described(first)}; labels are all strings or all integers"
                )
    return flat


def per_structure(values: Any, name: str, corpus: Corpus) -> list[tuple[int, Any, int]]:
    """Return number, entry in `values` and size of each structure that is not empty."""
    entries = listed(values)
    if entries is None:
        raise DataError(f"{name} is {described(values)}; give one list per structure")
    if len(entries) != corpus.original_count:
        raise DataError(
            f"X has {corpus.original_count} structures but {name} has {len(entries)}; give one list per "
            "structure"
        )
    for i in set(range(corpus.original_count)).difference(corpus.numbers):
        if listed(entries[i]) != []:
            raise DataError(f"{place(i)} is empty, but its {name} is {described(entries[i])}; give []")
    sizes = np.diff(corpus.offsets).tolist()
    return [(i, entries[i], size) for i, size in zip(corpus.numbers, sizes, strict=True)]


def structure_weights(weights: Any, corpus: Corpus) -> np.ndarray | None:
    """Return `sample_weight`, checked: a weight per structure."""
    if weights is None:
        return None
    return _weights(weights, corpus.original_count, "sample_weight", "structure")[list(corpus.numbers)]


def node_weights(weights: Any, corpus: Corpus) -> np.ndarray | None:
    """Return `position_weight`, checked: a weight per node of the corpus."""
    if weights is None:
        return None
    name = "position_weight"
    parts = per_structure(weights, name, corpus)
    return np.concatenate([_weights(w, n, f"{place(i)}: {name}", "node") for i, w, n in parts])


def _weights(weights: Any, size: int, name: str, of: str) -> np.ndarray:
    """(size,) weights, checked; messages use `name` for them and `of` for what they belong to."""
    try:
        array = np.asarray(listed(weights), dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (size,):
        raise DataError(f"{name} is {described(weights)}; give a list of {size} numbers, one per {of}")
    bad = ~((array == 0) | ((array >= SMALLEST) & (array <= LARGEST)))
    if bad.any():
        at = int(bad.argmax())
        remedy = f"weights are finite and not negative: 0, or from {SMALLEST:g} to {LARGEST:g}"
        raise DataError(f"{name} of {of} {at} is {array[at]}; {remedy}")
    return array


def as_object_array(values: list[Any]) -> np.ndarray:
    """Return a 1-D object array, also for lists of equal length."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
