"""Forward–backward over batches of eight chains: from factor tables to CRF loss and gradient.

A node's factor is a product of table rows, ψ_t(b) = Π_c E[rows(t, c), b], where E contains
exp(score − largest of the row), and an edge's is T(a, b) = exp(A(a, b) − max A). With scaled
forward and backward passes, where c_t is the sum over b of the unscaled α_t,

    α_t(b) = ψ_t(b) Σ_a α_{t−1}(a) T(a, b) / c_t
    g_t(b) = ψ_t(b) β_t(b) / c_t      β_{t−1}(a) = Σ_b T(a, b) g_t(b)
    p_t(b) = α_t(b) β_t(b)            p_{t−1,t}(a, b) = α_{t−1}(a) T(a, b) g_t(b)
    log Z − F(y) = Σ_t log c_t − log Π_t ψ_t(y_t) T(y_{t−1}, y_t)

The loss of a chain is  ω (log Z − F(y)) − Σ_t w_t log p_t(y_t): ω = 1 and w = 0 is the sequential
loss, ω = 0 and w = 1 the pointwise one, ω = k and w = 1 the k-th order Markov loss. What was
subtracted from scores is part of log Z and of F(y), and does not matter. With e_t(b) = w_t [b =
y_t] and W = Σ w, evidence is propagated forward as u and backward as v,

    u_t(b) = e_t(b) + g_t(b) Σ_a T(a, b) u_{t−1}(a) / β_{t−1}(a)
    v_t(a) = e_t(a) + α_t(a) Σ_b T(a, b) V_{t+1}(b)      V_t(b) = v_t(b) ψ_t(b) / (c_t α_t(b))

    ∂/∂s_t(b)  = (ω + W) p_t(b) − u_t(b) − v_t(b) + e_t(b) − ω [b = y_t]
    ∂/∂A(a, b) = T(a, b) Σ_t [ ((ω + W) α_{t−1}(a) − u_{t−1}(a)/β_{t−1}(a)) g_t(b)
                               − α_{t−1}(a) V_t(b) ] − ω Σ_t [a = y_{t−1}, b = y_t].

The last term, which is the same at all weights, is left to the caller. What is added to gradients,
per node and, for A, per chain, is rounded so that the sums do not depend on which chains are
computed together, nor in which order (`fuda.inference.exact_sums`).

Arrays are laid out (time, label, lane), so that every operation is one vector instruction over the
eight lanes, whatever the number of labels. Chains are sorted by length; a lane whose chain has
ended idles with ψ = 1 and contributes nothing. A chain with a relevant probability below TINY is
left out and reported, to be computed by `fuda.inference.sum_product`.
"""

from __future__ import annotations

import math
import threading
from typing import Any, NamedTuple

import numpy as np
from numba import config

from fuda.data.graph import Array
from fuda.inference.exact_sums import rounded_number
from fuda.inference.simd_doubles import LANES, SUMS, add_pairs, multiply, scale, take_pairs
from fuda.inference.sum_product import TINY
from fuda.runtime.compiled import compiled

_lock = threading.Lock()


class Chains(NamedTuple):
    """Labelled chains.

    Attributes
    ----------
    offsets : (n + 1,) ndarray
        The bounds of all chains of a corpus.
    rows : (N, channels) ndarray
        The rows of the table at each node.
    labels : (N,) ndarray
        y.
    node_weights : (N,) or (0,) ndarray
        w; empty for the sequential loss.
    weights : (n,) ndarray
        The weights of the chains.
    """

    offsets: Array
    rows: Array
    labels: Array
    node_weights: Array
    weights: Array


class Factors(NamedTuple):
    """The factors of nodes and edges.

    Attributes
    ----------
    table : (rows, L) ndarray
        E.
    direct, transposed : (L, L) ndarray
        T and its transpose.
    """

    table: Array
    direct: Array
    transposed: Array


class Gradient(NamedTuple):
    """Where losses are written and gradients are added.

    Attributes
    ----------
    losses : (n,) ndarray
        The losses of the chains.
    table : (rows, L) ndarray
        The gradient with respect to the rows of the table.
    pairs : (L, L) ndarray
        The gradient with respect to the transitions, without the pairs of labels observed.
    unsafe : (n,) ndarray of bool
        The chains that were left out.
    rounder : float
        What rounds the terms of the gradients, see `fuda.inference.exact_sums`.
    """

    losses: Array
    table: Array
    pairs: Array
    unsafe: Array
    rounder: float


class _Work(NamedTuple):
    """Memory for a batch: arrays (time, label, lane), (time, lane), (lane,), (label, label, lane).

    `psi` is replaced by g, `log_z` by the loss; `sum_w` is W, `pairs` the gradient of A without T.
    """

    alpha: Array
    psi: Array
    beta: Array
    ahead: Array
    behind: Array
    gradient: Array
    inverse: Array
    evidence: Array
    gold: Array
    first: Array
    length: Array
    weight: Array
    log_z: Array
    sum_w: Array
    pairs: Array


@compiled(fastmath=SUMS)
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
            for b in range(size):
                product[b] = table[rows[node, 0], b]
            for j in range(1, channels):
                factor = table[rows[node, j]]
                for b in range(size):
                    product[b] *= factor[b]
            for b in range(size):
                psi[t, b, k] = product[b]


@compiled(fastmath=SUMS)
def _forward(
    count: int, length: Array, psi: Array, transposed: Array, alpha: Array, inverse: Array, log_z: Array
) -> int:
    """α, 1/c and log Z of each lane; returns the first unsafe lane, else −1."""
    size = psi.shape[1]
    product = np.ones(LANES)
    lowest = np.empty(LANES)
    for t in range(count):
        now, factor, total = alpha[t], psi[t], inverse[t]
        if t == 0:
            now[:] = 1.0
        else:
            multiply(transposed, alpha[t - 1], now)
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


@compiled(fastmath=SUMS)
def _backward(count: int, length: Array, psi: Array, direct: Array, inverse: Array, beta: Array) -> None:
    """β, and ψ replaced by g, which is 0 past the end of a chain."""
    size = psi.shape[1]
    for t in range(count - 1, -1, -1):
        after, factor, scale = beta[t], psi[t], inverse[t]
        if t < count - 1:
            multiply(direct, psi[t + 1], after)
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


@compiled(fastmath=SUMS)
def _evidence(count: int, factors: Factors, work: _Work) -> None:
    """Subtract u + v − e from `gradient`, (ω + W) p; u/β is left in `ahead`, V in `behind`."""
    _, direct, transposed = factors
    alpha, g, beta, ahead, behind, gradient, _, evidence, gold, _, length, _, _, _, _ = work
    size = alpha.shape[1]
    message = np.zeros((size, LANES))
    for t in range(count):
        if t > 0:
            multiply(transposed, ahead[t - 1], message)
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
            multiply(direct, behind[t + 1], message)
        for b in range(size):
            for k in range(LANES):
                # ψ/(c α) = g/(β α); the message is v without e, which is part of u already
                v = alpha[t, b, k] * message[b, k]
                gradient[t, b, k] -= v
                behind[t, b, k] = v
        for k in range(LANES):
            if t < length[k]:
                behind[t, gold[t, k], k] += evidence[t, k]
        for b in range(size):
            for k in range(LANES):
                behind[t, b, k] *= g[t, b, k] / max(beta[t, b, k] * alpha[t, b, k], 1e-290)


@compiled(fastmath=SUMS)
def _posterior(alpha: Array, beta: Array, count: int, sum_w: Array, omega: float, gradient: Array) -> None:
    """(ω + W) p."""
    for t in range(count):
        for b in range(alpha.shape[1]):
            for k in range(LANES):
                gradient[t, b, k] = (omega + sum_w[k]) * alpha[t, b, k] * beta[t, b, k]


@compiled(fastmath=SUMS)
def _scatter(chains: Chains, left: Array, right: Array, omega: float, work: _Work, into: Gradient) -> None:
    """Add weight · (left · right − ω [b = y]) of each node to all its rows."""
    rows, labels, channels, size = chains.rows, chains.labels, chains.rows.shape[1], left.shape[1]
    row = np.empty(size)
    for k in range(LANES):
        weight, observed = work.weight[k], omega * work.weight[k]
        for t in range(work.length[k]):
            node = work.first[k] + t
            for b in range(size):
                row[b] = weight * left[t, b, k] * right[t, b, k]
            row[labels[node]] -= observed
            for b in range(size):
                row[b] = rounded_number(row[b], into.rounder)
            for j in range(channels):
                total = into.table[rows[node, j]]
                for b in range(size):
                    total[b] += row[b]


def chain_losses(*arguments: Any) -> None:
    """Compute the losses of chains and add their gradient.

    Parameters
    ----------
    *arguments : tuple
        ``chosen``, the numbers of the chains to compute, sorted by length; `Chains`; `Factors`; ω;
        and the `Gradient` to write to, in which chains that are left out are marked as unsafe.
    """
    if getattr(_chain_losses, "signatures", True):  # without the compiler it is the plain function
        _chain_losses(*arguments)
        return
    with _lock:  # the first call compiles, with LLVM's SLP vectoriser, which joins the lanes
        before = config.__dict__["SLP_VECTORIZE"]
        config.__dict__["SLP_VECTORIZE"] = 1
        try:
            _chain_losses(*arguments)
        finally:
            config.__dict__["SLP_VECTORIZE"] = before


@compiled(fastmath=SUMS)
def _chain_losses(chosen: Array, chains: Chains, factors: Factors, omega: float, into: Gradient) -> None:
    """The losses of the chosen chains, and their gradient, are left in `into`."""
    longest = 0
    for chain in chosen:
        longest = max(longest, chains.offsets[chain + 1] - chains.offsets[chain])
    pointwise = len(chains.node_weights) > 0
    work = _allocate(longest, factors.table.shape[1], pointwise)
    for block in range(0, len(chosen), LANES):
        batch = chosen[block : block + LANES]
        for k in range(LANES):
            work.length[k], work.weight[k] = 0, 0.0
            if k < len(batch):
                begin, end = chains.offsets[batch[k]], chains.offsets[batch[k] + 1]
                work.first[k], work.length[k] = begin, end - begin
                work.weight[k] = chains.weights[batch[k]]
        count = _solve(batch, chains, factors, omega, work, into.unsafe)
        for k in range(LANES):
            if work.length[k] > 0:
                loss = work.log_z[k] if pointwise else omega * work.log_z[k]
                into.losses[batch[k]] = work.weight[k] * loss
        if pointwise:
            _add_pointwise(count, chains, factors, omega, work, into)
        else:
            for k in range(LANES):
                work.weight[k] *= omega
            _scatter(chains, work.alpha, work.beta, 1.0, work, into)
            scale(work.alpha, count, work.weight)
            add_pairs(work.alpha, work.psi, count, 1.0, work.pairs)
        take_pairs(work.pairs, factors.direct, into.rounder, into.pairs)


@compiled
def _allocate(longest: int, size: int, pointwise: bool) -> _Work:
    """Memory for batches of chains of at most that length."""
    shape, flat = (longest, size, LANES), (longest, LANES)
    alpha, psi, beta, gradient = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    ahead, behind = (np.empty_like(alpha), np.empty_like(alpha)) if pointwise else (alpha[:0], alpha[:0])
    first, length = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    evidence, gold = np.zeros(flat), np.zeros(flat, np.int64)
    weight, log_z, sum_w = np.zeros(LANES), np.zeros(LANES), np.zeros(LANES)
    return _Work(
        alpha, psi, beta, ahead, behind, gradient, np.empty(flat), evidence, gold, first, length, weight,
        log_z, sum_w, np.zeros((size, size, LANES)),
    )  # fmt: skip


@compiled(fastmath=SUMS)
def _solve(batch: Array, chains: Chains, factors: Factors, omega: float, work: _Work, unsafe: Array) -> int:
    """Forward and backward passes of a batch without its unsafe chains; returns its length."""
    k, count = 0, 0
    while k >= 0:  # again without the unsafe lane
        count = work.length.max()
        _gather(chains.rows, factors.table, work.first, work.length, count, work.psi)
        work.log_z[:] = 0.0
        k = _forward(count, work.length, work.psi, factors.transposed, work.alpha, work.inverse, work.log_z)
        if k < 0 and omega > 0.0:
            k = _subtract_gold(chains, factors.direct, work)
        if k < 0:
            _backward(count, work.length, work.psi, factors.direct, work.inverse, work.beta)
            if len(chains.node_weights) > 0:
                k = _gold(count, chains, omega, work)
        if k >= 0:
            unsafe[batch[k]] = True
            work.length[k], work.weight[k] = 0, 0.0
    return count


@compiled(fastmath=SUMS)
def _add_pointwise(
    count: int, chains: Chains, factors: Factors, omega: float, work: _Work, into: Gradient
) -> None:
    """Add the gradient of a batch for a loss with a pointwise term."""
    alpha, psi, beta, ahead, behind, gradient = work[:6]
    _posterior(alpha, beta, count, work.sum_w, omega, gradient)
    _evidence(count, factors, work)
    beta[:count] = 1.0
    _scatter(chains, gradient, beta, omega, work, into)
    scale(alpha, count, work.weight)
    add_pairs(alpha, behind, count, -1.0, work.pairs)
    scale(ahead, count, work.weight)
    add_pairs(ahead, psi, count, -1.0, work.pairs)
    for k in range(LANES):
        work.sum_w[k] += omega
    scale(alpha, count, work.sum_w)
    add_pairs(alpha, psi, count, 1.0, work.pairs)


@compiled
def _subtract_gold(chains: Chains, direct: Array, work: _Work) -> int:
    """log Z becomes log Z − F(y); returns the first unsafe lane, else −1."""
    labels, psi = chains.labels, work.psi
    for k in range(LANES):
        product, first = 1.0, work.first[k]  # of numbers up to 1
        for t in range(work.length[k]):
            y = labels[first + t]
            factor = psi[t, y, k]
            if t > 0:
                factor *= direct[labels[first + t - 1], y]
            if not factor > TINY:
                return k
            product *= factor
            if product < 1e-150:
                work.log_z[k] -= math.log(product)
                product = 1.0
        work.log_z[k] -= math.log(product)
    return -1


@compiled
def _gold(count: int, chains: Chains, omega: float, work: _Work) -> int:
    """Labels, weights, W, and the loss in place of log Z; returns an unsafe lane, else −1."""
    alpha, beta, evidence, log_z, sum_w = work.alpha, work.beta, work.evidence, work.log_z, work.sum_w
    for k in range(LANES):
        sum_w[k] = 0.0
        log_z[k] *= omega
        for t in range(work.length[k]):
            node = work.first[k] + t
            y, weight = chains.labels[node], chains.node_weights[node]
            work.gold[t, k], evidence[t, k] = y, weight
            sum_w[k] += weight
            p = alpha[t, y, k] * beta[t, y, k]
            if weight > 0.0:
                if not p > TINY:
                    return k
                log_z[k] -= weight * math.log(p)
        for t in range(work.length[k], count):
            evidence[t, k] = 0.0
    return -1
