"""The store: a log, what it says of structures, and what survives."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from fuda import DataError
from fuda.formats import read
from fuda.page import database, export, importing
from fuda.page.database import StoreError
from fuda.page.spans import Unit
from fuda.page.store import ConflictError, Snapshot, Step, Store
from page.conftest import ME, TEXT, add_file, full

YOU = Step("you", "other tab")


def state(store, number):
    item = store.item(number)
    return item.status, item.labels, item.source


def consistent(store):
    """Whether the states that are repeated are those of the log."""
    with closing(sqlite3.connect(store.path)) as reader:
        repeated = {
            i: tuple(rest) for i, *rest in reader.execute("SELECT id, status, labels, source FROM items")
        }
    return repeated == store.states_by_log()


def test_steps_and_undo_in_any_number(store):
    labels = ["B-PER", "O", "O", "B-LOC", "O"]
    store.step("accept", 1, 0, labels, ME)
    store.step("skip", 2, 0, None, ME)
    store.step("accept", 1, 1, ["O"] * 5, ME)
    assert state(store, 1) == ("done", ["O"] * 5, "person")
    assert [store.undo(ME, [])[0] for _ in range(2)] == [1, 2]
    assert state(store, 1) == ("done", labels, "person")
    assert state(store, 2) == ("new", None, None)
    assert consistent(store)
    assert store.depth([]) == 1
    assert store.undo(ME, [])[0] == 1
    assert store.undo(ME, []) is None
    assert state(store, 1) == ("new", None, None)
    assert store.item(1).version == 4
    assert consistent(store)


def test_what_was_done_is_there_after_a_restart(tmp_path, store):
    store.step("accept", 3, 0, ["O"] * 8, ME)
    store.close()
    again = Store(tmp_path / "news.db")
    assert state(again, 3)[0] == "done"
    assert again.undo(Step("another browser", "a"), ["you"])[0] == 3
    again.close()


def test_an_edit_of_an_old_version_is_refused_and_nothing_changes(store):
    store.step("accept", 1, 0, ["O"] * 5, ME)
    before = store.last_event()
    with pytest.raises(ConflictError):
        store.step("accept", 1, 0, ["B-PER", "O", "O", "O", "O"], YOU)
    assert store.last_event() == before
    assert state(store, 1)[1] == ["O"] * 5


def test_a_step_that_is_sent_again_counts_once(store):
    first = store.step("accept", 1, 0, ["O"] * 5, ME)
    assert store.step("accept", 1, 0, ["O"] * 5, ME) == first
    assert store.item(1).version == 1


def test_undo_leaves_the_steps_of_others_who_are_here(store):
    store.step("accept", 1, 0, ["O"] * 5, ME)
    store.step("accept", 1, 1, ["B-PER", "O", "O", "O", "O"], YOU)
    store.step("accept", 4, 0, ["O"] * 6, YOU)
    assert store.undo(ME, ["you"]) is None, "mine was changed since, and would take theirs with it"
    assert store.undo(YOU, ["me"])[0] == 4
    assert store.undo(YOU, ["me"])[0] == 1
    assert store.undo(ME, ["you"])[0] == 1


def test_an_undo_removes_snapshots_that_learned_the_step(store):
    first = store.step("accept", 1, 0, ["O"] * 5, ME)
    assert store.add_snapshot(Snapshot(first, "kernel", False, b"1"))
    second = store.step("accept", 2, 0, ["O"] * 10, ME)
    assert store.add_snapshot(Snapshot(second, "kernel", False, b"2"))
    assert store.lessons_after(first, 99) == [second]
    store.undo(ME, [])
    assert store.snapshot("kernel").model == b"1"
    assert store.lessons_after(first, 99) == []
    assert not store.add_snapshot(Snapshot(second, "kernel", True, b"late")), "it has learned what is undone"
    third = store.step("accept", 2, 2, ["O"] * 10, ME)
    assert store.add_snapshot(Snapshot(third, "kernel", True, b"3"))


def test_structures_keep_their_text_and_place(store):
    item = store.item(2)
    assert item.place == "news.txt, sentence 2"
    assert item.record.text.content == TEXT.splitlines()[1]
    assert item.record.text.start == len(TEXT.splitlines()[0]) + 1


def test_leases_end(store, monkeypatch):
    store.lease(1, "a")
    store.lease(2, "b")
    assert store.leased() == [1, 2]
    assert store.leased("a") == [1]
    monkeypatch.setattr("time.time", lambda: 1e12)
    assert store.leased() == []


def test_one_process_has_a_store_and_others_read_it(tmp_path, store):
    with pytest.raises(DataError, match="another `fuda label` has this store open"):
        Store(tmp_path / "news.db")
    reader = Store(tmp_path / "news.db", shared=True)
    assert reader.counts()["new"] == 6
    reader.close()


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be one\n" * 20, b"SQLite format 3\0" + b"\0" * 600]
)
def test_what_is_no_store_is_refused(tmp_path, content, monkeypatch):
    path = tmp_path / "x.db"
    path.write_bytes(content)
    opened, connect = [], sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **b: opened.append(connect(*a, **b)) or opened[-1])
    with pytest.raises(DataError, match=r"x\.db: .*store"):
        Store(path)
    assert path.read_bytes() == content
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    assert opened


def test_another_database_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as other, other:
        other.execute("CREATE TABLE about (name, value)")
    with pytest.raises(DataError, match="is not a store of fuda label"):
        Store(tmp_path / "x.db")
    with pytest.raises(DataError, match="there is no such store"):
        Store(tmp_path / "y.db")


def test_only_the_owner_may_read_a_store(tmp_path, store):
    assert os.stat(tmp_path / "news.db").st_mode & 0o077 == 0


def test_files_are_added_once(tmp_path, store, text):
    assert importing.knows(store, importing.digest_of_file(str(text), {}))
    text.write_text(TEXT + "A new line.\n")
    assert add_file(store, text) == 1, "only what is new of a file that has grown"
    other = tmp_path / "other.txt"
    other.write_text("Ana lives in Lima.\nSomething else.\n")
    assert add_file(store, other) == 2, "another file is added as it is"
    assert store.item(8).place == "other.txt, sentence 1"


def test_a_file_is_added_whole_or_not(tmp_path, store, monkeypatch):
    path = tmp_path / "more.txt"
    path.write_text("One.\nTwo.\n")
    rows = importing._row
    monkeypatch.setattr(importing, "_row", lambda f, place, *rest: 1 / (2 - place) and rows(f, place, *rest))
    before = store.last_event()
    with pytest.raises(ZeroDivisionError):
        add_file(store, path)
    assert (store.count("1"), store.last_event()) == (6, before)
    assert not importing.knows(store, importing.digest_of_file(str(path), {}))


@pytest.mark.parametrize("kind", ["jsonl", "conll", "conllu"])
def test_what_comes_out_reads_back_in(tmp_path, store, kind):
    labels = ["B-PER", "O", "O", "B-LOC", "O"]
    store.step("accept", 1, 0, labels, ME)
    store.step("accept", 5, 0, ["B-LOC", "O", "O", "B-LOC", "O"], ME)
    path = tmp_path / f"out.{kind}"
    from fuda.formats import FORMATS

    path.write_text(export.text_of(store, FORMATS[kind]))
    options = {"label": "MISC:NE", "graph": "sequence"} if kind == "conllu" else {}
    assert read(path, **options).y == [labels, ["B-LOC", "O", "O", "B-LOC", "O"]]
    assert add_file(store, path, **options) == 0
    assert store.counts() == {"new": 4, "done": 2, "skipped": 0}
    empty = Store(tmp_path / "empty.db", create=True)
    assert add_file(empty, path, **options) == 2
    assert state(empty, 1) == ("done", labels, "file")
    assert empty.kinds == ["LOC", "PER"]
    empty.close()


def test_labels_of_a_file_are_taken_for_structures_without(tmp_path, store):
    path = tmp_path / "labelled.conll"
    path.write_text("Nobody B-PER\ncame O\n. O\n")
    assert add_file(store, path) == 0
    assert state(store, 6) == ("done", ["B-PER", "O", "O"], "file")
    assert [len(store.lesson(number).structures) for number in store.lessons_after(0, 99)] == [0, 1]
    assert consistent(store)


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("Ana lives in Lima.\nBo sleeps.\n", "text"),
        ("Ana\nlives\n\nBo\n", "conll"),
        ("Ana B-PER\nlives O\n\nBo B-PER\n", "conll"),
        ("Ana\tB-PER\nlives\tO\n", "conll"),
        ("One line of text\n", "text"),
        ("Two words.\nTwo more.\n", "text"),
        ("07:01 eth0: link down\n07:02 eth1: link down\n", "text"),
        ("東京都の人口\n日本の歴史\n", "text"),
        ("東京都の人口\n\n日本の歴史\n", "text"),
        ("Ana\nlives\n", "conll"),
        ("Ana B-PER\nlives O\n", "conll"),
        ("東京 N\nの P\n\n日本 N\n", "conll"),
    ],
)
def test_raw_text_is_distinguished_from_columns(tmp_path, content, format):
    path = tmp_path / "some.txt"
    path.write_text(content)
    detected, options = importing.format_for(str(path), None)
    assert detected.name == format
    assert len(read(path, detected.name, **options).records) > 0


def test_schemes_of_files_become_one(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("Ana I-PER\nDiaz I-PER\nsings O\n")
    store = Store(tmp_path / "a.db", create=True)
    add_file(store, path)
    assert store.item(1).labels == ["B-PER", "I-PER", "O"]
    assert store.unit == Unit("IOB2")
    store.close()


def test_labels_that_are_not_known_stay_so(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"observations": ["Ana", "sings"], "labels": ["B-PER", null]}\n')
    store = Store(tmp_path / "a.db", create=True)
    add_file(store, path)
    assert state(store, 1) == ("new", ["B-PER", None], "file")
    store.close()


def test_another_shape_is_refused(tmp_path, store):
    path = tmp_path / "tree.jsonl"
    path.write_text('{"observations": ["Ana", "sings"], "heads": [1, -1]}\n')
    with pytest.raises(DataError, match="structure 0 is a tree, but the store has sequences"):
        add_file(store, path)


def test_a_store_that_was_killed_before_it_had_tables_is_a_new_one(tmp_path):
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size > 0
    Store(path, create=True).close()
    Store(path).close()


def test_nothing_is_left_of_a_store_that_cannot_be_made(tmp_path, monkeypatch):
    path = tmp_path / "new.db"
    monkeypatch.setattr(database, "_SCHEMA", "CREATE TABLE about (name, value); CREATE TABLE")
    with pytest.raises(StoreError, match=r"new\.db: cannot be written"):
        Store(path, create=True)
    assert not list(tmp_path.iterdir())
    path.touch()
    with pytest.raises(StoreError):
        Store(path, create=True)
    assert path.exists()


def test_a_step_on_a_full_disk_changes_nothing(store):
    full(store)
    before = store.item(1), store.last_event()
    with pytest.raises(StoreError, match=r"news\.db: cannot be written: .* full; make room on its disk"):
        store.step("accept", 1, 0, ["O" * 100_000] * len(before[0].record.structure), ME)
    assert (store.item(1), store.last_event()) == before
    full(store, is_full=False)
    assert store.step("skip", 1, 0, None, ME)
