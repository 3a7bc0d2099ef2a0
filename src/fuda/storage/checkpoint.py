"""Checkpoints: the state of a fit in a file, so that a killed fit can continue to the same result.

A fit consists of trainings, one after another: folds of a prior, the model itself, folds of its
calibration. Each of them is a *stage*, named by its place in the fit, such as "prior/fold 2"; a
fit that is a single training has the one stage "". A checkpoint is a sealed file (see
`fuda.storage.container`) with a fingerprint of the fit, the values and arrays of the state of each
stage, and whether the fit has finished. A fit that finds it passes the stages that have ended at
once, and continues in the middle of the one that has not.

`fit` opens the file by `checkpointed`, parts of the fit are named by `part`, and a training keeps
its state by a `Checkpoint`; all three do nothing where there is no file. A finished file is kept
until the model is saved, so that a failed save loses nothing: the next fit ends at once.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from fuda.errors import DataError, ModelFileError, short
from fuda.files import check_name
from fuda.progress import warn
from fuda.storage import container

SECONDS_BETWEEN = 5.0
_LONG = 0.25  # seconds; saves that take longer come less often, so that they take a twentieth of the time
_REMEDY = "delete it or pass another path"
_CHECKPOINT = container.Format("fuda-checkpoint", 3, (), "checkpoint", _REMEDY)


class Learner(Protocol):
    """A training that another object for the same problem can continue after any iteration."""

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything the next iteration depends on: some values for JSON, and arrays.

        Where it is `final`, what the result depends on is enough.
        """

    def restore(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a `state()`; raise DataError if it cannot belong to this problem."""


class _Stage(NamedTuple):
    """The last state of a stage, and whether it has ended."""

    ended: bool
    values: dict[str, Any]
    arrays: dict[str, np.ndarray]


class _File:
    """The checkpoint file of a fit, with the stages read from it and those begun since."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint
        self.stages: dict[str, _Stage] = {}
        self.is_complete = True  # no stage was left before its end
        self._due, self._warned = time.monotonic() + SECONDS_BETWEEN, False
        check_name(path)
        if not path.parent.is_dir():
            problem = f"cannot be written: there is no folder {path.parent}"
            raise DataError(f"{path}: {problem}; make it first")
        try:
            exists = path.exists()
        except OSError as error:  # a name that is too long, or a folder that may not be looked into
            raise DataError(f"{path}: cannot be read: {error.strerror}; check the path") from None
        if exists:
            self._read()

    def _read(self) -> None:
        with container.opened(self.path, _CHECKPOINT) as file:
            _check_meta(file.meta)
            file.check_seal()
            if file.meta["fingerprint"] != self.fingerprint:
                problem = "the checkpoint of another fit (other data or parameters)"
                raise DataError(f"{self.path}: {problem}; {_REMEDY}")
            arrays = file.arrays()
            for number, stage in enumerate(file.meta["stages"]):
                prefix = f"s{number}_"
                stage_arrays = {name: arrays.pop(name) for name in list(arrays) if name.startswith(prefix)}
                stage_arrays = {name.removeprefix(prefix): array for name, array in stage_arrays.items()}
                self.stages[stage["name"]] = _Stage(stage["ended"], stage["values"], stage_arrays)
            if arrays:
                raise container.Damaged(f"its array {next(iter(arrays))!r} is not needed")

    def restore(self, name: str, learner: Learner) -> bool:
        """Restore the state of a learner if there is one: whether its stage has ended."""
        stage = self.stages.get(name)
        if stage is None:
            return False
        try:
            learner.restore(stage.values, stage.arrays)
        except DataError as error:
            where = f"in the state of {name!r}, " if name else ""
            message = f"{self.path}: not a usable checkpoint file: {where}{error}; {_REMEDY}"
            raise ModelFileError(message) from None
        return stage.ended

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._due

    def save(self, finished: bool = False) -> None:
        """Write the file. If that fails, keep the previous one; the next save tries again."""
        began = time.monotonic()
        try:
            stages, arrays = [], dict[str, np.ndarray]()
            for number, (name, stage) in enumerate(self.stages.items()):
                stages.append({"name": name, "ended": stage.ended, "values": stage.values})
                arrays |= {f"s{number}_{key}": array for key, array in stage.arrays.items()}
            meta = {"fingerprint": self.fingerprint, "finished": finished, "stages": stages}
            container.write(self.path, _CHECKPOINT, meta, {}, arrays)
        except (DataError, MemoryError) as error:
            self.warn(error)
        now = time.monotonic()
        self._due = now + SECONDS_BETWEEN * max(1.0, (now - began) / _LONG)

    def warn(self, error: DataError | MemoryError) -> None:
        """Warn once that the file cannot be written."""
        if self._warned:
            return
        self._warned = True
        why = error if isinstance(error, DataError) else f"{self.path}: cannot be written: not enough memory"
        warn(f"checkpoint {why}; training continues, but cannot be resumed from here", RuntimeWarning)


# The file of the fit that is running, and the name of the part that it is in.
_place: ContextVar[tuple[_File, str] | None] = ContextVar("place", default=None)


@contextmanager
def checkpointed(path: str | Path | None, fingerprint: Callable[[], Any]) -> Iterator[bool]:
    """Within the block, trainings are stages of a checkpoint.

    A file of another fit raises an error and is kept. A file that cannot be written is a warning.

    Parameters
    ----------
    path : str, Path or None
        The file; nothing happens where it is None, and within the fit of another file.
    fingerprint : callable
        Returns values for JSON that identify the fit: its data and parameters.

    Yields
    ------
    bool
        Whether the fit goes on from the file.
    """
    if path is None or _place.get() is not None:
        yield False
        return
    identity = json.dumps(fingerprint(), default=str)
    file = _File(Path(path), hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest())
    before = _place.set((file, ""))
    try:
        yield bool(file.stages)
    finally:
        _place.reset(before)
    if file.is_complete:
        file.save(finished=True)


def is_checkpointed() -> bool:
    """Return whether the current fit keeps a checkpoint."""
    return _place.get() is not None


@contextmanager
def part(name: str) -> Iterator[None]:
    """Within the block, trainings belong to this part of the fit.

    Parameters
    ----------
    name : str
        The name, which no other part at the same place has.
    """
    place = _place.get()
    if place is None:
        yield
        return
    file, prefix = place
    before = _place.set((file, f"{prefix}/{name}" if prefix else name))
    try:
        yield
    except BaseException:
        file.is_complete = False
        raise
    finally:
        _place.reset(before)


class Checkpoint:
    """The checkpoint of one training, whose state it restores; a callback that saves the state.

    Parameters
    ----------
    learner : Learner
        The training.

    Attributes
    ----------
    has_ended : bool
        Whether the training had ended when its state was saved.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner, self.place = learner, _place.get()
        self.has_ended = False
        if self.place is not None:
            file, name = self.place
            self.has_ended = file.restore(name, learner)
            self._before, file.is_complete = file.is_complete, False

    def __call__(self, _: object = None) -> None:
        """Save the state after an iteration, if some seconds have passed since the last time."""
        if self.place is not None and self.place[0].is_due and self._keep(ended=False):
            self.place[0].save()

    def finish(self) -> None:
        """Keep the last state of a training that was not interrupted."""
        if self.place is not None:
            self._keep(ended=True)
            self.place[0].is_complete = self._before
            if self.place[1] and self.place[0].is_due:
                self.place[0].save()

    def _keep(self, ended: bool) -> bool:
        """Keep the learner's state, a copy if it has ended; return whether that was possible."""
        assert self.place is not None
        file, name = self.place
        try:
            values, arrays = self.learner.state(final=ended and bool(name))
            if ended:
                arrays = {key: array.copy() for key, array in arrays.items()}
            file.stages[name] = _Stage(ended, values, arrays)
        except (DataError, MemoryError) as error:
            # The arrays of an earlier state belong to the learner, which has changed them since.
            file.stages.pop(name, None)
            file.warn(error)
            return False
        return True


def remove_finished(path: str | Path) -> None:
    """Remove the checkpoint of a finished fit; keep one from which a fit can continue.

    Parameters
    ----------
    path : str or Path
        The file, which need not exist.
    """
    try:
        with container.opened(path, _CHECKPOINT) as file:
            _check_meta(file.meta)
            finished = file.meta["finished"]
    except ModelFileError:  # never written, or not a checkpoint any more
        return
    if finished:
        Path(path).unlink()


def _check_meta(meta: dict[str, Any]) -> None:
    """Check the entries of the metadata."""
    if meta["format_version"] < _CHECKPOINT.version:
        raise container.Damaged(f"it was written by fuda {short(meta['fuda'])}, whose states were others")
    types = {"fingerprint": str, "finished": bool, "stages": list}
    container.check_entries({name: isinstance(meta.get(name), type) for name, type in types.items()})
    types = {"name": str, "ended": bool, "values": dict}
    for stage in meta["stages"]:
        if not isinstance(stage, dict):
            raise container.Damaged("one of its stages is not described")
        container.check_entries({name: isinstance(stage.get(name), type) for name, type in types.items()})
    if len({stage["name"] for stage in meta["stages"]}) < len(meta["stages"]):
        raise container.Damaged("two of its stages have one name")
