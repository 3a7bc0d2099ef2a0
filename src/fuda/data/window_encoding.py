"""Encoding by a feature set or function and a window of offsets around each node."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable
from functools import cached_property, lru_cache
from operator import add
from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.encoding import Channel, Encoded, Encoder
from fuda.data.observations import Kind, vector_lengths
from fuda.data.tables import (
    Csr,
    FeatureTable,
    NamedFeatures,
    Parts,
    Row,
    Table,
    TextTable,
    feature_row,
    feature_table,
    joined,
    joined_rows,
    joined_texts,
    named_features,
    number_texts,
    rows_of,
    squared_norms,
    stacked_rows,
)
from fuda.data.windows import Rows, combined, rows_at
from fuda.errors import DataError, short
from fuda.features.sets import JOINT_KEYS, JOINTS, NUMERIC_SETS, Joint, extract, resolve, set_name

MOST_ROWS = 1 << 17  # the number of types whose features an encoder caches


class TypeTable(Table):
    """The features of the types of a corpus and of boundary marks.

    Parameters
    ----------
    encoder : WindowEncoder
        It caches the features of types.
    corpus : Corpus
    """

    def __init__(self, encoder: WindowEncoder, corpus: Corpus) -> None:
        super().__init__(self._all_rows)
        self.encoder, self.corpus = encoder, corpus
        self.has_counts = (
            isinstance(encoder.features, str)
            and encoder.features not in NUMERIC_SETS
            and corpus.kind.ops.recurs
        )

    @cached_property
    def _stacked(self) -> tuple[Csr, np.ndarray, np.ndarray]:
        """The rows of all types and marks, and the sums over their unknown features."""
        rows = self.encoder.rows(self.corpus, list(range(len(self.corpus.observations))))
        return stacked_rows([*rows, *self.encoder.mark_rows()], len(self.encoder.vocabulary))

    @property
    def csr(self) -> Csr:
        """The values of the features, row by row."""
        return self._stacked[0]

    @property
    def squares(self) -> np.ndarray:
        """The squared norms of the rows, of features in the vocabulary."""
        return squared_norms(self.csr)

    @property
    def beyond(self) -> np.ndarray:
        """The sums of the squares of unknown features."""
        return self._stacked[2]

    def _all_rows(self) -> Parts:
        """The rows as a matrix."""
        return joined(*self._stacked)


class WindowEncoder(Encoder):
    """Features of each observation by a set or function, and a window of offsets around each node.

    It caches the features of types by the keys of their observations: the types that it was fitted
    on, and up to `MOST_ROWS` that it has encoded since.

    Parameters
    ----------
    features : str or callable
        The name of a feature set, or a function from one observation to its features.
    window : int
        The number of neighbours on each side.

    Attributes
    ----------
    vocabulary : dict of str to int
        The column of each feature; empty if observations are dense vectors.
    """

    _least = 2

    def __init__(self, features: Any, window: int) -> None:
        self.features, self.window = resolve(features, window)
        self.vocabulary: dict[str, int] = {}
        self._joint_vocabularies: list[dict[str, int]] = []
        self._clear_cache()

    def _clear_cache(self) -> None:
        """Forget the features of types."""
        self._rows: dict[Hashable, Row] = {}
        self._learned: tuple[list[Hashable], Table] | None = None  # moved to _rows when needed
        self._joint_tables: list[TextTable] = []

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_rows": {}, "_learned": None, "_joint_tables": []}

    @property
    def settings(self) -> tuple[Any, ...]:
        """The parameters of the constructor."""
        return self.features, self.window

    def channel_names(self) -> list[str]:
        """Return the names of the channels: offsets, then joints."""
        return [*map(_signed, self._offsets()), *map(_joint_name, self._joints())]

    def edge_channel_names(self) -> list[str]:
        """Return the names of the edge channels: there are none."""
        return []

    def feature_names(self, channel: int) -> list[str]:
        """Return the names of the features of a channel."""
        if self._dense:
            return [f"x{i}" for i in range(self.observations.size)] + self._marks()
        return list(self._vocabulary_of(channel))

    def edge_feature_names(self, channel: int) -> list[str]:
        """Raise IndexError, since there are no edge channels."""
        raise IndexError(channel)

    def feature_count(self, channel: int) -> int:
        """Return the number of features of a channel."""
        return self.observations.size + 2 * self.window if self._dense else len(self._vocabulary_of(channel))

    def own_channel(self) -> int:
        """Return the index of the channel of offset 0."""
        return self.window

    def _vocabulary_of(self, channel: int) -> dict[str, int]:
        """The vocabulary of an offset or joint."""
        joint = channel - 2 * self.window - 1
        return self.vocabulary if joint < 0 else self._joint_vocabularies[joint]

    def vocabularies(self) -> list[list[str]]:
        return [list(vocabulary) for vocabulary in (self.vocabulary, *self._joint_vocabularies)]

    def restore(self, vocabularies: list[list[str]], observations: Kind) -> None:
        self.observations = observations
        if len(vocabularies) != 1 + len(self._joints()) or (self._dense and vocabularies[0]):
            raise DataError("a window has one vocabulary, empty for vectors, and one per joint")
        if not self._dense and not set(self._marks()) <= set(vocabularies[0]):
            raise DataError("the vocabulary of a window does not contain its boundary marks")
        self.vocabulary, *self._joint_vocabularies = (
            {name: i for i, name in enumerate(names)} for names in vocabularies
        )
        self._clear_cache()

    def mark_rows(self) -> list[Row]:
        """Return the rows of the boundary marks."""
        ids = (self.vocabulary[mark] for mark in self._marks())
        return [Row(np.array([k], dtype=np.int32), np.ones(1), 0.0, 0.0) for k in ids]

    def rows(self, corpus: Corpus, types: list[int]) -> list[Row]:
        """Return the features of some types; those in the cache are not extracted again."""
        if self._learned is not None:
            keys, table = self._learned
            self._rows = dict(zip(keys, rows_of(table.parts, len(keys)), strict=True))
            self._learned = None
        key = corpus.kind.ops.key
        keys = [key(corpus.observations[k]) for k in types]
        rows = list(map(self._rows.get, keys))
        for i, row in enumerate(rows):
            if row is None:
                rows[i] = new = feature_row(self._features_of(corpus, types[i]), self.vocabulary)
                if corpus.kind.ops.recurs and len(self._rows) < MOST_ROWS:
                    self._rows[keys[i]] = new
        return rows  # type: ignore[return-value]

    @property
    def _dense(self) -> bool:
        """Whether features are the entries of vectors, and not made from them by a function."""
        return self.observations.name == "vector" and isinstance(self.features, str)

    def _joints(self) -> tuple[Joint, ...]:
        """The joints of the feature set within the window."""
        set_of_features = set_name(self.features) if self.observations.name in ("text", "columns") else None
        return () if set_of_features is None else _joints_within(set_of_features, self.window)

    def _offsets(self) -> range:
        """The offsets of the window."""
        return range(-self.window, self.window + 1)

    def _marks(self) -> list[str]:
        """The names of the boundary marks."""
        return [f"<{sign}{d}>" for sign in "-+" for d in range(1, self.window + 1)]

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        if self._dense:
            table = self._vector_table(corpus)
        else:
            table = self._learn(corpus) if learn else TypeTable(self, corpus)
        rows = {offset: rows_at(corpus, offset, self.window) for offset in self._offsets()}
        channels = [Channel(_signed(offset), 0, *seen, shows_types=True) for offset, seen in rows.items()]
        joints = self._joint_channels(corpus, rows, learn) if self._joints() else []
        return Encoded(corpus, [table, *self._joint_tables], [*channels, *joints], [])

    def _joint_channels(self, corpus: Corpus, rows: dict[int, Rows], learn: bool) -> list[Channel]:
        """The channels of the joints, from the rows at each offset."""
        joints = self._joints()
        if learn and not self._joint_vocabularies:
            self._joint_vocabularies = [{} for _ in joints]
        texts: dict[tuple[str, bool], list[str]] = {}
        for key in {key for joint in joints for _, key in joint}:
            texts[key, False] = self._keys(corpus, key)
            texts[key, True] = [f"&{text}" for text in texts[key, False]]  # after the first part
        channels: list[Channel] = []
        columns = _Columns(rows, texts)
        for joint, vocabulary in zip(joints, self._joint_vocabularies, strict=True):
            if learn:
                seen, indptr = combined([rows[offset] for offset, _ in joint], corpus.size)
                parts = [texts[key, place > 0] for place, (_, key) in enumerate(joint)]
                numbers, distinct = joined_texts(zip(seen, parts, strict=True), len(seen[0]))
                repeated = itertools.compress(distinct, np.bincount(numbers) > 1)
                number_texts(list(repeated), vocabulary, learn=True)
                ids = number_texts(distinct, vocabulary, learn=False)[numbers]
            else:
                (first, *others), indptr = columns.of(joint, corpus.size)
                joined: Iterable[str] = first
                for other in others:
                    joined = map(add, joined, other)
                ids = number_texts(joined, vocabulary, learn=False, count=len(first))
            channels.append(Channel(_joint_name(joint), 1 + len(channels), ids, indptr))
        if learn or not self._joint_tables:
            self._joint_tables = [TextTable(len(vocabulary)) for vocabulary in self._joint_vocabularies]
        return channels

    def _keys(self, corpus: Corpus, key: str) -> list[str]:
        """The text of each type and boundary mark by the key of a joint."""
        tokens = corpus.observations
        if corpus.kind.name == "columns":
            tokens = [str(x[0]) for x in tokens]
        return [*map(JOINT_KEYS[key], tokens), *self._marks()]

    def _learn(self, corpus: Corpus) -> Table:
        """The table of types and marks, whose features are added to the vocabulary."""
        lengths = dict(self.made_lengths)
        features = (self._features_of(corpus, k, lengths) for k in range(len(corpus.observations)))
        if self.vocabulary:
            types = feature_table(features, self.vocabulary)
        else:
            key = self.features if isinstance(self.features, str) else id(self.features)
            if key not in corpus.feature_tables:
                vocabulary: dict[str, int] = {}
                table = feature_table(features, vocabulary)
                corpus.feature_tables[key] = FeatureTable(self.features, vocabulary, table, lengths)
            _, known, types, lengths = corpus.feature_tables[key]
            self.vocabulary = dict(known)
        self.made_lengths = lengths
        for mark in self._marks():
            self.vocabulary.setdefault(mark, len(self.vocabulary))
        if self.window:
            marks = Table.of(*joined_rows(self.mark_rows(), len(self.vocabulary)))
            types = types.widen(len(self.vocabulary))[0].followed_by(marks, len(types.unknown))
        self._clear_cache()
        if corpus.kind.ops.recurs:
            self._learned = list(corpus.keys()), types
        return types

    def _features_of(
        self, corpus: Corpus, type_id: int, lengths: dict[str, int] | None = None
    ) -> NamedFeatures:
        """The features of a type by the set or function.

        Lengths of vectors that the function returns are added to `lengths`, if given.
        """
        observation = corpus.observations[type_id]
        try:
            features = extract(self.features, observation)
            names_and_values = named_features(features)
            if not isinstance(self.features, str):
                self._check_vector_lengths(features, lengths)
            return names_and_values
        except Exception as error:  # whatever the user's function raises
            where = corpus.place_of_type(type_id)
            where += "" if isinstance(self.features, str) else ", by the feature function"
            if isinstance(error, DataError):
                raise DataError(f"{where}: {error}") from None
            message = f"{where}: {short(error)} was raised on {short(observation)}; correct the function"
            raise DataError(message) from error

    def _check_vector_lengths(self, features: Any, lengths: dict[str, int] | None) -> None:
        """Raise DataError where a vector that a function returned has not its usual length."""
        usual = self.made_lengths if lengths is None else lengths
        for name, length in vector_lengths(features):
            if length != usual.get(name, length):
                others = "the model was fitted on vectors" if lengths is None else "nodes before have vectors"
                raise DataError(
                    f"the vector {name!r} has length {length}, but {others} of length {usual[name]}; return "
                    "vectors of one length"
                )
            if lengths is not None:
                lengths[name] = length

    def _vector_table(self, corpus: Corpus) -> Table:
        """The vectors, and one more column per boundary mark."""
        vectors = np.stack(corpus.observations)
        marks = 2 * self.window
        matrix = np.pad(vectors, ((0, marks), (0, marks)))
        matrix[len(vectors) :, vectors.shape[1] :] = np.eye(marks)
        return Table.of(matrix, np.zeros(len(matrix)), np.zeros(len(matrix)))


class _Columns:
    """The texts of joints at nodes, part by part; joints of sequences share those of their parts.

    Parameters
    ----------
    rows : dict of int to (rows, indptr)
        The table rows at each offset from all nodes.
    texts : dict
        The text of each row, by key and whether other parts precede.
    """

    def __init__(self, rows: dict[int, Rows], texts: dict[tuple[str, bool], list[str]]) -> None:
        self._rows, self._texts = rows, texts
        self._has_one_row_each = all(indptr is None for _, indptr in rows.values())
        self._of_parts: dict[tuple[int, str, bool], list[str]] = {}

    def of(self, joint: Joint, size: int) -> tuple[list[list[str]], np.ndarray | None]:
        """The texts of each part of a joint in all combinations, and the bounds of the nodes."""
        if self._has_one_row_each:
            return [self._at(*part, place > 0) for place, part in enumerate(joint)], None
        seen, indptr = combined([self._rows[offset] for offset, _ in joint], size)
        parts = (self._texts[key, place > 0] for place, (_, key) in enumerate(joint))
        return [[text[row] for row in part.tolist()] for part, text in zip(seen, parts, strict=True)], indptr

    def _at(self, offset: int, key: str, later: bool) -> list[str]:
        """The text at an offset from each node."""
        texts = self._of_parts.get((offset, key, later))
        if texts is None:
            text = self._texts[key, later]
            texts = self._of_parts[offset, key, later] = [text[row] for row in self._rows[offset][0].tolist()]
        return texts


def _signed(offset: int) -> str:
    """The name of an offset."""
    return f"{offset:+d}" if offset else "0"


@lru_cache
def _joint_name(joint: Joint) -> str:
    """The name of a joint."""
    return "&".join(f"{_signed(offset)}{key}" for offset, key in joint)


@lru_cache
def _joints_within(features: str, window: int) -> tuple[Joint, ...]:
    """The joints of a feature set within a window."""
    joints = JOINTS.get(features, ())
    return tuple(joint for joint in joints if all(abs(offset) <= window for offset, _ in joint))
