"""A fitted `CRF` of the labels, features and weights of another program's model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fuda.errors import DataError, ModelFileError, short
from fuda.features.templates import Template
from fuda.files import read_bytes
from fuda.models.crf import CRF
from fuda.storage.models import build

# A file without the weights that are 0 is smaller than the table of all, but not by any factor:
# else a small file that names many labels and features would take all memory.
_MOST_WEIGHTS, _OF_ANY_FILE, _PER_BYTE = 1 << 28, 1 << 24, 64


def read_model(path: str | Path) -> bytes:
    """Return the content of a model file, unzipped; ModelFileError if it cannot be read."""
    try:
        return read_bytes(path)
    except DataError as error:
        raise ModelFileError(str(error)) from None


def check_names(names: list[str], what: str) -> list[str]:
    """Return names; ModelFileError where one is empty or given twice."""
    earlier: set[str] = set()
    for name in names:
        if not name or name in earlier:
            raise ModelFileError(f"the {what} {short(name)} is {'given twice' if name else 'empty'}")
        earlier.add(name)
    return names


def check_size(size: int, labels: int, features: int, pair_features: int = 1) -> None:
    """Raise ModelFileError if a model has more weights than a file of `size` bytes may."""
    if not labels:
        raise ModelFileError("it has no labels")
    count = labels * features + labels * labels * pair_features
    most = min(_MOST_WEIGHTS, max(_OF_ANY_FILE, _PER_BYTE * size))
    if count > most:
        raise ModelFileError(f"it has room for {count:,} weights, more than {most:,} in {size:,} bytes")


def finite(weights: np.ndarray) -> np.ndarray:
    """Return weights; ModelFileError where one is not a finite number."""
    if not np.isfinite(weights).all():
        raise ModelFileError("one of its weights is not a finite number")
    return weights


def make_crf(
    path: str | Path,
    labels: list[str],
    vocabularies: list[list[str]],
    weights: np.ndarray,
    template: dict[str, Any] | None = None,
    columns: int = 1,
) -> CRF:
    """Make a fitted CRF on sequences.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    labels : list of str
        The labels, in the order that weights have.
    vocabularies : list of list of str
        The features, of each line of the template if there is one.
    weights : ndarray
        The weights: of features, of label pairs, of features with label pairs.
    template : dict, optional
        A template, as model files have it. By default observations are collections of features.
    columns : int, default=1
        The number of columns that the template reads.

    Returns
    -------
    CRF
        The model.
    """
    parameters: dict[str, Any] = {"window": 0}
    observations: dict[str, Any] = {"kind": "features", "size": 0}
    if template is not None:
        observations = {"kind": "columns", "size": columns} if columns > 1 else {"kind": "text", "size": 0}
        parameters |= {"features": template}
    meta = {
        "class": "CRF",
        "class_version": 1,
        "parameters": parameters,
        "labels": labels,
        "shape": "sequence",
        "observations": observations,
    }
    model: CRF = build(path, meta, vocabularies, {"weights": weights})
    return model


def make_template_crf(
    path: str | Path, labels: list[str], template: Template, columns: int, weights: dict[str, np.ndarray]
) -> CRF:
    """Make a fitted CRF of the weights of texts that a template expands to.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    labels : list of str
        The labels, in the order that weights have.
    template : Template
        The template.
    columns : int
        The number of columns of tokens.
    weights : dict of ndarray
        Of each text the weights: of labels (L), of label pairs (L²), or of both (L + L²).

    Returns
    -------
    CRF
        The model.
    """
    L, lines = len(check_names(labels, "label")), template.lines
    vocabularies = _by_prefix([line.texts[0] for line in lines], weights)
    singles = sum(len(texts) for texts, line in zip(vocabularies, lines, strict=True) if line.for_labels)
    pairs = sum(len(texts) for texts, line in zip(vocabularies, lines, strict=True) if line.for_pairs)
    size = sum(vector.nbytes for vector in weights.values())
    check_size(size, L, singles, pairs + 1)
    transitions = np.zeros(L * L)
    for text in template.text.split("\n"):
        line = text[:1].lower() + text[1:] if template.wapiti else text
        if line[:1] in ("b", "B", "*") and "%" not in line and line in weights:
            transitions += weights[line][-L * L :]
    by_label = [weights[text][:L] for texts, line in zip(vocabularies, lines, strict=True)
                for text in texts if line.for_labels]  # fmt: skip
    by_pair = [weights[text][-L * L :] for texts, line in zip(vocabularies, lines, strict=True)
               for text in texts if line.for_pairs]  # fmt: skip
    vector = np.concatenate([*by_label, transitions, *by_pair])
    stored = {"template": template.text, "name": template.name, "wapiti": template.wapiti}
    return make_crf(path, labels, vocabularies, finite(vector), stored, columns)


def _by_prefix(prefixes: list[str], texts: Iterable[str]) -> list[list[str]]:
    """For each prefix the texts that begin with it: all that a template line may expand to.

    A text that fits several lines stands for all of them, as in the programs, where these lines
    share its weights.
    """
    of_prefix: dict[str, list[list[str]]] = {}
    vocabularies: list[list[str]] = [[] for _ in prefixes]
    for prefix, vocabulary in zip(prefixes, vocabularies, strict=True):
        of_prefix.setdefault(prefix, []).append(vocabulary)
    lengths = sorted({len(prefix) for prefix in prefixes})
    for text in texts:
        for length in lengths:
            for vocabulary in of_prefix.get(text[:length], ()) if length <= len(text) else ():
                vocabulary.append(text)
    return vocabularies
