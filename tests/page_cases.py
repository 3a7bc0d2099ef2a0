"""A page with its server in a thread, and a browser to look at it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from fuda.cli.label import fill
from fuda.page.safety import Sessions, hosts_for
from fuda.page.server import listening, make_app
from fuda.page.store import Store

CHROMIUM = os.environ.get("FUDA_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
READING = {"format_name": None, "columns": None, "graph": None, "options": ()}


class Served:
    """A store and its server, which can be stopped and started again on the same port."""

    def __init__(self, store: Path, files: list[Path], labels: str, label: str | None = None) -> None:
        self.path, self.label = store, label
        self.port: int | None = None
        self.files, self.labels = tuple(str(file) for file in files), labels
        self.start()

    def start(self) -> None:
        self.store = Store(self.path, create=True)
        fill(self.store, self.files, self.labels, False, None, label=self.label, **READING)
        listener = listening("127.0.0.1", self.port, None)
        self.port = listener.getsockname()[1]
        sessions = Sessions(self.store, self.port)
        app, self._feed, self.desk = make_app(self.store, sessions, hosts_for("127.0.0.1", self.port, None))
        config = uvicorn.Config(
            app, log_level="error", access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()
        wait_until(lambda: self._server.started)
        self.address = f"http://127.0.0.1:{self.port}/"
        self.entrance = f"{self.address}?token={sessions.token}"

    def stop(self) -> None:
        self._feed.publish(None)  # open streams would keep it waiting
        self._server.should_exit = True
        self._thread.join(20)
        self.store.close()

    def answers(self) -> dict[str, Any]:
        """Labels of the sentences that were accepted, by their words."""
        found = self.store.items("status = 'done'", (), "items.id")
        return {" ".join(item.record.structure.observations): item.labels for item in found}


def wait_until(holds: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)
