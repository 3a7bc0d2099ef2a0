"""The learners that a person may choose for a page.

Models are imported when they are used, in the background: the page answers before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fuda.data.structures import Structure


class Learner(NamedTuple):
    """A learner by name, up to how many structures it is worth the time to refit it, and features.

    `features` is the name of a feature set; by default it is chosen by what the data are.
    """

    name: str
    text: str
    refitted_up_to: int
    features: str | None = None

    @property
    def key(self) -> str:
        """The name under which snapshots are kept."""
        return self.name if self.features is None else f"{self.name} {self.features}"


KERNEL = Learner(
    "kernel", "Compares sentences, and shows which of them support a label; slower with every sentence", 400
)
LINEAR = Learner(
    "crf",
    "A conditional random field: weighs features of words; mostly better, for any number of sentences",
    20_000,
)
GIVEN = Learner("given", "The model given with --model", 0)

BY_DATA = "auto"
_WORDS = {
    BY_DATA: "Chosen by what the data are",
    "text": "Words, how they begin and end, capitals, digits and signs in them",
    "spelling": "Words, capitals, digits and signs in them",
    "word": "Words alone",
}
_LETTERS = {
    BY_DATA: _WORDS[BY_DATA],
    "protein": "Residues and their classes",
    "dna": "Bases and their classes",
    "word": "Letters alone",
}


def learners_of(shape: str, has_given_model: bool) -> list[Learner]:
    """Return the learners for structures of a shape; of a model that was given, only itself."""
    if has_given_model:
        return [GIVEN]
    return [KERNEL] if shape == "dag" else [LINEAR, KERNEL]


def feature_sets_of(structure: Structure, has_given_model: bool) -> dict[str, str]:
    """Return the feature sets to choose from, by name, for such data; none for a given model."""
    kinds = {type(observation) for observation in structure.observations}
    if has_given_model or not kinds <= {str, tuple}:
        return {}
    return _LETTERS if all(len(observation) == 1 for observation in structure.observations) else _WORDS


def new_estimator(
    learner: Learner, sample: Sequence[Structure], scheme: str | None, labelled: int = 0
) -> Any:
    """Return an estimator for such structures, not fitted.

    Parameters
    ----------
    learner : Learner
        Which.
    sample : list of structures
        Some of the structures.
    scheme : str or None
        The scheme of the labels.
    labelled : int
        How many structures it will be fitted to.

    Returns
    -------
    Labeler
        The estimator.
    """
    from fuda.active import learner_for

    is_kernel = learner.name == KERNEL.name
    return learner_for(list(sample), scheme, kernel=is_kernel, labelled=labelled, features=learner.features)


def to_bytes(model: Any) -> bytes:
    """Return the file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fuda"
        model.save(path)
        return path.read_bytes()


def from_bytes(content: bytes) -> Any:
    """Return the model of a file."""
    from fuda.storage.models import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fuda"
        path.write_bytes(content)
        return load(path)
