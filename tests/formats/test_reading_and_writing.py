"""`read` and `write`: formats by extension, gzip, byte order marks, standard streams, errors."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import re
import stat
import subprocess
import sys
import tracemalloc

import pytest
from format_cases import PROPERTY, assert_same, datasets, plain_tokens
from hypothesis import given

from fuda.data.structures import Sequence, Tree
from fuda.errors import DataError
from fuda.formats import FORMATS, Dataset, Record, conll, conllu, format_of, graphml, pssm, read, write

TEXTS = {
    "conll": "Ana B-PER\nvive O\n\n",
    "conllu": "1\tAna\t_\tPROPN\t_\t_\t0\troot\t_\t_\n\n",
    "fasta": ">p\nMRS#A\n",
    "jsonl": '{"observations": ["Ana"], "labels": ["X"]}\n',
    "conllx": "1\tAna\t_\tN\tNP\t_\t0\troot\t_\t_\n\n",
    "conllup": "# global.columns = ID FORM UPOS HEAD\n1\tAna\tPROPN\t0\n\n",
    "csv": "sentence,word,tag\n1,Ana,B-PER\n1,vive,\n",
    "graphml": graphml.write([Record(Tree(["Ana", "vive"], [1, -1]), ["N", None])]),
    "text": "Ana vive.\n",
    "inline": "[Ana](PER) vive.\n",
    "doccano": '{"text": "Ana vive.", "label": [[0, 3, "PER"]], "id": 3}\n',
    "prodigy": '{"text": "Ana", "tokens": [{"start": 0, "end": 3}], "spans": [], "answer": "accept"}\n',
    "pssm": pssm.write([Record(Sequence([[*range(-9, 11)]]), ["H"])]),
    "crfsuite": "B-PER\tw=Ana\nO\tw=vive:1.0\tlength:4.0\n\n",
}
FORMATS_OF_ONE_FILE = [format for format in FORMATS.values() if format.name != "brat"]
EXTENSIONS = [(format.name, extension) for format in FORMATS_OF_ONE_FILE for extension in format.extensions]


class Stream:
    """What sys.stdin and sys.stdout offer to bytes."""

    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize(("name", "extension"), EXTENSIONS)
@pytest.mark.parametrize("zipped", ["", ".gz"])
def test_the_extension_names_the_format(tmp_path, name, extension, zipped):
    path = tmp_path / f"f{extension}{zipped}"
    data = TEXTS[name].encode()
    path.write_bytes(gzip.compress(data) if zipped else data)
    shared = None if format_of(path).name == name else name
    assert format_of(path, default=name).name == name
    dataset = read(path, shared)
    copy = tmp_path / f"copy{extension.upper()}{zipped}"
    write(dataset, copy, shared)
    content = copy.read_bytes()
    assert (gzip.decompress(content) if zipped else content) == data
    assert_same(read(str(copy), shared), dataset)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    "change", [lambda d: b"\xef\xbb\xbf" + d, lambda d: d.rstrip(b"\n"), lambda d: d + b"\n\n"]
)
def test_byte_order_mark_and_odd_ends(tmp_path, name, change):
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    plain.write_text(TEXTS[name])
    odd.write_bytes(change(TEXTS[name].encode()))
    assert_same(read(odd, name), read(plain, name))


@pytest.mark.parametrize("name", TEXTS)
def test_standard_streams(monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", Stream(gzip.compress(TEXTS[name].encode())))
    dataset = read("-", None if name == "conll" else name)
    out = Stream()
    monkeypatch.setattr(sys, "stdout", out)
    write(dataset, "-", None if name == "conll" else name)
    assert out.buffer.getvalue() == TEXTS[name].encode()
    monkeypatch.setattr(sys, "stdin", Stream(b"a b c\n\nd\n"))
    with pytest.raises(DataError, match=r"^<stdin>:3: 1 column"):
        read("-")


class Raw(io.RawIOBase):
    """A raw stream that writes a few bytes at a time until it is full, like a disk."""

    def __init__(self, at_once: int, capacity: int) -> None:
        self.at_once, self.capacity, self.data = at_once, capacity, b""

    def writable(self) -> bool:
        return True

    def write(self, data) -> int | None:
        if len(self.data) == self.capacity:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = bytes(data[: min(self.at_once, self.capacity - len(self.data))])
        self.data += written
        return len(written) if written else None


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_short_writes_to_standard_output(monkeypatch, at_once):
    text = TEXTS["conll"].encode()
    monkeypatch.setattr(sys, "stdin", Stream(text))
    dataset, out = read("-"), Stream()
    monkeypatch.setattr(sys, "stdout", out)
    out.buffer = raw = Raw(at_once, 1000)
    write(dataset, "-")
    assert raw.data == text
    out.buffer = raw = Raw(at_once, 5)
    with pytest.raises(OSError, match="No space left on device"):
        write(dataset, "-")
    assert raw.data == text[:5]
    out.buffer = Raw(0, 1000)
    with pytest.raises(BlockingIOError):
        write(dataset, "-")


def test_file_and_folder_are_synced(monkeypatch, tmp_path):
    """The file before the rename, the folder after it."""
    data, done = Dataset([Record(Sequence(["a"]))]), []
    fsync, replace = os.fsync, os.replace

    def sync(handle):
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def rename(*paths):
        done.append("rename")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    write(data, tmp_path / "a.conll")
    assert done == ["file", "rename", "folder"]


@pytest.mark.parametrize(("code", "fails"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_folders_that_cannot_be_synced(monkeypatch, tmp_path, code, fails):
    fsync = os.fsync

    def sync(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(DataError, match="cannot be written") if fails else contextlib.nullcontext():
        write(Dataset([Record(Sequence(["a"]))]), tmp_path / "a.conll")
    assert (tmp_path / "a.conll").read_text() == "a\n\n"


@PROPERTY
@given(datasets(plain_tokens, labelled=True, shape="tree"))
def test_files_of_trees_come_back(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("trees")
    for name, options in (("t.conllu", {"label": "MISC:NE"}), ("t.jsonl.gz", {})):
        write(data, folder / name, **options)
        assert_same(read(folder / name, **options), data)


def test_a_first_token_that_looks_like_a_byte_order_mark(tmp_path):
    data = Dataset([Record(Sequence(["\ufeff", "\ufeffa"]), ["X", "Y"])])
    for name in ("a.conll", "a.jsonl"):
        write(data, tmp_path / name)
        assert_same(read(tmp_path / name), data)


def test_options_reach_the_format(tmp_path):
    path = tmp_path / "f.conll"
    path.write_text("Ana NP B-PER\n\n")
    assert read(path, columns=1, label=2).y == [["NP"]]
    tree = Dataset([Record(Tree(["a"], [-1]))])
    write(tree, path, flatten=True)
    assert path.read_text() == "a\n\n"


def test_options_are_listed():
    assert FORMATS["conll"].read_options == ("separator", "columns", "label", "width", "ragged")
    assert FORMATS["conll"].write_options == ("separator", "flatten")
    assert FORMATS["conllu"].read_options == ("label", "absent", "graph", "columns", "cyclic")
    assert FORMATS["fasta"].write_options == ("labels", "mark")
    assert FORMATS["jsonl"].read_options == ("label",)
    assert FORMATS["jsonl"].write_options == ()


def test_unknown_options_and_formats(tmp_path):
    path = tmp_path / "f.conll"
    path.write_text("a O\n")
    with pytest.raises(
        DataError, match=r"reading conll takes no option 'graph'; it takes: separator, columns, label"
    ):
        read(path, graph="tree")
    with pytest.raises(DataError, match=r"writing jsonl takes no option 'label'; it takes: none"):
        write(read(path), path, "jsonl", label=1)
    with pytest.raises(
        DataError, match=r"format 'xml' is not known; choose one of conll, conllu, fasta, jsonl"
    ):
        read(path, "xml")
    for name in ("f.xml", "f", "f.gz", "folder.conll/f"):
        with pytest.raises(
            DataError, match=r"does not belong to a format; pass format= .*--format.*conllu \(.conllu\)"
        ):
            format_of(name)


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"none.conll: cannot be read: No such file"):
        read(tmp_path / "none.conll")
    with pytest.raises(DataError, match=r"cannot be read: Is a directory"):
        read(tmp_path, "conll")
    latin = tmp_path / "latin.conll"
    latin.write_bytes("a O\nñ O\n".encode("latin1"))
    with pytest.raises(DataError, match=r"latin.conll:2: not UTF-8: byte 0xf1.*iconv"):
        read(latin)
    damaged = tmp_path / "f.conll.gz"
    damaged.write_bytes(gzip.compress(b"a O\n" * 100)[:-9])
    with pytest.raises(DataError, match=r"f.conll.gz: damaged gzip"):
        read(damaged)


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "f.conll"
    path.write_text("a O\n")
    bad = {
        "structure 1, node 0": Dataset([Record(Sequence(["x"])), Record(Sequence([""]))]),
        r"line 2 contains the lone surrogate U\+D800": Dataset([Record(Sequence(["x", "\ud800"]))]),
        "no structures to write": Dataset([]),
    }
    for words, dataset in bad.items():
        with pytest.raises(DataError, match=words):
            write(dataset, path)
    assert [p.name for p in tmp_path.iterdir()] == ["f.conll"]
    assert path.read_text() == "a O\n"
    with pytest.raises(DataError, match=r"cannot be written"):
        write(read(path), tmp_path / "no folder" / "f.conll")


def test_conversions(tmp_path):
    source = tmp_path / "a.conllu"
    source.write_text(
        "# sent_id = 1\n1\tAna\t_\tPROPN\t_\t_\t2\tnsubj\t_\t_\n2\tvive\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    )
    tree = read(source)
    write(tree, tmp_path / "a.jsonl")
    again = read(tmp_path / "a.jsonl")
    assert_same(again, tree)
    assert again.records[0].comments == ["# sent_id = 1"]
    write(again, tmp_path / "a.conll", flatten=True)
    assert (tmp_path / "a.conll").read_text() == "# sent_id = 1\nAna\tPROPN\nvive\tVERB\n\n"
    flat = read(tmp_path / "a.conll")
    assert conllu.read(conllu.write(flat.records), "x", graph="sequence").y == tree.y


def test_reading_needs_no_heavy_library():
    heavy = {"numba", "scipy", "sklearn", "networkx"}
    code = f"import sys, fuda.formats; print(sorted({heavy} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


# Files past all bounds.


@pytest.mark.parametrize("name", ["long.conll", "long.conll.gz", "-"])
def test_a_text_of_too_many_bytes_is_refused(name, tmp_path, monkeypatch):
    text = b"a b\n" * 1000
    path = name if name == "-" else tmp_path / name
    if name == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text * 2)))
    else:
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    monkeypatch.setenv("FUDA_MAX_BYTES", "3999")
    where = "<stdin>" if name == "-" else re.escape(str(path))
    with pytest.raises(DataError, match=f"{where}: holds more than 3,999 bytes.*FUDA_MAX_BYTES"):
        read(path)
    if name != "-":
        monkeypatch.setenv("FUDA_MAX_BYTES", "4000")
        assert len(read(path).X[0]) == 1000


def test_a_gzip_bomb_is_not_inflated(tmp_path, monkeypatch):
    path = tmp_path / "bomb.conll.gz"
    path.write_bytes(gzip.compress(b"a b\n" * (8 << 20)))
    monkeypatch.setenv("FUDA_MAX_BYTES", str(1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="holds more than"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("bound", ["many", "-1", "1e9"])
def test_a_bound_that_is_not_a_number(bound, tmp_path, monkeypatch):
    (tmp_path / "a.conll").write_text("a b\n")
    monkeypatch.setenv("FUDA_MAX_BYTES", bound)
    with pytest.raises(DataError, match=r"FUDA_MAX_BYTES=.*whole number"):
        read(tmp_path / "a.conll")


def test_memory_that_runs_out(tmp_path, monkeypatch):
    (tmp_path / "a.conll").write_text("a b\n")

    def no_memory(*_, **__):
        raise MemoryError

    monkeypatch.setattr(conll, "split_lines", no_memory)
    with pytest.raises(DataError, match=r"a\.conll: there is not enough memory"):
        read(tmp_path / "a.conll")
