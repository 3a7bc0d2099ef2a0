"""Encoding by a template: a channel per line, over the distinct texts that the line expands to."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.encoding import Channel, Encoded, Encoder
from fuda.data.observations import Kind
from fuda.data.tables import Table, TextTable, joined_texts, number_texts
from fuda.errors import DataError
from fuda.features.templates import Line, Macro, Template

_KINDS = ("text", "columns")  # the kinds of observations that templates can read


class TemplateEncoder(Encoder):
    """One channel per template line, over the columns of sequences.

    Parameters
    ----------
    template : Template
    """

    def __init__(self, template: Template) -> None:
        self.template = template
        self._vocabularies: list[dict[str, int]] = [{} for _ in template.lines]

    @property
    def settings(self) -> tuple[Any, ...]:
        return (self.template,)

    def channel_names(self) -> list[str]:
        return [line.name for line in self.template.lines if line.for_labels]

    def edge_channel_names(self) -> list[str]:
        return [line.name for line in self.template.lines if line.for_pairs]

    def edge_feature_names(self, channel: int) -> list[str]:
        """Return the texts of an edge channel."""
        lines = zip(self.template.lines, self._vocabularies, strict=True)
        return list([texts for line, texts in lines if line.for_pairs][channel])

    def feature_names(self, channel: int) -> list[str]:
        """Return the texts of a channel."""
        lines = zip(self.template.lines, self._vocabularies, strict=True)
        return list([texts for line, texts in lines if line.for_labels][channel])

    def feature_count(self, channel: int) -> int:
        return len(self.feature_names(channel))

    def own_channel(self) -> int:
        raise DataError("pair_features with a template: define features of label pairs by its lines B…")

    def vocabularies(self) -> list[list[str]]:
        return [list(vocabulary) for vocabulary in self._vocabularies]

    def restore(self, vocabularies: list[list[str]], observations: Kind) -> None:
        if len(vocabularies) != len(self._vocabularies):
            raise DataError("a template has one vocabulary per line")
        if observations.name not in _KINDS:
            raise DataError(f"its observations are {observations}, but a template needs columns of text")
        self._check_columns(observations)
        self._vocabularies = [{name: i for i, name in enumerate(names)} for names in vocabularies]
        self.observations = observations

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        if not corpus.is_chain:
            raise DataError(
                f"structure 0 is a {corpus.shape}, but a template needs a sequence; use a feature set"
            )
        cells = self._columns(corpus)
        lines, channels = self.template.lines, []
        for i, line in enumerate(lines):
            numbers, texts = _expand(line, cells, corpus)
            ids = number_texts(texts, self._vocabularies[i], learn)
            channels.append(Channel(line.name, i, ids[numbers]))
        tables: list[Table] = [TextTable(len(vocabulary)) for vocabulary in self._vocabularies]
        of_labels = [channel for channel, line in zip(channels, lines, strict=True) if line.for_labels]
        of_pairs = [channel for channel, line in zip(channels, lines, strict=True) if line.for_pairs]
        return Encoded(corpus, tables, of_labels, of_pairs)

    def _columns(self, corpus: Corpus) -> list[list[str]]:
        """The cells of all types, column by column."""
        if corpus.kind.name not in _KINDS:
            raise DataError(
                f"{corpus.place(0)} is {corpus.kind}, but a template needs columns of text; give strings or "
                "tuples of strings"
            )
        self._check_columns(corpus.kind)
        rows = [(x,) if isinstance(x, str) else tuple(map(str, x)) for x in corpus.observations]
        return [list(column) for column in zip(*rows, strict=True)]

    def _check_columns(self, observations: Kind) -> None:
        """Raise DataError for a template that uses a column which observations do not have."""
        count = observations.size or 1
        for line in self.template.lines:
            for macro in line.macros:
                if macro.column >= count:
                    raise DataError(
                        f"{self.template.name}:{line.number}: uses column {macro.column} (from 0), but "
                        f"observations have {count}; correct the line, or give more columns"
                    )


def _expand(line: Line, cells: list[list[str]], corpus: Corpus) -> tuple[np.ndarray, list[str]]:
    """For each node the index of its text by a template line, and the texts."""
    parts = []
    for macro, tail in zip(line.macros, line.texts[1:], strict=True):
        rows, values = _cells_at(macro, cells[macro.column], corpus)
        parts.append((rows, [value + tail for value in values]))
    numbers, texts = joined_texts(parts, corpus.size)
    return numbers, [line.texts[0] + text for text in texts]


def _cells_at(macro: Macro, column: list[str], corpus: Corpus) -> tuple[np.ndarray, list[str]]:
    """For each node the index of the cell that the macro reads, and the distinct cells."""
    distinct: dict[str, int] = {}
    of_type = np.array([distinct.setdefault(macro.apply(cell), len(distinct)) for cell in column])
    position = np.arange(corpus.size) + macro.offset
    first = np.repeat(corpus.offsets[:-1], np.diff(corpus.offsets))
    last = np.repeat(corpus.offsets[1:], np.diff(corpus.offsets)) - 1
    rows = of_type[corpus.types[np.clip(position, first, last)]]
    beyond = np.where(position < first, position - first, np.where(position > last, position - last, 0))
    for step in np.unique(beyond[beyond != 0]).tolist():
        rows[beyond == step] = distinct.setdefault(macro.apply(macro.past(step)), len(distinct))
    return rows, list(distinct)
