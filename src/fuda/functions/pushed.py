"""Scores of nodes under any kernel, updated by pushing.

A function from nodes to R^L is an expansion over the nodes τ of a training corpus,

    s_t(σ) = Σ_τ β(τ, σ) k(x_τ, x_t).

When β changes at a few nodes, the change is *pushed* to the scores of all nodes: N kernel values
per changed node, and nothing where nothing changes. Rows of kernel values are cached within a
budget of bytes; the oldest rows are replaced first.
"""

from __future__ import annotations

import numpy as np

from fuda.checks import check_arrays
from fuda.data.encoding import Encoded
from fuda.errors import DataError
from fuda.functions.base import NodeMonomials, ScoreArrays, update_nodes
from fuda.functions.windows import Window, add_expansion, fill_rows, kernel_values, window_of
from fuda.kernels import Kernel
from fuda.kernels.points import Numbering

Array = np.ndarray
CACHE_BYTES = 1 << 30  # the default bytes for rows of kernel values, or for monomials
_NO_MONOMIALS = NodeMonomials(
    np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32), np.empty(0), np.empty(0), np.empty(0)
)


class Expansion:
    """A `fuda.functions.base.LabelFunction`, from nodes to R^L by an expansion over nodes.

    Parameters
    ----------
    kernel : Kernel
        The kernel between nodes.
    numbering : Numbering
        The numbers of observations.
    sources : Window
        The nodes τ.
    beta : (N, L) array
        Their coefficients β; nodes where these are 0 are dropped.
    """

    def __init__(self, kernel: Kernel, numbering: Numbering, sources: Window, beta: Array) -> None:
        support = np.flatnonzero(beta.any(axis=1))
        self.kernel, self.numbering = kernel, numbering
        self.sources, self.beta = sources.take(support), beta[support]

    def of(self, encoded: Encoded, n_jobs: int | None = None) -> Array:
        """(M, L) the scores of the nodes of a corpus."""
        targets = window_of(encoded, self.kernel, self.numbering)
        scores = np.zeros((targets.size, self.beta.shape[1]))
        if len(self.beta):
            add_expansion(self.kernel, self.sources, self.beta, targets, scores, n_jobs)
        return scores


class PushedScores:
    """Scores of all nodes of a training corpus under any kernel, as a `TrainingScores`.

    Parameters
    ----------
    encoded : Encoded
        The training corpus, of N nodes.
    kernel : Kernel
        The kernel between its nodes.
    label_count : int
        L, the number of labels.
    n_jobs : int, optional
        Threads; None means all cores.
    cache_bytes : int
        The largest number of bytes for cached rows of kernel values; a row takes 8 N.

    Examples
    --------
    >>> from fuda import Sequence
    >>> from fuda.data.window_encoding import WindowEncoder
    >>> from fuda.kernels import Linear
    >>> encoder = WindowEncoder("word", 0)
    >>> pushed = PushedScores(encoder.fit([Sequence(["a", "b"]), Sequence(["b"])]), Linear(), 2)
    >>> pushed.add(1, 2, np.array([[0.5, -0.5]]))
    >>> pushed.scores.tolist()
    [[0.0, 0.0], [0.5, -0.5], [0.5, -0.5]]
    >>> pushed.function().of(encoder.encode([Sequence(["b", "c"])])).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """

    def __init__(
        self,
        encoded: Encoded,
        kernel: Kernel,
        label_count: int,
        n_jobs: int | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self.kernel, self.label_count, self.n_jobs = kernel, label_count, n_jobs
        self.numbering = Numbering(encoded.corpus)
        self.window = window_of(encoded, kernel, self.numbering)
        size = self.window.size
        self.beta = np.zeros((size, label_count))
        self._by_label = np.zeros((label_count, size))  # so that a push is a sequential pass
        self._rows = np.empty((min(size, cache_bytes // (8 * size)), size))  # cached kernel values
        self._row_of = np.full(size, -1)  # by node
        self._node_of = np.full(len(self._rows), -1)  # by row
        self._next = 0
        self._is_dense = any(isinstance(v.points.features, np.ndarray) for v in self.window.channels)
        self._batches: list[Array] = []  # of nodes whose rows were computed together
        self._batch_of = np.full(len(self._rows), -1)  # by row

    @property
    def scores(self) -> Array:
        """(N, L) the scores of all nodes."""
        return self._by_label.T

    def state(self) -> dict[str, Array]:
        """The arrays that all scores to come depend on."""
        return {"beta": self.beta, "scores": self._by_label} | self._cache_state()

    def _cache_state(self) -> dict[str, Array]:
        """Which rows are cached, where that matters.

        The products of dense vectors are rounded differently in different matrices, so that a row
        depends on the *batch* of rows that it was computed with.
        """
        if not self._is_dense:
            return {}
        self._drop_batches()
        return {
            "nodes": self._node_of,
            "batch_of": self._batch_of,
            "batches": np.concatenate([np.empty(0, dtype=np.int64), *self._batches]),
            "sizes": np.array([len(batch) for batch in self._batches], dtype=np.int64),
            "next": np.array([self._next]),
        }

    def _drop_batches(self) -> None:
        """Drop the batches of which no row is cached any more."""
        live, batch_of = np.unique(self._batch_of, return_inverse=True)
        self._batches = [self._batches[b] for b in live.tolist() if b >= 0]
        self._batch_of = batch_of - int(live[0] < 0) if len(live) else self._batch_of

    def restore(self, arrays: dict[str, Array]) -> None:
        """Continue from a `state()` of the same corpus; rows that matter are recomputed."""
        shapes: dict[str, tuple[int | None, ...]] = {"beta": self.beta.shape, "scores": self._by_label.shape}
        cache = {name: array.shape for name, array in self._cache_state().items()}
        shapes |= cache | ({"batches": (None,), "sizes": (None,)} if cache else {})
        check_arrays(arrays, shapes, dict.fromkeys(cache, np.int64))
        if cache:
            self._restore_cache(*(arrays[name] for name in cache))
        self.beta[:], self._by_label[:] = arrays["beta"], arrays["scores"]

    def _restore_cache(self, nodes: Array, batch_of: Array, batches: Array, sizes: Array, at: Array) -> None:
        filled = np.flatnonzero(nodes >= 0)
        valid = (nodes < self.window.size).all() and len(np.unique(nodes[filled])) == len(filled)
        valid &= ((batches >= 0) & (batches < self.window.size)).all() and (sizes > 0).all()
        valid &= sizes.sum() == len(batches) and 0 <= at[0] <= len(nodes)
        valid &= ((batch_of >= 0) == (nodes >= 0)).all() and (batch_of < len(sizes)).all()
        self._batches = np.split(batches, np.cumsum(sizes)[:-1]) if len(sizes) else []
        if not valid or any(len(np.unique(batch)) < len(batch) for batch in self._batches):
            raise DataError("its cache of kernel values is not one of these nodes")
        for number, batch in enumerate(self._batches):
            rows = np.empty((len(batch), self.window.size))
            fill_rows(
                self.kernel, self.window.take(batch), self.window, rows, np.arange(len(batch)), self.n_jobs
            )
            places = np.flatnonzero(batch_of == number)
            row_of = {int(node): row for row, node in enumerate(batch)}
            if not row_of.keys() >= set(nodes[places].tolist()):
                raise DataError("its cache of kernel values is not one of these nodes")
            self._rows[places] = rows[[row_of[node] for node in nodes[places].tolist()]]
        self._node_of, self._batch_of, self._next = nodes.copy(), batch_of.copy(), int(at[0])
        self._row_of[nodes[filled]] = filled

    def local(self, begin: int, end: int) -> Array:
        """(end − begin, L) the scores of the nodes begin … end − 1, in a new array."""
        return self._by_label[:, begin:end].T.copy()

    def add(self, begin: int, end: int, delta: Array) -> None:
        """Add delta (end − begin, L) to β of the nodes begin … end − 1; rows of 0 cost nothing."""
        changed = np.flatnonzero(delta.any(axis=1))
        arrays = self.arrays(begin + changed)
        if arrays is not None:
            update_nodes(arrays, begin, np.ascontiguousarray(delta, dtype=np.float64))
        else:
            nodes, rows = begin + changed, delta[changed].astype(np.float64)
            self.beta[nodes] += rows
            add_expansion(self.kernel, self.window.take(nodes), rows, self.window, self.scores, self.n_jobs)

    def arrays(self, nodes: Array) -> ScoreArrays | None:
        """The arrays by which compiled loops change β of nodes; None if the cache is too small."""
        if len(nodes) > len(self._rows) or not len(self._rows):
            return None
        self._cache(nodes)
        no_weights = np.empty((0, self.label_count))
        return ScoreArrays(_NO_MONOMIALS, no_weights, self._rows, self._row_of, self._by_label, self.beta)

    def _cache(self, nodes: Array) -> None:
        """Compute the missing rows of some nodes, in place of the oldest rows of other nodes."""
        missing = nodes[self._row_of[nodes] < 0]
        if not len(missing):
            return
        places = (self._next + np.arange(len(self._rows))) % len(self._rows)
        places = places[~np.isin(self._node_of[places], nodes)][: len(missing)]
        self._next = int(places[-1]) + 1
        before = self._node_of[places]
        self._row_of[before[before >= 0]] = -1
        self._row_of[missing], self._node_of[places] = places, missing
        if self._is_dense:
            self._batch_of[places] = len(self._batches)
            self._batches.append(missing)
            if len(self._batches) > 2 * len(self._rows):
                self._drop_batches()
        fill_rows(self.kernel, self.window.take(missing), self.window, self._rows, places, self.n_jobs)

    def scale(self, factor: float) -> None:
        """Multiply the function by a number."""
        self.beta *= factor
        self._by_label *= factor

    def gram(self, nodes: Array, others: Array) -> Array:
        """(n, m) kernel values between some nodes and others."""
        if len(others) > len(self._rows):
            return kernel_values(self.kernel, self.window.take(nodes), self.window.take(others))
        self._cache(others)
        return self._rows[self._row_of[others], nodes[:, None]]

    def function(self) -> Expansion:
        """The function learned, without the nodes where β is 0."""
        return Expansion(self.kernel, self.numbering, self.window, self.beta)
