"""Operations on eight chains side by side, in arrays (…, label, lane).

Every operation is one vector instruction over the lanes, whatever the number of labels. What is
computed for a chain does not depend on the lane that it is in, nor on its neighbours.
"""

from __future__ import annotations

from fuda.data.graph import Array
from fuda.inference.exact_sums import rounded_number
from fuda.runtime.compiled import compiled

LANES = 8
# Without "reassoc", with which LLVM would vectorise over labels, with strides, and not over lanes.
SUMS = {"contract", "nsz"}


@compiled(fastmath=SUMS)
def multiply(matrix: Array, vectors: Array, out: Array) -> None:
    """out(b, k) = Σ_a matrix(b, a) vectors(a, k), the lanes k unrolled to make one register."""
    size = matrix.shape[0]
    for b in range(size):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for a in range(size):
            x = matrix[b, a]
            s0 += x * vectors[a, 0]
            s1 += x * vectors[a, 1]
            s2 += x * vectors[a, 2]
            s3 += x * vectors[a, 3]
            s4 += x * vectors[a, 4]
            s5 += x * vectors[a, 5]
            s6 += x * vectors[a, 6]
            s7 += x * vectors[a, 7]
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = s0, s1, s2, s3
        out[b, 4], out[b, 5], out[b, 6], out[b, 7] = s4, s5, s6, s7


@compiled(fastmath=SUMS)
def add_pairs(left: Array, right: Array, count: int, sign: float, total: Array) -> None:
    """total(a, b, k) += sign Σ_{t=1}^{count−1} left(t−1, a, k) right(t, b, k).

    Two b at a time, so that what is read of `left` serves both.
    """
    size = total.shape[0]
    for a in range(size):
        for b in range(0, size, 2):
            c = min(b + 1, size - 1)
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
            r0 = r1 = r2 = r3 = r4 = r5 = r6 = r7 = 0.0
            for t in range(1, count):
                x0, x1, x2, x3 = left[t - 1, a, 0], left[t - 1, a, 1], left[t - 1, a, 2], left[t - 1, a, 3]
                x4, x5, x6, x7 = left[t - 1, a, 4], left[t - 1, a, 5], left[t - 1, a, 6], left[t - 1, a, 7]
                s0 += x0 * right[t, b, 0]
                s1 += x1 * right[t, b, 1]
                s2 += x2 * right[t, b, 2]
                s3 += x3 * right[t, b, 3]
                s4 += x4 * right[t, b, 4]
                s5 += x5 * right[t, b, 5]
                s6 += x6 * right[t, b, 6]
                s7 += x7 * right[t, b, 7]
                r0 += x0 * right[t, c, 0]
                r1 += x1 * right[t, c, 1]
                r2 += x2 * right[t, c, 2]
                r3 += x3 * right[t, c, 3]
                r4 += x4 * right[t, c, 4]
                r5 += x5 * right[t, c, 5]
                r6 += x6 * right[t, c, 6]
                r7 += x7 * right[t, c, 7]
            for k, s in enumerate((s0, s1, s2, s3, s4, s5, s6, s7)):
                total[a, b, k] += sign * s
            if c > b:
                for k, r in enumerate((r0, r1, r2, r3, r4, r5, r6, r7)):
                    total[a, c, k] += sign * r


@compiled(fastmath=SUMS)
def take_pairs(of_lanes: Array, direct: Array, rounder: float, total: Array) -> None:
    """total(a, b) += Σ_k T(a, b) · of_lanes(a, b, k), each rounded; the lanes are 0 afterwards."""
    size = len(direct)
    for a in range(size):
        for b in range(size):
            for k in range(LANES):
                total[a, b] += rounded_number(direct[a, b] * of_lanes[a, b, k], rounder)
                of_lanes[a, b, k] = 0.0


@compiled(fastmath=SUMS)
def scale(values: Array, count: int, factors: Array) -> None:
    """Multiply each lane by its factor, if any is not 1."""
    if factors.min() == 1.0 and factors.max() == 1.0:
        return
    for t in range(count):
        for b in range(values.shape[1]):
            for k in range(LANES):
                values[t, b, k] *= factors[k]
