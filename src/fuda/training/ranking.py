"""The kernel perceptron over candidates: of each structure, the best candidate is to rank first.

A candidate c has the rank g(c) = v log P(c) + Σ_s α_s K(s, c). Where the one ranked first has more
wrong labels than the right one,

    α_right += weight,   α_first −= weight.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fuda.checks import check_arrays, count_in
from fuda.progress import warn

Array = np.ndarray
# Seconds of the first epoch after which the duration of the training is estimated.
_ESTIMATE_SECONDS = 10.0
_LONG_SECONDS = 600.0  # a training that will take more seconds is announced


class Ranking:
    """The epochs of the kernel perceptron over candidates, to be continued after any of them.

    Candidates of structure i are first[i] … first[i+1] − 1, of which right[i] is the one to rank
    first; `wrong` is of all candidates, `weight` of structures. Candidates of one group have one
    rank: `group` is that of each candidate, `ranking` the rank of each group, and `number` says by
    which row of the kernel it changes.
    """

    def __init__(
        self,
        first: Array,
        right: Array,
        wrong: Array,
        weight: Array,
        ranking: Array,
        number: Array,
        group: Array,
    ) -> None:
        self.first, self.right, self.wrong, self.weight = first, right, wrong, weight
        self.ranking, self.number, self.group = ranking, number, group
        # Of all candidates: α, and Σ of its changes × steps before.
        self.alpha, self.lag = np.zeros(len(group)), np.zeros(len(group))
        self.mistakes: list[int] = []

    def run_epoch(self, row: Callable[[int], Array]) -> None:
        """Learn in one more epoch; `row` returns a row of the kernel between the numbers."""
        first, mistakes, count = self.first, 0, len(self.weight)
        numbers, began, is_estimated = self.number[self.group], time.monotonic(), bool(self.mistakes)
        for i in range(count):
            if not is_estimated and time.monotonic() - began > _ESTIMATE_SECONDS:
                self._warn_if_long((time.monotonic() - began) * count / i)
                is_estimated = True
            best = first[i] + int(self.ranking[self.group[first[i] : first[i + 1]]].argmax())
            target, weight = int(self.right[i]), self.weight[i]
            if self.wrong[best] > self.wrong[target]:
                mistakes += 1
                change = weight * (row(int(numbers[target])) - row(int(numbers[best])))
                self.ranking += change[self.number]
                for c, change in ((target, weight), (best, -weight)):
                    self.alpha[c] += change
                    self.lag[c] += (len(self.mistakes) * count + i) * change
        self.mistakes = [*self.mistakes, mistakes]

    def _warn_if_long(self, seconds: float) -> None:
        """Warn where an epoch takes long, so that nobody waits for it unawares."""
        if seconds > _LONG_SECONDS:
            long = f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"
            warn(
                f"an epoch of the re-ranker will take about {long}: each mistake is compared with all "
                f"{int(self.number.max()) + 1:,} distinct candidates of {len(self.weight):,} structures; "
                "give fewer structures, a smaller n, or fewer epochs",
                RuntimeWarning,
            )

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what the next epoch depends on."""
        arrays = {name: getattr(self, name) for name in ("alpha", "lag", "ranking")}
        values = {"epochs": len(self.mistakes)}
        return values, arrays | {"mistakes": np.array(self.mistakes, dtype=np.int64)}

    def restore(self, values: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        shapes: dict[str, tuple[int | None, ...]] = dict.fromkeys(("alpha", "lag"), self.alpha.shape)
        shapes["ranking"] = self.ranking.shape
        lengths = {"mistakes": (count_in(values, "epochs"),)}
        check_arrays(arrays, shapes | lengths, {"mistakes": np.int64})
        for name in shapes:
            getattr(self, name)[:] = arrays[name]
        self.mistakes = arrays["mistakes"].tolist()
