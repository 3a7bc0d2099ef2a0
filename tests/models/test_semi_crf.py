"""The semi-Markov CRF as a model: labels, known labels, schemes, long segments, refusals."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from fuda import CRF, DataError, MarginalizedPerceptron, Reranker, SemiCRF, Template, Tree, load
from fuda.schemes import convert, entities, legal
from fuda.training.crf_loss import Weights
from model_file_cases import altered, refused

WORDS = ["Ana", "Bo", "New", "York", "in", "and", "Lima"]


def sentences(count, seed=0):
    """Sentences with names of one to three words, in IOB2."""
    rng, X, Y = np.random.default_rng(seed), [], []
    names = [
        *[(["Ana"], "PER"), (["Bo", "Paz"], "PER"), (["Bo", "de", "Paz"], "PER")],
        *[(["Lima"], "LOC"), (["New", "York"], "LOC"), (["San", "Jo", "Alto"], "LOC")],
    ]
    for _ in range(count):
        x, y = [], []
        for _ in range(int(rng.integers(1, 4))):
            if rng.random() < 0.6:
                words, kind = names[rng.integers(6)]
                x += words
                y += [f"B-{kind}", *[f"I-{kind}"] * (len(words) - 1)]
            else:
                x.append(str(rng.choice(["in", "and", "sees", "York"])))
                y.append("O")
        X.append(x)
        Y.append(y)
    return X, Y


X, Y = sentences(40)


@pytest.fixture(scope="module")
def model():
    return SemiCRF(l2=0.3, features="word").fit(X, Y)


def test_it_learns_names(model):
    assert model.score(X, Y) > 0.95
    assert model.scheme_ == "IOB2"
    assert model.kinds_ == ["LOC", "O", "PER"]
    assert model.longest_.tolist() == [3, 1, 3]


def test_with_single_nodes_it_is_the_crf():
    """The same features, the same objective, the same probabilities."""
    y = [[label.split("-")[-1] for label in labels] for labels in Y]
    crf = CRF(features="word", tol=1e-9).fit(X, y)
    semi = SemiCRF(features="word", max_length=1, tol=1e-9).fit(X, y)
    layout = Weights([crf.encoder_.feature_count(c) for c in range(3)], [], 3)
    by_channel, transitions, _ = layout.views(crf.weights_)
    other = crf.transitions_.copy()
    np.fill_diagonal(other, 0.0)
    semi.weights_ = np.concatenate([*map(np.ravel, by_channel), other.ravel(), np.diag(transitions)])
    assert semi.objective(X, y) == pytest.approx(crf.objective(X, y), rel=1e-12)
    for ours, theirs in zip(semi.predict_marginals(X), crf.predict_marginals(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
    again = SemiCRF(features="word", max_length=1, tol=1e-9).fit(X, y)
    assert again.objective(X, y) == pytest.approx(crf.objective(X, y), rel=1e-7)
    for (ours, p), (theirs, q) in zip(again.predict_nbest(X, 3)[0], crf.predict_nbest(X, 3)[0], strict=True):
        assert ours == theirs
        assert p == pytest.approx(q, abs=1e-3)


@pytest.mark.parametrize("partly", [False, True])
def test_the_gradient_is_that_of_the_loss(partly):
    y = [
        [None if partly and (i + t) % 3 == 0 else b for t, b in enumerate(row)] for i, row in enumerate(Y[:8])
    ]
    weights = np.linspace(0.5, 2.0, 8)
    fitted = SemiCRF(features="word", window=1, max_length=2, scheme="IOB2", max_iter=3)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        fitted.fit(X[:8], y, sample_weight=weights)
    loss = fitted._training_loss(fitted._labelled(X[:8], y, weights, None))
    rng = np.random.default_rng(0)
    w = rng.normal(size=len(fitted.weights_)) * 0.3
    gradient = loss(w)[1].copy()
    for k in [*rng.integers(0, len(w), 25), *range(len(w) - 40, len(w))]:
        h = 1e-5
        ends = []
        for step in (h, -h):
            w[k] += step
            ends.append(loss(w)[0])
            w[k] -= step
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(gradient[k], abs=1e-6)
    fitted.weights_ = w
    assert loss(w)[0] + float(w @ w) == pytest.approx(fitted.objective(X[:8], y, sample_weight=weights))


def labelings(model, size):
    """All well-formed labelings."""
    start, pairs, end = legal(model.classes_, model.scheme_)
    for labels in product(range(len(model.classes_)), repeat=size):
        if start[labels[0]] and end[labels[-1]] and all(pairs[a, b] for a, b in pairwise(labels)):
            yield [model.classes_[k] for k in labels]


def test_the_probabilities_of_all_labelings_add_up(model):
    x = ["Bo", "in", "New", "York"]
    everything = list(labelings(model, 4))
    listed = model.predict_nbest([x], 10**6)[0]
    assert sorted(labels for labels, _ in listed) == sorted(everything)
    p = np.exp([value for _, value in listed])
    assert p.sum() == pytest.approx(1.0)
    assert (np.diff(p) <= 1e-15).all()
    assert listed[0][0] == model.predict([x])[0]
    by_hand = np.zeros((4, len(model.classes_)))
    number = {label: k for k, label in enumerate(model.classes_)}
    for labels, value in listed:
        by_hand[range(4), [number[label] for label in labels]] += np.exp(value)
    np.testing.assert_allclose(model.predict_marginals([x])[0], by_hand, atol=1e-9)
    square = 0.3 * float(model.weights_ @ model.weights_)
    for labels, value in listed[:20]:
        assert model.objective([x], [labels]) - square == pytest.approx(-value, abs=1e-9)


def test_probabilities_of_segments_are_those_of_labelings(model):
    x = ["Bo", "Paz", "in", "New", "York"]
    p_of: dict = {}
    for labels, value in model.predict_nbest([x], 10**6)[0]:
        for segment in entities(labels):
            p_of[segment] = p_of.get(segment, 0.0) + np.exp(value)
    segments = model.predict_segments([x], least=1e-4)[0]
    assert {(kind, a, b): pytest.approx(p) for kind, a, b, p in segments} == {
        segment: p for segment, p in p_of.items() if p >= 1e-4
    }
    assert max(segments, key=lambda scored: scored[3] if scored[1] == 3 else 0)[:3] == ("LOC", 3, 5)
    assert not model.predict_segments([[]])[0]
    for least in (0, -1, 1.5, None):
        with pytest.raises(DataError, match=r"least=.*: give a probability"):
            model.predict_segments([x], least=least)


@pytest.mark.parametrize("scheme", ["IOE2", "IOBES", "BILOU"])
def test_segments_are_the_same_in_every_scheme(model, scheme):
    y = [convert(labels, "IOB2", scheme) for labels in Y]
    other = SemiCRF(l2=0.3, features="word").fit(X, y)
    assert other.scheme_ == scheme
    np.testing.assert_array_equal(other.weights_, model.weights_)
    for ours, theirs in zip(other.predict(X), model.predict(X), strict=True):
        assert convert(ours, scheme, "IOB2") == theirs
    for ours, theirs in zip(other.predict_segments(X), model.predict_segments(X), strict=True):
        assert ours == theirs
    for table in other.predict_marginals(X):
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
    for x in X[:5]:
        number = {label: k for k, label in enumerate(other.classes_)}
        by_hand = np.zeros((len(x), len(number)))
        for labels, value in other.predict_nbest([x], 3000)[0]:
            by_hand[range(len(x)), [number[label] for label in labels]] += np.exp(value)
        np.testing.assert_allclose(other.predict_marginals([x])[0], by_hand, atol=1e-3)


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.data())
@settings(max_examples=40)
def test_known_labels_are_kept(model, x, data):
    full = data.draw(st.sampled_from(list(labelings(model, len(x)))))
    known = [label if data.draw(st.booleans()) else None for label in full]
    agree = [
        pair
        for pair in model.predict_nbest([x], 10**6)[0]
        if all(k in (None, b) for k, b in zip(known, pair[0], strict=True))
    ]
    assert model.predict([x], known=[known])[0] == agree[0][0]
    listed = model.predict_nbest([x], 10**6, known=[known])[0]
    assert {tuple(labels) for labels, _ in listed} == {tuple(labels) for labels, _ in agree}
    assert sum(np.exp(p) for _, p in listed) == pytest.approx(1.0)
    table = model.predict_marginals([x], known=[known])[0]
    for t, label in enumerate(known):
        if label is not None:
            assert table[t, list(model.classes_).index(label)] == pytest.approx(1.0)
    model.set_params(decode="posterior")
    predicted = model.predict([x], known=[known])[0]
    model.set_params(decode="viterbi")
    assert predicted in [labels for labels, _ in agree]


def test_known_labels_that_no_segmentation_has(model):
    with pytest.raises(DataError, match="structure 1: no segmentation agrees with its known labels"):
        model.predict(X[:2], known=[[None] * len(X[0]), ["I-LOC", *[None] * (len(X[1]) - 1)]])


def test_posterior_decoding_is_well_formed_and_finds_the_most_right_labels(model):
    model.set_params(decode="posterior")
    x = ["Bo", "Paz", "New", "in"]
    predicted, table = model.predict([x])[0], model.predict_marginals([x])[0]
    model.set_params(decode="viterbi")
    number = {label: k for k, label in enumerate(model.classes_)}
    expected_right = {
        tuple(y): sum(table[t, number[b]] for t, b in enumerate(y)) for y in labelings(model, 4)
    }
    assert expected_right[tuple(predicted)] == pytest.approx(max(expected_right.values()))


def test_lengths_decide_where_no_word_does():
    """Runs of three x are names, others are not: no chain of labels with windows can tell."""
    rng = np.random.default_rng(1)
    data, labels = [], []
    for _ in range(60):
        x, y = [], []
        for _ in range(3):
            size = int(rng.integers(1, 6))
            x += ["x"] * size + ["-"]
            y += (["B-N", "I-N", "I-N"] if size == 3 else ["O"] * size) + ["O"]
        data.append(x)
        labels.append(y)
    semi = SemiCRF(l2=0.01, features="word").fit(data, labels)
    assert semi.score(data, labels) > 0.95
    assert CRF(l2=0.01, features="word", scheme="IOB2").fit(data, labels).score(data, labels) < 0.9


def test_segments_longer_than_any_in_training():
    """They are joined: every well-formed labeling has a probability."""
    semi = SemiCRF(features="word", max_length=2).fit(X, Y)
    assert semi.longest_.tolist() == [2, 1, 2]
    x = ["New"] * 9
    long = ["B-LOC", *["I-LOC"] * 8]
    assert np.isfinite(semi.objective([x], [long]))
    assert semi.predict([x], known=[["B-LOC", *[None] * 7, "I-LOC"]])[0][0] == "B-LOC"
    assert semi.predict([x], known=[long])[0] == long
    likely = semi.predict_segments([x], known=[["B-LOC", *["I-LOC"] * 8]])[0]
    assert likely == [("LOC", 0, 9, pytest.approx(1.0))]


def test_runs_of_labels_are_segments():
    """Secondary structure and the like: no O, no prefixes, runs of any length."""
    x = [list("AAAABBCCCCC"), list("BBAACCCC"), list("CCCCCCCC")]
    y = [list("HHHHEECCCCC"), list("EEHHCCCC"), list("CCCCCCCC")]
    semi = SemiCRF(l2=0.1, features="word", max_length=4).fit(x, y)
    assert semi.scheme_ is None
    assert semi.kinds_ == ["C", "E", "H"]
    assert semi.longest_.tolist() == [4, 2, 4]
    assert semi.score(x, y) == 1.0
    assert semi.predict([["C"] * 50])[0] == ["C"] * 50
    listed = semi.predict_nbest([list("ABC")], 100)[0]
    assert len(listed) == 27
    assert sum(np.exp(p) for _, p in listed) == pytest.approx(1.0)
    assert semi.predict_segments(x)[0][0][:3] == ("H", 0, 4)


def test_labels_that_are_not_known_are_summed_over():
    y = [[None if t == 1 else b for t, b in enumerate(labels)] for labels in Y]
    semi = SemiCRF(l2=0.3, features="word").fit(X, y)
    assert semi.scheme_ == "IOB2"
    assert semi.score(X, Y) > 0.9
    square = 0.3 * float(semi.weights_ @ semi.weights_)
    p = np.exp(-(semi.objective(X[:1], [[None] * len(X[0])]) - square))
    assert p == pytest.approx(1.0)


def test_a_label_that_was_never_seen_is_never_predicted():
    """PER has no I- in the data: all its segments are single nodes."""
    x, y = [["Ana", "sings"], ["New", "York"]], [["B-PER", "O"], ["B-LOC", "I-LOC"]]
    semi = SemiCRF(l2=0.1).fit(x, y)
    listed = semi.predict_nbest([["Ana", "Ana"]], 1000)[0]
    assert sum(np.exp(p) for _, p in listed) == pytest.approx(1.0)
    assert {label for labels, _ in listed for label in labels} == {"B-PER", "B-LOC", "I-LOC", "O"}
    only = SemiCRF(l2=0.1).fit([["a", "b", "c"]], [["B-x", "E-x", "O"]])  # neither S nor I
    assert only.scheme_ == "IOBES"
    assert {tuple(labels) for labels, _ in only.predict_nbest([["a", "b", "c"]], 99)[0]} == {
        ("O", "O", "O"),
        ("B-x", "E-x", "O"),
        ("O", "B-x", "E-x"),
    }


def test_texts_of_whole_segments_are_features(model, tmp_path):
    names = [name for name, _ in model.top_features(10_000)["LOC"]]
    assert "lower=new york" in names
    assert "lower=san jo alto" in names
    assert "classes=Xx Xx" in names
    assert "nodes=3" in names
    assert "first [0] w=New" in names
    model.save(tmp_path / "m.fuda")
    other = load(tmp_path / "m.fuda")
    assert other.top_features(20) == model.top_features(20)
    assert other.longest_.tolist() == model.longest_.tolist()
    columns = [[(word, "tag") for word in x] for x in X]
    assert "lower=new york" in dict(
        SemiCRF(l2=0.3, features="word").fit(columns, Y).top_features(9999)["LOC"]
    )


@pytest.mark.parametrize("decode", ["viterbi", "posterior"])
@pytest.mark.parametrize("runs", [False, True])
def test_explanations_add_up(decode, runs):
    y = [[label.split("-")[-1] for label in labels] for labels in Y] if runs else Y
    semi = SemiCRF(l2=0.3, features="word", decode=decode, outside_penalty=0.4, max_length=2).fit(X, y)
    for x in (["Bo", "Paz", "in", "New", "York"], ["San", "Jo", "Alto", "and"], ["York"]):
        best = semi.predict([x])[0]
        for node in range(len(x)):
            explanation = semi.explain(x, node)
            assert explanation.chosen.label == best[node]
            assert explanation.rival.label != best[node]
            assert sum(part.value for part in explanation.contributions) == pytest.approx(
                explanation.difference, abs=1e-9
            )
            assert explanation.difference == pytest.approx(
                explanation.chosen.score - explanation.rival.score, abs=1e-9
            )
            assert explanation.difference >= -1e-9
            if decode == "viterbi":
                semi.set_params(outside_penalty=0.0)
                free = semi.explain(x, node)
                others = [
                    p for labels, p in semi.predict_nbest([x], 9999)[0] if labels[node] != free.chosen.label
                ]
                assert free.difference == pytest.approx(
                    semi.predict_nbest([x], 1)[0][0][1] - max(others), abs=1e-9
                )
                semi.set_params(outside_penalty=0.4)
            known = [None] * len(x)
            known[node] = best[node]
            assert semi.explain(x, node, known=known).rival is None


def test_a_penalty_of_outside_finds_more(model):
    weak = SemiCRF(l2=30.0, features="word").fit(X, Y)
    counts = [
        sum(len(entities(y)) for y in weak.set_params(outside_penalty=p).predict(X)) for p in (-5, 0, 1, 9)
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


@pytest.mark.filterwarnings("ignore:the SemiCRF has not converged")
def test_many_nodes_end_at_the_same_optimum_in_fewer_iterations(monkeypatch):
    parameters = {"l2": 0.05, "tol": 1e-7}
    plain = SemiCRF(**parameters).fit(X, Y).result_
    monkeypatch.setattr("fuda.models.semi_crf.LEAST_NODES", 1)
    monkeypatch.setattr("fuda.training.spectrum._SAMPLE_EVERY", 1)  # a tenth of so few tells little
    fits = [SemiCRF(n_jobs=n, **parameters).fit(X, Y) for n in (1, 2)]
    np.testing.assert_array_equal(fits[0].weights_, fits[1].weights_)
    assert fits[0].n_iter_ < len(plain.history)
    assert fits[0].result_.history[-1].objective == pytest.approx(plain.history[-1].objective, rel=1e-4)


def test_validation_data_choose_the_iteration():
    semi = SemiCRF(features="word", l2=0.01).fit(X, Y, X_val=X[:10], y_val=Y[:10])
    assert len(semi.validation_curve_) >= semi.n_iter_
    assert semi.validation_curve_[semi.n_iter_ - 1] == max(semi.validation_curve_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_is_a_prior_and_a_base():
    semi = SemiCRF(l2=0.3, features="word", max_iter=20)
    machine = MarginalizedPerceptron(prior=semi, epochs=2, orders=1, features="word").fit(X[:15], Y[:15])
    assert machine.score(X[:15], Y[:15]) > 0.8
    ranker = Reranker(semi, folds=2, n=3, epochs=1).fit(X[:15], Y[:15])
    assert ranker.score(X[:15], Y[:15]) > 0.8
    x = ["Bo", "Paz", "in", "New", "York"]
    for node, label in enumerate(ranker.predict([x])[0]):
        explanation = ranker.explain(x, node)
        assert explanation.chosen.label == label
        assert sum(part.value for part in explanation.contributions) == pytest.approx(
            explanation.difference, abs=1e-9
        )
    with pytest.raises(DataError, match="prior_form='chain' with a SemiCRF"):
        MarginalizedPerceptron(prior=semi, prior_form="chain").fit(X, Y)


def test_more_memory_than_there_is_is_refused(monkeypatch):
    monkeypatch.setenv("FUDA_MAX_MEMORY", str(1 << 28))
    x, y = [["a"] * 200_000], [["A"] * 100_000 + ["B"] * 100_000]
    with pytest.raises(
        DataError, match=r"a sequence by lengths and kinds needs .* give a smaller max_length"
    ):
        SemiCRF(max_length=1000, features="word").fit(x, y)


def test_what_it_refuses():
    fit = SemiCRF().fit
    with pytest.raises(DataError, match=r"structure 0 is a tree, but SemiCRF labels sequences only"):
        fit([Tree(["a", "b"], [-1, 0])], [["O", "O"]])
    with pytest.raises(DataError, match=r"position_weight weighs nodes, and SemiCRF learns segments"):
        fit(X, Y, position_weight=[[1.0] * len(x) for x in X])
    with pytest.raises(DataError, match=r"template line .*: SemiCRF has no features of label pairs"):
        SemiCRF(features=Template("U0:%x[0,0]\nB1:%x[0,0]")).fit(X, Y)
    with pytest.raises(DataError, match="a label of IOB1 depends on the segment next to it; convert"):
        SemiCRF(scheme="IOB1").fit(X, Y)
    with pytest.raises(
        DataError, match=r"structure 0, node 1: the label 'I-x' is not possible after the label"
    ):
        SemiCRF(scheme="IOB2").fit([["a", "b"]], [["O", "I-x"]])
    with pytest.raises(
        DataError, match=r"structure 1, node 0: the label 'I-x' is not possible at the beginning"
    ):
        SemiCRF(scheme="IOB2").fit([["a"], ["a"]], [["O"], ["I-x"]])
    for length in (0, -1, 1.5, 1001, "x"):
        with pytest.raises(DataError, match=r"max_length=.*: give a whole number of nodes from 1 to 1,000"):
            SemiCRF(max_length=length).fit(X, Y)


def test_scores_past_all_precision_still_have_probabilities():
    model = SemiCRF(max_length=1).fit([[[1.0], [2.0]], [[3.0], [-1.0]]], [["A", "B"], ["B", "A"]])
    model.weights_ = np.where(np.arange(len(model.weights_)) % 2, 1e100, -1e100)
    for marginals in model.predict_marginals([[[1.0], [7.0], [-5.0]], [[0.0], [2.0]]]):
        assert np.isfinite(marginals).all()
        assert marginals.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("gone", ["B-PER", "I-PER"])
def test_a_file_without_a_label_that_segments_need_is_refused(gone, tmp_path):
    X, Y = (
        [["Ana", "Diaz", "sings"], ["Bo", "Li", "Ng"]],
        [["B-PER", "I-PER", "O"], ["B-PER", "I-PER", "I-PER"]],
    )
    SemiCRF().fit(X, Y).save(tmp_path / "m")

    def change(meta, members):
        meta["labels"].remove(gone)

    refused(altered(tmp_path / "m", tmp_path / "bad", change), "its labels lack one for a node of a segment")
