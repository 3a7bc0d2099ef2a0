"""Files: gzip by magic bytes, ``-`` for standard streams, UTF-8 checked, output all or nothing.

A line ends at a line feed only, and one carriage return before it is dropped. So U+0085, U+2028, a
vertical tab or a form feed inside a token never splits it.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import secrets
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, TextIO

from fuda.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"
MAX_BYTES = 2 << 30


def read_text(path: str | Path) -> str:
    """Return the text of a file or of standard input (``-``), unzipped, without byte order mark."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{display_name(path)}:{line}: not UTF-8: byte 0x{data[error.start]:02x}; convert the file "
            "first, for example with: iconv -f latin1 -t utf-8"
        ) from None


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file or of standard input (``-``), unzipped."""
    name = display_name(path)
    try:
        with nullcontext(_open(sys.stdin)) if str(path) == "-" else open(path, "rb") as stream:
            data = _read_bounded(stream, name)
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror}; check the path") from None
    if not data.startswith(GZIP_MAGIC):
        return data
    try:
        return _read_bounded(gzip.GzipFile(fileobj=io.BytesIO(data)), name)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: damaged gzip data ({error}); fetch or compress it again") from None


def _read_bounded(stream: BinaryIO | gzip.GzipFile, name: str) -> bytes:
    """The rest of a stream; DataError, soon after the bound, where it is longer than `max_bytes`."""
    bound, data = max_bytes(), bytearray()
    while chunk := stream.read(1 << 20):
        data += chunk
        if len(data) > bound:
            raise DataError(
                f"{name}: holds more than {bound:,} bytes, gzip undone; split it, or set the environment "
                "variable FUDA_MAX_BYTES to a larger number"
            )
    return bytes(data)


def max_bytes() -> int:
    """How many bytes of text a file may hold: the environment variable FUDA_MAX_BYTES, or `MAX_BYTES`."""
    given = os.environ.get("FUDA_MAX_BYTES") or str(MAX_BYTES)
    if not re.fullmatch("[0-9]{1,18}", given):
        raise DataError(f"FUDA_MAX_BYTES={given!r}: give a whole number of bytes, such as {MAX_BYTES}")
    return int(given)


def split_lines(text: str, name: str) -> list[str]:
    """Return the lines of a text without their ends; the last line need not have one.

    >>> split_lines("one\\r\\ntwo\\u2028three", "x.txt")
    ['one', 'two\\u2028three']
    """
    if "\r" in text and "\n" not in text:
        raise DataError(
            f"{name}:1: lines end in a carriage return alone; convert the file first: tr '\\r' '\\n'"
        )
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def fault(name: str, line: int, message: str) -> DataError:
    """Return an error at a line of a file, counted from 1."""
    return DataError(f"{name}:{line}: {message}")


def display_name(path: str | Path) -> str:
    """Return the name of a file in messages."""
    return "<stdin>" if str(path) == "-" else str(path)


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a binary stream whose content replaces a file only if the block ends without an error.

    The stream writes to a temporary file in the same folder, which is then renamed, so that readers
    never see part of a file and a failure leaves the old file; file and folder are synced, so that
    this also holds after a power failure. Permissions are those of the old file, or by the umask.
    """
    target = Path(path)
    if target.is_symlink():
        target = target.resolve()
    if target.exists() and not target.is_file():  # /dev/null, a pipe: nothing to rename over
        with target.open("wb") as stream:
            yield stream
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_urlsafe(6)}")
    try:
        replaced = target.stat().st_mode & 0o777 if target.exists() else None
        mode = 0o666 if replaced is None else replaced  # less the umask, which the system applies
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if replaced is not None:
            os.chmod(temporary, replaced)
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8 to a file (gzipped if its name ends in .gz) or to standard output (``-``)."""
    try:  # before a text that starts with U+FEFF, add a byte order mark for readers to drop
        data = text.encode("utf-8-sig" if text.startswith("\ufeff") else "utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise DataError(
            f"{path}: cannot be written: line {line} contains the lone surrogate "
            f"U+{ord(text[error.start]):04X}, which is not a character; replace it"
        ) from None
    if str(path) == "-":
        _write_all(_open(sys.stdout), data)
        return
    if str(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    try:
        with whole_file(path) as stream:
            stream.write(data)
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None


def _open(stream: TextIO | None) -> BinaryIO:
    """The bytes of a standard stream, which is None where it was closed when Python started."""
    if stream is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return stream.buffer


def _write_all(stream: BinaryIO, data: bytes) -> None:
    """Write and flush all of the data, or raise an OSError.

    Under PYTHONUNBUFFERED standard output is a raw stream, whose `write` may write only a part of the
    data (on a full disk, or past 2 GiB) and returns the number of bytes without an error.
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
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that do not sync folders
            raise
    finally:
        os.close(handle)
