"""The CRF's hot loop: eight chains at a time, from tables of factors to a loss and its gradient.

A node's factor is a product of table rows, ψ_t(b) = Π_c E[rows(t, c), b], where E holds exp(score − largest
of the row), and an edge's is T(a, b) = exp(A(a, b) − max A). With scaled forward and backward passes, c_t =
Σ_b of the unscaled α_t,

    α_t(b) = ψ_t(b) Σ_a α_{t−1}(a) T(a, b) / c_t
    g_t(b) = ψ_t(b) β_t(b) / c_t      β_{t−1}(a) = Σ_b T(a, b) g_t(b)
    p_t(b) = α_t(b) β_t(b)            p_{t−1,t}(a, b) = α_{t−1}(a) T(a, b) g_t(b)
    log Z  = Σ_t log c_t + what was taken out

The loss of a chain is  κ (log Z − F(y)) − Σ_t w_t log p_t(y_t): κ = 1 and w = 0 the sequential loss, κ = 0
and w = 1 the pointwise one, κ = k and w = 1 the k-th order Markov loss. The κ F(y) is linear in the weights
and left to the caller. With e_t(b) = w_t [b = y_t] and W = Σ w, evidence runs forward as u and backward as v,

    u_t(b) = e_t(b) + g_t(b) Σ_a T(a, b) u_{t−1}(a) / β_{t−1}(a)
    v_t(a) = e_t(a) + α_t(a) Σ_b T(a, b) V_{t+1}(b)      V_t(b) = v_t(b) ψ_t(b) / (c_t α_t(b))

    ∂/∂s_t(b)    = (κ + W) p_t(b) − u_t(b) − v_t(b) + e_t(b)
    ∂/∂A(a, b)   = T(a, b) Σ_t [ ((κ + W) α_{t−1}(a) − u_{t−1}(a)/β_{t−1}(a)) g_t(b) − α_{t−1}(a) V_t(b) ].

Arrays are laid out (time, label, lane), so that every operation is one vector instruction over the eight
lanes, whatever the number of labels. Chains come sorted by length; a lane whose chain has ended idles with
ψ = 1 and counts for nothing. A chain with a probability that matters below TINY is left out and reported, to
be done by `fuda.inference.sum_product`.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numba import config, njit

from fuda.inference.sum_product import TINY

LANES = 8
_lock = threading.Lock()
Array = np.ndarray
# Not "reassoc": LLVM would then vectorise over labels, with strides, and not over lanes.
_SUMS = {"contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _multiply(matrix: Array, vectors: Array, out: Array) -> None:
    """out(b, k) = Σ_a matrix(b, a) vectors(a, k), the lanes k written out so that they are one register."""
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


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _add_pairs(left: Array, right: Array, count: int, total: Array, sign: float) -> None:
    """total(a, b) += sign Σ_{t=1}^{count−1} Σ_k left(t−1, a, k) right(t, b, k)."""
    size = total.shape[0]
    for a in range(size):
        for b in range(size):
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
            for t in range(1, count):
                s0 += left[t - 1, a, 0] * right[t, b, 0]
                s1 += left[t - 1, a, 1] * right[t, b, 1]
                s2 += left[t - 1, a, 2] * right[t, b, 2]
                s3 += left[t - 1, a, 3] * right[t, b, 3]
                s4 += left[t - 1, a, 4] * right[t, b, 4]
                s5 += left[t - 1, a, 5] * right[t, b, 5]
                s6 += left[t - 1, a, 6] * right[t, b, 6]
                s7 += left[t - 1, a, 7] * right[t, b, 7]
            total[a, b] += sign * (((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)))


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _gather(rows: Array, table: Array, first: Array, length: Array, count: int, psi: Array) -> None:
    """ψ of all nodes, 1 past the end of a chain."""
    channels, size = rows.shape[1], table.shape[1]
    product = np.empty(size)
    for t in range(count):
        for k in range(LANES):
            if t >= length[k]:
                for b in range(size):
                    psi[t, b, k] = 1.0
                continue
            node = first[k] + t
            product[:] = table[rows[node, 0]]
            for j in range(1, channels):
                factor = table[rows[node, j]]
                for b in range(size):
                    product[b] *= factor[b]
            for b in range(size):
                psi[t, b, k] = product[b]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _forward(
    count: int, length: Array, psi: Array, transposed: Array, alpha: Array, inverse: Array, log_z: Array
) -> int:
    """α, 1/c and log Z of each lane; the first lane that is not safe, else −1."""
    size = psi.shape[1]
    product = np.ones(LANES)
    lowest = np.empty(LANES)
    for t in range(count):
        now, factor, total = alpha[t], psi[t], inverse[t]
        if t == 0:
            now[:] = 1.0
        else:
            _multiply(transposed, alpha[t - 1], now)
        for k in range(LANES):
            total[k] = 0.0
            lowest[k] = 1e300
        for b in range(size):
            for k in range(LANES):
                x = now[b, k] * factor[b, k]
                now[b, k] = x
                total[k] += x
                lowest[k] = min(lowest[k], x)
        for k in range(LANES):
            if t < length[k]:
                if not (lowest[k] >= TINY * total[k] and total[k] > TINY):
                    return k
                product[k] *= total[k]
                if product[k] < 1e-150 or product[k] > 1e150:
                    log_z[k] += math.log(product[k])
                    product[k] = 1.0
            total[k] = 1.0 / total[k]
        for b in range(size):
            for k in range(LANES):
                now[b, k] *= total[k]
    for k in range(LANES):
        log_z[k] += math.log(product[k])
    return -1


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _backward(
    count: int, length: Array, psi: Array, direct: Array, alpha: Array, inverse: Array, beta: Array
) -> None:
    """β, and ψ turned into g; both vanish from g where no edge leads into the node."""
    size = psi.shape[1]
    for t in range(count - 1, -1, -1):
        after, factor, scale = beta[t], psi[t], inverse[t]
        if t < count - 1:
            _multiply(direct, psi[t + 1], after)
        for k in range(LANES):
            if t >= length[k] - 1:
                for b in range(size):
                    after[b, k] = 1.0
        for b in range(size):
            for k in range(LANES):
                factor[b, k] *= after[b, k] * scale[k]
        for k in range(LANES):
            if t >= length[k]:
                for b in range(size):
                    factor[b, k] = 0.0


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _evidence(
    count: int,
    length: Array,
    evidence: Array,
    gold: Array,
    direct: Array,
    transposed: Array,
    alpha: Array,
    beta: Array,
    g: Array,
    ahead: Array,
    behind: Array,
    gradient: Array,
) -> None:
    """Take u + v − e from `gradient` (p scaled by κ + W); leave u/β in `ahead` and V in `behind`."""
    size = alpha.shape[1]
    message = np.zeros((size, LANES))
    for t in range(count):
        if t > 0:
            _multiply(transposed, ahead[t - 1], message)
        for b in range(size):
            for k in range(LANES):
                ahead[t, b, k] = g[t, b, k] * message[b, k]
        for k in range(LANES):
            if t < length[k]:
                ahead[t, gold[t, k], k] += evidence[t, k]
        for b in range(size):
            for k in range(LANES):
                gradient[t, b, k] -= ahead[t, b, k]
                ahead[t, b, k] /= max(beta[t, b, k], 1e-290)
    message[:] = 0.0
    for t in range(count - 1, -1, -1):
        if t < count - 1:
            _multiply(direct, behind[t + 1], message)
        for b in range(size):
            for k in range(LANES):
                # ψ/(c α) = g/(β α): the message is v without e, which u has counted already
                v = alpha[t, b, k] * message[b, k]
                gradient[t, b, k] -= v
                behind[t, b, k] = v
        for k in range(LANES):
            if t < length[k]:
                behind[t, gold[t, k], k] += evidence[t, k]
        for b in range(size):
            for k in range(LANES):
                behind[t, b, k] *= g[t, b, k] / max(beta[t, b, k] * alpha[t, b, k], 1e-290)


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _posterior(alpha: Array, beta: Array, count: int, mass: Array, kappa: float, gradient: Array) -> None:
    """(κ + W) p."""
    for t in range(count):
        for b in range(alpha.shape[1]):
            for k in range(LANES):
                gradient[t, b, k] = (kappa + mass[k]) * alpha[t, b, k] * beta[t, b, k]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _scale(values: Array, count: int, factors: Array) -> None:
    """Multiply each lane by its factor, if any is not 1."""
    if factors.min() == 1.0 and factors.max() == 1.0:
        return
    for t in range(count):
        for b in range(values.shape[1]):
            for k in range(LANES):
                values[t, b, k] *= factors[k]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _scatter(
    rows: Array, left: Array, right: Array, first: Array, length: Array, weight: Array, table_gradient: Array
) -> None:
    """Add weight · left · right of each node to all its rows."""
    channels, size = rows.shape[1], table_gradient.shape[1]
    row = np.empty(size)
    for k in range(LANES):
        for t in range(length[k]):
            node = first[k] + t
            for b in range(size):
                row[b] = weight[k] * left[t, b, k] * right[t, b, k]
            for j in range(channels):
                into = table_gradient[rows[node, j]]
                for b in range(size):
                    into[b] += row[b]


def chain_losses(*arguments: Any) -> float:
    """The loss of chains and its gradient: see `_chain_losses`, whose arguments it takes."""
    if _chain_losses.signatures:
        return _chain_losses(*arguments)
    with _lock:  # the first call compiles; numba leaves LLVM's SLP vectoriser off, which joins the lanes
        before = config.__dict__["SLP_VECTORIZE"]
        config.__dict__["SLP_VECTORIZE"] = 1
        try:
            return _chain_losses(*arguments)
        finally:
            config.__dict__["SLP_VECTORIZE"] = before


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _chain_losses(
    chains: Array,
    offsets: Array,
    rows: Array,
    table: Array,
    direct: Array,
    transposed: Array,
    kappa: float,
    weights: Array,
    labels: Array,
    node_weights: Array,
    table_gradient: Array,
    pairs: Array,
    unsafe: Array,
) -> float:
    """The loss of the given chains, its gradient added to `table_gradient` and `pairs` (without T).

    `node_weights` is empty for the sequential loss. Chains left out are marked in `unsafe`.
    """
    size = table.shape[1]
    longest = 0
    for chain in chains:
        longest = max(longest, offsets[chain + 1] - offsets[chain])
    pointwise = len(node_weights) > 0
    shape = (longest, size, LANES)
    alpha, psi, beta = np.empty(shape), np.empty(shape), np.empty(shape)
    inverse = np.empty((longest, LANES))
    ahead, behind = (np.empty_like(alpha), np.empty_like(alpha)) if pointwise else (alpha[:0], alpha[:0])
    gradient = np.empty_like(alpha)
    evidence, gold = np.zeros((longest, LANES)), np.zeros((longest, LANES), np.int64)
    first, length, weight = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64), np.zeros(LANES)
    log_z, mass = np.zeros(LANES), np.zeros(LANES)
    loss = 0.0
    for block in range(0, len(chains), LANES):
        for k in range(LANES):
            length[k], weight[k] = 0, 0.0
            if block + k < len(chains):
                chain = chains[block + k]
                first[k], length[k] = offsets[chain], offsets[chain + 1] - offsets[chain]
                weight[k] = weights[chain]
        k = 0
        while k >= 0:  # again without a lane that is not safe
            count = length.max()
            _gather(rows, table, first, length, count, psi)
            log_z[:] = 0.0
            k = _forward(count, length, psi, transposed, alpha, inverse, log_z)
            if k < 0:
                _backward(count, length, psi, direct, alpha, inverse, beta)
                if pointwise:
                    k = _gold(
                        count,
                        first,
                        length,
                        labels,
                        node_weights,
                        alpha,
                        beta,
                        gold,
                        evidence,
                        mass,
                        log_z,
                        kappa,
                    )
            if k >= 0:
                unsafe[chains[block + k]] = True
                length[k], weight[k] = 0, 0.0
        for k in range(LANES):
            if length[k] > 0:
                loss += weight[k] * (log_z[k] if pointwise else kappa * log_z[k])
        if not pointwise:
            for k in range(LANES):
                weight[k] *= kappa
            _scatter(rows, alpha, beta, first, length, weight, table_gradient)
            _scale(alpha, count, weight)
            _add_pairs(alpha, psi, count, pairs, 1.0)
            continue
        _posterior(alpha, beta, count, mass, kappa, gradient)
        _evidence(
            count, length, evidence, gold, direct, transposed, alpha, beta, psi, ahead, behind, gradient
        )
        beta[:count] = 1.0
        _scatter(rows, gradient, beta, first, length, weight, table_gradient)
        _scale(alpha, count, weight)
        _add_pairs(alpha, behind, count, pairs, -1.0)
        _scale(ahead, count, weight)
        _add_pairs(ahead, psi, count, pairs, -1.0)
        for k in range(LANES):
            mass[k] += kappa
        _scale(alpha, count, mass)
        _add_pairs(alpha, psi, count, pairs, 1.0)
    return loss


@njit(cache=True, nogil=True)
def _gold(
    count: int,
    first: Array,
    length: Array,
    labels: Array,
    node_weights: Array,
    alpha: Array,
    beta: Array,
    gold: Array,
    evidence: Array,
    mass: Array,
    log_z: Array,
    kappa: float,
) -> int:
    """Labels, weights, their sums W, and the loss in place of log Z; the first lane not safe, else −1."""
    for k in range(LANES):
        mass[k] = 0.0
        log_z[k] *= kappa
        for t in range(length[k]):
            node = first[k] + t
            y = labels[node]
            gold[t, k], evidence[t, k] = y, node_weights[node]
            mass[k] += node_weights[node]
            p = alpha[t, y, k] * beta[t, y, k]
            if node_weights[node] > 0.0:
                if not p > TINY:
                    return k
                log_z[k] -= node_weights[node] * math.log(p)
        for t in range(length[k], count):
            evidence[t, k] = 0.0
    return -1
