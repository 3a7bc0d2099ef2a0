from __future__ import annotations

import builtins

import pytest
from format_cases import PROPERTY, assert_same, datasets, tokens
from hypothesis import given

from fuda.data.structures import Dag, Sequence, Tree
from fuda.errors import DataError
from fuda.formats import Dataset, from_networkx, to_networkx

nx = pytest.importorskip("networkx", reason="the extra fuda[graph] is not installed")


def graph(edges, names="abc", **attributes):
    made = nx.DiGraph()
    for name in names:
        made.add_node(name, observation=name.upper(), **attributes)
    made.add_edges_from(edges)
    return made


@pytest.mark.parametrize("shape", ["sequence", "tree", "dag"])
def test_structures_come_back(shape):
    @PROPERTY
    @given(datasets(tokens, shape=shape))
    def check(data):
        graphs = [to_networkx(record.structure, record.labels) for record in data.records]
        again = from_networkx(graphs, shape=shape)
        if all(label is None for labels in data.y or [] for label in labels):
            data = Dataset([type(r)(r.structure) for r in data.records])
        assert_same(again, data)

    check()


def test_nodes_keep_the_order_of_the_graph():
    made = graph(["ca", "cb", "ba"], label="X")
    del made.nodes["b"]["label"]
    data = from_networkx([made])
    assert [Dag(["A", "B", "C"], [(2, 0), (2, 1), (1, 0)])] == data.X
    assert data.y == [["X", None, "X"]]
    assert from_networkx([graph(["cb", "ca"])]).y is None


def test_shapes():
    assert [Dag(["A", "B", "C"], [(2, 1), (2, 0)])] == from_networkx([graph(["cb", "ca"])]).X
    assert [Tree(["A", "B", "C"], [2, 2, -1])] == from_networkx([graph(["cb", "ca"])], shape="tree").X
    assert [Sequence(["A", "B", "C"])] == from_networkx([graph(["bc", "ab"])], shape="sequence").X
    assert [Sequence(["A"])] == from_networkx([graph([], "a")], shape="sequence").X


def test_other_attributes():
    made = nx.DiGraph()
    made.add_node(0, word="a", tag="X")
    assert list(from_networkx([made], observation="word", label="tag")) == [[Dag(["a"], [])], [["X"]]]


@pytest.mark.parametrize(
    ("graphs", "options", "words"),
    [
        (nx.DiGraph(), {}, r"pass \[graph\]"),
        ([nx.Graph([(0, 1)])], {}, r"structure 0: a Graph where a networkx DiGraph"),
        ([nx.MultiDiGraph([(0, 1)])], {}, r"structure 0: a MultiDiGraph where"),
        ([["a", "b"]], {}, r"structure 0: a list where"),
        (
            [graph(["ab"]), nx.DiGraph([(0, 1)])],
            {},
            r"structure 1, node 0: .*no attribute 'observation'.*observation=",
        ),
        ([nx.DiGraph()], {}, r"structure 0: an empty dag"),
        ([graph(["ab", "ba"])], {}, r"structure 0: node .*cycle"),
        ([graph(["aa"])], {}, r"structure 0: node 0: .*self loop"),
        ([graph(["ac", "bc"])], {"shape": "tree"}, r"structure 0: node 2: more than one parent.*shape='dag'"),
        ([graph(["ab", "ba"])], {"shape": "tree"}, r"structure 0: node .*cycle"),
        ([graph(["ac", "cb"])], {"shape": "sequence"}, r"structure 0: .*not a sequence.*shape='dag'"),
        ([graph(["ab"])], {"shape": "forest"}, r"shape='forest': choose one of dag, tree, sequence"),
    ],
)
def test_graphs_that_cannot_be_read(graphs, options, words):
    with pytest.raises(DataError, match=words):
        from_networkx(graphs, **options)


def test_labels_are_one_a_node():
    with pytest.raises(DataError, match="1 labels for 2 nodes"):
        to_networkx(Sequence(["a", "b"]), ["X"])


def test_without_networkx(monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "networkx":
            raise ModuleNotFoundError("No module named 'networkx'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(DataError, match=r"pip install 'fuda\[graph\]'"):
        to_networkx(Sequence(["a"]))
