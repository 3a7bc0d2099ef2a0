"""Chains of labels: marginals and transitions both ways, from the start forward."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuda.marginalized.recursions.chain_prior import chain
from marginalized_oracle import labeling_probability


def random_rows(rng, *shape):
    """Distributions with many zeros."""
    rows = rng.random(shape) * (rng.random(shape) < 0.6)
    rows[..., 0] += rows.sum(axis=-1) == 0.0
    return rows / rows.sum(axis=-1, keepdims=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 3))
def test_transitions_both_ways_equal_those_of_all_labelings(seed, size, labels):
    rng = np.random.default_rng(seed)
    start, steps = random_rows(rng, labels), random_rows(rng, size - 1, labels, labels)
    node, edge = np.zeros((size, labels)), np.zeros((size, labels, labels))
    for y in itertools.product(range(labels), repeat=size):
        probability = labeling_probability((start, steps), y)
        for t in range(size):
            node[t, y[t]] += probability
            if t > 0:
                edge[t, y[t - 1], y[t]] += probability
    computed = chain(start, steps)
    np.testing.assert_allclose(computed.marginals, node, atol=1e-12)
    for t in range(size):
        possible = node[t][:, None] > 0.0
        before = np.divide(edge[t].T, node[t][:, None], where=possible, out=np.zeros((labels, labels)))
        np.testing.assert_allclose(computed.before[t], before, atol=1e-12)
        after = np.where(possible, steps[t], 0.0) if t + 1 < size else np.zeros((labels, labels))
        np.testing.assert_allclose(computed.after[t], after, atol=1e-12)
