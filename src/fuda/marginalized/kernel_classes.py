"""The observation kernel between two corpora, in as few rows as possible.

A feature that only one type has (usually the word itself) adds nothing to the inner product of
two different types. So types that agree in all other features and in their norms have the same
kernel with every *other* type: they are one *kernel class*. With word and spelling features, the
26,099 types of the Spanish corpus are 46 classes. The kernel of two different observations is then
table[class, class], and that of an observation with itself is in `self_values`. Observations are
equal if they have the same *id*.

If a kernel uses more than features (Function, Precomputed), or types have too little in common,
or are so few that classes do not pay, then every type is a class and no ids are needed. Where
these are many, values are computed from common features (`fuda.marginalized.products`), or are
stored up to a limit, and computed when they are needed beyond it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.data.corpus import Corpus
from fuda.data.tables import Csr
from fuda.kernels import Kernel, Sees
from fuda.kernels.points import ByFeature, Observed, Points
from fuda.marginalized.products import Products, fill, products_of
from fuda.runtime.compiled import compiled
from fuda.runtime.parallel import run

Array = np.ndarray

# Ids that equal no other: of observations with a class of their own, and of empty places.
APART, NONE = -1, -2
# With at most so many entries, computing the whole table is faster than finding classes.
_SMALL_TABLE = 1 << 20
# With at most so many entries, reading a table is faster than counting common features.
_READ_TABLE = 1 << 22
_LARGEST_TABLE = 1 << 24  # a table with more entries is not stored
_PART_ENTRIES = 1 << 18  # about the entries of the part that one thread computes
# Bytes of the cached columns of observations. It is not a parameter, since only problems of at
# most `_SMALL_TABLE` entries are computed by such columns, each of them fast.
_CACHE_BYTES = 1 << 26


class Types:
    """Distinct observations with their norms.

    Parameters
    ----------
    kernel : Kernel
        k_x.
    points : Points
        The observations, one row per type.

    Attributes
    ----------
    norms : list of arrays
        The norms that the kernel uses.
    diagonal : array
        The kernel of each type with itself.
    """

    def __init__(self, kernel: Kernel, points: Points) -> None:
        self.kernel, self.points = kernel, points
        self.norms = kernel.norms(points)
        self_values = kernel.evaluate(self.norms, self.norms, self.norms)
        self.diagonal = np.array(np.broadcast_to(self_values, (len(points),)), dtype=np.float64)

    def gram(self, others: Types) -> Array:
        """Return the kernel (n, m) between these types and others, fast for others in a `Csr`."""
        norms = [norm[:, None] for norm in self.norms]
        if isinstance(others.points.features, Csr):
            inners = [inner.T for inner in self.kernel.inners(others.points, self._by_feature)]
        else:
            inners = self.kernel.inners(self._widened(others), others._widened(self))
        values = self.kernel.evaluate(inners, norms, others.norms)
        shape = len(self.points), len(others.points)
        if values.shape == shape and values.dtype == np.float64 and values.flags.owndata:
            return values
        # A copy, since broadcast arrays are read-only.
        return np.array(np.broadcast_to(values, shape), dtype=np.float64)

    @cached_property
    def _by_feature(self) -> Points:
        """The points with features listed by feature."""
        columns: Any = sp.csc_matrix(self.points.features)
        return replace(self.points, features=ByFeature(columns.indptr, columns.indices, columns.data))

    def _widened(self, others: Types) -> Points:
        """Return the points with as many feature columns as those of the others."""
        width = others.points.features.shape[1]
        if width <= self.points.features.shape[1]:
            return self.points
        return replace(self.points, features=widened(self.points.features, width))


def widened(matrix: Any, width: int) -> Any:
    """Return a sparse matrix with columns added up to a width; dense features are unchanged."""
    if not sp.issparse(matrix):
        return matrix
    parts: Any = matrix
    return sp.csr_matrix((parts.data, parts.indices, parts.indptr), shape=(parts.shape[0], width))


class KernelClasses:
    """The kernel classes of source types and target types, and kernel values by class.

    Parameters
    ----------
    sources, targets : Types
        The distinct observations of both sides, with the same kernel.
    frequent : array
        Source types that get a class of their own, which leaves few equal pairs to correct for.
    n_jobs : int or None
        The number of threads that compute the values.

    Attributes
    ----------
    sources, targets : array
        The class of each type.
    source_ids, target_ids : array
        The id of each type.
    self_values : array
        The kernel of each source type with itself.
    is_shared : bool
        Whether types share classes; otherwise every type is a class and needs no id.
    products : Products or None
        The values by common features, where every type is a class and they are not few.
    all_values : array or None
        The values of all pairs of classes, if they are few enough to be stored.
    """

    def __init__(
        self, sources: Types, targets: Types, frequent: Sequence[int] | Array = (), n_jobs: int | None = None
    ) -> None:
        self._kernel, self._n_jobs = sources.kernel, n_jobs
        self._types = (sources, targets)
        self.self_values = sources.diagonal
        count, other = len(sources.points), len(targets.points)
        self.sources, self.targets = np.arange(count), np.arange(other)
        self.source_ids, self.target_ids = np.full(count, APART), np.full(other, NONE)
        self.all_values: Array | None = None
        self.products: Products | None = None
        self.is_shared = False
        shareable = self._kernel.sees <= Sees.EQUALITY and sp.issparse(sources.points.features)
        if shareable and count * other > _SMALL_TABLE:
            self._share(np.asarray(frequent, dtype=np.int64))
        if self.all_values is None and count * other > _READ_TABLE:
            self.products = products_of(self._kernel, sources, targets)
        if self.all_values is None and self.products is None and count * other <= _LARGEST_TABLE:
            self.all_values = self._computed(*map(np.arange, self.counts))

    @classmethod
    def of_values(cls, sources: Types, numbers: tuple[Array, Array], values: Array) -> KernelClasses:
        """Return classes of one type each, from the kernel values of all pairs.

        `numbers` are the classes and the ids of the sources.
        """
        classes = cls.__new__(cls)
        classes.self_values, classes.all_values = sources.diagonal, values
        classes.products, classes.is_shared = None, False
        classes.sources, classes.source_ids = numbers
        classes.targets, classes.target_ids = np.arange(values.shape[1]), np.full(values.shape[1], NONE)
        return classes

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of classes of sources and targets."""
        if self.all_values is not None:
            return self.all_values.shape[0], self.all_values.shape[1]
        return len(self._types[0].points), len(self._types[1].points)

    def fill(self, rows: Array, columns: Array, factor: float, table: Array) -> None:
        """Write the kernel between different observations of source and target classes to a table.

        Parameters
        ----------
        rows, columns : arrays of int
            Distinct source classes, and distinct target classes in increasing order.
        factor : float
            The factor of all values.
        table : array (rows, columns)
            The values, changed in place.
        """
        if self.all_values is not None:
            _fill(self.all_values, rows, columns, factor, table)
        elif self.products is not None:
            fill(self.products, rows, columns, factor, table)
        else:
            np.multiply(self._computed(rows, columns), factor, out=table)

    def _computed(self, rows: Array, columns: Array) -> Array:
        """Compute the values of these classes."""
        step = max(1, _PART_ENTRIES // max(1, len(columns)))
        sources, targets = self._types
        if len(rows) <= step and (len(rows), len(columns)) == self.counts:
            return sources.gram(targets)
        table = np.empty((len(rows), len(columns)))
        columns_only = Types(self._kernel, targets.points[columns])

        def compute(first: int) -> None:
            part = slice(first, first + step)
            table[part] = Types(self._kernel, sources.points[rows[part]]).gram(columns_only)

        run(compute, range(0, len(rows), step), self._n_jobs)
        return table

    def _share(self, frequent: Array) -> None:
        """Assign shared classes, if that leaves few."""
        sources, targets = self._types[0]._widened(self._types[1]), self._types[1]._widened(self._types[0])
        ids, first, numbers = np.unique(
            np.concatenate([sources.ids, targets.ids]), return_index=True, return_inverse=True
        )
        both: Any = [sources.features, targets.features]
        matrix = sp.vstack(both, format="csr")[first]
        beyond = np.concatenate([sources.beyond, targets.beyond])[first]
        common = np.bincount(matrix.indices, minlength=matrix.shape[1]) > 1
        alone = matrix[:, ~common]
        beyond = beyond + np.asarray(alone.multiply(alone).sum(axis=1)).ravel()
        points = Points(matrix[:, common], ids, beyond, [None] * len(ids))
        classes, members = _number_rows(points, self._kernel.norms(points))
        count = len(members) + len(frequent)
        if count**2 > min(len(sources) * len(targets) // 4, _LARGEST_TABLE):
            return
        # Sources come first, so that their classes rarely depend on the targets.
        classes, new = classes + len(frequent), np.arange(len(frequent))
        classes[numbers[frequent]] = new
        one = points[np.concatenate([numbers[frequent], members])]
        # Two copies of a point per class, with different ids: no two observations are equal.
        copies = np.arange(2 * count).reshape(2, -1)
        source_points, target_points = (Points(one.features, n, one.beyond, one.observations) for n in copies)
        self._types = Types(self._kernel, source_points), Types(self._kernel, target_points)
        self.sources, self.targets = classes[numbers[: len(sources)]], classes[numbers[len(sources) :]]
        self.source_ids, self.target_ids = numbers[: len(sources)].copy(), numbers[len(sources) :]
        self.source_ids[frequent] = APART
        self.is_shared = True
        self.all_values = self._computed(copies[0], copies[0])
        self.all_values[new, new] = self.self_values[frequent]


class CachedColumns:
    """Kernel values of single observations with the sources, kept for targets that recur.

    Parameters
    ----------
    sources : Types
        The distinct observations of the sources.
    """

    def __init__(self, sources: Types) -> None:
        self._sources, count = sources, len(sources.points)
        self._numbers = np.arange(count), np.full(count, APART)
        self._cache: dict[Hashable, list[Any]] = {}  # the values, and the kernel with itself
        self._most = _CACHE_BYTES // (8 * count + 256)

    def suit(self, corpus: Corpus) -> bool:
        """Return whether values are computed and kept by observation, not by shared classes."""
        few = len(self._sources.points) * len(corpus.observations) <= _SMALL_TABLE
        return few and corpus.kind.ops.recurs and sp.issparse(self._sources.points.features)

    def of(self, corpus: Corpus, observed: Observed) -> tuple[KernelClasses, Array]:
        """Return the classes of both sides, and the kernel of each target with itself."""
        keys = list(corpus.keys())
        columns_of_keys: list[Any] = list(map(self._cache.get, keys))
        new = [i for i, column in enumerate(columns_of_keys) if column is None]
        if new:
            few = self._sources.kernel.sees <= Sees.EQUALITY
            types = Types(self._sources.kernel, observed.some(new, few))
            columns = np.ascontiguousarray(self._sources.gram(types).T)
            for i, *column in zip(new, columns, types.diagonal.tolist(), strict=True):
                columns_of_keys[i] = column
                if len(self._cache) < self._most:
                    self._cache[keys[i]] = columns_of_keys[i]
        values, diagonal = zip(*columns_of_keys, strict=True)
        columns = np.concatenate(values).reshape(len(values), -1)
        return KernelClasses.of_values(self._sources, self._numbers, columns.T), np.array(diagonal)


@compiled
def _fill(all_values: Array, rows: Array, columns: Array, factor: float, table: Array) -> None:
    """zeros(r, c) = factor · all_values(rows(r), columns(c)); unsigned, to avoid sign tests."""
    for r in range(np.uint64(len(rows))):
        row = np.uint64(rows[r])
        for c in range(np.uint64(len(columns))):
            table[r, c] = all_values[row, np.uint64(columns[c])] * factor


def _number_rows(points: Points, norms: list[Array]) -> tuple[Array, Array]:
    """Number points by features and norms as they come; also return the first of each number."""
    matrix: Any = points.features
    matrix.sort_indices()
    features, lengths = matrix.indices, np.diff(matrix.indptr)
    values, sizes = _bits(matrix.data), _bits(np.column_stack([points.beyond, *norms]))
    random = np.random.default_rng(0)
    while True:  # once, unless different points have the same hash
        factors = random.integers(
            1 << 63, size=matrix.shape[1] + sizes.shape[1], dtype=np.uint64
        ) | np.uint64(1)
        sums = np.append(np.uint64(0), np.cumsum(factors[features] * _mixed(values)))
        hashes = np.diff(sums[matrix.indptr]) + _mixed(sizes) @ factors[matrix.shape[1] :]
        _, members, numbers = np.unique(hashes, return_index=True, return_inverse=True)
        same = members[numbers]
        if (lengths[same] == lengths).all() and (sizes[same] == sizes).all():
            there = np.arange(len(features)) + np.repeat(matrix.indptr[same] - matrix.indptr[:-1], lengths)
            if (features[there] == features).all() and (values[there] == values).all():
                order = np.argsort(members)
                return np.argsort(order)[numbers], members[order]


def _bits(values: Array) -> Array:
    """Return the bits of numbers, by which NaN equals itself; −0 is 0."""
    return np.ascontiguousarray(np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def _mixed(bits: Array) -> Array:
    """Return numbers that differ in many bits where the given ones differ."""
    return (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
