"""Checkpoints: the state of a minimizer on disk, so that a killed fit goes on to the same result."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from fuda.errors import DataError
from fuda.files import whole_file
from fuda.optimize import Lbfgs, Progress

SECONDS_BETWEEN = 5.0


class Checkpoint:
    """Restores a minimizer on entry, saves it every few seconds when called, and removes the file after a fit
    that ended by itself (`kept` says that it did not).

    A file of another problem (other data or parameters, told by `fingerprint`) is an error, not a silent
    start.
    """

    def __init__(self, path: str | Path | None, minimizer: Lbfgs, fingerprint: Any) -> None:
        self.path = None if path is None else Path(path)
        self.minimizer = minimizer
        if self.path is not None:
            self.fingerprint = hashlib.sha256(json.dumps(fingerprint, default=str).encode()).hexdigest()
        self.saved = time.monotonic()
        self.kept = False

    def __enter__(self) -> Checkpoint:
        if self.path is not None and self.path.exists():
            self.minimizer.restore(self._read(self.path))
        elif self.path is not None and not self.path.parent.is_dir():
            raise DataError(
                f"{self.path}: cannot be written: there is no folder {self.path.parent}; make it first"
            )
        return self

    def __call__(self, progress: Progress) -> None:
        if self.path is None or time.monotonic() - self.saved < SECONDS_BETWEEN:
            return
        with whole_file(self.path) as stream:
            state: dict[str, Any] = {"fingerprint": np.array(self.fingerprint), **self.minimizer.state()}
            np.savez(stream, **state)
        self.saved = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path is not None and kind is None and not self.kept:
            self.path.unlink(missing_ok=True)

    def _read(self, path: Path) -> dict[str, np.ndarray]:
        try:
            with path.open("rb") as stream, np.lib.npyio.NpzFile(stream, allow_pickle=False) as stored:
                state = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile):
            raise DataError(
                f"{path}: no checkpoint of a fit, or damaged; remove it or name another file"
            ) from None
        if str(state.pop("fingerprint", "")) != self.fingerprint:
            raise DataError(
                f"{path}: the checkpoint of another fit (other data or parameters); "
                "remove it or name another file"
            )
        return state
