"""AdaGrad over the parts of a sum, for a fast start: min Σ_j f_j(x).

Each step uses one part f_j, in random order: x ← x − η g_j / √(Σ g²), coordinate by coordinate. It
reaches the neighbourhood of the minimum in a few rounds over the data, and never the minimum
itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fuda.checks import check_arrays
from fuda.errors import DataError
from fuda.optimize.result import Function, Minimizer, Point, Watch
from fuda.runtime.randomness import restore_random, stored_random


class AdaGrad(Minimizer):
    """AdaGrad; its objectives are the sums of the values computed during a round, while x moves.

    Parameters
    ----------
    parts : sequence of callables
        The functions f_j, each from a point to its value and gradient there.
    x : ndarray
        The starting point.
    rate : float
        η, the learning rate.
    seed : int, RandomState or None
        Determines the order of the parts.

    References
    ----------
    Duchi, Hazan & Singer (2011), "Adaptive subgradient methods for online learning and stochastic
    optimization".
    """

    def __init__(
        self,
        parts: Sequence[Function],
        x: np.ndarray,
        rate: float = 0.5,
        seed: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(x)
        self.parts, self.rate = parts, rate
        self.random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
        self.squares = np.full(len(x), 1e-8)

    def _points(self, watch: Watch) -> Iterator[Point]:
        last = watch.history[-1] if watch.history else None
        watch.evaluations = len(watch.history)
        measured = (np.inf, np.inf) if last is None else (last.objective or 0.0, last.gradient_norm or 0.0)
        while True:
            yield self.x, *measured, float(np.linalg.norm(self.x))
            total, slope = 0.0, np.zeros(len(self.x))
            for j in self.random.permutation(len(self.parts)):
                value, gradient = self.parts[j](self.x)
                total += value
                slope += gradient
                self.squares += gradient * gradient
                self.x -= self.rate * gradient / np.sqrt(self.squares)
            watch.evaluations += 1
            measured = total, float(np.linalg.norm(slope))

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what the next iteration depends on."""
        values, arrays = super().state()
        return values, arrays | {"squares": self.squares, "random": stored_random(self.random)}

    def restore(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        arrays = dict(arrays)
        random = arrays.pop("random", np.empty(0))
        own_arrays = {name: arrays.pop(name) for name in list(arrays) if name == "squares"}
        super().restore(values, arrays)
        check_arrays(own_arrays, {"squares": self.x.shape})
        if not (own_arrays["squares"] > 0).all():
            raise DataError("its array 'squares' has numbers that are not sums of squares")
        restore_random(self.random, random)
        self.squares = own_arrays["squares"].copy()
