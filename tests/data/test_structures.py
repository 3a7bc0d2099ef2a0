from __future__ import annotations

import copy
import itertools
import pickle
import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuda import Dag, DataError, Sequence, Structure, Tree
from fuda.data.structures import as_structures
from structure_cases import dag_edges, dags, forest_heads, sequences, trees

ABC = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sequence([]), ["empty sequence", "at least one node", "remove"]),
        (lambda: Tree([], []), ["empty tree"]),
        (lambda: Dag([], []), ["empty dag"]),
        (lambda: Sequence("abc"), ["'abc' (str)", "list(text)"]),
        (lambda: Sequence(b"abc"), ["split it into nodes"]),
        (lambda: Sequence({"a": 1}), ["{'a': 1} (dict)", "put it in a list"]),
        (lambda: Sequence({"a"}), ["(set)", "put it in a list"]),
        (lambda: Sequence(5), ["5 (int)", "give a list"]),
        (lambda: Sequence(None), ["None (NoneType)"]),
        (lambda: Sequence(np.array(5.0)), ["list of observations"]),
        (lambda: Tree(ABC, [-1, 0]), ["3 nodes has 2 heads", "one per node"]),
        (lambda: Tree(ABC, []), ["3 nodes has 0 heads"]),
        (lambda: Tree(ABC, [-1, 0, 1, 2]), ["3 nodes has 4 heads"]),
        (lambda: Tree(ABC, [-1, 3, 0]), ["node 1", "its head is 3", "from 0 to 2"]),
        (lambda: Tree(ABC, [-1, 0, -2]), ["node 2", "its head is -2", "−1 for a root"]),
        (lambda: Tree(ABC, [-1, 1, 0]), ["node 1", "its own parent"]),
        (lambda: Tree(ABC, [1, 0, -1]), ["cycle", "remove one"]),
        (lambda: Tree(ABC, [1, 2, 0]), ["cycle"]),
        (lambda: Tree(ABC, [-1, 0, "1"]), ["heads of a tree", "'1' (str)"]),
        (lambda: Tree(ABC, [-1, 0, 1.0]), ["1.0 (float)", "whole numbers"]),
        (lambda: Tree(ABC, [-1, 0, None]), ["None (NoneType)"]),
        (lambda: Tree(ABC, [-1, 0, True]), ["True (bool)"]),
        (lambda: Tree(ABC, [-1, 0, 2**40]), ["1099511627776"]),
        (lambda: Tree(ABC, 5), ["heads of a tree", "5 (int)"]),
        (lambda: Tree(ABC, None), ["heads of a tree", "None"]),
        (lambda: Tree(ABC, np.array(1)), ["heads of a tree"]),
        (lambda: Tree(ABC, "012"), ["heads of a tree", "'012' (str)"]),
        (lambda: Tree(ABC, {0, 1, 2}), ["heads of a tree", "(set)"]),
        (lambda: Tree(ABC, [[-1], [0], [1]]), ["heads of a tree", "(list)"]),
        (lambda: Tree(ABC, np.array([-1.0, 0.0, 1.0])), ["-1.0 (float)"]),
        (lambda: Dag(ABC, [(0, 3)]), ["edge (0, 3)", "no node 3", "0 to 2"]),
        (lambda: Dag(ABC, [(-1, 0)]), ["no node -1"]),
        (lambda: Dag(ABC, [(0, 1), (2, 2)]), ["node 2", "self loop"]),
        (lambda: Dag(ABC, [(0, 1), (1, 2), (0, 1)]), ["edge (0, 1)", "twice", "keep it once"]),
        (lambda: Dag(ABC, [(0, 1), (1, 2), (2, 0)]), ["cycle", "remove one"]),
        (lambda: Dag(ABC, [(0, 1, 2)]), ["pair", "(0, 1, 2)"]),
        (lambda: Dag(ABC, [(0, 1), (1,)]), ["pair", "(1,)"]),
        (lambda: Dag(ABC, [0, 1]), ["ends of an edge", "0 (int)"]),
        (lambda: Dag(ABC, ["01"]), ["ends of an edge", "'01' (str)"]),
        (lambda: Dag(ABC, [{0, 1}]), ["ends of an edge", "(set)"]),
        (lambda: Dag(ABC, [(0, "1")]), ["ends of an edge", "'1' (str)"]),
        (lambda: Dag(ABC, 7), ["edges of a DAG", "7 (int)"]),
        (lambda: Dag(ABC, None), ["edges of a DAG"]),
        (lambda: Dag(ABC, {0: 1}), ["edges of a DAG", "(dict)"]),
        (lambda: Dag(ABC, np.array(3)), ["edges of a DAG"]),
        (lambda: as_structures(Sequence(ABC)), ["single Sequence", "put it in a list"]),
        (lambda: as_structures("abc"), ["list of structures", "'abc' (str)"]),
        (lambda: as_structures({"a": 1}), ["list of structures", "(dict)"]),
        (lambda: as_structures(3), ["list of structures", "3 (int)"]),
        (lambda: as_structures([ABC, "abc"]), ["structure 1", "split it into nodes"]),
        (lambda: as_structures([ABC, []]), ["structure 1", "empty sequence"]),
        (lambda: as_structures([ABC, None]), ["structure 1", "None"]),
        (
            lambda: as_structures([ABC, Tree(ABC, [-1, 0, 1])]),
            ["structure 1 is a tree", "structure 0 is a sequence", "one shape"],
        ),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(DataError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


@given(trees() | dags() | sequences())
def test_order_puts_parents_first_and_keeps_the_users_nodes(structure):
    order = structure.order.tolist()
    assert sorted(order) == list(range(len(structure)))
    rank = {node: i for i, node in enumerate(order)}
    for parent, child in structure.edges.tolist():
        assert rank[parent] < rank[child]
    assert list(structure) == list(structure.observations)


@given(st.data())
def test_edges_come_back_sorted_by_child(data):
    size = data.draw(st.integers(1, 7))
    nodes = [f"w{i}" for i in range(size)]
    heads = data.draw(forest_heads(size))
    assert Tree(nodes, heads).edges.tolist() == [[h, t] for t, h in enumerate(heads) if h >= 0]
    assert Tree(nodes, heads).heads.tolist() == heads
    edges = data.draw(dag_edges(size))
    assert Dag(nodes, edges).edges.tolist() == [list(e) for e in sorted(edges, key=lambda e: (e[1], e[0]))]
    assert Dag(nodes, data.draw(st.permutations(edges))) == Dag(nodes, edges)
    assert Dag(nodes, edges).observations == tuple(nodes)


@given(st.data())
def test_a_cycle_is_found_and_named(data):
    """An edge back along a path always closes a cycle, and the error lists a true one."""
    dag = data.draw(dags(max_size=7))
    edges = [tuple(e) for e in dag.edges.tolist()]
    reached = {(a, b) for a, b in edges}
    for _ in range(len(dag)):
        reached |= {(a, d) for a, b in reached for c, d in edges if b == c}
    if not reached:
        return
    first, last = data.draw(st.sampled_from(sorted(reached)))
    edges.append((last, first))
    with pytest.raises(DataError, match="cycle") as caught:
        Dag(dag.observations, edges)
    nodes = [int(n) for n in re.search(r"cycle, ([\d → ]+);", str(caught.value))[1].split(" → ")]
    assert nodes[0] == nodes[-1]
    assert len(set(nodes)) == len(nodes) - 1
    assert set(itertools.pairwise(nodes)) <= set(edges)


@given(st.data())
def test_heads_that_close_a_cycle_are_refused(data):
    size = data.draw(st.integers(2, 7))
    heads = data.draw(forest_heads(size))
    node = data.draw(st.sampled_from(range(size)))
    path = [node]
    while heads[path[-1]] >= 0:
        path.append(heads[path[-1]])
    if len(path) == 1:
        return
    heads[path[-1]] = data.draw(st.sampled_from(path[:-1]))
    with pytest.raises(DataError, match="cycle"):
        Tree(["w"] * size, heads)


def test_a_long_cycle_is_cut_in_the_message():
    size = 1000
    with pytest.raises(DataError) as caught:
        Tree(["w"] * size, [(t + 1) % size for t in range(size)])
    assert "…" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_long_cycle_takes_linear_time():
    size = 100_000
    began = time.process_time()
    with pytest.raises(DataError, match="close a cycle"):
        Dag(["w"] * size, [(t, (t + 1) % size) for t in range(size)])
    assert time.process_time() - began < 10


def test_deep_and_wide_structures_are_quick_and_need_no_recursion():
    size = 50_000
    nodes = ["w"] * size
    assert Tree(nodes, [*range(1, size), -1]).order.tolist() == list(range(size))[::-1]
    assert Dag(nodes, [(t + 1, t) for t in range(size - 1)]).order[0] == size - 1
    assert len(Tree(nodes, [-1] + [0] * (size - 1)).edges) == size - 1


def test_an_ordered_graph_keeps_its_order():
    assert Dag(ABC, [(0, 2), (1, 2)]).order.tolist() == [0, 1, 2]
    assert Tree(ABC, [-1, 0, 0]).order.tolist() == [0, 1, 2]
    assert Sequence(ABC).order.tolist() == [0, 1, 2]


@given(sequences() | trees() | dags())
def test_pickle_and_copy(structure):
    for other in (pickle.loads(pickle.dumps(structure)), copy.copy(structure), copy.deepcopy(structure)):
        assert other == structure
        assert type(other) is type(structure)
        assert other.order.tolist() == structure.order.tolist()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Sequence(ABC), Sequence(["a", "b"])),
        (Sequence(ABC), Sequence(["a", "b", "d"])),
        (Sequence(ABC), Tree(ABC, [-1, 0, 1])),
        (Tree(ABC, [-1, 0, 1]), Tree(ABC, [-1, 0, 0])),
        (Tree(ABC, [-1, 0, 1]), Dag(ABC, [(0, 1), (1, 2)])),
        (Dag(ABC, []), Dag(ABC, [(0, 1)])),
        (Sequence([np.array([1.0, 2.0])]), Sequence([np.array([1.0, 3.0])])),
        (Sequence([np.array([1.0, 2.0])]), Sequence([[1.0, 2.0]])),
        (Sequence([1]), Sequence([True])),
        (Sequence(ABC), ABC),
    ],
)
def test_unequal(one, other):
    assert one != other


def test_equal():
    assert Sequence(iter(ABC)) == Sequence(ABC)
    assert Sequence([np.array([1.0, 2.0])]) == Sequence([np.array([1.0, 2.0])])
    assert Dag(ABC, {(0, 1), (1, 2)}) == Dag(ABC, np.array([[1, 2], [0, 1]]))
    assert Tree(ABC, np.array([-1, 0, 0])) == Tree(ABC, [-1, np.int64(0), 0])


def test_structures_do_not_hash_and_do_not_change():
    with pytest.raises(TypeError):
        hash(Sequence(ABC))
    heads = np.array([-1, 0, 0])
    tree, dag = Tree(ABC, heads), Dag(ABC, [(0, 1)])
    heads[1] = -1
    assert tree.heads.tolist() == [-1, 0, 0]
    for array in (tree.heads, dag.edges, dag.order):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_numpy_keeps_structures_whole():
    array = np.array([Sequence(ABC), Sequence(ABC)], dtype=object)
    assert array.shape == (2,)
    assert isinstance(array[0], Structure)


def test_nodes_are_indexed_and_sequences_sliced():
    x = Sequence(["a", "b", "c"])
    assert (x[0], x[-1], x[np.int64(1)]) == ("a", "c", "b")
    assert x[1:] == Sequence(["b", "c"])
    assert x[::-1] == Sequence(["c", "b", "a"])
    assert "b" in x
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises(DataError, match="at least one"):
        x[3:]
    tree = Tree(["a", "b"], [-1, 0])
    assert tree[1] == "b"
    with pytest.raises(DataError, match="a part of a tree has edges to the rest; slice its observations"):
        tree[:1]
    equal_sizes = np.array([Sequence([1, 2]), Sequence([3, 4])])
    assert equal_sizes.shape == (2,)
    assert equal_sizes[1] == Sequence([3, 4])


def test_plain_lists_become_sequences():
    given_as = [ABC, tuple(ABC), Sequence(ABC), np.array(ABC), iter(ABC)]
    assert [list(map(str, x)) for x in as_structures(given_as)] == [ABC] * 5
    assert as_structures([]) == []
    assert [len(x) for x in as_structures(np.zeros((2, 3, 4)))] == [3, 3]
    assert as_structures(x for x in [ABC])[0] == Sequence(ABC)


def test_repr_is_short():
    assert repr(Sequence(ABC)) == "Sequence(['a', 'b', 'c'], 3 nodes)"
    assert repr(Dag(["x" * 100] * 9, [])).endswith(", …], 9 nodes)")
    assert len(repr(Sequence([np.zeros(1000)]))) < 100
