"""The observation kernel between two corpora, in as few rows as possible.

A feature that only one type has (usually the word itself) adds nothing to the inner product of
two different types. So types that agree in all other features and in their norms have the same
kernel with every *other* type, and share a *code*: with word and spelling features, the 26,099
types of the Spanish corpus have 46 codes. The kernel of two different observations is then
table[code, code], and that of an observation with itself is in `self_values`. Equal observations
have the same *twin* number.

If a kernel uses more than features (Function, Precomputed), or types have too little in common,
or are so few that codes do not pay, then every type is a code and no twin numbers are needed.
Where these are many, values are computed from common features (`fuda.marginalized.products`), or
are stored up to a limit, and computed when they are needed beyond it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.compiled import compiled
from fuda.data.corpus import Corpus
from fuda.data.tables import Csr
from fuda.kernels import Kernel, Sees
from fuda.kernels.points import ByFeature, Observed, Points
from fuda.marginalized.products import Products, fill, products_of
from fuda.parallel import run

Array = np.ndarray

# Twin numbers without a twin: of observations with a code of their own, and of empty places.
APART, NONE = -1, -2
# With at most so many entries, computing the whole table is faster than assigning codes.
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


class Codes:
    """Codes of source types and target types, and kernel values by code.

    Parameters
    ----------
    sources, targets : Types
        The distinct observations of both sides, with the same kernel.
    frequent : array
        Source types that get a code of their own, which leaves few twins to correct for.
    n_jobs : int or None
        The number of threads that compute the values.

    Attributes
    ----------
    sources, targets : array
        The code of each type.
    source_twins, target_twins : array
        The twin number of each type.
    self_values : array
        The kernel of each source type with itself.
    is_shared : bool
        Whether types share codes; otherwise every type is a code and has no twin.
    products : Products or None
        The values by common features, where every type is a code and they are not few.
    all_values : array or None
        The values of all pairs of codes, if they are few enough to be stored.
    """

    def __init__(
        self, sources: Types, targets: Types, frequent: Sequence[int] | Array = (), n_jobs: int | None = None
    ) -> None:
        self._kernel, self._n_jobs = sources.kernel, n_jobs
        self._types = (sources, targets)
        self.self_values = sources.diagonal
        count, other = len(sources.points), len(targets.points)
        self.sources, self.targets = np.arange(count), np.arange(other)
        self.source_twins, self.target_twins = np.full(count, APART), np.full(other, NONE)
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
    def of_values(cls, sources: Types, numbers: tuple[Array, Array], values: Array) -> Codes:
        """Return codes by which every type is a code, from the kernel values of all pairs.

        `numbers` are the codes and the twin numbers of the sources.
        """
        codes = cls.__new__(cls)
        codes.self_values, codes.all_values, codes.products, codes.is_shared = (
            sources.diagonal,
            values,
            None,
            False,
        )
        codes.sources, codes.source_twins = numbers
        codes.targets, codes.target_twins = np.arange(values.shape[1]), np.full(values.shape[1], NONE)
        return codes

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of codes of sources and targets."""
        if self.all_values is not None:
            return self.all_values.shape[0], self.all_values.shape[1]
        return len(self._types[0].points), len(self._types[1].points)

    def fill(self, rows: Array, columns: Array, factor: float, table: Array) -> None:
        """Write the kernel between different observations of source and target codes to a table.

        Parameters
        ----------
        rows, columns : arrays of int
            Distinct source codes, and distinct target codes in increasing order.
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
        """Compute the values of these codes."""
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
        """Assign shared codes, if that leaves few."""
        sources, targets = self._types[0]._widened(self._types[1]), self._types[1]._widened(self._types[0])
        ids, first, twins = np.unique(
            np.concatenate([sources.ids, targets.ids]), return_index=True, return_inverse=True
        )
        both: Any = [sources.features, targets.features]
        matrix = sp.vstack(both, format="csr")[first]
        beyond = np.concatenate([sources.beyond, targets.beyond])[first]
        common = np.bincount(matrix.indices, minlength=matrix.shape[1]) > 1
        alone = matrix[:, ~common]
        beyond = beyond + np.asarray(alone.multiply(alone).sum(axis=1)).ravel()
        points = Points(matrix[:, common], ids, beyond, [None] * len(ids))
        codes, members = _number_rows(points, self._kernel.norms(points))
        count = len(members) + len(frequent)
        if count**2 > min(len(sources) * len(targets) // 4, _LARGEST_TABLE):
            return
        # Sources come first, so that their codes rarely depend on the targets.
        codes, new = codes + len(frequent), np.arange(len(frequent))
        codes[twins[frequent]] = new
        one = points[np.concatenate([twins[frequent], members])]
        # Two copies of a point per code with different ids, so that no two observations are equal.
        numbers = np.arange(2 * count).reshape(2, -1)
        source_points, target_points = (
            Points(one.features, n, one.beyond, one.observations) for n in numbers
        )
        self._types = Types(self._kernel, source_points), Types(self._kernel, target_points)
        self.sources, self.targets = codes[twins[: len(sources)]], codes[twins[len(sources) :]]
        self.source_twins, self.target_twins = twins[: len(sources)].copy(), twins[len(sources) :]
        self.source_twins[frequent] = APART
        self.is_shared = True
        self.all_values = self._computed(numbers[0], numbers[0])
        self.all_values[new, new] = self.self_values[frequent]


class Columns:
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
        """Return whether values are computed and kept by observation, not by shared codes."""
        few = len(self._sources.points) * len(corpus.observations) <= _SMALL_TABLE
        return few and corpus.kind.ops.recurs and sp.issparse(self._sources.points.features)

    def of(self, corpus: Corpus, observed: Observed) -> tuple[Codes, Array]:
        """Return codes of the sources and these targets, and each target's kernel with itself."""
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
        return Codes.of_values(self._sources, self._numbers, columns.T), np.array(diagonal)


@compiled
def _fill(all_values: Array, rows: Array, columns: Array, factor: float, table: Array) -> None:
    """table(r, c) = factor · all_values(rows(r), columns(c)); unsigned, to avoid sign tests."""
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
        _, members, codes = np.unique(hashes, return_index=True, return_inverse=True)
        same = members[codes]
        if (lengths[same] == lengths).all() and (sizes[same] == sizes).all():
            there = np.arange(len(features)) + np.repeat(matrix.indptr[same] - matrix.indptr[:-1], lengths)
            if (features[there] == features).all() and (values[there] == values).all():
                order = np.argsort(members)
                return np.argsort(order)[codes], members[order]


def _bits(values: Array) -> Array:
    """Return the bits of numbers, by which NaN equals itself; −0 is 0."""
    return np.ascontiguousarray(np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def _mixed(bits: Array) -> Array:
    """Return numbers that differ in many bits where the given ones differ."""
    return (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
