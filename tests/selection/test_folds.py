from __future__ import annotations

import numpy as np
import pytest

from fuda.errors import DataError
from fuda.selection import splits
from fuda.selection.folds import cut


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("seed", [None, 0, 7])
@pytest.mark.parametrize(("count", "folds"), [(7, 3), (10, 5), (4, 4)])
def test_every_structure_is_tested_once_by_a_model_that_has_not_seen_it(shuffle, seed, count, folds):
    pairs = splits(count, folds, seed, shuffle=shuffle)
    assert len(pairs) == folds
    assert sorted(np.concatenate([split.test for split in pairs])) == list(range(count))
    for train, test in pairs:
        assert sorted([*train, *test]) == list(range(count))
        assert count // folds <= len(test) <= -(-count // folds)


def test_folds_are_stretches_from_a_place_by_the_seed():
    assert [split.test.tolist() for split in splits(7, 3, None)] == [[0, 1, 2], [3, 4], [5, 6]]
    for seed in range(5):
        gaps = [np.sum(np.diff(split.test) > 1) for split in splits(40, 4, seed)]
        # One fold may be the end and the beginning.
        assert sorted(gaps) in ([0, 0, 0, 0], [0, 0, 0, 1])


@pytest.mark.parametrize("shuffle", [False, True])
def test_folds_depend_on_the_seed_alone(shuffle):
    first, again, other = (splits(40, 4, seed, shuffle=shuffle) for seed in (1, 1, 2))
    assert [s.test.tolist() for s in first] == [s.test.tolist() for s in again]
    assert [s.test.tolist() for s in first] != [s.test.tolist() for s in other]


def test_folds_are_shuffled_where_asked():
    assert all(np.any(np.diff(split.test) > 1) for split in splits(40, 4, shuffle=True))


@pytest.mark.parametrize("folds", [1, 0, 6])
def test_there_are_at_least_two_folds_and_no_more_than_structures(folds):
    with pytest.raises(DataError, match=f"folds={folds}: there are 5 structures"):
        splits(5, folds)


def test_sizes_are_nested_and_keep_the_test_part():
    split = splits(100, 5)[0]
    small, large = cut(split, 10), cut(split, 30)
    assert set(small.train) < set(large.train) < set(split.train)
    assert (len(small.train), len(large.train)) == (10, 30)
    assert (small.test == split.test).all()
    assert (cut(split, 1000).train == split.train).all()
