"""The large-margin machine: its dual against a general solver, optimality, honest parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fuda import HMM, Dag, DataError, Sequence, Tree
from fuda.kernels import Linear, Polynomial
from fuda.marginalized import marginalized_kernel
from fuda.models.marginalized_svm import MarginalizedSVM

WORDS = [list("abcab"), list("bca"), list("cab"), list("aa")]
Y = [list("NVNNV"), list("VNN"), list("NNV"), list("NN")]
SHAPES = {
    "sequence": [Sequence(x) for x in WORDS],
    "tree": [Tree(x, [(t - 1) // 2 if t else -1 for t in range(len(x))]) for x in WORDS],
    "dag": [Dag(x, [(s, t) for t in range(len(x)) for s in range(max(0, t - 2), t)]) for x in WORDS],
}
SIMILAR = [[1.0, 0.5], [0.5, 1.0]]
KERNEL = Polynomial(2).normalized()


def fitted(X, **parameters) -> MarginalizedSVM:
    parameters = {"kernel": KERNEL, "features": "word", "tol": 1e-8, "epochs": 3000} | parameters
    return MarginalizedSVM(**parameters).fit(X, Y)


def whole_kernel(X, priors, model) -> np.ndarray:
    """(N·L, N·L) the kernel of all pairs of position and label."""
    rows = []
    for a, pa in zip(X, priors, strict=True):
        row = []
        for b, pb in zip(X, priors, strict=True):
            K = marginalized_kernel(
                a,
                b,
                kernel=model.kernel_,
                label_kernel=model.label_kernel,
                mixing=model.mixing_,
                prior=(pa, pb),
                gap=model.gap,
            )
            row.append(K.transpose(0, 2, 1, 3).reshape(K.shape[0] * 2, K.shape[1] * 2))
        rows.append(np.hstack(row))
    return np.vstack(rows)


def problem(X, priors, model):
    """The kernel, the label number and the bound of each position, by their definitions."""
    K = whole_kernel(X, priors, model)
    labels = np.array([model.classes_.tolist().index(label) for y in Y for label in y])
    right = 2 * np.arange(len(labels)) + labels
    return K, labels, right, model.C / K[right, right].mean()


def best_dual(K, right, bound) -> float:
    """max Σ α_t(y_t) − ½ αᵀ K α by a solver that knows nothing of the problem."""
    size = len(K)
    caps = np.zeros(size)
    caps[right] = bound
    sums = LinearConstraint(np.kron(np.eye(size // 2), np.ones(2)), 0.0, 0.0)
    linear = np.zeros(size)
    linear[right] = 1.0
    optimum = minimize(
        lambda a: 0.5 * a @ K @ a - linear @ a,
        np.zeros(size),
        jac=lambda a: K @ a - linear,
        bounds=[(-bound, cap) for cap in caps],
        constraints=[sums],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    return -optimum.fun


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("label_kernel", [None, SIMILAR])
@pytest.mark.parametrize("C", [0.3, 20.0])
def test_the_dual_is_that_of_a_general_solver(shape, label_kernel, C) -> None:
    X = SHAPES[shape]
    rng = np.random.default_rng(0)
    priors = [rng.dirichlet([1.0, 1.0], len(x)) for x in X]
    model = fitted(X, prior=priors, label_kernel=label_kernel, C=C)
    K, labels, right, bound = problem(X, priors, model)
    last = model.history_[-1]
    assert last.dual == pytest.approx(best_dual(K, right, bound), rel=1e-5)

    # The figures are what the definitions give for the model's own coefficients.
    alpha = np.zeros((len(labels), 2))
    starts = np.cumsum([0, *map(len, X)])
    support = [X.index(s) for s in model.support_structures_]
    for structure, node, of in model.support_:
        for label, value in of.items():
            alpha[starts[support[structure]] + node, model.classes_.tolist().index(label)] = value
    a = alpha.ravel()
    scores = (K @ a).reshape(-1, 2)
    assert last.dual == pytest.approx(a[right].sum() - 0.5 * a @ K @ a, rel=1e-9)
    at = np.arange(len(labels))
    margins = 1.0 + scores - scores[at, labels][:, None]
    margins[at, labels] = 0.0
    assert last.primal == pytest.approx(0.5 * a @ K @ a + bound * margins.max(axis=1).sum(), rel=1e-9)
    assert 0.0 <= last.gap <= 1e-8 + 1e-12
    assert last.support == np.count_nonzero(alpha.any(axis=1))

    # Conditions of optimality: the constraints, and support only where the margin is just
    # kept or is not.
    assert np.abs(alpha.sum(axis=1)).max() < 1e-9
    assert (a[right] <= bound + 1e-9).all()
    assert (np.delete(a, right) <= 0.0).all()
    for t, label in enumerate(labels):
        margin, share = scores[t, label] - scores[t, 1 - label], alpha[t, label] / bound
        assert margin >= 1.0 - 1e-2 or share > 1 - 1e-4
        assert margin <= 1.0 + 1e-2 or share < 1e-4


def test_the_dual_never_falls_and_the_gap_closes() -> None:
    history = fitted(SHAPES["sequence"], C=30.0, tol=1e-6).history_
    duals = np.array([epoch.dual for epoch in history])
    assert (np.diff(duals) >= -1e-9 * duals[-1]).all()
    assert all(epoch.primal >= epoch.dual > 0 for epoch in history)
    assert history[-1].gap <= 1e-6 < history[0].gap
    assert "gap" in str(history[0])


def test_c_halves_every_further_node_of_a_match() -> None:
    model = fitted(SHAPES["sequence"])
    assert model.mixing_**2 * 0.5 == pytest.approx(0.5)  # k = k_x Σ P P = 1 · ½, uniform prior


def test_a_chain_prior_and_gaps() -> None:
    X = SHAPES["sequence"]
    for parameters in ({"prior": HMM().fit(X, Y), "prior_form": "chain"}, {"gap": 0.5}):
        model = fitted(X, C=10.0, tol=1e-4, **parameters)
        assert [list(labels) for labels in model.predict(X)] == Y
        assert model.history_[-1].gap <= 1e-4


def test_labels_not_known_and_weights_of_zero_are_left_out() -> None:
    X = SHAPES["sequence"]
    open_labels = [[None, *Y[0][1:]], *Y[1:]]
    weights = [[0.0] + [1.0] * (len(Y[0]) - 1), *([1.0] * len(y) for y in Y[1:])]
    model = MarginalizedSVM(features="word", tol=1e-6)
    a = clone(model).fit(X, open_labels)
    b = clone(model).fit(X, Y, position_weight=weights)
    assert a.history_[-1].dual == pytest.approx(b.history_[-1].dual, rel=1e-5)
    assert (0, 0) not in {(p.structure, p.node) for p in a.support_}


def test_a_weight_multiplies_c() -> None:
    X = SHAPES["sequence"]
    twice = MarginalizedSVM(features="spelling", C=1.0, tol=1e-6).fit(X, Y, sample_weight=[2.0] * 4)
    assert twice.history_[-1].dual == pytest.approx(
        fitted(X, C=2.0, features="spelling").history_[-1].dual, rel=1e-5
    )


def test_results_do_not_depend_on_threads_and_are_repeated() -> None:
    X = SHAPES["tree"]
    one, two = (MarginalizedSVM(n_jobs=n).fit(X, Y) for n in (1, 2))
    assert one.support_ == two.support_


def test_too_few_epochs_are_reported() -> None:
    with pytest.warns(ConvergenceWarning, match="after 1 epochs the duality gap is .*; allow more epochs"):
        fitted(SHAPES["sequence"], C=100.0, epochs=1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, r"C=0.0: give a number above 0"),
        ({"C": -1.0}, r"C=-1.0: give a number"),
        ({"tol": "x"}, r"tol='x': give a number"),
        ({"epochs": 0}, r"epochs=0: give a whole number"),
        ({"random_state": "x"}, r"random_state='x'"),
        ({"mixing": 1e100, "kernel": Linear()}, r"mixing=1e\+100 with the kernel Linear\(\).*smaller mixing"),
    ],
)
def test_bad_parameters_are_refused(parameters, message) -> None:
    with pytest.raises(DataError, match=message):
        fitted(SHAPES["sequence"], **parameters)


@pytest.mark.filterwarnings("error")
def test_nothing_to_learn() -> None:
    for weight in (None, [0.0]):
        model = MarginalizedSVM(features="word").fit([["a"]], [["A"]], sample_weight=weight)
        assert model.history_[-1].gap == 0
        assert list(model.predict([["a"]])) == [["A"]]
    model = MarginalizedSVM(features="word").fit(WORDS, Y, sample_weight=np.zeros(4))
    assert not model.support_
