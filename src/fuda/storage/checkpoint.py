"""Checkpoints: the state of a fit in a file, so that a killed fit can continue to the same result.

A checkpoint is a sealed file (see `fuda.storage.container`) of a fingerprint of the problem, the values
and arrays that the learner gives as its state, and whether the fit has finished. A finished
checkpoint stays until the model is saved, so that a failed save loses nothing: the next fit ends
at once.
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
    """What can be stopped after any iteration and continued by another object for the same problem."""

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All that the next iteration depends on: a few values for JSON, and arrays."""

    def restore(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a `state()`; DataError where it cannot be one of this problem."""


class Checkpoint:
    """The checkpoint of one fit; without a path nothing is read or written.

    `fingerprint`, of values for JSON, tells problems apart by their data and parameters. A file of
    another problem is an error, and stays. A file that cannot be written is a warning.
    """

    def __init__(self, path: str | Path | None, fingerprint: Any, learner: Learner) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = hashlib.sha256(json.dumps(fingerprint, default=str).encode()).hexdigest()
        self.learner = learner
        self._saved = time.monotonic()
        self._warned = False

    def resume(self) -> None:
        """Restore the learner where there is a checkpoint."""
        if self.path is None:
            return
        if not self.path.exists():
            if not self.path.parent.is_dir():
                raise DataError(
                    f"{self.path}: cannot be written: there is no folder {self.path.parent}; make it first"
                )
            return
        with container.opened(self.path, _CHECKPOINT) as file:
            _check_meta(file.meta)
            file.check_seal()
            if file.meta["fingerprint"] != self.fingerprint:
                raise DataError(
                    f"{self.path}: the checkpoint of another fit (other data or parameters); {_REMEDY}"
                )
            try:
                self.learner.restore(file.meta["values"], file.arrays())
            except DataError as error:
                raise container.Damaged(str(error)) from None

    def save_if_due(self) -> None:
        """Save the state of the learner where the last time is some seconds ago."""
        if time.monotonic() - self._saved >= SECONDS_BETWEEN:
            self._save(finished=False)

    def finish(self) -> None:
        """Save the last state of a fit that was not interrupted."""
        self._save(finished=True)

    def _save(self, finished: bool) -> None:
        """Write the file. Where that fails, the last one stays, and the next save tries again."""
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
        """Tell once that the file cannot be written."""
        if self._warned:
            return
        self._warned = True
        why = error if isinstance(error, DataError) else f"{self.path}: cannot be written: not enough memory"
        warn(f"checkpoint {why}; training continues, but cannot be resumed from here", RuntimeWarning)


def remove_finished(path: str | Path) -> None:
    """Remove the checkpoint of a finished fit; one that a fit can continue from stays."""
    try:
        with container.opened(path, _CHECKPOINT) as file:
            _check_meta(file.meta)
            finished = file.meta["finished"]
    except ModelFileError:  # never written, or not a checkpoint any more
        return
    if finished:
        Path(path).unlink()


def _check_meta(meta: dict[str, Any]) -> None:
    container.check_kinds(
        {
            "fingerprint": isinstance(meta.get("fingerprint"), str),
            "finished": isinstance(meta.get("finished"), bool),
            "values": isinstance(meta.get("values"), dict),
        }
    )
