"""Files of CRFs with few weights that are not 0."""

from __future__ import annotations

import numpy as np
import pytest

import fuda
from fuda import CRF, DataError

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "left", "Rome"]]
Y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O", "LOC"]]


@pytest.mark.parametrize("pairs", [False, True])
def test_only_weights_that_are_not_zero_are_stored(tmp_path, pairs):
    dense, sparse = (CRF(l1=l1, pair_features=pairs).fit(X, Y) for l1 in (0.0, 0.3))
    assert set(dense._arrays()) == {"weights", "curvature"}
    assert set(sparse._arrays()) == {"used", "values", "curvature"}
    for model in (dense, sparse):
        model.save(tmp_path / "m.fuda")
        again = fuda.load(tmp_path / "m.fuda")
        assert (again.weights_ == model.weights_).all()
        assert again.predict(X).tolist() == model.predict(X).tolist()
        again.save(tmp_path / "again.fuda")
        assert (tmp_path / "m.fuda").read_bytes() == (tmp_path / "again.fuda").read_bytes()
    saved = dense.weights_.nbytes - sparse.weights_[sparse.weights_ != 0].nbytes * 2
    dense.save(tmp_path / "d.fuda")
    sparse.save(tmp_path / "s.fuda")
    assert (tmp_path / "d.fuda").stat().st_size - (tmp_path / "s.fuda").stat().st_size > saved - 500


def test_weights_that_do_not_fit_are_refused():
    model = CRF(l1=0.3).fit(X, Y)
    arrays = model._arrays()
    size = len(model.weights_)
    for used, values in (
        (arrays["used"][::-1], arrays["values"]),
        (arrays["used"], arrays["values"][:-1]),
        (np.array([0, 0]), np.ones(2)),
        (np.array([-1, 2]), np.ones(2)),
        (np.array([size]), np.ones(1)),
        (np.array([1.0]), np.ones(1)),
    ):
        with pytest.raises(DataError):
            model._restore({"used": used, "values": values}, [], {})
