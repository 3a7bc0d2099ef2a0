"""`parts` of marginalized models: chosen by held-out scores, given, stored, explained, refused."""

from __future__ import annotations

import numpy as np
import pytest

import fuda
from fuda import Dag, DataError, MarginalizedPerceptron, Sequence, Tree
from fuda.kernels import Constant, Linear, Polynomial
from fuda.marginalized.parts import PARTS
from fuda.metrics import token_accuracy

QUICK = {"epochs": 3, "orders": 1, "calibrate": False}


def clauses(seed, count, shape="tree"):
    """A verb with nouns on both sides, whose labels are the sides."""
    random = np.random.RandomState(seed)
    X, y = [], []
    for _ in range(count):
        left, right = random.randint(1, 3), random.randint(1, 3)
        nouns = [f"n{random.randint(9)}" for _ in range(left + right)]
        words = [*nouns[:left], f"v{random.randint(9)}", *nouns[left:]]
        heads = [left if node != left else -1 for node in range(len(words))]
        if shape == "dag":
            X.append(Dag(words, [(left, node) for node in range(len(words)) if node != left]))
        else:
            X.append(Tree(words, heads))
        y.append(["subject"] * left + ["verb"] + ["object"] * right)
    return X, y


def siblings(seed, count):
    """A root with two children, of which the second tells the label of the first."""
    random = np.random.RandomState(seed)
    kinds = random.randint(2, size=count)
    X = [Tree(["top", "it", "ab"[kind]], [-1, 0, 0]) for kind in kinds]
    return X, [["T", "AB"[kind], "O"] for kind in kinds]


@pytest.mark.parametrize("shape", ["tree", "dag"])
def test_sides_are_chosen_where_they_tell_labels(shape):
    model = MarginalizedPerceptron(**QUICK).fit(*clauses(0, 30, shape))
    assert model.parts_.startswith("sided-")
    new, gold = clauses(1, 30, shape)
    plain = MarginalizedPerceptron(parts=model.parts_.removeprefix("sided-"), **QUICK)
    reached = token_accuracy(gold, model.predict(new))
    assert reached > 0.97
    assert reached > token_accuracy(gold, plain.fit(*clauses(0, 30, shape)).predict(new)) + 0.05


def test_paths_are_not_chosen_where_siblings_tell_labels():
    model = MarginalizedPerceptron(features="word", **QUICK).fit(*siblings(0, 40))
    assert model.parts_ in ("lines", "subtrees")
    new, gold = siblings(1, 20)
    assert token_accuracy(gold, model.predict(new)) == 1.0
    paths = MarginalizedPerceptron(features="word", parts="paths", **QUICK).fit(*siblings(0, 40))
    assert token_accuracy(gold, paths.predict(new)) < 0.9


def test_parts_are_chosen_for_a_given_c():
    model = MarginalizedPerceptron(mixing=1.1, **QUICK).fit(*clauses(0, 30))
    assert model.mixing_ == 1.1
    assert model.parts_.startswith("sided-")


@pytest.mark.parametrize(
    ("X", "parts"),
    [
        (clauses(0, 19)[0], "subtrees"),
        (clauses(0, 19, "dag")[0], "paths"),
        ([Sequence(["a", "b"])] * 30, "runs"),
        ([Tree(["a", "b"], [-1, 0])] * 30, "subtrees"),
    ],
    ids=["few trees", "few DAGs", "sequences", "chains"],
)
def test_without_a_choice_parts_are_those_of_the_papers(X, parts):
    y = [["A", *["B"] * (len(x) - 1)] for x in X]
    assert MarginalizedPerceptron(mixing=1.0, **QUICK).fit(X, y).parts_ == parts


def test_the_choice_leaves_no_trace():
    X, y = clauses(0, 24)
    model = MarginalizedPerceptron(**QUICK).fit(X, y)
    again = MarginalizedPerceptron(parts=model.parts_, mixing=model.mixing_, **QUICK).fit(X, y)
    assert model.parts is None
    assert [s.tolist() for s in model.decision_scores(X)] == [s.tolist() for s in again.decision_scores(X)]


@pytest.mark.parametrize("parts", [None, "lines", "sided-paths"])
def test_parts_are_stored(tmp_path, parts):
    X, y = clauses(0, 24)
    model = MarginalizedPerceptron(parts=parts, mixing=1.0, **QUICK).fit(X, y)
    model.save(tmp_path / "model.fuda")
    loaded = fuda.load(tmp_path / "model.fuda")
    assert (loaded.parts, loaded.parts_) == (parts, model.parts_)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    loaded.save(tmp_path / "again.fuda")
    assert (tmp_path / "again.fuda").read_bytes() == (tmp_path / "model.fuda").read_bytes()


def test_files_of_sequences_do_not_mention_parts(tmp_path):
    MarginalizedPerceptron(**QUICK).fit([["a", "b"]], [["A", "B"]]).save(tmp_path / "model.fuda")
    assert b'"parts"' not in (tmp_path / "model.fuda").read_bytes()


@pytest.mark.parametrize("parts", PARTS)
def test_explanations_add_up_and_matches_follow_parts(parts):
    X, y = clauses(0, 12)
    model = MarginalizedPerceptron(parts=parts, **QUICK).fit(X, y)
    explanation = model.explain(X[0], 0)
    assert explanation.chosen.label == model.predict(X[:1])[0][0]
    difference = explanation.chosen.score - explanation.rival.score
    assert sum(c.value for c in explanation.contributions) == pytest.approx(difference)


def test_partial_fit_goes_on_with_the_chosen_parts():
    X, y = clauses(0, 24)
    model = MarginalizedPerceptron(**QUICK).fit(X, y)
    parts, wrong = model.parts_, [["object"] * len(X[0])]
    model.partial_fit(X[:1], wrong)
    assert model.parts_ == parts
    assert model.predict(X[:1]).tolist() == wrong


def test_the_kernel_of_trees_lets_any_two_nodes_match():
    X, y = clauses(0, 3)
    model = MarginalizedPerceptron(**QUICK).fit(X, y)
    assert (model.kernel_, model.encoder_.features) == (Linear().normalized() + Constant(0.5), "text")
    columns = [Tree([(word, "N") for word in x.observations], x.heads) for x in X]
    model = MarginalizedPerceptron(**QUICK).fit(columns, y)
    expected = Polynomial(2).normalized() + Constant(0.5)
    assert (model.kernel_, model.encoder_.features) == (expected, "spelling")
    model = MarginalizedPerceptron(features="text", **QUICK).fit(X, y)
    assert model.kernel_ == Linear().normalized() + Constant(0.5)
    model = MarginalizedPerceptron(Linear(), **QUICK).fit(X, y)
    assert (model.kernel_, model.encoder_.features) == (Linear(), "spelling")


@pytest.mark.parametrize(
    ("X", "parameters", "words"),
    [
        (clauses(0, 2)[0], {"parts": "branches"}, "parts='branches': choose"),
        ([Sequence(["a", "b", "c"])], {"parts": "lines"}, "sequences have runs only"),
        (clauses(0, 2, "dag")[0], {"parts": "sided-lines"}, "which has sided-paths or paths"),
        (clauses(0, 2)[0], {"parts": "lines", "engine": "cuda"}, "computed by the CPU engine"),
    ],
)
def test_refusals(X, parameters, words):
    y = [["A", *["B"] * (len(x) - 1)] for x in X]
    with pytest.raises(DataError, match=words):
        MarginalizedPerceptron(**parameters).fit(X, y)
