"""A page with its server in a thread, and a browser to look at it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from fuda.cli.label import fill
from fuda.page.safety import Sessions, hosts_for
from fuda.page.server import listening, make_app
from fuda.page.store import Step, Store
from fuda.page.teacher import Teacher

CHROMIUM = os.environ.get("FUDA_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
TEXT = """Anna Lind lives in Oslo.
Bert Ek works for Volvo in Paris.
Carla Dahl came from Oslo to Rome.
The train to Bergen was late.
Dora Falk sings in Paris and in Rome.
Erik Lind buys bread.
Volvo builds cars in Bergen.
Frida Ek moved to Oslo.
"""
LABELS = "PER,LOC,ORG"
TAUGHT = [
    [(0, 2, "PER"), (4, 5, "LOC")],
    [(0, 2, "PER"), (4, 5, "ORG"), (6, 7, "LOC")],
    [(0, 2, "PER"), (4, 5, "LOC"), (6, 7, "LOC")],
]
PATIENCE = 120.0  # seconds: code may have to be compiled first, on a machine that others use too
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
        app, self._feed, self.api = make_app(self.store, sessions, hosts_for("127.0.0.1", self.port, None))
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
        self._thread.join(PATIENCE)
        self.store.close()

    def announce(self, message: dict[str, Any]) -> None:
        """Send a message to all pages."""
        self._feed.publish(message)

    def teach(self) -> None:
        """Label the first three sentences of `TEXT` behind the page's back."""
        for number, spans in enumerate(TAUGHT, 1):
            listed = [{"start": start, "end": end, "label": label} for start, end, label in spans]
            self.api.accept(number, {"version": 0, "spans": listed}, Step("somebody", "elsewhere"))
        with self.store.transaction() as writer:
            writer.execute("DELETE FROM leases")  # what would have come next there
        wait_until(lambda: self.api.teacher.current.event >= self.store.last_event())

    def answers(self) -> dict[str, Any]:
        """Labels of the sentences that were accepted, by their words."""
        labelled = self.store.items("status = 'done'", (), "items.id")
        return {" ".join(item.record.structure.observations): item.labels for item in labelled}


def wait_until(holds: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def serving(folder: Path, file: Path, labels: str, label: str | None = None) -> Iterator[Served]:
    """Serve a file, in its order."""
    server = Served(folder / "store.db", [file], labels, label)
    server.store.set_about("order", "file")
    yield server
    server.stop()


def sentence(page: Any) -> str:
    return " ".join(page.locator("#sentence .word").all_text_contents())


def wait_for_sentence(page: Any, beginning: str) -> None:
    words = "[...document.querySelectorAll('#sentence .word')].map(w => w.textContent).join(' ')"
    page.wait_for_function(f"b => {words}.startsWith(b)", arg=beginning)
    page.wait_for_selector("#sentence:not([aria-busy])")  # what the model has learned is drawn in


def wait_for_the_next(page: Any) -> None:
    """Wait until the sentence after the shown one is fetched ahead, too."""
    asked = (
        "performance.getEntriesByType('resource').filter(e => e.name.endsWith('/api/next') && e.responseEnd)"
    )
    page.wait_for_function(f"() => {asked}.length > 1")


CONTENT = {
    "label": ".label-view .card:not([hidden])",
    "sentences": ".row-link",
    "doubts": "main h2",
    "progress": ".counts",
}


def open_view(page: Any, served: Served, view: str) -> None:
    """Open a view, and wait until it has its content."""
    page.goto(f"{served.address}#{view}")
    page.wait_for_selector(CONTENT[view])


def marks(page: Any) -> list[str]:
    script = """all => all.map(m => [...m.querySelectorAll('.word')].map(w => w.textContent).join(' ')
      + '/' + m.dataset.label)"""
    return page.locator("#sentence .mark").evaluate_all(script)


def drag(page: Any, first: int, last: int) -> None:
    script = "(all, ends) => ends.map(i => all[i].getBoundingClientRect().toJSON())"
    a, b = page.locator("#sentence .word").evaluate_all(script, [first, last])
    page.mouse.move(a["x"] + 3, a["y"] + a["height"] / 2)
    page.mouse.down()
    page.mouse.move(b["x"] + 3, b["y"] + b["height"] / 2)
    page.mouse.move(b["x"] + b["width"] - 3, b["y"] + b["height"] / 2)
    page.mouse.up()


def predictions(teacher, store):
    """What a model says of all structures."""
    model = teacher.current.model
    X = list(store.structures())
    return [list(y) for y in model.predict(X)], [np.asarray(p) for p in model.predict_marginals(X)]


def same_predictions(a, b):
    # Models read back from a snapshot differ in the last bits of sums.
    return a[0] == b[0] and all(np.allclose(p, q, atol=1e-9) for p, q in zip(a[1], b[1], strict=True))


def rebuilt_predictions(store):
    rebuilt = Teacher(store)
    rebuilt.rebuilt()
    return predictions(rebuilt, store)
