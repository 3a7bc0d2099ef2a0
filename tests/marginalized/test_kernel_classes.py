"""Kernel classes: points are numbered by features and norms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fuda import MarginalizedPerceptron
from fuda.data.tables import Csr
from fuda.kernels import RBF, Delta, Polynomial
from fuda.kernels.points import Points
from fuda.marginalized import kernel_classes
from fuda.marginalized.kernel_classes import KernelClasses, Types


@pytest.mark.parametrize("collide", [False, True])
def test_points_are_numbered_by_features_and_norms(monkeypatch, collide):
    if collide:  # the first time, all points have the same hash
        mixed, calls = kernel_classes._mixed, []
        monkeypatch.setattr(
            kernel_classes,
            "_mixed",
            lambda bits: (calls.append(1), mixed(bits) * np.uint64(len(calls) > 2))[1],
        )
    rng = np.random.default_rng(0)
    matrix = sp.csr_matrix(rng.integers(-1, 3, (400, 5)) * (rng.random((400, 5)) < 0.4) * 0.5)
    norms = rng.choice([0.0, 1.0, np.nan, np.inf], 400)
    points = Points(matrix, np.arange(400), np.zeros(400), [None] * 400)
    numbers, members = kernel_classes._number_rows(points, [norms])
    rows = [(*row, repr(norm)) for row, norm in zip(matrix.toarray().tolist(), norms, strict=True)]
    assert len(set(zip(numbers.tolist(), rows, strict=True))) == len(set(rows)) == len(members)
    assert numbers[members].tolist() == list(range(len(members)))
    assert (np.diff(members) > 0).all()  # by first occurrence


@pytest.mark.parametrize("kernel", [Polynomial(2).normalized(), RBF(0.3) + Delta()])
def test_few_observations_have_the_same_values_by_feature(kernel):
    rng = np.random.default_rng(1)
    many, few = (sp.random(n, width, 0.3, "csr", random_state=rng) for n, width in ((30, 12), (4, 15)))
    sources = Types(kernel, Points(many, np.arange(30), np.zeros(30), [None] * 30))
    ids, beyond = np.array([40, 3, 41, 7]), rng.random(4)
    usual = Types(kernel, Points(few, ids, beyond, [None] * 4))
    by_feature = Types(kernel, Points(Csr.of(few), ids, beyond, [None] * 4))
    np.testing.assert_array_equal(by_feature.diagonal, usual.diagonal)
    np.testing.assert_array_equal(sources.gram(by_feature), sources.gram(usual))


def test_codes_of_sources_come_first(monkeypatch):
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", 0)
    kernel, rng = Polynomial(2), np.random.default_rng(2)

    def types(rows, first):
        ids = first + np.arange(len(rows))
        return Types(kernel, Points(sp.csr_matrix(rows), ids, np.zeros(len(rows)), [None] * len(rows)))

    sources = types(rng.integers(0, 2, (100, 3)), 0)
    numbered = [
        KernelClasses(sources, types(rng.integers(0, top, (80, 3)), 100), frequent=[3, 7]) for top in (2, 3)
    ]
    assert all(one.is_shared for one in numbered)
    assert numbered[0].counts < numbered[1].counts
    np.testing.assert_array_equal(*(one.sources for one in numbered))
    assert numbered[0].sources[[3, 7]].tolist() == [0, 1]
    assert sorted({*numbered[0].sources.tolist()}) == list(range(numbered[0].sources.max() + 1))


def test_values_of_observations_are_kept_for_the_next_sentence():
    asked: list[str] = []

    def kernel(a: str, b: str) -> float:
        asked.extend((a, b))
        return 1.0 / (1 + abs(ord(a) - ord(b)))

    X, y = [list("abca"), list("cab")], [list("PQRP"), list("RPQ")]
    model = MarginalizedPerceptron(kernel=kernel, mixing=1.0, calibrate=False).fit(X, y)
    new = [list("abd"), list("dbe"), list("ed")]
    together = model.decision_scores(new)
    asked.clear()
    again = MarginalizedPerceptron(kernel=kernel, mixing=1.0, calibrate=False).fit(X, y)
    for sentence, expected in zip(new, together, strict=True):
        asked.clear()
        np.testing.assert_array_equal(again.decision_scores([sentence])[0], expected)
        assert ("e" in asked) == (sentence == list("dbe"))
    assert asked == []
