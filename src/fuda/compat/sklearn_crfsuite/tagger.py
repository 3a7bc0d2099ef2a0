"""A fitted model behind the interface of python-crfsuite's Tagger."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fuda.compat import crfsuite
from fuda.compat.sklearn_crfsuite.items import Vocabulary
from fuda.data.graph import Graph
from fuda.inference import log_partition, marginals, viterbi
from fuda.models.crf import CRF
from fuda.models.explained.named_weights import named


class Info(NamedTuple):
    """The content of a model.

    Attributes
    ----------
    header : dict
        The entries of CRFsuite's file header that count something.
    labels, attributes : dict
        From names to numbers.
    transitions, state_features : dict
        Weights by pairs of labels, and of attribute and label; those that are not 0.
    """

    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    transitions: dict[tuple[str, str], float]
    state_features: dict[tuple[str, str], float]


class Tagger:
    """A model, and the sequence that it was last given.

    Parameters
    ----------
    model : CRF
        A fitted model whose observations are attributes.
    """

    def __init__(self, model: CRF) -> None:
        self.model = model
        self._labels = list(model.classes_)
        names, L = model.encoder_.feature_names(0), len(self._labels)
        self._vocabulary = Vocabulary(names)
        self._weights = model.weights_[: len(names) * L].reshape(-1, L)
        self._sequence: list[Any] = []

    def predict(self, X: Iterable[Any]) -> list[list[str]]:
        """Return the best labels of sequences of items."""
        numbers, bounds = self._solve(X, viterbi)
        names = list(map(self._labels.__getitem__, numbers.tolist()))
        return [names[a:b] for a, b in pairwise(bounds)]

    def marginals(self, X: Iterable[Any]) -> list[list[dict[str, float]]]:
        """Return the probabilities of labels at the items of sequences."""
        probabilities, bounds = self._solve(X, lambda *problem: marginals(*problem)[1:])
        rows = [dict(zip(self._labels, row, strict=True)) for row in probabilities.tolist()]
        return [rows[a:b] for a, b in pairwise(bounds)]

    def _solve(self, X: Iterable[Any], solve: Callable[..., Any]) -> tuple[np.ndarray, list[int]]:
        """The first result of a function of graph, scores and transitions; sequences' bounds."""
        matrix, offsets = self._vocabulary.rows(X)
        if not offsets[-1]:
            return np.empty(0), offsets.tolist()
        graph = Graph.of_chains(np.unique(offsets))  # without empty sequences
        solution = solve(graph, np.asarray(matrix @ self._weights), self.model.transitions_)
        return solution[0], offsets.tolist()

    def labels(self) -> list[str]:
        """Return the labels."""
        return list(self._labels)

    def set(self, xseq: Iterable[Any]) -> None:
        """Take a sequence of items for further calls."""
        self._sequence = list(xseq)

    def tag(self, xseq: Iterable[Any] | None = None) -> list[str]:
        """Return the best labels of a sequence, by default of the last one."""
        if xseq is not None:
            self.set(xseq)
        return self.predict([self._sequence])[0]

    def probability(self, yseq: Iterable[str]) -> float:
        """Return the probability of the labels of the last sequence."""
        numbers = list(map(self._labels.index, yseq))
        matrix, offsets = self._vocabulary.rows([self._sequence])
        scores, pairs = np.asarray(matrix @ self._weights), self.model.transitions_
        total = scores[np.arange(len(scores)), numbers].sum() + pairs[numbers[:-1], numbers[1:]].sum()
        return float(np.exp(total - log_partition(Graph.of_chains(offsets), scores, pairs)[0]))

    def marginal(self, y: str, pos: int) -> float:
        """Return the probability of a label at a position of the last sequence."""
        return self.marginals([self._sequence])[0][pos][y]

    def info(self) -> Info:
        """Return the content of the model."""
        model, names, labels = self.model, list(self._vocabulary.numbers), self._labels
        header = {
            "size": str(len(crfsuite.dump(model))),
            "num_labels": str(len(labels)),
            "num_attrs": str(len(names)),
        }
        return Info(
            header,
            {label: str(k) for k, label in enumerate(labels)},
            {name: str(k) for k, name in enumerate(names)},
            named(model.transitions_, labels, labels),
            named(self._weights, names, labels),
        )

    def dump(self, filename: str | Path | None = None) -> None:
        """Write the content of the model as text, by default to standard output."""
        info = self.info()
        parts = {"FILEHEADER": info.header, "LABELS": _swapped(info.labels)}
        parts |= {"ATTRIBUTES": _swapped(info.attributes)}
        lines = []
        for title, entries in parts.items():
            lines += [f"{title} = {{", *(f"  {name}: {value}" for name, value in entries.items()), "}", ""]
        weights = {"TRANSITIONS": (1, info.transitions), "STATE_FEATURES": (0, info.state_features)}
        for title, (kind, features) in weights.items():
            pairs = (f"  ({kind}) {a} --> {b}: {weight:.6f}" for (a, b), weight in features.items())
            lines += [f"{title} = {{", *pairs, "}", ""]
        text = "\n".join(lines) + "\n"
        if filename is None:
            sys.stdout.write(text)
        else:
            Path(filename).write_text(text, encoding="utf-8")

    def close(self) -> None:
        """Forget the last sequence."""
        self._sequence = []


def _swapped(numbers: dict[str, str]) -> dict[str, str]:
    return {number: name for name, number in numbers.items()}
