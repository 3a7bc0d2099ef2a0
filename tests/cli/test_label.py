"""fuda label as a process: it says where it is, ends by Ctrl-C, continues; fuda export."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys

import httpx
import pytest

from cli.command_cases import TEXTS
from fuda.page import safety

TEXT = "Ana lives in Lima.\nBo sleeps in Rome.\nAna met Bo.\n"


class Process:
    """A running `fuda label` and a browser that it has let in."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "fuda", "label", *map(str, arguments), "--no-browser"]
        # In a group of its own, so that signals are not ignored where the tests run in
        # the background.
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeding
        )
        self.line = self.process.stdout.readline()
        match = re.fullmatch(r"fuda: label at (http://127\.0\.0\.1:\d+/\?token=\S{43})\n", self.line)
        self.address = match[1]
        self.base = self.address.split("/?")[0]
        self.client = httpx.Client(base_url=self.base, headers={"Origin": self.base}, timeout=120)

    def __enter__(self):
        assert self.client.get(self.address).status_code == 303
        return self

    def __exit__(self, *_):
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def ask(self, path, **content):
        return self.client.post(f"/api/{path}", json={"tab": "t", **content}).json()

    def end(self, signal_sent):
        self.process.send_signal(signal_sent)
        _, err = self.process.communicate(timeout=120)
        return self.process.returncode, err


def heeding():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "news.txt"
    path.write_text(TEXT)
    return path


@pytest.mark.slow  # starts the command twice
@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of POSIX")
def test_it_ends_by_a_signal_and_goes_on_where_it_was(text, run):
    with Process(text, "--labels", "PER, LOC") as page:
        with page.client.stream("GET", "/api/events") as events:  # an open page does not keep it
            assert next(events.iter_lines()).startswith(":")
            spans = [{"start": 0, "end": 1, "label": "PER"}]
            assert page.ask("items/1/accept", version=0, spans=spans)["done"] == 1
            out = text.with_name("out.jsonl")
            exported = run("export", f"{text}.db", "-o", out)
            assert (exported.code, json.loads(out.read_text())["spans"][0]["label"]) == (0, "PER")
            assert "another `fuda label` has this store open" in run("label", text).err
            code, err = page.end(signal.SIGINT)
        assert (code, err.splitlines()[-1]) == (130, f"fuda: ended; everything is in {text}.db")
        port, cookies = page.base.rpartition(":")[2], page.client.cookies
    with Process("--store", f"{text}.db") as again:
        assert again.base.rpartition(":")[2] == port
        state = httpx.get(f"{again.base}/api/state", cookies=cookies, timeout=120).json()
        assert (state["done"], state["labels"], state["total"]) == (1, ["PER", "LOC"], 3)
        assert again.end(signal.SIGTERM)[0] == 143
    assert not os.path.exists(f"{text}.db-wal"), "the log of SQLite is written to the file at the end"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a FILE to label, or a --store"),
        (["missing.txt"], "missing.txt"),
        (["--store", "missing.db"], "there is no such store"),
        (["news.txt", "--host", "0.0.0.0"], "give a --password"),
        (["news.txt", "--model", "missing.fuda"], "missing.fuda"),
        (["news.txt", "--labels", "two words"], "cannot be written to files"),
        (["news.txt", "--store", "news.txt"], "not a usable store"),
    ],
)
def test_what_is_impossible_is_reported_in_one_line(text, run, monkeypatch, arguments, words):
    monkeypatch.chdir(text.parent)
    result = run("label", *arguments)
    assert result.code == 2
    assert words in result.err.splitlines()[-1]
    assert text.read_text() == TEXT
    assert os.listdir(text.parent) == ["news.txt"], "no store is left"


def test_a_port_in_use_is_reported(text, run):
    with socket.socket() as in_use:
        in_use.bind(("127.0.0.1", 0))
        in_use.listen()
        result = run("label", text, "--port", in_use.getsockname()[1])
    assert (result.code, "cannot listen there" in result.err) == (2, True)


def test_other_computers_have_an_address_of_their_own(text, run, monkeypatch):
    from fuda.page import server

    def serve(store, listener, host, password, ready):
        listener.close()
        ready("http://127.0.0.1:8123/?token=secret")

    monkeypatch.setattr(server, "serve", serve)
    alone = run("label", text, "--no-browser")
    assert (alone.code, "other computers" in alone.err) == (0, False)
    result = run("label", text, "--no-browser", "--host", "0.0.0.0", "--password", "hush")
    [line] = [line for line in result.err.splitlines() if "on other computers" in line]
    match = re.fullmatch(r"fuda: on other computers, with the password: http://([^/:]+):8123/", line)
    assert match[1] not in ("0.0.0.0", "127.0.0.1")
    assert "secret" not in line
    monkeypatch.setattr(socket.socket, "connect", lambda *_: (_ for _ in ()).throw(OSError))
    assert safety.outward("0.0.0.0") == socket.gethostname()
    assert safety.outward("::1") == "[::1]"


def test_a_model_that_cannot_learn_more_is_refused(text, run, models):
    result = run("label", text, "--model", models["conll"])
    assert (result.code, "does not learn from single sentences" in result.err) == (2, True)


def test_exports_of_a_store(tmp_path, run, monkeypatch):
    from fuda.page import server

    monkeypatch.setattr(server, "serve", lambda store, listener, *_: listener.close())
    path = tmp_path / "small.conllu"
    path.write_text(TEXTS["conllu"])
    assert run("label", path).code == 0
    store, out = f"{path}.db", tmp_path / "out.conllu"
    assert run("export", store, "-o", out).code == 0
    assert out.read_text() == TEXTS["conllu"], "columns that are not labels are kept"
    assert run("label", out, "--store", store).code == 0
    columns = run("export", store, "-o", tmp_path / "out.conll")
    assert columns.code == 0
    assert "out.conll: a tree is written as a sequence, since columns have no edges" in columns.err
    model = tmp_path / "out.fuda"
    assert run("export", store, "-o", model).code == 0
    assert b"PROPN" in run("tag", model, path).out
    assert run("export", tmp_path / "none.db", "-o", out).code == 2
    assert run("export", store, "-o", store).code == 2
    empty = tmp_path / "empty.txt"
    empty.write_text("Nothing here.\n")
    assert run("label", empty).code == 0
    assert "nothing has been labelled yet" in run("export", f"{empty}.db", "-o", out).err
    assert "has not been taught yet" in run("export", f"{empty}.db", "-o", model).err


def test_a_model_to_begin_with(tmp_path, text, run, monkeypatch):
    from fuda import HMPerceptron
    from fuda.page import server
    from fuda.page.store import Store

    model = tmp_path / "m.fuda"
    HMPerceptron().fit([["Ana", "sings"]], [["B-PER", "O"]]).save(model)
    monkeypatch.setattr(server, "serve", lambda store, listener, *_: listener.close())
    assert run("label", text, "--model", model).code == 0
    store = Store(f"{text}.db")
    assert (store.kinds, store.about("given"), store.snapshot("given").event) == (["PER"], "m.fuda", 0)
    store.close()
    again = tmp_path / "again.fuda"
    assert run("export", f"{text}.db", "-o", again).code == 0
    assert run("tag", again, text, "--text").out.startswith(b"[Ana](PER)")


@pytest.mark.parametrize(
    "harm",
    [
        "DROP TABLE items",
        "DROP TABLE events",
        "UPDATE about SET value = '{{'",
        "UPDATE items SET status = 'done', labels = '['",
        "UPDATE items SET status = 'done', labels = NULL",
        "INSERT INTO events (time, kind, item, labels) VALUES (1, 'accept', 1, '[')",
    ],
)
def test_a_damaged_store_is_one_line(harm, tmp_path, text, run, monkeypatch):
    from fuda.page import server

    monkeypatch.setattr(server, "serve", lambda store, listener, *_: listener.close())
    assert run("label", text).code == 0
    with contextlib.closing(sqlite3.connect(f"{text}.db")) as store, store:
        store.execute(harm)
    ends = [run("export", f"{text}.db", "-o", tmp_path / name) for name in ("x.jsonl", "x.conll", "x.fuda")]
    assert {end.code for end in ends} <= {0, 2}
    assert any(f"fuda: {text}.db: not a usable store" in end.err for end in ends)
    assert all(end.err.count("\n") == 1 for end in ends)
