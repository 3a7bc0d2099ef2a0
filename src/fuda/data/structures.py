"""Structures: nodes with observations, and a shape.

A structure has nodes t = 0..T−1, an observation x_t per node, and directed edges parent → child:

==========  =====================================  ================================
class       edges                                  a node has at most
==========  =====================================  ================================
Sequence    t−1 → t                                one parent, one child
Tree        heads[t] → t, siblings in index order  one parent (forests are allowed)
Dag         any without a cycle                    no bound
==========  =====================================  ================================

A sequence is a tree and a tree is a DAG. Nodes keep the order in which the user gave them;
``order`` lists them with every parent before its children, which is the order of recursions.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from fuda.checks import is_whole, listed
from fuda.data.observations import Observation, same_observation
from fuda.errors import DataError, described, place, short


class Structure:
    """Base class of sequences, trees and DAGs: observations and directed edges, immutable.

    Parameters
    ----------
    observations : iterable
        An observation per node; at least one.

    Attributes
    ----------
    observations : tuple
        The observations, unchanged.

    Examples
    --------
    >>> tree = Tree(["eats", "Ana", "rice"], heads=[-1, 0, 0])
    >>> isinstance(tree, Structure), tree.observations, len(tree)
    (True, ('eats', 'Ana', 'rice'), 3)
    """

    __slots__ = ("observations",)
    shape: ClassVar[str]
    observations: tuple[Observation, ...]

    def __init__(self, observations: Iterable[Observation]) -> None:
        nodes = listed(observations)
        if nodes is None:
            remedy = "give a list"
            if isinstance(observations, str | bytes):
                remedy = "split it into nodes first: list(text) or text.split()"
            elif isinstance(observations, Iterable):
                remedy = "put it in a list if it is the observation of one node"
            raise DataError(
                f"a {self.shape} is made of a list of observations, one per node, but "
                f"{described(observations)} was given; {remedy}"
            )
        self.observations = tuple(nodes)
        if not self.observations:
            raise DataError(_empty(self.shape))

    def __len__(self) -> int:
        return len(self.observations)

    def __iter__(self) -> Iterator[Observation]:
        return iter(self.observations)

    def __getitem__(self, node: Any) -> Any:
        """Return the observation of a node; of a sequence, a slice of it is a sequence too."""
        if isinstance(node, slice):
            raise DataError(f"a part of a {self.shape} has edges to the rest; slice its observations instead")
        return self.observations[node]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return an array of this one object: numpy is not to make a matrix of structures."""
        array = np.empty((), dtype=object)
        array[()] = self
        return array if dtype is None else array.astype(dtype)

    @property
    def edges(self) -> np.ndarray:
        """Parent and child of each edge, (E, 2), sorted by child and then by parent."""
        raise NotImplementedError

    @property
    def order(self) -> np.ndarray:
        """All nodes, every parent before its children."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Structure)
        return (
            len(self) == len(other)
            and np.array_equal(self.edges, other.edges)
            and all(map(same_observation, self.observations, other.observations))
        )

    __hash__ = None  # type: ignore[assignment]  # observations may be dicts and arrays

    def __repr__(self) -> str:
        shown = ", ".join(short(x) for x in self.observations[:4])
        more = ", …" if len(self) > 4 else ""
        return f"{type(self).__name__}([{shown}{more}], {len(self)} nodes)"


class Sequence(Structure):
    """A sequence of observations.

    Parameters
    ----------
    observations : iterable
        An observation per node; at least one.

    Examples
    --------
    >>> x = Sequence(["Ana", "lives", "in", "Lima"])
    >>> x[0], x[-1], x[2:]
    ('Ana', 'Lima', Sequence(['in', 'Lima'], 2 nodes))
    """

    __slots__ = ()
    shape = "sequence"

    def __getitem__(self, node: Any) -> Any:
        """Return the observation of a node, or the sequence of those in a slice."""
        return Sequence(self.observations[node]) if isinstance(node, slice) else self.observations[node]

    @property
    def edges(self) -> np.ndarray:
        """Parent and child of each edge, (E, 2), sorted by child and then by parent."""
        later = np.arange(1, len(self), dtype=np.int32)
        return np.column_stack([later - 1, later])

    @property
    def order(self) -> np.ndarray:
        """All nodes, every parent before its children."""
        return np.arange(len(self), dtype=np.int32)

    def __reduce__(self) -> tuple:
        return Sequence, (self.observations,)


class Tree(Structure):
    """An ordered tree or forest; siblings are in index order.

    Parameters
    ----------
    observations : iterable
        An observation per node; at least one.
    heads : iterable of int
        The parent of each node, −1 for a root.

    Attributes
    ----------
    heads : (T,) array of int
        The parent of each node, −1 for a root.

    Examples
    --------
    >>> tree = Tree(["Ana", "lives", "in", "Lima"], [1, -1, 3, 1])
    >>> tree.edges.tolist()
    [[1, 0], [3, 2], [1, 3]]
    >>> tree.order.tolist()
    [1, 0, 3, 2]
    """

    __slots__ = ("heads",)
    shape = "tree"
    heads: np.ndarray

    def __init__(self, observations: Iterable[Observation], heads: Iterable[int]) -> None:
        super().__init__(observations)
        self.heads = np.array(_node_numbers(heads, "the heads of a tree"), dtype=np.int32)
        if len(self.heads) != len(self):
            raise DataError(
                f"a tree of {len(self)} nodes has {len(self.heads)} heads; give one per node, −1 for a root"
            )
        nodes = np.arange(len(self))
        outside = f"give heads from 0 to {len(self) - 1}, or −1 for a root"
        for bad, why in (
            ((self.heads < -1) | (self.heads >= len(self)), outside),
            (self.heads == nodes, "a node cannot be its own parent; −1 is for a root"),
        ):
            if bad.any():
                node = int(bad.argmax())
                raise DataError(f"{place(node=node)}: its head is {self.heads[node]}; {why}")
        if (self.heads > nodes).any():  # else every parent precedes its children: no cycle
            above = self.heads
            for _ in range(len(self).bit_length()):  # the ancestor 1, 2, 4, … steps above
                above = np.where(above < 0, -1, above[above])
            if (above >= 0).any():
                _topological_order(len(self), self.edges)  # raises, and names a cycle
        self.heads.flags.writeable = False

    @property
    def edges(self) -> np.ndarray:
        """Parent and child of each edge, (E, 2), sorted by child and then by parent."""
        children = np.flatnonzero(self.heads >= 0).astype(np.int32)
        return np.column_stack([self.heads[children], children])

    @property
    def order(self) -> np.ndarray:
        """All nodes, every parent before its children."""
        return _topological_order(len(self), self.edges)

    def __reduce__(self) -> tuple:
        return Tree, (self.observations, self.heads.tolist())


class Dag(Structure):
    """A directed acyclic graph; nodes without edges are allowed.

    Parameters
    ----------
    observations : iterable
        An observation per node; at least one.
    edges : iterable of (int, int)
        Parent and child of each edge.

    Examples
    --------
    >>> dag = Dag(["wants", "Ana", "sleep"], [(0, 1), (0, 2), (2, 1)])
    >>> dag.order.tolist()
    [0, 2, 1]
    """

    __slots__ = ("_edges", "_order")
    shape = "dag"

    def __init__(self, observations: Iterable[Observation], edges: Iterable[tuple[int, int]]) -> None:
        super().__init__(observations)
        pairs = _pairs(edges)
        outside = (pairs < 0) | (pairs >= len(self))
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise DataError(
                f"edge {tuple(pairs[row].tolist())}: there is no node {pairs[row, column]}; "
                f"give nodes from 0 to {len(self) - 1}"
            )
        loops = pairs[pairs[:, 0] == pairs[:, 1], 0]
        if loops.size:
            raise DataError(f"{place(node=int(loops[0]))}: an edge to itself; remove the self loop")
        pairs = pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]
        twice = (pairs[1:] == pairs[:-1]).all(axis=1)
        if twice.any():
            raise DataError(f"edge {tuple(pairs[twice.argmax()].tolist())} is given twice; keep it once")
        self._edges = pairs
        self._order = _topological_order(len(self), pairs)
        for array in (self._edges, self._order):
            array.flags.writeable = False

    @property
    def edges(self) -> np.ndarray:
        """Parent and child of each edge, (E, 2), sorted by child and then by parent."""
        return self._edges

    @property
    def order(self) -> np.ndarray:
        """All nodes, every parent before its children."""
        return self._order

    def __reduce__(self) -> tuple:
        return Dag, (self.observations, self._edges.tolist())


def _empty(shape: str) -> str:
    return f"an empty {shape}: a structure has at least one node; remove empty ones"


_LARGEST_NODE = np.iinfo(np.int32).max


def as_structures(X: Any) -> list[Structure]:
    """Return X as a list of structures, where a plain list of observations is a Sequence."""
    structures = as_structures_or_none(X)
    if None in structures:
        raise DataError(f"{place(structures.index(None))}: {_empty('sequence')}")
    return structures  # type: ignore[return-value]


def as_structures_or_none(X: Any) -> list[Structure | None]:
    """Return X as a list of structures, with None for empty lists, which have no shape."""
    if isinstance(X, Structure):
        raise DataError(
            f"X is a list of structures, but a single {type(X).__name__} was given; put it in a list: [x]"
        )
    items = listed(X)
    if items is None:
        raise DataError(f"X is a list of structures, but {described(X)} was given; give a list of lists")
    structures: list[Structure | None] = []
    first: tuple[int, str] | None = None
    for i, x in enumerate(items):
        try:
            structure = x if isinstance(x, Structure) else _sequence_or_none(x)
        except DataError as error:
            hint = "; if X is one sequence, wrap it in a list: [X]" if isinstance(x, str | dict) else ""
            raise DataError(f"{place(i)}: {error}{hint}") from None
        structures.append(structure)
        if structure is None:
            continue
        first = first or (i, structure.shape)
        if structure.shape != first[1]:
            raise DataError(
                f"{place(i)} is a {structure.shape} but {place(first[0])} is a {first[1]}; "
                "give structures of one shape"
            )
    return structures


def _sequence_or_none(x: Any) -> Sequence | None:
    nodes = listed(x)
    return None if nodes == [] else Sequence(x if nodes is None else nodes)


def _node_numbers(values: Any, what: str) -> list[int]:
    """The values as a list, or an error that names the first that is not a node number."""
    numbers = listed(values.tolist() if isinstance(values, np.ndarray) else values)
    if numbers is None:
        raise DataError(f"{what} are a list of node numbers, but {described(values)} was given")
    for at, number in enumerate(numbers):
        if not is_whole(number):
            raise DataError(f"{what} are whole numbers, but {described(number)} was given at {at}")
        if abs(int(number)) > _LARGEST_NODE:
            raise DataError(f"{what} are node numbers, but {short(number)} was given at {at}")
    return numbers


def _pairs(edges: Any) -> np.ndarray:
    """A new (E, 2) array of parents and children."""
    is_table = isinstance(edges, np.ndarray) and edges.dtype.kind in "iu" and edges.shape[1:] == (2,)
    if is_table and (np.abs(edges.astype(np.float64)) <= _LARGEST_NODE).all():
        return edges.astype(np.int32)
    items = edges.tolist() if isinstance(edges, np.ndarray) else edges
    if isinstance(items, str | bytes | dict) or not isinstance(items, Iterable):
        raise DataError(f"the edges of a DAG are (parent, child) pairs, but {described(edges)} was given")
    pairs = []
    for edge in items:
        pairs.append(_node_numbers(edge, "the two ends of an edge"))
        if len(pairs[-1]) != 2:
            raise DataError(f"an edge of a DAG is a (parent, child) pair, but {short(edge)} was given")
    return np.array(pairs, dtype=np.int32).reshape(len(pairs), 2)


def _topological_order(size: int, edges: np.ndarray) -> np.ndarray:
    """Kahn's order, smallest ready node first: a graph that is in order keeps its order."""
    children: list[list[int]] = [[] for _ in range(size)]
    waiting = [0] * size
    for parent, child in edges.tolist():
        children[parent].append(child)
        waiting[child] += 1
    ready = [node for node in range(size) if not waiting[node]]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, child)
    if len(order) < size:
        left = ((parent, child) for parent, child in edges.tolist() if waiting[child] and waiting[parent])
        parent_left = {child: parent for parent, child in left}
        node = next(iter(parent_left))
        seen: dict[int, int] = {}  # node → its place on the walk upwards
        while node not in seen:
            seen[node] = len(seen)
            node = parent_left[node]
        raise _cycle_error(list(seen)[seen[node] :])
    return np.array(order, dtype=np.int32)


def _cycle_error(upwards: list[int]) -> DataError:
    """The error for a cycle, whose nodes are listed from child to parent."""
    down = upwards[::-1]
    shown = " → ".join(map(str, [*down[:10], *["…"] * (len(down) > 10), down[0]]))
    return DataError(f"{place(node=down[0])}: the edges close a cycle, {shown}; remove one of these edges")
