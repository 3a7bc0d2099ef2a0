"""The file of a store: SQLite in WAL mode, one writing process, transactions as a whole."""

from __future__ import annotations

import errno
import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fuda.errors import DataError
from fuda.files import check_name

try:
    import fcntl
except ImportError:  # Windows: nothing keeps a second process from opening the same store
    fcntl = None  # type: ignore[assignment]

VERSION = 1
_FREE_SPACE = "make room on its disk"
_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, options TEXT NOT NULL);
CREATE TABLE items (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, place INTEGER NOT NULL, digest BLOB NOT NULL,
    words TEXT NOT NULL, record TEXT NOT NULL, original TEXT,
    given TEXT, complete INTEGER NOT NULL, lesson INTEGER,
    status TEXT NOT NULL, labels TEXT, source TEXT, version INTEGER NOT NULL DEFAULT 0);
CREATE INDEX items_by_status ON items (status);
CREATE INDEX items_by_lesson ON items (lesson) WHERE lesson IS NOT NULL;
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


class StoreError(DataError):
    """A store that cannot be written to now, as on a full disk; nothing of it has changed."""


class Database:
    """An open file; all methods may be called from any thread.

    Parameters
    ----------
    path : str or Path
        The file.
    create : bool
        Whether to make the store if it does not exist.
    shared : bool
        Whether other processes may have it open, as for reading.
    """

    def __init__(self, path: str | Path, create: bool = False, shared: bool = False) -> None:
        self.path = Path(path)
        check_name(path)
        exists = os.path.exists(path)
        if not (exists and os.path.getsize(path)) and not create:
            raise DataError(f"{path}: there is no such store; make one with: fuda label FILE --store {path}")
        self._writing, self._local = threading.RLock(), threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            if not shared:
                self._lock(path)
            self._writer = self._connect()
            if create and not self._writer.execute("SELECT 1 FROM sqlite_master").fetchone():
                self._make(exists)
            self._check(path)
        except (OSError, sqlite3.Error) as error:
            self.close()
            problem = getattr(error, "strerror", None) or str(error)
            remedy = _FREE_SPACE if _is_full(error) else "name another file"
            raise DataError(f"{path}: not a usable store ({problem}); {remedy}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; an unfinished transaction is rolled back."""
        for connection in self._opened:
            connection.close()
        self._opened.clear()
        # Last: closing any descriptor of the file would drop the locks that SQLite holds on it.
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def remove(self) -> None:
        """Close the file and remove it, as after a mistake in what was to be its content."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def _lock(self, path: str | Path) -> None:
        assert self._descriptor is not None
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            problem = f"{path}: another `fuda label` has this store open"
            raise DataError(f"{problem}; use its page, or end it first") from None

    def _make(self, existed: bool) -> None:
        """Make the tables; where that fails, a file that was not there before is removed."""
        try:
            with self._errors_reported():
                self._writer.execute("PRAGMA journal_mode = WAL")
            # Not `executescript`, which commits first: a kill leaves a file without tables, which
            # the next start takes for a new one, or the whole schema.
            with self.transaction() as writer:
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    writer.execute(statement)
                values = [("format", json.dumps(VERSION)), ("id", json.dumps(secrets.token_hex(8)))]
                writer.executemany("INSERT INTO about VALUES (?, ?)", values)
        except BaseException:
            if not existed:
                self.remove()
            raise

    def _check(self, path: str | Path) -> None:
        try:
            version = self.about("format")
        except sqlite3.OperationalError:
            version = None
        if version is None:
            raise DataError(f"{path}: is not a store of fuda label; name another file with --store")
        if version != VERSION:
            raise DataError(
                f"{path}: is a store of version {version}, this fuda reads {VERSION}; update fuda"
            )

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        self._opened.append(connection)  # first, so that it is closed also if the file is not a database
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    @property
    def _reader(self) -> sqlite3.Connection:
        """The connection of this thread for reading; within a transaction, that which writes."""
        if getattr(self._local, "writes", False):
            return self._writer
        if not hasattr(self._local, "connection"):
            self._local.connection = self._connect()
        connection: sqlite3.Connection = self._local.connection
        return connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write within a transaction: all of it is on the disk after the block, or none of it.

        Yields
        ------
        Connection
            The connection to write with.

        Raises
        ------
        StoreError
            Where the file cannot be written to.
        """
        with self._writing, self._errors_reported():
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

    @contextmanager
    def _errors_reported(self) -> Iterator[None]:
        """Within the block, what keeps SQLite from writing becomes a StoreError."""
        try:
            yield
        except sqlite3.OperationalError as error:
            remedy = _FREE_SPACE if _is_full(error) else "see who else has it open, and who may write to it"
            raise StoreError(f"{self.path}: cannot be written: {error}; {remedy}") from error

    def about(self, name: str, default: Any = None) -> Any:
        """Return a value of the store as a whole, such as its labels."""
        row = self._reader.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return default if row is None else json.loads(row[0])


def _is_full(error: Exception) -> bool:
    """Whether an error may come of a full disk."""
    codes = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes or getattr(error, "errno", 0) == errno.ENOSPC
