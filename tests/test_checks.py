"""Checks of parameters: what counts as a number, an integer or a flag, and how others fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fuda import CRF, HMM, HMSVM, DataError, MarginalizedSVM
from fuda.checks import check_choice, is_flag, is_number, is_whole
from fuda.errors import short

LARGE = 10**400  # past all floats
WHOLE = [0, -3, LARGE, np.int8(4), np.uint64(2**63)]
NUMBERS = [0.5, -1e300, 5e-324, np.float32(0.5), np.float64(2), *WHOLE]
OTHERS = [None, "1", [1], 1j, np.complex128(1), np.array([1, 2])]
FLAGS = [True, False, np.bool_(True)]


def test_kinds_of_values():
    for value in NUMBERS:
        assert is_number(value) == (value is not LARGE)
        assert is_whole(value) == any(value is whole for whole in WHOLE)
        assert not is_flag(value)
    for value in (math.nan, math.inf, -math.inf, np.float64("nan"), *OTHERS, *FLAGS):
        assert not is_number(value)
        assert not is_whole(value)
    assert all(map(is_flag, FLAGS))
    assert not any(map(is_flag, OTHERS))


def test_bounds_belong_to_the_range():
    assert [is_whole(n, 1, 3) for n in range(5)] == [False, True, True, True, False]
    assert not is_number(np.float32(0), 1e-150)  # as a float32, the bound would be 0
    assert [is_number(x, 0, 1) for x in (-5e-324, 0, 0.0, 1, np.nextafter(1, 2))] == [0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    "model",
    [
        HMM(smoothing=10**400),
        HMM(smoothing=5e-324),
        HMM(smoothing=0),
        HMM(smoothing=math.nan),
        HMSVM(C=5e-324),
        HMSVM(C=10**400),
        MarginalizedSVM(C=5e-324),
        MarginalizedSVM(C=-1),
        CRF(l2=10**400),
        CRF(tol=np.complex128(1)),
    ],
    ids=str,
)
def test_numbers_out_of_range_are_refused(model):
    with pytest.raises(DataError, match=r"=.*: give a number (above 0, )?from"):
        model.fit([["a"]], [["A"]])


def test_choices():
    check_choice("kind", "a", ("a", "b"))
    with pytest.raises(DataError, match=r"kind=\['a'\]: choose one of a, b"):
        check_choice("kind", ["a"], ("a", "b"))


def test_values_nested_past_all_bounds_can_be_shown():
    value = 1.0
    for _ in range(100_000):
        value = {"a": value}
    assert short(value) == "a deeply nested dict"
