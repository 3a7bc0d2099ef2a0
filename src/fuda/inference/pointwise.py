"""The pointwise loss on trees, in O(T L²): what each observed label says of all other nodes.

L₀ = −Σ_t w_t log p_t(y_t), and ∂L₀/∂θ = Σ_t w_t (E[φ] − E[φ | y_t]). Given y_t the other labels follow the
posterior transitions P(b|a) = p_{pt}(a, b) / p_p(a) downwards and P(a|b) = p_{pt}(a, b) / p_t(b) upwards, so
that the evidence e_t(b) = w_t [b = y_t] of all nodes travels together. With v_t what node t and its
descendants say of y_t, and x_t what comes from everywhere else,

    v_p(a) = e_p(a) + Σ_{children t} m_t(a),      m_t(a) = Σ_b P(a|b) v_t(b)
    x_t(b) = Σ_a P(b|a) (x_p(a) + v_p(a) − m_t(a)),      x = 0 at a root

    ∂L₀/∂s_t(b)     = W p_t(b) − v_t(b) − x_t(b),      W = Σ w over the structure
    ∂L₀/∂A_t(a, b)  = W p_{pt}(a, b) − (x_p(a) + v_p(a) − m_t(a)) P(b|a) − P(a|b) v_t(b).

On a chain this is u and v of `fuda.inference.chain_batches`. In a forest W counts the nodes of the same
tree only, since the trees of a forest are independent.
"""

from __future__ import annotations

import numpy as np

from fuda.compiled import compiled
from fuda.data.graph import Forest

Array = np.ndarray


@compiled
def spread_evidence(
    forest: Forest, last: int, labels: Array, weights: Array, node: Array, edge: Array, node_gradient: Array
) -> None:
    """∂L₀/∂s into `node_gradient`; `edge` (N, L, L) comes in as edge marginals and leaves as ∂L₀/∂A."""
    first, offsets, parents, order = forest
    size = node.shape[1]
    begin, end = offsets[first], offsets[last]
    up = np.zeros((end - begin, size))  # v
    message = np.zeros((end - begin, size))  # m
    outside = np.zeros((end - begin, size))  # x
    mass = np.zeros(end - begin)  # W, collected at the roots and handed down
    for j in range(end - 1, begin - 1, -1):
        t = order[j]
        if weights[t] > 0.0:
            up[t - begin, labels[t]] += weights[t]
            mass[t - begin] += weights[t]
        p = parents[t]
        if p < 0:
            continue
        for b in range(size):
            share = up[t - begin, b] / node[t, b] if node[t, b] > 0.0 else 0.0
            if share > 0.0:
                for a in range(size):
                    message[t - begin, a] += edge[t, a, b] * share
        for a in range(size):
            up[p - begin, a] += message[t - begin, a]
        mass[p - begin] += mass[t - begin]
    for j in range(begin, end):
        t = order[j]
        p = parents[t]
        if p >= 0:
            mass[t - begin] = mass[p - begin]
            total = mass[t - begin]
            for a in range(size):
                above = outside[p - begin, a] + up[p - begin, a] - message[t - begin, a]
                share = above / node[p, a] if node[p, a] > 0.0 else 0.0
                for b in range(size):
                    both = edge[t, a, b]
                    outside[t - begin, b] += share * both
                    said = up[t - begin, b] / node[t, b] if node[t, b] > 0.0 else 0.0
                    edge[t, a, b] = both * (total - share - said)
        for b in range(size):
            node_gradient[t, b] = mass[t - begin] * node[t, b] - up[t - begin, b] - outside[t - begin, b]
