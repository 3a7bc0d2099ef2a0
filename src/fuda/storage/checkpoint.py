"""Checkpoints: the state of a fit in a file, so that a killed fit can continue to the same result.

A checkpoint is a sealed file (see `fuda.storage.container`) with a fingerprint of the problem, the
values and arrays of the learner's state, and whether the fit has finished. A finished checkpoint
is kept until the model is saved, so that a failed save loses nothing: the next fit ends at once.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fuda.errors import DataError, ModelFileError
from fuda.progress import warn
from fuda.storage import container

SECONDS_BETWEEN = 5.0
_REMEDY = "delete it or pass another path"
_CHECKPOINT = container.Format("fuda-checkpoint", 1, (), "checkpoint", _REMEDY)


class Learner(Protocol):
    """A training that another object for the same problem can continue after any iteration."""

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything the next iteration depends on: some values for JSON, and arrays."""

    def restore(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a `state()`; raise DataError if it cannot belong to this problem."""


class Checkpoint:
    """The checkpoint of one fit.

    A file of another problem raises an error and is kept. A file that cannot be written is a
    warning.

    Parameters
    ----------
    path : str, Path or None
        The file; nothing is read or written if it is None.
    fingerprint : object
        Values for JSON that identify the problem: its data and parameters.
    learner : Learner
        The training.
    """

    def __init__(self, path: str | Path | None, fingerprint: Any, learner: Learner) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = hashlib.sha256(json.dumps(fingerprint, default=str).encode()).hexdigest()
        self.learner = learner
        self._saved = time.monotonic()
        self._warned = False

    def resume(self) -> None:
        """Restore the state of the learner if there is a checkpoint."""
        if self.path is None:
            return
        if not self.path.parent.is_dir():
            problem = f"cannot be written: there is no folder {self.path.parent}"
            raise DataError(f"{self.path}: {problem}; make it first")
        if not self.path.exists():
            return
        with container.opened(self.path, _CHECKPOINT) as file:
            _check_meta(file.meta)
            file.check_seal()
            if file.meta["fingerprint"] != self.fingerprint:
                problem = "the checkpoint of another fit (other data or parameters)"
                raise DataError(f"{self.path}: {problem}; {_REMEDY}")
            try:
                self.learner.restore(file.meta["values"], file.arrays())
            except DataError as error:
                raise container.Damaged(str(error)) from None

    def save_if_due(self) -> None:
        """Save the state of the learner if some seconds have passed since the last time."""
        if time.monotonic() - self._saved >= SECONDS_BETWEEN:
            self._save(finished=False)

    def finish(self) -> None:
        """Save the last state of a fit that was not interrupted."""
        self._save(finished=True)

    def _save(self, finished: bool) -> None:
        """Write the file. If that fails, keep the previous one; the next save tries again."""
        if self.path is None:
            return
        try:
            values, arrays = self.learner.state()
            meta = {"fingerprint": self.fingerprint, "finished": finished, "values": values}
            container.write(self.path, _CHECKPOINT, meta, {}, arrays)
        except (DataError, MemoryError) as error:
            self._warn(error)
        self._saved = time.monotonic()

    def _warn(self, error: DataError | MemoryError) -> None:
        """Warn once that the file cannot be written."""
        if self._warned:
            return
        self._warned = True
        why = error if isinstance(error, DataError) else f"{self.path}: cannot be written: not enough memory"
        warn(f"checkpoint {why}; training continues, but cannot be resumed from here", RuntimeWarning)


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
    types = {"fingerprint": str, "finished": bool, "values": dict}
    container.check_entries({name: isinstance(meta.get(name), type) for name, type in types.items()})
