"""The pointwise loss on trees, in O(T L²): the evidence of each label about all other nodes.

L₀ = −Σ_t w_t log p_t(y_t), and ∂L₀/∂θ = Σ_t w_t (E[φ] − E[φ | y_t]). Given y_t the other labels
follow the posterior transitions P(b|a) = p_{pt}(a, b) / p_p(a) downwards and P(a|b) = p_{pt}(a, b)
/ p_t(b) upwards, so that the evidence e_t(b) = w_t [b = y_t] of all nodes is propagated together.
With v_t the evidence about y_t from node t and its descendants, and x_t that from all other nodes,

    v_p(a) = e_p(a) + Σ_{children t} m_t(a),      m_t(a) = Σ_b P(a|b) v_t(b)
    x_t(b) = Σ_a P(b|a) (x_p(a) + v_p(a) − m_t(a)),      x = 0 at a root

    ∂L₀/∂s_t(b)     = W p_t(b) − v_t(b) − x_t(b),      W = Σ w over the structure
    ∂L₀/∂A_t(a, b)  = W p_{pt}(a, b) − (x_p(a) + v_p(a) − m_t(a)) P(b|a) − P(a|b) v_t(b).

On a chain this is u and v of `fuda.inference.chain_batches`. In a forest W counts the nodes of the
same tree only, since the trees of a forest are independent.
"""

from __future__ import annotations

import numpy as np

from fuda.data.graph import Array, Forest
from fuda.runtime.compiled import compiled


@compiled
def spread_evidence(
    forest: Forest, last: int, labels: Array, weights: Array, node: Array, edge: Array, node_gradient: Array
) -> None:
    """Compute the gradient of the pointwise loss on a block of structures.

    Parameters
    ----------
    forest : Forest
        The block's structures.
    last : int
        The structure after the block's last one.
    labels, weights : (N,) ndarray
        y and w.
    node : (N, L) ndarray
        The node marginals p_t.
    edge : (N, L, L) ndarray
        The edge marginals p_{pt}, overwritten by ∂L₀/∂A.
    node_gradient : (N, L) ndarray
        Receives ∂L₀/∂s.
    """
    first, offsets, parents, order = forest
    size = node.shape[1]
    begin, end = offsets[first], offsets[last]
    up = np.zeros((end - begin, size))  # v
    message = np.zeros((end - begin, size))  # m
    outside = np.zeros((end - begin, size))  # x
    weight = np.zeros(end - begin)  # W, summed up to the roots and passed down
    for j in range(end - 1, begin - 1, -1):
        t, p = order[j], parents[order[j]]
        if weights[t] > 0.0:
            up[t - begin, labels[t]] += weights[t]
            weight[t - begin] += weights[t]
        if p < 0:
            continue
        for b in range(size):
            share = up[t - begin, b] / node[t, b] if node[t, b] > 0.0 else 0.0
            if share > 0.0:
                for a in range(size):
                    message[t - begin, a] += edge[t, a, b] * share
        for a in range(size):
            up[p - begin, a] += message[t - begin, a]
        weight[p - begin] += weight[t - begin]
    for j in range(begin, end):
        t, p = order[j], parents[order[j]]
        if p >= 0:
            weight[t - begin] = weight[p - begin]
            total = weight[t - begin]
            for a in range(size):
                above = outside[p - begin, a] + up[p - begin, a] - message[t - begin, a]
                share = above / node[p, a] if node[p, a] > 0.0 else 0.0
                for b in range(size):
                    both = edge[t, a, b]
                    outside[t - begin, b] += share * both
                    evidence = up[t - begin, b] / node[t, b] if node[t, b] > 0.0 else 0.0
                    edge[t, a, b] = both * (total - share - evidence)
        for b in range(size):
            node_gradient[t, b] = weight[t - begin] * node[t, b] - up[t - begin, b] - outside[t - begin, b]
