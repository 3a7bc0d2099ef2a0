"""Reading word vectors: word2vec's text and binary files, GloVe's and fastText's text files.

=========  ==========================  =====================================================
file       first line                  then
=========  ==========================  =====================================================
word2vec   number of words, of values  a line per word: the word and its values, all by spaces
fastText   the same                    the same
GloVe      –                           the same
binary     number of words, of values  per word: the word, a space, 32-bit floats, maybe a
                                       line feed
=========  ==========================  =====================================================

A word may contain spaces in text files: the values are the last fields. Files may be gzipped. A
binary file that is not is mapped into memory, so that only the rows that are vectors are copied.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fuda.errors import DataError, short
from fuda.files import GZIP_MAGIC, Lines, check_name, display_name, fault, read_bytes

_HEADER = re.compile(rb"([0-9]{1,12}) ([0-9]{1,7})[ \r]*\n")
_HEAD = 1 << 16  # the first bytes of a file, by which its kind is recognized
_MOST_VALUES = 1 << 14  # the largest number of values of a vector
_LONGEST = 1 << 12  # the largest number of bytes of a word in a binary file
_CONTROL = frozenset(range(9))  # bytes that no text has, and nearly all vectors of floats
_AGAIN = "fetch the file again"
Table = tuple[list[str], np.ndarray]


def read_table(path: str | Path, needed: set[str] | None = None) -> Table:
    """Read the words and vectors of a file.

    Parameters
    ----------
    path : str or Path
        The file.
    needed : set of str, optional
        The words to keep; None for all.

    Returns
    -------
    words : list of str
    matrix : (words, size) array of float32

    Raises
    ------
    DataError
        If the file is damaged or of another kind, or has none of the words; it names the
        line or word.
    """
    name = display_name(path)
    with _content(path) as (head, content):
        header = _HEADER.match(head)
        if header is not None and _is_binary(head[header.end() :]):
            words, rows = _binary_rows(name, content, header, needed)
        else:
            words, rows = _text_rows(path, header, needed)
    if not words:
        has = "no vectors" if needed is None else f"none of the {len(needed):,} words that are needed"
        raise DataError(f"{name}: has {has}; give a file of word vectors in the language of the text")
    return words, np.stack(rows)


def _is_binary(rows: bytes) -> bool:
    """Whether rows after a header are those of a binary file: with bytes that no text has."""
    if not _CONTROL.isdisjoint(rows):
        return True
    try:
        rows.partition(b"\n")[0].decode()
    except UnicodeDecodeError:
        return True
    return False


@contextmanager
def _content(path: str | Path) -> Iterator[tuple[bytes, bytes | mmap.mmap]]:
    """The first bytes of a file, and all of them: mapped into memory, or unzipped."""
    check_name(path)
    try:
        with open(path, "rb") as stream:
            start = stream.read(_HEAD)
            if start and not start.startswith(GZIP_MAGIC):
                with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                    yield start, mapped
                return
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    content = read_bytes(path) if start else b""
    yield content[:_HEAD], content


def _binary_rows(
    name: str, content: bytes | mmap.mmap, header: re.Match[bytes], needed: set[str] | None
) -> tuple[list[str], list[np.ndarray]]:
    """The words and vectors of a binary file."""
    count, size = _announced(name, header)
    vectors: dict[str, np.ndarray] = {}
    at = header.end()
    for number in range(1, count + 1):
        while content[at : at + 1] == b"\n":
            at += 1
        end = content.find(b" ", at, at + _LONGEST)
        if end < 0 or end + 1 + 4 * size > len(content):
            raise DataError(
                f"{name}: ends or is damaged at word {number:,} of {count:,}, byte {at:,}; {_AGAIN}"
            )
        word = content[at:end].decode(errors="replace")
        at = end + 1 + 4 * size
        if (needed is None or word in needed) and word not in vectors:
            row = np.frombuffer(content[end + 1 : at], dtype="<f4").astype(np.float32)
            if not np.isfinite(row).all():
                raise DataError(f"{name}: word {number:,}, {short(word)}, has values not finite; {_AGAIN}")
            vectors[word] = row
    return list(vectors), list(vectors.values())


def _text_rows(
    path: str | Path, header: re.Match[bytes] | None, needed: set[str] | None
) -> tuple[list[str], list[np.ndarray]]:
    """The words and vectors of a text file."""
    lines = Lines(path)
    count, size = (0, 0) if header is None else _announced(lines.name, header)
    vectors: dict[str, np.ndarray] = {}
    seen = 0
    for number, line in enumerate(lines, start=1):
        lines.release()
        if (header is not None and number == 1) or not line.strip():
            continue
        seen += 1
        fields = line.rstrip(" ").rsplit(" ", size or _MOST_VALUES + 1)
        size = size or len(fields) - 1
        if len(fields) != size + 1 or not 0 < size <= _MOST_VALUES:
            mistake = f"has {len(fields) - 1} values where {size} are expected" if size else "has no values"
            if size > _MOST_VALUES:
                mistake = f"has more than {_MOST_VALUES:,} values"
            raise fault(lines.name, number, f"{mistake} after the word {short(fields[0])}; {_AGAIN}")
        word = fields[0]
        if (needed is None or word in needed) and word not in vectors:
            vectors[word] = _values(lines.name, number, fields[1:])
    if header is not None and seen != count:
        raise fault(lines.name, 1, f"announces {count:,} words, but {seen:,} follow; {_AGAIN}")
    return list(vectors), list(vectors.values())


def _announced(name: str, header: re.Match[bytes]) -> tuple[int, int]:
    """The numbers of words and of values in a header."""
    count, size = int(header[1]), int(header[2])
    if not 0 < size <= _MOST_VALUES:
        raise fault(name, 1, f"announces vectors of {size:,} values; 1 to {_MOST_VALUES:,} are possible")
    return count, size


def _values(name: str, number: int, fields: list[str]) -> np.ndarray:
    """The values of a line."""
    row = _floats(fields)
    if row is None:
        bad = next(field for field in fields if _floats([field]) is None)
        raise fault(name, number, f"{short(bad)} is not a finite 32-bit number; {_AGAIN}")
    return row


def _floats(fields: list[str]) -> np.ndarray | None:
    """Fields as finite 32-bit numbers; None where one of them is not."""
    try:
        with np.errstate(over="ignore"):
            row = np.array(fields, dtype=np.float32)
    except ValueError:
        return None
    return row if np.isfinite(row).all() else None
