"""Model files: one zip of JSON and plain arrays. Nothing in it can run code.

======================  ==========================================================================
meta.json               format version, class and its version, parameters, labels, shape of the structures, and for
                        every other member its size and SHA-256 (and dtype and shape of arrays)
vocabularies.json       the feature names
arrays/NAME.npy         the fitted arrays
======================  ==========================================================================

Members are stored, not compressed, so that a file can never unpack into more than its own size, and reading allocates no
more than that. Every size, name, dtype and shape is checked before anything is taken in, classes come from a closed registry, and
arrays are read without pickle. Writing goes to a temporary file that is renamed when it is whole. Equal models give equal
bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import struct
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fuda import __version__
from fuda.errors import DataError, ModelFileError
from fuda.formats.files import whole_file

FORMAT = "fuda-model"
FORMAT_VERSION = 1
# Every class a model file may name: where it lives and the newest version of its state that is understood.
REGISTRY = {
    "HMM": ("fuda.models.hmm", 1),
}

_META = "meta.json"
_VOCABULARIES = "vocabularies.json"
_ARRAY_NAME = re.compile(r"arrays/([a-z][a-z0-9_]{0,63})\.npy")
_DTYPES = {"float64": 8, "float32": 4, "int64": 8, "int32": 4, "uint8": 1}
_META_LIMIT = 1 << 24
_MEMBER_LIMIT = 256
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save(path: str | Path, meta: dict[str, Any], vocabularies: list[list[str]], arrays: dict[str, np.ndarray]) -> None:
    """Write a model: `meta` with class, class_version, parameters, labels, shape and so on, and what was fitted."""
    members = {_VOCABULARIES: (_json_bytes(vocabularies), {})}
    for name, array in sorted(arrays.items()):
        if str(array.dtype) not in _DTYPES or array.dtype.hasobject:
            raise TypeError(f"array {name!r} of dtype {array.dtype} does not belong in a model file")
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
        described = {"dtype": str(array.dtype), "shape": list(array.shape)}
        members[f"arrays/{name}.npy"] = (stream.getvalue(), described)
    listed = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), **described}
        for name, (data, described) in members.items()
    }
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "fuda": __version__, **meta, "members": listed}
    try:
        with whole_file(path) as stream_out, zipfile.ZipFile(stream_out, "w", zipfile.ZIP_STORED) as archive:
            for name, data in [(_META, _json_bytes(head)), *((name, data) for name, (data, _) in members.items())]:
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None


def read_meta(path: str | Path) -> dict[str, Any]:
    """The checked metadata of a model file; no array is read."""
    with _opened(path) as archive:
        return _checked_meta(archive, path)


def read(path: str | Path) -> tuple[dict[str, Any], list[list[str]], dict[str, np.ndarray]]:
    """Metadata, vocabularies and arrays of a model file, all checked."""
    with _opened(path) as archive:
        meta = _checked_meta(archive, path)
        data = {name: _member(archive, name, listed, path) for name, listed in meta["members"].items()}
    vocabularies = _json(data.pop(_VOCABULARIES), path, _VOCABULARIES)
    if not isinstance(vocabularies, list) or not all(_distinct_strings(names) for names in vocabularies):
        raise _damaged(path, "its vocabularies are not lists of distinct names")
    arrays = {}
    for name, content in data.items():
        arrays[_ARRAY_NAME.fullmatch(name)[1]] = _array(content, meta["members"][name], path, name)  # type: ignore[index]
    return meta, vocabularies, arrays


def load_class(meta: dict[str, Any], path: str | Path) -> Any:
    """The registered class that a file names."""
    name, version = meta.get("class"), meta.get("class_version")
    if name not in REGISTRY:
        known = ", ".join(REGISTRY)
        raise ModelFileError(f"{path}: holds a {name!r}, which is no model of fuda {__version__} ({known})")
    module, newest = REGISTRY[name]
    if not _is_count(version) or not 1 <= version <= newest:
        raise ModelFileError(
            f"{path}: holds version {version!r} of {name}; fuda {__version__} reads up to {newest}: install a newer fuda"
        )
    return getattr(import_module(module), name)


def _opened(path: str | Path) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(path)
    except IsADirectoryError:
        raise ModelFileError(f"{path}: is a folder, not a model file") from None
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error):
        raise _damaged(path, "it is no fuda model, or cut off") from None
    infos = archive.infolist()
    size = Path(path).stat().st_size
    problem = None
    if len(infos) > _MEMBER_LIMIT:
        problem = f"it has {len(infos)} members"
    elif len({info.filename for info in infos}) != len(infos):
        problem = "two members have one name"
    elif sum(max(info.file_size, info.compress_size) for info in infos) > size:
        problem = "its members claim to be larger than the file"
    for info in infos:
        if info.filename not in (_META, _VOCABULARIES) and not _ARRAY_NAME.fullmatch(info.filename):
            problem = f"it has a member {info.filename[:80]!r} that no model has"
        elif info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            problem = f"member {info.filename!r} is compressed or encrypted, which no model is"
    if problem:
        archive.close()
        raise _damaged(path, problem)
    return archive


def _checked_meta(archive: zipfile.ZipFile, path: str | Path) -> dict[str, Any]:
    names = archive.namelist()
    if _META not in names:
        raise _damaged(path, f"it has no {_META}")
    if archive.getinfo(_META).file_size > _META_LIMIT:
        raise _damaged(path, f"its {_META} is larger than {_META_LIMIT >> 20} MiB")
    meta = _json(_bytes(archive, _META, path), path, _META)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise _damaged(path, "it is no fuda model")
    version = meta.get("format_version")
    if not _is_count(version):
        raise _damaged(path, "it names no format version")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path}: format version {version}, written by fuda {meta.get('fuda')!r}; fuda {__version__} reads up to "
            f"{FORMAT_VERSION}: install a newer fuda"
        )
    members = meta.get("members")
    if not isinstance(members, dict) or set(members) != set(names) - {_META} or _VOCABULARIES not in members:
        raise _damaged(path, "its list of members does not fit its members")
    for name, listed in members.items():
        if not isinstance(listed, dict) or listed.get("bytes") != archive.getinfo(name).file_size:
            raise _damaged(path, f"the size of member {name!r} is not what its list says")
        if name != _VOCABULARIES and not _described_well(listed):
            raise _damaged(path, f"member {name!r} has dtype {listed.get('dtype')!r} and shape {listed.get('shape')!r}")
    labels, shape = meta.get("labels"), meta.get("shape")
    if (
        not isinstance(labels, list)
        or not labels
        or not all(isinstance(label, str | int) and not isinstance(label, bool) for label in labels)
        or len(set(labels)) != len(labels)
        or shape not in ("sequence", "tree", "dag")
        or not isinstance(meta.get("parameters"), dict)
    ):
        raise _damaged(path, "its labels, shape or parameters are missing or not of their kind")
    return meta


def _described_well(listed: dict[str, Any]) -> bool:
    """Whether dtype and shape of an array are known, small enough, and fit its size in bytes."""
    dtype, shape = listed.get("dtype"), listed.get("shape")
    if dtype not in _DTYPES or not isinstance(shape, list) or len(shape) > 4 or not all(map(_is_count, shape)):
        return False
    return 0 <= listed["bytes"] - math.prod(shape) * _DTYPES[dtype] <= 1 << 12


def _array(data: bytes, listed: dict[str, Any], path: str | Path, name: str) -> np.ndarray:
    stream = io.BytesIO(data)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except (ValueError, EOFError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise _damaged(path, f"member {name!r} is no array") from None
    if list(shape) != listed["shape"] or str(dtype) != listed["dtype"] or fortran:
        raise _damaged(path, f"member {name!r} is not the array that its list says")
    count = math.prod(shape)
    if len(data) - stream.tell() != count * dtype.itemsize:
        raise _damaged(path, f"member {name!r} is cut off")
    array = np.frombuffer(data, dtype=dtype, count=count, offset=stream.tell()).reshape(shape).copy()
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise _damaged(path, f"member {name!r} holds NaN")
    return array


def _member(archive: zipfile.ZipFile, name: str, listed: dict[str, Any], path: str | Path) -> bytes:
    data = _bytes(archive, name, path)
    if hashlib.sha256(data).hexdigest() != listed.get("sha256"):
        raise _damaged(path, f"member {name!r} does not have its checksum")
    return data


def _bytes(archive: zipfile.ZipFile, name: str, path: str | Path) -> bytes:
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, struct.error):
        raise _damaged(path, f"member {name!r} cannot be read") from None


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _json(data: bytes, path: str | Path, name: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return json.loads(data.decode("utf-8", "surrogatepass"), parse_constant=refuse)
    except (ValueError, RecursionError):
        raise _damaged(path, f"its {name} is not readable") from None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48


def _distinct_strings(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(n, str) for n in names) and len(set(names)) == len(names)


def _damaged(path: str | Path, why: str) -> ModelFileError:
    return ModelFileError(f"{path}: not a usable model file: {why}; save the model again, or fetch the file again")
