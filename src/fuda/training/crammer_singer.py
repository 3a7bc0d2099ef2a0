"""Dual coordinate ascent for the multi-class SVM over the positions of one structure.

Every position t is an example of its label y_t. With the kernel K(τ,t,ρ,σ), the SVM of Crammer and
Singer (2001) is

    primal   min ½‖w‖² + Σ_t C_t ξ_t,    ξ_t = max_σ [σ ≠ y_t] + S(t,σ) − S(t,y_t)
    dual     max Σ_t α_t(y_t) − ½‖w‖²,   Σ_σ α_t(σ) = 0,   α_t(σ) ≤ C_t [σ = y_t],
             ‖w‖² = Σ α_t(σ) S(t,σ).

With g_t(σ) = S(t,σ) − [σ = y_t], primal and dual differ by a sum over positions of

    gap_t = C_t (max_σ g_t(σ) − g_t(y_t)) + Σ_σ α_t(σ) g_t(σ) ≥ 0.

**One position.** As a function of its own coefficients a alone, the dual is at least a
constant minus

    Σ_σ ½ h_σ (a_σ − α_σ)² + g_σ (a_σ − α_σ),     h_σ = Σ_ρ |K(t,t,σ,ρ)|,

with equality when the label kernel is the identity, as h is then the diagonal of K(t,t,·,·), which
is zero elsewhere. The best a has a_σ = min(C [σ = y], (λ − b_σ) / h_σ) with b = g − h α, where λ
makes their sum 0. That sum increases with λ and is linear between the λ at which a coefficient
reaches its bound: with these sorted, the piece in which it crosses 0 gives λ exactly.
"""

from __future__ import annotations

import numpy as np

from fuda.runtime.compiled import compiled

Array = np.ndarray

# Curvatures are at least this times the largest one: that slows the ascent but never stops it.
_FLAT = 1e-9


@compiled
def duality_gaps(scores: Array, alpha: Array, labels: Array, bounds: Array) -> Array:
    """(T,) the duality gap of each position, gap_t; 0 where its label is −1."""
    gaps = np.zeros(len(labels))
    for t in range(len(labels)):
        if labels[t] >= 0:
            largest, total = -np.inf, 0.0
            for s in range(scores.shape[1]):
                g = scores[t, s] - (s == labels[t])
                largest = max(largest, g)
                total += alpha[t, s] * g
            gaps[t] = bounds[t] * (largest - scores[t, labels[t]] + 1.0) + total
    return gaps


@compiled
def ascend(
    kappa: Array,
    prior: Array,
    label_gram: Array,
    labels: Array,
    bounds: Array,
    least: float,
    order: Array,
    scores: Array,
    alpha: Array,
) -> None:
    """Maximize over each position in `order` whose duality gap is above `least`.

    Parameters
    ----------
    kappa : (T, T, L) array, or (T, T, 1) for all labels
        κ(τ,t,σ).
    prior : (T, L) array
        The priors of the labels.
    label_gram : (L, L) array
        The kernel between labels.
    labels : (T,) array of int
        The labels y_t, −1 where unknown.
    bounds : (T,) array
        C_t.
    least : float
        The largest duality gap of a position that is left as it is.
    order : array of int
        Positions.
    scores, alpha : (T, L) arrays
        S and α, both updated in place.
    """
    size, stride = len(label_gram), min(1, kappa.shape[2] - 1)
    curvature, new, gamma = np.empty(size), np.empty(size), np.empty(size)
    for t in order:
        one = slice(t, t + 1)
        if duality_gaps(scores[one], alpha[one], labels[one], bounds[one])[0] <= least:
            continue
        for s in range(size):
            total = 0.0
            for r in range(size):
                total += prior[t, r] * abs(label_gram[r, s])
            curvature[s] = prior[t, s] * total * kappa[t, t, s * stride]
        _best(scores[t], alpha[t], curvature, labels[t], bounds[t], new)
        for s in range(size):
            gamma[s] = 0.0
        for r in range(size):
            change = (new[r] - alpha[t, r]) * prior[t, r]
            for s in range(size):
                gamma[s] += change * label_gram[r, s]
            alpha[t, r] = new[r]
        for i in range(len(labels)):
            for s in range(size):
                scores[i, s] += kappa[t, i, s * stride] * prior[i, s] * gamma[s]


@compiled
def _best(scores: Array, alpha: Array, curvature: Array, label: int, bound: float, new: Array) -> None:
    """Compute the best coefficients of one position into `new`; `curvature` is h."""
    size = len(scores)
    flat = _FLAT * max(curvature.max(), 1.0 / bound)
    start, breakpoints = np.empty(size), np.empty(size)
    for s in range(size):
        curvature[s] = max(curvature[s], flat)
        start[s] = scores[s] - (s == label) - curvature[s] * alpha[s]
        breakpoints[s] = start[s] + curvature[s] * bound * (s == label)
    order = np.argsort(breakpoints)
    # λ slope − level is the sum of the coefficients within bounds, `full` that of those at bounds.
    slope, level, full = 0.0, 0.0, bound
    multiplier = 0.0
    for k in range(size - 1, -1, -1):
        s = order[k]
        slope += 1.0 / curvature[s]
        level += start[s] / curvature[s]
        if s == label:
            full = 0.0
        multiplier = (level - full) / slope
        if k == 0 or multiplier >= breakpoints[order[k - 1]]:
            break
    total = 0.0
    for s in range(size):
        if s != label:
            new[s] = min(0.0, (multiplier - start[s]) / curvature[s])
            total += new[s]
    new[label] = -total
