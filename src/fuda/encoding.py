"""Encoding: from structures to the few numbers a node that models compute with.

Features belong to one observation, so a sparse *table* holds one row a type, X[type, feature]. What a node sees is a list
of *channels*. A channel c gives each node a row of a table (or several) and has weights W_c of its own, so that

    s_t(y) = Σ_c Σ_{r ∈ rows_c(t)} (X_c W_c)[r, y]

is a look-up a channel and a node, whatever the number of features. A window of k offsets is 2k+1 channels over one table:
offset 0 the node itself, −d what lies d steps up, +d what lies d steps down. Along a sequence that is the d-th
neighbour to the left or right; in a tree the d-th ancestor, and all descendants d steps below; in a DAG all nodes that a
directed path of d edges reaches. Steps past the end of the structure reach a boundary mark, ``<-1>`` for one step too far up,
``<+2>`` for two too far down; marks are rows of the table like any type, after the types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.corpus import Corpus
from fuda.errors import DataError
from fuda.features import extract, resolve
from fuda.structures import Structure


@dataclass(frozen=True)
class Table:
    """Rows of features: `matrix` (rows × features), sparse, or dense for vectors; `unknown[r]` is how much of row r the
    vocabulary does not know."""

    matrix: sp.csr_matrix | np.ndarray
    unknown: np.ndarray

    @property
    def n_features(self) -> int:
        return int(self.matrix.shape[1])


@dataclass(frozen=True)
class Channel:
    """Rows of a table for every node: one each where `indptr` is None, else rows[indptr[t]:indptr[t+1]]."""

    name: str
    table: int
    rows: np.ndarray
    indptr: np.ndarray | None = None

    def gather(self, row_values: np.ndarray) -> np.ndarray:
        """Σ over the node's rows: (rows, L) → (N, L)."""
        if self.indptr is None:
            return row_values[self.rows]
        return self._incidence(len(row_values)) @ row_values

    def scatter(self, node_values: np.ndarray, n_rows: int) -> np.ndarray:
        """The transpose of gather: (N, L) → (rows, L)."""
        return self._incidence(n_rows).T @ node_values

    def _incidence(self, n_rows: int) -> sp.csr_matrix:
        indptr = np.arange(len(self.rows) + 1) if self.indptr is None else self.indptr
        return sp.csr_matrix((np.ones(len(self.rows)), self.rows, indptr), shape=(len(indptr) - 1, n_rows))


@dataclass(frozen=True)
class Encoded:
    """A corpus as models see it. `edge_channels` carry features of an observation joined with a label pair."""

    corpus: Corpus
    tables: list[Table]
    channels: list[Channel]
    edge_channels: list[Channel]


class WindowEncoder:
    """Features of each observation by a set or function, and a window of offsets around each node."""

    kind = "window"

    def __init__(self, features: Any, window: int) -> None:
        self.features, self.window = resolve(features, window)
        self.vocabulary: dict[str, int] = {}
        self.vector_size = 0  # of dense observations; they have no vocabulary

    def fit(self, structures: list[Structure]) -> Encoded:
        corpus = Corpus(structures)
        if corpus.has_vectors and isinstance(self.features, str):
            self.vector_size = len(corpus.observations[0])
        return self._encode(corpus, learn=True)

    def encode(self, structures: list[Structure]) -> Encoded:
        return self._encode(Corpus(structures), learn=False)

    def channel_names(self) -> list[str]:
        return [f"{offset:+d}" if offset else "0" for offset in range(-self.window, self.window + 1)]

    def feature_names(self, channel: int) -> list[str]:
        """Feature names of a channel, in the order of its table's columns."""
        if self.vector_size:
            return [f"x{i}" for i in range(self.vector_size)] + self._marks()
        return list(self.vocabulary)

    def edge_channel_names(self) -> list[str]:
        return []

    def vocabularies(self) -> list[list[str]]:
        return [list(self.vocabulary)]

    def restore(self, vocabularies: list[list[str]], vector_size: int) -> None:
        """Take back what `vocabularies` and `vector_size` gave."""
        if len(vocabularies) != 1:
            raise DataError("a window has one vocabulary")
        self.vocabulary = {name: i for i, name in enumerate(vocabularies[0])}
        self.vector_size = vector_size

    def _marks(self) -> list[str]:
        steps = range(1, self.window + 1)
        return [f"<-{d}>" for d in steps] + [f"<+{d}>" for d in steps]

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        if corpus.has_vectors and isinstance(self.features, str):
            table = self._vector_table(corpus)
        elif self.vector_size:
            raise DataError(
                f"{corpus.place(0)}: the model was fitted on vectors of {self.vector_size} numbers; "
                f"found {corpus.observations[0]!r}"
            )
        else:
            table = self._feature_table(corpus, learn)
        channels = [
            Channel(name, 0, *_rows_at(corpus, offset, self.window))
            for name, offset in zip(self.channel_names(), range(-self.window, self.window + 1), strict=True)
        ]
        return Encoded(corpus, [table], channels, [])

    def _feature_table(self, corpus: Corpus, learn: bool) -> Table:
        def where(row: int) -> str:
            return corpus.place_of_type(row) if row < len(corpus.observations) else "boundary mark"

        def rows() -> Iterator[Any]:
            for type_id, observation in enumerate(corpus.observations):
                try:
                    yield extract(self.features, observation)
                except Exception as error:  # the user's function failed: say where, and let it be seen
                    error.add_note(f"while taking features of {observation!r} at {where(type_id)}")
                    raise
            for mark in self._marks():
                yield [mark]

        return feature_table(rows(), where, self.vocabulary, learn)

    def _vector_table(self, corpus: Corpus) -> Table:
        """Vectors as they are; each boundary mark is one more column."""
        vectors = np.stack(corpus.observations)
        if vectors.shape[1] != self.vector_size:
            raise DataError(
                f"{corpus.place(0)}: a vector of {vectors.shape[1]} numbers, where the model was fitted on "
                f"{self.vector_size or 'features with names'}; give the same kind of observations"
            )
        n_marks = 2 * self.window
        matrix = np.zeros((len(vectors) + n_marks, self.vector_size + n_marks))
        matrix[: len(vectors), : self.vector_size] = vectors
        matrix[len(vectors) :, self.vector_size :] = np.eye(n_marks)
        return Table(matrix, np.zeros(len(matrix)))


def feature_table(
    rows: Iterable[Any], where: Callable[[int], str], vocabulary: dict[str, int], learn: bool
) -> Table:
    """A sparse table from the features of each row; with `learn` the vocabulary grows, else unknown names are counted.

    `where(row)` names the place of a row in messages.
    """
    indices: list[int] = []
    values: list[float] = []
    lengths: list[int] = [0]
    unknown: list[float] = []
    get = vocabulary.get
    for row, found in enumerate(rows):
        weights: list[float] | None = None
        try:
            if isinstance(found, dict):
                pairs = _weighted(found)
                names, weights = list(pairs), list(pairs.values())
            else:
                names = _names(found)
        except DataError as error:
            raise DataError(f"{where(row)}: {error}") from None
        if learn:
            ids: list[Any] = [vocabulary.setdefault(name, len(vocabulary)) for name in names]
            unknown.append(0.0)
        else:
            ids = [get(name) for name in names]
            lost = [i for i, feature in enumerate(ids) if feature is None]
            unknown.append(float(len(lost) if weights is None else sum(abs(weights[i]) for i in lost)))
            if lost:
                if weights is not None:
                    weights = [w for w, feature in zip(weights, ids, strict=True) if feature is not None]
                ids = [feature for feature in ids if feature is not None]
        indices += ids
        values += [1.0] * len(ids) if weights is None else weights
        lengths.append(len(ids))
    matrix = sp.csr_matrix(
        (np.array(values), np.array(indices, dtype=np.int32), np.cumsum(lengths)),
        shape=(len(unknown), len(vocabulary)),
    )
    matrix.sum_duplicates()
    return Table(matrix, np.array(unknown))


def _names(found: Any) -> list[str]:
    if isinstance(found, list | tuple | set | frozenset):
        names = sorted(found) if isinstance(found, set | frozenset) and all(isinstance(n, str) for n in found) else found
        if all(isinstance(name, str) for name in names):
            return list(names)
    raise DataError(
        f"the feature function gave {found!r}; it gives a list of feature names (strings) or a dict name → value"
    )


def _weighted(found: dict[str, Any]) -> dict[str, float]:
    """A dict of features as names and numbers: a string value joins the name, true is 1 and false is left out."""
    pairs: dict[str, float] = {}
    for name, value in found.items():
        if not isinstance(name, str):
            raise DataError(f"{name!r} is no feature name; feature names are strings")
        if isinstance(value, str):
            pairs[f"{name}={value}"] = 1.0
        elif isinstance(value, bool | np.bool_):
            if value:
                pairs[name] = 1.0
        elif isinstance(value, int | float | np.number) and np.isfinite(value):
            pairs[name] = float(value)
        else:
            raise DataError(f"feature {name!r} has the value {value!r}; values are finite numbers or strings")
    return pairs


def _rows_at(corpus: Corpus, offset: int, window: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The table rows that each node sees at an offset: types, or boundary marks past the end."""
    if offset == 0:
        return corpus.types, None
    first_mark = len(corpus.observations) + (window if offset > 0 else 0)
    if corpus.is_chain:
        return _shifted(corpus, offset, first_mark), None
    return _reached(corpus, offset, first_mark)


def _shifted(corpus: Corpus, offset: int, first_mark: int) -> np.ndarray:
    rows = np.empty_like(corpus.types)
    starts, ends = corpus.offsets[:-1], corpus.offsets[1:]
    if offset < 0:
        rows[-offset:] = corpus.types[:offset]
    else:
        rows[:-offset] = corpus.types[offset:]
    for position in range(abs(offset)):  # the nodes from which the offset leads out of the sequence
        inside = ends - starts > position
        nodes = (starts + position if offset < 0 else ends - 1 - position)[inside]
        rows[nodes] = first_mark + abs(offset) - 1 - position
    return rows


def _reached(corpus: Corpus, offset: int, first_mark: int) -> tuple[np.ndarray, np.ndarray | None]:
    near = corpus.parents if offset < 0 else corpus.children
    step = sp.csr_matrix((np.ones(len(near.indices)), near.indices, near.indptr), shape=(corpus.size, corpus.size))
    reach, room = step, np.diff(near.indptr) > 0
    steps_left = np.where(room, abs(offset) - 1, abs(offset))  # steps past the end, where none is reached
    for distance in range(2, abs(offset) + 1):
        reach = reach @ step
        room = np.diff(reach.indptr) > 0
        steps_left[room] = abs(offset) - distance
    reach.sort_indices()
    counts = np.diff(reach.indptr)
    indptr = np.concatenate([[0], np.cumsum(np.maximum(counts, 1))])
    rows = np.empty(indptr[-1], dtype=np.int32)
    alone = counts == 0
    rows[indptr[:-1][alone]] = first_mark + steps_left[alone] - 1
    taken = np.ones(len(rows), dtype=bool)
    taken[indptr[:-1][alone]] = False
    rows[taken] = corpus.types[reach.indices]
    return rows, (None if len(rows) == corpus.size else indptr)
