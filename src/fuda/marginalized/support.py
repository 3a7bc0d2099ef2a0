"""Support: structures with coefficients, by which a fitted model scores others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fuda.marginalized.engines import make_engine
from fuda.marginalized.engines.base import Engine
from fuda.marginalized.problem import Examples, Settings, Sources

Array = np.ndarray
_RECENT = 256  # nodes of the latest support that stay apart from all before, if there are not more


@dataclass
class Support:
    """Structures with their priors, and α (N, L) of their nodes; neither is changed.

    What an engine has prepared of them is kept for the next call, and never pickled.
    """

    examples: Examples
    alpha: Array
    _prepared: tuple[tuple[str, int | None], Sources, Engine] | None = None

    def engine(self, settings: Settings, name: str, n_jobs: int | None, targets: Examples) -> Engine:
        """An engine for scores of targets; the settings are those of the first call."""
        if self._prepared is not None and self._prepared[0] == (name, n_jobs):
            _, sources, engine = self._prepared
            return engine.aimed_at(sources.problem(targets))
        sources = Sources(settings, self.examples, n_jobs)
        engine = make_engine(name, sources.problem(targets), n_jobs)
        self._prepared = (name, n_jobs), sources, engine
        return engine

    def __getstate__(self) -> dict[str, Any]:
        return {"examples": self.examples, "alpha": self.alpha, "_prepared": None}


def members_of(examples: Examples, alpha: Array) -> Array:
    """The structures that have coefficients."""
    return np.flatnonzero(np.logical_or.reduceat(alpha.any(axis=1), examples.offsets[:-1]))


def supports(examples: Examples, alpha: Array) -> list[Support]:
    """The structures that have coefficients, alone; an empty list where there are none."""
    members = members_of(examples, alpha)
    nodes = examples.encoded.corpus.nodes_of(members)
    return [Support(examples.take(members), alpha[nodes])] if len(members) else []


def merged(parts: list[Support]) -> list[Support]:
    """At most two supports: a large one, and what has come since, while that is small."""
    while len(parts) > 2 or (
        len(parts) == 2 and len(parts[1].alpha) > max(_RECENT, len(parts[0].alpha) // 8)
    ):
        *before, a, b = parts
        alpha = np.concatenate([a.alpha, b.alpha])
        parts = [*before, Support(joined(a.examples, b.examples), alpha)]
    return parts


def joined(a: Examples, b: Examples) -> Examples:
    """The structures of a, and then those of b, whose vocabulary has grown since."""
    widths = [table.n_features for table in b.encoded.tables]
    encoded = a.encoded.widen(widths).followed_by(b.encoded)
    return Examples.of(encoded, a.prior.followed_by(b.prior))
