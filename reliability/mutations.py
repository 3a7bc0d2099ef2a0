"""Sealed files taken apart, changed in one of many ways, and sealed again as if unchanged."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import warnings
import zipfile
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple

import numpy as np

from reliability.values import (
    FLOATS,
    INTEGERS,
    JSON,
    POLYNOMIAL,
    RAW_META,
    RAW_VOCABULARIES,
    SPECIFIC,
    TEXTS,
)

_SEAL_SIZE = len("sha256:") + 64


class Content(NamedTuple):
    """What is in a sealed file: its metadata, further JSON members, and arrays."""

    meta: Any
    texts: dict[str, Any]
    arrays: dict[str, np.ndarray]


def take_apart(data: bytes) -> Content:
    """The content of a sealed file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    texts = {
        n: json.loads(b.decode("utf-8", "surrogatepass")) for n, b in members.items() if n.endswith(".json")
    }
    arrays = {n[7:-4]: np.load(io.BytesIO(b)) for n, b in members.items() if n.startswith("arrays/")}
    return Content(texts.pop("meta.json"), texts, arrays)


def sealed(content: bytes) -> bytes:
    """Bytes with their checksum."""
    return content + f"sha256:{hashlib.sha256(content).hexdigest()}".encode()


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def put_together(content: Content, rng: Random | None = None) -> bytes:
    """The sealed file of a content; with `rng`, its list of members or its bytes may be false."""
    members = {name: _json(value) for name, value in content.texts.items()}
    listed: dict[str, Any] = {name: {"bytes": len(data)} for name, data in members.items()}
    for name, array in sorted(content.arrays.items()):
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
        member = f"arrays/{name}.npy"
        members[member] = stream.getvalue()
        listed[member] = {
            "bytes": len(members[member]), "dtype": str(array.dtype), "shape": list(array.shape)
        }  # fmt: skip
    meta = content.meta | {"members": listed} if isinstance(content.meta, dict) else content.meta
    if rng is not None and listed and rng.random() < 0.6:
        value = rng.choice(
            [0, -1, 2**40, "float64", "int64", "O", ">f8", [], [2**40, 2**40], [0, 2**47], [-1], None]
        )
        listed[rng.choice(sorted(listed))][rng.choice(["bytes", "dtype", "shape"])] = value
        rng = None
    raw = {"meta.json": _json(meta), **members}
    if rng is not None and rng.random() < 0.5:
        raw["meta.json"] = b"{" + rng.choice(RAW_META) + raw["meta.json"][1:]
    elif rng is not None and "vocabularies.json" in raw:
        raw["vocabularies.json"] = rng.choice(RAW_VOCABULARIES)
        listed["vocabularies.json"]["bytes"] = len(raw["vocabularies.json"])
        raw["meta.json"] = _json(meta)
    return _zipped(raw)


def _zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as archive:
        warnings.simplefilter("ignore")  # names that zipfile finds odd
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = bytes(_SEAL_SIZE)
    return sealed(stream.getvalue()[:-_SEAL_SIZE])


def _paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places within JSON, eight of each list, at most thirty deep."""
    if len(before) == 30:
        return [before]
    items = (
        value.items() if isinstance(value, dict) else enumerate(value[:8]) if isinstance(value, list) else ()
    )
    return [before] * bool(before) + [path for key, inner in items for path in _paths(inner, (*before, key))]


def change_json(rng: Random, meta: Any) -> str:
    """Change one place of the metadata."""
    path = rng.choice(_paths({k: v for k, v in meta.items() if k != "members"}))
    holder = meta
    for key in path[:-1]:
        holder = holder[key]
    action = rng.random()
    if action < 0.1:
        del holder[path[-1]]
        return f"delete {path}"
    if action < 0.15 and isinstance(holder, dict):
        name = rng.choice(["x", "parts", "texts", "kernel", "__class__", "reading", "defaults", "\ud800"])
        holder[name] = deepcopy(rng.choice(JSON))
        return f"add {name!r} beside {path}"
    if action < 0.2:
        nested = rng.choice([8, 60, 300, 430])
        holder[path[-1]] = {"kernel": _nested(rng.choice(["Normalized", "Sum", "list"]), nested)}
        return f"nest {path}"
    pool = SPECIFIC[path[-1]] if action < 0.6 and path[-1] in SPECIFIC else JSON
    holder[path[-1]] = deepcopy(rng.choice(pool))
    return f"set {path} to {str(holder[path[-1]])[:50]!r}"


def _nested(kind: str, depth: int) -> Any:
    value: Any = POLYNOMIAL
    for _ in range(depth):
        if kind == "list":
            value = [value]
        elif kind == "Sum":
            value = {"type": "Sum", "left": value, "right": {"type": "Linear"}}
        else:
            value = {"type": kind, "kernel": value}
    return value


def change_array(rng: Random, arrays: dict[str, np.ndarray]) -> str:
    """Change the values, the shape or the type of an array, or which array has which name."""
    name = rng.choice(sorted(arrays))
    array, kind = arrays[name].copy(), rng.randrange(10)
    if kind <= 4 and array.size:
        flat = array.reshape(-1)
        for _ in range(rng.choice([1, 1, 2, 5, flat.size])):
            flat[rng.randrange(flat.size)] = _value(rng, flat)
        arrays[name] = array
        return f"values of {name}"
    if kind == 5:
        shapes = [
            array[:-1] if array.ndim else array, np.concatenate([array, array[-1:]]) if array.ndim else array,
            array.T, array.reshape(-1), array[None], array[:0] if array.ndim else array,
            array.reshape(-1)[::-1],
            np.resize(array, [n + 1 for n in array.shape]), array.reshape(-1)[:1].reshape(-1)[:1],
            np.zeros((0, *array.shape)), np.zeros((*array.shape, 0)),
            np.repeat(array, 3, axis=0) if array.ndim else array,
        ]  # fmt: skip
        choice = rng.randrange(len(shapes))
        arrays[name] = np.array(shapes[choice])
        return f"shape {choice} of {name}"
    if kind == 6:
        dtype = rng.choice(
            ["int32", "float32", "uint8", "int64", "float64", "float16", "bool", "complex128", ">f8"]
        )
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = array.astype(dtype)
        return f"dtype {dtype} of {name}"
    if kind == 7:
        other = rng.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
        return f"swap {name} and {other}"
    if kind == 8:
        if rng.random() < 0.5:
            return f"delete {name} {arrays.pop(name).shape}"
        added = rng.choice(
            ["extra", "prior__x", "base__weights", "support_offsets", "change_steps", "matrix0"]
        )
        arrays[added] = array
        return f"add {added}, which is {name}"
    if array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            powers = np.array([rng.randrange(-300, 300) for _ in range(array.size)]).reshape(array.shape)
            arrays[name] = array * 10.0**powers
    else:
        arrays[name] = np.array(rng.sample(array.reshape(-1).tolist(), array.size), array.dtype).reshape(
            array.shape
        )
    return f"scramble {name}"


def _value(rng: Random, flat: np.ndarray) -> Any:
    """A value that an array of this type can hold, and should not."""
    if flat.dtype.kind == "f":
        return rng.choice(FLOATS)
    if flat.dtype.kind not in "iu":
        return 1
    limits = np.iinfo(flat.dtype)
    value = rng.choice(
        [rng.choice(INTEGERS), int(flat.max()) + 1, int(flat.min()) - 1, rng.choice(flat.tolist())]
    )
    return max(min(value, limits.max), limits.min)


def change_names(rng: Random, vocabularies: Any) -> str:
    """Change the feature names and the stored observations."""
    i = rng.randrange(len(vocabularies))
    names, kind = vocabularies[i], rng.randrange(8)
    if kind == 0 and names:
        names[rng.randrange(len(names))] = rng.choice(TEXTS)
    elif kind == 1 and names:
        names[:] = [
            rng.choice(TEXTS) + " " * k if rng.random() < 0.5 else name for k, name in enumerate(names)
        ]
    elif kind == 2 and names:
        del names[rng.randrange(len(names))]
    elif kind == 3:
        names.append(rng.choice([*TEXTS, "new", *names]))
    elif kind == 4:
        j = rng.randrange(len(vocabularies))
        vocabularies[i], vocabularies[j] = vocabularies[j], vocabularies[i]
    elif kind == 5:
        vocabularies.insert(i, rng.choice([["a", "b"], [], [1], None, "ab"]))
    elif kind == 6:
        del vocabularies[i]
    else:
        rng.shuffle(names)
    return f"names {i}, way {kind}"


def _exchange_part(rng: Random, content: Content, others: list[Content]) -> Content:
    """A content whose part (the prior, the base labeler) is another model."""
    other, where = deepcopy(rng.choice(others)), rng.choice(["prior", "base", "other"])
    of_files = {"members", "format", "format_version", "fuda", "reading"}
    names = other.texts["vocabularies.json"]
    part = {k: v for k, v in other.meta.items() if k not in of_files} | {"vocabularies": len(names)}
    before = content.meta.get("parts") or {}
    vocabularies = content.texts["vocabularies.json"]
    if where in before:
        vocabularies = vocabularies[: len(vocabularies) - before[where]["vocabularies"]]
    arrays = {k: v for k, v in content.arrays.items() if not k.startswith(f"{where}__")}
    arrays |= {f"{where}__{k}": v for k, v in other.arrays.items()}
    meta = content.meta | {"parts": {**before, where: part}}
    return Content(meta, {"vocabularies.json": [*vocabularies, *names]}, arrays)


def mutated(rng: Random, content: Content, others: list[Content]) -> tuple[bytes, str]:
    """A sealed file with one to three changes, described; the original only by chance."""
    content, changes, false_sizes = deepcopy(content), [], None
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        kind = rng.random()
        try:
            if kind < 0.42 and content.arrays:
                changes.append(change_array(rng, content.arrays))
            elif kind < 0.74:
                changes.append(change_json(rng, content.meta))
            elif kind < 0.88 and content.texts.get("vocabularies.json"):
                changes.append(change_names(rng, content.texts["vocabularies.json"]))
            elif kind < 0.92 and "vocabularies.json" in content.texts:
                content = _exchange_part(rng, content, others)
                changes.append("another part")
            elif kind < 0.96:
                false_sizes = rng
                changes.append("forged")
            else:
                changes.append("bytes")
        except (TypeError, KeyError, AttributeError, IndexError, ValueError):
            changes.append("(two changes that do not go together)")
    data = put_together(content, false_sizes)
    return _changed_bytes(rng, data) if "bytes" in changes else data, "; ".join(changes)


def _changed_bytes(rng: Random, data: bytes) -> bytes:
    """A file with some bytes changed, mostly those of the zip's own records, and sealed again."""
    body = bytearray(data[:-_SEAL_SIZE])
    records = [i for i in range(len(body) - 4) if body[i : i + 2] == b"PK"]
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = (
            rng.choice(records) + rng.randrange(46)
            if records and rng.random() < 0.8
            else rng.randrange(len(body))
        )
        at = min(at, len(body) - 1)
        action = rng.randrange(4)
        if action == 0:
            body[at] ^= 1 << rng.randrange(8)
        elif action == 1:
            body[at : at + 4] = rng.choice(
                [b"\xff" * 4, bytes(4), struct.pack("<I", rng.randrange(2 * len(body)))]
            )
        elif action == 2:
            del body[at : at + rng.choice([1, 4, 50])]
        else:
            body[at:at] = rng.randbytes(rng.choice([1, 4, 50]))
        if len(body) < 60:
            break
    return sealed(bytes(body))
