"""The epochs of a perceptron, which can be continued after any of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import count_in, split_prefix
from fuda.errors import DataError
from fuda.runtime.estimators import check_random_state
from fuda.runtime.interrupts import is_inner
from fuda.runtime.randomness import restore_random, stored_random
from fuda.training.perceptron import Dual, Mistakes, Pass, PerceptronLearner, State, new_pass
from fuda.training.voted_perceptron import Correction, pack_corrections, unpack_corrections

Array = np.ndarray


def unpack_mistakes(array: Array | None) -> list[Mistakes]:
    """Convert an array of a file to mistakes; raise DataError where it holds none."""
    if array is None or array.ndim != 2 or array.shape[1] != 2 or array.dtype != np.int64:
        raise DataError("its list of mistakes is missing, or is not a list of pairs of numbers")
    return [Mistakes(*row) for row in array.tolist()]


class Epochs:
    """A perceptron that learns epoch by epoch from the structures whose weight is not 0.

    Parameters
    ----------
    learner : PerceptronLearner
        The perceptron.
    shuffle : bool
        Whether structures are visited in a new random order in every epoch.
    seed : int, RandomState or None
        Determines the orders.
    changes : list of Correction, or None
        Earlier corrections, to which those made here are added; None to keep none.

    Attributes
    ----------
    mistakes : list of Mistakes
        The mistakes of the epochs so far; always replaced as a whole, as `changes` are.
    """

    def __init__(
        self,
        learner: PerceptronLearner,
        shuffle: bool,
        seed: int | np.random.RandomState | None,
        changes: list[Correction] | None,
    ) -> None:
        self.learner, self.examples, self.shuffle, self.changes = learner, learner.examples, shuffle, changes
        self.random, self.structures = check_random_state(seed), np.flatnonzero(learner.examples.eta)
        self.mistakes: list[Mistakes] = []
        self._begun: tuple[int, Array, int, Pass] | None = None  # the last epoch: see `run`
        self._kept: State | None = None  # after it, where an interrupt may come within a structure

    @property
    def is_perfect(self) -> bool:
        """Whether the last epoch was without a mistake."""
        return bool(self.mistakes) and not self.mistakes[-1].nodes

    def run(self) -> Pass:
        """Learn for one more epoch, and return what was found in it."""
        order = self.random.permutation(self.structures) if self.shuffle else self.structures
        found = new_pass(self.examples)
        self._begun = len(self.mistakes), order, self.learner.steps, found
        self.learner.run(order, found)
        self._note_epoch(order, self._begun[2], found)
        return found

    def end_epoch(self) -> bool:
        """Bring the epoch that an interrupt left to its end, or undo it.

        Returns
        -------
        bool
            Whether an epoch has been learned.
        """
        if not self.learner.is_compiled:
            if self._kept is not None:
                self.learner.state = self._kept
            return self._kept is not None
        if self._begun is not None and self._begun[0] == len(self.mistakes):
            _, order, steps, found = self._begun
            if done := self.learner.steps - steps:
                self.learner.run(order[done:], found)
                self._note_epoch(order, steps, found)
        return bool(self.mistakes)

    def _note_epoch(self, order: Array, steps: int, found: Pass) -> None:
        """Note what was found in an epoch that came after so many steps."""
        mistakes = Mistakes(int((found.mistaken > 0).sum()), int(found.mistaken.sum()))
        if self.changes is not None:
            self.changes = [*self.changes, *self._corrections(found, order, steps)]
        self.mistakes = [*self.mistakes, mistakes]
        self._keep()

    def _keep(self) -> None:
        """Keep the state if an interrupt may make that necessary."""
        if not self.learner.is_compiled and not is_inner():
            self._kept = self.learner.state.copy()

    def _corrections(self, found: Pass, order: Array, steps: int) -> list[Correction]:
        """The corrections of a pass that came after so many steps."""
        corrections, offsets, eta = [], self.examples.offsets, self.examples.eta
        for step, i in enumerate(order.tolist(), start=steps + 1):
            if found.mistaken[i]:
                nodes = slice(*offsets[i : i + 2])
                labels = found.targets[nodes], found.predicted[nodes]
                corrections.append(Correction(i, step, float(eta[i]), *labels))
        return corrections

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what the next epoch depends on."""
        arrays = self.learner.state.arrays() | {"random": stored_random(self.random)}
        arrays["mistakes"] = np.array(self.mistakes, dtype=np.int64).reshape(-1, 2)
        if isinstance(self.learner, Dual):
            arrays |= {f"scores_{name}": array for name, array in self.learner.scores.state().items()}
        if self.changes is not None:
            arrays |= {f"change_{name}": array for name, array in pack_corrections(self.changes).items()}
        return {"epochs": len(self.mistakes)}, arrays

    def restore(self, values: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        learner, examples = self.learner, self.examples
        changes, arrays = split_prefix(arrays, "change_")
        mistakes = unpack_mistakes(arrays.pop("mistakes", None))
        if len(mistakes) != count_in(values, "epochs"):
            raise DataError(f"its array 'mistakes' is of {len(mistakes)} epochs, not {values['epochs']}")
        of_scores, arrays = split_prefix(arrays, "scores_")
        random = arrays.pop("random", np.empty(0))
        state = State.of(arrays, len(learner.state.nodes), examples.order, examples.label_count)
        if self.changes is not None:
            sizes = np.diff(examples.offsets).tolist()
            last = int(state.steps[0])
            self.changes = unpack_corrections(changes, sizes, examples.label_count, last)
        if len(state.variances) != len(learner.state.variances):
            raise DataError("its array 'variances' is missing, or is not needed")
        restore_random(self.random, random)
        learner.restore(state)
        if isinstance(learner, Dual):
            learner.scores.restore(of_scores)
        self.mistakes = mistakes
        if mistakes:
            self._keep()
