"""Encoding by a feature set or function and a window of offsets around each node."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.encoding import Channel, Encoded, Encoder
from fuda.data.observations import Kind, extract
from fuda.data.tables import (
    FeatureTable,
    Joined,
    NamedFeatures,
    Parts,
    Row,
    Table,
    TextTable,
    feature_row,
    feature_table,
    joined_rows,
    named_features,
    number_texts,
    rows_of,
)
from fuda.data.windows import Rows, combined, rows_at
from fuda.errors import DataError, short
from fuda.features.sets import JOINT_KEYS, JOINTS, Joint, resolve

MOST_ROWS = 1 << 17  # types whose features an encoder remembers


class TypeTable(Table):
    """The features of the types of a corpus and of boundary marks, by an encoder that remembers types."""

    def __init__(self, encoder: WindowEncoder, corpus: Corpus) -> None:
        super().__init__(self._all)
        self.encoder, self.corpus = encoder, corpus
        self.has_counts = isinstance(encoder.features, str) and corpus.kind.of.recurs

    def _all(self) -> Parts:
        rows = self.encoder.rows(self.corpus, list(range(len(self.corpus.observations))))
        return joined_rows([*rows, *self.encoder.mark_rows()], len(self.encoder.vocabulary))


class WindowEncoder(Encoder):
    """Features of each observation by a set or function, and a window of offsets around each node.

    It remembers the features of types, by the keys of their observations: what it learned from, and
    up to `MOST_ROWS` that it encoded since.
    """

    _least = 2

    def __init__(self, features: Any, window: int) -> None:
        self.features, self.window = resolve(features, window)
        self.vocabulary: dict[str, int] = {}  # stays empty where observations are dense vectors
        self._joint_vocabularies: list[dict[str, int]] = []
        self._forget()

    def _forget(self) -> None:
        self._rows: dict[Hashable, Row] = {}
        self._learned: tuple[list[Hashable], Table] | None = None  # goes into _rows when it is needed
        self._joint_tables: list[TextTable] = []

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_rows": {}, "_learned": None, "_joint_tables": []}

    @property
    def settings(self) -> tuple[Any, ...]:
        return self.features, self.window

    def channel_names(self) -> list[str]:
        return [*map(_signed, self._offsets()), *map(_joint_name, self._joints())]

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
        self._forget()

    def mark_rows(self) -> list[Row]:
        """The rows of the boundary marks."""
        ids = (self.vocabulary[mark] for mark in self._marks())
        return [Row(np.array([k], dtype=np.int32), np.ones(1), 0.0, 0.0) for k in ids]

    def rows(self, corpus: Corpus, types: list[int]) -> list[Row]:
        """The features of some types; those of types that are known are not extracted again."""
        if self._learned is not None:
            keys, table = self._learned
            self._rows = dict(zip(keys, rows_of(table.parts, len(keys)), strict=True))
            self._learned = None
        key = corpus.kind.of.key
        keys = [key(corpus.observations[k]) for k in types]
        rows = list(map(self._rows.get, keys))
        for i, row in enumerate(rows):
            if row is None:
                rows[i] = new = feature_row(self._features_of(corpus, types[i]), self.vocabulary)
                if corpus.kind.of.recurs and len(self._rows) < MOST_ROWS:
                    self._rows[keys[i]] = new
        return rows  # type: ignore[return-value]

    @property
    def _dense(self) -> bool:
        """Whether vectors are taken as they are, and not by a function that names their features."""
        return self.observations.name == "vector" and isinstance(self.features, str)

    def _joints(self) -> tuple[Joint, ...]:
        """The joints of the feature set that lie within the window."""
        if self.observations.name not in ("text", "columns") or not isinstance(self.features, str):
            return ()
        return _joints_within(self.features, self.window)

    def _offsets(self) -> range:
        return range(-self.window, self.window + 1)

    def _marks(self) -> list[str]:
        steps = range(1, self.window + 1)
        return [f"<-{d}>" for d in steps] + [f"<+{d}>" for d in steps]

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        if self._dense:
            table = self._vector_table(corpus)
        else:
            table = self._learn(corpus) if learn else TypeTable(self, corpus)
        rows = {offset: rows_at(corpus, offset, self.window) for offset in self._offsets()}
        channels = [
            Channel(_signed(offset), 0, *rows[offset], shows_types=True) for offset in self._offsets()
        ]
        joints = self._joint_channels(corpus, rows, learn) if self._joints() else []
        return Encoded(corpus, [table, *self._joint_tables], [*channels, *joints], [])

    def _joint_channels(self, corpus: Corpus, rows: dict[int, Rows], learn: bool) -> list[Channel]:
        if learn and not self._joint_vocabularies:
            self._joint_vocabularies = [{} for _ in self._joints()]
        keys = {key for joint in self._joints() for _, key in joint}
        texts = {key: self._keys(corpus, key) for key in keys}
        channels: list[Channel] = []
        for joint, vocabulary in zip(self._joints(), self._joint_vocabularies, strict=True):
            found, indptr = combined([rows[offset] for offset, _ in joint], corpus.size)
            parts = [(part, texts[key]) for part, (_, key) in zip(found, joint, strict=True)]
            if learn:
                together = Joined(parts, len(found[0]))
                every, often = together.texts("&"), np.bincount(together.numbers) > 1
                number_texts(list(itertools.compress(every, often)), vocabulary, learn=True)
                ids = number_texts(every, vocabulary, learn=False)[together.numbers]
            else:
                columns = [[of_row[r] for r in part.tolist()] for part, of_row in parts]
                ids = number_texts(list(map("&".join, zip(*columns, strict=True))), vocabulary, learn=False)
            channels.append(Channel(_joint_name(joint), 1 + len(channels), ids, indptr))
        if learn or not self._joint_tables:
            self._joint_tables = [TextTable(len(vocabulary)) for vocabulary in self._joint_vocabularies]
        return channels

    def _keys(self, corpus: Corpus, key: str) -> list[str]:
        """What a joint's key makes of each type, and of each boundary mark."""
        tokens = corpus.observations
        if corpus.kind.name == "columns":
            tokens = [str(x[0]) for x in tokens]
        return [*map(JOINT_KEYS[key], tokens), *self._marks()]

    def _learn(self, corpus: Corpus) -> Table:
        """The table of types and marks, whose features join the vocabulary."""
        every = (self._features_of(corpus, k) for k in range(len(corpus.observations)))
        if self.vocabulary:
            types = feature_table(every, self.vocabulary)
        else:
            key = self.features if isinstance(self.features, str) else id(self.features)
            known = corpus.feature_tables.get(key)
            if known is None:
                vocabulary: dict[str, int] = {}
                known = FeatureTable(self.features, vocabulary, feature_table(every, vocabulary))
                corpus.feature_tables[key] = known
            self.vocabulary, types = dict(known.vocabulary), known.table
        for mark in self._marks():
            self.vocabulary.setdefault(mark, len(self.vocabulary))
        table = self._with_marks(types)
        self._forget()
        if corpus.kind.of.recurs:
            self._learned = list(corpus.keys()), table
        return table

    def _with_marks(self, types: Table) -> Table:
        """The table of types, and below them the marks."""
        marks = self.mark_rows()
        if not marks:
            return types
        return Table.of(
            *joined_rows([*rows_of(types.parts, len(types.unknown)), *marks], len(self.vocabulary))
        )

    def _features_of(self, corpus: Corpus, type_id: int) -> NamedFeatures:
        """What the set or function makes of a type."""
        observation = corpus.observations[type_id]
        try:
            return named_features(extract(self.features, observation))
        except Exception as error:  # whatever the user's function raises
            by = "" if isinstance(self.features, str) else ", by the feature function"
            where = corpus.place_of_type(type_id) + by
            if isinstance(error, DataError):
                raise DataError(f"{where}: {error}") from None
            raise DataError(
                f"{where}: {short(error)} was raised on {short(observation)}; correct the function"
            ) from error

    def _vector_table(self, corpus: Corpus) -> Table:
        """Vectors as they are; each boundary mark is one more column."""
        vectors = np.stack(corpus.observations)
        rows, columns = vectors.shape
        n_marks = 2 * self.window
        matrix = np.zeros((rows + n_marks, columns + n_marks))
        matrix[:rows, :columns] = vectors
        matrix[rows:, columns:] = np.eye(n_marks)
        return Table.of(matrix, np.zeros(len(matrix)), np.zeros(len(matrix)))


def _signed(offset: int) -> str:
    return f"{offset:+d}" if offset else "0"


@lru_cache
def _joint_name(joint: Joint) -> str:
    return "&".join(f"{_signed(offset)}{key}" for offset, key in joint)


@lru_cache
def _joints_within(features: str, window: int) -> tuple[Joint, ...]:
    """The joints of a feature set that lie within a window."""
    joints = JOINTS.get(features, ())
    return tuple(joint for joint in joints if all(abs(offset) <= window for offset, _ in joint))
