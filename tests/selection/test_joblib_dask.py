"""Cross-validation and grid search by scikit-learn, over the workers of a Dask cluster."""

from __future__ import annotations

import joblib
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from fuda import CRF, HMM, Auto, MarginalizedPerceptron
from usage_cases import usage

distributed = pytest.importorskip("distributed", reason="Dask (fuda[cluster]) is not installed")

DATA = usage()
X, Y = DATA.X[:24], DATA.y[:24]


@pytest.fixture
def backend(cluster):
    with (
        distributed.Client(cluster, set_as_default=False) as client,
        client.as_current(),
        joblib.parallel_config(backend="dask", client=client),
    ):
        yield


@pytest.mark.parametrize(
    "model",
    [CRF(tol=0.01, n_jobs=1), MarginalizedPerceptron(epochs=2, mixing=0.5, calibrate=False, n_jobs=1)],
)
def test_cross_validation(backend, model):
    there = cross_val_score(model, X, Y, cv=2)
    with joblib.parallel_config(backend="sequential"):
        here = cross_val_score(model, X, Y, cv=2)
    assert there.tolist() == here.tolist()


def test_grid_search(backend):
    search = GridSearchCV(CRF(tol=0.1, n_jobs=1), {"l2": [0.1, 10.0]}, cv=2).fit(X, Y)
    there = search.cv_results_["mean_test_score"].tolist()
    with joblib.parallel_config(backend="sequential"):
        search.fit(X, Y)
    assert search.cv_results_["mean_test_score"].tolist() == there


def test_auto(backend):
    """Candidates are compared by the workers, with the same results."""
    candidates = {"crf": CRF(tol=0.1), "hmm": HMM()}
    there = Auto(candidates=candidates).fit(X, Y)
    with joblib.parallel_config(backend="sequential"):
        here = Auto(candidates=candidates, n_jobs=1).fit(X, Y)
    scores = [[(row["name"], row["score"]) for row in model.report_.rows] for model in (there, here)]
    assert scores[0] == scores[1]
    assert there.predict(X).tolist() == here.predict(X).tolist()
