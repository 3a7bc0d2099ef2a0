"""Codes: points are numbered by features and norms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fuda.kernels.points import Points
from fuda.marginalized import codes


@pytest.mark.parametrize("collide", [False, True])
def test_points_are_numbered_by_features_and_norms(monkeypatch, collide):
    if collide:  # the first time, all points have the same hash
        mixed, calls = codes._mixed, []
        monkeypatch.setattr(
            codes, "_mixed", lambda bits: (calls.append(1), mixed(bits) * np.uint64(len(calls) > 2))[1]
        )
    rng = np.random.default_rng(0)
    matrix = sp.csr_matrix(rng.integers(-1, 3, (400, 5)) * (rng.random((400, 5)) < 0.4) * 0.5)
    norms = rng.choice([0.0, 1.0, np.nan, np.inf], 400)
    points = Points(matrix, np.arange(400), np.zeros(400), [None] * 400)
    numbers, members = codes._number_rows(points, [norms])
    rows = [(*row, repr(norm)) for row, norm in zip(matrix.toarray().tolist(), norms, strict=True)]
    assert len(set(zip(numbers.tolist(), rows, strict=True))) == len(set(rows)) == len(members)
    assert numbers[members].tolist() == list(range(len(members)))
