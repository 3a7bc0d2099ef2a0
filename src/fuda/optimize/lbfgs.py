"""L-BFGS, and OWL-QN where there is an L1 term: min f(x) + Σ_i l1_i |x_i|.

The direction is −H g with H the L-BFGS inverse Hessian of the last m pairs s = x' − x, y = g' − g. It is computed in the coordinates
of the basis {s_1..s_m, y_1..y_m, g} (Chen, Wang & Zhou 2014, "Large-scale L-BFGS using MapReduce"): the two-loop recursion needs only
inner products, so that a million variables are walked through twice an iteration instead of 4m times. Pairs are held in single
precision, which halves the bytes; all sums are in double precision.

OWL-QN (Andrew & Gao 2007) takes the pseudo-gradient of the whole objective for g in the direction, keeps to an orthant during
the line search, and builds pairs from the smooth part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple

import numpy as np
from numba import njit

from fuda.optimize.line_search import DECREASE, wolfe
from fuda.optimize.result import Function, Progress, Result, Watch
from fuda.parallel import Block, run

Array = np.ndarray
_CHUNK = 1 << 16
_COLUMNS = 1024


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _dots(rows: Array, count: int, vector: Array, begin: int, end: int, out: Array) -> None:
    """out(i) = Σ_j rows(i, j) vector(j) over begin ≤ j < end, a stretch of columns at a time to stay in the cache."""
    for start in range(begin, end, _COLUMNS):
        stop = min(start + _COLUMNS, end)
        for i in range(count):
            row = rows[i]
            total = 0.0
            for j in range(start, stop):
                total += row[j] * vector[j]
            out[i] += total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _combine(rows: Array, count: int, coefficients: Array, begin: int, end: int, out: Array) -> None:
    """out(j) += Σ_i coefficients(i) rows(i, j) over begin ≤ j < end."""
    for start in range(begin, end, _COLUMNS):
        stop = min(start + _COLUMNS, end)
        for i in range(count):
            row = rows[i]
            c = coefficients[i]
            for j in range(start, stop):
                out[j] += c * row[j]


class Pairs:
    """The last m pairs (s, y), their inner products, and −H g."""

    def __init__(self, size: int, memory: int, n_jobs: int | None) -> None:
        self.memory, self.n_jobs = memory, n_jobs
        self.s = np.zeros((memory, size), dtype=np.float32)
        self.y = np.zeros((memory, size), dtype=np.float32)
        self.sy = np.zeros((memory, memory))  # s_i · y_j, where j is not older than i
        self.yy = np.zeros((memory, memory))
        self.count = 0
        self.chunks: list[Block] = [(a, min(a + _CHUNK, size)) for a in range(0, size, _CHUNK)]

    @property
    def held(self) -> int:
        return min(self.count, self.memory)

    def push(self, s: Array, y: Array) -> None:
        slot = self.count % self.memory
        self.s[slot], self.y[slot] = s, y
        self.count += 1
        held_y = self.y[slot].astype(np.float64)
        self.sy[: self.held, slot] = self._dots(self.s, held_y)
        self.yy[: self.held, slot] = self._dots(self.y, held_y)
        self.yy[slot] = self.yy[:, slot]

    def direction(self, gradient: Array) -> Array:
        """−H g; −g where no pair is held."""
        if not self.held:
            return -gradient
        sg, yg = self._dots(self.s, gradient), self._dots(self.y, gradient)
        newest_first = [(self.count - 1 - k) % self.memory for k in range(self.held)]
        by_s, by_y = np.zeros(self.held), np.zeros(self.held)
        alpha = np.zeros(self.held)
        for i in newest_first:
            alpha[i] = (sg[i] + by_y @ self.sy[i, : self.held]) / self.sy[i, i]
            by_y[i] -= alpha[i]
        newest = newest_first[0]
        scale = self.sy[newest, newest] / self.yy[newest, newest]
        by_y *= scale
        for i in reversed(newest_first):
            along = scale * yg[i] + by_y @ self.yy[i, : self.held] + by_s @ self.sy[: self.held, i]
            by_s[i] += alpha[i] - along / self.sy[i, i]
        out = gradient * -scale

        def add(chunk: Block) -> None:
            _combine(self.s, self.held, -by_s, *chunk, out)
            _combine(self.y, self.held, -by_y, *chunk, out)

        run(add, self.chunks, self.n_jobs)
        return out

    def _dots(self, rows: Array, vector: Array) -> Array:
        def part(chunk: Block) -> Array:
            out = np.zeros(self.held)
            _dots(rows, self.held, vector, *chunk, out)
            return out

        return sum(run(part, self.chunks, self.n_jobs), start=np.zeros(self.held))


class Lbfgs:
    """A minimizer that can be stopped after any iteration and taken up again from `state()`, to the same end.

    `first_step` scales the first direction −g, whose length says nothing yet.
    """

    def __init__(
        self,
        function: Function,
        x: Array,
        l1: Array | None = None,
        memory: int = 10,
        first_step: Callable[[Array], float] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.function, self.l1 = function, l1
        self.first_step = first_step or (lambda direction: 1.0 / max(float(np.linalg.norm(direction)), 1e-300))
        self.pairs = Pairs(len(x), memory, n_jobs)
        self.x = np.array(x, dtype=np.float64)
        self.history: list[Progress] = []

    def minimize(
        self, tol: float = 1e-5, max_iter: int = 1000, on_iteration: Callable[[Progress], None] | None = None
    ) -> Result:
        """Iterate until the gradient vanishes, the objective stops falling, or `max_iter`.

        Ctrl-C ends it after the last whole iteration.
        """
        watch = Watch(tol, max_iter, on_iteration)
        watch.resume(self.history)
        self.history = watch.history
        smooth, gradient = self.function(self.x)
        watch.evaluations += 1
        converged, reason = False, ""
        try:
            while True:
                pull = self._pseudo_gradient(gradient)
                value = smooth + self._penalty(self.x)
                stop = watch.verdict(self.x, value, float(np.linalg.norm(pull)))
                if stop:
                    converged, reason = not stop.startswith("max_iter"), stop
                    break
                found = self._step(smooth, value, pull, watch)
                if found is None:
                    converged, reason = True, "no step improves the objective any more"
                    break
                x, smooth, new_gradient = found
                s, y = x - self.x, new_gradient - gradient
                if float(s @ y) > 1e-12 * float(y @ y):
                    self.pairs.push(s, y)
                self.x, gradient = x, new_gradient
                watch.record(smooth + self._penalty(x), self._pseudo_gradient(gradient))
        except KeyboardInterrupt:
            reason = "it was interrupted"
        return Result(self.x, converged, reason, watch.history)

    def state(self) -> dict[str, Array]:
        """All that the next iteration depends on."""
        pairs = self.pairs
        held = {"s": pairs.s, "y": pairs.y, "sy": pairs.sy, "yy": pairs.yy, "count": np.array(pairs.count)}
        return {"x": self.x, "history": np.array([astuple(p) for p in self.history]).reshape(-1, 5), **held}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a `state()`."""
        self.x, pairs = state["x"].copy(), self.pairs
        pairs.s, pairs.y, pairs.sy, pairs.yy = (state[name].copy() for name in ("s", "y", "sy", "yy"))
        pairs.count = int(state["count"])
        self.history = [Progress(int(i), int(n), *rest) for i, n, *rest in state["history"].tolist()]

    def _step(self, smooth: float, value: float, pull: Array, watch: Watch) -> tuple[Array, float, Array] | None:
        def count() -> None:
            watch.evaluations += 1

        direction = self.pairs.direction(pull)
        if self.l1 is not None:
            direction[direction * pull >= 0] = 0.0  # no coordinate may leave its descent side
        slope = float(direction @ pull)
        if not slope < 0:  # rounding has spoilt the pairs: begin anew
            self.pairs.count = 0
            direction, slope = -pull, -float(pull @ pull)
        step = 1.0 if self.pairs.held else self.first_step(direction)
        if self.l1 is None:
            found = wolfe(self.function, self.x, smooth, slope, direction, step, count=count)
            return None if found is None else found[:3]
        orthant = np.where(self.x != 0, np.sign(self.x), -np.sign(pull))
        for _ in range(40):
            x = self.x + step * direction
            x[x * orthant < 0] = 0.0
            new_smooth, gradient = self.function(x)
            count()
            if new_smooth + self._penalty(x) <= value + DECREASE * float(pull @ (x - self.x)):
                return x, new_smooth, gradient
            step *= 0.5
        return None

    def _penalty(self, x: Array) -> float:
        return 0.0 if self.l1 is None else float(self.l1 @ np.abs(x))

    def _pseudo_gradient(self, gradient: Array) -> Array:
        """The steepest slope of f + Σ l1 |x|; at x_i = 0 it is 0 unless f pulls harder than l1_i."""
        if self.l1 is None:
            return gradient
        at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - self.l1, 0.0)
        return np.where(self.x != 0, gradient + self.l1 * np.sign(self.x), at_zero)
