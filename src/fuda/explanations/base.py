"""What an explanation consists of: two labels, what each is worth, and what makes them differ."""

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
    """What a label is worth.

    Parameters
    ----------
    label : object
        The label.
    score : float
        What the model compares, with this label at the node: see `Explanation.unit`.
    voices : list of Voice
        The training positions with the largest absolute shares of the score, in decreasing order;
        empty for models of feature weights.
    others : float
        The rest of the score: the shares of the other positions, and what is not due to positions.
    other_count : int
        The number of the other positions.
    labeling : list or None
        The labels of all nodes that the score is that of; None where the node is labelled by
        itself.

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
        changes too), "neighbour" (all that a neighbour and the nodes behind it add),
        "normalization" (of a MEMM), "position" (of the training data), "correction" (one that was
        remembered), "structure" (of the training data), "prior", "votes",
        "member" (of several models that decide together), "penalty" (of the label O),
        "probability", "score".
    text : str
        What it is.
    value : float
        How much it adds to the difference; negative where it speaks for the rival.
    node : int
        The node of the explained structure at which it arises.
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
        What the scores are.
    difference : float
        By how much the label is ahead of its rival; 0 if it has none.
    contributions : list of Contribution
        What the difference consists of, by kind, and by size within a kind. Of each kind the
        smallest ones are added up to one, whose `count` is larger than 1.

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
        for kind, found in groupby(self.contributions, key=lambda contribution: contribution.kind):
            yield KINDS[kind], list(found)

    @property
    def without_rival(self) -> str:
        """Why there is no rival, where there is none."""
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
        for kind, found in self.by_kind():
            lines += [kind, *map(str, found)]
        return "\n".join(lines)


def chosen_few(terms: Iterable[Contribution], top: int) -> list[Contribution]:
    """Sort contributions by kind and size, and add up the small ones.

    Parameters
    ----------
    terms : iterable of Contribution
        All of them; those with a count are sums already.
    top : int
        How many of each kind to keep.

    Returns
    -------
    list of Contribution
        With the same total; those of 0 are left out.
    """
    by_kind: dict[str, list[Contribution]] = {kind: [] for kind in KINDS}
    for term in terms:
        if term.value:
            by_kind[term.kind].append(term)
    found: list[Contribution] = []
    for kind, several in by_kind.items():
        single = sorted((t for t in several if t.count == 1), key=lambda t: -abs(t.value))
        sums = [t for t in several if t.count > 1]
        # One that is left over alone is listed: its line is no longer than one for a sum.
        kept = single if not sums and len(single) <= top + 1 else single[:top]
        rest = [*sums, *single[len(kept) :]]
        found += kept
        if rest:
            count = sum(t.count for t in rest)
            value = sum(t.value for t in rest)
            found.append(Contribution(kind, f"{count:,} other {KINDS[kind]}", value, rest[0].node, count))
    return found
