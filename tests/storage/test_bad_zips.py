"""Model files that are traps as zips: one clear error each, and little memory."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from fuda.storage import model_file
from model_file_cases import craft, parts, peak, refused


def test_a_bomb_is_refused_before_it_bursts(tmp_path):
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        members = [("meta.json", b"{}"), ("vocabularies.json", bytes(32 << 20))]
        path = craft(tmp_path / "bomb.fuda", members, compression)
        assert path.stat().st_size < 64_000
        assert peak(lambda path=path: refused(path, "compressed, which no model is")) < 1 << 20
        assert peak(lambda path=path: refused(path, by=model_file.read_meta)) < 1 << 20


@pytest.mark.parametrize("size", [10 << 30, 1 << 60])
def test_members_that_claim_to_be_huge(size, model_path, tmp_path):
    def claim(archive):
        archive.filelist[-1].file_size = archive.filelist[-1].compress_size = size

    meta, members = parts(model_path)
    path = craft(
        tmp_path / "huge.fuda", [("meta.json", json.dumps(meta).encode()), *members.items()], change=claim
    )
    assert path.stat().st_size < 10_000
    assert peak(lambda: refused(path, "larger than the file")) < 1 << 20


def test_members_that_overlap(model_path, tmp_path):
    """Many entries that all point to one large member would unpack into many times the file."""

    def overlap(archive):
        large = archive.getinfo("arrays/a0.npy")
        for i in range(1, 50):
            info = zipfile.ZipInfo(f"arrays/a{i}.npy", (1980, 1, 1, 0, 0, 0))
            info.header_offset, info.CRC = large.header_offset, large.CRC
            info.file_size = info.compress_size = large.file_size
            archive.filelist.append(info)

    path = craft(
        tmp_path / "overlap.fuda", [("meta.json", b"{}"), ("arrays/a0.npy", bytes(1 << 20))], change=overlap
    )
    assert peak(lambda: refused(path, "larger than the file")) < 1 << 20


def test_two_members_of_one_name(model_path, tmp_path):
    meta, members = parts(model_path)
    head = ("meta.json", json.dumps(meta).encode())
    path = craft(tmp_path / "twice.fuda", [head, *members.items(), head])
    refused(path, "two members have one name")


def test_members_that_are_encrypted(model_path, tmp_path):
    def encrypt(archive):
        archive.filelist[-1].flag_bits |= 1

    meta, members = parts(model_path)
    path = craft(
        tmp_path / "lock.fuda", [("meta.json", json.dumps(meta).encode()), *members.items()], change=encrypt
    )
    refused(path, "encrypted")


def test_very_many_members(tmp_path):
    path = craft(tmp_path / "many.fuda", [(f"arrays/a{i}.npy", b"") for i in range(5000)])
    assert peak(lambda: refused(path, "no meta.json")) < 20 * path.stat().st_size


def test_a_seal_that_is_forged_or_missing(model_path, tmp_path):
    path, data = tmp_path / "seal.fuda", model_path.read_bytes()
    path.write_bytes(data[:-64] + b"0" * 64)
    refused(path, "its checksum is wrong")
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.comment = b""
    path.write_bytes(stream.getvalue())
    refused(path, "its checksum is wrong")
