"""The parts of an explanation: two labels, their scores, and contributions to the difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from fuda.data.structures import Structure
from fuda.render.text import shown

Pair = tuple[int, int]
# The kinds of contributions in the order in which they are listed, and their plurals.
KINDS = {
    "feature": "features",
    "position": "training positions",
    "correction": "remembered corrections",
    "structure": "training structures",
    "prior": "priors",
    "votes": "votes",
    "member": "members",
    "penalty": "penalties",
    "probability": "probabilities",
    "neighbour": "neighbours",
    "transition": "transitions",
    "normalization": "normalizations",
    "elsewhere": "labels elsewhere",
    "score": "scores",
}


@dataclass(frozen=True)
class Voice:
    """A training position and its share of a score.

    Parameters
    ----------
    structure, node : int
        The position: a structure, numbered as by `support_structures_` or `support_` of the
        model, and a node of it.
    observation : object
        The observation there.
    label : object
        The label with the largest coefficient there.
    share : float
        The share of the score.
    match : list of pairs
        The matched nodes (training node, explained node), sorted.
    matched : list
        The observations of the matched training nodes.

    Examples
    --------
    >>> from fuda import MarginalizedPerceptron
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]]
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]]
    >>> model = MarginalizedPerceptron().fit(X, y)
    >>> voice = model.explain(["Ana", "is", "in", "Lima"], 3).chosen.voices[0]
    >>> voice.observation, voice.label, voice.structure, voice.node
    ('Lima', 'LOC', 0, 3)
    """

    structure: int
    node: int
    observation: Any
    label: Any
    share: float
    match: list[Pair]
    matched: list[Any]

    @property
    def text(self) -> str:
        """The position in words: its label, what is matched, and where it is."""
        nodes = [node for node, _ in self.match]
        words = map(shown, self.matched)
        marked = (f"[{word}]" if node == self.node else word for node, word in zip(nodes, words, strict=True))
        return f"{self.label}  {' '.join(marked)}  (structure {self.structure}, node {self.node})"

    def __str__(self) -> str:
        return f"{self.share:+.4g}  {self.text}"


@dataclass(frozen=True)
class Verdict:
    """The score of a label.

    Parameters
    ----------
    label : object
        The label.
    score : float
        The score that the model maximizes, with this label at the node: see `Explanation.unit`.
    voices : list of Voice
        The training positions with the largest absolute shares of the score, in decreasing order;
        empty for models of feature weights.
    others : float
        The rest of the score: shares of the other positions, and parts not due to positions.
    other_count : int
        The number of the other positions.
    labeling : list or None
        The labels of all nodes whose score it is; None if each node is labelled independently.

    Examples
    --------
    >>> from fuda import CRF
    >>> model = CRF().fit([["Ana", "lives", "in", "Lima"]], [["PER", "O", "O", "LOC"]])
    >>> found = model.explain(["Ana", "is", "in", "Lima"], 0)
    >>> found.chosen.label, found.chosen.labeling, found.chosen.score > found.rival.score
    ('PER', ['PER', 'O', 'O', 'LOC'], True)
    """

    label: Any
    score: float
    voices: list[Voice] = field(default_factory=list)
    others: float = 0.0
    other_count: int = 0
    labeling: list[Any] | None = None

    def __str__(self) -> str:
        lines = [f"{self.label}: {self.score:.4g}", *(f"  {voice}" for voice in self.voices)]
        if self.other_count:
            rest = "by" if self.labeling is None else "by all else, with"
            lines.append(f"  {self.others:+.4g}  {rest} {self.other_count:,} others")
        return "\n".join(lines)


@dataclass(frozen=True)
class Contribution:
    """A part of the difference between two labels.

    Parameters
    ----------
    kind : str
        One of "feature" (of the node, of its neighbours by offset), "transition" (labels that
        follow each other), "elsewhere" (the label of another node, which the best alternative
        changes too), "neighbour" (the message from a neighbour and the nodes behind it),
        "normalization" (of a MEMM), "position" (of the training data), "correction" (a remembered
        one), "structure" (of the training data), "prior", "votes", "member" (of several models
        that are combined), "penalty" (of the label O),
        "probability", "score".
    text : str
        A description.
    value : float
        Its part of the difference; negative if it favours the rival.
    node : int
        The node of the explained structure that it belongs to.
    count : int
        How many contributions it is the sum of.
    voice : Voice or None
        The training position.

    Examples
    --------
    >>> from fuda import CRF
    >>> X, y = [["Ana", "lives", "in", "Lima"]], [["PER", "O", "O", "LOC"]]
    >>> model = CRF(features="word").fit(X, y)
    >>> parts = model.explain(["Ana", "is", "in", "Lima"], 0).contributions
    >>> [(part.kind, part.node) for part in parts if part.text == "[0] w=Ana"]
    [('feature', 0)]
    """

    kind: str
    text: str
    value: float
    node: int
    count: int = 1
    voice: Voice | None = None

    def __str__(self) -> str:
        return f"{self.value:+10.4f}  {self.text}"


@dataclass(frozen=True)
class Explanation:
    """Why a node has the label that `predict` gives it, and not the best other one.

    The values of all contributions add up to the difference.

    Scores of the marginalized kernel that may exceed the range of doubles are divided by a common
    power of 2.

    Parameters
    ----------
    node : int
        The explained node.
    observation : object
        Its observation.
    chosen : Verdict
        The label that `predict` gives it.
    rival : Verdict or None
        The best other label; None if no other label is possible.
    structure : Structure
        The structure.
    unit : str
        The name of the score.
    difference : float
        The score of the label minus that of its rival; 0 if there is no rival.
    contributions : list of Contribution
        The parts of the difference, by kind, and by size within a kind. The smallest ones of each
        kind are added up to one, whose `count` is larger than 1.

    Examples
    --------
    >>> from fuda import CRF
    >>> model = CRF().fit([["Ana", "lives", "in", "Lima"]], [["PER", "O", "O", "LOC"]])
    >>> found = model.explain(["Ana", "is", "in", "Lima"], 3)
    >>> found.node, found.observation, found.chosen.label
    (3, 'Lima', 'LOC')
    >>> abs(sum(part.value for part in found.contributions) - found.difference) < 1e-9
    True
    """

    node: int
    observation: Any
    chosen: Verdict
    rival: Verdict | None
    structure: Structure
    unit: str = "score"
    difference: float = 0.0
    contributions: list[Contribution] = field(default_factory=list)

    def by_kind(self) -> Iterator[tuple[str, list[Contribution]]]:
        """Iterate over the contributions of each kind.

        Yields
        ------
        tuple of str and list of Contribution
            The name of the kind, in the plural, and its contributions.
        """
        for kind, group in groupby(self.contributions, key=lambda contribution: contribution.kind):
            yield KINDS[kind], list(group)

    @property
    def without_rival(self) -> str:
        """The reason why there is no rival, if there is none."""
        return "no candidate has another label" if "candidate" in self.unit else "no other label is possible"

    def _repr_html_(self) -> str:
        from fuda.render.explanation import explanation_html
        from fuda.render.style import fragment

        return fragment(explanation_html(self))

    def __rich__(self) -> Any:
        from fuda.render.explanation import explanation_text

        return explanation_text(self)

    def __str__(self) -> str:
        first = f"node {self.node}, {shown(self.observation)}: {self.chosen.label}"
        if self.rival is None:
            return f"{first}; {self.without_rival}"
        scores = f"{self.unit}: {self.chosen.score:.4g}, not {self.rival.score:.4g}"
        lines = [f"{first}, not {self.rival.label}", f"{self.difference:+10.4f}  {scores}"]
        for kind, contributions in self.by_kind():
            lines += [kind, *map(str, contributions)]
        return "\n".join(lines)


def chosen_few(terms: Iterable[Contribution], top: int) -> list[Contribution]:
    """Sort contributions by kind and size, and add up the small ones.

    Parameters
    ----------
    terms : iterable of Contribution
        All of them; those with a count above 1 are sums already.
    top : int
        How many of each kind to list by themselves.

    Returns
    -------
    list of Contribution
        With the same total; those of 0 are left out.
    """
    by_kind: dict[str, list[Contribution]] = {kind: [] for kind in KINDS}
    for term in terms:
        if term.value:
            by_kind[term.kind].append(term)
    chosen: list[Contribution] = []
    for kind, of_kind in by_kind.items():
        single = sorted((t for t in of_kind if t.count == 1), key=lambda t: -abs(t.value))
        sums = [t for t in of_kind if t.count > 1]
        # If only one is left, it is listed: a line for the sum would not be shorter.
        listed = single if not sums and len(single) <= top + 1 else single[:top]
        rest = [*sums, *single[len(listed) :]]
        chosen += listed
        if rest:
            count = sum(t.count for t in rest)
            value = sum(t.value for t in rest)
            chosen.append(Contribution(kind, f"{count:,} other {KINDS[kind]}", value, rest[0].node, count))
    return chosen
