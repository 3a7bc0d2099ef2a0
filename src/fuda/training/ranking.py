"""The kernel perceptron over candidates: of each structure, the best candidate is to rank first.

A candidate c has the rank g(c) = v log P(c) + Σ_s α_s K(s, c). Where the one ranked first has more
wrong labels than the right one,

    α_right += weight,   α_first −= weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuda.checks import check_arrays

Array = np.ndarray


class Ranking:
    """The epochs of the kernel perceptron over candidates, to be continued after any of them.

    Candidates of structure i are first[i] … first[i+1] − 1, of which right[i] is the one to rank
    first; `wrong` and `ranking` are of all candidates, `weight` of structures.
    """

    def __init__(self, first: Array, right: Array, wrong: Array, weight: Array, ranking: Array) -> None:
        self.first, self.right, self.wrong, self.weight, self.ranking = first, right, wrong, weight, ranking
        # Of all candidates: α, and Σ of its changes × steps before.
        self.alpha, self.lag = np.zeros(len(ranking)), np.zeros(len(ranking))
        self.mistakes: list[int] = []

    def run_epoch(self, row: Callable[[int], Array]) -> None:
        """Learn in one more epoch; `row` returns K of a candidate and all candidates."""
        first, mistakes, count = self.first, 0, len(self.weight)
        for i in range(count):
            best = first[i] + int(self.ranking[first[i] : first[i + 1]].argmax())
            target, weight = int(self.right[i]), self.weight[i]
            if self.wrong[best] > self.wrong[target]:
                mistakes += 1
                self.ranking += weight * (row(target) - row(best))
                for c, change in ((target, weight), (best, -weight)):
                    self.alpha[c] += change
                    self.lag[c] += (len(self.mistakes) * count + i) * change
        self.mistakes = [*self.mistakes, mistakes]

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what the next epoch depends on."""
        arrays = {name: getattr(self, name) for name in ("alpha", "lag", "ranking")}
        return {}, arrays | {"mistakes": np.array(self.mistakes, dtype=np.int64)}

    def restore(self, values: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        shapes: dict[str, tuple[int | None, ...]] = dict.fromkeys(
            ("alpha", "lag", "ranking"), self.alpha.shape
        )
        check_arrays(arrays, shapes | {"mistakes": (None,)}, {"mistakes": np.int64})
        for name in shapes:
            getattr(self, name)[:] = arrays[name]
        self.mistakes = arrays["mistakes"].tolist()
