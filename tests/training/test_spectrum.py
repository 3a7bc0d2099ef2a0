"""The directions of large curvature, against the Hessian by differences of the whole gradient."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import CRF, Sequence
from fuda.data.window_encoding import WindowEncoder
from fuda.training import spectrum as spectrum_module
from fuda.training.crf_loss import Loss, TrainingLoss
from usage_cases import usage

DATA = usage()
X, Y = [Sequence(x.observations) for x in DATA.X[:40]], DATA.y[:40]
L2, SEQUENTIAL, FEW = 0.5, Loss(1.0, False), 12


def arguments(loss=SEQUENTIAL):
    """Those of `TrainingLoss` for a few structures."""
    encoded = WindowEncoder("word", window=0).fit(X[:FEW])
    labels = [label for y in Y[:FEW] for label in y]
    classes = sorted(set(labels))
    return encoded, np.array([classes.index(label) for label in labels]), len(classes), loss


def spectrum(loss_arguments, w, weights):
    loss = TrainingLoss(*loss_arguments)
    return spectrum_module.leading_crf_curvature(
        w, (*loss_arguments, None, None), loss.curvature() + weights, L2, 1
    )


@pytest.mark.parametrize("loss", [SEQUENTIAL, Loss(2.0, True)], ids=str)
def test_eigenvectors_of_the_hessian(monkeypatch, loss):
    """H v_i = λ_i v_i, where all λ_i ratio_i² are θ, and v_1 has the largest one."""
    monkeypatch.setattr(spectrum_module, "_SAMPLE_EVERY", 1)
    monkeypatch.setattr(spectrum_module, "_COUNT", 5)
    loss_arguments = arguments(loss)
    all_structures = TrainingLoss(*loss_arguments)
    random = np.random.default_rng(0)
    w = random.normal(size=all_structures.weights.size) * 0.1
    leading = spectrum(loss_arguments, w, np.zeros_like(w))

    def product(v, step=1e-5):
        difference = all_structures(w + step * v)[1].copy() - all_structures(w - step * v)[1]
        return difference / (2 * step) + 2 * L2 * v

    np.testing.assert_array_equal(leading.at, np.arange(len(w)))
    products = np.stack([product(v.astype(np.float64)) for v in leading.vectors])
    values = (products * leading.vectors).sum(axis=1)
    np.testing.assert_allclose(values * leading.ratios**2, values[0] * leading.ratios[0] ** 2, rtol=0.01)
    np.testing.assert_allclose(products, values[:, None] * leading.vectors, atol=0.02 * values[0])
    v = random.normal(size=len(w))
    for _ in range(30):
        v = product(v / np.linalg.norm(v))
    assert np.linalg.norm(v) == pytest.approx(values[0], rel=0.01)


def test_digits_that_depend_on_the_order_of_sums_change_nothing():
    loss_arguments = arguments()
    size = TrainingLoss(*loss_arguments).weights.size
    random = np.random.default_rng(1)
    w = random.normal(size=size)
    one, other = (
        spectrum(loss_arguments, v, np.zeros(size)) for v in (w, w * (1 + 1e-14 * random.normal(size=size)))
    )
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_without_curvature_coordinates_stay(monkeypatch):
    """All structures of the sample of weight 0, and no L2 term."""
    loss_arguments = arguments()
    size = TrainingLoss(*loss_arguments).weights.size
    weightless = (*loss_arguments, np.zeros(FEW), None)
    leading = spectrum_module.leading_crf_curvature(np.zeros(size), weightless, np.ones(size), 0.0, 1)
    assert len(leading.ratios) == len(leading.vectors) == 0


@pytest.mark.parametrize(
    "parameters",
    [{}, {"pair_features": True}, {"loss": "markov"}, {"l2": 0.0, "max_iter": 60}, {"l2": 30.0}],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:the CRF has not converged")
def test_a_fit_ends_at_the_same_optimum_with_any_number_of_threads(monkeypatch, parameters):
    plain = CRF(**parameters).fit(X, Y).result_
    monkeypatch.setattr("fuda.models.crf.LEAST_NODES", 1)
    fits = [CRF(n_jobs=n, **parameters).fit(X, Y) for n in (1, 2)]
    np.testing.assert_array_equal(fits[0].weights_, fits[1].weights_)
    assert (
        fits[0].result_.history[-1].objective <= plain.history[-1].objective + 2e-4 * abs(plain.value) + 1e-3
    )


@pytest.mark.filterwarnings("ignore:the CRF has not converged")
@pytest.mark.parametrize("stop", [7, 22, 26])
def test_resumed_from_a_checkpoint(monkeypatch, tmp_path, stop):
    monkeypatch.setattr("fuda.models.crf.LEAST_NODES", 1)
    monkeypatch.setattr("fuda.storage.checkpoint.SECONDS_BETWEEN", 0.0)
    settings = {"max_iter": 32, "tol": 0.0}
    uninterrupted = CRF(**settings).fit(X, Y)

    def kill(progress):
        if progress.iteration == stop:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        CRF(**settings, checkpoint=tmp_path / "state", callback=kill).fit(X, Y)
    resumed = CRF(**settings, checkpoint=tmp_path / "state").fit(X, Y)
    np.testing.assert_array_equal(resumed.weights_, uninterrupted.weights_)
    assert [p.objective for p in resumed.result_.history] == [
        p.objective for p in uninterrupted.result_.history
    ]
