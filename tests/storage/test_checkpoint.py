"""A killed fit goes on to the bit-identical result; files of other fits and damaged files are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fuda import CRF, DataError, Tree
from fuda.storage import checkpoint as module

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
    """Save after every iteration; from then on raise at an iteration of one's choice, after the save."""
    monkeypatch.setattr(module, "SECONDS_BETWEEN", 0.0)

    def at(iteration, error=Killed):
        save = module.Checkpoint.__call__

        def save_and_die(self, progress):
            save(self, progress)
            if progress.iteration == iteration:
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
    assert [p.value for p in resumed.result_.history] == [p.value for p in whole.result_.history]
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
    if progress.iteration == 5:
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
    assert path.exists()
    np.testing.assert_array_equal(CRF(features="word", checkpoint=path).fit(X, Y).weights_, whole.weights_)
    assert not path.exists()


def test_it_is_not_written_all_the_time(tmp_path):
    path = tmp_path / "state"
    CRF(features="word", checkpoint=path).fit(X, Y)
    assert list(tmp_path.iterdir()) == []


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
        with pytest.raises(DataError, match="the checkpoint of another fit"):
            model.fit(x, y, **weights)
        assert path.read_bytes() == before
    CRF(features="word", loss="pointwise", checkpoint=path, tol=1e-4, n_jobs=1, decode="posterior").fit(X, Y)


def test_damaged_files_are_refused(kill, tmp_path):
    path = tmp_path / "state"
    killed(kill, path)
    good = path.read_bytes()
    random = np.random.default_rng(0)
    cut = [good[: int(n)] for n in random.integers(len(good), size=15)]
    for damaged in [b"", b"text", b"PK\x03\x04", pickled(), plain_array(tmp_path), *cut]:
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="no checkpoint of a fit, or damaged; remove it or name another"):
            CRF(features="word", checkpoint=path).fit(X, Y)
        assert path.read_bytes() == damaged
    whole = CRF(features="word").fit(X, Y)
    for place in random.integers(len(good), size=60):  # one byte changed: refused, or of no consequence
        damaged = bytearray(good)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            model = CRF(features="word", checkpoint=path).fit(X, Y)
        except DataError:
            continue
        np.testing.assert_array_equal(model.weights_, whole.weights_)


def pickled() -> bytes:
    import pickle

    return pickle.dumps({"x": 1})


def plain_array(folder) -> bytes:
    np.save(folder / "array.npy", np.arange(3.0))
    return (folder / "array.npy").read_bytes()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"there is no folder .*; make it first"):
        CRF(features="word", checkpoint=tmp_path / "no" / "state").fit(X, Y)
    with pytest.raises(DataError, match="no checkpoint of a fit"):
        CRF(features="word", checkpoint=tmp_path).fit(X, Y)
