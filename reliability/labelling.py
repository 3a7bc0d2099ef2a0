"""Kill −9 at random moments of labelling on a page: nothing that was acknowledged is lost.

A person, simulated over HTTP, accepts, skips, undoes and corrects; the server is killed at a
random moment and started again on the same store, again and again. After each kill:

- the store opens, and SQLite finds no fault in it;
- it has every step that was acknowledged, and at most one more, whose answer was on its way;
- the states of structures are those that the log says;
- the model is rebuilt twice to the same predictions, which are those of the page before the kill.

    python -m reliability.labelling [--runs N] [--seed S] [--jobs N]
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from fuda.cli.label import fill
from fuda.datasets import load_product_usage
from fuda.formats.text import read
from fuda.page import server, teacher
from fuda.page.store import Store
from reliability.running import Findings, run

SENTENCES = 150
STORE = 10  # kills of the server of one store
LONGEST = 2.0  # seconds until a kill
READING = {"format_name": None, "label": None, "columns": None, "graph": None, "options": ()}
teacher._EVERY = 5  # lessons between snapshots: many of them are under way when the kill comes


class Person:
    """A person at a page, who remembers what was acknowledged."""

    def __init__(self, address: str, gold: dict[int, list[Any]], chance: random.Random) -> None:
        base = address.split("/?")[0]
        self.client = httpx.Client(base_url=base, headers={"Origin": base}, timeout=10)
        self.gold, self.chance = gold, chance
        self.client.get(address)

    def ask(self, path: str, **content: Any) -> Any:
        answer = self.client.post(f"/api/{path}", json={"tab": "person", **content})
        answer.raise_for_status()
        return answer.json()

    def step(self) -> dict[str, Any] | None:
        """Do one thing: the state of the structure that was acknowledged."""
        draw = self.chance.random()
        if draw < 0.1:
            return self.ask("undo")["item"]
        done = self.client.get("/api/items?status=done&limit=200").json()["items"] if draw < 0.2 else []
        item = self.chance.choice(done) if done else self.ask("next")["item"]
        if item is None:
            return None
        item = self.client.get(f"/api/items/{item['id']}?tab=person").json()["item"]
        if draw > 0.9:
            return self.ask(f"items/{item['id']}/skip", version=item["version"])["item"]
        spans = self.gold[item["id"]][: self.chance.randint(0, 4)] if done else self.gold[item["id"]]
        return self.ask(f"items/{item['id']}/accept", version=item["version"], spans=spans)["item"]

    def shown(self, probe: int) -> Any:
        """What the page shows for a structure that nobody labels, once all has been learned."""
        while True:
            state = self.client.get("/api/state").json()
            if state["model"]["event"] == state["event"]:
                item = self.client.get(f"/api/items/{probe}").json()["item"]
                return state["event"], item["spans"], state["model"]["refit"]
            time.sleep(0.01)


def served(path: Path) -> tuple[int, str]:
    """Serve a store in a child: its process and the address."""
    reading, writing = os.pipe()
    child = os.fork()  # with everything imported
    if child:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            return child, pipe.readline().strip()
    try:
        store = Store(path)
        listener = server.listening("127.0.0.1", None, None)
        server.serve(store, listener, "127.0.0.1", None, lambda address: _tell(writing, address))
    finally:
        os._exit(1)


def _tell(pipe: int, address: str) -> None:
    os.write(pipe, f"{address}\n".encode())
    os.close(pipe)


def killed_run(
    path: Path, gold: dict[int, list[Any]], known: dict[int, Any], chance: random.Random
) -> list[Any]:
    """Label until a kill; return what the probe showed last. `known` gets acknowledged items."""
    child, address = served(path)
    person = Person(address, gold, chance)
    seconds = chance.uniform(0.0, LONGEST)
    killer = os.fork()
    if not killer:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os._exit(0)
    shown = [0, None, 0]
    try:
        while True:
            item = person.step()
            if item is not None:
                known[item["id"]] = item
            shown = list(person.shown(SENTENCES))
            time.sleep(chance.uniform(0.0, 0.3))  # a person reads
    except httpx.TransportError:
        pass  # the kill
    for process in (killer, child):
        os.waitpid(process, 0)
    return shown


def broken_by(path: Path, known: dict[int, Any], shown: list[Any]) -> tuple[list[str], bool]:
    """What is wrong with a store after a kill, and whether its model could be compared."""
    store, broken = Store(path), []
    with store.transaction() as connection:
        if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            broken.append("SQLite finds the store damaged")
        repeated = {
            i: tuple(rest) for i, *rest in connection.execute("SELECT id, status, labels, source FROM items")
        }
    if repeated != store.states_by_log():
        broken.append("states are not what the log says")
    ahead = 0
    for number, item in known.items():
        now = store.item(number)
        assert now is not None
        if now.version == item["version"] + 1:
            ahead += 1  # a step whose answer did not come
        elif now.version != item["version"] or now.status != item["status"]:
            broken.append(f"sentence {number} was acknowledged as {item['status']} and is {now.status}")
        elif now.status == "done" and store.unit.shown(now.labels or [], None)["spans"] != item["spans"]:
            broken.append(f"sentence {number} has other labels than those acknowledged")
    if ahead > 1:
        broken.append(f"{ahead} steps are there that were never acknowledged")
    first, second = teacher.Teacher(store).rebuilt(), teacher.Teacher(store).rebuilt()
    # A refit that was committed and not yet in use is in use after a restart.
    refit = store.last_refit(teacher.Teacher(store).learner.name)
    compared = first is not None and (shown[0], shown[2]) == (store.last_event(), refit)
    if first is not None:
        everything = list(store.structures())
        same = [list(y) for y in first.predict(everything)] == [list(y) for y in second.predict(everything)]
        if not same:
            broken.append("the model is rebuilt differently each time")
    if compared:
        from fuda.page.api import Api

        api = Api(store)
        api.teacher.rebuilt()
        item = store.item(SENTENCES)
        assert item is not None
        if store.unit.shown(*api._predicted(item))["spans"] != shown[1]:
            broken.append("the model rebuilt labels otherwise than that of the page")
    store.close()
    return broken, compared


def units(runs: int, seed: int) -> list[tuple[int, int]]:
    """Stores, and how often the server of each is killed."""
    return [(number, min(STORE, runs - first)) for number, first in enumerate(range(0, runs, STORE))]


def work(unit: tuple[int, int], seed: int, folder: Path) -> Findings:
    """Kill and start again."""
    (place, runs), (path, pool) = unit, (folder / "pool.db", folder / "pool.txt")
    pool.write_text(
        "".join(
            f"{' '.join(word for word, *_ in x.observations)}.\n" for x in load_product_usage().X[:SENTENCES]
        )
    )
    store = Store(path, create=True)
    fill(store, (str(pool),), "A,B,C", False, None, **READING)
    gold = {
        number: [
            {"start": t, "end": t + 1, "label": "ABC"[len(word) % 3]}
            for t, word in enumerate(x.observations)
            if len(word) > 5
        ]
        for number, x in enumerate(read(pool.read_text(), str(pool)).X, 1)
    }
    store.close()
    chance, known = random.Random(f"{seed} {place}"), dict[int, Any]()
    broken: list[str] = []
    compared = 0
    for number in range(runs):
        shown = killed_run(path, gold, known, chance)
        problems, was_compared = broken_by(path, known, shown)
        compared += was_compared
        broken += [f"store {place}, kill {number} of --seed {seed}: {problem}" for problem in problems]
        known = now_known(path, known)
        print(f"{number + 1} of {runs} kills, {len(known)} sentences", file=sys.stderr, flush=True)
    counts = {"kills": runs, "sentences with acknowledged steps": len(known), "models compared": compared}
    return Findings(broken, Counter(counts))


def now_known(path: Path, known: dict[int, Any]) -> dict[int, Any]:
    """What is known of sentences from here on: steps whose answer did not come are there now."""
    store, current = Store(path), {}
    for number in known:
        item = store.item(number)
        assert item is not None
        labels = store.unit.shown(item.labels, None) if item.labels is not None else {"spans": []}
        current[number] = json.loads(
            json.dumps({"id": number, "version": item.version, "status": item.status, **labels})
        )
    store.close()
    return current


if __name__ == "__main__":
    sys.exit(run(__doc__, 100, units, work))
