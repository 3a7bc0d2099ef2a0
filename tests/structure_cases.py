"""Random sequences, trees and DAGs, their nodes in any order."""

from __future__ import annotations

from hypothesis import strategies as st

from fuda import Dag, Sequence, Tree

WORDS = st.sampled_from(["a", "b", "c", "Lima", "d-1", "É"])


@st.composite
def forest_heads(draw, size):
    """Heads of a random forest: in random order, each node chooses one before it, or none."""
    order = draw(st.permutations(range(size)))
    heads = [-1] * size
    for rank, node in enumerate(order):
        above = draw(st.integers(-1, rank - 1))
        heads[node] = -1 if above < 0 else order[above]
    return heads


@st.composite
def dag_edges(draw, size):
    """Edges of a random DAG: in a random order of nodes, some from an earlier to a later one."""
    order = draw(st.permutations(range(size)))
    pairs = [(order[i], order[j]) for j in range(size) for i in range(j)]
    return draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


@st.composite
def sequences(draw, observations=WORDS, max_size=6):
    return Sequence(draw(st.lists(observations, min_size=1, max_size=max_size)))


@st.composite
def trees(draw, observations=WORDS, max_size=6):
    nodes = draw(st.lists(observations, min_size=1, max_size=max_size))
    return Tree(nodes, draw(forest_heads(len(nodes))))


@st.composite
def dags(draw, observations=WORDS, max_size=6):
    nodes = draw(st.lists(observations, min_size=1, max_size=max_size))
    return Dag(nodes, draw(dag_edges(len(nodes))))


def structure_lists(observations=WORDS, max_size=6):
    """Lists of structures of one shape."""
    shapes = (sequences, trees, dags)
    return st.one_of(*(st.lists(shape(observations, max_size), min_size=1, max_size=4) for shape in shapes))
