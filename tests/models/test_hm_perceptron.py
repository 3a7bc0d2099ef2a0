"""The hidden Markov perceptron: against brute force in plain Python, and primal against dual."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import fuda
from fuda import DataError, Sequence, Template, Tree, read
from fuda.kernels import RBF, Delta, Linear, Polynomial
from fuda.metrics import entity_scores
from fuda.models.hm_perceptron import HMPerceptron, Mistakes
from fuda.training.whole_perceptron import WholePrimal
from structure_cases import forest_heads

LABELS = ["A", "B", "C"]
X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "eats"], ["in", "Lima", "Bo", "sleeps"]]
Y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O"], ["O", "LOC", "PER", "O"]]


class Plain:
    """A perceptron by the book: exact arithmetic, all labelings, weights summed over steps."""

    def __init__(self, classes, order, reading) -> None:
        self.classes, self.order, self.reading = classes, order, reading
        self.now: dict = {}
        self.total: dict = {}
        self.steps = 0

    def phi(self, words, heads, labels) -> dict:
        """Counts of features: word and label, and each label with the nearest ancestors'."""
        counts: dict = {}
        for t, label in enumerate(labels):
            context, node = [], t
            while heads[node] >= 0 and len(context) < self.order:
                node = heads[node]
                context.append(labels[node])
            keys = [("word", words[t], label)] + ([("gram", *context, label)] if self.order else [])
            for key in keys:
                counts[key] = counts.get(key, 0) + 1
        return counts

    def best(self, weights, words, heads, known):
        """The best labeling that agrees with given labels; the first of equals, parents first."""
        choices = [self.classes if label is None else [label] for label in known]

        def rank(labels):
            score = sum(n * weights.get(key, 0) for key, n in self.phi(words, heads, labels).items())
            return -score, [labels[t] for t in self.reading(heads)]

        return min(itertools.product(*choices), key=rank)

    def epoch(self, data) -> Mistakes:
        structures = nodes = 0
        for words, heads, labels, weight in data:
            self.steps += 1
            predicted = self.best(self.now, words, heads, [None] * len(words))
            wrong = sum(a is not None and a != b for a, b in zip(labels, predicted, strict=True))
            if wrong:
                structures, nodes = structures + 1, nodes + wrong
                target = self.best(self.now, words, heads, labels)
                for labeling, sign in ((target, weight), (predicted, -weight)):
                    for key, n in self.phi(words, heads, labeling).items():
                        self.now[key] = self.now.get(key, 0) + sign * n
            for key, value in self.now.items():
                self.total[key] = self.total.get(key, 0) + value
        return Mistakes(structures, nodes)


def reading_order(heads):
    return Tree(["x"] * len(heads), heads).order.tolist()


@st.composite
def cases(draw, with_none=True):
    """A few structures with labels, all sequences or all trees: X, y, heads and weights."""
    as_trees = draw(st.booleans())
    labels = st.sampled_from([*LABELS, None] if with_none else LABELS)
    structures, heads, y = [], [], []
    for _ in range(draw(st.integers(1, 4))):
        words = draw(st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=4))
        heads.append(draw(forest_heads(len(words))) if as_trees else list(range(-1, len(words) - 1)))
        structures.append(Tree(words, heads[-1]) if as_trees else Sequence(words))
        y.append(draw(st.lists(labels, min_size=len(words), max_size=len(words))))
    y[0][0] = "A"  # some label is known
    return structures, y, heads, draw(st.lists(st.integers(1, 3), min_size=len(y), max_size=len(y)))


@settings(max_examples=80)
@given(cases(), st.integers(0, 3), st.booleans())
def test_by_the_book(case, order, average):
    structures, y, heads, weights = case
    model = HMPerceptron(features="word", window=0, order=order, average=average, epochs=3, shuffle=False)
    model.fit(structures, y, sample_weight=weights)
    plain = Plain(model.classes_, order, reading_order)
    data = [(list(s), h, labels, w) for s, h, labels, w in zip(structures, heads, y, weights, strict=True)]
    log = []
    while len(log) < 3 and not (log and not log[-1].structures):
        log.append(plain.epoch(data))
    assert model.mistakes_ == log
    decisive = plain.total if average else plain.now
    names = model.encoder_.feature_names(0)
    divisor = plain.steps if average else 1
    for (f, name), (b, label) in itertools.product(enumerate(names), enumerate(model.classes_)):
        expected = Fraction(decisive.get(("word", name.removeprefix("w="), label), 0), divisor)
        assert model.weights_[f, b] == float(expected)
    if order == 1:
        for (a, above), (b, label) in itertools.product(enumerate(model.classes_), repeat=2):
            assert model.transitions_[a, b] == decisive.get(("gram", above, label), 0) / divisor
    if not average:
        for words, tree, _, _ in data:
            structure = Tree(words, tree) if model.shape_ == "tree" else words
            best = plain.best(plain.now, words, tree, [None] * len(words))
            assert model.predict([structure])[0] == list(best)


@settings(max_examples=30)
@given(cases(), st.integers(0, 2))
def test_votes_by_the_book(case, order):
    structures, y, heads, _ = case
    model = HMPerceptron(
        features="word", window=0, order=order, average="voted", epochs=2, shuffle=False
    ).fit(structures, y)
    plain = Plain(model.classes_, order, reading_order)
    data = [(list(s), h, labels, 1) for s, h, labels in zip(structures, heads, y, strict=True)]
    words, tree, _, _ = data[-1]
    count = np.zeros((len(words), len(model.classes_)))
    for step in data * len(model.mistakes_):
        plain.epoch([step])
        if plain.now:  # it has made a mistake
            for t, label in enumerate(plain.best(plain.now, words, tree, [None] * len(words))):
                count[t, model.classes_.tolist().index(label)] += 1
    if not plain.now:
        count[:, 0] = 1
    shares = count / count.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_marginals(structures)[-1], shares)
    assert model.predict(structures)[-1] == [model.classes_[b] for b in shares.argmax(axis=1)]


@settings(max_examples=60)
@given(
    cases(),
    st.integers(0, 2),
    st.sampled_from([True, False, "voted"]),
    st.sampled_from([Linear(), 1.0 * Linear()]),
    st.sampled_from([("word", 0), ("text", 1)]),
)
def test_primal_and_linear_dual_are_identical(case, order, average, kernel, features):
    structures, y, _, weights = case
    parameters = {"order": order, "average": average, "epochs": 3, "random_state": 0}
    parameters |= {"features": features[0], "window": features[1]}
    primal = HMPerceptron(**parameters).fit(structures, y, sample_weight=weights)
    dual = HMPerceptron(kernel=kernel, **parameters).fit(structures, y, sample_weight=weights)
    assert primal.mistakes_ == dual.mistakes_
    others = [Tree(["z", "x", "new"], [1, -1, 1])] if primal.shape_ == "tree" else [["z", "new", "x"]]
    assert primal.predict(structures + others).tolist() == dual.predict(structures + others).tolist()
    if order < 2:
        for a, b in zip(primal.predict_marginals(others), dual.predict_marginals(others), strict=True):
            np.testing.assert_array_equal(a, b)


def test_integer_features_with_values_and_trees_over_windows():
    rng = np.random.RandomState(3)

    def tree():
        size = rng.randint(2, 9)
        nodes = [{f"f{rng.randint(4)}": float(rng.randint(1, 4)), "bias": 2.0} for _ in range(size)]
        return Tree(nodes, [-1, *(int(rng.randint(i)) for i in range(1, size))])

    trees = [tree() for _ in range(40)]
    y = [[LABELS[int(x.get("f1", 0)) % 3] for x in t.observations] for t in trees]
    for average in (True, False):
        primal = HMPerceptron(average=average, window=2, random_state=1).fit(trees, y)
        dual = HMPerceptron(kernel=Linear(), average=average, window=2, random_state=1).fit(trees, y)
        assert primal.mistakes_ == dual.mistakes_
        assert primal.mistakes_[0].nodes > primal.mistakes_[-1].nodes
        fresh = [tree() for _ in range(20)]
        assert primal.predict(fresh).tolist() == dual.predict(fresh).tolist()


@pytest.mark.parametrize(
    "kernel", [None, Linear(), 1.0 * Linear(), Polynomial(2).normalized(), RBF(0.5), Delta()]
)
@pytest.mark.parametrize("average", [True, False, "voted"])
def test_what_was_learned_can_be_explained(kernel, average):
    model = HMPerceptron(kernel=kernel, average=average, random_state=0).fit(X, Y)
    assert model.mistakes_[-1] == (0, 0)  # and so it stopped
    assert len(model.mistakes_) < 10
    if average is False:
        assert model.predict(X).tolist() == Y
    assert model.score(X, Y) > 0.8
    marginals = model.predict_marginals(X)
    assert all(m.shape == (len(x), 3) for m, x in zip(marginals, X, strict=True))
    np.testing.assert_allclose(np.concatenate(marginals).sum(axis=1), 1.0)
    best = model.predict_nbest(X, 3)
    assert [ranked[0][0] for ranked in best] == model.predict(X).tolist()
    assert all(len(ranked) == 3 and ranked[0][1] >= ranked[1][1] >= ranked[2][1] for ranked in best)
    known = [[None, "LOC", None, None], [None] * 3, [None] * 2, [None] * 4]
    assert model.predict(X, known=known)[0][1] == "LOC"
    assert model.predict_marginals(X, known=known)[0][1].tolist() == [1.0, 0.0, 0.0]
    assert model.predict([]).tolist() == []


def test_order_sees_what_pairs_cannot():
    """Every third node of a row of equal observations is marked."""
    rows = [["x"] * size for size in (9, 12, 10, 11)]
    y = [["M" if t % 3 == 2 else "O" for t in range(len(row))] for row in rows]
    assert HMPerceptron(features="word", window=0, order=1, random_state=0).fit(rows, y).score(rows, y) < 1
    for kernel in (None, Delta()):
        model = HMPerceptron(kernel=kernel, features="word", window=0, order=2, random_state=0).fit(rows, y)
        assert model.predict([["x"] * 20])[0] == ["M" if t % 3 == 2 else "O" for t in range(20)]
    trees = [Tree(["x"] * len(heads), heads) for heads in ([-1, 0, 0, 1, 1, 3], [-1, 0, 1, 2, 3, 4, 1])]
    y = [["O", "O", "O", "M", "M", "O"], ["O", "O", "M", "O", "O", "M", "M"]]
    for kernel in (None, Delta()):
        model = HMPerceptron(kernel=kernel, features="word", window=0, order=2, average=False, epochs=50)
        assert model.fit(trees, y).predict(trees).tolist() == y


def test_schemes_and_known_labels_with_a_higher_order():
    y = [[{"PER": "B-PER", "LOC": "B-LOC"}.get(label, "O") for label in labels] for labels in Y]
    y[0][1] = "I-PER"
    free = HMPerceptron(order=2, random_state=0).fit(X, y)
    bound = HMPerceptron(order=2, random_state=0, scheme="IOB2").fit(X, y)
    known = [["O", "I-PER", None, None]]
    assert free.predict([X[0]], known=known)[0][:2] == ["O", "I-PER"]
    with pytest.raises(DataError, match="every labeling is forbidden"):
        bound.predict([X[0]], known=known)
    for labels in bound.predict([["lives", "lives", "in"], ["sings"]]):
        assert all(b != "I-PER" or a in ("B-PER", "I-PER") for a, b in itertools.pairwise(["O", *labels]))


@pytest.mark.parametrize(
    ("kernel", "average", "order"),
    [(None, True, 2), (None, False, 2), (None, "voted", 1)]
    + [(1.0 * Linear(), average, 1) for average in (True, False, "voted")],
)
def test_going_on_is_as_if_all_had_come_at_once(kernel, average, order):
    parameters = {"kernel": kernel, "average": average, "order": order, "features": "word", "shuffle": False}
    whole = HMPerceptron(epochs=1, **parameters).fit(X, Y)
    parts = HMPerceptron(epochs=7, **parameters)
    first = [["Ana", "in", "Lima"]], [["PER", "O", "LOC"]]
    whole.fit(first[0] + X, first[1] + Y)
    assert parts.partial_fit(*first) is parts
    assert parts.epochs == 7
    parts.partial_fit(X[:2], Y[:2]).partial_fit([], []).partial_fit(X[2:], Y[2:])
    assert len(parts.mistakes_) == 3
    assert np.sum(parts.mistakes_, axis=0).tolist() == list(whole.mistakes_[0])
    assert parts.predict(X).tolist() == whole.predict(X).tolist()
    if kernel is None:
        assert parts.top_features(100) == {
            label: sorted(
                top, key=lambda pair: [name for name, _ in parts.top_features(100)[label]].index(pair[0])
            )
            for label, top in whole.top_features(100).items()
        }


def test_going_on_with_weights_and_wrong_labels():
    model = HMPerceptron(random_state=0).fit(X, Y)
    steps = model._state.steps.tolist()
    model.partial_fit(X, Y, sample_weight=[0, 0, 0, 0])
    assert model._state.steps.tolist() == steps
    before = model.predict([["new", "words"]]).tolist()
    with pytest.raises(DataError, match=r"the label 7 \(int\) is new, where others are like"):
        model.partial_fit([["new", "words"]], [[7, 7]])
    with pytest.raises(DataError, match="sample_weight"):
        model.partial_fit([["new", "words"]], [["O", "O"]], sample_weight=[1, 2])
    with pytest.raises(DataError, match="structure 0 is a tree"):
        model.partial_fit([Tree(["new"], [-1])], [["O"]])
    assert model.predict([["new", "words"]]).tolist() == before


def test_top_features():
    model = HMPerceptron(random_state=0, order=2, features="word", window=1).fit(X, Y)
    top = model.top_features(200)
    assert set(top) == {"PER", "O", "LOC"}
    names = {name for features in top.values() for name, _ in features}
    assert any(name.startswith("[-1] w=") for name in names)
    assert any(name.startswith("after <start>") for name in names)
    assert all(
        abs(a) >= abs(b) for features in top.values() for (_, a), (_, b) in itertools.pairwise(features)
    )
    assert len(model.top_features(2)["O"]) == 2
    with pytest.raises(DataError, match="order=2: stretches of 3 labels"):
        _ = model.transitions_
    with pytest.raises(DataError, match="kernel="):
        HMPerceptron(kernel=Linear(), random_state=0).fit(X, Y).top_features()


def test_the_random_order_is_the_seed_s():
    def weights(**parameters):
        return HMPerceptron(epochs=1, average=False, **parameters).fit(X * 5, Y * 5).weights_

    np.testing.assert_array_equal(weights(random_state=4), weights(random_state=4, n_jobs=1))
    assert (weights(random_state=4) != weights(random_state=5)).any()
    np.testing.assert_array_equal(weights(shuffle=False, random_state=4), weights(shuffle=False))


def test_parameters_as_scikit_learn_has_them():
    model = clone(HMPerceptron(kernel=Polynomial(2), average="voted"))
    assert model.set_params(kernel__degree=3).kernel == Polynomial(3)
    fitted = HMPerceptron(average="voted", random_state=0).fit(X, Y)
    before = fitted.predict(X).tolist()
    assert fitted.set_params(average=True, order=3, kernel=Linear()).predict(X).tolist() == before
    dual = HMPerceptron(kernel=RBF(0.1), random_state=0).fit(X, Y)
    before = dual.predict_marginals(X)[0].tolist()
    assert dual.set_params(kernel__gamma=9.0).predict_marginals(X)[0].tolist() == before
    with pytest.raises(NotFittedError):
        HMPerceptron().predict(X)


def test_progress(capsys):
    HMPerceptron(verbose=True, random_state=0).fit(X, Y)
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("HM-perceptron: iteration 1, mistakes ")


@pytest.mark.parametrize("average", [True, "voted"])
def test_an_interrupted_fit_is_a_fit(monkeypatch, average):
    run, left = WholePrimal.run, [2]

    def interrupted(self, structures, result):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        run(self, structures, result)

    monkeypatch.setattr(WholePrimal, "run", interrupted)
    model = HMPerceptron(average=average, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X * 3, Y * 3)
    assert len(model.mistakes_) == 1
    assert model.score(X, Y) > 0.8
    left[0] = 1
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("learned", [0, 3, 6])
@pytest.mark.parametrize("average", [True, "voted"])
def test_an_epoch_that_an_interrupt_left_is_brought_to_its_end(monkeypatch, average, learned):
    """An interrupt comes between compiled functions: before an epoch, within it or after it."""
    run, runs = WholePrimal.run, []

    def interrupted(self, structures, result):
        runs.append(len(structures))
        run(self, structures[:learned] if len(runs) == 3 else structures, result)
        if len(runs) == 3:
            raise KeyboardInterrupt

    epochs = 2 if not learned else 3
    parameters = {"average": average, "random_state": 0}
    x, y = X * 2, [*Y, *([label if label != "PER" else "LOC" for label in labels] for labels in Y)]
    alone = HMPerceptron(epochs=epochs, **parameters).fit(x, y)
    monkeypatch.setattr(WholePrimal, "run", interrupted)
    with pytest.warns(ConvergenceWarning, match=f"those after {epochs} epochs"):
        model = HMPerceptron(epochs=10, **parameters).fit(x, y)
    assert model.mistakes_ == alone.mistakes_
    np.testing.assert_array_equal(model.weights_, alone.weights_)


def fit(*data, **parameters):
    return lambda: HMPerceptron(**parameters).fit(*(data or (X, Y)))


BAD = {
    "epochs 0": (fit(epochs=0), "epochs=0", "at least 1"),
    "epochs half": (fit(epochs=1.5), "epochs=1.5", "whole number"),
    "order negative": (fit(order=-1), "order=-1", "at least 0"),
    "order real": (fit(order=1.0), "order=1.0", "whole number"),
    "order huge": (fit(order=40), "order=40 with 3 labels", "choose a lower order"),
    "average": (fit(average="mean"), "average='mean'", "True, False or 'voted'"),
    "average list": (fit(average=[]), "average=[]", "True, False or 'voted'"),
    "shuffle": (fit(shuffle="yes"), "shuffle='yes'", "True or False"),
    "n_jobs": (fit(n_jobs=0), "n_jobs=0", "number of threads"),
    "random_state": (fit(random_state="x"), "random_state='x'", "whole number"),
    "kernel name": (fit(kernel="linear"), "kernel='linear'", "fuda.kernels"),
    "kernel class": (fit(kernel=Linear), "kernel=Linear", "write Linear()"),
    "kernel degree": (fit(kernel=Polynomial(0)), "degree=0", "1 to 20"),
    "scheme": (fit(scheme="BIO9"), "BIO9"),
    "template of pairs": (
        fit(features=Template("U0:%x[0,0]\nB0:%x[0,0]")),
        "template line",
        "no features of label pairs",
    ),
    "position weights": (lambda: HMPerceptron().fit(X, Y, None, [[1] * len(x) for x in X]), "sample_weight"),
    "dags": (lambda: HMPerceptron().fit([fuda.Dag(["a"], [])], [["A"]]), "structure 0 is a dag"),
    "n-best of order 2": (lambda: HMPerceptron(order=2).fit(X, Y).predict_nbest(X, 2), "order=2", "order=1"),
    "marginals of order 2": (lambda: HMPerceptron(order=2).fit(X, Y).predict_marginals(X), "order=2"),
    "features too large": (fit([[{"f": 1e300}]], [["A"]]), "scale features"),
    "scheme on trees": (
        lambda: (
            HMPerceptron(order=2, scheme="IOB2")
            .fit([Tree(["a"], [-1])], [["O"]])
            .predict([Tree(["a"], [-1])])
        ),
        "structure 0 is a tree",
        "scheme=None",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, *words = BAD[name]
    with pytest.raises(DataError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.slow
def test_spanish_news(corpora):
    words, labels = read(corpora / "conll2002" / "esp.train", columns=1)
    test_words, test_labels = read(corpora / "conll2002" / "esp.testb", columns=1)
    model = HMPerceptron(epochs=5, random_state=0).fit(words[:1000], labels[:1000])
    assert entity_scores(test_labels, model.predict(test_words)).micro.f1 > 0.62


@pytest.mark.parametrize("renamed", [{0: -1, 1: -2, 2: 7}, {0: 2**70, 1: -(2**70), 2: 0}])
def test_integer_ids_are_names_only(renamed):
    """No id is mistaken for a boundary mark, and ids may be of any size."""
    X, y = [[0, 1, 2, 0], [2, 0], [1, 2, 2]], [["A", "B", "B", "A"], ["B", "A"], ["A", "A", "B"]]
    new = [[0, 2], [1, 1, 0]]
    outcomes = [
        HMPerceptron(kernel=Delta(), window=1)
        .fit([[names[x] for x in s] for s in X], y)
        .predict_marginals([[names[x] for x in s] for s in new])
        for names in ({0: 0, 1: 1, 2: 2}, renamed)
    ]
    for ours, theirs in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("model", "absent"), [(HMPerceptron(kernel=Delta()), "weights_"), (HMPerceptron(order=2), "transitions_")]
)
def test_weights_that_a_model_does_not_have_are_no_attributes(model, absent):
    model.fit(X, Y)
    assert not hasattr(model, absent)
    assert absent not in dir(model)  # as asked for when names are completed
    with pytest.raises(DataError, match="weights"):
        getattr(model, absent)
