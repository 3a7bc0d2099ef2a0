"""The support of a fitted model: structures with coefficients."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.structures import Structure
from fuda.marginalized.engines import Engine, make_engine
from fuda.marginalized.problem import Examples, Settings, Sources

Array = np.ndarray
_RECENT = 256  # new support of at most so many nodes stays separate from the old


class SupportPosition(NamedTuple):
    """A node with coefficients: its structure in `support_structures_`, its number there, α."""

    structure: int
    node: int
    alpha: dict[Any, float]  # by label


@dataclass
class Support:
    """Structures with priors and coefficients.

    Attributes
    ----------
    examples : Examples
        The structures; not modified.
    alpha : array (N, L)
        α of their nodes; not modified.

    Notes
    -----
    The engine is cached for the next call, but not pickled.
    """

    examples: Examples
    alpha: Array
    _prepared: tuple[tuple[str, int | None], Sources, Engine] | None = None

    def engine(self, settings: Settings, name: str, n_jobs: int | None, targets: Examples) -> Engine:
        """Return an engine for the scores of targets; `settings` must be the same in all calls."""
        if self._prepared is not None and self._prepared[0] == (name, n_jobs):
            _, sources, engine = self._prepared
            return engine.for_targets(sources.problem(targets))
        sources = Sources(settings, self.examples, n_jobs)
        engine = make_engine(name, sources.problem(targets), n_jobs)
        self._prepared = (name, n_jobs), sources, engine
        return engine

    def __getstate__(self) -> dict[str, Any]:
        return {"examples": self.examples, "alpha": self.alpha, "_prepared": None}


def members_of(examples: Examples, alpha: Array) -> Array:
    """Return the structures with nonzero coefficients, by index."""
    return np.flatnonzero(np.logical_or.reduceat(alpha.any(axis=1), examples.offsets[:-1]))


def supports(examples: Examples, alpha: Array) -> list[Support]:
    """Return the support of the structures with nonzero coefficients; empty if there are none."""
    members = members_of(examples, alpha)
    nodes = examples.encoded.corpus.nodes_of(members)
    return [Support(examples.take(members), alpha[nodes])] if len(members) else []


def members_among(parts: list[Support], corpus: Corpus) -> Array:
    """Return the sequences of a corpus that are among those of a support, by index."""
    known = {key for part in parts for key in _keys(part.examples.encoded.corpus)}
    return np.flatnonzero([key in known for key in _keys(corpus)])


def _keys(corpus: Corpus) -> Iterator[tuple[Hashable, ...]]:
    """The observations of each structure."""
    keys = list(corpus.keys())
    return (tuple(keys[k] for k in types.tolist()) for types in corpus.split(corpus.types))


def merged(parts: list[Support]) -> list[Support]:
    """Merge supports into at most two: a large one, and a small one of recent structures."""
    while len(parts) > 2 or (
        len(parts) == 2 and len(parts[1].alpha) > max(_RECENT, len(parts[0].alpha) // 8)
    ):
        *before, a, b = parts
        alpha = np.concatenate([a.alpha, b.alpha])
        parts = [*before, Support(joined(a.examples, b.examples), alpha)]
    return parts


def relabelled(part: Support, structure: Structure, labels: Array) -> Support:
    """Exchange the coefficients of nodes whose largest one is not that of the label given here.

    Parameters
    ----------
    part : Support
        The support; returned as it is where nothing changes.
    structure : Structure
        A structure that may be among those of the support.
    labels : array (T,)
        Its label numbers, −1 where not known, L for those that the model has not learned.

    Returns
    -------
    Support
        The support with their coefficients exchanged, or 0 for labels that were not learned.
    """
    examples, alpha = part.examples, part.alpha
    for k in np.flatnonzero(examples.sizes == len(structure)).tolist():
        start = int(examples.offsets[k])
        rows = alpha[start : start + len(structure)]
        has_positive = (labels >= 0) & (rows.max(axis=1, initial=0.0) > 0)
        others = np.flatnonzero(has_positive & (rows.argmax(axis=1) != labels))
        if len(others) and examples.encoded.corpus.structures[k] == structure:
            alpha, known = alpha.copy(), others[labels[others] < rows.shape[1]]
            at, before, now = start + known, rows[known].argmax(axis=1), labels[known]
            alpha[at, before], alpha[at, now] = alpha[at, now], alpha[at, before]
            alpha[start + np.setdiff1d(others, known)] = 0.0
    return part if alpha is part.alpha else Support(examples, alpha)


def joined(a: Examples, b: Examples) -> Examples:
    """Concatenate examples; the vocabulary of b extends that of a."""
    widths = [table.n_features for table in b.encoded.tables]
    encoded = a.encoded.widen(widths).followed_by(b.encoded)
    return Examples.of(encoded, a.prior.followed_by(b.prior))
