from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from fuda import Dag, DataError, Sequence, Tree, read
from fuda.data.corpus import Corpus
from fuda.data.structures import as_structures
from fuda.data.tables import feature_row, named_features
from fuda.data.window_encoding import WindowEncoder
from structure_cases import WORDS, dags, sequences, structure_lists, trees


def naive_view(structure, node: int, offset: int) -> list[str]:
    """What a node sees at an offset, by definition.

    It sees the words of all nodes that |offset| steps reach, each once, or one mark that says
    how many of the steps are too many.
    """
    edges = structure.edges.tolist()
    reached, last_step = {node}, 0
    for step in range(1, abs(offset) + 1):
        if offset < 0:
            reached = {p for p, c in edges if c in reached}
        else:
            reached = {c for p, c in edges if p in reached}
        if reached:
            last_step = step
    if reached:
        return sorted(structure.observations[n] for n in reached)
    return [f"<{'-' if offset < 0 else '+'}{abs(offset) - last_step}>"]


def seen(encoded, channel, encoder) -> list[list[str]]:
    """What each node sees by a channel, as the names of the features of its rows."""
    matrix = encoded.tables[channel.table].matrix
    names = encoder.feature_names(0)
    row_names = [[names[f] for f in matrix[row].indices] for row in range(matrix.shape[0])]
    indptr = range(len(channel.rows) + 1) if channel.indptr is None else channel.indptr
    return [
        sorted(name for row in channel.rows[indptr[t] : indptr[t + 1]] for name in row_names[row])
        for t in range(encoded.corpus.size)
    ]


@given(structure_lists(), st.integers(0, 4))
def test_window_rows_are_what_steps_reach(structures, window):
    encoder = WindowEncoder(lambda word: [word], window)
    encoded = encoder.fit(structures)
    offsets = range(-window, window + 1)
    assert [c.name for c in encoded.channels] == encoder.channel_names()
    assert encoder.channel_names() == ["0" if d == 0 else f"{d:+d}" for d in offsets]
    for channel, offset in zip(encoded.channels, offsets, strict=True):
        expected = [naive_view(s, t, offset) for s in structures for t in range(len(s))]
        assert seen(encoded, channel, encoder) == expected
    assert encoder.feature_count(0) == len(encoder.feature_names(0)) == encoded.tables[0].n_features


@given(st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=3), st.integers(0, 3))
def test_a_chain_is_the_same_as_sequence_tree_and_dag(lists, window):
    shapes = [
        [Sequence(x) for x in lists],
        [Tree(x, range(-1, len(x) - 1)) for x in lists],
        [Dag(x, [(t - 1, t) for t in range(1, len(x))]) for x in lists],
    ]
    encoded = [WindowEncoder("spelling", window).fit(structures) for structures in shapes]
    for other in encoded[1:]:
        assert (other.tables[0].matrix != encoded[0].tables[0].matrix).nnz == 0
        for a, b in zip(encoded[0].channels, other.channels, strict=True):
            assert a.rows.tolist() == b.rows.tolist()
            assert b.indptr is None


@given(structure_lists(), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_gather_and_scatter_are_transposes(structures, window, seed):
    encoded = WindowEncoder("word", window).fit(structures)
    random = np.random.default_rng(seed)
    n_rows = encoded.tables[0].matrix.shape[0]
    row_values = random.normal(size=(n_rows, 3))
    node_values = random.normal(size=(encoded.corpus.size, 3))
    for channel in encoded.channels:
        gathered, scattered = channel.gather(row_values), channel.scatter(node_values, n_rows)
        assert gathered.shape == node_values.shape
        assert scattered.shape == row_values.shape
        np.testing.assert_allclose((gathered * node_values).sum(), (row_values * scattered).sum(), atol=1e-9)
        bounds = np.arange(len(channel.rows) + 1) if channel.indptr is None else channel.indptr
        for t in range(encoded.corpus.size):
            rows = channel.rows[bounds[t] : bounds[t + 1]]
            np.testing.assert_allclose(gathered[t], row_values[rows].sum(axis=0), atol=1e-9)


def test_a_node_is_reached_once_however_many_paths_lead_there():
    diamond = Dag(["a", "b", "c", "d"], [(0, 1), (0, 2), (1, 3), (2, 3)])
    encoder = WindowEncoder(lambda x: [x], 2)
    encoded = encoder.fit([diamond])
    views = {c.name: seen(encoded, c, encoder) for c in encoded.channels}
    assert views["+2"] == [["d"], ["<+1>"], ["<+1>"], ["<+2>"]]
    assert views["-2"] == [["<-2>"], ["<-1>"], ["<-1>"], ["a"]]
    assert views["-1"] == [["<-1>"], ["a"], ["a"], ["b", "c"]]


def test_many_paths_do_not_overflow():
    """Layers of fully joined nodes have 2^99 paths of 100 edges."""
    layers = 101
    edges = [(2 * i + a, 2 * i + 2 + b) for i in range(layers - 1) for a in (0, 1) for b in (0, 1)]
    encoder = WindowEncoder(lambda x: [x], 100)
    encoded = encoder.fit([Dag([str(i) for i in range(2 * layers)], edges)])
    assert seen(encoded, encoded.channels[-1], encoder)[0] == [f"{2 * layers - 2}", f"{2 * layers - 1}"]


def test_a_window_longer_than_the_sequence():
    encoder = WindowEncoder("word", 5)
    encoded = encoder.fit([Sequence(["a"]), Sequence(["b", "c"])])
    assert seen(encoded, encoded.channels[0], encoder) == [["<-5>"], ["<-5>"], ["<-4>"]]
    assert seen(encoded, encoded.channels[-1], encoder) == [["<+5>"], ["<+4>"], ["<+5>"]]


@given(
    st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_new_structures_by_a_fitted_vocabulary(old, new):
    encoder = WindowEncoder("text", 1)
    encoder.fit([Sequence(x) for x in old])
    names = encoder.feature_names(0)
    encoded = encoder.encode([Sequence(x) for x in new])
    assert encoder.feature_names(0) == names  # encoding learns nothing
    known = set(names)
    table = encoded.tables[0]
    for type_id, word in enumerate(encoded.corpus.observations):
        features = WindowEncoder("text", 0)
        features.fit([Sequence([word])])
        all_names = features.feature_names(0)
        row_names = [names[i] for i in table.matrix[type_id].indices]
        assert sorted(row_names) == sorted(set(all_names) & known)
        assert table.unknown[type_id] == len(set(all_names) - known)
    assert table.unknown[len(encoded.corpus.observations) :].tolist() == [0.0, 0.0]


def row_of(features, observation=("x",)):
    """The features of one observation, as a dict of names and values."""
    encoder = WindowEncoder(features, 0)
    matrix = encoder.fit([Sequence([observation])]).tables[0].matrix
    return {name: float(matrix[0, i]) for i, name in enumerate(encoder.feature_names(0))}


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (["f", "g"], {"f": 1.0, "g": 1.0}),
        (("f", "g"), {"f": 1.0, "g": 1.0}),
        ({"g", "f"}, {"f": 1.0, "g": 1.0}),
        (["f", "f"], {"f": 2.0}),
        ([], {}),
        ({}, {}),
        ({"f": 2, "g": 0.5}, {"f": 2.0, "g": 0.5}),
        ({"f": np.float32(0.5), "g": np.int8(3)}, {"f": 0.5, "g": 3.0}),
        ({"f": "x", "g": ""}, {"f=x": 1.0, "g=": 1.0}),
        ({"f": True, "g": False, "h": np.True_, "i": np.False_}, {"f": 1.0, "h": 1.0}),
        ({"f": "x", "f=x": 2.0}, {"f=x": 3.0}),
        ({"f=x": 2.0, "f": "x"}, {"f=x": 3.0}),
        ({"f": 0.0}, {"f": 0.0}),
    ],
)
def test_what_features_may_be(features, expected):
    assert row_of(lambda _: features) == expected
    assert WindowEncoder(lambda _: features, 0).fit([Sequence(["x"])]).tables[0].matrix.has_canonical_format
    if not isinstance(features, tuple):
        assert row_of("text", features) == expected


@pytest.mark.parametrize(
    ("nonsense", "words"),
    [
        ("word", "'word' (str) is not a collection of features"),
        (None, "None (NoneType) is not a collection of features"),
        (5, "5 (int) is not a collection of features"),
        (np.zeros(2), "(ndarray) is not a collection of features"),
        (iter(["f"]), "is not a collection of features; give a list of names (strings) or a dict"),
        ([1], "1 (int) is not a feature name"),
        (["f", None], "None (NoneType) is not a feature name"),
        ({1: 1.0}, "1 (int) is not a feature name"),
        ({"f": None}, "feature 'f' has the value None"),
        ({"f": np.nan}, "feature 'f' has the value nan"),
        ({"f": -np.inf}, "feature 'f' has the value -inf"),
        ({"f": [1.0, "x"]}, "[1.0, 'x'] (list) is not a numeric vector"),
        ({"f": 10**400}, "feature 'f' has the value 1000"),
        ({"f": np.complex64(1j)}, "feature 'f' has the value"),
    ],
)
def test_a_function_that_gives_nonsense(nonsense, words):
    def features(word):
        return nonsense if word == "bad" else [word]

    with pytest.raises(DataError) as caught:
        WindowEncoder(features, 1).fit([Sequence(["a"]), Sequence(["a", "bad"])])
    assert str(caught.value).startswith("structure 1, node 1, by the feature function: ")
    assert words in str(caught.value)


def test_a_function_that_fails():
    with pytest.raises(DataError) as caught:
        WindowEncoder(lambda word: [word[0]], 0).fit([Sequence(["a", ""])])
    assert str(caught.value) == (
        "structure 0, node 1, by the feature function: IndexError('string index out of range') was raised on "
        "''; correct the function"
    )
    assert isinstance(caught.value.__cause__, IndexError)


def test_a_function_sees_observations_as_they_were_given():
    shown = []

    def features(x):
        shown.append(x)
        return ["f"]

    WindowEncoder(features, 0).fit([Sequence([["z", "a"], ["a", "z"], {"z", "a"}])])
    assert shown == [["z", "a"], ["a", "z"]]  # lists keep their order, and a set is sorted
    WindowEncoder(features, 0).fit([Sequence([("z", "a"), (1, "a")])])
    assert shown[2:] == [("z", "a"), (1, "a")]


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=20))
def test_a_function_is_asked_once_a_type(words):
    asked = Counter()

    def features(word):
        asked[word] += 1
        return [word]

    WindowEncoder(features, 2).fit([Sequence(words)])
    assert asked == Counter(set(words))


def test_columns_become_features():
    assert row_of("word", ("Lima", "NP", "B")) == {"w=Lima": 1.0, "column1=NP": 1.0, "column2=B": 1.0}


def test_vectors_are_dense_and_marks_are_columns():
    X = [Sequence([[1.0, 2.0], [3.0, 4.0]]), Sequence([[1.0, 2.0]])]
    encoder = WindowEncoder("text", 1)
    encoded = encoder.fit(X)
    assert isinstance(encoded.tables[0].matrix, np.ndarray)
    assert encoded.tables[0].matrix.tolist() == [
        [1.0, 2.0, 0.0, 0.0],
        [3.0, 4.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]
    assert encoder.feature_names(0) == ["x0", "x1", "<-1>", "<+1>"]
    assert encoder.feature_count(0) == 4
    assert encoder.vocabularies() == [[]]
    assert encoded.channels[0].rows.tolist() == [2, 0, 2]
    assert encoder.encode([Sequence([[5.0, 6.0]])]).tables[0].matrix[0].tolist() == [5.0, 6.0, 0.0, 0.0]


def test_vectors_through_a_function_have_names():
    encoder = WindowEncoder(lambda x: {"first": x[0]}, 0)
    encoded = encoder.fit([Sequence([[1.5, 2.0]])])
    assert sp.issparse(encoded.tables[0].matrix)
    assert encoder.feature_names(0) == ["first"]


@pytest.mark.parametrize(
    ("fitted", "given_now", "words"),
    [
        ("a", ("a",), "is a tuple of 1 columns, but the model was fitted on nodes that are each a string"),
        (("a", "b"), ("a", "b", "c"), "is a tuple of 3 columns"),
        (
            ("a", "b"),
            "a",
            "is a string, but the model was fitted on nodes that are each a tuple of 2 columns",
        ),
        ([1.0, 2.0], [1.0], "is a vector of 1 numbers"),
        ([1.0, 2.0], "a", "each a vector of 2 numbers"),
        ("a", [1.0, 2.0], "is a vector of 2 numbers"),
        ({"f": 1.0}, "f", "each a dict or list of features"),
        (5, "5", "each an integer id"),
    ],
)
def test_what_is_encoded_is_of_the_kind_that_was_fitted(fitted, given_now, words):
    encoder = WindowEncoder("word", 1)
    encoder.fit([Sequence([fitted])])
    with pytest.raises(DataError) as caught:
        encoder.encode([Sequence([given_now])])
    assert str(caught.value).startswith("structure 0, node 0 is ")
    assert words in str(caught.value)
    assert "give the same kind of observations" in str(caught.value)


@given(structure_lists(), st.sampled_from(["word", "text"]), st.integers(0, 2))
def test_restored_encoders_encode_alike(structures, features, window):
    encoder, other = WindowEncoder(features, window), WindowEncoder(features, window)
    encoder.fit(structures)
    other.restore(encoder.vocabularies(), encoder.observations)
    assert other.settings == encoder.settings
    a, b = encoder.encode(structures), other.encode(structures)
    assert (a.tables[0].matrix != b.tables[0].matrix).nnz == 0
    assert [c.rows.tolist() for c in a.channels] == [c.rows.tolist() for c in b.channels]


@pytest.mark.parametrize("shape", [sequences, trees, dags])
def test_single_nodes(shape):
    @given(shape(max_size=1), st.integers(0, 2))
    def check(structure, window):
        encoded = WindowEncoder("word", window).fit([structure])
        assert all(c.indptr is None and len(c.rows) == 1 for c in encoded.channels)

    check()


def test_feature_row_counts_what_it_does_not_know():
    vocabulary = {"f": 0}
    for features, value, unknown, beyond in ((["f", "g", "h"], 1, 2, 2), ({"f": 2.0, "g": -3.0}, 2, 3, 9)):
        row = feature_row(named_features(features), vocabulary)
        assert (row.ids.tolist(), row.values.tolist()) == ([0], [value])
        assert (row.unknown, row.beyond) == (unknown, beyond)
    assert vocabulary == {"f": 0}


def test_no_features_at_all():
    encoded = WindowEncoder(lambda _: [], 0).fit([Sequence(["a", "b"])])
    assert encoded.tables[0].matrix.shape == (2, 0)


def test_numpy_text_and_matrices():
    X = as_structures(np.array([["a", "b"], ["b", "c"]]))
    assert WindowEncoder("word", 0).fit(X).corpus.types.tolist() == [0, 1, 1, 2]
    assert (
        WindowEncoder("word", 0).fit(as_structures(np.eye(6).reshape(2, 3, 6))).corpus.kind.name == "vector"
    )


def test_spanish_news(corpora):
    X = read(corpora / "conll2002" / "esp.train").X
    words = [Sequence([x[0] for x in s]) for s in X]
    for structures in (X, words):
        encoded = WindowEncoder("S3", 0).fit(structures)
        assert encoded.corpus.size == 264_715
        assert len(encoded.channels) == 3
    assert len(Corpus(words).observations) == 26_099


@given(
    st.lists(
        st.lists(st.sampled_from(["Ana", "de", "X-1", "ana", "7"]), min_size=1, max_size=6),
        min_size=1,
        max_size=5,
    )
)
def test_joints_are_pairs_of_neighbours_seen_more_than_once(sentences: list[list[str]]) -> None:
    encoder = WindowEncoder("text", 1)
    encoded = encoder.fit([Sequence(words) for words in sentences])
    names = encoder.channel_names()
    channel = names.index("-1lower&0lower")
    expected = [
        f"{words[t - 1].lower() if t else '<-1>'}&{words[t].lower()}"
        for words in sentences
        for t in range(len(words))
    ]
    often = {text for text in expected if expected.count(text) > 1}
    assert set(encoder.feature_names(channel)) == often
    table = encoded.tables[encoded.channels[channel].table].matrix
    for row, text in zip(encoded.channels[channel].rows, expected, strict=True):
        row_names = [encoder.feature_names(channel)[k] for k in table[row].indices]
        assert row_names == ([text] if text in often else [])


def test_joints_keep_to_the_window() -> None:
    for window, count in ((0, 1), (1, 3 + 7), (2, 5 + 7)):
        encoder = WindowEncoder("text", window)
        encoder.fit([Sequence(["a", "b"])])
        assert len(encoder.channel_names()) == count


def test_on_a_chain_joints_of_all_shapes_are_the_same() -> None:
    words = [["Ana", "de", "Paz"], ["Ana", "de"], ["X"]]
    encodings = []
    for shape in (
        Sequence,
        lambda x: Tree(x, range(-1, len(x) - 1)),
        lambda x: Dag(x, [(t, t + 1) for t in range(len(x) - 1)]),
    ):
        encoder = WindowEncoder("text", 1)
        encoded = encoder.fit([shape(x) for x in words])
        encodings.append((encoder.vocabularies(), [channel.rows.tolist() for channel in encoded.channels]))
        assert all(channel.indptr is None for channel in encoded.channels)
    assert encodings[0] == encodings[1] == encodings[2]


def test_each_child_joins_its_parent() -> None:
    trees = [Tree(["a", "b", "c"], [-1, 0, 0]), Tree(["a", "b", "b"], [-1, 0, 0])]
    encoder = WindowEncoder("text", 1)
    encoded = encoder.fit(trees)
    at = encoder.channel_names().index("0lower&+1lower")
    channel = encoded.channels[at]
    names, table = encoder.feature_names(at), encoded.tables[channel.table].matrix
    joints = [
        [
            names[k]
            for row in channel.rows[channel.indptr[t] : channel.indptr[t + 1]]
            for k in table[row].indices
        ]
        for t in range(6)
    ]
    # a&c and c&<+1> are seen once
    assert joints == [["a&b"], ["b&<+1>"], [], ["a&b", "a&b"], ["b&<+1>"], ["b&<+1>"]]


@pytest.mark.parametrize("shape", ["sequence", "tree", "dag"])
def test_a_part_is_what_encoding_it_would_give(shape):
    words = [["a", "b", "c"], ["b"], ["c", "a", "d", "a"], ["d", "b"]]
    make = {
        "sequence": Sequence,
        "tree": lambda x: Tree(x, range(-1, len(x) - 1)),
        "dag": lambda x: Dag(x, [(i, j) for j in range(len(x)) for i in range(j)]),
    }[shape]
    encoder = WindowEncoder("text", 1)
    structures = [make(x) for x in words]
    chosen = np.array([2, 0, 3])
    part = encoder.fit(structures).take(chosen)
    whole = encoder.encode([structures[i] for i in chosen])
    assert part.corpus.graph.edges.tolist() == whole.corpus.graph.edges.tolist()
    assert part.corpus.graph.order.tolist() == whole.corpus.graph.order.tolist()
    for ours, theirs in zip(part.channels, whole.channels, strict=True):
        by_node = [
            channel.gather(np.asarray(encoded.tables[channel.table].matrix.todense()))
            for channel, encoded in ((ours, part), (theirs, whole))
        ]
        np.testing.assert_array_equal(*by_node)
