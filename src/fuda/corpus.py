"""A corpus: many structures packed into flat arrays, equal observations kept once.

Nodes of all structures are numbered through, structure i holding nodes offsets[i] … offsets[i+1]−1. Equal observations
are one *type*: ``types[t]`` is the type of node t and ``observations[types[t]]`` what was observed there, so that whatever is
computed from an observation is computed once a type (264,715 tokens of Spanish news are 26,099 types).

Edges are held in CSR form both ways: the parents of node t are ``parents.indices[parents.indptr[t]:parents.indptr[t+1]]``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from fuda.errors import DataError, place
from fuda.structures import Observation, Structure


class Neighbours(NamedTuple):
    """For each node a list of nodes, in CSR form."""

    indptr: np.ndarray
    indices: np.ndarray


class Corpus:
    """Structures of one shape, packed.

    >>> from fuda import Sequence
    >>> corpus = Corpus([Sequence(["a", "b", "a"]), Sequence(["b"])])
    >>> corpus.types.tolist(), corpus.offsets.tolist(), corpus.observations
    ([0, 1, 0, 1], [0, 3, 4], ['a', 'b'])
    """

    def __init__(self, structures: list[Structure]) -> None:
        if not structures:
            raise DataError("there are no structures; give at least one")
        self.shape = structures[0].shape
        self.offsets = np.zeros(len(structures) + 1, dtype=np.int64)
        np.cumsum([len(s) for s in structures], out=self.offsets[1:])
        self._structures = structures
        self.types, self.observations = _deduplicate(structures, self.place)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def size(self) -> int:
        """The number of nodes."""
        return int(self.offsets[-1])

    @property
    def is_chain(self) -> bool:
        return self.shape == "sequence"

    @property
    def has_vectors(self) -> bool:
        """Whether observations are dense numeric vectors (all of one length)."""
        return isinstance(self.observations[0], np.ndarray)

    @cached_property
    def edges(self) -> np.ndarray:
        """(E, 2) parent and child node numbers, sorted by child."""
        if self.is_chain:
            later = np.ones(self.size, dtype=bool)
            later[self.offsets[:-1]] = False
            children = np.flatnonzero(later)
            return np.column_stack([children - 1, children])
        return np.concatenate([s.edges + start for s, start in zip(self._structures, self.offsets, strict=False)])

    @cached_property
    def parents(self) -> Neighbours:
        return self._neighbours(self.edges[:, 1], self.edges[:, 0])

    @cached_property
    def children(self) -> Neighbours:
        by_parent = np.lexsort((self.edges[:, 1], self.edges[:, 0]))
        return self._neighbours(self.edges[by_parent, 0], self.edges[by_parent, 1])

    @cached_property
    def heads(self) -> np.ndarray:
        """The parent of each node of a chain or tree, −1 at a root."""
        heads = np.full(self.size, -1, dtype=np.int64)
        heads[self.edges[:, 1]] = self.edges[:, 0]
        return heads

    @cached_property
    def order(self) -> np.ndarray:
        """All nodes, structure by structure, every parent before its children."""
        if self.is_chain:
            return np.arange(self.size)
        return np.concatenate([s.order + start for s, start in zip(self._structures, self.offsets, strict=False)])

    @cached_property
    def roots(self) -> np.ndarray:
        """Nodes without a parent."""
        return np.flatnonzero(np.diff(self.parents.indptr) == 0)

    @cached_property
    def leaves(self) -> np.ndarray:
        """Nodes without a child."""
        return np.flatnonzero(np.diff(self.children.indptr) == 0)

    def place(self, node: int) -> str:
        """How messages name a node: its structure and its number there."""
        structure = int(np.searchsorted(self.offsets, node, side="right")) - 1
        return place(structure, int(node - self.offsets[structure]))

    def place_of_type(self, type_id: int) -> str:
        return self.place(int(np.argmax(self.types == type_id)))

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """An array over all nodes, cut into one array a structure."""
        return np.split(values, self.offsets[1:-1])

    def _neighbours(self, nodes: np.ndarray, others: np.ndarray) -> Neighbours:
        indptr = np.zeros(self.size + 1, dtype=np.int64)
        np.cumsum(np.bincount(nodes, minlength=self.size), out=indptr[1:])
        return Neighbours(indptr, others)


def _deduplicate(
    structures: list[Structure], place_of: Callable[[int], str]
) -> tuple[np.ndarray, list[Observation]]:
    """Type ids in order of first occurrence, and the observation of each type."""
    nodes: Iterable[Observation] = chain.from_iterable(s.observations for s in structures)
    kinds = set(map(type, chain.from_iterable(s.observations for s in structures)))
    if kinds <= {str, tuple}:
        try:
            types, observations = _number(nodes)
        except TypeError:  # a tuple that holds something unhashable
            types, observations = _number_by_key(structures, place_of)
    else:
        types, observations = _number_by_key(structures, place_of)
    _check_columns(observations, types, place_of)
    return types, observations


def _number(keys: Iterable[Any]) -> tuple[np.ndarray, list[Any]]:
    ids: defaultdict[Any, int] = defaultdict()
    ids.default_factory = ids.__len__
    types = np.fromiter(map(ids.__getitem__, keys), dtype=np.int32)
    return types, list(ids)


def _number_by_key(
    structures: list[Structure], place_of: Callable[[int], str]
) -> tuple[np.ndarray, list[Observation]]:
    canonical: dict[Any, Observation] = {}
    keys = []
    for node, observation in enumerate(chain.from_iterable(s.observations for s in structures)):
        try:
            key, value = _canonical(observation)
        except DataError as error:
            raise DataError(f"{place_of(node)}: {error}") from None
        canonical.setdefault(key, value)
        keys.append(key)
    types, unique = _number(keys)
    observations = [canonical[key] for key in unique]
    vectors = [isinstance(x, np.ndarray) for x in observations]
    if any(vectors):
        size = len(observations[vectors.index(True)])
        for type_id, x in enumerate(observations):
            if not vectors[type_id] or len(x) != size:
                found = f"a vector of {len(x)} numbers" if vectors[type_id] else f"{_describe(x)}"
                node = place_of(int(np.argmax(types == type_id)))
                raise DataError(f"{node}: {found}, where others are vectors of {size}; give all nodes one kind and length")
    return types, observations


def _canonical(x: Observation) -> tuple[Any, Observation]:
    """A hashable key that equal observations share, and the observation in its plain form."""
    if isinstance(x, str):
        return str(x), str(x)
    if isinstance(x, tuple):
        if not all(isinstance(value, str | int) and not isinstance(value, bool) for value in x):
            raise DataError(f"{_describe(x)}: a tuple is columns of text; for a numeric vector give a numpy array")
        return x, x
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return int(x), int(x)
    if isinstance(x, dict):
        items = {_name(name): _value(value, name) for name, value in x.items()}
        return ("dict", frozenset(items.items())), items
    if isinstance(x, np.ndarray) or (isinstance(x, list) and x and not isinstance(x[0], str)):
        vector = _vector(x)
        return ("vector", vector.tobytes()), vector
    if isinstance(x, list | set | frozenset):
        names = sorted(_name(name) for name in x)
        return ("names", tuple(names)), names
    raise DataError(
        f"{_describe(x)} is no observation; give a string, a tuple of columns, a dict feature → value, a list or set of "
        "feature names, an integer id or a numeric vector"
    )


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise DataError(f"{_describe(name)} is no feature name; feature names are strings")
    return str(name)


def _value(value: Any, name: str) -> Any:
    """A number as float; a string or boolean as it is."""
    if isinstance(value, str | bool | np.bool_):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, int | float | np.number):
        number = float(value)
        if not np.isfinite(number):
            raise DataError(f"feature {name!r} has the value {number}; values are finite numbers")
        return number
    raise DataError(f"feature {name!r} has the value {_describe(value)}; values are numbers, strings or booleans")


def _vector(x: Any) -> np.ndarray:
    try:
        array = np.asarray(x)
        if array.dtype.kind not in "biuf":
            raise ValueError
        vector = np.ascontiguousarray(array, dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError(f"{_describe(x)} is no numeric vector; vectors are 1-D arrays of numbers") from None
    if vector.ndim != 1 or not vector.size:
        raise DataError(f"an array of shape {vector.shape}; an observation is a 1-D numeric vector of at least one number")
    if not np.isfinite(vector).all():
        bad = int(np.argmin(np.isfinite(vector)))
        raise DataError(f"entry {bad} of its vector is {vector[bad]}; entries are finite numbers")
    return vector + 0.0  # −0.0 and 0.0 are one type


def _check_columns(observations: list[Observation], types: np.ndarray, place_of: Callable[[int], str]) -> None:
    widths = {len(x) for x in observations if isinstance(x, tuple)}
    if not widths:
        return
    first = next(x for x in observations if isinstance(x, tuple))
    for type_id, x in enumerate(observations):
        problem = None
        if not isinstance(x, tuple):
            problem = f"{_describe(x)} where others are tuples of {len(first)} columns"
        elif len(x) != len(first) or not x:
            problem = f"{len(x)} columns where others have {len(first)}"
        elif not all(isinstance(value, str | int) and not isinstance(value, bool) for value in x):
            problem = f"{_describe(x)}: a tuple is columns of text; for a numeric vector give a numpy array"
        if problem:
            node = place_of(int(np.argmax(types == type_id)))
            raise DataError(f"{node}: {problem}; give every node the same columns")


def _describe(x: Any) -> str:
    text = repr(x)
    return f"{text if len(text) <= 40 else text[:39] + '…'} ({type(x).__name__})"
