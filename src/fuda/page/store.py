"""The store of a page: structures, a log of all that people did, and snapshots of the model.

A store is one SQLite file in WAL mode. What is acknowledged has been synced to the disk. The log of
*events* is only appended to:

=========  ===========================================================================================
kind       what happened
=========  ===========================================================================================
file       a file was added; its labels teach the model
accept     a person gave a structure its labels
skip       a person put a structure aside
undo       an earlier accept or skip was taken back
label      a label was added to those that can be chosen
setting    the order or the learner was changed
=========  ===========================================================================================

Accepts and skips are *steps*. The state of a structure is that of its last step that has not been
undone, and else what its file says; the columns of `items` repeat it, so that it need not be found
each time. A *lesson* is an accept that has not been undone, or a file with labels. A *snapshot* is a
model that has learned all lessons up to an event: a model is rebuilt from the last snapshot and the
lessons after it. An undo removes the snapshots that have learned what is undone.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from fuda.data.structures import Structure
from fuda.errors import DataError
from fuda.formats import jsonl
from fuda.formats.dataset import Record
from fuda.page.spans import Unit

try:
    import fcntl
except ImportError:  # Windows: nothing keeps a second process from opening the same store
    fcntl = None  # type: ignore[assignment]

VERSION = 1
LEASE = 600.0  # seconds for which a structure is kept for a tab
_SNAPSHOTS = 4  # kept
_LIVE = "NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.number)"
_LABELLED = "labels IS NOT NULL AND status <> 'skipped'"
_LATER = f"""EXISTS (SELECT 1 FROM events l WHERE l.item = e.item AND l.number > e.number
    AND l.kind IN ('accept', 'skip') AND {_LIVE.replace("e.", "l.")})"""
_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, format TEXT NOT NULL, options TEXT NOT NULL);
CREATE TABLE items (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, place INTEGER NOT NULL, digest BLOB NOT NULL,
    words TEXT NOT NULL, record TEXT NOT NULL, original TEXT, given TEXT, complete INTEGER NOT NULL,
    status TEXT NOT NULL, labels TEXT, source TEXT, version INTEGER NOT NULL DEFAULT 0);
CREATE INDEX items_by_status ON items (status);
CREATE INDEX items_by_digest ON items (digest);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL, item INTEGER,
    labels TEXT, undoes INTEGER UNIQUE, who TEXT, tab TEXT, more TEXT);
CREATE INDEX events_by_item ON events (item);
CREATE TABLE snapshots (
    id INTEGER PRIMARY KEY AUTOINCREMENT, event INTEGER NOT NULL, learner TEXT NOT NULL,
    refitted INTEGER NOT NULL, model BLOB NOT NULL);
CREATE TABLE leases (item INTEGER PRIMARY KEY, tab TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE sessions (digest TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
"""


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


class Store:
    """An open store; all methods may be called from any thread.

    Parameters
    ----------
    path : str or Path
        The file.
    create : bool
        Whether to make it where there is none.
    shared : bool
        Whether other processes may have it open, as for reading.
    """

    def __init__(self, path: str | Path, create: bool = False, shared: bool = False) -> None:
        self.path = Path(path)
        exists = self.path.exists() and self.path.stat().st_size > 0
        if not exists and not create:
            raise DataError(f"{path}: there is no such store; make one with: fuda label FILE --store {path}")
        self._writing, self._local = threading.RLock(), threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            if not shared:
                self._lock(path)
            self._writer = self._connect()
            if not exists:
                self._make()
            self._check(path)
        except (OSError, sqlite3.Error) as error:
            self.close()
            problem = getattr(error, "strerror", None) or str(error)
            raise DataError(f"{path}: not a usable store ({problem}); name another file") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; an unfinished transaction is taken back."""
        for connection in self._opened:
            connection.close()
        self._opened.clear()
        # Last: closing any descriptor of the file would drop the locks that SQLite holds on it.
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _lock(self, path: str | Path) -> None:
        assert self._descriptor is not None
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            problem = f"{path}: another `fuda label` has this store open"
            raise DataError(f"{problem}; use its page, or end it first") from None

    def _make(self) -> None:
        self._writer.execute("PRAGMA journal_mode = WAL")
        # Not `executescript`, which commits first: a kill leaves an empty file or the whole schema.
        with self.transaction() as writer:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                writer.execute(statement)
            writer.execute("INSERT INTO about VALUES ('format', ?)", (json.dumps(VERSION),))

    def _check(self, path: str | Path) -> None:
        try:
            found = self.about("format")
        except sqlite3.OperationalError:
            found = None
        if found is None:
            raise DataError(f"{path}: is not a store of fuda label; name another file with --store")
        if found != VERSION:
            raise DataError(f"{path}: is a store of version {found}, this fuda reads {VERSION}; update fuda")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = FULL")
        self._opened.append(connection)
        return connection

    @property
    def _reader(self) -> sqlite3.Connection:
        """The connection of this thread for reading; within a transaction, that which writes."""
        if getattr(self._local, "writes", False):
            return self._writer
        if not hasattr(self._local, "connection"):
            self._local.connection = self._connect()
        found: sqlite3.Connection = self._local.connection
        return found

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write within a transaction: all of it is on the disk after the block, or none of it.

        Yields
        ------
        Connection
            The connection to write with.
        """
        with self._writing:
            if self._writer.in_transaction:
                yield self._writer
                return
            self._writer.execute("BEGIN IMMEDIATE")
            self._local.writes = True
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # the first error counts
                    self._writer.execute("ROLLBACK")
                raise
            finally:
                self._local.writes = False

    # What the store is about

    def about(self, name: str, default: Any = None) -> Any:
        """Return a value of the store as a whole, such as its labels."""
        row = self._reader.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return default if row is None else json.loads(row[0])

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
        """What a person may choose: types of spans, or labels of nodes; in order of their arrival."""
        return list(self.about("labels", []))

    def counts(self) -> dict[str, int]:
        """Return the number of structures by status."""
        found = dict(self._reader.execute("SELECT status, COUNT(*) FROM items GROUP BY status").fetchall())
        return {"new": 0, "done": 0, "skipped": 0, **found}

    # Structures

    def item(self, number: int) -> Item | None:
        """Return a structure by its number, from 1; None if there is none."""
        found = self.items("items.id = ?", (number,))
        return found[0] if found else None

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

    def count(self, where: str, values: Iterable[Any] = ()) -> int:
        """Return how many structures meet a condition of SQL."""
        found = self._reader.execute(f"SELECT COUNT(*) FROM items WHERE {where}", tuple(values)).fetchone()
        return int(found[0])

    def labelled(self) -> tuple[int, list[Structure], list[list[Any]]]:
        """Return all structures with labels and the last event that these include."""
        with closing(self._connect()) as reader:
            reader.execute("BEGIN")
            event = reader.execute("SELECT IFNULL(MAX(number), 0) FROM events").fetchone()[0]
            rows = reader.execute(
                f"SELECT record, labels FROM items WHERE {_LABELLED} ORDER BY id"
            ).fetchall()
            self._opened.remove(reader)
        return int(event), [record_of(r).structure for r, _ in rows], [json.loads(y) for _, y in rows]

    def session(self, digest: str) -> float | None:
        """Return until when a session lasts; None where there is none."""
        row = self._reader.execute("SELECT until FROM sessions WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else float(row[0])

    # Leases: which structure is with which tab

    def lease(self, item: int, tab: str) -> None:
        """Keep a structure for a tab for some time."""
        with self._writing:
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
            found = writer.execute(
                """INSERT INTO events (time, kind, item, labels, undoes, who, tab, more)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
                (time.time(), kind, item, texts[0], undoes, *(step or (None, None)), texts[1]),
            )
            assert found.lastrowid is not None
            return found.lastrowid

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
            found = writer.execute("SELECT version FROM items WHERE id = ?", (item,)).fetchone()
            if found is None:
                raise DataError(f"there is no sentence {item}; reload the page")
            if found[0] != version:
                last = writer.execute(
                    "SELECT number, kind, labels, tab FROM events WHERE item = ? ORDER BY number DESC",
                    (item,),
                ).fetchone()
                same = last is not None and (last[1], last[3]) == (kind, by.tab) and found[0] == version + 1
                if same and (None if last[2] is None else json.loads(last[2])) == labels:
                    return int(last[0])
                raise ConflictError
            number = self.log(kind, item, labels, step=by, more=more)
            self._settle(item)
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
            found = writer.execute(*self._undoable("number, item", others, "ORDER BY number DESC")).fetchone()
            if found is None:
                return None
            number, item = found
            self.log("undo", item, undoes=number, step=by)
            self._settle(item)
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

    def _settle(self, item: int) -> None:
        """Set the state of a structure to what the log says, as a new version."""
        with self.transaction() as writer:
            found = writer.execute(f"SELECT * FROM ({_state('?')})", (item, item)).fetchone()
            writer.execute(
                "UPDATE items SET status = ?, labels = ?, source = ?, version = version + 1 WHERE id = ?",
                (*found[:3], item),
            )

    def states_by_log(self) -> dict[int, tuple[Any, ...]]:
        """Return the states of all structures as the log says, to compare with those repeated."""
        numbers = [number for (number,) in self._reader.execute("SELECT id FROM items")]
        query = f"SELECT * FROM ({_state('?')})"
        return {i: self._reader.execute(query, (i, i)).fetchone()[:3] for i in numbers}

    def last_event(self) -> int:
        """Return the number of the last event; 0 if there is none."""
        return int(self._reader.execute("SELECT IFNULL(MAX(number), 0) FROM events").fetchone()[0])

    def steps(self) -> list[tuple[int, float, int, Any]]:
        """Return number, time, structure and further values of the accepts that have not been undone."""
        rows = self._reader.execute(
            f"SELECT number, time, item, more FROM events e WHERE kind = 'accept' AND {_LIVE} ORDER BY number"
        )
        return [(number, when, item, json.loads(more or "{}")) for number, when, item, more in rows]

    # What the model learns

    def lessons_after(self, event: int) -> list[int]:
        """Return the numbers of the lessons after an event."""
        rows = self._reader.execute(
            f"""SELECT number FROM events e WHERE number > ? AND kind IN ('accept', 'file') AND {_LIVE}
            ORDER BY number""",
            (event,),
        )
        return [number for (number,) in rows]

    def lesson(self, event: int) -> Lesson:
        """Return what a lesson teaches."""
        kind, item, labels, more = self._reader.execute(
            "SELECT kind, item, labels, more FROM events WHERE number = ?", (event,)
        ).fetchone()
        if kind == "accept":
            return Lesson(event, list(self.structures([item])), [json.loads(labels)])
        rows = self._reader.execute(
            "SELECT record, given FROM items WHERE given IS NOT NULL AND id BETWEEN ? AND ? ORDER BY id",
            json.loads(more)["items"],
        ).fetchall()
        return Lesson(event, [record_of(r).structure for r, _ in rows], [json.loads(y) for _, y in rows])

    def lesson_count(self, event: int) -> int:
        """Return how many structures the lessons after an event have."""
        accepts, files = self._reader.execute(
            f"""SELECT IFNULL(SUM(kind = 'accept'), 0), IFNULL(SUM((kind = 'file') * (more ->> 'labelled')), 0)
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

    def add_snapshot(self, snapshot: Snapshot) -> bool:
        """Keep a model, unless something that it has learned was undone meanwhile.

        Returns
        -------
        bool
            Whether it was kept.
        """
        with self.transaction() as writer:
            undone = writer.execute(
                "SELECT 1 FROM events WHERE undoes <= ? AND number > ?", (snapshot.event, snapshot.event)
            ).fetchone()
            if undone is not None:
                return False
            writer.execute(
                "INSERT INTO snapshots (event, learner, refitted, model) VALUES (?, ?, ?, ?)",
                (snapshot.event, snapshot.learner, snapshot.refitted, snapshot.model),
            )
            writer.execute(
                """DELETE FROM snapshots WHERE event > 0 AND id NOT IN
                (SELECT id FROM snapshots ORDER BY event DESC, id DESC LIMIT ?)""",
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
    found: Record = jsonl.read(text, "store").records[0]
    return found


def _item(row: tuple[Any, ...]) -> Item:
    number, file, place, record, status, labels, source, version = row
    known = None if labels is None else json.loads(labels)
    return Item(number, f"{file}, sentence {place}", record_of(record), status, known, source, version)
