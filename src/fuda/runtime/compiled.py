"""The decorator of all compiled functions: numba's `njit` with a disk cache that cannot fail.

A cache may only save time. numba's own cache does more harm than that: it raises at import where
no folder is writable, raises when a file is damaged, runs old code after a change in another
module whose functions were inlined, ignores whether bounds are checked, and two processes that
compile one function for different types at the same time can leave an index that points to the
wrong code. The cache here has one file per function and argument types, and no index:

    name      function, and a hash of argument types, processor, Python version, compiler flags
    content   SHA-256(stamp + payload), payload
    stamp     hash of the source files that the code may come from, and of the versions of numba
              and NumPy

A file that is truncated, damaged or out of date fails the same comparison: the function is
compiled again and the file replaced. Files are renamed into place, so that a reader sees an old or
a new file, never part of one. Every folder is tried in turn, for reading and for writing; one that
cannot be used is passed over. Without any, each process compiles its code anew. A read-only folder
that already holds the code still serves.
"""

from __future__ import annotations

import pickle
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, overload
from uuid import uuid4

import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from fuda.runtime.interrupts import ctrl_c_waits

F = TypeVar("F", bound=Callable[..., Any])
_IMPORT = re.compile(rb"^(?:from|import) +([\w.]+)(?: +import +(\([^)]*\)|.*))?", re.MULTILINE)
_SEAL = sha256().digest_size
# Seconds after which a temporary file counts as abandoned by its writer.
_ABANDONED = 600.0
# The settings of numba that change the code it makes.
_FLAGS = ("BOUNDSCHECK", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")


@overload
def compiled(function: F) -> Dispatcher[F]: ...
@overload
def compiled(**options: Any) -> Callable[[F], Dispatcher[F]]: ...
def compiled(function: F | None = None, **options: Any) -> Any:
    """Apply `njit` without the interpreter lock; compiled on the first call or read from disk.

    Use it bare, or with further options of `njit`, on functions of a module, not on closures: the
    values that they close over are not part of the stamp.
    """
    if function is None:
        return partial(compiled, **options)
    dispatcher: Any = numba.njit(nogil=True, **options)(function)
    if not vars(numba.config)["DISABLE_JIT"]:  # if set, this is the plain function
        dispatcher.compile = ctrl_c_waits()(dispatcher.compile)
        with suppress(OSError):  # without sources, cached code cannot be checked to be current
            dispatcher._cache = _Cache(function)
    return dispatcher


class _Cache(NullCache):
    """The cache that a dispatcher reads before it compiles and writes afterwards."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._file = Path(function.__code__.co_filename)
        self._stamp = _stamp(function.__module__)

    @property
    def cache_path(self) -> str:
        """The first folder."""
        return str(self._folders()[0])

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the code for a signature, or None if there is no intact and current file."""
        rtsys.initialize(target)  # all that loading needs; the compiler prepares the rest itself
        for path in self._paths(signature, target):
            payload = self._read(path)
            if payload is not None:
                stored, parts = pickle.loads(payload)
                if stored == signature:
                    return CompileResult._rebuild(target, *parts)
        _announce()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write code to the first folder that is writable, if any."""
        if result.library.has_dynamic_globals:  # addresses of this process
            return
        payload = dumps((signature, result._reduce()))
        data = self._seal(payload) + payload
        for path in self._paths(signature, result.target_context):
            try:
                _write(path, data)
            except OSError:  # read-only, full, no such folder: all that is lost is time
                continue
            return

    def _folders(self) -> list[Path]:
        """The folders to try, in order."""
        configured = vars(numba.config)["CACHE_DIR"]  # NUMBA_CACHE_DIR
        user = AppDirs(appname="fuda", appauthor=False).user_cache_dir
        return [*map(Path, [configured] if configured else []), self._file.parent / "__pycache__", Path(user)]

    def _paths(self, signature: Any, target: Any) -> Iterator[Path]:
        """The files to try for a signature."""
        flags = [vars(numba.config)[flag] for flag in _FLAGS]
        machine = target.codegen().magic_tuple()
        key = repr((str(self._file), sys.implementation.cache_tag, machine, flags, signature))
        name = f"{self._name}-{sha256(key.encode()).hexdigest()[:24]}.nbc"
        return (folder / name for folder in self._folders())

    def _seal(self, payload: bytes) -> bytes:
        """The hash that precedes a payload."""
        return sha256(self._stamp + payload).digest()

    def _read(self, path: Path) -> bytes | None:
        """The payload of a file, or None if there is no intact and current one."""
        try:
            data = path.read_bytes()
        except OSError:  # usually not there yet
            return None
        seal, payload = data[:_SEAL], data[_SEAL:]
        return payload if seal == self._seal(payload) else None


@cache
def _announce() -> None:
    """Say on a terminal, once, why it takes so long."""
    if sys.stderr is not None and sys.stderr.isatty():
        print("fuda: compiling, once for all later runs; `fuda warmup` does it ahead", file=sys.stderr)


def _write(path: Path, data: bytes) -> None:
    """Write a file under a unique name first, so that processes do not write the same file.

    What a killed process has left of the same file is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f"{path.name}.*.tmp"):
        with suppress(OSError):  # another process removed it, or finished it
            if time.time() - old.stat().st_mtime > _ABANDONED:
                old.unlink()
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@cache
def _stamp(module: str) -> bytes:
    """A hash of the sources of a module, of all that it imports from its package, and of versions.

    Compiled code may contain functions and constants of any of these modules. The sources are read
    when the function is decorated, not when it is compiled: an edit in between must not count.
    """
    sources: dict[str, bytes] = {}
    waiting = {module}
    while waiting:
        name = waiting.pop()
        if name in sys.modules and name not in sources:
            sources[name], imported = _source(name)
            waiting |= imported
    versions = (numba.__version__, np.__version__)
    return sha256(repr((sorted(sources.items()), versions)).encode()).digest()


@cache
def _source(module: str) -> tuple[bytes, frozenset[str]]:
    """The hash of a module's source, and all names that it imports from its package."""
    text = Path(str(sys.modules[module].__file__)).with_suffix(".py").read_bytes()
    package = module.partition(".")[0]
    imported = set()
    for base, names in _IMPORT.findall(text):
        origin = base.decode()
        if origin.partition(".")[0] == package:
            imported |= {origin} | {f"{origin}.{name.decode()}" for name in re.findall(rb"\w+", names)}
    return sha256(text).digest(), frozenset(imported)
