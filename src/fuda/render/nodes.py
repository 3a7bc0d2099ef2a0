"""What is shown of the nodes of a structure: words, and labels as parts of segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fuda.data.structures import Structure
from fuda.render.text import is_outside, kind_of, shown


@dataclass(frozen=True)
class Bar:
    """The label of a node as a part of a segment.

    Attributes
    ----------
    text : str
        What is written; empty within a segment.
    kind : str
        The kind of the label.
    first, last : bool
        Whether the segment begins or ends here.
    """

    text: str
    kind: str
    first: bool
    last: bool


@dataclass(frozen=True)
class Node:
    """What is shown of a node.

    Attributes
    ----------
    number : int
        Its number.
    word : str
        Its observation.
    bar : Bar or None
        Its label.
    probability : float or None
        The probability of that.
    gold : Bar or None
        Its right label, where that is another one.
    """

    number: int
    word: str
    bar: Bar | None
    probability: float | None
    gold: Bar | None


def nodes_of(
    structure: Structure,
    labels: Sequence[Any] | None,
    gold: Sequence[Any] | None,
    probabilities: Sequence[float] | None,
) -> list[Node]:
    """Return what is shown of each node."""
    nodes = []
    for t, observation in enumerate(structure.observations):
        bar = None if labels is None or is_outside(labels[t]) else _bar(labels, t)
        right = None
        if labels is not None and gold is not None and gold[t] is not None and labels[t] != gold[t]:
            bar, right = _bar(labels, t), _bar(gold, t)
            if bar.kind == right.kind:  # they differ in where a segment begins or ends
                bar = Bar(str(labels[t]), bar.kind, True, True)
                right = Bar(str(gold[t]), right.kind, True, True)
        number = None if probabilities is None or bar is None else float(probabilities[t])
        nodes.append(Node(t, shown(observation), bar, number, right))
    return nodes


def _bar(labels: Sequence[Any], t: int) -> Bar:
    """The part of a segment at a node; a label that encodes no segment is one by itself."""
    kind = kind_of(labels[t])
    first = not (t and _continues(labels[t - 1], labels[t]))
    last = not (t + 1 < len(labels) and _continues(labels[t], labels[t + 1]))
    return Bar(kind if first else "", kind, first, last)


def _continues(label: Any, following: Any) -> bool:
    """Whether a label goes on with the segment of the one before it."""
    a, b = str(label), str(following)
    return kind_of(a) != a and kind_of(a) == kind_of(b) and b[0] in "IEL" and a[0] in "BI"
