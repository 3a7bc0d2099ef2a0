"""A fitted model behind the interface of python-crfsuite's Tagger."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fuda.compat import crfsuite
from fuda.compat.sklearn_crfsuite.items import attributes
from fuda.models.crf import CRF


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
    """A model and the sequence that it was last given.

    Parameters
    ----------
    model : CRF
        A fitted model whose observations are attributes.
    """

    def __init__(self, model: CRF) -> None:
        self.model = model
        self._sequence: list[Any] = []

    def labels(self) -> list[str]:
        """Return the labels."""
        return list(self.model.classes_)

    def set(self, xseq: Iterable[Any]) -> None:
        """Take a sequence of items for further calls."""
        self._sequence = attributes(xseq)

    def tag(self, xseq: Iterable[Any] | None = None) -> list[str]:
        """Return the best labels of a sequence, by default of the last one."""
        if xseq is not None:
            self.set(xseq)
        return self.model.predict([self._sequence])[0] if self._sequence else []

    def probability(self, yseq: Iterable[str]) -> float:
        """Return the probability of the labels of the last sequence."""
        objective = self.model.objective([self._sequence], [list(yseq)])
        weights, fitted = self.model.weights_, self.model._fitted_params
        return float(np.exp(fitted["l2"] * float(weights @ weights) - objective))

    def marginal(self, y: str, pos: int) -> float:
        """Return the probability of a label at a position of the last sequence."""
        return float(self.marginals()[pos, self.labels().index(y)])

    def marginals(self) -> np.ndarray:
        """Return the probabilities of all labels at all positions of the last sequence."""
        return self.model.predict_marginals([self._sequence])[0]

    def info(self) -> Info:
        """Return the content of the model."""
        model, names = self.model, self.model.encoder_.feature_names(0)
        labels = list(map(str, model.classes_))
        state = model.weights_[: len(names) * len(labels)].reshape(-1, len(labels))
        header = {
            "size": str(len(crfsuite.dump(model))),
            "num_labels": str(len(labels)),
            "num_attrs": str(len(names)),
        }
        return Info(
            header,
            {label: str(k) for k, label in enumerate(labels)},
            {name: str(k) for k, name in enumerate(names)},
            _named(model.transitions_, labels, labels),
            _named(state, names, labels),
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
            named = (f"  ({kind}) {a} --> {b}: {weight:.6f}" for (a, b), weight in features.items())
            lines += [f"{title} = {{", *named, "}", ""]
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


def _named(weights: np.ndarray, rows: list[str], columns: list[str]) -> dict[tuple[str, str], float]:
    """The weights that are not 0, by the names of row and column."""
    found = zip(*np.nonzero(weights), strict=True)
    return {(rows[a], columns[b]): float(weights[a, b]) for a, b in found}
