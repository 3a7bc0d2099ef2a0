"""The CRF as a user sees it: what it minimizes, what it predicts, and how it reports mistakes."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict

import fuda
from fuda import CRF, DataError, Tree
from fuda.features.templates import Template
from fuda.schemes import legal

X = [
    ["Ana", "lives", "in", "Lima"],
    ["Lima", "is", "big"],
    ["Bo", "Lind", "left", "New", "York"],
    ["in", "York", "Ana", "sleeps"],
]
Y = [
    ["B-PER", "O", "O", "B-LOC"],
    ["B-LOC", "O", "O"],
    ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"],
    ["O", "B-LOC", "B-PER", "O"],
]
NEW = [["Bo", "lives", "in", "York"], ["Ana"], ["nothing", "known", "here"]]
TREES = [Tree(x, [-1, *np.arange(len(x) - 1) // 2]) for x in X]
PARTLY = [[None if t == 1 else label for t, label in enumerate(y)] for y in Y]
LOSSES = ["sequential", "pointwise", "markov"]


def small(**parameters) -> CRF:
    return CRF(**{"features": "word", "tol": 1e-8, **parameters})


def scored_labelings(model: CRF, structure) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Every labeling and its log probability, only from the weights by feature name."""
    words, window = list(structure), model.encoder_.window
    heads = structure.heads.tolist() if isinstance(structure, Tree) else list(range(-1, len(words) - 1))
    offsets = range(-window, window + 1)
    names = [f"{offset:+d}" if offset else "0" for offset in offsets]
    rows = [(name, feature) for name in names for feature in model.encoder_.vocabulary]
    count = len(model.classes_)
    weights = model.weights_[: len(rows) * count].reshape(-1, count)
    of = {row: weights[i] for i, row in enumerate(rows)}

    def seen(t, offset):
        """Features at an offset: ancestors up, all descendants down, marks past the ends."""
        nodes = [t]
        for step in range(abs(offset)):
            if offset < 0:
                further = [heads[u] for u in nodes if heads[u] >= 0]
            else:
                further = [v for u in nodes for v, head in enumerate(heads) if head == u]
            if not further:
                return [f"<{'-' if offset < 0 else '+'}{abs(offset) - step}>"]
            nodes = further
        return [f"w={words[u]}" for u in nodes]

    node = np.zeros((len(words), count))
    for t, (name, offset) in itertools.product(range(len(words)), zip(names, offsets, strict=True)):
        for feature in seen(t, offset):
            node[t] += of.get((name, feature), 0.0)
    labelings = list(itertools.product(range(count), repeat=len(words)))
    scores = np.array(
        [
            sum(node[t, b] for t, b in enumerate(y))
            + sum(model.transitions_[y[heads[t]], y[t]] for t in range(len(y)) if heads[t] >= 0)
            for y in labelings
        ]
    )
    return labelings, scores - logsumexp(scores)


def brute_force_loss(model: CRF, structures, labels) -> float:
    omega = {"sequential": 1.0, "pointwise": 0.0, "markov": model.order}[model.loss]
    total = 0.0
    for structure, partly in zip(structures, labels, strict=True):
        labelings, log_p = scored_labelings(model, structure)
        known = [
            (t, model.classes_.tolist().index(label)) for t, label in enumerate(partly) if label is not None
        ]

        def surprise(nodes, labelings=labelings, log_p=log_p):
            return -logsumexp(log_p[[all(y[t] == b for t, b in nodes) for y in labelings]])

        total += omega * surprise(known)
        if model.loss != "sequential":
            total += sum(surprise([one]) for one in known)
    return float(total)


@pytest.mark.parametrize("labels", [Y, PARTLY], ids=["labelled", "partly"])
@pytest.mark.parametrize("structures", [X, TREES], ids=["sequences", "trees"])
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_by_every_labeling(loss, structures, labels):
    chosen = [0, 1, 3]  # the longest would take long
    structures, labels = [structures[i] for i in chosen], [labels[i] for i in chosen]
    model = small(loss=loss, order=1.5, l2=0.3, l1=0.1).fit(structures, labels)
    w = model.weights_
    expected = brute_force_loss(model, structures, labels) + 0.3 * w @ w + 0.1 * np.abs(w).sum()
    assert model.objective(structures, labels) == pytest.approx(expected)
    assert model.result_.value == pytest.approx(expected)
    for structure in structures:
        labelings, log_p = scored_labelings(model, structure)
        best = tuple(model.classes_.tolist().index(label) for label in model.predict([structure])[0])
        assert log_p[labelings.index(best)] == pytest.approx(log_p.max())
        marginals = model.predict_marginals([structure])[0]
        for t, b in np.ndindex(*marginals.shape):
            total = sum(np.exp(p) for y, p in zip(labelings, log_p, strict=True) if y[t] == b)
            assert marginals[t, b] == pytest.approx(total)
        (nbest,) = model.predict_nbest([structure], 5)
        assert [p for _, p in nbest] == pytest.approx(sorted(log_p, reverse=True)[:5])
        by_node = model.set_params(decode="posterior").predict([structure])[0]
        model.set_params(decode="viterbi")
        chosen = [model.classes_.tolist().index(label) for label in by_node]
        np.testing.assert_allclose(marginals[range(len(chosen)), chosen], marginals.max(axis=1))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("parameters", [{}, {"pair_features": True}, {"window": 0}, {"features": "text"}])
def test_solvers_find_one_optimum(loss, parameters):
    """The sequential loss is convex; with an L2 term the others have one minimum near 0 here."""
    models = [small(loss=loss, solver=solver, **parameters).fit(X, Y) for solver in ("lbfgs", "cg")]
    assert models[0].result_.value == pytest.approx(models[1].result_.value, rel=1e-6)
    np.testing.assert_allclose(models[0].weights_, models[1].weights_, atol=1e-3)
    assert models[0].predict(X).tolist() == models[1].predict(X).tolist()
    assert models[0].score(X, Y) > 0.9


def test_the_fit_is_a_minimum():
    """No step from the fitted weights improves the objective."""
    random = np.random.default_rng(0)
    for parameters in ({}, {"loss": "pointwise", "l1": 0.2}):
        model = small(**parameters).fit(X, Y)
        best, weights = model.objective(X, Y), model.weights_.copy()
        for size in (1e-3, 0.1):
            model.weights_ = weights + size * random.normal(size=len(weights))
            assert model.objective(X, Y) > best


@pytest.mark.parametrize("structures", [X, TREES])
@pytest.mark.parametrize("loss", LOSSES)
def test_threads_change_nothing(structures, loss):
    many, labels = structures * 20, Y * 20
    one, *others = (small(loss=loss, n_jobs=n, tol=1e-3).fit(many, labels) for n in (1, 2, 4))
    for other in others:
        np.testing.assert_array_equal(one.weights_, other.weights_)


def test_a_chain_is_a_tree():
    chains = [Tree(x, range(-1, len(x) - 1)) for x in X]
    for loss in LOSSES:
        one, other = small(loss=loss).fit(X, Y), small(loss=loss).fit(chains, Y)
        np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-4)
        assert one.objective(X, Y) == pytest.approx(other.objective(chains, Y), rel=1e-9)


def test_sgd_is_a_fast_start(monkeypatch):
    monkeypatch.setattr("fuda.models.crf._BATCH_NODES", 5)
    best = small().fit(X * 3, Y * 3)
    with pytest.warns(ConvergenceWarning, match="max_iter=10 was reached"):
        model = small(solver="sgd", max_iter=10, random_state=0).fit(X * 3, Y * 3)
    assert model.predict(X).tolist() == Y
    start = small(max_iter=1)
    start.weights_, start.classes_ = np.zeros_like(best.weights_), best.classes_
    start.encoder_, start.shape_, start.has_pairs_ = best.encoder_, best.shape_, False
    start._remember_params()
    worst, optimum = start.objective(X * 3, Y * 3), best.objective(X * 3, Y * 3)
    assert model.objective(X * 3, Y * 3) - optimum < 0.1 * (worst - optimum)
    with pytest.warns(ConvergenceWarning):
        again = small(solver="sgd", max_iter=10, random_state=0).fit(X * 3, Y * 3)
    np.testing.assert_array_equal(model.weights_, again.weights_)
    warm = model.set_params(solver="lbfgs", warm_start=True, max_iter=500).fit(X * 3, Y * 3)
    np.testing.assert_allclose(warm.weights_, best.weights_, atol=1e-3)


@pytest.mark.parametrize("c2", [1.0, 0.1])
def test_crfsuite_has_the_same_objective(c2, tmp_path):
    """With the same features, labels and L2 term, the optimum is that of python-crfsuite."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    features = [[[f"w={x}", f"p={x[:1]}", f"length={len(x)}"] for x in words] for words in X * 3]
    trainer = pycrfsuite.Trainer(verbose=False)
    for nodes, labels in zip(features, Y * 3, strict=True):
        trainer.append(nodes, labels)
    trainer.set_params({"c1": 0.0, "c2": c2, "epsilon": 1e-12, "delta": 1e-12})
    trainer.set_params({"feature.possible_states": True, "feature.possible_transitions": True})
    trainer.train(str(tmp_path / "rival.model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "rival.model"))
    info = tagger.info()
    model = CRF(window=0, l2=c2, tol=1e-10).fit(features, Y * 3)
    assert model.result_.value == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-6)
    names = list(model.encoder_.vocabulary)
    ours = {
        (name, label): model.weights_[i * len(model.classes_) + k]
        for i, name in enumerate(names)
        for k, label in enumerate(model.classes_)
    }
    for key, weight in info.state_features.items():
        assert ours[key] == pytest.approx(weight, abs=1e-3)
    for (a, b), weight in info.transitions.items():
        at = model.classes_.tolist().index(a), model.classes_.tolist().index(b)
        assert model.transitions_[at] == pytest.approx(weight, abs=1e-3)
    for nodes in features:
        tagger.set(nodes)
        marginals = model.predict_marginals([nodes])[0]
        for t, k in np.ndindex(*marginals.shape):
            assert marginals[t, k] == pytest.approx(tagger.marginal(model.classes_[k], t), abs=1e-3)


def test_partly_labelled():
    """Where labels are unknown, others fill in: dropping those sentences gives another fit."""
    model = small().fit(X, PARTLY)
    assert model.classes_.tolist() == ["B-LOC", "B-PER", "I-LOC", "O"]
    assert model.objective(X[:2], PARTLY[:2]) < model.objective(X[:2], Y[:2])
    assert model.objective(X, PARTLY) < small().fit(X[:2], PARTLY[:2]).objective(
        X, [["O"] * len(x) for x in X]
    )
    nothing = [[None] * len(x) for x in X]
    w = model.weights_
    assert model.objective(X, nothing) == pytest.approx(w @ w)
    extra = small(l2=0.5).fit([*X, ["never", "labelled"]], [*Y, [None, None]])
    assert extra.predict(X).tolist() == Y


def test_weights_of_structures_and_positions():
    twice = small().fit([*X, X[1]], [*Y, Y[1]])
    heavy = small().fit(X, Y, sample_weight=[1, 2, 1, 1])
    np.testing.assert_allclose(heavy.weights_, twice.weights_, atol=1e-4)
    ones = [np.ones(len(x)) for x in X]
    plain = small(loss="markov").fit(X, Y)
    same = small(loss="markov").fit(X, Y, position_weight=ones)
    np.testing.assert_array_equal(plain.weights_, same.weights_)
    first_only = [[1.0] + [0.0] * (len(x) - 1) for x in X]
    unlabelled = [[y[0]] + [None] * (len(y) - 1) for y in Y]
    weighted = small(loss="pointwise").fit(X, Y, position_weight=first_only)
    masked = small(loss="pointwise").fit(X, unlabelled)
    columns = [weighted.classes_.tolist().index(label) for label in masked.classes_]
    assert np.isfinite(weighted.weights_).all()
    marginals = weighted.predict_marginals(X)[0][0, columns]
    assert marginals.argmax() == masked.predict_marginals(X)[0][0].argmax()
    with pytest.raises(DataError, match="position_weight weighs nodes in the pointwise loss"):
        small().fit(X, Y, position_weight=ones)


def test_warm_start_goes_on():
    with pytest.warns(ConvergenceWarning):
        model = small(max_iter=3).fit(X, Y)
    short_of = model.objective(X, Y)
    model.set_params(warm_start=True, max_iter=500).fit(X, Y)
    assert model.objective(X, Y) < short_of
    again = model.fit(X, Y)
    assert len(again.result_.history) <= 2
    np.testing.assert_allclose(again.weights_, small().fit(X, Y).weights_, atol=1e-3)


@pytest.mark.parametrize("parameters", [{}, {"pair_features": True}])
def test_warm_start_takes_weights_by_name(parameters, tmp_path, monkeypatch):
    """Other words and other labels: what both fits know starts where it was, the rest at zero."""
    old = small(**parameters).fit(X[:2], [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]])
    new_x, new_y = [["Lima", "was", "big"], ["Zoe"]], [["LOC", "O", "X"], ["A"]]
    old.save(tmp_path / "old.fuda")
    for model in (old, fuda.load(tmp_path / "old.fuda")):
        before, labels = model.weights_.copy(), list(model.classes_)
        words, layout = list(model.encoder_.vocabulary), model._layout
        model.set_params(warm_start=True, max_iter=1)
        starts = []

        def begin(self, start=CRF._start, starts=starts):
            starts.append(start(self))
            return starts[-1]

        with monkeypatch.context() as patch:
            patch.setattr(CRF, "_start", begin)
            with pytest.warns(ConvergenceWarning):
                model.fit(new_x, new_y)
        old_parts, new_parts = layout.views(before), model._layout.views(starts[0])
        features = [*old_parts[0], *old_parts[2]], [*new_parts[0], *new_parts[2]]
        for part, started in zip(*features, strict=True):
            for i, word in enumerate(model.encoder_.vocabulary):
                for at in itertools.product(range(4), repeat=part.ndim - 1):
                    names = [model.classes_[k] for k in at]
                    known = word in words and set(names) <= set(labels)
                    expected = part[(words.index(word), *map(labels.index, names))] if known else 0.0
                    assert started[(i, *at)] == expected
        a, b = model.classes_.tolist().index("LOC"), model.classes_.tolist().index("O")
        assert new_parts[1][a, b] == old_parts[1][labels.index("LOC"), labels.index("O")] != 0


def test_l1_makes_exact_zeros():
    counts = [np.count_nonzero(small(l1=l1, l2=0.01).fit(X, Y).weights_) for l1 in (0.0, 0.3, 1.0, 100.0)]
    assert counts[0] > counts[1] > counts[2] > counts[3] == 0


def test_scheme_gives_well_formed_labels_only():
    random = np.random.default_rng(0)
    many = [[str(w) for w in random.integers(6, size=random.integers(1, 8))] for _ in range(40)]
    labels = [[str(y) for y in random.choice(["O", "B-A", "I-A", "B-B", "I-B"], size=len(x))] for x in many]

    def broken(model):
        start, pairs, end = legal(model.classes_, "IOB2")
        bad = 0
        for y in model.predict(many):
            k = [model.classes_.tolist().index(label) for label in y]
            bad += not (start[k[0]] and end[k[-1]] and all(pairs[a, b] for a, b in itertools.pairwise(k)))
        return bad

    model = small(loss="pointwise", l2=0.1).fit(many, labels)
    for decode in ("viterbi", "posterior"):
        model.set_params(decode=decode, scheme=None)
        assert broken(model) > 0
        model.set_params(scheme="IOB2")
        assert broken(model) == 0
    for candidates in model.predict_nbest(many[:5], 4):
        for y, _ in candidates:
            assert legal(model.classes_, "IOB2")[0][model.classes_.tolist().index(y[0])]
    inside = [k for k, label in enumerate(model.classes_) if label[0] == "I"]
    assert all(p[0, inside].max() == 0 for p in model.predict_marginals(many))
    with pytest.raises(DataError, match="structure 0: every labeling is forbidden"):
        model.predict([["1"]], known=[["I-A"]])


@pytest.mark.parametrize("structures", [X, TREES], ids=["sequences", "trees"])
def test_known_labels_are_kept(structures):
    model = small().fit(structures, Y)
    known = [["O", None, "I-PER", None], [None] * 3, [None] * 4 + ["O"], ["B-LOC"] * 4]
    for decode in ("viterbi", "posterior"):
        for y, labels in zip(
            model.set_params(decode=decode).predict(structures, known=known), known, strict=True
        ):
            assert all(b is None or a == b for a, b in zip(y, labels, strict=True))
    assert model.predict(structures, known=known)[1] == Y[1]
    marginals = model.predict_marginals(structures, known=known)
    assert marginals[0][0, model.classes_.tolist().index("O")] == pytest.approx(1.0)
    ((*best,), *_) = model.predict_nbest(structures, 50, known=known)
    assert all(y[0] == "O" and y[2] == "I-PER" for y, _ in best)
    assert len(best) == len(model.classes_) ** 2
    assert sum(np.exp(p) for _, p in best) == pytest.approx(1.0)


def test_top_features():
    model = small(window=1).fit(X, Y)
    top = model.top_features(4)
    assert list(top) == model.classes_.tolist()
    for k, label in enumerate(model.classes_):
        sizes = [abs(weight) for _, weight in top[label]]
        assert sizes == sorted(sizes, reverse=True)
        weights = model.weights_.reshape(-1, len(model.classes_))[:, k]
        assert sizes == pytest.approx(sorted(np.abs(weights), reverse=True)[:4])
    assert "[0] w=Ana" in dict(model.top_features(1000)["B-PER"])
    transitions = {name: weight for name, weight in model.top_features(1000)["O"] if name.startswith("after")}
    at = model.classes_.tolist().index("O")
    assert transitions["after B-PER"] == model.transitions_[model.classes_.tolist().index("B-PER"), at]
    pairs = small(pair_features=True).fit(X, Y).top_features(1000)["O"]
    assert any(name.startswith("[0] w=") and name.endswith("after O") for name, _ in pairs)
    for n in (0, -1, "3", True):
        with pytest.raises(DataError, match=r"n=.*: give a whole number of at least 1"):
            model.top_features(n)
    assert small(l1=100.0).fit(X, Y).top_features() == {label: [] for label in model.classes_}
    with pytest.raises(NotFittedError):
        CRF().top_features()


TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]\nB2:%x[0,0]\nB")


def test_template_with_pair_lines(tmp_path):
    model = small(features=TEMPLATE).fit(X, Y)
    assert model.predict(X).tolist() == Y
    words, previous = {x for s in X for x in s}, {x for s in X for x in s[:-1]}
    expected = 5 * len(words) + 5 * (len(previous) + 1) + 25 + 25 * len(words)
    assert model.weights_.shape == (expected,)
    with pytest.raises(DataError, match="pair_features with a template: define features"):
        small(features=TEMPLATE, pair_features=True).fit(X, Y)
    model.save(tmp_path / "m.fuda")
    assert fuda.load(tmp_path / "m.fuda").predict(NEW).tolist() == model.predict(NEW).tolist()


@pytest.mark.parametrize(
    "parameters", [{}, {"pair_features": True}, {"features": TEMPLATE}, {"loss": "markov", "order": 2.5}]
)
def test_saved_and_loaded_it_is_the_same(parameters, tmp_path):
    model = small(**parameters).fit(X, Y)
    model.save(tmp_path / "one.fuda")
    loaded = fuda.load(tmp_path / "one.fuda")
    loaded.save(tmp_path / "two.fuda")
    assert (tmp_path / "one.fuda").read_bytes() == (tmp_path / "two.fuda").read_bytes()
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.weights_, model.weights_)
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        assert other.predict(NEW).tolist() == model.predict(NEW).tolist()
        assert other.objective(X, Y) == model.objective(X, Y)


def test_dense_vectors():
    random = np.random.default_rng(0)
    centres = random.normal(size=(3, 4)) * 3
    y = [list(random.choice(["a", "b", "c"], size=6)) for _ in range(10)]
    vectors = [[centres["abc".index(k)] + random.normal(size=4) for k in labels] for labels in y]
    model = CRF().fit(vectors, y)
    assert model.score(vectors, y) > 0.95


@pytest.mark.parametrize("value", [1e-12, 1e6])
def test_features_of_any_size(value):
    """A column of tiny or huge numbers leads to finite weights and no warning."""
    data = [[{"size": value * (k + 1), "w=" + x: 1.0} for k, x in enumerate(words)] for words in X]
    model = CRF().fit(data, Y)
    assert np.isfinite(model.weights_).all()
    assert model.score(data, Y) > 0.5


def test_extreme_weights_decode():
    for loss in LOSSES:
        model = small(loss=loss).fit(X, Y)
        w, random = model.weights_, np.random.default_rng(0)
        model.weights_ = 1e4 * random.choice([-1.0, 1.0], size=len(w))
        assert np.isfinite(model.objective(X, Y))
        for part in model.predict_marginals(X):
            np.testing.assert_allclose(part.sum(axis=1), 1.0)


def test_no_regularization_and_one_label():
    separable = small(l2=0.0, tol=1e-5).fit(X, Y)
    assert np.isfinite(separable.weights_).all()
    assert separable.objective(X, Y) < 1e-2
    for l2 in (0.0, 1.0):
        alone = small(l2=l2).fit([["a", "b"]], [["A", "A"]])
        assert alone.predict([["c"]]).tolist() == [["A"]]
        assert alone.objective([["a", "b"]], [["A", "A"]]) == pytest.approx(0.0)


def test_max_iter_warns():
    with pytest.warns(ConvergenceWarning, match="the CRF has not converged: max_iter=2 was reached"):
        model = small(max_iter=2).fit(X, Y)
    assert len(model.result_.history) == 2
    assert not model.result_.converged


@pytest.mark.parametrize("solver", ["lbfgs", "cg", "sgd"])
def test_interrupted_it_keeps_the_best_state(solver, monkeypatch):
    def interrupt(self, progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("fuda.progress.Iterations.__call__", interrupt)
    with pytest.warns(ConvergenceWarning, match="it was interrupted; the weights are the best so far"):
        model = small(solver=solver).fit(X, Y)
    assert len(model.result_.history) == 3
    assert len(model.predict(X)) == len(X)
    if solver != "sgd":
        assert model.objective(X, Y) == pytest.approx(model.result_.value)


def test_verbose(capsys):
    small(verbose=True).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("CRF, sequential: iteration 1, objective ")
    small().fit(X, Y)
    assert capsys.readouterr().err == ""


def test_scikit_learn():
    model = CRF(features="word", l2=0.5, window=np.int64(1))
    assert clone(model).get_params() == model.get_params()
    many, labels = X * 3, Y * 3
    search = GridSearchCV(CRF(features="word"), {"l2": [0.1, 1.0, 1000.0]}, cv=3).fit(many, labels)
    assert search.best_params_["l2"] < 1000
    predicted = cross_val_predict(CRF(features="word", l2=0.1), many, labels, cv=3)
    assert predicted.shape == (len(many),)
    assert [len(y) for y in predicted] == [len(x) for x in many]
    assert search.predict(X).dtype == object


def test_equally_long_sequences_stay_lists():
    model = CRF().fit([["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]])
    predicted = model.predict([["a", "b"], ["b", "b"]])
    assert predicted.shape == (2,)
    assert isinstance(predicted[0], list)
    assert model.predict([]).shape == model.predict_marginals([]).shape == (0,)
