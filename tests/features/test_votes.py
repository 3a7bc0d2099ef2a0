from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuda
from fuda import CRF, MEMM, DataError, Sequence, Tree
from fuda.features import extract, text, text_and_votes, text_votes
from fuda.storage import model_file

SCHEMED = {"O": "O", "B-LOC": "LOC", "I-LOC": "LOC", "B-PER": "PER"}
TAGS = {"DET": "DET", "NOUN": "NOUN", "VERB": "VERB"}
OTHERS = {
    "IOB1": {"I-LOC": "LOC", "O": "O", "B-LOC": "LOC"},
    "BILUO": {"O": "O", "L-PER": "PER", "U-LOC": "LOC", "B-PER": "PER", "I-PER": "PER"},
    "hyphens": {"O": "O", "B-a-b": "a-b", "I-a-b": "a-b", "B-b": "b"},
    "bare": {"B": "_", "I": "_", "O": "O"},
    "called O": {"O": "O", "B-O": "-O", "I-O": "-O"},
    "no scheme": {"D-p": "D-p", "O": "O", "S-p": "S-p"},
    "blanks": {"O": "O", "the  place": "the_place", " ": "_"},
    "numbers": {0: "0", 1: "1", 12: "12"},
    "many": {f"B-{i}": str(i) for i in range(70)} | {"O": "O"},
}


@st.composite
def judged_texts(draw):
    """Sentences of few words, and marginals that are multiples of 1/64, some of them certain."""
    classes = draw(st.sampled_from([SCHEMED, TAGS, *OTHERS.values()]))
    X = draw(st.lists(st.lists(st.sampled_from(["a", "b", "Lima", ""]), max_size=5), max_size=12))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    marginals = []
    for x in X:
        scores = random.multinomial(64, random.dirichlet(np.full(len(classes), 0.1)), len(x)) / 64
        marginals.append(scores.reshape(len(x), len(classes)))
    return X, marginals, classes


def share_name(share):
    return ">.97" if share > 0.97 else ">.85" if share > 0.85 else ">.6" if share > 0.6 else "<=.6"


def count_name(n):
    return "1" if n == 1 else "2-3" if n <= 3 else "4-9" if n <= 9 else "10+"


def counted(prefix, others, type_of):
    """The names by the marginals of some other nodes."""
    if not others:
        return [f"{prefix}=none"]
    p = dict.fromkeys(type_of.values(), 0.0)
    for row in others:
        for kind, value in zip(type_of.values(), row, strict=True):
            p[kind] += float(value)
    p = {kind: total / len(others) for kind, total in p.items()}
    top = max(p, key=p.__getitem__)
    named = f"{prefix}={top}:{share_name(p[top])}"
    minor = [f"{prefix}+{kind}" for kind in p if kind != top and p[kind] > 0.15]
    return [f"{prefix}={top}", named, f"{named}:{count_name(len(others))}", *minor]


def oracle(X, marginals, type_of, window):
    """Votes by comparing every node with every other one."""
    nodes = [(s, x, marginals[s][t]) for s, words in enumerate(X) for t, x in enumerate(words)]

    def names(s, x):
        others = [(u, p) for u, word, p in nodes if word == x and u != s]
        near = [p for u, p in others if abs(u - s) <= window]
        return " ".join(counted("text", [p for _, p in others], type_of) + counted("near", near, type_of))

    return [[names(s, x) for x in words] for s, words in enumerate(X)]


@settings(deadline=None)
@given(judged_texts(), st.integers(0, 12))
def test_votes_are_what_loops_count(data, window):
    X, marginals, classes = data
    assert text_votes(X, marginals, list(classes), window) == oracle(X, marginals, classes, window)


def test_votes_of_many_occurrences():
    X = [["a"] * (1 + i % 3) for i in range(12)]
    marginals = [np.tile([0.9, 0.1, 0, 0], (len(x), 1)) for x in X]
    votes = text_votes(X, marginals, SCHEMED, window=2)
    assert votes[0] == ["text=O text=O:>.85 text=O:>.85:10+ near=O near=O:>.85 near=O:>.85:4-9"]
    assert [len(row) for row in votes] == [1, 2, 3] * 4
    assert all(len(set(row)) == 1 for row in votes)
    assert text_votes(X, marginals, SCHEMED, window=10**30) == text_votes(X, marginals, SCHEMED, window=12)


@pytest.mark.parametrize("classes", OTHERS.values(), ids=OTHERS)
def test_types_are_those_of_the_scheme(classes):
    X = [["a"], ["a"]] * len(classes)
    rows = np.repeat(np.eye(len(classes)), 2, axis=0)[:, None]
    for i, (label, kind) in enumerate(classes.items()):
        (names,) = text_votes(X[:2], rows[2 * i : 2 * i + 2], list(classes))[0]
        assert names.split()[:2] == [f"text={kind}", f"text={kind}:>.97"], label


def test_structures_and_columns_of_all_shapes():
    marginals = [[[1, 0], [0, 1]], [[0.5, 0.5], [0.25, 0.75]]]
    X = [["a", "b"], ["b", "a"]]
    votes = text_votes(X, marginals, ["O", "A"])
    for other in (
        [Sequence(x) for x in X],
        [Tree(x, [-1, 0]) for x in X],
        [[(word, "NOUN", 3) for word in x] for x in X],
        np.array(X),
    ):
        assert text_votes(other, marginals, np.array(["O", "A"])) == votes
    assert text_votes(X, np.array(marginals, dtype=np.float32), ["O", "A"]) == votes
    assert text_votes([], [], ["O"]) == []
    assert text_votes([[], []], [[], np.zeros((0, 2))], ["O", "A"]) == [[], []]


def test_sums_do_not_depend_on_other_text():
    """The votes on one word are the same, whatever words of any marginals stand before it."""
    random = np.random.default_rng(0)
    tenths = [np.array([[0.1, 0.9]]), np.array([[0.9, 0.1]]), np.array([[0.5, 0.5]])]
    X = [["x"], ["x"], ["x"]]
    alone = text_votes(X, tenths, ["O", "A"])
    for _ in range(20):
        n = int(random.integers(1, 50))
        noise = random.dirichlet([1, 1], n)
        assert text_votes([["a"] * n, *X], [noise, *tenths], ["O", "A"])[1:] == alone


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": -1}, "window=-1: give the number of sentences on each side, 0 or more"),
        ({"window": 1.5}, "window=1.5"),
        ({"window": None}, "window=None"),
        ({"window": True}, "window=True"),
        ({"X": "a b"}, "X is a list of sentences, but 'a b'"),
        ({"X": None}, "X is a list of sentences"),
        ({"X": ["a", "b"]}, r"structure 0: a sentence is a list of words, but 'a' \(str\).*\[X\]"),
        ({"X": [["a", "b"], [{"f": 1}]]}, r"structure 1, node 0: .* is not a word; give strings"),
        ({"X": [["a", ()], ["a"]]}, "structure 0, node 1: .* is not a word"),
        ({"X": [["a", "b"]]}, "there are 1 sentences but marginals of 2; give what predict_marginals"),
        ({"X": [["a"], ["a"]]}, r"structure 0: .* shape \(2, 2\), and 1 nodes with 2 labels need \(1, 2\)"),
        ({"X": [["a", "b"], []]}, r"structure 1: .* shape \(1, 2\), and 0 nodes"),
        ({"classes": ["O"]}, r"structure 0: .* shape \(2, 2\), and 2 nodes with 1 labels"),
        ({"marginals": 5}, r"marginals are a list of arrays, but 5 \(int\)"),
        ({"marginals": [[[1, 0], [1]], [[1, 0]]]}, "structure 0: its marginals are"),
        ({"marginals": [[1, 0], [[1, 0]]]}, r"structure 0: its marginals have the shape \(2,\)"),
        ({"marginals": [[[1, 0], [1, 0]], [[2, -1]]]}, r"structure 1, node 0: .*\[2.0, -1.0\] are no prob"),
        ({"marginals": [[[1, 0], [0.5, 0.4]], [[1, 0]]]}, "structure 0, node 1: .* add up to 1; give what"),
        ({"marginals": [[[1, 0], [1, np.nan]], [[1, 0]]]}, "structure 0, node 1: .*nan"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    given_ = {"X": [["a", "b"], ["a"]], "marginals": [[[1, 0], [1, 0]], [[1, 0]]], "classes": ["O", "A"]}
    with pytest.raises(DataError, match=message):
        text_votes(**(given_ | change))


def test_features_are_those_of_the_word_and_the_names():
    assert text_and_votes(("Lima", "text=none near=none")) == [*text("Lima"), "text=none", "near=none"]
    assert text_and_votes(("Lima", "NP", "a b")) == [*extract("text", ("Lima", "NP")), "a", "b"]
    assert text_and_votes(("Lima", "")) == text("Lima")
    for bad in ("Lima", ("Lima",), ("Lima", 3), ["Lima", "a"], None):
        with pytest.raises(DataError, match="is not a word with its votes; give tuples of both"):
            text_and_votes(bad)


def observed(X, votes):
    return [list(zip(x, names, strict=True)) for x, names in zip(X, votes, strict=True)]


def two_stages(model=CRF):
    """Sentences, a first model, and a second one that sees its votes."""
    X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Ana", "won"], ["so", "did", "Bo"]]
    y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O"], ["O", "O", "PER"]]
    first = CRF().fit(X, y)
    seen = observed(X, text_votes(X, first.predict_marginals(X), first.classes_))
    return X, y, seen, model(features=text_and_votes).fit(seen, y)


@pytest.mark.parametrize("model", [CRF, MEMM])
def test_second_models_are_saved_and_loaded(model, tmp_path):
    _, y, seen, second = two_stages(model)
    assert [list(labels) for labels in second.predict(seen)] == y
    path = tmp_path / "second.fuda"
    second.save(path)
    stored = model_file.read_meta(path)["parameters"]["features"]
    assert stored == {"function": "fuda.features.votes.text_and_votes"}
    for loaded in (fuda.load(path), fuda.load(path, features=text_and_votes)):
        assert loaded.features is text_and_votes
        for a, b in zip(loaded.predict_marginals(seen), second.predict_marginals(seen), strict=True):
            assert (a == b).all()


def test_pairs_of_words_are_features_as_without_votes():
    X, y, seen, second = two_stages()
    X, y, seen = X * 2, y * 2, seen * 2  # pairs that occur once are left out
    plain, second = CRF(features="text").fit(X, y), second.fit(seen, y)
    names = {name for name, *_ in plain.state_features_}
    both = {name for name, *_ in second.state_features_}
    assert names <= both
    assert all("text" in name or "near" in name for name in both - names)


words = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4)


@settings(deadline=None, max_examples=20)
@given(st.lists(words, min_size=1, max_size=4))
def test_words_of_one_sentence_only_get_no_other_name_than_none(sentences):
    """Where no word is in two sentences, features are those without votes, and `none`."""
    X = [[f"{word}{i}" for word in x] for i, x in enumerate(sentences)]
    marginals = [np.full((len(x), 2), 0.5) for x in X]
    votes = text_votes(X, marginals, ["O", "A"])
    assert all(names == "text=none near=none" for row in votes for names in row)
    assert [text_and_votes(node)[:-2] for x in observed(X, votes) for node in x] == [
        text(word) for x in X for word in x
    ]


def test_a_text_of_2000_sentences_takes_well_under_a_second():
    random = np.random.default_rng(0)
    X = [[f"w{k}" for k in random.zipf(1.3, 25) % 10_000] for _ in range(2000)]
    marginals = [random.dirichlet(np.full(9, 0.1), len(x)) for x in X]
    classes = ["O", *(f"{prefix}-{kind}" for prefix in "BI" for kind in ("LOC", "ORG", "PER", "MISC"))]
    began = time.process_time()
    votes = text_votes(X, marginals, classes)
    assert time.process_time() - began < 1
    assert sum(map(len, votes)) == 50_000
