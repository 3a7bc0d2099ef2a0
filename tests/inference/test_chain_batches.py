"""The eight-lane loop against general inference, which is tested by itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda import inference
from fuda.inference.chain_batches import Chains, Factors, Gradient, chain_losses
from fuda.inference.exact_sums import rounder
from fuda.inference.simd_doubles import LANES


class Batch:
    """Random chains over a table of scores: offsets, the rows of each node, labels and weights."""

    def __init__(self, random, lengths, labels, channels, scale=1.0, rows=7):
        self.offsets = np.cumsum([0, *lengths])
        self.rows = random.integers(rows, size=(self.offsets[-1], channels)).astype(np.int32)
        self.scores = scale * random.normal(size=(rows, labels))
        self.transitions = scale * random.normal(size=(labels, labels))
        self.labels = random.integers(labels, size=self.offsets[-1])
        self.weights = random.choice([0.0, 1.0, 2.5], size=len(lengths))
        self.node_weights = random.choice([0.0, 1.0, 0.4], size=self.offsets[-1])

    def lanes(self, omega, pointwise, chosen=None):
        """Loss, gradients of table and transitions, and the chains left out."""
        top, top_pair = self.scores.max(axis=1), self.transitions.max()
        table, direct = np.exp(self.scores - top[:, None]), np.exp(self.transitions - top_pair)
        table_gradient, pairs = np.zeros_like(table), np.zeros_like(direct)
        unsafe = np.zeros(len(self.weights), dtype=bool)
        order = np.argsort(np.diff(self.offsets), kind="stable") if chosen is None else chosen
        transposed = np.ascontiguousarray(direct.T)
        node_weights = self.node_weights if pointwise else np.zeros(0)
        chains = Chains(self.offsets, self.rows, self.labels, node_weights, self.weights)
        losses = np.zeros(len(self.weights))
        into = Gradient(losses, table_gradient, pairs, unsafe, rounder(10.0 * self.offsets[-1]))
        chain_losses(order, chains, Factors(table, direct, transposed), omega, into)
        return losses.sum(), table_gradient, pairs, unsafe

    def truth(self, omega, pointwise, without):
        """The same by the definition: one inference, and one given each label."""
        value, table_gradient = 0.0, np.zeros_like(self.scores)
        pairs = np.zeros_like(self.transitions)
        for i, (a, b) in enumerate(itertools.pairwise(self.offsets.tolist())):
            if without[i]:
                continue
            rows, labels = self.rows[a:b], self.labels[a:b]
            node_weights = self.node_weights[a:b] if pointwise else np.zeros(b - a)
            scores = self.scores[rows].sum(axis=1)
            conditional = np.repeat(scores[None], b - a + 1, axis=0)  # the last is given nothing
            for t, label in enumerate(labels):
                conditional[t, t] = -np.inf
                conditional[t, t, label] = scores[t, label]
            copies = np.arange(b - a + 2) * (b - a)
            graph = inference.Graph(copies)
            log_z, node, edge = inference.marginals(
                graph, conditional.reshape(-1, scores.shape[1]), self.transitions, edges=True
            )
            shares = np.append(-node_weights, omega + node_weights.sum()) * self.weights[i]
            gold = scores[np.arange(b - a), labels].sum() + self.transitions[labels[:-1], labels[1:]].sum()
            observed = omega * self.weights[i]
            value += float(shares @ log_z) - observed * float(gold)
            node = np.tensordot(shares, node.reshape(len(shares), b - a, -1), 1)
            node[np.arange(b - a), labels] -= observed
            for column in rows.T:
                np.add.at(table_gradient, column, node)
            edge = edge.reshape(len(shares), b - a, *pairs.shape).sum(axis=1)
            pairs += np.tensordot(shares, edge, 1)
        return value, table_gradient, pairs


def check(batch: Batch, omega: float, pointwise: bool) -> np.ndarray:
    value, table_gradient, pairs, unsafe = batch.lanes(omega, pointwise)
    expected = batch.truth(omega, pointwise, unsafe)
    size = max(1.0, np.abs(batch.scores).max() * batch.offsets[-1])
    assert value == pytest.approx(expected[0], rel=1e-10, abs=1e-11 * size)
    np.testing.assert_allclose(table_gradient, expected[1], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(pairs, expected[2], rtol=1e-8, atol=1e-9)
    return unsafe


LOSSES = [(1.0, False), (0.0, True), (2.5, True)]


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 40), min_size=1, max_size=3 * LANES),
    st.integers(1, 12),
    st.integers(1, 4),
    st.sampled_from([0.1, 3.0, 20.0]),
    st.sampled_from(LOSSES),
)
def test_any_batch(seed, lengths, labels, channels, scale, loss):
    check(Batch(np.random.default_rng(seed), lengths, labels, channels, scale), *loss)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 9), min_size=1, max_size=2 * LANES),
    st.integers(1, 4),
    st.sampled_from([60.0, 100.0, 200.0, 400.0, 1e4]),
    st.sampled_from(LOSSES),
)
def test_extreme_scores(seed, lengths, labels, scale, loss):
    """What the lanes keep is right, whatever they leave out."""
    check(Batch(np.random.default_rng(seed), lengths, labels, 2, scale), *loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("labels", [1, 2, 5, 9])
def test_bits_do_not_depend_on_lanes_and_neighbours(loss, labels):
    """Each chain by itself has the loss that it has among others, and gradients add up exactly."""
    random = np.random.default_rng(labels)
    batch = Batch(random, random.integers(1, 30, size=21), labels, 2, scale=2.0)
    value, *gradients, _ = batch.lanes(*loss)
    alone = [batch.lanes(*loss, chosen=np.array([i])) for i in range(21)]
    assert value == pytest.approx(sum(part[0] for part in alone), rel=1e-15)
    for together, *parts in zip(gradients, *([table, pairs] for _, table, pairs, _ in alone), strict=True):
        np.testing.assert_array_equal(sum(parts), together)


@pytest.mark.parametrize("loss", LOSSES)
def test_only_chains_that_are_not_safe_are_left_out(loss):
    """A chain is left out alone: the others of its eight are done."""
    batch = Batch(np.random.default_rng(0), [5, 3, 4, 4, 2, 6, 5, 5, 7, 3, 1], 3, 2, rows=9)
    batch.rows[batch.rows == 8] = 0
    batch.scores[8] = [600.0, 0.0, 0.0]
    for i in (0, 4, 9):
        batch.rows[batch.offsets[i] + 1] = 8
    unsafe = check(batch, *loss)
    assert np.flatnonzero(unsafe).tolist() == [0, 4, 9]


def test_all_chains_left_out():
    batch = Batch(np.random.default_rng(0), [3] * 10, 2, 1)
    batch.transitions[:] = [[0.0, -1e4], [-1e4, -1e4]]
    value, table_gradient, pairs, unsafe = batch.lanes(1.0, True)
    assert unsafe.all()
    assert value == 0
    assert not table_gradient.any()
    assert not pairs.any()


def test_a_rare_label_is_left_to_others():
    """The pointwise loss of a label of probability 1e−120: its logarithm would be lost."""
    batch = Batch(np.random.default_rng(0), [4, 4], 3, 1, rows=3)
    batch.labels[:] = 0
    batch.labels[1] = 2
    batch.rows[:] = 0
    batch.rows[1] = 1
    batch.scores[0] = 0.0
    batch.scores[1] = [0.0, 0.0, -210.0]
    batch.transitions[:] = 0.0
    batch.transitions[2] = -80.0
    batch.weights[:] = 1.0
    batch.node_weights[:] = 1.0
    assert check(batch, 0.0, True).tolist() == [True, False]
    assert not check(batch, 1.0, False).any()
    batch.node_weights[1] = 0.0
    assert not check(batch, 0.0, True).any()
