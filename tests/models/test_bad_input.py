"""What a user may get wrong, always DataError: the place, what was found there, and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import (
    CRF,
    HMM,
    HMSVM,
    Dag,
    DataError,
    HMPerceptron,
    MarginalizedPerceptron,
    Sequence,
    Template,
    Tree,
)

S, Y = [["a", "b"], ["c"]], [["A", "B"], ["A"]]


def fit(X=S, y=Y, **weights):
    return lambda: HMM().fit(X, y, **weights)


def fit_with(**parameters):
    return lambda: HMM(**parameters).fit(S, Y)


def predict(X, fitted=S, y=Y, **parameters):
    return lambda: HMM(**parameters).fit(fitted, y).predict(X)


def score(y):
    return lambda: HMM().fit(S, Y).score(S, y)


def vectors(*values):
    return [[np.array(v, dtype=float) for v in values]]


def fails(word):
    raise KeyError(word)


# Each case says what is called, and words that the message must have.
BAD = {
    # X
    "X none": (fit(None), "X is a list of structures", "None (NoneType)", "give a list"),
    "X a number": (fit(5), "X is a list of structures", "5 (int)", "give a list"),
    "X text": (fit("a b"), "X is a list of structures", "'a b' (str)", "give a list"),
    "X bytes": (fit(b"a b"), "X is a list of structures", "(bytes)", "give a list"),
    "X a dict": (fit({"a": "b"}), "X is a list of structures", "(dict)", "give a list"),
    "X a set": (fit({"a"}), "X is a list of structures", "(set)", "give a list"),
    "X one structure": (fit(Sequence(["a"])), "single Sequence", "put it in a list"),
    "X empty": (fit([], []), "nothing to learn from", "at least one"),
    "X of words": (fit(["a", "b"], Y), "structure 0", "'a' (str)", "split it into nodes"),
    "X of numbers": (fit([1, 2]), "structure 0", "1 (int)", "give a list"),
    "X of none": (fit([["a", "b"], None]), "structure 1", "None (NoneType)", "give a list"),
    "X of dicts": (fit([{"f": 1}], [["A"]]), "structure 0", "(dict)", "put it in a list"),
    "X flat array": (fit(np.zeros(3)), "structure 0", "(float64)", "give a list"),
    "X matrix": (
        fit(np.zeros((2, 2))),
        "structure 0, node 0",
        "(float64) is not an observation",
        "give a string",
    ),
    "X four dimensions": (fit(np.zeros((2, 1, 2, 2))), "structure 0, node 0", "shape (2, 2)", "1-D numeric"),
    "X mixed shapes": (
        fit([["a"], Tree(["a"], [-1])], [["A"], ["A"]]),
        "structure 1 is a tree",
        "structure 0 is a sequence",
        "give structures of one shape",
    ),
    # observations
    "observation none": (
        fit([["a", None], ["c"]]),
        "structure 0, node 1",
        "None (NoneType)",
        "give a string",
    ),
    "observation float": (fit([["a", "b"], [1.5]]), "structure 1, node 0", "1.5 (float)", "numeric vector"),
    "observation bool": (fit([[True, "b"], ["c"]]), "structure 0, node 0", "True (bool)", "give a string"),
    "observation bytes": (fit([["a", b"b"], ["c"]]), "structure 0, node 1", "b'b' (bytes)", "give a string"),
    "observation object": (fit([["a", object()], ["c"]]), "structure 0, node 1", "(object)", "give a string"),
    "dict of nan": (
        fit([[{"f": 1.0}, {"f": float("nan")}], [{"g": 1}]]),
        "structure 0, node 1",
        "feature 'f' has the value nan",
        "finite number",
    ),
    "dict of infinity": (
        fit([[{"f": -np.inf}], [{}]], [["A"], ["B"]]),
        "structure 0, node 0",
        "-inf",
        "finite",
    ),
    "dict of none": (
        fit([[{"f": None}]], [["A"]]),
        "structure 0, node 0",
        "None (NoneType)",
        "finite number",
    ),
    "dict of lists": (
        fit([[{"f": [2, "x"]}]], [["A"]]),
        "structure 0, node 0",
        "feature 'f'",
        "numeric vector",
    ),
    "dict of arrays": (fit([[{"f": np.ones((2, 2))}]], [["A"]]), "structure 0, node 0", "feature 'f'", "1-D"),
    "dict of numbers": (fit([[{1: 2.0}]], [["A"]]), "structure 0, node 0", "1 (int)", "names are strings"),
    "names of numbers": (fit([[["f", 1]]], [["A"]]), "structure 0, node 0", "1 (int)", "names are strings"),
    "vector of nan": (fit(vectors([1, np.nan]), [["A"]]), "structure 0, node 0", "entry 1", "nan", "finite"),
    "vector of infinity": (fit(vectors([1], [np.inf]), [["A", "B"]]), "structure 0, node 1", "inf", "finite"),
    "vectors unequal": (
        fit(vectors([1, 2], [1]), [["A", "B"]]),
        "structure 0, node 1",
        "a vector of 1 numbers",
        "vector of 2 numbers",
        "one kind and length",
    ),
    "vector empty": (fit(vectors([]), [["A"]]), "structure 0, node 0", "shape (0,)", "at least one number"),
    "vector of vectors": (fit([[[[1.0], [2.0]]]], [["A"]]), "structure 0, node 0", "shape (2, 1)", "1-D"),
    "vector of text": (
        fit([[np.array(["a"])]], [["A"]]),
        "structure 0, node 0",
        "not a numeric vector",
        "1-D",
    ),
    "columns unequal": (
        fit([[("a", "N"), ("b",)], [("c", "N")]]),
        "structure 0, node 1",
        "a tuple of 1 columns",
        "tuple of 2 columns",
        "one kind and length",
    ),
    "columns of floats": (fit([[("a", 0.5)]], [["A"]]), "structure 0, node 0", "('a', 0.5)", "as an array"),
    "columns none": (fit([[()]], [["A"]]), "structure 0, node 0", "() (tuple)", "one or more columns"),
    "text and columns": (fit([["a", ("b",)], ["c"]]), "structure 0, node 1", "a tuple of 1", "one kind"),
    "text and dict": (
        fit([["a", {"f": 1}], ["c"]]),
        "structure 0, node 1",
        "a dict or list of features",
        "one kind",
    ),
    "text and vector": (fit([["a", np.ones(2)], ["c"]]), "structure 0, node 1", "a vector of 2", "one kind"),
    "text and id": (fit([["a", "b"], [7]]), "structure 1, node 0", "an integer id", "one kind"),
    "negative counts": (fit([[{"f": -1.0}]], [["A"]]), "structure 0, node 0", "negative", "0 or more"),
    # y
    "y none": (fit(y=None), "y is None", "give one list per structure"),
    "y a number": (fit(y=5), "y is 5 (int)", "give one list per structure"),
    "y text": (fit(y="AB"), "y is 'AB' (str)", "give one list per structure"),
    "y a dict": (fit(y={0: ["A", "B"], 1: ["A"]}), "y is {", "(dict)", "give one list per structure"),
    "y a set": (fit(y={("A", "B"), ("A",)}), "(set)", "give one list per structure"),
    "y a single array": (fit(y=np.array(5)), "y is array(5)", "give one list per structure"),
    "y too short": (fit(y=[["A", "B"]]), "X has 2 structures but y has 1", "one list per structure"),
    "y too long": (fit(y=[*Y, ["A"]]), "X has 2 structures but y has 3", "one list per structure"),
    "y flat": (fit(y=["A", "B"]), "structure 0", "its labels are 'A' (str)", "list of 2 labels"),
    "y flat numbers": (fit(y=[1, 2]), "structure 0", "its labels are 1 (int)", "list of 2 labels"),
    "y flat array": (fit(y=np.array([1, 2])), "structure 0", "its labels are", "list of 2 labels"),
    "labels text": (fit(y=["AB", ["A"]]), "structure 0", "'AB' (str)", "list of 2 labels"),
    "labels none": (fit(y=[["A", "B"], None]), "structure 1", "None (NoneType)", "list of 1 labels"),
    "labels a set": (fit(y=[{"A", "B"}, ["A"]]), "structure 0", "(set)", "list of 2 labels"),
    "labels a dict": (fit(y=[{"A": 1, "B": 2}, ["A"]]), "structure 0", "(dict)", "list of 2 labels"),
    "labels too few": (fit(y=[["A"], ["A"]]), "structure 0 has 2 nodes but 1 labels", "one label per node"),
    "labels too many": (
        fit(y=[["A", "B"], ["A", "B"]]),
        "structure 1 has 1 nodes but 2 labels",
        "one label per node",
    ),
    "labels empty": (fit(y=[["A", "B"], []]), "structure 1 has 1 nodes but 0 labels", "one label per node"),
    "labels matrix": (
        fit(y=[np.eye(2), ["A"]]),
        "structure 0, node 0",
        "(ndarray)",
        "an integer or a non-empty string",
    ),
    "label empty text": (
        fit(y=[["A", ""], ["A"]]),
        "structure 0, node 1",
        "'' (str)",
        "None if it is not known",
    ),
    "label float": (
        fit(y=[["A", 1.5], ["A"]]),
        "structure 0, node 1",
        "1.5 (float)",
        "an integer or a non-empty string",
    ),
    "label nan": (
        fit(y=[["A", np.nan], ["A"]]),
        "structure 0, node 1",
        "nan (float)",
        "None if it is not known",
    ),
    "labels floats": (
        fit(y=[np.array([1.0, 2.0]), [1.0]]),
        "structure 0, node 0",
        "1.0 (float)",
        "an integer",
    ),
    "label bool": (
        fit(y=[[True, False], [True]]),
        "structure 0, node 0",
        "True (bool)",
        "an integer or a non-empty string",
    ),
    "label bytes": (
        fit(y=[[b"A", b"B"], [b"A"]]),
        "structure 0, node 0",
        "b'A' (bytes)",
        "an integer or a non-empty string",
    ),
    "label a list": (
        fit(y=[[["A"], "B"], ["A"]]),
        "structure 0, node 0",
        "['A'] (list)",
        "an integer or a non-empty string",
    ),
    "label a tuple": (
        fit(y=[[("A", 1), "B"], ["A"]]),
        "structure 0, node 0",
        "(tuple)",
        "an integer or a non-empty string",
    ),
    "labels mixed": (
        fit(y=[["A", 1], ["A"]]),
        "structure 0, node 1",
        "1 (int)",
        "'A' (str)",
        "all strings or all",
    ),
    "labels mixed after none": (fit(y=[[None, 1], ["A"]]), "structure 1, node 0", "'A' (str)", "1 (int)"),
    "labels all none": (fit(y=[[None, None], [None]]), "every label in y is None", "give labels"),
    # weights
    "weights negative": (
        fit(sample_weight=[1.0, -1.0]),
        "sample_weight of structure 1 is -1.0",
        "finite and not negative",
    ),
    "weights nan": (fit(sample_weight=[np.nan, 1.0]), "sample_weight of structure 0 is nan", "finite"),
    "weights infinite": (fit(sample_weight=[1.0, np.inf]), "sample_weight of structure 1 is inf", "finite"),
    "weights too few": (
        fit(sample_weight=[1.0]),
        "sample_weight is [1.0]",
        "a list of 2 numbers, one per structure",
    ),
    "weights a number": (fit(sample_weight=1.0), "sample_weight is 1.0", "a list of 2 numbers"),
    "weights text": (fit(sample_weight=["x", "y"]), "sample_weight is ['x', 'y']", "a list of 2 numbers"),
    "weights a dict": (fit(sample_weight={0: 1.0, 1: 1.0}), "sample_weight is {", "a list of 2 numbers"),
    "weights a matrix": (fit(sample_weight=np.ones((2, 2))), "sample_weight is", "a list of 2 numbers"),
    "weights none inside": (fit(sample_weight=[None, 1.0]), "sample_weight of structure 0 is nan", "finite"),
    "positions a number": (fit(position_weight=1.0), "position_weight is 1.0", "one list per structure"),
    "positions too few": (fit(position_weight=[[1, 1]]), "position_weight has 1", "one list per structure"),
    "positions flat": (
        fit(position_weight=[1, 1]),
        "structure 0: position_weight is 1",
        "a list of 2 numbers",
    ),
    "positions short": (
        fit(position_weight=[[1], [1]]),
        "structure 0: position_weight is [1]",
        "one per node",
    ),
    "positions long": (
        fit(position_weight=[[1, 1], [1, 1]]),
        "structure 1: position_weight",
        "1 numbers, one per node",
    ),
    "positions negative": (
        fit(position_weight=[[1, -2], [1]]),
        "structure 0: position_weight of node 1 is -2.0",
        "finite and not negative",
    ),
    "positions nan": (
        fit(position_weight=[[1, 1], [np.nan]]),
        "structure 1: position_weight of node 0",
        "finite",
    ),
    "positions ragged": (
        fit(position_weight=[[[1], [1, 2]], [1]]),
        "structure 0: position_weight",
        "one per node",
    ),
    # parameters
    "features unknown": (fit_with(features="words"), "features='words'", "give one of word, spelling"),
    "features none": (fit_with(features=None), "features=None", "give one of word, spelling"),
    "features a list": (fit_with(features=["word"]), "features=['word']", "give one of word, spelling"),
    "function of nothing": (
        fit_with(features=lambda w: None),
        "structure 0, node 0, by the feature function",
        "None (NoneType)",
        "a list of names",
    ),
    "function of text": (fit_with(features=str), "structure 0, node 0", "'a' (str)", "a list of names"),
    "function of numbers": (
        fit_with(features=lambda w: [1]),
        "structure 0, node 0",
        "1 (int)",
        "are strings",
    ),
    "function of nan": (fit_with(features=lambda w: {"f": np.nan}), "structure 0, node 0", "nan", "finite"),
    "function that fails": (
        fit_with(features=fails),
        "structure 0, node 0",
        "KeyError('a')",
        "correct the function",
    ),
    "function of two": (fit_with(features=lambda a, b: []), "structure 0, node 0", "TypeError(", "correct"),
    "window negative": (fit_with(window=-1), "window=-1", "from 0 to 100"),
    "window fraction": (fit_with(window=1.5), "window=1.5", "from 0 to 100"),
    "window bool": (fit_with(window=True), "window=True", "from 0 to 100"),
    "window text": (fit_with(window="1"), "window='1'", "from 0 to 100"),
    "window huge": (fit_with(window=10**6), "window=1000000", "from 0 to 100"),
    "smoothing": (fit_with(smoothing=0), "smoothing=0", "above 0"),
    "decode": (fit_with(decode="best"), "decode='best'", "viterbi or posterior"),
    "template column": (
        fit_with(features=Template("U0:%x[0,1]\nB", "my.template")),
        "my.template:1",
        "column 1",
        "give more columns",
    ),
    "template on trees": (
        lambda: HMM(features=Template("U0:%x[0,0]\nB")).fit([Tree(["a"], [-1])], [["A"]]),
        "structure 0 is a tree",
        "use a feature set",
    ),
    # structures that a model does not take
    "dag": (
        fit([Dag(["a"], [])], [["A"]]),
        "structure 0 is a dag",
        "HMM labels sequences and trees only",
        "models",
    ),
    "dag to predict": (predict([Dag(["a"], [])]), "structure 0 is a dag", "sequences and trees only"),
    "tree to a model of sequences": (
        predict([Tree(["a"], [-1])]),
        "structure 0 is a tree",
        "was fitted on sequences",
        "give sequences",
    ),
    "sequence to a model of trees": (
        predict(S, fitted=[Tree(["a"], [-1])], y=[["A"]]),
        "structure 0 is a sequence",
        "was fitted on trees",
        "give trees",
    ),
    "other columns": (
        predict([[("a", "N")]], fitted=[[("a", "N", "x")]], y=[["A"]]),
        "structure 0, node 0 is a tuple of 2 columns",
        "a tuple of 3 columns",
        "same kind",
    ),
    "other vectors": (
        predict(vectors([1, 2]), fitted=vectors([1, 2, 3]), y=[["A"]]),
        "structure 0, node 0 is a vector of 2 numbers",
        "a vector of 3 numbers",
        "same kind",
    ),
    "other kind": (
        predict([[{"f": 1.0}]]),
        "structure 0, node 0 is a dict or list of features",
        "a string",
        "same kind",
    ),
    "other columns for a template": (
        predict([["a"]], fitted=[[("a", "N")]], y=[["A"]], features=Template("U0:%x[0,1]\nB")),
        "structure 0, node 0 is a string",
        "same kind",
    ),
    "predict none": (predict(None), "X is a list of structures", "None"),
    "predict a word": (predict(["abc"]), "structure 0", "'abc' (str)"),
    "predict nan": (
        predict([[{"f": np.nan}]], fitted=[[{"f": 1.0}]], y=[["A"]]),
        "structure 0, node 0",
        "'f' has the value nan",
    ),
    # scores
    "score none": (score(None), "y_true", "None"),
    "score too few": (score([["A", "B"]]), "y_true has labels for 1 structures but y_pred for 2"),
    "score unequal": (score([["A"], ["A"]]), "structure 0 has 1 labels in y_true but 2"),
    "score floats": (score([["A", 1.5], ["A"]]), "structure 0, node 1", "1.5"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, *words = BAD[name]
    with pytest.raises(DataError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    for word in words:
        assert word in message


def test_there_are_many_bad_inputs():
    assert len(BAD) > 100


@pytest.mark.parametrize("value", [[], {}, np.array([1, 2])], ids=str)
@pytest.mark.parametrize(
    ("model", "name"),
    [(CRF, "loss"), (CRF, "solver"), (HMM, "decode"), (HMSVM, "slack"), (HMPerceptron, "update"),
     (MarginalizedPerceptron, "decode")],
)  # fmt: skip
def test_choices_that_are_no_texts(model, name, value):
    with pytest.raises(DataError, match=f"^{name}=.*: choose"):
        model(**{name: value}).fit([["a"]], [["A"]])
