"""The observation kernel between two corpora, in as few rows as there are.

A feature that only one type has (above all, the word itself) adds nothing to the inner product of two
different types. So types that agree in all other features and in their norms have the same kernel with every
*other* type, and share a *code*: by word and spelling 26,099 Spanish types have 46 codes. The kernel of two
different observations is then table[code, code], and that of an observation with itself is `own`. Equal
observations have one *twin* number.

Where a kernel sees more than features (Function, Precomputed), where types have too little in common, or are
so few that it does not matter, every type is a code, and no twin is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.kernels import Kernel, Sees
from fuda.kernels.points import Points
from fuda.marginalized.push import APART, NONE
from fuda.parallel import run

Array = np.ndarray

_SMALL = 1 << 20  # entries of a table that are computed faster than codes are found
_LARGEST = 1 << 24  # entries of a table that is kept as a whole
_PART = 1 << 18  # entries that a thread computes at once


class Codes:
    """`sources` and `targets`: the code of each type; `source_twins` and `target_twins`; `own` (sources,).

    Source types that are `frequent` have a code for themselves, so that few twins are left to care for.
    """

    def __init__(
        self,
        kernel: Kernel,
        sources: Points,
        targets: Points,
        frequent: Sequence[int] | Array = (),
        n_jobs: int | None = None,
    ) -> None:
        self._kernel, self._n_jobs = kernel, n_jobs
        self._points: tuple[Points, ...] = (sources, targets)
        self.own = kernel.diagonal(sources)
        self.sources, self.targets = np.arange(len(sources)), np.arange(len(targets))
        self.source_twins, self.target_twins = np.full(len(sources), APART), np.full(len(targets), NONE)
        self._whole: Array | None = None
        shareable = kernel.sees <= Sees.EQUALITY and sp.issparse(sources.features)
        if shareable and len(sources) * len(targets) > _SMALL:
            self._share(np.asarray(frequent, dtype=np.int64))
        if self._whole is None and len(sources) * len(targets) <= _LARGEST:
            self._whole = self._computed(*map(np.arange, self.counts))

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of codes of sources and targets."""
        return len(self._points[0]), len(self._points[1])

    @property
    def is_whole(self) -> bool:
        """Whether any part of the table is at hand."""
        return self._whole is not None

    def table(self, rows: Array, columns: Array) -> Array:
        """The kernel of two different observations of each of these source codes and target codes."""
        if self._whole is not None:
            return self._whole[np.ix_(rows, columns)]
        return self._computed(rows, columns)

    def _computed(self, rows: Array, columns: Array) -> Array:
        table = np.empty((len(rows), len(columns)))
        targets = self._points[1][columns]
        step = max(1, _PART // max(1, len(columns)))

        def compute(first: int) -> None:
            part = slice(first, first + step)
            table[part] = self._kernel.gram(self._points[0][rows[part]], targets)

        run(compute, range(0, len(rows), step), self._n_jobs)
        return table

    def _share(self, frequent: Array) -> None:
        """Let types share codes, where that leaves few."""
        sources, targets = self._points
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
        if count**2 > min(len(sources) * len(targets) // 4, _LARGEST):
            return
        new = np.arange(len(members), count)
        codes[twins[frequent]] = new
        one = points[np.concatenate([members, twins[frequent]])]
        # Two copies of one point of each code, with other ids: no observation of one is any of the other.
        numbers = np.arange(2 * count).reshape(2, -1)
        self._points = tuple(Points(one.features, n, one.beyond, one.observations) for n in numbers)
        self.sources, self.targets = codes[twins[: len(sources)]], codes[twins[len(sources) :]]
        self.source_twins, self.target_twins = twins[: len(sources)].copy(), twins[len(sources) :]
        self.source_twins[frequent] = APART
        self._whole = self._computed(numbers[0], numbers[0])
        self._whole[new, new] = self.own[frequent]


def _number_rows(points: Points, norms: list[Array]) -> tuple[Array, Array]:
    """Numbers of points, equal where features and norms are, and one point of each number."""
    matrix: Any = points.features
    matrix.sort_indices()
    sizes = np.column_stack([points.beyond, *norms])
    numbers: dict[bytes, int] = {}
    codes = np.empty(len(points), dtype=np.int64)
    members: list[int] = []
    for i, (a, b) in enumerate(zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True)):
        key = matrix.indices[a:b].tobytes() + matrix.data[a:b].tobytes() + sizes[i].tobytes()
        codes[i] = numbers.setdefault(key, len(numbers))
        if codes[i] == len(members):
            members.append(i)
    return codes, np.array(members, dtype=np.int64)
