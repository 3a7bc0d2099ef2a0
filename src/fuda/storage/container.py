"""Model files: one zip of JSON and plain arrays. Nothing in it can run code.

======================  ================================================================================
meta.json               format version, class and its version, parameters, labels, shape and kind of the
                        structures, and the size of every other member (and dtype and shape of arrays)
vocabularies.json       the feature names
arrays/NAME.npy         the fitted arrays
======================  ================================================================================

The comment of the zip is the SHA-256 of all bytes before it. Members are stored, not compressed, so that a
file can never unpack into more than its own size. Every size, name, dtype and shape is checked before
anything is taken in, classes come from a closed registry, and the header of an array is compared, never
parsed. Writing goes to a temporary file that is renamed when it is whole. Equal models give equal bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fuda import __version__
from fuda.errors import DataError, ModelFileError, short
from fuda.files import whole_file
from fuda.registry import MODELS, model_class

FORMAT = "fuda-model"
FORMAT_VERSION = 1

_META = "meta.json"
_VOCABULARIES = "vocabularies.json"
_ARRAY_NAME = re.compile(r"arrays/([a-z][a-z0-9_]{0,63})\.npy")
_DTYPES = {"float64": "<f8", "float32": "<f4", "int64": "<i8", "int32": "<i4", "uint8": "|u1"}
_META_LIMIT = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3  # the system that a member says it was made on; one for all, so that equal models give equal bytes
_SEAL_SIZE = len("sha256:") + 64


def save(
    path: str | Path, meta: dict[str, Any], vocabularies: list[list[str]], arrays: dict[str, np.ndarray]
) -> None:
    """Write a model: `meta` with class, class_version, parameters, labels, shape and so on, and what was
    fitted."""
    members = {_VOCABULARIES: _json_bytes(vocabularies)}
    listed: dict[str, dict[str, Any]] = {_VOCABULARIES: {"bytes": len(members[_VOCABULARIES])}}
    for name, array in sorted(arrays.items()):
        if str(array.dtype) not in _DTYPES:
            raise TypeError(f"array {name!r} of dtype {array.dtype} does not belong in a model file")
        stream = io.BytesIO()
        plain = np.ascontiguousarray(array, dtype=_DTYPES[str(array.dtype)])
        np.lib.format.write_array(stream, plain, version=(1, 0), allow_pickle=False)
        member = f"arrays/{name}.npy"
        members[member] = stream.getvalue()
        listed[member] = {
            "bytes": len(members[member]),
            "dtype": str(array.dtype),
            "shape": list(array.shape),
        }
    head = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "fuda": __version__,
        **meta,
        "members": listed,
    }
    members = {_META: _json_bytes(head), **members}
    if len(members[_META]) > _META_LIMIT:
        raise DataError(
            f"{path}: cannot be written: labels and parameters take {len(members[_META]):,} bytes, and there "
            f"is room for {_META_LIMIT:,}; use shorter labels or a shorter template"
        )
    content = _zip(members)
    try:
        with whole_file(path) as target:
            target.write(content)
            target.write(_seal(hashlib.sha256(content)))
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None


def read_meta(path: str | Path) -> dict[str, Any]:
    """The checked metadata of a model file; nothing else is read."""
    with _opened(path) as stream:
        return _archive(stream, path)[1]


def read(path: str | Path) -> tuple[dict[str, Any], list[list[str]], dict[str, np.ndarray]]:
    """Metadata, vocabularies and arrays of a model file, all checked."""
    with _opened(path) as stream:
        archive, meta = _archive(stream, path)
        _check_seal(stream, path)
        vocabularies = _json(_bytes(archive, _VOCABULARIES, path), path, _VOCABULARIES)
        arrays = {
            found[1]: _array(_bytes(archive, name, path), listed, path, name)
            for name, listed in meta["members"].items()
            if (found := _ARRAY_NAME.fullmatch(name))
        }
    if not isinstance(vocabularies, list) or not all(map(_distinct_strings, vocabularies)):
        raise _damaged(path, "its vocabularies are not lists of distinct names")
    return meta, vocabularies, arrays


def stored_class(name: Any, version: int = 1) -> Any:
    """The registered class of that name, if this version of its state is understood."""
    if not isinstance(name, str) or name not in MODELS:
        raise ModelFileError(
            f"holds a {short(name)}, which is not a model of fuda {__version__} ({', '.join(MODELS)}): "
            "install a newer fuda, or save the model again"
        )
    if not 1 <= version <= MODELS[name].version:
        raise ModelFileError(
            f"holds version {version} of {name}; fuda {__version__} reads up to {MODELS[name].version}: "
            "install a newer fuda"
        )
    return model_class(name)


def check_arrays(arrays: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]) -> None:
    """The arrays of a file are those that a model asks for: float64, finite, of these shapes."""
    for name in sorted(arrays.keys() | shapes.keys()):
        if name not in arrays:
            raise DataError(f"its array {name!r} is missing")
        found = arrays[name]
        if name not in shapes or found.shape != shapes[name] or found.dtype != np.float64:
            raise DataError(
                f"its array {name!r} is {found.dtype} of shape {found.shape}, which does not fit its labels "
                "and features"
            )
        if not np.isfinite(found).all():
            raise DataError(f"its array {name!r} is not finite")


def _zip(members: dict[str, bytes]) -> bytes:
    """The zip file, but for the comment that seals it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = _UNIX
            archive.writestr(info, data)
        archive.comment = bytes(_SEAL_SIZE)
    return stream.getvalue()[:-_SEAL_SIZE]


def _seal(digest: Any) -> bytes:
    return f"sha256:{digest.hexdigest()}".encode()


def _check_seal(stream: BinaryIO, path: str | Path) -> None:
    """The file ends in the checksum of all bytes before it."""
    digest, left = hashlib.sha256(), stream.seek(0, io.SEEK_END) - _SEAL_SIZE
    stream.seek(0)
    while left > 0 and (chunk := stream.read(min(left, 1 << 20))):
        digest.update(chunk)
        left -= len(chunk)
    if stream.read() != _seal(digest):
        raise _damaged(path, "it does not have its checksum")


def _opened(path: str | Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except IsADirectoryError:
        raise ModelFileError(f"{path}: is a folder, not a model file; name the file") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        why = error.strerror if isinstance(error, OSError) else error
        raise ModelFileError(f"{path}: cannot be read: {why}; check the path") from None


def _archive(stream: BinaryIO, path: str | Path) -> tuple[zipfile.ZipFile, dict[str, Any]]:
    """The zip and its metadata, after all checks that need no other member."""
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
        raise _damaged(path, "it is no fuda model, or cut off") from None
    infos = archive.infolist()
    for info in infos:
        if info.filename not in (_META, _VOCABULARIES) and not _ARRAY_NAME.fullmatch(info.filename):
            raise _damaged(path, f"it has a member {short(info.filename)} that no model has")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise _damaged(path, f"member {info.filename!r} is compressed, which no model is")
        if info.flag_bits & 1:
            raise _damaged(path, f"member {info.filename!r} is encrypted, which no model is")
    names = {info.filename for info in infos}
    if len(names) != len(infos):
        raise _damaged(path, "two members have one name")
    if sum(info.file_size for info in infos) > stream.seek(0, io.SEEK_END):
        raise _damaged(path, "its members claim to be larger than the file")
    if _META not in names:
        raise _damaged(path, f"it has no {_META}")
    if archive.getinfo(_META).file_size > _META_LIMIT:
        raise _damaged(path, f"its {_META} is larger than {_META_LIMIT >> 20} MiB")
    meta = _json(_bytes(archive, _META, path), path, _META)
    _check_meta(meta, path)
    members = meta["members"]
    if set(members) != names - {_META} or _VOCABULARIES not in members:
        raise _damaged(path, "its list of members does not fit its members")
    for name, listed in members.items():
        if not isinstance(listed, dict) or listed.get("bytes") != archive.getinfo(name).file_size:
            raise _damaged(path, f"the size of member {name!r} is not what its list says")
        if name != _VOCABULARIES and not _described_well(listed):
            found = f"dtype {short(listed.get('dtype'))} and shape {short(listed.get('shape'))}"
            raise _damaged(path, f"member {name!r} has {found}")
    return archive, meta


def _check_meta(meta: Any, path: str | Path) -> None:
    """What the metadata of every model has, and each of its kind."""
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise _damaged(path, "it is no fuda model")
    version: Any = meta.get("format_version")
    if not is_count(version) or version < 1:
        raise _damaged(path, "it names no format version")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path}: format version {version}, written by fuda {short(meta.get('fuda'))}; fuda "
            f"{__version__} reads up to {FORMAT_VERSION}: install a newer fuda"
        )
    of_kind = _kinds(meta) | {
        "fuda": isinstance(meta.get("fuda"), str),
        "reading": isinstance(meta.get("reading"), dict),
        "members": isinstance(meta.get("members"), dict),
    }
    for name, well in of_kind.items():
        if not well:
            raise _damaged(path, f"in its {_META}, {name!r} is missing or not of its kind")


def check_part(meta: dict[str, Any], name: str) -> None:
    """What the metadata of a model within a model has."""
    wrong = [key for key, well in _kinds(meta).items() if not well]
    if wrong:
        raise DataError(f"in its part {short(name)}, {wrong[0]!r} is missing or not of its kind")


def _kinds(meta: dict[str, Any]) -> dict[str, bool]:
    """Whether what every stored labeler has is there and of its kind."""
    observations = meta.get("observations")
    return {
        "class": isinstance(meta.get("class"), str),
        "class_version": is_count(meta.get("class_version")),
        "parameters": isinstance(meta.get("parameters"), dict),
        "labels": _are_labels(meta.get("labels")),
        "shape": meta.get("shape") in ("sequence", "tree", "dag"),
        "observations": isinstance(observations, dict) and is_count(observations.get("size")),
    }


def _are_labels(labels: Any) -> bool:
    """Distinct labels, all strings that are not empty or all integers."""
    if not isinstance(labels, list) or not labels:
        return False
    kind = type(labels[0])
    of_kind = kind in (str, int) and all(type(label) is kind for label in labels) and "" not in labels
    return of_kind and len(set(labels)) == len(labels)


def _described_well(listed: dict[str, Any]) -> bool:
    """Whether dtype and shape of an array are known, small enough, and fit its size in bytes."""
    dtype, shape = listed.get("dtype"), listed.get("shape")
    if not isinstance(dtype, str) or dtype not in _DTYPES or not isinstance(shape, list):
        return False
    if len(shape) > 4 or not all(map(is_count, shape)):
        return False
    return 0 <= listed["bytes"] - math.prod(shape) * np.dtype(dtype).itemsize <= 1 << 12


def _array(data: bytes, listed: dict[str, Any], path: str | Path, name: str) -> np.ndarray:
    """The array of a member whose header says, in numpy's words, what the list of members says."""
    dtype, shape = np.dtype(_DTYPES[listed["dtype"]]), tuple(listed["shape"])
    header = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    start = 10 + int.from_bytes(data[8:10], "little")
    if data[:8] != b"\x93NUMPY\x01\x00" or data[10:start].rstrip() != header.encode():
        raise _damaged(path, f"member {name!r} is not the array that its list says")
    if len(data) - start != math.prod(shape) * dtype.itemsize:
        raise _damaged(path, f"member {name!r} is not as long as its shape says")
    try:
        array = np.frombuffer(data, dtype, math.prod(shape), start).reshape(shape)
    except ValueError:  # a shape with a zero whose other sizes are past all bounds
        raise _damaged(path, f"member {name!r} has the shape {shape}") from None
    if np.isnan(array).any():
        raise _damaged(path, f"member {name!r} holds NaN")
    return array.astype(dtype.newbyteorder("="))  # a copy that can be written to


def _bytes(archive: zipfile.ZipFile, name: str, path: str | Path) -> bytes:
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, struct.error):
        raise _damaged(path, f"member {name!r} cannot be read") from None


def _json_bytes(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _json(data: bytes, path: str | Path, name: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return json.loads(data.decode("utf-8", "surrogatepass"), parse_constant=refuse)
    except (ValueError, RecursionError):
        raise _damaged(path, f"its {name} is not readable") from None


def is_count(value: Any) -> bool:
    """Whether a value out of JSON is a whole number from 0 to what sizes can be."""
    return type(value) is int and 0 <= value < 1 << 48


def _distinct_strings(names: Any) -> bool:
    return (
        isinstance(names, list) and all(isinstance(n, str) for n in names) and len(set(names)) == len(names)
    )


def _damaged(path: str | Path, why: str) -> ModelFileError:
    return ModelFileError(
        f"{path}: not a usable model file: {why}; save the model again, or fetch the file again"
    )
