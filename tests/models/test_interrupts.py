"""Ctrl-C at every step of a training: a model is fitted or not fitted, never half.

Every function and method of the package is wrapped, so that a KeyboardInterrupt can be raised just
before or just after any call of a run, the moment chosen by its number. Runs are on one thread, so
that the numbers mean the same in every run.
"""

import inspect
import subprocess
import sys
import warnings
from copy import copy
from functools import partial, wraps
from types import FunctionType

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import fuda
from fuda import (
    CRF,
    HMM,
    HMSVM,
    MEMM,
    HMPerceptron,
    MarginalizedPerceptron,
    MarginalizedSVM,
    Reranker,
    SemiCRF,
)
from fuda.kernels import RBF
from fuda.marginalized.engines.cpu.engine import CpuEngine

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "and", "Ana", "sing"]]
Y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"], ["PER", "O", "PER", "O"]]
OTHER_X, OTHER_Y = [["q", "r"], ["r", "q", "q"]], [["1", "2"], ["2", "1", "1"]]
MORE_X, MORE_Y = [["Zoe", "and", "Ana"], ["new", "words"]], [["PER", "O", "PER"], ["LOC", "LOC"]]

MARGINALIZED = {"features": "word", "epochs": 2, "n_jobs": 1}
LEARNERS = {
    "HMM": HMM(),
    "MEMM": MEMM(features="word", n_jobs=1),
    "SemiCRF": SemiCRF(features="word", n_jobs=1),
    "CRF": CRF(features="word", n_jobs=1),
    "CRF, l1": CRF(features="word", l1=0.1, n_jobs=1),
    "CRF, cg": CRF(features="word", solver="cg", n_jobs=1),
    "CRF, sgd": CRF(features="word", solver="sgd", random_state=0, n_jobs=1),
    "CRF, warm": CRF(features="word", warm_start=True, n_jobs=1),
    "primal": HMPerceptron(n_jobs=1),
    "voted": HMPerceptron(average="voted", n_jobs=1),
    "dual": HMPerceptron(kernel=RBF(0.1), features="word", n_jobs=1),
    "dual, voted": HMPerceptron(kernel=RBF(0.1), average="voted", features="word", n_jobs=1),
    "HMSVM": HMSVM(kernel=RBF(0.1), features="word", max_iter=4, n_jobs=1),
    "HMSVM, no slack": HMSVM(slack=None, features="word", n_jobs=1),
    "marginalized": MarginalizedPerceptron(**MARGINALIZED, orders=2),
    "marginalized, prior": MarginalizedPerceptron(
        **MARGINALIZED, orders=1, decode="viterbi", prior=CRF(features="word", max_iter=5, n_jobs=1)
    ),
    "marginalized SVM": MarginalizedSVM(**MARGINALIZED, tol=0.5),
    "reranker": Reranker(CRF(features="word", max_iter=5, n_jobs=1), folds=2, features="word", n_jobs=1),
}
GOING_ON = ("primal", "voted", "dual", "dual, voted", "marginalized")
MOMENTS = 10  # of each training, out of some hundreds or thousands
# What must not begin after an interrupt. An iteration that is running may end.
LEARNING = {
    "_fit",
    "_learn",
    "_run",
    "minimize",
    "improve",
    "perceptron_epoch",
    "margin_epoch",
    "_correct",
}
# An interrupt after these comes when all is done.
DONE = {"_adopt_state", "_fit_encoded", "fit", "partial_fit"}


class Steps:
    """Counts the calls of the package's functions and raises KeyboardInterrupt at call `at`."""

    def __init__(self) -> None:
        self.start(None)

    def start(self, at):
        self.at, self.count, self.after = at, 0, []

    def step(self, name):
        if self.at is not None and self.count > self.at:
            self.after.append(name)
        self.count += 1
        if self.count - 1 == self.at:
            raise KeyboardInterrupt

    def wrapped(self, function):
        @wraps(function)
        def call(*args, **kwargs):
            self.step(function.__name__)
            result = function(*args, **kwargs)
            self.step("")
            return result

        return call


@pytest.fixture
def steps():
    counter, patch, known, names = Steps(), pytest.MonkeyPatch(), {}, set()
    modules = {name: m for name, m in sys.modules.items() if name.split(".")[0] == "fuda"}
    # Functions are compiled on their first call only, and calls would have other
    # numbers after that.
    modules = {
        name: m
        for name, m in modules.items()
        if name not in ("fuda.runtime.interrupts", "fuda.runtime.compiled")
    }

    def is_own(name, value):
        names.add(name)
        plain = type(value) is FunctionType and not inspect.isgeneratorfunction(value)
        # A declaration that compiled code has an overload of must stay the same object for numba.
        declared = plain and value.__code__.co_names == ("NotImplementedError",)
        return plain and not declared and value.__module__ in modules and name not in DONE

    for module in modules.values():
        for name, value in list(vars(module).items()):
            if is_own(name, value):
                known.setdefault(value, counter.wrapped(value))
                patch.setattr(module, name, known[value])
            elif inspect.isclass(value) and value.__module__ == module.__name__:
                for method, function in list(vars(value).items()):
                    if is_own(method, function) and (not method.startswith("__") or method == "__init__"):
                        patch.setattr(value, method, counter.wrapped(function))
    yield counter
    patch.undo()
    assert names >= LEARNING | DONE, "they have other names by now"


def moments(steps, work, most=MOMENTS):
    """Moments of a piece of work, at most so many, spread evenly."""
    steps.start(None)
    work()
    total = steps.count
    assert total > 10
    return sorted({*np.linspace(0, total - 1, min(total, most)).astype(int).tolist()})


def interrupted(steps, at, work):
    """Do some work with an interrupt at a moment: whether it was raised, and the warnings."""
    steps.start(at)
    raised = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            work()
        except KeyboardInterrupt:
            raised = True
    assert steps.count > at
    assert not LEARNING & set(steps.after), steps.after
    steps.start(None)
    return raised, [w for w in caught if issubclass(w.category, ConvergenceWarning)]


def check_usable(model, path):
    model.save(path)
    again = fuda.load(path)
    assert again.predict(X).tolist() == model.predict(X).tolist()
    if not isinstance(model, Reranker):
        for mine, its in zip(model.predict_marginals(X), again.predict_marginals(X), strict=True):
            np.testing.assert_array_equal(mine, its)
            assert np.isfinite(mine).all()
    if isinstance(model, MarginalizedPerceptron | MarginalizedSVM):
        assert str(model.explain(X[0], 0))


def stored(model, path):
    model.save(path)
    return path.read_bytes()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", LEARNERS)
def test_fit(name, steps, tmp_path):
    """A model is fitted, with a warning, or as new; one fitted before may also be unchanged."""
    path, old, outcomes = tmp_path / "model.fuda", tmp_path / "old.fuda", set()
    new = clone(LEARNERS[name])
    before = stored(clone(new).fit(OTHER_X, OTHER_Y), old)
    clone(new).fit(X, Y)  # what is computed once per word is computed now, and not counted below
    for number, at in enumerate(moments(steps, partial(clone(new).fit, X, Y))):
        again = bool(number % 2)
        model = fuda.load(old) if again else clone(new)
        raised, caught = interrupted(steps, at, partial(model.fit, X, Y))
        if not raised:
            assert any("interrupted" in str(w.message) for w in caught)
            check_usable(model, path)
            outcomes.add("fitted")
        elif again and hasattr(model, "classes_"):
            assert stored(model, path) == before
            outcomes.add("as before")
        else:
            assert set(vars(model)) - {"_last"} == set(vars(new))
            with pytest.raises(NotFittedError):
                check_is_fitted(model)
            with pytest.raises(NotFittedError):
                model.predict(X)
            outcomes.add("new")
        assert model.get_params() == new.get_params() or "prior" in name or name == "reranker"
    assert "new" in outcomes
    assert "fitted" in outcomes or name in ("HMM", "reranker", "primal", "voted")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", GOING_ON)
def test_partial_fit(name, steps, tmp_path):
    """All or nothing, bit by bit; and what follows is as if there had been no interrupt."""
    path = tmp_path / "model.fuda"
    model = clone(LEARNERS[name]).fit(X, Y)
    before, predicted = stored(model, path), model.predict(MORE_X).tolist()
    after = stored(copy(model).partial_fit(MORE_X, MORE_Y), path)
    assert before != after
    for at in moments(steps, partial(copy(model).partial_fit, MORE_X, MORE_Y)):
        raised, _ = interrupted(steps, at, partial(model.partial_fit, MORE_X, MORE_Y))
        assert raised
        assert stored(model, path) == before
        assert model.predict(MORE_X).tolist() == predicted
    assert stored(model.partial_fit(MORE_X, MORE_Y), path) == after


def test_partial_fit_of_a_model_that_is_not_fitted(steps):
    new = HMPerceptron(n_jobs=1)
    for at in moments(steps, partial(clone(new).partial_fit, X, Y)):
        model = clone(new)
        raised, _ = interrupted(steps, at, partial(model.partial_fit, X, Y))
        assert raised
        assert vars(model) == vars(new)


def test_a_warm_start_outlives_a_fit_that_was_interrupted(monkeypatch):
    model, starts = CRF(warm_start=True).fit(X, Y), []
    weights = model.weights_

    def stop(self, data, loss, start, roots):
        starts.append(start)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CRF, "_scaled_minimizer", stop)
        patch.setattr(CRF, "_merges_features", False)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, Y)
    np.testing.assert_array_equal(starts, [weights, weights])
    assert not hasattr(model.fit(X, Y), "_last")


@pytest.mark.parametrize("training", [1, 3])
def test_an_interrupt_stops_all_trainings(training, monkeypatch):
    """While the machine learns, what it learned is kept; in calibration, all but probabilities."""
    trainings, steps = [], []

    def learn(self, *arguments, learn=MarginalizedPerceptron._learn):
        trainings.append(0)
        learn(self, *arguments)

    def stop(*arguments, correct=CpuEngine._correct):
        steps.append(len(trainings))
        if steps.count(training) == 4:
            raise KeyboardInterrupt
        return correct(*arguments)

    whole = MarginalizedPerceptron(orders=1).fit(X, Y)
    monkeypatch.setattr(MarginalizedPerceptron, "_learn", learn)
    monkeypatch.setattr(CpuEngine, "_correct", stop)
    with pytest.warns(ConvergenceWarning, match="interrupted; .* its probabilities are not fitted") as caught:
        model = MarginalizedPerceptron(orders=1).fit(X, Y)
    assert caught[0].filename == __file__
    assert len(trainings) == training
    # Epochs that were completed: the interrupt comes in the second one of the first training.
    assert len(model.mistakes_) == (1 if training == 1 else len(whole.mistakes_))
    assert (model.decision_scores(X)[0] == whole.decision_scores(X)[0]).all() == (training > 1)
    np.testing.assert_array_equal(model._calibration.point, [1.0, 1.0])


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_interrupted_it_has_the_mean_so_far(steps, monkeypatch):
    def stop(engine, structure, *arguments, correct=CpuEngine._correct):
        visited.append(structure)
        if len(visited) > steps:
            raise KeyboardInterrupt
        change, mistakes = correct(engine, structure, *arguments)
        changes.append((structure, change))
        return change, mistakes

    visited, changes = [], []
    monkeypatch.setattr(CpuEngine, "_correct", stop)
    with pytest.warns(ConvergenceWarning):
        model = MarginalizedPerceptron(orders=1).fit(X, Y)
    means = [np.zeros((len(x), 3)) for x in X]
    for step, (structure, change) in enumerate(changes):
        means[structure] += change * (steps - step) / steps
    actual = [
        alpha for support in model._support for alpha in support.examples.encoded.corpus.split(support.alpha)
    ]
    expected = [mean for mean in means if mean.any()]
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


IN_COMPILED_CODE = """
import sys
from typing import NamedTuple
import fuda.models.base
import numba

class Pair(NamedTuple):
    one: int
    other: int

@numba.njit
def swapped(pair):
    return Pair(pair.other, pair.one)

swapped(Pair(1, 2))
called = []
sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
found = swapped(Pair(1, 2))
sys.setprofile(None)
print(found == (2, 1), [name for name in called if "unpickle" in name])
"""


def test_no_python_code_runs_where_numba_would_crash_by_an_interrupt():
    """It asks for the class of what is returned, and does not expect an exception."""
    line = [sys.executable, "-c", IN_COMPILED_CODE]
    result = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "True []\n"), result.stderr
