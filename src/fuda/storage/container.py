"""Sealed files, the container of models and checkpoints: one zip of JSON and plain arrays.

===============  ============================================================================
meta.json        format, format version, entries of the format, and the size of every other
                 member (and dtype and shape of arrays)
NAME.json        further JSON, depending on the format
arrays/NAME.npy  the arrays
===============  ============================================================================

The comment of the zip is the SHA-256 of all bytes before it. Members are stored, not compressed,
so that a file can never unpack into more than its own size. Every size, name, dtype and shape is
checked before anything is read, and the header of an array is compared, never parsed: nothing
in a file can run code. Writing uses a temporary file that is renamed when it is complete. Equal
content gives equal bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from fuda import __version__
from fuda.checks import is_count
from fuda.errors import DataError, ModelFileError, short
from fuda.files import atomic_file

_META = "meta.json"
_ARRAY_NAME = re.compile(r"arrays/([a-z][a-z0-9_]{0,63})\.npy")
_DTYPES = {
    "float64": "<f8",
    "float32": "<f4",
    "float16": "<f2",
    "int64": "<i8",
    "int32": "<i4",
    "uint8": "|u1",
}
_META_LIMIT = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3  # every member names this system, so that equal content gives equal bytes
_SEAL_SIZE = len("sha256:") + 64


class Format(NamedTuple):
    """A format of sealed files: its identification, further JSON members, and texts for errors."""

    name: str
    version: int
    json_members: tuple[str, ...]
    noun: str
    remedy: str


class Damaged(Exception):
    """A defect of a file; `opened` makes it an error that names the file and the remedy."""


def write(
    path: str | Path, kind: Format, meta: dict[str, Any], texts: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a sealed file; a failure leaves the file as it was.

    Parameters
    ----------
    path : str or Path
        The file to write.
    kind : Format
        The format.
    meta : dict
        The entries of the metadata, for JSON.
    texts : dict
        The content of the further JSON members, by name.
    arrays : dict of ndarray
        The arrays, by name.
    """
    members: dict[str, list[Any]] = {name: [_json_bytes(value)] for name, value in texts.items()}
    listed: dict[str, dict[str, Any]] = {name: {} for name in members}
    for name, array in sorted(arrays.items()):
        if str(array.dtype) not in _DTYPES:
            raise TypeError(f"array {name!r} of dtype {array.dtype} does not belong in a {kind.noun} file")
        plain = np.ascontiguousarray(array, dtype=_DTYPES[str(array.dtype)]).reshape(array.shape)
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(plain))
        member = f"arrays/{name}.npy"
        members[member] = [header.getvalue(), plain.ravel().data]
        listed[member] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    for name, chunks in members.items():
        listed[name] = {"bytes": sum(memoryview(chunk).nbytes for chunk in chunks), **listed[name]}
    head = _json_bytes(
        {"format": kind.name, "format_version": kind.version, "fuda": __version__, **meta, "members": listed}
    )
    if len(head) > _META_LIMIT:
        size = f"{len(head):,} bytes, and at most {_META_LIMIT:,} are allowed"
        message = f"labels and parameters take {size}; use shorter labels or a shorter template"
        raise DataError(f"{path}: cannot be written: {message}")
    # Released here also where writing fails: its bytes may not go before it, in whatever order the
    # error and all that it refers to are collected.
    with _zip({_META: [head], **members}) as content, atomic_file(path) as target:
        target.write(content)
        target.write(_seal(hashlib.sha256(content)))


@contextmanager
def opened(path: str | Path, kind: Format) -> Iterator[SealedFile]:
    """Open a file and check its metadata; within the block, Damaged becomes a ModelFileError.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : Format
        The format that it must have.

    Yields
    ------
    SealedFile
        The open file.
    """
    with _stream(path, kind) as stream:
        try:
            yield SealedFile(path, stream, kind)
        except Damaged as error:
            raise ModelFileError(f"{path}: not a usable {kind.noun} file: {error}; {kind.remedy}") from None
        except OSError as error:
            raise ModelFileError(f"{path}: cannot be read: {error.strerror}; check the disk") from None
        except MemoryError:
            raise ModelFileError(f"{path}: not enough memory to read it; use a larger machine") from None


class SealedFile:
    """An open file.

    Attributes
    ----------
    meta : dict
        The metadata; the entries that all formats have are checked.
    """

    def __init__(self, path: str | Path, stream: BinaryIO, kind: Format) -> None:
        self._stream, self._kind = stream, kind
        try:
            self._archive = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
            raise Damaged(f"it is not a fuda {kind.noun}, or it is cut off") from None
        names = self._check_members()
        self.meta: dict[str, Any] = self.json(_META)
        self._check_meta(path)
        members = self.meta["members"]
        if set(members) != names - {_META} or not members.keys() >= set(kind.json_members):
            raise Damaged("its list of members does not match its members")
        for name, listed in members.items():
            if not isinstance(listed, dict) or listed.get("bytes") != self._archive.getinfo(name).file_size:
                raise Damaged(f"the size of member {name!r} is not the one listed")
            if name not in kind.json_members and not _valid_array(listed):
                description = f"dtype {short(listed.get('dtype'))} and shape {short(listed.get('shape'))}"
                raise Damaged(f"member {name!r} has {description}")

    def check_seal(self) -> None:
        """Check that the file ends in the checksum of all bytes before it."""
        digest, remaining = hashlib.sha256(), self._stream.seek(0, io.SEEK_END) - _SEAL_SIZE
        self._stream.seek(0)
        while remaining > 0 and (chunk := self._stream.read(min(remaining, 1 << 20))):
            digest.update(chunk)
            remaining -= len(chunk)
        if self._stream.read() != _seal(digest):
            raise Damaged("its checksum is wrong")

    def json(self, name: str) -> Any:
        """Return the content of a JSON member."""

        def refuse(constant: str) -> None:
            raise ValueError(constant)

        data = self._bytes(name)
        try:
            return json.loads(data.decode("utf-8", "surrogatepass"), parse_constant=refuse)
        except (ValueError, RecursionError):
            raise Damaged(f"its {name} is not readable") from None

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name, after checking dtypes, shapes, and the absence of NaN."""
        return {
            match[1]: _array(self._bytes(name), listed, name)
            for name, listed in self.meta["members"].items()
            if (match := _ARRAY_NAME.fullmatch(name))
        }

    def _check_members(self) -> set[str]:
        """The names of all members, after all checks that require no content."""
        infos, noun = self._archive.infolist(), self._kind.noun
        for info in infos:
            known = info.filename in (_META, *self._kind.json_members)
            if not known and not _ARRAY_NAME.fullmatch(info.filename):
                raise Damaged(f"it has a member {short(info.filename)} that no {noun} has")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise Damaged(f"member {info.filename!r} is compressed, which no {noun} is")
            if info.flag_bits & 1:
                raise Damaged(f"member {info.filename!r} is encrypted, which no {noun} is")
        names = {info.filename for info in infos}
        if len(names) != len(infos):
            raise Damaged("two members have one name")
        if sum(info.file_size for info in infos) > self._stream.seek(0, io.SEEK_END):
            raise Damaged("its members claim to be larger than the file")
        if _META not in names:
            raise Damaged(f"it has no {_META}")
        if self._archive.getinfo(_META).file_size > _META_LIMIT:
            raise Damaged(f"its {_META} is larger than {_META_LIMIT >> 20} MiB")
        return names

    def _check_meta(self, path: str | Path) -> None:
        """Check the entries that all formats have."""
        kind, meta = self._kind, self.meta
        if not isinstance(meta, dict) or meta.get("format") != kind.name:
            raise Damaged(f"it is not a fuda {kind.noun}")
        version: Any = meta.get("format_version")
        if not is_count(version) or version < 1:
            raise Damaged("it has no format version")
        if version > kind.version:
            raise ModelFileError(
                f"{path}: format version {version}, written by fuda {short(meta.get('fuda'))}; fuda "
                f"{__version__} reads up to {kind.version}: install a newer fuda"
            )
        entries = {
            "fuda": isinstance(meta.get("fuda"), str),
            "members": isinstance(meta.get("members"), dict),
        }
        check_entries(entries)

    def _bytes(self, name: str) -> bytes:
        """The content of a member."""
        try:
            return self._archive.read(name)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, struct.error):
            raise Damaged(f"member {name!r} cannot be read") from None


def check_entries(entries: dict[str, bool]) -> None:
    """Raise Damaged if an entry of the metadata is invalid; `entries` maps names to validity."""
    for name, valid in entries.items():
        if not valid:
            raise Damaged(f"in its {_META}, {name!r} is missing or has the wrong type")


def _stream(path: str | Path, kind: Format) -> BinaryIO:
    """The file, opened for reading; not a pipe or a device, which may have no end."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return open(path, "rb")
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        why = error.strerror if isinstance(error, OSError) else error
        raise ModelFileError(f"{path}: cannot be read: {why}; check the path") from None
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise ModelFileError(f"{path}: is {what}, not a {kind.noun} file; name the file")


def _zip(members: dict[str, list[Any]]) -> memoryview:
    """The zip file without the comment that seals it; members are given in chunks of bytes."""
    stream = io.BytesIO()
    try:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, chunks in members.items():
                info = zipfile.ZipInfo(name, _EPOCH)
                info.create_system = _UNIX
                # It determines zip64.
                info.file_size = sum(memoryview(chunk).nbytes for chunk in chunks)
                with archive.open(info, "w") as member:
                    for chunk in chunks:
                        member.write(chunk)
            archive.comment = bytes(_SEAL_SIZE)
    except ValueError as error:  # what zipfile raises when it closes after a MemoryError
        raise MemoryError("not enough memory for the content of the file") from error
    return stream.getbuffer()[:-_SEAL_SIZE]


def _seal(digest: Any) -> bytes:
    """The comment of the zip."""
    return f"sha256:{digest.hexdigest()}".encode()


def _valid_array(listed: dict[str, Any]) -> bool:
    """Whether dtype and shape of an array are known, small enough, and match its size in bytes."""
    dtype, shape = listed.get("dtype"), listed.get("shape")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        return False
    if not isinstance(shape, list) or len(shape) > 4 or not all(map(is_count, shape)):
        return False
    return 0 <= listed["bytes"] - math.prod(shape) * np.dtype(dtype).itemsize <= 1 << 12


def _array(data: bytes, listed: dict[str, Any], name: str) -> np.ndarray:
    """The array of a member; its header must match dtype and shape in the list of members."""
    dtype, shape = np.dtype(_DTYPES[listed["dtype"]]), tuple(listed["shape"])
    header = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    start = 10 + int.from_bytes(data[8:10], "little")
    if data[:8] != b"\x93NUMPY\x01\x00" or data[10:start].rstrip() != header.encode():
        raise Damaged(f"member {name!r} is not the array listed")
    if len(data) - start != math.prod(shape) * dtype.itemsize:
        raise Damaged(f"member {name!r} does not have the length of its shape")
    try:
        array = np.frombuffer(data, dtype, math.prod(shape), start).reshape(shape)
    except ValueError:  # a shape with a zero and other sizes that overflow
        raise Damaged(f"member {name!r} has the shape {shape}") from None
    if np.isnan(array).any():
        raise Damaged(f"member {name!r} contains NaN")
    return array.astype(dtype.newbyteorder("="))  # a copy that can be written to


def _json_bytes(value: Any) -> bytes:
    """A value as compact JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")
