"""Encoding: from structures to the few numbers a node that models compute with.

Features belong to one observation, so a sparse *table* holds one row a type, X[type, feature]. What a node
sees is a list of *channels*. A channel c gives each node a row of a table (or several) and has weights W_c of
its own, so that

    s_t(y) = Σ_c Σ_{r ∈ rows_c(t)} (X_c W_c)[r, y]

is a look-up a channel and a node, whatever the number of features. A window of k offsets is 2k+1 channels
over one table: offset 0 the node itself, −d what lies d steps up, +d what lies d steps down. Along a sequence
that is the d-th neighbour to the left or right; in a tree the d-th ancestor, and all descendants d steps
below; in a DAG all nodes that a directed path of d edges reaches. Where d steps reach no node there is a
boundary mark instead, by how many of them are too many: ``<-1>`` for one step too far up, ``<+2>`` for two
too far down. Marks are rows of the table like any type, after the types.

A feature set may also name *joints*, such as the lower-cased previous and current word together: each is one
more channel, whose rows are the distinct joint texts. Those seen once in training say no more than their
parts and are left out. Where an offset leads to several nodes, each of them joins the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.checks import LARGEST
from fuda.data.corpus import Corpus
from fuda.data.observations import Kind, extract, plain_features
from fuda.data.structures import Structure
from fuda.errors import DataError, described, short
from fuda.features.sets import JOINT_KEYS, JOINTS, Joint, resolve

_ONLY_TEXT = frozenset([str])


@dataclass(frozen=True)
class Table:
    """Rows of features: `matrix` (rows × features), sparse, or dense for vectors; of what the vocabulary does
    not know of a row, `unknown[r]` is the sum of values and `beyond[r]` that of their squares."""

    matrix: sp.csr_matrix | np.ndarray
    unknown: np.ndarray
    beyond: np.ndarray

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

    def take(self, nodes: np.ndarray) -> Channel:
        """The channel of some of the nodes."""
        if self.indptr is None:
            return replace(self, rows=self.rows[nodes])
        counts = np.diff(self.indptr)[nodes]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        at = np.repeat(self.indptr[:-1][nodes] - indptr[:-1], counts) + np.arange(indptr[-1])
        return replace(self, rows=self.rows[at], indptr=indptr)

    def gather(self, row_values: np.ndarray) -> np.ndarray:
        """Σ over the node's rows: (rows, L) → (N, L)."""
        if self.indptr is None:
            return row_values[self.rows]
        return self.incidence(len(row_values)) @ row_values

    def scatter(self, node_values: np.ndarray, n_rows: int) -> np.ndarray:
        """The transpose of gather: (N, L) → (rows, L)."""
        return self.incidence(n_rows).T @ node_values

    def incidence(self, n_rows: int) -> sp.csr_matrix:
        """(N, rows) how often each node has each row."""
        indptr = np.arange(len(self.rows) + 1) if self.indptr is None else self.indptr
        return sp.csr_matrix((np.ones(len(self.rows)), self.rows, indptr), shape=(len(indptr) - 1, n_rows))


@dataclass(frozen=True)
class Encoded:
    """A corpus as models see it; `edge_channels` carry features of an observation and a pair of labels."""

    corpus: Corpus
    tables: list[Table]
    channels: list[Channel]
    edge_channels: list[Channel]

    def take(self, structures: np.ndarray) -> Encoded:
        """Some of the structures, by their numbers; tables are shared, nothing is encoded again."""
        nodes = self.corpus.nodes_of(structures)
        return Encoded(
            self.corpus.take(structures),
            self.tables,
            [channel.take(nodes) for channel in self.channels],
            [channel.take(nodes) for channel in self.edge_channels],
        )

    def check_values(self) -> None:
        """Raise DataError at a feature whose value is larger than numbers here may be."""
        for table in self.tables:
            largest = max(table.matrix.max(), -table.matrix.min()) if table.matrix.size else 0.0
            if largest > LARGEST:
                raise DataError(
                    f"a feature has a value of size {largest:g}; scale features so that none is larger "
                    f"than {LARGEST:g}"
                )


class Encoder:
    """What encoders share: they learn a vocabulary from structures, and encode others of the same kind by it.

    A subclass defines `_encode`; of its channels `channel_names`, `feature_names` and `feature_count`, and
    `edge_channel_names` and `edge_feature_names`; `settings`, the parameters it is made from; and
    `vocabularies`, which with `observations` is all its state, and `restore`, which takes both back.
    """

    observations: Kind  # what it was fitted on

    def fit(self, structures: list[Structure]) -> Encoded:
        corpus = Corpus(structures)
        self.observations = corpus.kind
        return self._encode(corpus, learn=True)

    def encode(self, structures: list[Structure], grow: bool = False) -> Encoded:
        """Encode structures of the same kind; with `grow` their new features join the vocabulary."""
        corpus = Corpus(structures)
        if corpus.kind != self.observations:
            raise DataError(
                f"{corpus.place(0)} is {corpus.kind}, but the model was fitted on nodes that are each "
                f"{self.observations}; give the same kind of observations"
            )
        return self._encode(corpus, learn=grow)

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        raise NotImplementedError


class WindowEncoder(Encoder):
    """Features of each observation by a set or function, and a window of offsets around each node."""

    def __init__(self, features: Any, window: int) -> None:
        self.features, self.window = resolve(features, window)
        self.vocabulary: dict[str, int] = {}  # stays empty where observations are dense vectors
        self._joint_vocabularies: list[dict[str, int]] = []

    @property
    def settings(self) -> tuple[Any, ...]:
        return self.features, self.window

    def channel_names(self) -> list[str]:
        joints = ["&".join(f"{_signed(offset)}{key}" for offset, key in joint) for joint in self._joints()]
        return [*map(_signed, self._offsets()), *joints]

    def edge_channel_names(self) -> list[str]:
        return []

    def feature_names(self, channel: int) -> list[str]:
        if channel > 2 * self.window:
            return list(self._joint_vocabularies[channel - 2 * self.window - 1])
        if self._dense:
            return [f"x{i}" for i in range(self.observations.size)] + self._marks()
        return list(self.vocabulary)

    def edge_feature_names(self, channel: int) -> list[str]:
        raise IndexError(channel)

    def feature_count(self, channel: int) -> int:
        if channel > 2 * self.window:
            return len(self._joint_vocabularies[channel - 2 * self.window - 1])
        return self.observations.size + 2 * self.window if self._dense else len(self.vocabulary)

    def own_channel(self) -> int:
        return self.window

    def vocabularies(self) -> list[list[str]]:
        return [list(vocabulary) for vocabulary in (self.vocabulary, *self._joint_vocabularies)]

    def restore(self, vocabularies: list[list[str]], observations: Kind) -> None:
        self.observations = observations
        if len(vocabularies) != 1 + len(self._joints()) or (self._dense and vocabularies[0]):
            raise DataError("a window has one vocabulary, empty for vectors, and one for each joint")
        self.vocabulary, *self._joint_vocabularies = (
            {name: i for i, name in enumerate(names)} for names in vocabularies
        )

    @property
    def _dense(self) -> bool:
        """Whether vectors are taken as they are, and not by a function that names their features."""
        return self.observations.name == "vector" and isinstance(self.features, str)

    def _joints(self) -> list[Joint]:
        """The joints of the feature set that lie within the window."""
        if self.observations.name not in ("text", "columns") or not isinstance(self.features, str):
            return []
        joints = JOINTS.get(self.features, ())
        return [joint for joint in joints if all(abs(offset) <= self.window for offset, _ in joint)]

    def _offsets(self) -> range:
        return range(-self.window, self.window + 1)

    def _marks(self) -> list[str]:
        steps = range(1, self.window + 1)
        return [f"<-{d}>" for d in steps] + [f"<+{d}>" for d in steps]

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        table = self._vector_table(corpus) if self._dense else self._feature_table(corpus, learn)
        rows = {offset: _rows_at(corpus, offset, self.window) for offset in self._offsets()}
        names = self.channel_names()
        channels = [Channel(_signed(offset), 0, *rows[offset]) for offset in rows]
        tables = [table]
        if learn and not self._joint_vocabularies:
            self._joint_vocabularies = [{} for _ in self._joints()]
        keys = {key for joint in self._joints() for _, key in joint}
        said = {key: self._keys(corpus, key) for key in sorted(keys)}
        for joint, vocabulary, name in zip(
            self._joints(), self._joint_vocabularies, names[len(rows) :], strict=True
        ):
            met, indptr = _meeting([rows[offset] for offset, _ in joint], corpus.size)
            parts = [(part, said[key]) for part, (_, key) in zip(met, joint, strict=True)]
            together = Joined(parts, len(met[0]))
            if learn:
                often = np.bincount(together.numbers) > 1
                text_table(together.texts("&", often), vocabulary, learn=True)
            channels.append(Channel(name, len(tables), together.numbers.astype(np.int32), indptr))
            tables.append(text_table(together.texts("&"), vocabulary, learn=False))
        return Encoded(corpus, tables, channels, [])

    def _keys(self, corpus: Corpus, key: str) -> list[str]:
        """What a joint's key makes of each type, and of each boundary mark."""
        tokens = (x if isinstance(x, str) else str(x[0]) for x in corpus.observations)
        return [*map(JOINT_KEYS[key], tokens), *self._marks()]

    def _feature_table(self, corpus: Corpus, learn: bool) -> Table:
        """What the set or function says of each type; each boundary mark is a row with one feature."""

        def where(row: int) -> str:
            by = "" if isinstance(self.features, str) else ", by the feature function"
            return corpus.place_of_type(row) + by

        def features_of(row: int, observation: Any) -> Any:
            try:
                return extract(self.features, observation)
            except Exception as error:  # whatever the user's function raises
                raise DataError(
                    f"{where(row)}: {short(error)} was raised on {short(observation)}; correct the function"
                ) from error

        rows = itertools.starmap(features_of, enumerate(corpus.observations))
        marks = ([mark] for mark in self._marks())
        return feature_table(itertools.chain(rows, marks), where, self.vocabulary, learn)

    def _vector_table(self, corpus: Corpus) -> Table:
        """Vectors as they are; each boundary mark is one more column."""
        vectors = np.stack(corpus.observations)
        rows, columns = vectors.shape
        n_marks = 2 * self.window
        matrix = np.zeros((rows + n_marks, columns + n_marks))
        matrix[:rows, :columns] = vectors
        matrix[rows:, columns:] = np.eye(n_marks)
        return Table(matrix, np.zeros(len(matrix)), np.zeros(len(matrix)))


def _signed(offset: int) -> str:
    return f"{offset:+d}" if offset else "0"


class Joined:
    """What several parts say together at each node: `numbers` (N,) of distinct combinations, and their texts.

    A part is a row for each node, and the text of each row.
    """

    def __init__(self, parts: Iterable[tuple[np.ndarray, list[str]]], size: int) -> None:
        self.numbers = np.zeros(size, dtype=np.int64)
        self._values: list[list[str]] = []
        self._combinations = np.zeros((1, 0), dtype=np.int64)  # of each number, what each part says
        for rows, texts in parts:
            distinct: dict[str, int] = {}
            of_row = np.array([distinct.setdefault(text, len(distinct)) for text in texts])
            self._values.append(list(distinct))
            pairs, self.numbers = np.unique(self.numbers * len(distinct) + of_row[rows], return_inverse=True)
            before, last = np.divmod(pairs, len(distinct))
            self._combinations = np.column_stack([self._combinations[before], last])

    def texts(self, glue: str, wanted: np.ndarray | None = None) -> list[str]:
        """The texts of all numbers, or of those wanted."""
        combinations = self._combinations if wanted is None else self._combinations[wanted]
        if not self._values:
            return [""] * len(combinations)
        columns = [
            [values[k] for k in ids]
            for values, ids in zip(self._values, combinations.T.tolist(), strict=True)
        ]
        return [glue.join(together) for together in zip(*columns, strict=True)]


def text_table(texts: list[str], vocabulary: dict[str, int], learn: bool) -> Table:
    """A table whose rows have one feature each, their text; none where the vocabulary does not know it."""
    if learn:
        for text in texts:
            vocabulary.setdefault(text, len(vocabulary))
    ids = np.array([vocabulary.get(text, -1) for text in texts], dtype=np.int32)
    known = ids >= 0
    indptr = np.concatenate([[0], np.cumsum(known)])
    matrix = sp.csr_matrix((np.ones(indptr[-1]), ids[known], indptr), shape=(len(texts), len(vocabulary)))
    unknown = (~known).astype(np.float64)
    return Table(matrix, unknown, unknown)


def feature_table(
    rows: Iterable[Any], where: Callable[[int], str], vocabulary: dict[str, int], learn: bool
) -> Table:
    """A sparse table from the features of each row; `where(row)` names the place of a row in messages.

    With `learn` the vocabulary grows, else names that it does not know are counted.
    """
    names: list[str] = []
    values: list[float] = []
    lengths: list[int] = []
    for row, found in enumerate(rows):
        if type(found) is list and _ONLY_TEXT.issuperset(map(type, found)):  # by far the most frequent
            own, weights = found, None
        else:
            try:
                own, weights = _named(found)
            except DataError as error:
                raise DataError(f"{where(row)}: {error}") from None
        names += own
        values += [1.0] * len(own) if weights is None else weights
        lengths.append(len(own))
    if learn:
        for name in names:
            vocabulary.setdefault(name, len(vocabulary))
    get = vocabulary.get
    ids, sizes = np.array([get(name, -1) for name in names], dtype=np.int32), np.array(values)
    known, row_of = ids >= 0, np.repeat(np.arange(len(lengths)), lengths)
    matrix = sp.csr_matrix(
        (sizes[known], (row_of[known], ids[known])), shape=(len(lengths), len(vocabulary))
    )  # values of a feature given twice are added
    unknown = beyond = np.zeros(len(lengths))
    if not known.all():
        new: dict[tuple[int, str], float] = {}  # values of a feature given twice are added here too
        for at in np.flatnonzero(~known).tolist():
            key = int(row_of[at]), names[at]
            new[key] = new.get(key, 0.0) + values[at]
        rows_of_new, added = np.array([row for row, _ in new]), np.array(list(new.values()))
        unknown, beyond = np.zeros((2, len(lengths)))
        np.add.at(unknown, rows_of_new, np.abs(added))
        np.add.at(beyond, rows_of_new, added**2)
    return Table(matrix, unknown, beyond)


def _named(found: Any) -> tuple[list[str], list[float] | None]:
    """Features as names and their values, None where all are 1.

    A string value joins the name, true is 1 and false is left out.
    """
    if not isinstance(found, dict | list | tuple | set | frozenset):
        raise DataError(
            f"{described(found)} says no features; they are a list of names (strings) or a dict name → value"
        )
    plain = plain_features(found)
    if isinstance(plain, list):
        return plain, None
    names, values = [], []
    for name, value in plain.items():
        if value is not False:
            names.append(f"{name}={value}" if isinstance(value, str) else name)
            values.append(1.0 if isinstance(value, str) else float(value))
    return names, values


def _rows_at(corpus: Corpus, offset: int, window: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The table rows that each node sees at an offset: types, or boundary marks past the end."""
    if offset == 0:
        return corpus.types, None
    first_mark = len(corpus.observations) + (window if offset > 0 else 0)
    if corpus.is_chain:
        return _shifted(corpus, offset, first_mark), None
    return _reached(corpus, offset, first_mark)


def _meeting(
    parts: list[tuple[np.ndarray, np.ndarray | None]], size: int
) -> tuple[list[np.ndarray], np.ndarray | None]:
    """All meetings of the parts at each node: of each part the row in every meeting, and the nodes' bounds.

    A part gives a node one row, or several where it has bounds; then each meets each row of the others.
    """
    nodes, met = np.arange(size), []
    for rows, indptr in parts:
        if indptr is None:
            met.append(rows[nodes])
            continue
        counts = np.diff(indptr)[nodes]
        ends = np.cumsum(counts)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        met = [np.repeat(before, counts) for before in met]
        nodes = np.repeat(nodes, counts)
        met.append(rows[indptr[nodes] + within])
    if len(nodes) == size:
        return met, None
    return met, np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=size))])


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
    near = corpus.graph.parents if offset < 0 else corpus.graph.children
    step = sp.csr_matrix(
        (np.ones(len(near.indices)), near.indices, near.indptr), shape=(corpus.size, corpus.size)
    )
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
