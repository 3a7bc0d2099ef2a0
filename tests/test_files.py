"""Writing files: all or nothing, with several writers, and after kills and full disks."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fuda.errors import DataError
from fuda.files import Lines, atomic_file, read_text, write_text

pytestmark = pytest.mark.skipif(os.name != "posix", reason="temporary files are locked on POSIX systems only")
WRITER = """
import sys
from fuda.files import atomic_file
with atomic_file(sys.argv[1]) as stream:
    stream.write(b"unfinished")
    stream.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""
WRITE_MANY = """
import sys
from fuda.files import atomic_file
for i in range(100):
    with atomic_file(sys.argv[1]) as stream:
        stream.write(sys.argv[2].encode() * 10_000)
"""


@contextmanager
def living_writer(target: Path):
    """A process in the middle of writing a file; it finishes when its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"writing\n"
        yield process


def write(target: Path, data: bytes) -> None:
    with atomic_file(target) as stream:
        stream.write(data)


def test_the_next_write_removes_what_a_killed_writer_left(tmp_path):
    target = tmp_path / "model.fuda"
    target.write_bytes(b"old")
    with ExitStack() as stack:
        for process in [stack.enter_context(living_writer(target)) for _ in range(3)]:
            process.send_signal(signal.SIGKILL)
    assert len(list(tmp_path.iterdir())) == 4
    assert target.read_bytes() == b"old"
    write(target, b"new")
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == b"new"


def test_a_living_writer_is_left_alone(tmp_path):
    target = tmp_path / "model.fuda"
    with living_writer(target) as process:
        for data in (b"first", b"second"):
            write(target, data)
            assert target.read_bytes() == data
            assert len(list(tmp_path.iterdir())) == 2
        process.communicate()
    assert process.returncode == 0
    assert target.read_bytes() == b"unfinished"
    assert list(tmp_path.iterdir()) == [target]


def test_a_writer_within_the_same_thread_is_left_alone(tmp_path):
    target = tmp_path / "model.fuda"
    with atomic_file(target) as stream:
        write(target, b"inner")
        stream.write(b"outer")
    assert target.read_bytes() == b"outer"
    assert list(tmp_path.iterdir()) == [target]


def test_files_of_others_are_left_alone(tmp_path):
    token = "0123456789abcdef"
    names = [".config.settings", f".config.{token}", f".config.{token}.part~", f".configs.{token}.part"]
    names += [f"config.{token}.part", f".config.{token}0.part", f".config.x.{token}.part"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / f".config.{token}.part").write_bytes(b"abandoned")
    write(tmp_path / "config", b"new")
    assert {path.name for path in tmp_path.iterdir()} == {"config", *names}


def test_a_temporary_file_that_is_taken_for_abandoned_before_it_is_locked(tmp_path, monkeypatch):
    """Another writer may come between the two system calls."""
    target, created, make = tmp_path / "model.fuda", [], os.open

    def make_and_lose(path, flags, *mode):
        handle = make(path, flags, *mode)
        if flags & os.O_CREAT:
            created.append(path)
            if len(created) == 1:
                os.unlink(path)
        return handle

    monkeypatch.setattr(os, "open", make_and_lose)
    write(target, b"new")
    assert len(created) == 2
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_many_writers_of_one_file(tmp_path):
    """Threads and processes: none fails, and a reader always finds the whole content of one."""
    target = tmp_path / "model.fuda"
    write(target, b"0" * 10_000)
    others = [subprocess.Popen([sys.executable, "-c", WRITE_MANY, str(target), k]) for k in "12"]
    errors = []

    def work(digit: bytes) -> None:
        try:
            for _ in range(100):
                write(target, digit * 10_000)
        except DataError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(digit,)) for digit in (b"3", b"4")]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or any(other.poll() is None for other in others):
        content = target.read_bytes()
        assert len(content) == 10_000
        assert len(set(content)) == 1
    assert [other.wait() for other in others] == [0, 0]
    assert errors == []
    assert list(tmp_path.iterdir()) == [target]


def test_a_name_as_long_as_the_system_allows(tmp_path):
    target = tmp_path / ("é" * 127)
    for data in (b"old", b"new"):
        write(target, data)
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_the_first_error_is_raised_where_the_temporary_file_cannot_be_removed(tmp_path, monkeypatch):
    def fail(number):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", lambda _: fail(28))
    monkeypatch.setattr(os, "unlink", lambda *_, **__: fail(30))
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        write(tmp_path / "model.fuda", b"new")
    monkeypatch.undo()
    write(tmp_path / "model.fuda", b"new")
    assert os.listdir(tmp_path) == ["model.fuda"]


@pytest.fixture
def disk(tmp_path):
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if os.geteuid() or subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(disk):
    target = disk / "model.fuda"
    write(target, b"o" * 40_000)
    with pytest.raises(DataError, match=r"model\.fuda: cannot be written: No space left on device"):
        write(target, b"n" * 40_000)
    assert target.read_bytes() == b"o" * 40_000
    assert list(disk.iterdir()) == [target]
    with living_writer(target) as process:
        process.send_signal(signal.SIGKILL)
    (abandoned,) = set(disk.iterdir()) - {target}
    abandoned.write_bytes(b"a" * 20_000)
    write(target, b"n" * 20_000)  # there is space only because the abandoned file is removed first
    assert target.read_bytes() == b"n" * 20_000
    assert list(disk.iterdir()) == [target]


def test_a_disk_that_became_read_only(disk):
    target = disk / "model.fuda"
    write(target, b"old")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(DataError, match=r"model\.fuda: cannot be written: Read-only file system"):
        write(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(disk.iterdir()) == [target]


def test_a_name_with_a_null_character(tmp_path):
    name = f"{tmp_path}/a\0b"
    with pytest.raises(DataError, match="no file has a null character in its name"):
        read_text(name)
    with pytest.raises(DataError, match="no file has a null character in its name"):
        write_text(name, "text")


def test_links_that_lead_to_one_another(tmp_path):
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    with pytest.raises(DataError, match="one: cannot be written: Too many levels of symbolic links"):
        write_text(tmp_path / "one", "text")
    assert all(path.is_symlink() for path in tmp_path.iterdir())


def test_standard_input_that_does_not_block_ends_where_it_ends(monkeypatch):
    """Nothing yet is not the end; another process that shares the pipe may have made it so."""
    source, target = os.pipe()
    os.set_blocking(source, False)
    waits = threading.Event()
    select_ = select.select

    def selected(*arguments):
        waits.set()
        return select_(*arguments)

    def feed():
        with open(target, "wb", buffering=0) as pipe:
            for line in (b"a\n", b"b\n"):
                waits.wait(60)
                waits.clear()
                pipe.write(line)

    monkeypatch.setattr(select, "select", selected)
    feeder = threading.Thread(target=feed)
    with open(source) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        feeder.start()
        assert list(Lines("-")) == ["a", "b"]
    feeder.join()
