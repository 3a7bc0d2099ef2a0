"""A fit of any model that was stopped anywhere continues to the same bytes."""

from __future__ import annotations

import warnings

import pytest
from sklearn.base import clone

from fuda.registry import MODELS
from fuda.storage import checkpoint as module
from reliability.cases import LEARNERS, data_for

every = pytest.mark.parametrize("name", LEARNERS)


class Stopped(BaseException):
    """What no one catches."""


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN", 0.0)


@pytest.fixture
def stop_at(monkeypatch):
    """Raise just after a chosen save of a checkpoint, counted from 1; returns the number of saves."""
    save, saves = module._File.save, []

    def at(number):
        saves.clear()

        def save_and_stop(self, finished=False):
            save(self, finished)
            saves.append(finished)
            if len(saves) == number:
                raise Stopped

        monkeypatch.setattr(module._File, "save", save_and_stop)
        return saves

    return at


def stored(model, path):
    model.save(path)
    return path.read_bytes()


def fitted(name, **parameters):
    X, Y = data_for(name, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(LEARNERS[name]).set_params(**parameters).fit(X, Y)


def test_every_model_that_iterates_is_here():
    assert {type(model).__name__ for model in LEARNERS.values()} == MODELS.keys() - {"HMM"}


@every
def test_stopped_and_resumed(name, stop_at, tmp_path):
    """Stopped after a save near the beginning, after another one each time, and at the end."""
    path, out = tmp_path / "state", tmp_path / "model"
    whole = fitted(name)
    expected = stored(whole, out)
    saves = stop_at(None)
    assert stored(fitted(name, checkpoint=path), out) == expected
    total = len(saves)
    assert total > 4
    assert saves == [False] * (total - 1) + [True]
    assert stored(fitted(name, checkpoint=path), out) == expected  # finished: ends at once
    path.unlink()
    for number in {1, 2, total // 3, total // 2, total - 1, total}:
        stop_at(number)
        with pytest.raises(Stopped):
            fitted(name, checkpoint=path)
        stop_at(None)
        resumed = fitted(name, checkpoint=path, n_jobs=1)
        assert stored(resumed.set_params(n_jobs=None), out) == expected, number
        assert resumed.n_iter_ == whole.n_iter_
        path.unlink()
    steps = 0
    for _ in range(total):  # each run is stopped after its third save
        stop_at(3)
        try:
            last = fitted(name, checkpoint=path)
        except Stopped:
            steps += 1
            continue
        assert stored(last, out) == expected
        break
    assert steps >= 2
