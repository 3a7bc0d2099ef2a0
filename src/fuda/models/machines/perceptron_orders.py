"""The perceptrons of a model, which visit structures in different orders and are averaged."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from fuda.checks import check_arrays, count_in, split_prefix
from fuda.errors import DataError
from fuda.marginalized.engines import Engine, PerceptronState, PlannedTraining
from fuda.runtime.estimators import check_random_state
from fuda.runtime.randomness import restore_random, stored_random

Array = np.ndarray
Model = Any  # a `MarginalizedPerceptron`, which imports this module


def planned_trainings(model: Model, parts: list[Array], count: int) -> list[PlannedTraining]:
    """Plan the perceptrons of several trainings, one after another, if none of them ends early.

    Parameters
    ----------
    model : MarginalizedPerceptron
        The model; the state of its random numbers does not change.
    parts : list of arrays
        The structures of each training.
    count : int
        The number of perceptrons of each training.

    Returns
    -------
    list of PlannedTraining
        All perceptrons of the first part, then those of the next.
    """
    seed, planned = model.random_state, []
    if not isinstance(seed, int):
        seed = deepcopy(check_random_state(seed))
    for members in parts:
        random = check_random_state(seed)
        for number in range(count):
            order, visits = np.arange(len(members)), []
            for _ in range(model.epochs):
                order = random.permutation(order) if number else order
                visits.append(order)
            planned.append(PlannedTraining(members, visits))
    return planned


class Perceptrons:
    """The perceptrons of a model, trained one after another; any epoch can be continued from.

    `alpha` is the mean over the perceptrons that are completed, and after an interrupt over the
    current one too. Each perceptron has an engine, or the first engine creates the others.
    """

    def __init__(self, model: Model, engines: list[Engine], alpha: Array) -> None:
        self.model, self._engines, self.engine, self.alpha = model, engines, engines[0], alpha
        self.random, self.number = check_random_state(model.random_state), 0
        model.n_iter_, model.mistakes_ = 0, []
        self._begin()

    def _begin(self) -> None:
        """Initialize the state of a perceptron before its first epoch."""
        self.visits = np.arange(len(self.engine.problem.targets.sizes))
        self.mistakes: list[int] = []
        self.perceptron = PerceptronState(np.zeros((2, *self.alpha.shape)))

    def begin_next(self) -> None:
        """Begin with the next perceptron, if there is one."""
        self.number += 1
        if self.number < self.model.orders_:
            self._select_engine()
            self._begin()

    def _select_engine(self) -> None:
        """Select the engine of the current perceptron."""
        if self.number < len(self._engines):
            self.engine = self._engines[self.number]
        else:
            self.engine = self.engine.for_targets(self.engine.problem)

    @property
    def has_next_epoch(self) -> bool:
        """Whether the current perceptron has another epoch."""
        return len(self.mistakes) < self.model.epochs and (not self.mistakes or bool(self.mistakes[-1]))

    def run_epoch(self, labels: Array, amounts: Array) -> None:
        """Run one more epoch: in the order of the data, or shuffled after the first perceptron."""
        if self.number:
            self.visits = self.random.permutation(self.visits)
        mistakes = self.engine.perceptron_epoch(self.visits, labels, amounts, self.perceptron)
        self.mistakes = [*self.mistakes, mistakes]
        if not self.number:
            self.model.mistakes_ = self.mistakes
        self.model.n_iter_ += 1

    def mean(self) -> Array:
        """The mean over the completed perceptrons and the current one."""
        return self.alpha + (self.perceptron.alpha(self.model.average) - self.alpha) / (self.number + 1)

    def return_to(self, alpha: Array, epochs: int) -> None:
        """Return to the mean after a number of epochs, and end the training there."""
        self.alpha[:], self.model.n_iter_, self.number = alpha, epochs, self.model.orders_
        self.model.mistakes_ = self.model.mistakes_[:epochs]

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what the next epoch depends on; a `final` state has the mean alone."""
        number, perceptron = self.model.orders_ if final else self.number, self.perceptron
        arrays = {"alpha": self.alpha, "random": stored_random(self.random)}
        arrays |= {"first_mistakes": np.array(self.model.mistakes_, dtype=np.int64)}
        values = {"number": number, "epochs": self.model.n_iter_, "steps": perceptron.steps}
        values |= {"first_epochs": len(self.model.mistakes_), "own_epochs": len(self.mistakes)}
        if number < self.model.orders_:
            arrays |= {"sums": perceptron.sums, "mistakes": np.array(self.mistakes, dtype=np.int64)}
            arrays |= {f"engine_{name}": array for name, array in self.engine.state().items()}
        return values, arrays

    def restore(self, values: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Continue from a `state()`; raises DataError where it does not fit this problem."""
        number, epochs, steps = (count_in(values, name) for name in ("number", "epochs", "steps"))
        if number > self.model.orders_:
            raise DataError(f"it has ended {number} perceptrons, and there are {self.model.orders_}")
        engine_arrays, arrays = split_prefix(arrays, "engine_")
        random = arrays.pop("random", np.empty(0))
        shapes = {"alpha": self.alpha.shape, "first_mistakes": (count_in(values, "first_epochs"),)}
        if number < self.model.orders_:
            shapes |= {"sums": self.perceptron.sums.shape, "mistakes": (count_in(values, "own_epochs"),)}
        check_arrays(arrays, shapes, dict.fromkeys(("first_mistakes", "mistakes"), np.int64))
        restore_random(self.random, random)
        self.number = number
        if number < self.model.orders_:
            self._select_engine()
            self.engine.restore(engine_arrays)
            self.visits, self.mistakes = engine_arrays["visits"].copy(), arrays["mistakes"].tolist()
            self.perceptron = PerceptronState(arrays["sums"].copy(), steps)
        self.alpha[:], self.model.n_iter_ = arrays["alpha"], epochs
        self.model.mistakes_ = arrays["first_mistakes"].tolist()
