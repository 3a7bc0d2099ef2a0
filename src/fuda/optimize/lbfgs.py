"""L-BFGS, and OWL-QN where there is an L1 term: min f(x) + Σ_i l1_i |x_i|.

The direction is −H g with H the L-BFGS inverse Hessian of the last m pairs s = x' − x, y = g' − g.
It is computed in the coordinates of the basis {s_1..s_m, y_1..y_m, g} (Chen, Wang & Zhou 2014,
"Large-scale L-BFGS using MapReduce"): the two-loop recursion needs only inner products, so that an
iteration reads a million variables twice instead of 4m times. Pairs are stored in single
precision, which halves the memory traffic; all sums are in double precision.

OWL-QN (Andrew & Gao 2007, "Scalable training of L1-regularized log-linear models") uses the
pseudo-gradient of the whole objective as g in the direction, stays within an orthant during the
line search, and builds pairs from the smooth part. Unlike there, only coordinates that are 0 are
kept from leaving it uphill. Within an orthant the penalty is linear, so that −H g needs no
correction; with all coordinates aligned with −g, as published, a CRF of 600 sentences has not
converged after 1,000 iterations, here after some 400.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fuda.checks import check_arrays, check_memory, is_count
from fuda.errors import DataError, short
from fuda.optimize.deflation import Deflation, Spectrum
from fuda.optimize.line_search import DECREASE, wolfe
from fuda.optimize.result import Function, Minimizer, Point, Watch
from fuda.optimize.vectors import VectorArithmetic
from fuda.runtime.compiled import compiled

Array = np.ndarray
_COLUMNS = 4096
# The vectors in memory besides the pairs: x, the next x, their gradients, and the direction.
_VECTORS = 5
_STORED = ("s", "y", "sy", "yy")  # the arrays of `Pairs` that a state contains
# The coordinates are changed after so many iterations: at the start the curvatures still differ.
_DEFLATED_AFTER = 22


# The matrices are passed whole, with the columns begin..end to work on: numba vectorises rows only
# of arrays that it knows to be contiguous, which a slice of columns is not.
@compiled(fastmath={"reassoc", "contract", "nsz"})
def _dots(s: Array, y: Array, count: int, newest: int, gradient: Array, begin: int, end: int) -> Array:
    """s_i · g, y_i · g, s_i · y and y_i · y with the newest y, for i < count: (4, count).

    A range of columns at a time stays in the cache, so that memory is read once. Sums within a
    range are in single precision, as the pairs are, and in double precision over ranges.
    """
    out = np.zeros((4, count))
    g = np.empty(_COLUMNS, dtype=np.float32)
    for start in range(begin, end, _COLUMNS):
        stop = min(start + _COLUMNS, end)
        part, last = gradient[start:stop], y[newest, start:stop]
        for j in range(len(part)):
            g[j] = part[j]
        for i in range(count):
            s_row, y_row = s[i, start:stop], y[i, start:stop]
            sg = yg = sy = yy = np.float32(0.0)
            for j in range(len(part)):
                sg += s_row[j] * g[j]
                yg += y_row[j] * g[j]
                sy += s_row[j] * last[j]
                yy += y_row[j] * last[j]
            out[0, i] += sg
            out[1, i] += yg
            out[2, i] += sy
            out[3, i] += yy
    return out


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _combine(
    s: Array,
    y: Array,
    by_s: Array,
    by_y: Array,
    scale: float,
    gradient: Array,
    out: Array,
    begin: int,
    end: int,
) -> float:
    """out = scale · gradient + Σ_i by_s(i) s_i + by_y(i) y_i; returns out · gradient."""
    slope = 0.0
    for start in range(begin, end, _COLUMNS):
        stop = min(start + _COLUMNS, end)
        part, g = out[start:stop], gradient[start:stop]
        for j in range(len(part)):
            part[j] = scale * g[j]
        for i in range(len(by_s)):
            s_row, y_row = s[i, start:stop], y[i, start:stop]
            a, b = by_s[i], by_y[i]
            for j in range(len(part)):
                part[j] += a * s_row[j] + b * y_row[j]
        for j in range(len(part)):
            slope += part[j] * g[j]
    return slope


class Pairs:
    """The last m pairs (s, y), their inner products, and −H g.

    Parameters
    ----------
    size : int
        The number of variables.
    memory : int
        m.
    vectors : VectorArithmetic
        Operations on vectors of this length.
    """

    def __init__(self, size: int, memory: int, vectors: VectorArithmetic) -> None:
        self.memory, self.vectors = memory, vectors
        check_memory(
            8.0 * size * (memory + _VECTORS),
            f"L-BFGS for {size:,} weights",
            "give fewer features or labels",
        )
        self.s = np.zeros((memory, size), dtype=np.float32)
        self.y = np.zeros((memory, size), dtype=np.float32)
        self.sy = np.zeros((memory, memory))  # s_i · y_j, where j is not older than i
        self.yy = np.zeros((memory, memory))
        self.count = 0
        self.direction = np.zeros(size)
        self.deflation: Deflation | None = None  # from z to the coordinates of the pairs, if other
        self.converted = self.direction  # the gradient in these

    @property
    def filled(self) -> int:
        """The number of pairs in memory."""
        return min(self.count, self.memory)

    def push(self, x: Array, old_x: Array, gradient: Array, old_gradient: Array) -> None:
        """Store another pair, in place of the oldest."""
        slot = self.count % self.memory
        self.vectors.move(x, -1.0, old_x, self.s[slot])
        self.vectors.move(gradient, -1.0, old_gradient, self.y[slot])
        self._convert(slot)
        self.count += 1

    def deflate(self, deflation: Deflation, gradient: Array) -> None:
        """Change the coordinates of all pairs; the gradient is one of the present length."""
        self.take(deflation)
        for slot in range(self.filled):
            self._convert(slot)
        for slot in range(self.filled):
            self._products(slot, gradient)

    def take(self, deflation: Deflation) -> None:
        """Compute in other coordinates from now on; pairs in memory are in these already."""
        self.deflation, self.converted = deflation, np.empty_like(self.direction)

    def _convert(self, slot: int) -> None:
        if self.deflation is not None:
            self.deflation.step_back(self.s[slot])
            self.deflation.gradient(self.y[slot], self.y[slot])

    def descend(self, gradient: Array) -> tuple[Array, float]:
        """Return −H g (−g without pairs), in the same array at every call, and its slope."""
        by_s, by_y = np.zeros(self.filled), np.zeros(self.filled)
        scale, deflation = 1.0, self.deflation if self.filled else None
        if deflation is not None:
            by_z, gradient = gradient, deflation.gradient(gradient, self.converted)
        if self.filled:
            newest_first = [(self.count - 1 - k) % self.memory for k in range(self.filled)]
            newest = newest_first[0]
            sg, yg = self._products(newest, gradient)
            sy, yy = self.sy[newest, newest], self.yy[newest, newest]
            if not (yy > 0.0 and sy > 1e-12 * yy):
                self.count = 0  # no usable curvature: restart
                return self.descend(gradient if deflation is None else by_z)
            alpha = np.zeros(self.filled)
            for i in newest_first:
                alpha[i] = (sg[i] + by_y @ self.sy[i, : self.filled]) / self.sy[i, i]
                by_y[i] -= alpha[i]
            scale = sy / yy
            by_y *= scale
            for i in reversed(newest_first):
                along = scale * yg[i] + by_y @ self.yy[i, : self.filled] + by_s @ self.sy[: self.filled, i]
                by_s[i] += alpha[i] - along / self.sy[i, i]
        arrays = self.s, self.y, -by_s, -by_y, -scale, gradient, self.direction
        slopes = self.vectors.run(lambda part: _combine(*arrays, part.start, part.stop))
        if deflation is not None:
            deflation.step(self.direction)
        return self.direction, float(sum(slopes))

    def _products(self, newest: int, gradient: Array) -> tuple[Array, Array]:
        """s_i · g and y_i · g; the products with the newest y are stored as well."""
        arrays = self.s, self.y, self.filled, newest, gradient
        parts = self.vectors.run(lambda part: _dots(*arrays, part.start, part.stop))
        sg, yg, sy, yy = sum(parts, start=np.zeros((4, self.filled)))
        self.sy[: self.filled, newest], self.yy[: self.filled, newest], self.yy[newest, : self.filled] = (
            sy,
            yy,
            yy,
        )
        return sg, yg


class Lbfgs(Minimizer):
    """L-BFGS, or OWL-QN.

    Parameters
    ----------
    function : callable
        The smooth part f, from a point to value and gradient there.
    x : ndarray
        The starting point.
    l1 : ndarray, optional
        The factor of |x_i|, per variable.
    memory : int
        m, the number of pairs.
    first_step : callable, optional
        From the first direction −g, whose length carries no information yet, to the first step.
    n_jobs : int or None
        The number of threads; None is all cores.
    deflation : Deflation, optional
        The coordinates of the pairs from the 22nd iteration on. The objective, its gradient and
        when to stop do not depend on it.
    """

    def __init__(
        self, function: Function, x: Array, l1: Array | None = None, memory: int = 10,
        first_step: Callable[[Array], float] | None = None, n_jobs: int | None = None,
        deflation: Deflation | None = None,
    ) -> None:  # fmt: skip
        super().__init__(x)
        self.function, self.l1 = function, l1
        self.first_step = first_step or (lambda direction: 1.0 / max(self.vectors.norm(direction), 1e-300))
        self.vectors = VectorArithmetic(len(x), n_jobs)
        self.pairs = Pairs(len(x), memory, self.vectors)
        self.deflation = deflation
        self.spare = np.empty_like(self.x), np.empty_like(self.x)  # next point and gradient

    def _points(self, watch: Watch) -> Iterator[Point]:
        function = watch.counted(self.function)
        smooth, gradient = function(self.x)
        gradient = gradient.copy()
        while True:
            pull = self._pseudo_gradient(gradient)
            value = smooth + self._penalty(self.x)
            yield self.x, value, self.vectors.norm(pull), self.vectors.norm(self.x)
            if self.deflation is not None and len(self.history) == _DEFLATED_AFTER:
                self.deflation.begin(self.x)
                self.pairs.deflate(self.deflation, gradient)
            accepted = self._step(function, smooth, value, pull)
            if accepted is None:
                return
            x, smooth, new_gradient = accepted
            self.pairs.push(x, self.x, new_gradient, gradient)
            self.spare = self.x, gradient
            self.x, gradient = x, new_gradient

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what the next iteration depends on; a `final` state is without pairs."""
        values, arrays = super().state()
        filled = 0 if final else self.pairs.filled
        pairs = {name: getattr(self.pairs, name)[:filled] for name in _STORED}
        spectrum = {} if final or self.deflation is None else self.deflation.state()
        return values | {"count": 0 if final else self.pairs.count}, arrays | pairs | spectrum

    def restore(self, values: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        pairs = self.pairs
        count: Any = values.get("count")
        arrays = dict(arrays)
        if self.deflation is not None:
            self.deflation.restore({name: arrays.pop(name) for name in Spectrum._fields if name in arrays})
            if self.deflation.spectrum is not None:
                pairs.take(self.deflation)
        super().restore(values, {name: array for name, array in arrays.items() if name not in _STORED})
        if not is_count(count) or count > len(self.history):
            raise DataError(f"it counts {short(count)} pairs, after {len(self.history)} iterations")
        stored = {name: getattr(pairs, name)[: min(count, pairs.memory)] for name in _STORED}
        own_arrays = {name: array for name, array in arrays.items() if name in _STORED}
        shapes = {name: array.shape for name, array in stored.items()}
        check_arrays(own_arrays, shapes, {name: array.dtype for name, array in stored.items()})
        for name, array in own_arrays.items():
            stored[name][:] = array
        pairs.count = count

    def _step(
        self, function: Function, smooth: float, value: float, pull: Array
    ) -> tuple[Array, float, Array] | None:
        """The next point, its value without penalty, and gradient; None if no step improves."""
        direction, slope = self.pairs.descend(pull)
        if self.l1 is not None:
            direction[(self.x == 0) & (direction * pull >= 0)] = 0.0  # none leaves 0 uphill
            slope = self.vectors.dot(direction, pull)
        if not slope < 0:  # rounding has spoilt the pairs: restart
            self.pairs.count = 0
            direction, slope = -pull, -self.vectors.dot(pull, pull)
        step = 1.0 if self.pairs.filled else self.first_step(direction)
        if self.l1 is None:
            accepted = wolfe(function, self.x, smooth, slope, direction, step, self.vectors, spare=self.spare)
            return None if accepted is None else accepted[:3]
        orthant = np.where(self.x != 0, np.sign(self.x), -np.sign(pull))
        for _ in range(40):
            x = self.x + step * direction
            x[x * orthant < 0] = 0.0
            slope = self.vectors.dot(pull, x - self.x)
            if slope < 0:  # what was set to 0 may have been the descent
                new_smooth, gradient = function(x)
                if new_smooth + self._penalty(x) <= value + DECREASE * slope:
                    return x, new_smooth, gradient.copy()
            step *= 0.5
        return None

    def _penalty(self, x: Array) -> float:
        """Σ_i l1_i |x_i|."""
        return 0.0 if self.l1 is None else self.vectors.dot(self.l1, np.abs(x))

    def _pseudo_gradient(self, gradient: Array) -> Array:
        """The pseudo-gradient of f + Σ l1 |x|: at x_i = 0 it is 0 where |∂f/∂x_i| ≤ l1_i."""
        if self.l1 is None:
            return gradient
        at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - self.l1, 0.0)
        return np.where(self.x != 0, gradient + self.l1 * np.sign(self.x), at_zero)
