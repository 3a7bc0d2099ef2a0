"""The cache of compiled code: never in the way, never out of date."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from llvmlite.binding.executionengine import ExecutionEngine

import fuda
from fuda.runtime import compiled
from fuda.runtime.interrupts import ctrl_c_waits

INNER = """from fuda.runtime.compiled import compiled
FACTOR = {factor}
@compiled
def scaled(x):
    return FACTOR * x
"""
OUTER = """from fuda.runtime.compiled import compiled
from tiny import inner
from tiny.inner import (
    scaled,
)
@compiled(fastmath={"contract"})
def first(values):
    return scaled(values[0])
@compiled
def at(values, k):
    return values[k]
"""
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "one byte less": lambda data: data[:-1],
    "garbage": lambda data: b"garbage" * 100,
    "one bit": lambda data: data[:-1000] + bytes([data[-1000] ^ 1]) + data[-999:],
}
VALUES = np.array([3.0, 4.0])


class Tiny:
    """A package of two modules, the outer inlining a function of the inner; imported often."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tiny"
        self.folder.mkdir()
        self.write("__init__", "")
        self.write("inner", INNER.format(factor=2))
        self.write("outer", OUTER)

    def write(self, module: str, text: str) -> None:
        (self.folder / f"{module}.py").write_text(text)

    def load(self) -> ModuleType:
        """The outer module as a new process would import it."""
        for name in [name for name in sys.modules if name.partition(".")[0] == "tiny"]:
            del sys.modules[name]
        compiled._stamp.cache_clear()
        compiled._source.cache_clear()
        importlib.invalidate_caches()
        return importlib.import_module("tiny.outer")

    def entries(self, function: str) -> list[Path]:
        return sorted(self.folder.glob(f"__pycache__/tiny.{function}-*.nbc"))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("HOME", "/dev/null")  # a cache elsewhere would hide what the tests look at
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    monkeypatch.syspath_prepend(tmp_path)
    return Tiny(tmp_path)


def hits(dispatcher: Any) -> int:
    return sum(dispatcher.stats.cache_hits.values())


def test_code_is_compiled_once_and_only_when_called(tiny: Tiny) -> None:
    module = tiny.load()
    assert not tiny.entries("outer.first")
    assert module.first(VALUES) == 6.0
    assert len(tiny.entries("outer.first")) == 1
    again = tiny.load()
    assert again.first(VALUES) == 6.0
    assert (hits(module.first), hits(again.first)) == (0, 1)
    assert not again.inner.scaled.signatures  # inlined in what was read
    assert not list(tiny.folder.rglob("*.tmp"))


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_replaced(tiny: Tiny, damage: Callable[[bytes], bytes]) -> None:
    tiny.load().first(VALUES)
    for path in [*tiny.entries("outer.first"), *tiny.entries("inner.scaled")]:
        path.write_bytes(damage(path.read_bytes()))
    module = tiny.load()
    assert module.first(VALUES) == 6.0
    assert hits(module.first) == 0
    module = tiny.load()
    assert module.first(VALUES) == 6.0
    assert hits(module.first) == 1


def test_a_file_of_other_argument_types_is_not_taken(tiny: Tiny) -> None:
    module = tiny.load()
    module.first(VALUES)
    [real] = tiny.entries("outer.first")
    module.first(VALUES.astype(int))
    [whole] = set(tiny.entries("outer.first")) - {real}
    real.write_bytes(whole.read_bytes())
    module = tiny.load()
    assert module.first(VALUES) == 6.0
    assert hits(module.first) == 0


def test_no_folder_can_be_written_to(tiny: Tiny) -> None:
    (tiny.folder / "__pycache__").write_text("not a folder")  # this stops even the superuser
    module = tiny.load()
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(module.first.py_func)
    assert module.first(VALUES) == 6.0


def test_the_users_folder_serves_where_the_package_is_read_only(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny.folder / "__pycache__").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    tiny.load().first(VALUES)
    module = tiny.load()
    assert module.first(VALUES) == 6.0
    assert hits(module.first) == 1


def test_the_folder_of_the_environment_comes_first(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "given"))
    tiny.load().first(VALUES)
    assert list((tmp_path / "given").glob("tiny.outer.first-*.nbc"))
    assert not tiny.entries("outer.first")


def test_inlined_code_is_never_out_of_date(tiny: Tiny) -> None:
    assert tiny.load().first(VALUES) == 6.0
    tiny.write("inner", INNER.format(factor=5))
    assert tiny.load().first(VALUES) == 15.0
    assert len(tiny.entries("outer.first")) == 1  # replaced, not added to


def test_bounds_are_checked_whatever_was_cached_without(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tiny.load().at(VALUES, 1) == 4.0
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    with pytest.raises(IndexError):
        tiny.load().at(VALUES, 2)


def test_without_sources_code_is_not_cached(tiny: Tiny) -> None:
    tiny.load()
    (tiny.folder / "inner.py").unlink()
    compiled._source.cache_clear()
    compiled._stamp.cache_clear()
    function = sys.modules["tiny.outer"].first.py_func
    assert compiled.compiled(function)(VALUES) == 6.0
    assert not tiny.entries("outer.first")


def test_all_functions_are_compiled_this_way() -> None:
    package = Path(fuda.__file__).parent
    assert [path.name for path in package.rglob("*.py") if "njit(" in path.read_text()] == ["compiled.py"]


def test_what_a_killed_process_left_of_a_file_is_removed(tiny):
    assert tiny.load().first(VALUES) == 6.0
    entry = tiny.entries("outer.first")[0]
    old, new = (entry.with_name(f"{entry.name}.{name}.tmp") for name in ("old", "new"))
    other = entry.with_name("tiny.other-1.nbc.old.tmp")
    for path in (old, new, other):
        path.write_bytes(b"part")
    for path in (old, other):
        os.utime(path, (0, 0))
    entry.unlink()
    assert tiny.load().first(VALUES) == 6.0
    assert entry.exists()
    assert not old.exists()
    assert new.exists()  # may still be written
    assert other.exists()  # of another file, whose next writer removes it


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What handles Ctrl-C, which comes when LLVM first asks Python something; at all questions."""
    handlers: list[object] = []

    def signalled(engine: Any, pointer: int, find: Any = ExecutionEngine._find_module_ptr) -> Any:
        handlers.append(signal.getsignal(signal.SIGINT))
        if len(handlers) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return find(engine, pointer)

    monkeypatch.setattr(ExecutionEngine, "_find_module_ptr", signalled)
    return handlers


@pytest.fixture
def handler() -> Iterator[Callable[[Any], None]]:
    """A function that sets the handler of Ctrl-C for the rest of the test."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("is_cached", [False, True])
def test_an_interrupt_waits_until_the_code_is_there(tiny, is_cached, asked, handler) -> None:
    if is_cached:
        handler(signal.SIG_IGN)
        tiny.load().first(VALUES)
        asked.clear()
    handler(signal.default_int_handler)
    module = tiny.load()
    with pytest.raises(KeyboardInterrupt):
        module.first(VALUES)
    assert asked
    assert signal.default_int_handler not in asked
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert module.first(VALUES) == 6.0


def test_the_handler_of_somebody_else_is_left_alone(tiny, asked, handler) -> None:
    came = []

    def other(number: int, frame: object) -> None:
        came.append(number)

    handler(other)
    assert tiny.load().first(VALUES) == 6.0
    assert came == [signal.SIGINT]
    assert set(asked) == {other}
    assert signal.getsignal(signal.SIGINT) is other


def test_a_handler_set_while_code_is_compiled_stays(handler) -> None:
    handler(signal.default_int_handler)
    with ctrl_c_waits():
        handler(signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_interrupt_is_raised_at_the_end_of_the_innermost_block(handler) -> None:
    passed = []

    @ctrl_c_waits()
    def inner() -> None:
        signal.raise_signal(signal.SIGINT)
        passed.append("inner")

    @ctrl_c_waits()
    def outer() -> None:
        inner()
        passed.append("outer")

    handler(signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        outer()
    assert passed == ["inner"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_compile_without_a_handler(tiny, handler) -> None:
    handler(signal.default_int_handler)
    answers = []
    module = tiny.load()
    thread = threading.Thread(target=lambda: answers.append(module.first(VALUES)))
    thread.start()
    thread.join()
    assert answers == [6.0]


COLD = """
import os, signal, warnings
warnings.simplefilter("ignore")
import fuda
from llvmlite.binding.executionengine import ExecutionEngine
signal.signal(signal.SIGINT, signal.default_int_handler)
find = ExecutionEngine._find_module_ptr
def signalled(engine, pointer):
    ExecutionEngine._find_module_ptr = find
    os.kill(os.getpid(), signal.SIGINT)
    return find(engine, pointer)
ExecutionEngine._find_module_ptr = signalled
X, y = [["a", "b"]], [["A", "B"]]
try:
    fuda.HMM().fit(X, y).predict(X)
    print("no interrupt")
except KeyboardInterrupt:
    print("interrupted", fuda.HMM().fit(X, y).predict(X)[0])
"""


@pytest.mark.slow
def test_a_program_that_compiles_is_interrupted(tmp_path: Path) -> None:
    """The package's own cache does not serve other compiler flags, so that all is compiled."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "1"}
    run = subprocess.run(
        [sys.executable, "-c", COLD], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == "interrupted ['A', 'B']\n"
    assert not run.stderr
