"""Files: gzip by magic bytes, ``-`` for standard streams, UTF-8 checked, output all or nothing.

A line ends at a line feed only, and one carriage return before it is dropped. So U+0085, U+2028, a
vertical tab or a form feed inside a token never splits it.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import secrets
import select
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TextIO

from fuda.errors import DataError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

GZIP_MAGIC = b"\x1f\x8b"
MAX_BYTES = 2 << 30
# The name of a temporary file begins with so many bytes of the name of the file.
_STEM_BYTES = 200
_CHUNK_BYTES = 1 << 18  # the largest number of bytes of one read
_PAUSE_BYTES = 1 << 19  # a reader pauses after so many bytes even if there are more
_WAIT_SECONDS = 0.01  # seconds that a reader waits for more bytes before it pauses


def read_text(path: str | Path) -> str:
    """Return the text of a file or standard input (``-``), unzipped, without byte order mark."""
    data = read_bytes(path)
    return _decoded(data, display_name(path)).removeprefix("\ufeff")


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file or of standard input (``-``), unzipped."""
    return b"".join(_Bounded(path))


class Lines:
    """The lines of a file or of standard input (``-``), without line ends, read when needed.

    They are unzipped, without byte order mark, and the last line need not have an end.

    Parameters
    ----------
    path : str or Path
        The name of the file, or ``-``.
    pause : callable, optional
        Called before a read that may have to wait, and now and then where there is no need to
        wait. All lines that came before are handed out.
    """

    def __init__(self, path: str | Path, pause: Callable[[], None] | None = None) -> None:
        self.name = display_name(path)
        self._chunks = _Bounded(path, pause)
        self._number = 0  # of lines before those that are handed out

    def release(self) -> None:
        """Bound only what is read from now on: what came before is no longer kept."""
        self._chunks.byte_count, self._chunks.line = 0, self._number

    def __iter__(self) -> Iterator[str]:
        for data in _complete_lines(self._chunks):
            text = _decoded(data, self.name, self._number)
            if not self._number:
                text = text.removeprefix("\ufeff")
            elif not text.endswith("\n"):
                text += "\n"  # the last line, which may well have a carriage return
            lines = split_lines(text, self.name)
            yield from lines
            self._number += len(lines)


def split_lines(text: str, name: str) -> list[str]:
    """Return the lines of a text without their ends; the last line need not have one.

    >>> split_lines("one\\r\\ntwo\\u2028three", "x.txt")
    ['one', 'two\\u2028three']
    """
    if "\r" in text and "\n" not in text:
        problem = "lines end in a carriage return alone; convert the file first: tr '\\r' '\\n'"
        raise fault(name, 1, problem)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def _complete_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut chunks anew, after the last line feed of each; the last need not end in one."""
    pending: list[bytes] = []
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*pending, chunk[:end]])
            pending = []
        pending.append(chunk[end:])
    if any(pending):
        yield b"".join(pending)


def _decoded(data: bytes, name: str, lines_before: int = 0) -> str:
    """The text of bytes in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = lines_before + data.count(b"\n", 0, error.start) + 1
        wide = data[error.start : error.start + 2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        raise DataError(
            f"{name}:{line}: not UTF-8: byte 0x{data[error.start]:02x}; convert the file first, for example "
            f"with: iconv -f {'utf-16' if wide else 'latin1'} -t utf-8"
        ) from None


class _Bounded:
    """The bytes of a file or of standard input, unzipped, in chunks; see `Lines`.

    More than `max_bytes` are a DataError, soon after the bound. `byte_count` counts the bytes; the
    message names the `line` after which they begin.
    """

    def __init__(self, path: str | Path, pause: Callable[[], None] | None = None) -> None:
        self.path, self.pause = path, pause
        self.byte_count = self.line = 0

    def __iter__(self) -> Iterator[bytes]:
        bound = max_bytes()
        size = max(1, min(_CHUNK_BYTES, bound))  # no chunk without an end of record exceeds the bound
        chunks = _raw_chunks(self.path, size, self.pause)
        head = b""
        while len(head) < len(GZIP_MAGIC) and (chunk := next(chunks, b"")):
            head += chunk
        chunks = chain([head], chunks)
        for chunk in _inflated(chunks, display_name(self.path), size) if head[:2] == GZIP_MAGIC else chunks:
            self.byte_count += len(chunk)
            if self.byte_count > bound:
                where = f" in a record after line {self.line:,}" if self.line else ""
                raise DataError(
                    f"{display_name(self.path)}: holds more than {bound:,} bytes{where}, gzip undone; split "
                    "it, or set the environment variable FUDA_MAX_BYTES to a larger number"
                )
            yield chunk


def _raw_chunks(path: str | Path, size: int, pause: Callable[[], None] | None) -> Iterator[bytes]:
    """The bytes of a file or of standard input as they come, at most `size` at once."""
    with ExitStack() as stack:
        with _reading(path):
            standard = str(path) == "-"
            stream = _open(sys.stdin) if standard else stack.enter_context(open(path, "rb"))
        since = 0
        while True:
            if pause is not None and (since >= _PAUSE_BYTES or not _more_soon(stream)):
                pause()  # not within `_reading`: errors in it are not those of the file
                since = 0
            with _reading(path):
                if standard:
                    _wait_if_not_blocking(stream)
                chunk = stream.read1(size)  # type: ignore[attr-defined]
            if not chunk:
                return
            since += len(chunk)
            yield chunk


def _wait_if_not_blocking(stream: BinaryIO) -> None:
    """Wait for bytes where a read does not, and would say that the stream has ended.

    Another process that shares a pipe or terminal may have made it so.
    """
    try:
        is_blocking = os.get_blocking(stream.fileno())
    except (OSError, AttributeError):  # not a file of the system, or Windows
        return
    if not is_blocking:
        select.select([stream], [], [])


def _more_soon(stream: BinaryIO) -> bool:
    """Whether a read will not have to wait, or not for long."""
    try:
        return bool(select.select([stream], [], [], _WAIT_SECONDS)[0])
    except (OSError, ValueError):  # not a file of the system, or Windows
        return False


def check_name(path: str | Path) -> None:
    """Raise DataError for a name that no file has."""
    if "\0" in str(path):
        raise DataError(f"{str(path)!r}: no file has a null character in its name; check the path")


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    """Within the block an OSError becomes a DataError."""
    check_name(path)
    try:
        yield
    except OSError as error:
        name = display_name(path)
        raise DataError(f"{name}: cannot be read: {error.strerror}; check the path") from None


def _inflated(chunks: Iterable[bytes], name: str, size: int) -> Iterator[bytes]:
    """The content of gzip data, at most `size` bytes at once; zeros may follow each member."""
    member = zlib.decompressobj(wbits=31)
    for chunk in chunks:
        while chunk := chunk.lstrip(b"\0") if member.eof else chunk:
            if member.eof:
                member = zlib.decompressobj(wbits=31)
            try:
                data = member.decompress(chunk, size)
            except zlib.error as error:
                raise _damaged(name, str(error)) from None
            yield data
            chunk = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise _damaged(name, "it ends too soon")


def _damaged(name: str, problem: str) -> DataError:
    """The error for gzip data that cannot be undone."""
    return DataError(f"{name}: damaged gzip data ({problem}); fetch or compress it again")


def max_bytes() -> int:
    """How many bytes of text a file may hold: the variable FUDA_MAX_BYTES, or `MAX_BYTES`."""
    setting = os.environ.get("FUDA_MAX_BYTES") or str(MAX_BYTES)
    if not re.fullmatch("[0-9]{1,18}", setting):
        raise DataError(f"FUDA_MAX_BYTES={setting!r}: give a whole number of bytes, such as {MAX_BYTES}")
    return int(setting)


def fault(name: str, line: int, message: str) -> DataError:
    """Return an error at a line of a file, counted from 1."""
    return DataError(f"{name}:{line}: {message}")


def display_name(path: str | Path) -> str:
    """Return the name of a file in messages."""
    return "<stdin>" if str(path) == "-" else str(path)


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a binary stream whose content replaces a file only if the block ends without an error.

    The stream writes to a temporary file in the same folder, which is then renamed, so that
    readers never see part of a file and a failure leaves the old file; file and folder are
    synced, so that this also holds after a power failure. Permissions are those of the old file,
    or by the umask. Temporary files of killed writers of the same file are removed. An OSError
    becomes a DataError.
    """
    target = Path(path)
    check_name(path)
    try:
        if target.is_symlink():
            target = Path(os.path.realpath(target))
            if target.is_symlink():  # links that lead to one another
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.exists() and not target.is_file():  # /dev/null, a pipe: nothing to rename over
            with target.open("wb") as stream:
                yield stream
        else:
            _remove_abandoned(target)
            with _replacement(target) as stream:
                yield stream
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def _replacement(target: Path) -> Iterator[BinaryIO]:
    """A stream to a temporary file, which replaces the target at the end of the block."""
    replaced = target.stat().st_mode & 0o777 if target.exists() else None
    temporary, handle = _temporary(target, 0o666 if replaced is None else replaced)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(handle)
            if replaced is not None:
                os.chmod(temporary, replaced)
            if fcntl is None:
                stream.close()  # Windows does not rename an open file
            os.replace(temporary, target)  # while the lock is held
        _sync_folder(target.parent)
    except BaseException:
        with suppress(OSError):  # gone, or the disk fails again: the first error counts
            temporary.unlink()
        raise


def _temporary(target: Path, mode: int) -> tuple[Path, int]:
    """The path and descriptor of a new file beside a target, locked as long as it is open.

    The system takes the umask off `mode`.
    """
    stem = os.fsdecode(os.fsencode(target.name)[:_STEM_BYTES])
    path = target.with_name(f".{stem}.{secrets.token_hex(8)}.part")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    if fcntl is None:
        return path, handle
    with suppress(OSError):  # no locks on this file system: `_remove_abandoned` gets none either
        fcntl.flock(handle, fcntl.LOCK_EX)
    if path.exists():
        return path, handle
    os.close(handle)  # another writer took it for abandoned before it was locked
    return _temporary(target, mode)


def _remove_abandoned(target: Path) -> None:
    """Remove the temporary files of writers of the target that were killed: those not locked."""
    stem = os.fsdecode(os.fsencode(target.name)[:_STEM_BYTES])
    pattern = re.compile(rf"\.{re.escape(stem)}\.[0-9a-f]{{16}}\.part")
    if fcntl is None:
        return
    with suppress(OSError):  # the folder cannot be listed
        for path in [target.with_name(name) for name in os.listdir(target.parent) if pattern.fullmatch(name)]:
            with suppress(OSError):  # locked or renamed by its writer, or another user's
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                finally:
                    os.close(handle)


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8 to a file (gzipped if its name ends in .gz) or to stdout (``-``)."""
    with text_output(path) as write:
        write(text)


@contextmanager
def text_output(path: str | Path) -> Iterator[Callable[[str], None]]:
    """Open a function that writes texts one after another, to where `write_text` does.

    Standard output gets every text at once, a file all of them if the block ends without an error.
    """
    if str(path) == "-":
        yield _encoder(path, lambda data: _write_all(_open(sys.stdout), data))
        return
    with atomic_file(path) as stream:
        if str(path).endswith(".gz"):
            compressor = zlib.compressobj(wbits=31)
            yield _encoder(path, lambda data: _write_all(stream, compressor.compress(data)))
            stream.write(compressor.flush())
        else:
            yield _encoder(path, lambda data: _write_all(stream, data))


def _encoder(path: str | Path, write: Callable[[bytes], None]) -> Callable[[str], None]:
    """The function that writes texts in UTF-8, given the one that writes bytes."""
    lines_before = 0

    def encode(text: str) -> None:
        nonlocal lines_before
        # before a text that starts with U+FEFF, add a byte order mark for readers to drop
        encoding = "utf-8-sig" if text.startswith("\ufeff") and not lines_before else "utf-8"
        try:
            data = text.encode(encoding)
        except UnicodeEncodeError as error:
            line = lines_before + text.count("\n", 0, error.start) + 1
            raise DataError(
                f"{path}: cannot be written: line {line} contains the lone surrogate "
                f"U+{ord(text[error.start]):04X}, which is not a character; replace it"
            ) from None
        lines_before += text.count("\n")
        write(data)

    return encode


def _open(stream: TextIO | None) -> BinaryIO:
    """The bytes of a standard stream, which is None where it was closed when Python started."""
    if stream is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return stream.buffer


def _write_all(stream: BinaryIO, data: bytes) -> None:
    """Write and flush all of the data, or raise an OSError.

    Under PYTHONUNBUFFERED standard output is a raw stream, whose `write` may write only a part of
    the data (on a full disk, or past 2 GiB) and returns the number of bytes without an error.
    """
    left = memoryview(data)
    while left:
        written = stream.write(left)
        if written is None:  # a raw non-blocking stream that is not ready
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        left = left[written:]
    stream.flush()


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder durable, if the system can sync folders."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows, or a folder that is not readable
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some systems do not sync folders
            raise
    finally:
        os.close(handle)
