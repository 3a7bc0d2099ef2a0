"""Exchange clustering: the objective, that it never decreases, and that no single move helps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from fuda.vectors.exchange import bit_codes, exchanged


def objective(pairs: np.ndarray, classes) -> float:
    """F by definition, from the counts of words."""
    member = np.eye(max(classes) + 1)[list(classes)]
    counts = member.T @ pairs @ member

    def g(n):
        return float(np.where(n > 0, n * np.log(np.maximum(n, 1)), 0.0).sum())

    return g(counts) - g(counts.sum(axis=0)) - g(counts.sum(axis=1))


def random_pairs(seed: int, size: int = 9) -> np.ndarray:
    random = np.random.default_rng(seed)
    pairs = random.poisson(0.8, (size + 1, size + 1))
    pairs[np.arange(size), random.permutation(size)] += 1  # every word occurs
    pairs[size, size] = 0
    return pairs


@pytest.mark.parametrize("seed", range(20))
def test_the_objective_never_decreases_and_is_that_of_the_classes(seed):
    pairs = random_pairs(seed)
    classes, counts, objectives = exchanged(sp.csr_matrix(pairs), 3)
    assert np.all(np.diff(objectives) >= -1e-6)
    assert objectives[-1] == pytest.approx(objective(pairs, classes))
    member = np.eye(4, dtype=int)[classes]
    np.testing.assert_array_equal(counts, member.T @ pairs @ member)


@pytest.mark.parametrize("seed", range(10))
def test_no_single_move_improves_the_result(seed):
    pairs = random_pairs(seed)
    classes, _, objectives = exchanged(sp.csr_matrix(pairs), 3, rounds=100)
    for word, other in itertools.product(range(len(classes) - 1), range(3)):
        if np.sum(classes == classes[word]) > 1:
            moved = classes.copy()
            moved[word] = other
            assert objective(pairs, moved) <= objectives[-1] + 1e-6


def test_the_best_classes_of_all_are_found_where_words_are_alike():
    """Two kinds of words that alternate: brute force over all divisions gives the same."""
    kinds = [0, 1, 0, 1, 0, 1]
    pairs = np.array([[5 * (a != b) for b in kinds] + [1] for a in kinds] + [[1] * 6 + [0]])
    classes, _, objectives = exchanged(sp.csr_matrix(pairs), 2)
    best = max(objective(pairs, [0, *rest, 2]) for rest in itertools.product([0, 1], repeat=5) if any(rest))
    assert objectives[-1] == pytest.approx(best)
    assert len({*classes[:6:2]}) == len({*classes[1:6:2]}) == 1


@pytest.mark.parametrize("n_classes", [1, 2, 5, 50])
def test_bit_codes_are_leaves_of_a_binary_tree(n_classes):
    pairs = sp.csr_matrix(random_pairs(3))
    classes, counts, _ = exchanged(pairs, n_classes)
    paths = bit_codes(counts)
    assert len(paths) == len(set(paths)) == min(n_classes, 9) == classes.max()
    assert sum(2.0 ** -len(code) for code in paths) == 1.0
    assert not any(a != b and b.startswith(a) for a in paths for b in paths if a)


def test_the_first_merge_costs_least():
    counts = exchanged(sp.csr_matrix(random_pairs(7)), 5)[1]
    paths = bit_codes(counts)
    longest = max(map(len, paths))
    siblings = {code[:-1] for code in paths if len(code) == longest}

    def after(i, j):
        return objective(counts, [j if k == i else k for k in range(6)])

    best = max(itertools.combinations(range(5), 2), key=lambda pair: after(*pair))
    assert paths[best[0]][:-1] == paths[best[1]][:-1]
    assert siblings
