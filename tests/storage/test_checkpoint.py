"""A killed fit continues to the bit-identical result; what cannot be written does not stop it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fuda import CRF, DataError, MarginalizedPerceptron, Tree
from fuda.models.machines.perceptron_orders import Perceptrons
from fuda.storage import checkpoint as module
from fuda.storage import container

WORDS = ["Ana", "lives", "in", "Lima", "and", "Bo", "left", "New", "York"]


def data(count=30):
    random = np.random.default_rng(0)
    X = [[str(w) for w in random.choice(WORDS, size=random.integers(2, 9))] for _ in range(count)]
    return X, [["AB"[w[0].isupper()] if random.random() < 0.8 else "C" for w in x] for x in X]


X, Y = data()


class Killed(BaseException):
    """What no one catches."""


@pytest.fixture
def kill(monkeypatch):
    """Save after every iteration, and raise after the save of a chosen iteration."""
    monkeypatch.setattr(module, "SECONDS_BETWEEN", 0.0)

    def at(iteration, error=Killed):
        save = module.Checkpoint.__call__

        def save_and_die(self, progress):
            save(self, progress)
            if len(self.learner.training.history) == iteration:
                monkeypatch.setattr(module.Checkpoint, "__call__", save)
                raise error

        monkeypatch.setattr(module.Checkpoint, "__call__", save_and_die)

    return at


def shout(word):
    """A feature function, whose address differs from process to process."""
    return [word.upper(), word[:1]]


@pytest.mark.parametrize(
    "parameters",
    [{}, {"loss": "pointwise"}, {"loss": "markov", "order": 2}, {"l1": 0.2}, {"features": shout}],
    ids=["sequential", "pointwise", "markov", "l1", "function"],
)
@pytest.mark.parametrize("iteration", [1, 9])
def test_killed_and_resumed(parameters, iteration, kill, tmp_path):
    path = tmp_path / "state"
    parameters = {"features": "word", "tol": 1e-7, **parameters}
    whole = CRF(**parameters).fit(X, Y)
    kill(iteration)
    model = CRF(**parameters, checkpoint=path)
    with pytest.raises(Killed):
        model.fit(X, Y)
    assert path.exists()
    assert not hasattr(model, "classes_")
    resumed = CRF(**parameters, checkpoint=str(path), n_jobs=1).fit(X, Y)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    assert [p.objective for p in resumed.result_.history] == [p.objective for p in whole.result_.history]
    again = CRF(**parameters, checkpoint=path).fit(X, Y)  # finished: ends at once
    np.testing.assert_array_equal(again.weights_, whole.weights_)
    assert again.result_.history == resumed.result_.history
    assert again.result_.reason == whole.result_.reason
    module.remove_finished(path)
    assert not path.exists()


def test_killed_twice_on_trees(kill, tmp_path):
    trees = [Tree(x, [-1, *np.arange(len(x) - 1) // 2]) for x in X]
    path = tmp_path / "state"
    whole = CRF(features="word", tol=1e-7).fit(trees, Y)
    for iteration in (3, 6):
        kill(iteration)
        with pytest.raises(Killed):
            CRF(features="word", tol=1e-7, checkpoint=path).fit(trees, Y)
    resumed = CRF(features="word", tol=1e-7, checkpoint=path).fit(trees, Y)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)


SCRIPT = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
import numpy as np
from fuda import CRF
from fuda.storage import checkpoint as module
from test_checkpoint import X, Y, shout
module.SECONDS_BETWEEN = 0.0
save = module.Checkpoint.__call__
def save_and_die(self, progress):
    save(self, progress)
    if len(self.learner.training.history) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
module.Checkpoint.__call__ = save_and_die
CRF(features=shout, tol=1e-7, checkpoint=sys.argv[1]).fit(X, Y)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
@pytest.mark.slow
def test_a_process_killed(tmp_path):
    path = tmp_path / "state"
    command = [sys.executable, "-c", SCRIPT, str(path), os.path.dirname(__file__)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    resumed = CRF(features=shout, tol=1e-7, checkpoint=path).fit(X, Y)
    np.testing.assert_array_equal(resumed.weights_, CRF(features=shout, tol=1e-7).fit(X, Y).weights_)


def test_interrupted_it_stays_to_go_on_from(kill, tmp_path):
    path = tmp_path / "state"
    whole = CRF(features="word").fit(X, Y)
    kill(4, KeyboardInterrupt)
    with pytest.warns(ConvergenceWarning, match="it was interrupted"):
        CRF(features="word", checkpoint=path).fit(X, Y)
    module.remove_finished(path)  # it is not
    assert path.exists()
    np.testing.assert_array_equal(CRF(features="word", checkpoint=path).fit(X, Y).weights_, whole.weights_)


def test_it_is_not_written_all_the_time(tmp_path, monkeypatch):
    """A fit of less than a few seconds writes it once, at its end."""
    path, written = tmp_path / "state", []
    write = container.write
    monkeypatch.setattr(
        container, "write", lambda *arguments: (written.append(arguments[2]), write(*arguments))
    )
    model = CRF(features="word", checkpoint=path).fit(X, Y)
    assert len(model.result_.history) > 5
    assert [meta["finished"] for meta in written] == [True]
    assert list(tmp_path.iterdir()) == [path]


def test_more_iterations_of_a_finished_fit(tmp_path):
    path = tmp_path / "state"
    whole = CRF(features="word", tol=1e-7).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="max_iter=4"):
        CRF(features="word", tol=1e-7, max_iter=4, checkpoint=path).fit(X, Y)
    np.testing.assert_array_equal(
        CRF(features="word", tol=1e-7, checkpoint=path).fit(X, Y).weights_, whole.weights_
    )


def test_only_finished_checkpoints_are_removed(tmp_path):
    module.remove_finished(tmp_path / "absent")
    path = tmp_path / "state"
    path.write_bytes(b"something else")
    module.remove_finished(path)
    module.remove_finished(tmp_path)
    assert path.read_bytes() == b"something else"


# What cannot be written.


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_memory(*_):
    raise MemoryError


@pytest.mark.parametrize(
    ("where", "fails", "why"),
    [
        ((os, "fsync"), no_space, "No space left on device"),
        ((os, "replace"), no_space, "No space left on device"),
        ((os, "open"), no_space, "No space left on device"),
        ((container, "_zip"), no_memory, "not enough memory"),
    ],
    ids=["fsync", "rename", "create", "memory"],
)
def test_a_checkpoint_that_cannot_be_written(where, fails, why, tmp_path, monkeypatch):
    """One warning; the fit ends as it would have without, and the file stays as it was."""
    monkeypatch.setattr(module, "SECONDS_BETWEEN", 0.0)
    path = tmp_path / "state"
    with pytest.warns(ConvergenceWarning):
        CRF(features="word", max_iter=3, checkpoint=path).fit(X, Y)
    before = path.read_bytes()
    monkeypatch.setattr(*where, fails)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = CRF(features="word", checkpoint=path).fit(X, Y)
    assert [str(warning.message) for warning in caught] == [
        f"checkpoint {path}: cannot be written: {why}; training continues, but cannot be resumed from here"
    ]
    np.testing.assert_array_equal(model.weights_, CRF(features="word").fit(X, Y).weights_)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_checkpoint_is_written_as_soon_as_it_can_be(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN", 0.0)
    replace, calls = os.replace, []

    def fail_at_first(*arguments):
        calls.append(arguments)
        if len(calls) < 3:
            no_space()
        replace(*arguments)

    monkeypatch.setattr(os, "replace", fail_at_first)
    with pytest.warns(RuntimeWarning, match="No space left"):
        CRF(features="word", checkpoint=tmp_path / "state").fit(X, Y)
    module.remove_finished(tmp_path / "state")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("fails_at", [1, 3, 6])
def test_no_memory_to_keep_a_state(final, fails_at, tmp_path, monkeypatch):
    """The arrays of an earlier state have changed since: it is left out, or the old file stays."""
    monkeypatch.setattr(module, "SECONDS_BETWEEN", 0.0)
    model = MarginalizedPerceptron(
        features="word", mixing=0.5, epochs=2, orders=2, checkpoint=tmp_path / "state"
    )
    expected = clone(model).set_params(checkpoint=None).fit(X, Y).predict_marginals(X[:9])
    state, calls = Perceptrons.state, []

    def fail_once(self, is_final=False):
        calls.extend([is_final] * (is_final == final))
        if len(calls) == fails_at and is_final == final:
            raise MemoryError
        return state(self, is_final)

    monkeypatch.setattr(Perceptrons, "state", fail_once)
    with pytest.warns(RuntimeWarning, match="not enough memory"):
        first = clone(model).fit(X, Y)
    again = clone(model).fit(X, Y)  # from what the checkpoint holds
    for fitted in (first, again):
        for marginals, exact in zip(fitted.predict_marginals(X[:9]), expected, strict=True):
            np.testing.assert_array_equal(marginals, exact)


# Files that are refused.


def killed(kill, path, **parameters):
    kill(3)
    with pytest.raises(Killed):
        CRF(**{"features": "word", **parameters}, checkpoint=path).fit(X, Y)


def test_another_fit_is_refused(kill, tmp_path):
    path = tmp_path / "state"
    killed(kill, path, loss="pointwise")
    before = path.read_bytes()
    other_y = [y[::-1] for y in Y]
    for parameters, x, y, weights in (
        ({"l2": 2.0}, X, Y, {}),
        ({"l1": 2.0}, X, Y, {}),
        ({"loss": "markov"}, X, Y, {}),
        ({"features": "text"}, X, Y, {}),
        ({"window": 0}, X, Y, {}),
        ({"pair_features": True}, X, Y, {}),
        ({}, X[::-1], Y[::-1], {}),
        ({}, X, other_y, {}),
        ({}, X, Y, {"sample_weight": np.arange(len(X))}),
        ({}, X, Y, {"position_weight": [np.full(len(x), 0.5) for x in X]}),
        ({}, [[*x[:-1], "Lima" if x[-1] == "Ana" else "Ana"] for x in X], Y, {}),
    ):
        model = CRF(**{"features": "word", "loss": "pointwise", **parameters}, checkpoint=path)
        with pytest.raises(DataError, match=r"the checkpoint of another fit.*; delete it or pass another"):
            model.fit(x, y, **weights)
        assert path.read_bytes() == before
    CRF(features="word", loss="pointwise", checkpoint=path, tol=1e-4, n_jobs=1, decode="posterior").fit(X, Y)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"there is no folder .*; make it first"):
        CRF(features="word", checkpoint=tmp_path / "no" / "state").fit(X, Y)
    with pytest.raises(DataError, match="is a folder, not a checkpoint file; name the file"):
        CRF(features="word", checkpoint=tmp_path).fit(X, Y)
    with pytest.raises(DataError, match="cannot be read: File name too long; check the path"):
        CRF(features="word", checkpoint=tmp_path / ("x" * 300)).fit(X, Y)
