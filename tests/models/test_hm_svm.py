"""The HMSVM against a general solver over all labelings, and as a user meets it."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict

import fuda
from fuda import DataError, Sequence, Tree
from fuda.functions.pushed import PushedScores
from fuda.kernels import RBF, Delta, Linear, Polynomial
from fuda.models import hm_svm
from fuda.models.hm_svm import HMSVM

X = [["a", "b", "a"], ["b", "c"], ["c", "a", "d"], ["a", "b"], ["d"]]
Y = [["P", "Q", "P"], ["Q", "Q"], ["P", "Q", "P"], ["Q", "Q"], ["P"]]
SEPARABLE = [*Y[:3], ["P", "Q"], ["P"]]
TREES = [Tree(x, [-1, 0, 0][: len(x)]) for x in X]
SLACKS = ["l1", "l2", None]
KERNELS = [Linear(), Polynomial(2), Polynomial(2).normalized(), RBF(0.5), Delta()]
WORDS = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "left", "York"]]
LABELS = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O", "LOC"]]


def small(**parameters) -> HMSVM:
    return HMSVM(**{"features": "word", "tol": 1e-6, "random_state": 0, **parameters})


def nothing(word):
    return []


class Enumerated:
    """All labelings of all structures, the inner products of the d_i(y), and the losses."""

    def __init__(self, model: HMSVM, structures, y, weights=None, loss=None) -> None:
        encoded = model.encoder_.encode([s if isinstance(s, Tree) else Sequence(s) for s in structures])
        corpus, L = encoded.corpus, len(model.classes_)
        pushed = PushedScores(encoded, model.kernel_, L)
        nodes = np.arange(corpus.size)
        gram = pushed.gram(nodes, nodes)
        number = {label: i for i, label in enumerate(model.classes_)}
        betas, pairs, self.owner, self.losses, self.labelings = [], [], [], [], []
        for i, labels in enumerate(y):
            right = tuple(number[label] for label in labels)
            first = corpus.offsets[i]
            for labeling in itertools.product(range(L), repeat=len(right)):
                if labeling == right:
                    continue
                beta, pair = np.zeros((corpus.size, L)), np.zeros((L, L))
                for sign, z in ((1, right), (-1, labeling)):
                    for t, b in enumerate(z):
                        beta[first + t, b] += sign
                        head = corpus.graph.heads[first + t]
                        if head >= 0:
                            pair[z[head - first], b] += sign
                wrong = [t for t, b in enumerate(labeling) if b != right[t]]
                node_loss = np.ones(len(right)) if loss is None else np.asarray(loss[i])
                betas.append(beta)
                pairs.append(pair)
                self.owner.append(i)
                self.labelings.append([model.classes_[b] for b in labeling])
                self.losses.append(node_loss[wrong].sum() if model.rescale else 1.0)
        B, P = np.array(betas), np.array(pairs)
        self.Q = np.einsum("itl,ts,jsl->ij", B, gram, B, optimize=True)
        self.Q += np.einsum("iab,jab->ij", P, P)
        self.owner, self.losses = np.array(self.owner), np.array(self.losses)
        self.C = model.C * (np.ones(len(y)) if weights is None else np.asarray(weights, float))
        self.slack = model.slack

    def dual(self, alpha) -> float:
        value = self.losses @ alpha - alpha @ self.Q @ alpha / 2
        if self.slack == "l2":
            value -= sum((alpha[self.owner == i].sum() ** 2) / 2 / c for i, c in enumerate(self.C) if c)
        return value

    def primal(self, alpha) -> tuple[float, np.ndarray]:
        """The objective at w(α), and the slack of each structure."""
        violations = self.losses - self.Q @ alpha
        slacks = np.array([max(0.0, violations[self.owner == i].max()) for i in range(len(self.C))])
        value = alpha @ self.Q @ alpha / 2
        if self.slack == "l1":
            return value + self.C @ slacks, slacks
        if self.slack == "l2":
            return value + self.C @ slacks**2 / 2, slacks
        return value / (1 - slacks.max()) ** 2 if slacks.max() < 1 else np.inf, slacks

    def best_dual(self) -> float:
        """The maximum of the dual by a general solver."""
        Q = self.Q.copy()
        if self.slack == "l2":
            same = self.owner[:, None] == self.owner
            Q += same / self.C[self.owner]
        sums = np.array([self.owner == i for i in range(len(self.C))], dtype=float)
        bounded = [{"type": "ineq", "fun": lambda a: self.C - sums @ a, "jac": lambda a: -sums}]
        optimum = minimize(
            lambda a: a @ Q @ a / 2 - self.losses @ a,
            np.zeros(len(Q)),
            jac=lambda a: Q @ a - self.losses,
            bounds=[(0, None)] * len(Q),
            constraints=bounded if self.slack == "l1" else [],
            method="SLSQP" if self.slack == "l1" else "L-BFGS-B",
            options={"maxiter": 5000, "ftol": 1e-14} | ({} if self.slack == "l1" else {"gtol": 1e-10}),
        )
        return -optimum.fun

    def alpha_of(self, model: HMSVM) -> np.ndarray:
        alpha = np.zeros(len(self.owner))
        for structure, labels, value in model.support_:
            at = [k for k, i in enumerate(self.owner) if i == structure and self.labelings[k] == labels]
            alpha[at] = value
            assert len(at) == 1
        return alpha


def assert_solved(model: HMSVM, every: Enumerated, tol=1e-4):
    """Optimum, honest objectives, and the conditions of Karush, Kuhn and Tucker."""
    alpha, last = every.alpha_of(model), model.history_[-1]
    best = every.best_dual()
    assert last.dual == pytest.approx(every.dual(alpha), rel=1e-6)
    assert last.primal == pytest.approx(every.primal(alpha)[0], rel=1e-6)
    assert last.gap <= model.tol
    assert last.support == len(model.support_)
    assert last.dual == pytest.approx(best, rel=tol)
    assert model.square_ == pytest.approx(alpha @ every.Q @ alpha)
    duals = [state.dual for state in model.history_]
    assert all(b >= a - 1e-9 * abs(a) for a, b in itertools.pairwise(duals))
    _, slacks = every.primal(alpha)
    violations = every.losses - every.Q @ alpha
    for i, c in enumerate(every.C):
        of_structure = every.owner == i
        total = alpha[of_structure].sum()
        near = 1e-2 * max(1.0, np.abs(every.losses[of_structure]).max())
        if every.slack == "l1":
            assert total <= c * (1 + 1e-9)
            if slacks[i] > near:
                assert total == pytest.approx(c, rel=1e-3)
        if every.slack == "l2":
            assert slacks[i] == pytest.approx(total / c if c else slacks[i], abs=near)
        for k in np.flatnonzero(of_structure & (alpha > 1e-3 * max(alpha.max(), 1e-9))):
            assert violations[k] == pytest.approx(slacks[i], abs=near)


@pytest.mark.parametrize("rescale", [False, True])
@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("structures", [X, TREES], ids=["sequences", "trees"])
def test_the_optimum_over_all_labelings(structures, kernel, slack, rescale):
    y = SEPARABLE if slack is None else Y
    model = small(kernel=kernel, slack=slack, rescale=rescale, C=0.5).fit(structures, y)
    assert_solved(model, Enumerated(model, structures, y))


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("rescale", [False, True])
def test_weights_of_structures_and_nodes(slack, rescale):
    weights, loss = (
        [1.0, 0.0, 2.5, 0.3, 1.0],
        [[1.0, 2.0, 0.5], [1.0, 1.0], [3.0, 1.0, 0.0], [1.0, 1.0], [2.0]],
    )
    model = small(slack=slack, rescale=rescale, C=2.0)
    model.fit(X, Y, sample_weight=weights, position_weight=loss if rescale else None)
    every = Enumerated(model, X, Y, weights, loss)
    every.losses[every.owner == 1] = 0.0  # left out
    every.Q[every.owner == 1] = 0.0
    every.Q[:, every.owner == 1] = 0.0
    every.C[1] = 1.0
    assert_solved(model, every)
    assert all(support.structure != 1 for support in model.support_)
    primal = model.objective(X, Y, sample_weight=weights, position_weight=loss if rescale else None)
    assert primal == pytest.approx(model.history_[-1].primal, rel=1e-9)


@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(3), Polynomial(2).normalized()], ids=str)
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_both_ways_to_hold_scores_agree(kernel, slack, cache_bytes, monkeypatch):
    """Explicit, and pushed without a cache or with one that holds all kernel values."""
    by_features = small(kernel=kernel, slack=slack, features="spelling").fit(X, SEPARABLE)
    monkeypatch.setattr("fuda.functions.choice._explicit_vectors", lambda *_: None)
    by_pushing = small(kernel=kernel, slack=slack, features="spelling", cache_bytes=cache_bytes)
    by_pushing.fit(X, SEPARABLE)
    np.testing.assert_allclose(by_pushing.history_[-1][:2], by_features.history_[-1][:2], rtol=1e-5)
    new = [["a", "x", "b"], ["c"]]
    for a, b in zip(by_features.predict_marginals(new), by_pushing.predict_marginals(new), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)


def test_one_label_alone():
    model = small().fit([["a", "b"]], [["A", "A"]])
    assert model.predict([["b"]])[0] == ["A"]
    assert model.support_ == []
    assert model.history_[-1].gap == 0.0


def test_no_slack_and_no_solution():
    for X, y in (
        ([["a", "b"], ["c"], ["a", "b"]], [["A", "B"], ["A"], ["B", "B"]]),
        ([["a"], ["a"], ["b"]], [["A"], ["B"], ["A"]]),
    ):
        for kernel in (Polynomial(2), RBF(1.0)):
            with pytest.raises(DataError, match=r"structure \d: without slack no weights satisfy its margin"):
                small(kernel=kernel, slack=None, window=0).fit(X, y)
            small(kernel=kernel, slack="l2", window=0).fit(X, y)
    with pytest.raises(DataError, match="without slack"):
        small(kernel=Linear(), slack=None, window=0, features=nothing).fit([["a"], ["b"]], [["A"], ["B"]])


def test_support_sequences():
    model = small().fit(WORDS, LABELS)
    assert model.support_
    for structure, labels, alpha in model.support_:
        assert alpha > 0
        assert labels != LABELS[structure]
    structures = [s.structure for s in model.support_]
    assert structures == sorted(structures)
    lines = model.show_support(0).splitlines()
    assert lines[0].split() == WORDS[0]
    assert lines[1].split() == ["right", *LABELS[0]]
    first = next(s for s in model.support_ if s.structure == 0)
    shown = ["·" if a == b else a for a, b in zip(first.labels, LABELS[0], strict=True)]
    assert lines[2].split() == [f"{first.alpha:.4f}", *shown]
    assert "no support sequences" in model.show_support(99)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("structures", [X, TREES], ids=["sequences", "trees"])
def test_files(kernel, structures, tmp_path):
    model = small(kernel=kernel).fit(structures, Y)
    model.save(tmp_path / "a.fuda")
    loaded = fuda.load(tmp_path / "a.fuda")
    assert loaded.support_ == model.support_
    for a, b in zip(model.predict_marginals(structures), loaded.predict_marginals(structures), strict=True):
        np.testing.assert_array_equal(a, b)
    assert loaded.objective(structures, Y) == model.objective(structures, Y)
    loaded.save(tmp_path / "b.fuda")
    assert (tmp_path / "a.fuda").read_bytes() == (tmp_path / "b.fuda").read_bytes()
    model.set_params(kernel=Polynomial(4)).save(tmp_path / "c.fuda")
    assert (tmp_path / "a.fuda").read_bytes() == (tmp_path / "c.fuda").read_bytes()


def test_scikit_learn():
    model = small()
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert HMSVM().kernel is None
    search = GridSearchCV(
        small(tol=1e-2, kernel=Polynomial(2)), {"C": [0.1, 1.0], "kernel__degree": [1, 2]}, cv=2
    ).fit(X, Y)
    assert set(search.best_params_) == {"C", "kernel__degree"}
    assert len(cross_val_predict(small(tol=1e-2), X, Y, cv=2)) == len(X)
    fitted = small().fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert list(again.predict(X)) == list(fitted.predict(X))


def test_results_depend_on_the_seed_alone():
    parameters = {"kernel": RBF(0.5), "tol": 1e-2}
    first, second = (small(n_jobs=jobs, **parameters).fit(X, Y) for jobs in (1, 2))
    assert first.support_ == second.support_


CONTRADICTIONS = [
    ([["a", "b"], ["c"], ["c"]], [["A", "B"], ["A"], ["B"]]),
    ([["a"]] * 6, [[label] for label in "BCCBCC"]),
]


@pytest.mark.parametrize(("words", "labels"), CONTRADICTIONS)
@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_structures_that_contradict_each_other_move_together(words, labels, C):
    """One at a time they would take hundreds of rounds."""
    model = small(kernel=Delta(), C=C, tol=1e-3).fit(words, labels)
    assert model.history_[-1].gap <= 1e-3
    assert len(model.history_) < 20
    with pytest.raises(DataError, match="without slack no weights satisfy its margin"):
        small(kernel=Delta(), slack=None).fit(words, labels)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.slow
def test_random_labels_of_few_words_converge(slack, seed):
    rng = np.random.default_rng(seed)
    words = [rng.choice(["a", "b", "c"], rng.integers(1, 4)).tolist() for _ in range(rng.integers(2, 12))]
    labels = [rng.choice(["A", "B", "C"], len(x)).tolist() for x in words]
    model = small(kernel=KERNELS[seed % 5], C=10.0 ** (seed % 4), slack=slack, tol=1e-3)
    try:
        model.fit(words, labels)
    except DataError:
        assert slack is None  # as no weights satisfy all margins
    else:
        assert model.history_[-1].gap <= 1e-3


def test_it_says_when_it_has_not_converged():
    with pytest.warns(ConvergenceWarning, match="max_iter=2 was reached; its duality gap is"):
        small(max_iter=2).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kernel": Linear(), "C": 0.1}, "allow more rounds by max_iter, or a larger tol"),
        ({"kernel": Polynomial(2, scale=10.0)}, "normalize the kernel .*, or set C near 0.01, or allow"),
    ],
)
def test_it_says_what_to_set_where_it_has_not_converged(parameters, words):
    """Linear: k(x, x) = 3; with (10 ⟨a, b⟩ + 1)² it is 961."""
    with pytest.warns(ConvergenceWarning, match=words):
        small(max_iter=2, window=1, **parameters).fit(X, Y)


def test_an_interrupt_keeps_the_best(monkeypatch):
    improve = hm_svm.MaxMargin.improve
    calls = []

    def interrupted(self, tol):
        calls.append(tol)
        if len(calls) == 3:
            raise KeyboardInterrupt
        improve(self, tol)

    monkeypatch.setattr(hm_svm.MaxMargin, "improve", interrupted)
    with pytest.warns(ConvergenceWarning, match="it was interrupted"):
        model = small().fit(X, Y)
    assert len(model.history_) == 3
    assert len(model.predict(X)) == len(X)
    calls[:] = [0, 0]
    with pytest.raises(KeyboardInterrupt):
        small().fit(X, Y)


BAD = {
    "kernel": ({"kernel": "linear"}, "kernel='linear'"),
    "kernel class": ({"kernel": Linear}, "that is a class"),
    "C zero": ({"C": 0}, "C=0: give a number above 0"),
    "C negative": ({"C": -1.0}, "C=-1.0: give a number"),
    "C text": ({"C": "1"}, "C='1': give a number"),
    "C nan": ({"C": float("nan")}, "C=nan: give a number"),
    "slack": ({"slack": "l3"}, "slack='l3': choose 'l1', 'l2' or None"),
    "slack list": ({"slack": ["l1"]}, "slack=['l1']: choose"),
    "rescale": ({"rescale": 1}, "rescale=1: give True or False"),
    "tol": ({"tol": -1}, "tol=-1: give a number"),
    "max_iter": ({"max_iter": 0}, "max_iter=0: give a whole number of at least 1"),
    "scheme": ({"scheme": "XYZ"}, "no tagging scheme 'XYZ'"),
    "n_jobs": ({"n_jobs": 0}, "n_jobs=0"),
    "random_state": ({"random_state": "x"}, "random_state='x'"),
}


@pytest.mark.parametrize(("parameters", "words"), BAD.values(), ids=BAD)
def test_bad_parameters(parameters, words):
    with pytest.raises(DataError) as caught:
        small(**parameters).fit(X, Y)
    assert words in str(caught.value)


def test_defaults_by_the_kind_of_observations():
    linear, square = 3 * Polynomial(1).normalized(), 3 * Polynomial(2).normalized()
    words = HMSVM().fit(X, Y)
    assert (words.kernel_, words.encoder_.features, words._fitted_params["rescale"]) == (linear, "text", True)
    by_kernel = HMSVM(Polynomial(2)).fit(X, Y)
    assert (by_kernel.encoder_.features, by_kernel._fitted_params["rescale"]) == ("spelling", False)
    vectors = [[np.eye(2)[0], np.eye(2)[1]]] * 2
    assert HMSVM().fit(vectors, [["A", "B"]] * 2).kernel_ == square
    residues = HMSVM().fit([list("MKVLASTR"), list("GLWCMDEN")], [list("HHHHEEEE")] * 2)
    assert (residues.kernel_, residues.encoder_.features) == (square, "protein")
    assert HMSVM().fit([[{"a": 1}, ["b"]]] * 2, [["A", "B"]] * 2).kernel_ == linear
    with pytest.raises(DataError, match="class_weight is the cost of a wrong node"):
        HMSVM(Polynomial(2), class_weight="balanced").fit(X, Y)
    HMSVM(class_weight="balanced").fit(X, Y)


def test_bad_data():
    with pytest.raises(DataError, match="structure 1, node 1: its label is None, but an HMSVM"):
        small().fit([["a"], ["b", "c"]], [["A"], ["B", None]])
    with pytest.raises(DataError, match="position_weight is the cost of a wrong node where margins are"):
        small(rescale=False).fit(X, Y, position_weight=[np.ones(len(y)) for y in Y])
    with pytest.raises(DataError, match="structure 0, node 0: its label is None"):
        small().fit(X, Y).objective([["a"]], [[None]])
    with pytest.raises(DataError, match="nothing to sum the objective over"):
        small().fit(X, Y).objective([], [])


def test_contradictions_do_not_take_long():
    """Equal structures with different labels push each other's α up to C, slowly."""
    model = small(C=1000.0, kernel=Polynomial(2, scale=10.0)).fit([["a", "b"]] * 2, [["A", "B"], ["B", "B"]])
    assert len(model.history_) < 10
    assert model.history_[-1].dual == pytest.approx(2000.0, rel=1e-5)
