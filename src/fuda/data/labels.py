"""Labels: strings that are not empty, or integers; None is a label not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fuda.errors import DataError, described, place

if TYPE_CHECKING:
    from fuda.data.corpus import Corpus

Label = Any  # str or int; None where the label is not known
_NO_LABELS = "no node has a label: every label in y is None; give labels to learn from"


def plain_label(label: Any) -> Label:
    """A label as Python's own str, int or None; the error does not say where it stands.

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
        f"its label is {described(label)}; labels are integers or strings that are not empty, and None where "
        "not known"
    )


def number_labels(y: Any, corpus: Corpus) -> tuple[list[Any], np.ndarray]:
    """The distinct labels in order, and the label numbers of all nodes, −1 where the label is not known."""
    labels = flat_labels(y, corpus)
    classes = sorted(set(labels) - {None})
    if not classes:
        raise DataError(_NO_LABELS)
    number = {label: i for i, label in enumerate(classes)} | {None: -1}
    return classes, np.fromiter((number[label] for label in labels), dtype=np.int32, count=len(labels))


def renumbered(classes: list[Any], labels: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The classes that occur among the labels of a part of the data, and its labels by their numbers."""
    used = np.unique(labels[labels >= 0])
    if not len(used):
        raise DataError(_NO_LABELS)
    number = np.full(len(classes) + 1, -1, dtype=labels.dtype)  # the last for labels not known
    number[used] = np.arange(len(used))
    return [classes[k] for k in used], number[labels]


def flat_labels(y: Any, corpus: Corpus) -> list[Any]:
    """The labels of all nodes in one list, after a check that y fits the corpus.

    Labels are strings that are not empty, or integers, all of one kind; None is a label not known. Numpy's
    scalars become Python's.
    """
    flat: list[Any] = []
    for i, (given, size) in enumerate(zip(one_each(y, "y", corpus), np.diff(corpus.offsets), strict=True)):
        labels = listed(given)
        if labels is None:
            raise DataError(
                f"{place(i)}: its labels are {described(given)}; give a list of {size} labels, one a node"
            )
        if len(labels) != size:
            raise DataError(f"{place(i)} has {size} nodes but {len(labels)} labels; give one label a node")
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


def one_each(values: Any, name: str, corpus: Corpus) -> list[Any]:
    """Values as a list of one entry a structure."""
    entries = listed(values)
    if entries is None:
        raise DataError(f"{name} is {described(values)}; give one list a structure")
    if len(entries) != len(corpus):
        raise DataError(
            f"X has {len(corpus)} structures but {name} has {len(entries)}; give one list a structure"
        )
    return entries


def listed(values: Any) -> list[Any] | None:
    """Values as a list; None where they are no collection or have no order."""
    if isinstance(values, str | bytes | dict | set | frozenset) or not isinstance(values, Iterable):
        return None
    return None if isinstance(values, np.ndarray) and values.ndim == 0 else list(values)


def structure_weights(weights: Any, corpus: Corpus) -> np.ndarray | None:
    if weights is None:
        return None
    return _weights(weights, len(corpus), "sample_weight", "structure")


def node_weights(weights: Any, corpus: Corpus) -> np.ndarray | None:
    if weights is None:
        return None
    parts = enumerate(one_each(weights, "position_weight", corpus))
    sizes = np.diff(corpus.offsets)
    return np.concatenate(
        [_weights(part, sizes[i], f"{place(i)}: position_weight", "node") for i, part in parts]
    )


def _weights(weights: Any, size: int, name: str, of: str) -> np.ndarray:
    """(size,) weights, checked; messages call them `name`, and say `of` what each is."""
    try:
        array = np.asarray(listed(weights), dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (size,):
        raise DataError(f"{name} is {described(weights)}; give a list of {size} numbers, one a {of}")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        at = int(bad.argmax())
        raise DataError(f"{name} of {of} {at} is {array[at]}; weights are finite and not negative")
    return array


def as_object_array(values: list[Any]) -> np.ndarray:
    """A 1-D object array, which numpy would not make of equally long lists by itself."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
