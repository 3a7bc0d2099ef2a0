"""Encoding by a template: each line is one channel, over the distinct texts that the line expands to."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.encoding import Channel, Encoded, Encoder
from fuda.data.observations import Kind
from fuda.data.tables import Joined, Table, TextTable, number_texts
from fuda.errors import DataError
from fuda.features.templates import Line, Macro, Template


class TemplateEncoder(Encoder):
    """One channel a template line, over the columns of sequences."""

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
        line = [i for i, line in enumerate(self.template.lines) if line.for_pairs][channel]
        return list(self._vocabularies[line])

    def feature_names(self, channel: int) -> list[str]:
        lines = [i for i, line in enumerate(self.template.lines) if line.for_labels]
        return list(self._vocabularies[lines[channel]])

    def feature_count(self, channel: int) -> int:
        return len(self.feature_names(channel))

    def own_channel(self) -> int:
        raise DataError("pair_features with a template: say by lines B… what the features of label pairs are")

    def vocabularies(self) -> list[list[str]]:
        return [list(vocabulary) for vocabulary in self._vocabularies]

    def restore(self, vocabularies: list[list[str]], observations: Kind) -> None:
        if len(vocabularies) != len(self._vocabularies):
            raise DataError("a template has one vocabulary a line")
        self._vocabularies = [{name: i for i, name in enumerate(names)} for names in vocabularies]
        self.observations = observations

    def _encode(self, corpus: Corpus, learn: bool) -> Encoded:
        if not corpus.is_chain:
            raise DataError(
                f"structure 0 is a {corpus.shape}, but a template reads along a sequence; use a feature set "
                "and window="
            )
        cells = self._columns(corpus)
        tables: list[Table] = []
        channels: list[Channel] = []
        edge_channels: list[Channel] = []
        for i, line in enumerate(self.template.lines):
            numbers, texts = _expand(line, cells, corpus)
            ids = number_texts(texts, self._vocabularies[i], learn)
            tables.append(TextTable(len(self._vocabularies[i])))
            channel = Channel(line.name, i, ids[numbers])
            if line.for_labels:
                channels.append(channel)
            if line.for_pairs:
                edge_channels.append(channel)
        return Encoded(corpus, tables, channels, edge_channels)

    def _columns(self, corpus: Corpus) -> list[list[str]]:
        """Column by column, the cell of each type."""
        if corpus.kind.name not in ("text", "columns"):
            raise DataError(
                f"{corpus.place(0)} is {corpus.kind}, but a template reads columns of text; give strings or "
                "tuples of strings"
            )
        rows = [(x,) if isinstance(x, str) else tuple(map(str, x)) for x in corpus.observations]
        for line in self.template.lines:
            for macro in line.macros:
                if macro.column >= len(rows[0]):
                    raise DataError(
                        f"{self.template.name}:{line.number}: asks for column {macro.column} (from 0), but "
                        f"observations have {len(rows[0])}; correct the line, or give more columns"
                    )
        return [list(column) for column in zip(*rows, strict=True)]


def _expand(line: Line, cells: list[list[str]], corpus: Corpus) -> tuple[np.ndarray, list[str]]:
    """For each node the number of the text that the line gives there, and the texts."""
    parts = []
    for macro, tail in zip(line.macros, line.texts[1:], strict=True):
        rows, values = _cells_at(macro, cells[macro.column], corpus)
        parts.append((rows, [value + tail for value in values]))
    together = Joined(parts, corpus.size)
    return together.numbers, [line.texts[0] + text for text in together.texts("")]


def _cells_at(macro: Macro, column: list[str], corpus: Corpus) -> tuple[np.ndarray, list[str]]:
    """For each node the number of the cell that the macro reads, and the distinct cells."""
    distinct: dict[str, int] = {}
    of_type = np.array([distinct.setdefault(macro.apply(cell), len(distinct)) for cell in column])
    position = np.arange(corpus.size) + macro.offset
    first = np.repeat(corpus.offsets[:-1], np.diff(corpus.offsets))
    last = np.repeat(corpus.offsets[1:], np.diff(corpus.offsets)) - 1
    rows = of_type[corpus.types[np.clip(position, first, last)]]
    beyond = np.where(position < first, position - first, np.where(position > last, position - last, 0))
    for step in np.unique(beyond[beyond != 0]).tolist():
        rows[beyond == step] = distinct.setdefault(macro.apply(f"{macro.mark}{step:+d}"), len(distinct))
    return rows, list(distinct)
