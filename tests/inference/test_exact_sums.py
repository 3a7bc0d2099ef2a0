"""Rounded terms add up to the same bits in any order and any division."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuda.inference.exact_sums import rounded, rounded_number, rounder, total

TERMS = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=60)


@given(TERMS, st.randoms(use_true_random=False), st.integers(1, 5))
def test_neither_order_nor_division_matters(terms, random, parts):
    by = rounder(sum(map(abs, terms)))
    rounded_terms = [rounded(x, by) for x in terms]
    exact = sum(map(Fraction, rounded_terms))
    random.shuffle(rounded_terms)
    sums = [sum(rounded_terms[k::parts]) for k in range(parts)]
    assert Fraction(sum(rounded_terms)) == exact
    assert Fraction(sum(sums)) == exact


@given(TERMS)
def test_what_is_lost_is_below_the_last_digit_of_the_bound(terms):
    bound = sum(map(abs, terms)) + 1e-3
    by, unit = rounder(bound), 2.0 ** (math.ceil(math.log2(bound)) - 52)
    result = rounded(np.array(terms), by)
    assert (2 * result / unit == np.rint(2 * result / unit)).all()
    assert np.abs(result - terms).max() <= unit
    assert [rounded_number(x, by) for x in terms] == result.tolist()


def test_nothing_is_rounded_by_0():
    assert rounded(0.1, 0.0) == rounded_number(0.1, 0.0) == 0.1


def test_no_terms_have_a_bound_too():
    assert rounded(0.0, rounder(0.0)) == 0.0


def test_total_is_rounded_once():
    assert total(np.array([1e16, 1.0, -1e16])) == 1.0
    assert total(np.array([np.inf, 1.0])) == np.inf
    assert total(np.array([1e308, 1e308])) == np.inf
    assert math.isnan(total(np.array([np.inf, -np.inf])))
