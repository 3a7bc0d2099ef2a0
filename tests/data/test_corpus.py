from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuda import CRF, HMSVM, Dag, DataError, HMPerceptron, MarginalizedPerceptron, Sequence, Tree
from fuda.data import observations
from fuda.data.corpus import Corpus
from fuda.data.observations import Kind
from fuda.kernels import RBF
from structure_cases import structure_lists, trees

NAMES = st.sampled_from(["f", "g", "h", "f=1"])
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.5, -1.0])
VALUES = NUMBERS | st.sampled_from(["x", "y", "", True, False, 1, 3, np.float32(2.5), np.int8(1), np.True_])
KINDS = {
    "text": st.sampled_from(["a", "b", "", "\ud800", np.str_("a")]),
    "columns": st.tuples(st.sampled_from(["a", "b", 1, 2, "1"]), st.sampled_from(["N", "V"])),
    "dict": st.dictionaries(NAMES, VALUES, max_size=3),
    "list": st.lists(NAMES, max_size=3),
    "set": st.frozensets(NAMES, max_size=3),
    "id": st.sampled_from([0, 1, -5, np.int64(1), np.uint8(0)]),
    "vector": st.lists(NUMBERS, min_size=2, max_size=2).map(np.array)
    | st.lists(NUMBERS, min_size=2, max_size=2)
    | st.lists(st.integers(0, 2), min_size=2, max_size=2).map(np.array),
}


def same(a, b) -> bool:
    """Whether two observations of one kind are equal, in plain Python."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return list(map(float, a)) == list(map(float, b))
    return a == b


@pytest.mark.parametrize("kind", KINDS)
def test_equal_observations_are_one_type(kind):
    @given(st.lists(st.lists(KINDS[kind], min_size=1, max_size=5), min_size=1, max_size=3))
    def check(lists):
        corpus = Corpus([Sequence(x) for x in lists])
        nodes = [x for part in lists for x in part]
        assert len(corpus.types) == corpus.size == len(nodes)
        for s, a in enumerate(nodes):
            for t, b in enumerate(nodes):
                assert (corpus.types[s] == corpus.types[t]) == same(a, b)
        firsts = [corpus.types.tolist().index(i) for i in range(len(corpus.observations))]
        assert firsts == sorted(firsts)  # types are numbered in order of first occurrence
        for node, type_id in enumerate(corpus.types):
            plain = corpus.observations[type_id]
            if kind == "set":
                assert plain == sorted(nodes[node])
            elif kind == "list":
                assert plain == nodes[node]
            else:
                assert same(plain, nodes[node])

    check()


def test_kinds_and_plain_forms():
    for given_as, kind, plain in [
        (np.str_("a"), Kind("text"), "a"),
        (("a", "b"), Kind("columns", 2), ("a", "b")),
        ({"f": np.float32(0.5), "g": np.True_, "h": "x"}, Kind("features"), {"f": 0.5, "g": True, "h": "x"}),
        (["g", "f"], Kind("features"), ["g", "f"]),
        ([], Kind("features"), []),
        ({"g", "f"}, Kind("features"), ["f", "g"]),
        (np.int64(7), Kind("id"), 7),
        ([1, 2.5], Kind("vector", 2), [1.0, 2.5]),
        (np.array([True, False]), Kind("vector", 2), [1.0, 0.0]),
    ]:
        corpus = Corpus([Sequence([given_as])])
        observation = corpus.observations[0]
        assert corpus.kind == kind
        assert (observation.tolist() if isinstance(observation, np.ndarray) else observation) == plain
        assert type(observation) in (str, tuple, dict, list, int, np.ndarray)


@pytest.mark.parametrize("bad", [None, 1.5, True, b"a", object(), range(3), np.float64(1.0), np.True_])
def test_what_is_no_observation(bad):
    with pytest.raises(DataError, match=r"structure 1, node 2: .* is not an observation; give a string,"):
        Corpus([Sequence(["a"]), Sequence(["a", "b", bad])])


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ((), "one or more columns"),
        (("a", 1.5), "a tuple is one or more columns of text; give a numeric vector as an array"),
        (("a", True), "columns of text"),
        (("a", None), "columns of text"),
        (("a", ["b"]), "columns of text"),
        ({"f": np.nan}, "feature 'f' has the value nan (float); give a finite number"),
        ({"f": np.inf}, "feature 'f' has the value inf"),
        ({"f": 10**400}, "feature 'f' has the value 1000"),
        ({"f": None}, "feature 'f' has the value None (NoneType)"),
        ({"f": ["g", 1]}, "1 (int) is not a feature name"),
        ({"f": [1, "g"]}, "feature 'f': [1, 'g'] (list) is not a numeric vector"),
        ({"f": 1j}, "feature 'f' has the value 1j"),
        ({"f": np.complex128(1j)}, "feature 'f' has the value"),
        ({1: 1.0}, "1 (int) is not a feature name; feature names are strings"),
        (["f", 1], "1 (int) is not a feature name"),
        ({"f", None}, "None (NoneType) is not a feature name"),
        ([1, "f"], "is not a numeric vector; give a 1-D array"),
        ([None], "is not a numeric vector"),
        ([[1.0], [2.0]], "an array of shape (2, 1); give a 1-D numeric vector"),
        ([[1.0], [2.0, 3.0]], "is not a numeric vector"),
        (np.zeros((2, 2)), "an array of shape (2, 2)"),
        (np.zeros(0), "an array of shape (0,)"),
        (np.array(1.0), "an array of shape ()"),
        (np.array(["a"]), "is not a numeric vector"),
        (np.array([1j]), "is not a numeric vector"),
        (np.array([1.0, np.nan]), "entry 1 of its vector is nan; entries are finite numbers"),
        ([1.0, -np.inf], "entry 1 of its vector is -inf"),
    ],
)
def test_what_an_observation_may_not_hold(bad, words):
    with pytest.raises(DataError) as caught:
        Corpus([Sequence([bad])])
    assert str(caught.value).startswith("structure 0, node 0: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("a", ("a",), "a tuple of 1 columns, where structure 0, node 0 is a string"),
        (("a", "b"), ("a",), "a tuple of 1 columns, where structure 0, node 0 is a tuple of 2 columns"),
        (("a", "b"), "a", "a string, where structure 0, node 0 is a tuple of 2 columns"),
        ("a", {"a": 1.0}, "a dict or list of features, where structure 0, node 0 is a string"),
        ("a", 1, "an integer id, where"),
        (1, ["a"], "a dict or list of features, where structure 0, node 0 is an integer id"),
        ([1.0, 2.0], [1.0], "a vector of 1 numbers, where structure 0, node 0 is a vector of 2 numbers"),
        ([1.0, 2.0], [], "a dict or list of features, where"),
        (
            ["a"],
            np.array([1.0]),
            "a vector of 1 numbers, where structure 0, node 0 is a dict or list of features",
        ),
        (("list", "a"), ["a"], "a dict or list of features, where"),
    ],
)
def test_all_nodes_are_of_one_kind(one, other, words):
    with pytest.raises(DataError) as caught:
        Corpus([Sequence([one]), Sequence([one, other])])
    assert str(caught.value).startswith(f"structure 1, node 1: {words}")
    assert "one kind and length" in str(caught.value)


def test_a_column_that_only_looks_equal_is_still_refused():
    """1.0 and True hash like 1, so that they could hide behind it."""
    for hidden in (1.0, True):
        with pytest.raises(DataError, match="structure 0, node 1"):
            Corpus([Sequence([("a", 1), ("a", hidden)])])


def test_dicts_and_names_may_stand_side_by_side():
    assert Corpus([Sequence([{"f": 2.0}, ["f"], {"f", "g"}])]).kind == Kind("features")


def test_no_structures():
    with pytest.raises(DataError, match="at least one"):
        Corpus([])


@given(structure_lists())
def test_packed_arrays_say_what_the_structures_say(structures):
    corpus = Corpus(structures)
    assert len(corpus) == len(structures)
    assert corpus.offsets.tolist() == [0, *np.cumsum([len(s) for s in structures])]
    nodes = [(i, t) for i, s in enumerate(structures) for t in range(len(s))]
    number = {node: n for n, node in enumerate(nodes)}
    edges = {(number[i, p], number[i, c]) for i, s in enumerate(structures) for p, c in s.edges.tolist()}
    assert {tuple(e) for e in corpus.graph.edges.tolist()} == edges
    assert corpus.graph.edges[:, 1].tolist() == sorted(corpus.graph.edges[:, 1])
    for n in range(corpus.size):
        for near, expected in (
            (corpus.graph.parents, sorted(p for p, c in edges if c == n)),
            (corpus.graph.children, sorted(c for p, c in edges if p == n)),
        ):
            assert near.indices[near.indptr[n] : near.indptr[n + 1]].tolist() == expected
        i, t = nodes[n]
        assert corpus.place(n) == f"structure {i}, node {t}"
        assert corpus.observations[corpus.types[n]] == structures[i].observations[t]
    assert corpus.graph.roots.tolist() == [n for n in range(corpus.size) if all(c != n for _, c in edges)]
    assert corpus.graph.leaves.tolist() == [n for n in range(corpus.size) if all(p != n for p, _ in edges)]
    rank = {n: i for i, n in enumerate(corpus.graph.order.tolist())}
    assert sorted(rank) == list(range(corpus.size))
    assert all(rank[p] < rank[c] for p, c in edges)
    assert [nodes[n][0] for n in corpus.graph.order] == [i for i, _ in nodes]  # in order
    assert [part.tolist() for part in corpus.split(np.arange(corpus.size))] == [
        [number[i, t] for t in range(len(s))] for i, s in enumerate(structures)
    ]
    assert corpus.is_chain == isinstance(structures[0], Sequence)


@given(st.lists(trees(), min_size=1, max_size=3))
def test_heads_of_trees(structures):
    corpus = Corpus(structures)
    expected = [
        h + start if h >= 0 else -1
        for s, start in zip(structures, corpus.offsets, strict=False)
        for h in s.heads
    ]
    assert corpus.graph.heads.tolist() == expected


def test_a_chain_is_the_same_as_sequence_tree_and_dag():
    words, more = ["a", "b", "a"], ["b"]
    chains = Corpus([Sequence(words), Sequence(more)])
    as_trees = Corpus([Tree(words, [-1, 0, 1]), Tree(more, [-1])])
    as_dags = Corpus([Dag(words, [(0, 1), (1, 2)]), Dag(more, [])])
    for other in (as_trees, as_dags):
        assert other.types.tolist() == chains.types.tolist()
        for name in ("offsets", "heads", "edges", "order", "roots", "leaves"):
            assert getattr(other.graph, name).tolist() == getattr(chains.graph, name).tolist()


@given(structure_lists(), st.randoms())
def test_the_graph_of_a_part_is_that_of_its_structures(structures, random):
    chosen = [random.randrange(len(structures)) for _ in range(3)]
    part = Corpus(structures).take(np.array(chosen))
    alone = Corpus([structures[i] for i in chosen])
    for name in ("offsets", "edges", "order", "roots", "leaves"):
        assert getattr(part.graph, name).tolist() == getattr(alone.graph, name).tolist()
    for name in ("parents", "children"):
        ours, theirs = getattr(part.graph, name), getattr(alone.graph, name)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.tolist() == other.tolist()
            assert mine.dtype == np.int64
            assert mine.flags.c_contiguous


def test_a_type_that_a_part_has_no_node_of():
    part = Corpus([Sequence(["a", "b"]), Sequence(["c"])]).take(np.array([1]))
    assert part.place_of_type(2) == "structure 0, node 0"
    assert part.place_of_type(1) == "observation 'b'"


def test_spanish_news_has_26099_types(corpora):
    from fuda import read

    words = [Sequence([x[0] for x in s]) for s in read(corpora / "conll2002" / "esp.train").X]
    corpus = Corpus(words)
    assert (len(corpus), corpus.size, len(corpus.observations)) == (8323, 264715, 26099)


def test_feature_dicts_as_crfsuite_takes_them():
    items = [{"a": ["x", "y"], "b": {"k": 2.0, "s": "t", "deep": {"z": True}}, "c": {"u"}, "d": 1.0}]
    assert Corpus([Sequence(items)]).observations == [
        {"a=x": True, "a=y": True, "b:k": 2.0, "b:s": "t", "b:deep:z": True, "c=u": True, "d": 1.0}
    ]
    for bad in ({"a": [1, "x"]}, {"a": ["x", 1]}, {"a": {1: 2.0}}, {"a": {"b": None}}, {"a": None}):
        with pytest.raises(DataError, match="structure 0, node 0"):
            Corpus([Sequence([bad])])


def test_words_and_vectors_in_one_observation():
    """A dict may have a vector among its values: in every model, in files, in comparisons."""
    rng = np.random.default_rng(0)
    y = [rng.choice(["A", "B"], 4).tolist() for _ in range(12)]
    X = [
        [{"word": "same", "vector": rng.normal(size=3) * 0.1 + (label == "A")} for label in labels]
        for labels in y
    ]
    [observation] = Corpus([Sequence([{"word": "Ana", "vector": np.array([0.5, -0.0])}])]).observations
    assert observation == {"word": "Ana", "vector:0": 0.5, "vector:1": 0.0}
    for model in (CRF(), HMPerceptron(), HMSVM(kernel=RBF(0.5)), MarginalizedPerceptron(RBF(0.5), orders=1)):
        assert model.fit(X, y).score(X, y) == 1.0
    assert Sequence(X[0]) == Sequence([dict(x) for x in X[0]])
    assert Sequence(X[0]) != Sequence(X[1])
    line = json.dumps(observations.to_json(X[0][0]))
    again = observations.from_json(json.loads(line))
    assert Sequence([again]) == Sequence([X[0][0]])
    assert again["vector"].tolist() == X[0][0]["vector"].tolist()
    listed = {"word": "Ana", "vector": [0.5, -0.0]}
    assert Corpus([Sequence([listed])]).observations == [observation]
    assert observations.to_json(listed) == {"features": {"word": "Ana", "vector": [0.5, 0.0]}}
    with pytest.raises(DataError, match="'tags=x': true"):
        observations.from_json({"features": {"tags": ["x", "y"]}})
    for bad in (np.zeros((2, 2)), np.array([np.nan]), np.array(["x"]), [1, "x"], [[1.0]], [None]):
        with pytest.raises(DataError, match="structure 0, node 0: feature 'vector'"):
            Corpus([Sequence([{"vector": bad}])])


def nested_features(depth):
    value = 1.0
    for _ in range(depth):
        value = {"a": value}
    return value


def test_dicts_of_features_nest_up_to_a_bound():
    Corpus([Sequence([nested_features(100)])])
    for depth in (101, 3000, 100_000):
        with pytest.raises(DataError, match=r"structure 0, node 0: .*nested more than 100 deep; flatten it"):
            Corpus([Sequence([nested_features(depth)])])


@pytest.mark.parametrize("around", [lambda v: {"vector": v}, lambda v: {"word": "a", "of": {"vector": v}}])
def test_vectors_of_one_name_have_one_length(around):
    nodes = [around([1.0, 2.0]), around(np.ones(2)), around([1.0, 2.0, 3.0])]
    assert len(Corpus([Sequence(nodes[:2]), Sequence(nodes[:1])])) == 2
    message = r"structure 1, node 0: the vector '.*vector' has length 3, that of structure 0, node 0 length 2"
    with pytest.raises(DataError, match=message):
        Corpus([Sequence(nodes[:2]), Sequence(nodes[2:])])
