"""fuda train --unlabelled: files of several formats, raw text, and what is refused."""

from __future__ import annotations

import pytest

import fuda
from cli.command_cases import TREE_TEXT
from fuda.features.sets import text

COLUMNS = "Ana NP PER\nlives V O\nin P O\nLima NP LOC\n\nBo NP PER\nwas V O\nin P O\nOslo NP LOC\n"
RAW = "Eva lives in Bonn. Tim was in Rome.\nEva was in Rome.\n"


@pytest.fixture
def files(tmp_path):
    contents = {
        "a.conll": COLUMNS,
        "more.txt": RAW,
        "words.conll": "Zoe\nwas\nin\nQuito\n",
        "wide.conll": "Kim NP I PER\nlives V I O\n",
        "trees.conllu": TREE_TEXT,
        "more.jsonl": '{"tokens": ["Max", "lives", "in", "Kiel"], "labels": ["PER", "O", "O", "LOC"]}\n',
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def test_words_of_every_file_are_learned_from(run, files):
    more = ("more.txt", "words.conll", "wide.conll", "trees.conllu", "more.jsonl")
    options = [part for name in more for part in ("--unlabelled", files / name)]
    ended = run("train", files / "a.conll", "--columns", "1", "-o", files / "m.fuda", *options)
    assert ended.code == 0, ended.err
    table = fuda.load(files / "m.fuda").features
    for word in ("Ana", "Eva", "Rome", "Quito", "Kim", "vive", "Kiel"):
        assert word in table
    assert "PER" not in table
    assert "Bonn." not in table  # raw text goes through the tokenizer
    assert set(text("Eva")) < set(table("Eva"))
    shown = run("inspect", files / "m.fuda").out.decode()
    assert "features=text + <vectors0>" in shown
    rows = [line.split() for line in shown.splitlines() if "float32" in line or "int32" in line]
    assert [row[:2] for row in rows] == [["vectors0", "float32"], ["vectors0_classes", "int32"]]
    assert run("tag", files / "m.fuda", "--text", files / "more.txt").code == 0


def test_a_file_with_the_extension_of_the_labelled_one_has_its_format(run, files):
    (files / "a.txt").write_text(COLUMNS)
    (files / "b.txt").write_text("Zoe NP PER\n")
    ended = run("train", files / "a.txt", "-o", files / "m.fuda", "--unlabelled", files / "b.txt")
    assert ended.code == 0, ended.err
    table = fuda.load(files / "m.fuda").features
    assert "Zoe" in table
    assert "NP" not in table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--unlabelled", "absent.txt"], "absent.txt: cannot be read"),
        (["--unlabelled", "more.txt", "--learner", "hmm"], "HMM counts features"),
        (["--unlabelled", "m.fuda"], "used twice"),
    ],
)
def test_what_cannot_be_used_is_refused(run, files, monkeypatch, options, message):
    monkeypatch.chdir(files)
    ended = run("train", "a.conll", "-o", "m.fuda", *options)
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.count("\n") == 1
