"""A fit of any model that was stopped anywhere continues to the same bytes."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from fuda import CRF, HMM, DataError, HMPerceptron, MarginalizedPerceptron, ModelFileError, Reranker
from fuda.marginalized.engines.cpu.engine import check_pushes
from fuda.registry import MODELS
from fuda.storage import checkpoint as module
from model_file_cases import altered, parts
from reliability.trainings import LEARNERS, RESUMABLE, data_for

every = pytest.mark.parametrize("name", RESUMABLE)
X, Y = data_for("crf", 8)


class Stopped(BaseException):
    """What no one catches."""


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN", 0.0)


@pytest.fixture
def stop_at(monkeypatch):
    """Raise just after a chosen save of a checkpoint, counted from 1; returns the saves so far."""
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(LEARNERS[name]).set_params(**parameters).fit(*data_for(name, 8))


def test_every_model_that_iterates_is_here():
    assert {type(LEARNERS[name]).__name__ for name in RESUMABLE} == MODELS.keys() - {"HMM", "Auto"}


@every
def test_stopped_and_resumed(name, stop_at, tmp_path):
    """After the first save, after the last one, and twice in between."""
    path, out = tmp_path / "state", tmp_path / "model"
    whole = fitted(name)
    expected = stored(whole, out)
    saves = stop_at(None)
    assert stored(fitted(name, checkpoint=path), out) == expected
    total = len(saves)
    assert total > 3
    assert saves == [False] * (total - 1) + [True]
    path.unlink()
    for stops in ([1], [total // 2, 2], [total]):
        for number in stops:
            stop_at(number)
            with pytest.raises(Stopped):
                fitted(name, checkpoint=path)
        stop_at(None)
        resumed = fitted(name, checkpoint=path, n_jobs=1)
        assert stored(resumed.set_params(n_jobs=None), out) == expected, stops
        assert resumed.n_iter_ == whole.n_iter_
        module.remove_finished(path)
        assert not path.exists()


def test_a_callback_that_ended_a_training_is_not_asked_again(stop_at, tmp_path):
    """The machine ended early and its calibration was stopped; likewise a CRF's one stage."""

    def once(progress):
        asked.append(progress.iteration)
        if progress.iteration == 2:
            raise StopIteration

    path = tmp_path / "state"
    for name in ("marginalized", "crf", "hm-svm", "hm-perceptron"):
        asked = []
        expected = stored(fitted(name, callback=once), tmp_path / "model")
        saves = stop_at(None)
        fitted(name, callback=once, checkpoint=path)
        stop_at(len(saves) - 1 if name == "marginalized" else len(saves))
        path.unlink()
        with pytest.raises(Stopped):
            fitted(name, callback=once, checkpoint=path)
        stop_at(None)
        asked = []
        assert stored(fitted(name, callback=once, checkpoint=path), tmp_path / "model") == expected
        assert asked == []
        path.unlink()


def test_an_interrupted_calibration_is_not_finished(tmp_path, monkeypatch):
    path, out, expected = tmp_path / "state", tmp_path / "model", None
    expected = stored(fitted("marginalized"), out)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fuda.marginalized.calibration.fit", interrupt)
        assert stored(fitted("marginalized", checkpoint=path), out) != expected
    module.remove_finished(path)
    assert stored(fitted("marginalized", checkpoint=path), out) == expected


def test_models_within_models_have_no_checkpoint_of_their_own(tmp_path):
    inner = CRF(features="word", checkpoint=tmp_path / "state")
    for model in (MarginalizedPerceptron(prior=inner), Reranker(inner)):
        with pytest.raises(DataError, match="give the checkpoint to the model, whose file has all parts"):
            model.fit(X, Y)
    prior = inner.fit(X, Y)
    MarginalizedPerceptron(prior=prior, features="word", epochs=1, calibrate=False).fit(X, Y)
    with pytest.raises(TypeError, match="checkpoint"):
        HMM(checkpoint=tmp_path / "state")


def test_a_partial_fit_has_none(tmp_path):
    path = tmp_path / "state"
    model = HMPerceptron(checkpoint=path).partial_fit(X, Y).partial_fit(X, Y)
    assert not path.exists()
    assert model.checkpoint == path


def test_the_path_is_not_in_the_model_file(tmp_path):
    path = tmp_path / "state"
    assert str(path).encode() not in stored(fitted("crf", checkpoint=path), tmp_path / "model")


# States that do not fit, under a valid checksum.

BAD = {
    "fewer rows": lambda a: a[:-1],
    "shorter rows": lambda a: a[..., :-1],
    "another dtype": lambda a: a.astype(np.float64 if a.dtype == np.float32 else np.float32),
    "infinite": lambda a: np.where(np.arange(a.size).reshape(a.shape) == a.size - 1, np.inf, a),
}
STATES = [
    "crf, cg",
    "crf, sgd",
    "hm-perceptron, voted",
    "hm-perceptron, explicit",
    "hm-svm, pushed",
    "marginalized, gap",
    "marginalized-svm, prior",
    "reranker",
    "vectors",
]


def replace(meta, members, member, array):
    stream = io.BytesIO()
    np.save(stream, array)
    members[member] = stream.getvalue()
    meta["members"][member] = {"dtype": str(array.dtype), "shape": list(array.shape)}


@pytest.mark.parametrize("name", STATES)
def test_states_that_do_not_fit(name, stop_at, tmp_path):
    path, bad = tmp_path / "state", tmp_path / "bad"
    stop_at(3)
    with pytest.raises(Stopped):
        fitted(name, checkpoint=path)
    stop_at(None)
    members = [member for member in parts(path)[1] if np.load(io.BytesIO(parts(path)[1][member])).size]
    assert len(members) > 2
    for number, member in enumerate(members):
        kinds = {"fewer rows", list(BAD)[1 + number % 3]} if len(members) > 8 else set(BAD)
        for kind in sorted(kinds):

            def change(meta, members, member=member, kind=kind):
                replace(meta, members, member, BAD[kind](np.load(io.BytesIO(members[member]))))

            altered(path, bad, change)
            before = bad.read_bytes()
            with pytest.raises(ModelFileError, match="not a usable checkpoint file") as caught:
                fitted(name, checkpoint=bad)
            assert str(caught.value).endswith("; delete it or pass another path"), (member, kind)
            assert bad.read_bytes() == before


def test_a_best_state_that_does_not_fit_is_found_at_once(stop_at, tmp_path):
    """Not when the training has ended and returns to it."""
    path, bad = tmp_path / "state", tmp_path / "bad"
    for name in ("crf", "marginalized, gap"):
        model, iterations = clone(LEARNERS[name]), []
        model.set_params(callback=iterations.append, checkpoint=path)
        stop_at(3)
        with pytest.raises(Stopped):
            model.fit(X, Y, X_val=X, y_val=Y)
        stop_at(None)
        iterations.clear()
        filled = {name for name, data in parts(path)[1].items() if np.load(io.BytesIO(data)).size}
        chosen = [name for name in filled if "_best_" in name or "_curve" in name]
        assert len(chosen) > 1
        for member in chosen:

            def change(meta, members, member=member):
                replace(meta, members, member, np.load(io.BytesIO(members[member]))[:-1])

            altered(path, bad, change)
            with pytest.raises(ModelFileError, match="not a usable checkpoint file"):
                model.set_params(checkpoint=bad).fit(X, Y, X_val=X, y_val=Y)
            assert iterations == []
        path.unlink()


OUT_OF_RANGE = [
    ("hm-svm, pushed", "labelings", 3),
    ("hm-svm, pushed", "labelings", -1),
    ("hm-svm, pushed", "alpha", -1.0),
    ("hm-svm, pushed", "first", 10**9),
    ("hm-perceptron, voted", "change_structures", 8),
    ("hm-perceptron, voted", "change_targets", 3),
    ("hm-perceptron, voted", "random", 2.0**33),
    ("marginalized, gap", "engine_visits", 10**6),
    ("marginalized, gap", "engine_spans", 1),
    ("marginalized, gap", "engine_done", 10**6),
    ("vectors", "scores_nodes", 10**6),
    ("vectors", "scores_batches", -3),
    ("vectors", "scores_batch_of", 10**6),
]


@pytest.mark.parametrize(("name", "array", "value"), OUT_OF_RANGE)
def test_numbers_out_of_range(name, array, value, stop_at, tmp_path):
    path, bad = tmp_path / "state", tmp_path / "bad"
    stop_at(2)
    with pytest.raises(Stopped):
        fitted(name, checkpoint=path)
    stop_at(None)
    (member,) = (m for m in parts(path)[1] if m.partition("_")[2] == f"{array}.npy")

    def change(meta, members):
        numbers = np.load(io.BytesIO(members[member])).copy()
        numbers.flat[[0, -1]] = value
        replace(meta, members, member, numbers)

    altered(path, bad, change)
    with pytest.raises(ModelFileError, match="not a usable checkpoint file"):
        fitted(name, checkpoint=bad)


def test_pushes_that_are_stored():
    offsets = np.array([0, 3, 5])
    good = np.array([[3, 5, 0], [0, 3, 1], [0, 0, 3]]), np.array([4, 0, 2])
    check_pushes(*good, offsets)
    for row, column, value in ((0, 0, 2), (0, 1, 4), (1, 0, 3), (0, 2, 1), (1, 2, 4), (2, 2, 2)):
        spans = good[0].copy()
        spans[row, column] = value
        with pytest.raises(DataError, match="its pushes"):
            check_pushes(spans, good[1], offsets)
    for marked in ([2, 0, 2], [5, 0, 2], [4, 0, 3], [4, 0], [-1, 0, 2]):
        with pytest.raises(DataError, match="its pushes"):
            check_pushes(good[0], np.array(marked), offsets)
