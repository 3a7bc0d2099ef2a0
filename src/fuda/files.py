"""Files: gzip by magic bytes, ``-`` for standard streams, UTF-8 checked, output all or nothing.

A line ends at a line feed only, and one carriage return before it is dropped. So U+0085, U+2028, a
vertical tab or a form feed inside a token never splits it.
"""

from __future__ import annotations

import errno
import gzip
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fuda.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"


def read_text(path: str | Path) -> str:
    """Return the text of a file or of standard input (``-``), unzipped, without byte order mark."""
    name = display_name(path)
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror}; check the path") from None
    if data.startswith(GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{name}: damaged gzip data ({error}); fetch or compress it again") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}:{line}: not UTF-8: byte 0x{data[error.start]:02x}; convert the file first, for example "
            "with: iconv -f latin1 -t utf-8"
        ) from None


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
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
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
        _write_all(sys.stdout.buffer, data)
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


def _umask() -> int:
    """The umask of the process."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
