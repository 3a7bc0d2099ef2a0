"""Model files taken apart and put together by hand, and how a bad one must be refused."""

from __future__ import annotations

import hashlib
import io
import json
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import pytest

from fuda import ModelFileError, load

SEAL = len("sha256:") + 64


def craft(
    path: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED, change=None
) -> Path:
    """A zip of these members, sealed like a model file; `change` may alter the open archive."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as archive:
        warnings.simplefilter("ignore")  # two members of one name
        for name, data in members:
            info = zipfile.ZipInfo("x", (1980, 1, 1, 0, 0, 0))
            info.filename, info.compress_type = name, compression
            archive.writestr(info, data)
        archive.comment = bytes(SEAL)
        if change:
            change(archive)
    content = stream.getvalue()[:-SEAL]
    path.write_bytes(content + f"sha256:{hashlib.sha256(content).hexdigest()}".encode())
    return path


def parts(path: Path) -> tuple[dict, dict[str, bytes]]:
    """The metadata of a model file, and its other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("meta.json")), members


def altered(model_path: Path, path: Path, change) -> Path:
    """A model file after `change(meta, members)`, with sizes and seal as if unchanged."""
    meta, members = parts(model_path)
    change(meta, members)
    if isinstance(meta.get("members"), dict):
        for name, listed_as in meta["members"].items():
            if name in members and isinstance(listed_as, dict) and "forged" not in listed_as:
                listed_as["bytes"] = len(members[name])
    return craft(path, [("meta.json", json.dumps(meta).encode()), *members.items()])


def refused(path, *words: str, by=load) -> str:
    with pytest.raises(ModelFileError) as caught:
        by(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 350
    for word in words:
        assert word in message
    return message


def peak(function) -> int:
    """The peak, in bytes, of the memory that a call allocates."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
