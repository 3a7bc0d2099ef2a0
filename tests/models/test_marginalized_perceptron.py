"""The kernel marginalized labeling perceptron against the papers' algorithm, step by step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict

from fuda import HMM, Dag, DataError, Sequence, Tree, load, read
from fuda.kernels import Function, Polynomial
from fuda.marginalized.problem import Sources
from fuda.metrics import entity_scores, label_scores
from fuda.models.marginalized_perceptron import MarginalizedPerceptron
from machine_cases import SHAPES, random_prior, random_structures, whole_kernel

LABELS = ["A", "B", "C"]
SIMILAR = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]]


def perceptron(**parameters) -> MarginalizedPerceptron:
    return MarginalizedPerceptron(
        **{"kernel": Polynomial(2), "features": "spelling", "mixing": 1.1} | parameters
    )


def random_amounts(X):
    """What a mistake at each node counts: random, so that scores are equal only by rounding."""
    rng = np.random.default_rng(0)
    return [rng.random(len(x)) + 0.5 for x in X]


def random_problem(seed, shape="sequence", count=8, form="uniform"):
    rng = np.random.default_rng(seed)
    X = random_structures(rng, shape, count)
    y = [rng.choice(LABELS, len(x)).tolist() for x in X]
    y[0][0], y[1][0], y[2][0] = LABELS
    return X, y, random_prior(rng, X, 3, form)


def papers_algorithm(X, y, priors, model, amounts):
    """Figure 3: α after each structure visited, and the mistakes of each epoch."""
    K = whole_kernel(
        X,
        X,
        priors,
        priors,
        kernel=model.kernel_,
        label_kernel=model.label_kernel,
        mixing=model.mixing_,
        gap=model.gap,
    )
    labels = [LABELS.index(label) if label else -1 for row in y for label in row]
    alpha, amounts = np.zeros((len(labels), 3)), np.concatenate(amounts)
    bounds = np.cumsum([0, *map(len, X)])
    visited, mistakes = [], []
    for _ in range(model.epochs):
        mistakes.append(0)
        for begin, end in pairwise(bounds):
            for t in range(begin, end):
                scores = np.einsum("ir,irs->s", alpha, K[:, t])
                best = int(scores.argmax())
                if labels[t] >= 0 and best != labels[t]:
                    alpha[t, labels[t]] += amounts[t]
                    alpha[t, best] -= amounts[t]
                    mistakes[-1] += 1
            visited.append(alpha.copy())
        if not mistakes[-1]:
            break
    return visited, mistakes, K


def alpha_of(model, X) -> np.ndarray:
    """α of all nodes of X, by its support positions."""
    alphas = [np.zeros((len(x), 3)) for x in X]
    number = {id(x): i for i, x in enumerate(X)}
    for position in model.support_:
        structure = number[id(model.support_structures_[position.structure])]
        for label, value in position.alpha.items():
            alphas[structure][position.node, LABELS.index(label)] = value
    return np.concatenate(alphas)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["uniform", "marginals"])
def test_is_the_papers_algorithm(shape, form, seed):
    X, y, priors = random_problem(seed, shape, form=form)
    amounts, prior = random_amounts(X), "uniform" if form == "uniform" else priors
    model = perceptron(prior=prior, average=False, epochs=4).fit(X, y, position_weight=amounts)
    visited, mistakes, _ = papers_algorithm(X, y, priors, model, amounts)
    assert model.mistakes_ == mistakes
    assert (alpha_of(model, X) == visited[-1]).all()


@pytest.mark.parametrize("parameters", [{"gap": 0.3}, {"label_kernel": SIMILAR}, {"mixing": None}], ids=str)
def test_is_the_papers_algorithm_in_other_settings(parameters):
    X, y, priors = random_problem(11, form="marginals")
    parameters = {"prior": priors, "average": False, "epochs": 3} | parameters
    model, amounts = perceptron(**parameters), random_amounts(X)
    model.fit(X, y, position_weight=amounts)
    visited, mistakes, _ = papers_algorithm(X, y, priors, model, amounts)
    assert model.mistakes_ == mistakes
    assert (alpha_of(model, X) == visited[-1]).all()


def test_average_over_structures_visited():
    X, y, priors = random_problem(1)
    amounts = random_amounts(X)
    model = perceptron(epochs=3, orders=1).fit(X, y, position_weight=amounts)
    visited, _, K = papers_algorithm(X, y, priors, model, amounts)
    mean = np.mean(visited, axis=0)
    np.testing.assert_allclose(alpha_of(model, X), mean, atol=1e-12)
    scores = np.concatenate(list(model.decision_scores(X)))
    np.testing.assert_allclose(scores, np.einsum("ir,itrs->ts", mean, K), rtol=1e-9)


def test_labels_not_known_and_weights():
    X, y, priors = random_problem(2)
    y[3][0] = None
    y[4] = [None] * len(y[4])
    amounts = random_amounts(X)
    amounts[5][:] = 0.0
    model = perceptron(average=False, epochs=3).fit(X, y, position_weight=amounts)
    y_seen = [row if i != 5 else [None] * len(row) for i, row in enumerate(y)]
    visited, mistakes, _ = papers_algorithm(X, y_seen, priors, model, amounts)
    assert model.mistakes_ == mistakes
    np.testing.assert_allclose(alpha_of(model, X), visited[-1])
    twice = perceptron(average=False, epochs=3).fit(X, y, [2.0] * 8, amounts)
    np.testing.assert_allclose(alpha_of(twice, X), 2 * visited[-1])


def test_further_orders_are_random_and_the_mean_goes_over_all():
    X, y, _ = random_problem(3)
    amounts = random_amounts(X)
    fit = {"X": X, "y": y, "position_weight": amounts}
    one, two, again = (perceptron(average=False, epochs=2, orders=n).fit(**fit) for n in (1, 2, 2))
    assert one.mistakes_ == two.mistakes_
    random = np.random.RandomState(0)
    first = random.permutation(len(X))
    other = shuffled_perceptron(X, y, amounts, [first, random.permutation(first)])
    np.testing.assert_allclose(alpha_of(two, X), (alpha_of(one, X) + other) / 2, atol=1e-12)
    assert (alpha_of(two, X) == alpha_of(again, X)).all()
    default = perceptron().fit(X, y)
    assert (default.orders, default.orders_, one.orders_) == (None, 4, 1)


def shuffled_perceptron(X, y, amounts, orders):
    """α of the papers' algorithm where each epoch has an order of its own."""
    by_hand = perceptron(average=False, epochs=1).fit(X, y, position_weight=amounts)
    labels = [[by_hand.classes_.tolist().index(label) for label in row] for row in y]
    prior = [np.full((len(x), len(by_hand.classes_)), 1.0 / len(by_hand.classes_)) for x in X]
    K = whole_kernel(X, X, prior, prior, kernel=by_hand.kernel_, mixing=by_hand.mixing_)
    offsets = np.cumsum([0, *map(len, X)])
    alpha = np.zeros((offsets[-1], len(by_hand.classes_)))
    for i in np.concatenate(orders):
        for t in range(len(X[i])):
            scores = np.einsum("ir,irs->s", alpha, K[:, offsets[i] + t])
            right, predicted = labels[i][t], int(scores.argmax())
            if right != predicted:
                alpha[offsets[i] + t, right] += amounts[i][t]
                alpha[offsets[i] + t, predicted] -= amounts[i][t]
    return alpha


@pytest.mark.parametrize("shape", SHAPES)
def test_threads_change_nothing(shape):
    X, y, _ = random_problem(5, shape, count=20)
    one, three = (perceptron(n_jobs=n, epochs=2).fit(X, y) for n in (1, 3))
    for a, b in zip(one.decision_scores(X), three.decision_scores(X), strict=True):
        assert (a == b).all()


def test_no_mistakes_end_training():
    X, y = [["a", "b"], ["c"]], [["A", "B"], ["C"]]
    model = MarginalizedPerceptron(epochs=50).fit(X, y)
    assert model.mistakes_[-1] == 0
    assert len(model.mistakes_) < 50
    assert [list(p) for p in model.predict(X)] == y
    assert [list(p) for p in model.predict([])] == []
    one = MarginalizedPerceptron().fit([["a"]], [["A"]])
    assert (one.mistakes_, one.support_, one.predict([["b"]])[0]) == ([0], [], ["A"])


def test_numbers_past_all_doubles_train_and_predict():
    rng = np.random.default_rng(0)
    long = ["Lima" if rng.random() < 0.5 else "EFE" for _ in range(300)]
    X = [long, ["EFE", "in", "Lima"], long[100:200]]
    y = [["A" if w == "Lima" else "B" for w in x] for x in X]
    y[1] = ["B", "C", "A"]
    model = MarginalizedPerceptron(kernel=Polynomial(2), mixing=9.0, epochs=30, average=False).fit(X, y)
    assert Sources(model._settings, model._support[0].examples).problem().is_scaled
    assert model.mistakes_[-1] == 0
    assert [list(p) for p in model.predict(X)] == y
    marginals = model.predict_marginals(X)
    assert all(np.isfinite(p).all() for p in marginals)
    assert [len(p) for p in marginals] == [300, 3, 100]


@pytest.mark.parametrize("shape", SHAPES)
def test_one_corrected_structure(shape):
    rng = np.random.default_rng(0)
    X, y, _ = random_problem(6, shape, count=12)
    model = MarginalizedPerceptron(epochs=3).fit(X, y)
    new = random_structures(rng, shape, 3)
    for structure in new:
        observations = ["Quito", *structure.observations[1:]]  # a word new to the model
        structure.observations = tuple(observations)
        corrected = rng.choice(LABELS, len(structure)).tolist()
        before = len(model.support_structures_)
        for _ in range(10):
            model.partial_fit([structure], [corrected])
        assert list(model.predict([structure])[0]) == corrected
        assert model.mistakes_[-1] == 0
        assert len(model.support_structures_) > before
    assert len(model._support) <= 2
    total = sum(np.abs(list(p.alpha.values())).sum() for p in model.support_)
    assert total > 0
    again = MarginalizedPerceptron(epochs=3)
    assert again.partial_fit(X, y) is again
    assert again.partial_fit([], []) is again
    assert again.mistakes_ == model.mistakes_[:3]


@pytest.mark.parametrize("least_shared", [0, 1 << 20], ids=["shared classes", "whole table"])
def test_joined_support_says_the_same(monkeypatch, least_shared):
    """Observations that are in both parts, and targets with observations that are in neither."""
    monkeypatch.setattr("fuda.marginalized.kernel_classes._SMALL_TABLE", least_shared)
    words = ["de", "la", "Lima", "Ana", "ve", "Quito", "Eva", "Oslo", "el", "Ada", "1", "2"]
    rng = np.random.default_rng(7)
    X = [Sequence(rng.choice(words[:9], 12).tolist()) for _ in range(10)]
    new_X = [Sequence(rng.choice(words[:10], 12).tolist()) for _ in range(4)]
    y, new_y = ([rng.choice(LABELS, 12).tolist() for _ in part] for part in (X, new_X))
    unseen = [Sequence(rng.choice([*words, *"abcdefgh"], 12).tolist()) for _ in range(5)]
    apart, joined = (MarginalizedPerceptron(epochs=2).fit(X, y) for _ in range(2))
    apart.partial_fit(new_X, new_y)
    assert len(apart._support) == 2
    monkeypatch.setattr("fuda.marginalized.support._RECENT", 0)
    joined.partial_fit(new_X, new_y)
    assert len(joined._support) == 1
    for Z in (new_X, unseen):
        for a, b in zip(apart.decision_scores(Z), joined.decision_scores(Z), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def segments(seed, count):
    """Names of one to three words, between other words."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        words, labels = [], []
        for _ in range(int(rng.integers(1, 5))):
            for _ in range(int(rng.integers(0, 3))):
                words.append(str(rng.choice(["in", "the", "of", "said", "Then", "May"])))
                labels.append("O")
            kind = str(rng.choice(["PER", "LOC"]))
            names = {"PER": ["Ana", "Bo", "May"], "LOC": ["Lima", "Rome", "of"]}[kind]
            for k in range(int(rng.integers(1, 4))):
                words.append(str(rng.choice(names)))
                labels.append(f"{'I' if k else 'B'}-{kind}")
        X.append(words)
        y.append(labels)
    return X, y


def test_viterbi_keeps_to_the_scheme():
    X, y = segments(0, 30)
    new, gold = segments(1, 40)
    posterior = MarginalizedPerceptron(epochs=5, orders=2, decode="posterior").fit(X, y)
    viterbi = MarginalizedPerceptron(epochs=5, orders=2, scheme="IOB2").fit(X, y)
    for labels in viterbi.predict(new):
        for before, here in zip(["O", *labels], labels, strict=False):
            assert not here.startswith("I-") or before[1:] == here[1:]
    f1 = [entity_scores(gold, model.predict(new)).micro.f1 for model in (posterior, viterbi)]
    assert f1[1] > f1[0]


def test_decoding_follows_the_labels(tmp_path):
    X, y = segments(0, 30)
    plain = [[label[2:] or label for label in labels] for labels in y]
    trees = [Tree(x, range(-1, len(x) - 1)) for x in X]
    for structures, labels, parameters, decode in (
        (X, y, {}, "viterbi"),
        (X, plain, {}, "posterior"),
        (trees, y, {}, "posterior"),
        (X, y, {"calibrate": False}, "posterior"),
    ):
        default = MarginalizedPerceptron(epochs=2, **parameters).fit(structures, labels)
        named = clone(default).set_params(decode=decode).fit(structures, labels)
        assert default.decode is None
        default.save(tmp_path / "model.fuda")
        loaded = load(tmp_path / "model.fuda")
        assert loaded.decode is None
        for model in (default, loaded):
            assert list(map(list, model.predict(structures))) == list(map(list, named.predict(structures)))


def test_viterbi_on_trees_and_never_on_dags():
    X, y, _ = random_problem(0, "tree", count=12)
    model = MarginalizedPerceptron(decode="viterbi", epochs=2).fit(X, y)
    assert [len(p) for p in model.predict(X)] == list(map(len, X))
    X, y, _ = random_problem(0, "dag", count=4)
    with pytest.raises(DataError, match="posterior"):
        MarginalizedPerceptron(decode="viterbi").fit(X, y)
    model = MarginalizedPerceptron().fit(X, y).set_params(decode="viterbi")
    with pytest.raises(DataError, match="posterior"):
        model.predict(X)


def test_probabilities_are_calibrated():
    X, y = segments(2, 80)
    new, gold = segments(3, 150)
    model = MarginalizedPerceptron(epochs=4, orders=2).fit(X, y)
    marginals = np.concatenate(list(model.predict_marginals(new)))
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
    truth = np.array([model.classes_.tolist().index(label) for row in gold for label in row])
    sure = marginals.max(axis=1)
    right = marginals.argmax(axis=1) == truth
    assert abs(sure.mean() - right.mean()) < 0.1
    half = np.median(sure)
    assert right[sure > half].mean() > right[sure <= half].mean()
    base = np.bincount(truth) / len(truth)
    assert -np.log(marginals[np.arange(len(truth)), truth]).mean() < -(base * np.log(base)).sum()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("prior", ["uniform", "hmm", "chain", "given"])
def test_stored_models_predict_the_same(tmp_path, shape, prior):
    X, y, priors = random_problem(10, shape, count=12, form="marginals")
    if shape == "dag" and prior in ("hmm", "chain"):
        prior = "given"
    if shape == "tree" and prior == "chain":
        prior = "hmm"
    parameters = {
        "uniform": {},
        "hmm": {"prior": HMM()},
        "chain": {"prior": HMM(), "prior_form": "chain"},
        "given": {"prior": priors},
    }[prior]
    arguments = {"prior": priors} if prior == "given" else {}
    model = MarginalizedPerceptron(epochs=3, label_kernel=None, **parameters).fit(X, y)
    model.partial_fit(X[:2], [["A"] * len(x) for x in X[:2]], **{k: v[:2] for k, v in arguments.items()})
    if prior == "given":
        model.set_params(prior="given")
    model.save(tmp_path / "model.fuda")
    again = load(tmp_path / "model.fuda")
    assert again.mistakes_ == model.mistakes_
    assert again.support_ == model.support_
    for a, b in zip(
        model.decision_scores(X, **arguments), again.decision_scores(X, **arguments), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    for a, b in zip(
        model.predict_marginals(X, **arguments), again.predict_marginals(X, **arguments), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-12)
    assert list(map(list, again.predict(X, **arguments))) == list(map(list, model.predict(X, **arguments)))


def test_a_model_without_support_is_stored(tmp_path):
    MarginalizedPerceptron().fit([["a"]], [["A"]]).save(tmp_path / "model.fuda")
    assert load(tmp_path / "model.fuda").predict([["b", "c"]])[0] == ["A", "A"]


def test_priors_by_labelers():
    X, y = segments(4, 20)
    hmm = HMM()
    for parameters in ({"prior": hmm}, {"prior": HMM().fit(X, y)}, {"prior": hmm, "prior_form": "chain"}):
        model = MarginalizedPerceptron(epochs=3, orders=2, **parameters).fit(X, y)
        assert label_scores(y, model.predict(X)).micro.f1 > 0.8
    assert not hasattr(hmm, "classes_")


def test_scikit_learn():
    X, y = segments(5, 18)
    model = MarginalizedPerceptron(Polynomial(2).normalized(), epochs=2, orders=1)
    assert clone(model).get_params()["kernel"] == model.kernel
    assert len(cross_val_predict(model, X, y, cv=3)) == len(X)
    search = GridSearchCV(model, {"mixing": [0.5, 2.0], "kernel__kernel__degree": [1, 2]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.3
    assert MarginalizedPerceptron().kernel is None
    assert MarginalizedPerceptron(orders=1).fit(X, y).kernel_ == Polynomial(1).normalized()


@pytest.mark.parametrize("observations", ["vectors", "ids", "features"])
def test_observations_of_every_kind(observations):
    rng = np.random.default_rng(0)
    make = {
        "vectors": lambda k: np.eye(3)[k] + 0.1 * rng.random(3),
        "ids": lambda k: int(k),
        "features": lambda k: {f"f{k}": 1.0, "bias": 0.5},
    }[observations]
    numbers = [rng.integers(0, 3, 5) for _ in range(10)]
    X = [[make(k) for k in row] for row in numbers]
    y = [[LABELS[k] for k in row] for row in numbers]
    model = MarginalizedPerceptron().fit(X, y)
    assert [list(p) for p in model.predict(X)] == y


X, Y = [["a", "b"], ["c"]], [["A", "B"], ["A"]]


def test_a_kernel_that_knows_nothing_of_a_new_observation():
    model = perceptron(kernel=lambda a, b: float("nan") if "z" in (a, b) else float(a == b)).fit(X, Y)
    with pytest.raises(DataError, match=r"structure 1: the kernel .* is nan for an observation in it"):
        model.predict([["a"], ["b", "z"]])
    with pytest.raises(DataError, match="a Python function cannot be stored"):
        model.save("never.fuda")


def test_a_prior_for_a_model_that_is_not_fitted():
    with pytest.raises(DataError, match=r"not fitted yet, and `fit` takes its prior from the parameter"):
        perceptron().partial_fit(X, Y, prior=random_prior(np.random.default_rng(0), X, 2))


HALF = [np.full((len(x), 2), 0.5) for x in X]


def fit(structures=X, labels=Y, **parameters):
    return lambda: MarginalizedPerceptron(**parameters).fit(structures, labels)


def asymmetric(a, b):
    return 1.0 if a == b else float(a < b)


BAD = {
    "c of 0": (fit(mixing=0), "mixing=0", "above 0"),
    "c below 0": (fit(mixing=-1.0), "mixing=-1.0", "above 0"),
    "c a word": (fit(mixing="big"), "mixing='big'", "above 0"),
    "gap of 2": (fit(gap=2), "gap=2", "from 0"),
    "gaps in trees": (fit([Tree(x, [-1] + [0] * (len(x) - 1)) for x in X], gap=0.5), "only sequences"),
    "no kernel": (fit(kernel=3), "kernel=3"),
    "NaN": (fit(kernel=lambda a, b: float("nan")), "gives nan", "a kernel is finite"),
    "asymmetric": (fit(kernel=asymmetric), "the other way round", "symmetric"),
    "label kernel": (fit(label_kernel=np.eye(3)), "label_kernel", "3 labels", "there are 2"),
    "prior unknown": (fit(prior="flat"), "prior='flat'"),
    "prior sum": (fit(prior=[HALF[0], HALF[1] * 1.5]), "structure 1", "node 0", "sums to 1.5"),
    "prior shape": (fit(prior=[HALF[0], HALF[0]]), "structure 1", "shape (2, 2)", "(1, 2)"),
    "prior count": (fit(prior=HALF[:1]), "2 structures", "prior has 1"),
    "prior form": (fit(prior_form="tree"), "prior_form='tree'"),
    "chain and gap": (fit(prior=HMM(), prior_form="chain", gap=0.5), "gap=0", "marginals"),
    "decode": (fit(decode="best"), "decode='best'", "posterior or viterbi"),
    "scheme": (fit(decode="viterbi", scheme="IOB9"), "no tagging scheme 'IOB9'"),
    "scheme, posterior": (fit(decode="posterior", scheme="IOB2"), "decode='viterbi'"),
    "scheme, no probabilities": (fit(scheme="IOB2", calibrate=False), "calibrate=True"),
    "engine": (fit(engine="steam"), "engine='steam': there is no such engine", "'cpu'"),
    "epochs": (fit(epochs=0), "epochs=0", "at least 1"),
    "average": (fit(average="yes"), "average='yes'"),
    "threads": (fit(n_jobs=0), "n_jobs=0"),
    "S3": (fit(features="S3"), "features='S3'", "without a window"),
    "large features": (fit([[{"f": 1e13}]], [["A"]]), "1e+13", "scale features"),
    "shape": (lambda: fit()().predict([Tree(["a"], [-1])]), "structure 0 is a tree", "fitted on sequences"),
    "mixed shapes": (fit([Sequence(["a"]), Dag(["a"], [])], [["A"], ["B"]]), "structure 1 is a dag"),
    "kind": (lambda: fit()().predict([[1, 2]]), "an integer id", "a string"),
    "new label": (lambda: fit()().partial_fit([["a"]], [[3]]), "3 (int) is new", "labels are all strings"),
    "no prior": (lambda: fit(prior=HALF)().predict([["a"]]), "given as arrays"),
    "prior of a chain": (
        lambda: fit(prior=HMM(), prior_form="chain")().predict(X, prior=HALF),
        "chain prior",
        "leave prior out",
    ),
    "not fitted": (lambda: MarginalizedPerceptron().predict([["a"]]), "not fitted"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    call, *words = BAD[case]
    with pytest.raises((DataError, NotFittedError)) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_kernel_larger_off_its_diagonal_is_named():
    kernel = Function(lambda a, b: 1.0 if a == b else 1e200)
    with pytest.raises(DataError, match="smaller mixing"):
        MarginalizedPerceptron(kernel=kernel, mixing=1.0).fit(
            [["a", "b"] * 20, ["b", "a"] * 20], [["A", "B"] * 20] * 2
        )


def test_small_corpus_of_the_papers(corpora):
    X, y = read(corpora / "conll2002" / "esp.train")
    X, y, scores = [[columns[0] for columns in x] for x in X[:300]], y[:300], []
    for fold in range(2):  # of the five of `fuda reproduce`
        inside = [i for i in range(300) if i // 60 != fold]
        model = MarginalizedPerceptron(features="spelling", calibrate=False)
        model.fit([X[i] for i in inside], [y[i] for i in inside])
        outside = slice(60 * fold, 60 * fold + 60)
        scores.append(label_scores(y[outside], model.predict(X[outside])).micro.f1)
    assert np.mean(scores) > 0.52


def test_the_default_mixing_keeps_to_the_bounds_of_the_parameter():
    model = perceptron(kernel=lambda a, b: 1e-310 * (a == b), mixing=None).fit(X, Y)
    assert model.mixing_ == 1e150
