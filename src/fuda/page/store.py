"""The store of a page: structures, a log of all that people did, and snapshots of the model.

A store is one SQLite file in WAL mode. What is acknowledged has been synced to the disk. The log
of *events* is only appended to:

=========  ======================================================================================
kind       what happened
=========  ======================================================================================
file       a file was added; its labels teach the model
accept     a person gave a structure its labels
skip       a person put a structure aside
undo       an earlier accept or skip was taken back
label      a label was added to those that can be chosen
setting    the order, the learner or its features were changed
=========  ======================================================================================

Accepts and skips are *steps*. The state of a structure is that of its last step that has not been
undone, and else that of its file; the columns of `items` repeat it, so that it need not be found
each time. A *lesson* is an accept that has not been undone, or a file with labels. A *snapshot* is
a model that has learned all lessons up to an event: a model is rebuilt from the last snapshot and
the lessons after it. An undo removes the snapshots that have learned what is undone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

from fuda.data.structures import Structure
from fuda.errors import DataError
from fuda.formats import jsonl
from fuda.formats.dataset import Record
from fuda.page.database import Database
from fuda.page.spans import Unit

LEASE = 600.0  # a structure is reserved for a tab for so many seconds
_SNAPSHOTS = 4  # so many snapshots of a learner are kept
_LIVE = "NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.number)"
LABELLED = "labels IS NOT NULL AND status <> 'skipped'"
_LATER = f"""EXISTS (SELECT 1 FROM events l WHERE l.item = e.item AND l.number > e.number
    AND l.kind IN ('accept', 'skip') AND {_LIVE.replace("e.", "l.")})"""


class Item(NamedTuple):
    """A structure of the store and its state; `version` is the number of edits so far."""

    id: int
    place: str
    record: Record
    status: str
    labels: list[Any] | None
    source: str | None
    version: int


class Step(NamedTuple):
    """Who makes a step: the person (a session of a browser) and the tab."""

    who: str
    tab: str


class Lesson(NamedTuple):
    """What the model learns from an event."""

    event: int
    structures: list[Structure]
    labels: list[list[Any]]


class Snapshot(NamedTuple):
    """A model, in the bytes of its file, that has learned all lessons up to an event."""

    event: int
    learner: str
    refitted: bool
    model: bytes


class ConflictError(Exception):
    """An edit of a version that is no longer the last one."""


class Store(Database):
    """An open store; all methods may be called from any thread.

    Parameters
    ----------
    path : str or Path
        The file.
    create : bool
        Whether to make the store if it does not exist.
    shared : bool
        Whether other processes may have it open, as for reading.
    """

    # What the store is about

    def set_about(self, name: str, value: Any, event: str | None = None, step: Step | None = None) -> None:
        """Set a value of the store as a whole; `event` is the kind of the event to log for it."""
        with self.transaction() as writer:
            text = json.dumps(value, ensure_ascii=False)
            writer.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, text))
            if event is not None:
                self.log(event, step=step, more={name: value})

    @property
    def unit(self) -> Unit:
        """What a person labels."""
        return Unit(self.about("scheme"))

    @property
    def shape(self) -> str:
        """The shape of the structures."""
        return str(self.about("shape"))

    @property
    def kinds(self) -> list[str]:
        """What a person may choose: types of spans or labels of nodes, in order of arrival."""
        return list(self.about("labels", []))

    def counts(self) -> dict[str, int]:
        """Return the number of structures by status."""
        done, skipped, total = self._reader.execute(
            """SELECT (SELECT COUNT(*) FROM items WHERE status = 'done'),
            (SELECT COUNT(*) FROM items WHERE status = 'skipped'), (SELECT IFNULL(MAX(id), 0) FROM items)"""
        ).fetchone()
        # By the index alone: most structures are new, and none is ever removed.
        return {"new": total - done - skipped, "done": done, "skipped": skipped}

    # Structures

    def item(self, number: int) -> Item | None:
        """Return a structure by its number, from 1; None if no structure has it."""
        items = self.items("items.id = ?", (number,))
        return items[0] if items else None

    def items(self, where: str = "1", values: Iterable[Any] = (), order: str = "items.id") -> list[Item]:
        """Return structures by a condition of SQL."""
        rows = self._reader.execute(
            f"""SELECT items.id, files.name, place, record, status, labels, source, version
            FROM items JOIN files ON files.id = items.file WHERE {where} ORDER BY {order}""",
            tuple(values),
        )
        return [_item(row) for row in rows]

    def structures(self, numbers: Iterable[int] | None = None) -> Iterator[Structure]:
        """Yield structures in the order of their numbers: some, or all of them."""
        if numbers is None:
            rows = self._reader.execute("SELECT record FROM items ORDER BY id")
        else:
            listed = json.dumps(sorted(map(int, numbers)))
            rows = self._reader.execute(
                "SELECT record FROM items WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", (listed,)
            )
        for (text,) in rows:
            yield record_of(text).structure

    def numbers(self, where: str, values: Iterable[Any] = ()) -> list[int]:
        """Return the numbers of structures by a condition of SQL."""
        rows = self._reader.execute(f"SELECT id FROM items WHERE {where} ORDER BY id", tuple(values))
        return [number for (number,) in rows]

    def versions(self) -> list[tuple[int, int]]:
        """Return the numbers of all structures and their versions."""
        return self._reader.execute("SELECT id, version FROM items").fetchall()

    def label_lists(self, where: str) -> list[tuple[str, int]]:
        """Return the labels of structures, as JSON, and how many structures have them."""
        query = f"SELECT labels, COUNT(*) FROM items WHERE {where} GROUP BY labels"
        return self._reader.execute(query).fetchall()

    def count(self, where: str, values: Iterable[Any] = ()) -> int:
        """Return how many structures meet a condition of SQL."""
        row = self._reader.execute(f"SELECT COUNT(*) FROM items WHERE {where}", tuple(values)).fetchone()
        return int(row[0])

    def labelled(self) -> tuple[int, list[Structure], list[list[Any]]]:
        """Return all structures with labels and the last event that these include."""
        with closing(self._connect()) as reader:
            reader.execute("BEGIN")
            event = reader.execute("SELECT IFNULL(MAX(number), 0) FROM events").fetchone()[0]
            rows = reader.execute(f"SELECT record, labels FROM items WHERE {LABELLED} ORDER BY id").fetchall()
            self._opened.remove(reader)
        return int(event), [record_of(r).structure for r, _ in rows], [json.loads(y) for _, y in rows]

    def export_rows(self) -> Iterator[tuple[str, str | None, str, str]]:
        """Yield record, original, labels and reading options of the structures that are done."""
        yield from self._reader.execute(
            """SELECT record, original, labels, options FROM items JOIN files ON files.id = items.file
            WHERE status = 'done' ORDER BY items.id"""
        )

    def reading(self) -> dict[str, Any] | None:
        """Return how the first file was read."""
        row = self._reader.execute("SELECT options FROM files ORDER BY id LIMIT 1").fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def session(self, digest: str) -> float | None:
        """Return until when a session lasts; None if it does not exist."""
        row = self._reader.execute("SELECT until FROM sessions WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else float(row[0])

    # Leases: which structure is with which tab

    def lease(self, item: int, tab: str) -> None:
        """Keep a structure for a tab for some time."""
        with self._writing, self._errors_reported():
            # Without waiting for the disk: nothing is lost with a lease.
            self._writer.execute("PRAGMA synchronous = NORMAL")
            try:
                now = time.time()
                self._writer.execute("DELETE FROM leases WHERE until < ?", (now,))
                self._writer.execute(
                    "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (item, tab, now + LEASE)
                )
            finally:
                self._writer.execute("PRAGMA synchronous = FULL")

    def leased(self, tab: str | None = None) -> list[int]:
        """Return the structures that tabs have, or those that one tab has."""
        rows = self._reader.execute(
            "SELECT item FROM leases WHERE until >= ? AND (? IS NULL OR tab = ?)", (time.time(), tab, tab)
        )
        return [item for (item,) in rows]

    # Events

    def log(
        self,
        kind: str,
        item: int | None = None,
        labels: list[Any] | None = None,
        undoes: int | None = None,
        step: Step | None = None,
        more: Any = None,
    ) -> int:
        """Append an event within a transaction; returns its number."""
        with self.transaction() as writer:
            texts = [None if x is None else json.dumps(x, ensure_ascii=False) for x in (labels, more)]
            cursor = writer.execute(
                """INSERT INTO events (time, kind, item, labels, undoes, who, tab, more)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
                (time.time(), kind, item, texts[0], undoes, *(step or (None, None)), texts[1]),
            )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def step(
        self, kind: str, item: int, version: int, labels: list[Any] | None, by: Step, more: Any = None
    ) -> int:
        """Log an accept or a skip of a structure; returns the number of the event.

        A step that was logged before, whose answer was lost, is not logged again.

        Raises
        ------
        ConflictError
            If the structure has been changed since that version.
        """
        with self.transaction() as writer:
            row = writer.execute("SELECT version FROM items WHERE id = ?", (item,)).fetchone()
            if row is None:
                raise DataError(f"there is no sentence {item}; reload the page")
            if row[0] != version:
                last = writer.execute(
                    "SELECT number, kind, labels, tab FROM events WHERE item = ? ORDER BY number DESC",
                    (item,),
                ).fetchone()
                same = last is not None and (last[1], last[3]) == (kind, by.tab) and row[0] == version + 1
                if same and (None if last[2] is None else json.loads(last[2])) == labels:
                    return int(last[0])
                raise ConflictError
            number = self.log(kind, item, labels, step=by, more=more)
            self._update_state(item)
            writer.execute("DELETE FROM leases WHERE item = ?", (item,))
            return number

    def undo(self, by: Step, others: Iterable[str]) -> tuple[int, int] | None:
        """Take back the last step of a person; steps of people who are not here count as theirs.

        A step is not taken back while a later step of somebody else on the same structure holds.

        Parameters
        ----------
        by : Step
            The person.
        others : iterable of str
            The other people who are here.

        Returns
        -------
        (int, int) or None
            The structure and the event undone.
        """
        with self.transaction() as writer:
            row = writer.execute(*self._undoable("number, item", others, "ORDER BY number DESC")).fetchone()
            if row is None:
                return None
            number, item = row
            self.log("undo", item, undoes=number, step=by)
            self._update_state(item)
            writer.execute("DELETE FROM snapshots WHERE event >= ?", (number,))
            return item, number

    def depth(self, others: Iterable[str]) -> int:
        """Return how many steps a person can take back."""
        return int(self._reader.execute(*self._undoable("COUNT(*)", others)).fetchone()[0])

    @staticmethod
    def _undoable(what: str, others: Iterable[str], order: str = "") -> tuple[str, tuple[str]]:
        query = f"""SELECT {what} FROM events e WHERE kind IN ('accept', 'skip') AND {_LIVE}
            AND NOT {_LATER} AND IFNULL(who, '') NOT IN (SELECT value FROM json_each(?)) {order}"""
        return query, (json.dumps(sorted(others)),)

    def _update_state(self, item: int) -> None:
        """Set the state of a structure to that of the log, as a new version."""
        with self.transaction() as writer:
            state = writer.execute(f"SELECT * FROM ({_state('?')})", (item, item)).fetchone()
            writer.execute(
                "UPDATE items SET status = ?, labels = ?, source = ?, version = version + 1 WHERE id = ?",
                (*state[:3], item),
            )

    def states_by_log(self) -> dict[int, tuple[Any, ...]]:
        """Return the states of all structures by the log, to compare with those in `items`."""
        numbers = [number for (number,) in self._reader.execute("SELECT id FROM items")]
        query = f"SELECT * FROM ({_state('?')})"
        return {i: self._reader.execute(query, (i, i)).fetchone()[:3] for i in numbers}

    def last_event(self) -> int:
        """Return the number of the last event; 0 in an empty log."""
        return int(self._reader.execute("SELECT IFNULL(MAX(number), 0) FROM events").fetchone()[0])

    def steps(self) -> list[tuple[int, float, int, Any]]:
        """Return number, time, structure and further values of all accepts not undone since."""
        rows = self._reader.execute(
            f"SELECT number, time, item, more FROM events e WHERE kind = 'accept' AND {_LIVE} ORDER BY number"
        )
        return [(number, when, item, json.loads(more or "{}")) for number, when, item, more in rows]

    # What the model learns

    def lessons_after(self, event: int, last: int) -> list[int]:
        """Return the numbers of the lessons after an event, up to a last one."""
        rows = self._reader.execute(
            f"""SELECT number FROM events e WHERE number > ? AND number <= ?
            AND kind IN ('accept', 'file') AND {_LIVE} ORDER BY number""",
            (event, last),
        )
        return [number for (number,) in rows]

    def undone(self, event: int, last: int) -> bool:
        """Return whether something up to an event has been undone after it, up to a last event."""
        query = "SELECT 1 FROM events WHERE undoes <= ? AND number > ? AND number <= ?"
        return self._reader.execute(query, (event, event, last)).fetchone() is not None

    def lesson(self, event: int) -> Lesson:
        """Return what a lesson teaches."""
        kind, item, labels = self._reader.execute(
            "SELECT kind, item, labels FROM events WHERE number = ?", (event,)
        ).fetchone()
        if kind == "accept":
            return Lesson(event, list(self.structures([item])), [json.loads(labels)])
        rows = self._reader.execute(
            "SELECT record, given FROM items WHERE lesson = ? ORDER BY id", (event,)
        ).fetchall()
        return Lesson(event, [record_of(r).structure for r, _ in rows], [json.loads(y) for _, y in rows])

    def lesson_count(self, event: int) -> int:
        """Return how many structures the lessons after an event have."""
        accepts, files = self._reader.execute(
            f"""SELECT IFNULL(SUM(kind = 'accept'), 0),
                IFNULL(SUM((kind = 'file') * (more ->> 'labelled')), 0)
            FROM events e WHERE number > ? AND kind IN ('accept', 'file') AND {_LIVE}""",
            (event,),
        ).fetchone()
        return int(accepts) + int(files)

    def snapshot(self, learner: str) -> Snapshot | None:
        """Return the last snapshot of a learner."""
        row = self._reader.execute(
            """SELECT event, learner, refitted, model FROM snapshots WHERE learner = ?
            ORDER BY event DESC, id DESC LIMIT 1""",
            (learner,),
        ).fetchone()
        return None if row is None else Snapshot(row[0], row[1], bool(row[2]), row[3])

    def last_refit(self, learner: str) -> int:
        """Return the last event that a learner's last refit includes; 0 before the first refit."""
        query = "SELECT IFNULL(MAX(event), 0) FROM snapshots WHERE refitted AND learner = ?"
        return int(self._reader.execute(query, (learner,)).fetchone()[0])

    def add_snapshot(self, snapshot: Snapshot) -> bool:
        """Keep a model, unless something that it has learned was undone meanwhile.

        Returns
        -------
        bool
            Whether it was kept.
        """
        with self.transaction() as writer:
            if self.undone(snapshot.event, self.last_event()):
                return False
            writer.execute(
                "INSERT INTO snapshots (event, learner, refitted, model) VALUES (?, ?, ?, ?)",
                (snapshot.event, snapshot.learner, snapshot.refitted, snapshot.model),
            )
            writer.execute(
                """DELETE FROM snapshots WHERE event > 0 AND id NOT IN
                (SELECT id FROM snapshots ORDER BY event DESC, id DESC LIMIT ?)
                AND id NOT IN (SELECT MAX(id) FROM snapshots WHERE refitted GROUP BY learner)""",
                (_SNAPSHOTS,),
            )
            return True


def _state(item: str) -> str:
    """The query for status, labels and source of a structure by the log."""
    return f"""SELECT IIF(kind = 'accept', 'done', 'skipped'), IIF(kind = 'accept', e.labels, items.given),
            IIF(kind = 'accept', 'person', IIF(items.given IS NULL, NULL, 'file')), e.number AS place_in_log
        FROM events e JOIN items ON items.id = e.item
        WHERE e.item = {item} AND kind IN ('accept', 'skip') AND {_LIVE}
        UNION ALL
        SELECT IIF(complete, 'done', 'new'), given,
            IIF(given IS NULL, NULL, 'file'), 0 FROM items WHERE id = {item}
        ORDER BY place_in_log DESC LIMIT 1"""


def record_of(text: str) -> Record:
    """Return the record of a line of JSON, as the store has it."""
    record: Record = jsonl.read(text, "store").records[0]
    return record


def _item(row: tuple[Any, ...]) -> Item:
    number, file, place, record, status, labels, source, version = row
    known = None if labels is None else json.loads(labels)
    return Item(number, f"{file}, sentence {place}", record_of(record), status, known, source, version)
