"""Malformed data: exit code 2, one line with place and remedy, and no file changed.

A malformed file runs through train, tag, evaluate and convert; data that is well-formed, but
unusable, through one of them.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from cli.command_cases import TEXTS, assert_refused
from model_file_cases import altered

COMMANDS = ("train", "tag", "evaluate", "convert")


def row(line: str) -> str:
    return "\t".join([*line.split(" "), *"_" * 10][:10]) + "\n"


ROOT = row("1 a _ X _ _ 0 root 0:root")
GOOD = '{"observations": ["a", "b"]'

ANY = [
    ("empty", b"", None, "no (tokens|sentences|records)"),
    ("blank", b"\n \n\n", None, "no (tokens|sentences|records)"),
    ("binary", bytes(range(128, 256)) * 4, 1, "not UTF-8: byte 0x80; convert"),
    ("latin1", b"\n\n" + "España".encode("latin-1"), 3, "not UTF-8: byte 0xf1.*iconv"),
    ("utf16", "a O\nb O\n".encode("utf-16"), 1, "not UTF-8"),
    ("cut gzip", gzip.compress(b"\n" * 99)[:-9], None, "damaged gzip.*again"),
    ("damaged gzip", b"\x1f\x8b" + b"nonsense" * 9, None, "damaged gzip"),
    ("utf-16", "Ana O\n".encode("utf-16"), 1, "not UTF-8: byte 0xff.*iconv -f utf-16"),
    ("latin1 in gzip", gzip.compress("ñ\n".encode("latin-1")), 1, "not UTF-8: byte 0xf1"),
]
CONLL = [
    ("-DOCSTART- O\n\n", None, "no tokens"),
    ("# sent_id = 1\n", None, "no tokens"),
    ("a NN O\nb O\n", 2, r"2 columns where 3 are expected .*same columns"),
    ("a NN O\nb\n", 2, "1 column where 3"),
    ("a NN O\n\nb c d O\n", 3, "4 columns where 3"),
    ("a\tNN\tO\nb NN O\n", 2, "1 column where 3 .*separated by tabs"),
    ("a NN O\n# a comment inside it\nb NN O\n", 2, "5 columns .*comment comes before"),
    ("a\tNN\t\n", 1, "column 3 is empty.*fill it"),
    ("a\tNN\tO\n\tNN\tO\n", 2, "column 1 is empty"),
    ("a\tNN\tO\nb\t\tO\n", 2, "column 2 is empty"),
    ("a NN O\rb NN O\r", 1, "carriage return alone.*tr"),
]
CONLLU = [
    ("# sent_id = 1\n\n", None, "no sentences"),
    ("1\ta\n", 1, "2 columns where 10 are expected.*single tabs"),
    ("1 a _ X _ _ 0 root _ _\n", 1, "1 columns where 10"),
    (ROOT[:-1] + "\tmore\n", 1, "11 columns where 10"),
    (ROOT + "# late\n" + row("2 b _ X _ _ 1"), 2, "comment inside a sentence.*move it"),
    (row("1 a  X _ _ 0"), 1, "LEMMA is empty.*write _"),
    (row("2 a _ X _ _ 0"), 1, "'2' was found where 1 is expected"),
    (ROOT + "\n" + ROOT + row("3 b _ X _ _ 1"), 4, "'3' was found where 2 is expected"),
    (row("x a _ X _ _ 0"), 1, "'x' was found where 1"),
    (row("2-3 ab") + ROOT, 1, "range 2-3 comes before word 1"),
    (row("1-2 ab") + ROOT, 1, "range ends at 2, but the sentence has 1 words"),
    (ROOT + row("2.1 e"), 2, "empty node 2.1 was found where 1.1 is expected; renumber"),
    (row("0.1 e _ X _ _ _ _ 0:root"), 1, "without words; remove"),
    (row("1 a _ X _ _ _"), 1, "HEAD is '_', .*sequence"),
    (row("1 a _ X _ _ x"), 1, "HEAD is 'x'"),
    (row("1 a _ X _ _ -1"), 1, "HEAD is '-1'"),
    (ROOT + row("2 b _ X _ _ 7"), 2, "HEAD is 7, but the sentence has 2 words"),
    (row("1 a _ X _ _ 1"), 1, "own parent"),
    (row("1 a _ X _ _ 2") + row("2 b _ X _ _ 1"), 1, "node .: the edges close a cycle, . → . → .; remove"),
    (ROOT + "\n" + row("1 a _ X _ _ 3") + row("2 b _ X _ _ 1") + row("3 c _ X _ _ 2"), 3, "cycle"),
    (ROOT.replace("\n", "\r"), 1, "carriage return alone"),
]
FASTA = [
    ("ACGT\n>a\nA\n", 1, "text before the first header.*>name"),
    ("; old comment\n>a\nA\n", 1, "text before the first header"),
    (">a\n>b\nA\n", 1, "no residues after '>a'; remove"),
    (">a\nA\n>b\n\n", 3, "no residues after '>b'"),
    (">a\n#\n", 2, "follows no residue"),
    (">a\nA##C\n", 2, "follows no residue.*remove"),
    (">a\nA#\n#C\n", 3, "follows no residue"),
    (">a\nAC1T\n", 2, "column 3: '1' is not a residue"),
    (">a\nAC T\n", 2, "column 3: ' ' is not a residue"),
    (">a\nACé\n", 2, "column 3: 'é' is not a residue"),
    (">a\nAC\nHH\n>b\nGT\nHH\n", None, "two lines of 2 characters; .*labels='lines'"),
    (">a\nAC#\n\n>b\nA_C\n", 5, "'_' is not a residue"),
]
JSONL = [
    (GOOD + "}\nnot json\n", 2, "not JSON: .*column 1; write one object per line"),
    (GOOD + "\n", 1, "not JSON"),
    (GOOD + "} {}\n", 1, "not JSON: Extra data"),
    ("[" * 100_000 + "\n", 1, "nested too deeply|not JSON"),
    ('{"observations": [' + "1" * 5000 + "]}\n", 1, "not a usable number"),
    ('["a", "b"]\n', 1, "a record is an object"),
    ("null\n", 1, "a record is an object"),
    ("{}\n", 1, '"observations" is missing'),
    ('{"text": "a", "label": []}\n', 1, '"observations" is missing.*--format doccano'),
    ('{"observations": ["a"], "observations": ["b"]}\n', 1, "'observations' is given twice"),
    ('{"observations": "ab"}\n', 1, "observations must be an array"),
    ('{"observations": []}\n', 1, "empty sequence"),
    ('{"observations": [null]}\n', 1, "node 0: the observation None is not one of"),
    ('{"observations": ["a", true]}\n', 1, "node 1: the observation True"),
    ('{"observations": [1.5]}\n', 1, "node 0: the observation 1.5"),
    ('{"observations": [["a", 1]]}\n', 1, "neither of strings .* nor of numbers"),
    ('{"observations": [{"a": 1}]}\n', 1, "not one of: .*features"),
    ('{"observations": [{"columns": ["a", 1]}]}\n', 1, "not one of"),
    ('{"observations": [{"set": ["a", "a"]}]}\n', 1, "names a feature twice"),
    ('{"observations": [{"features": {"f": null}}]}\n', 1, "'f' has the value None; give"),
    ('{"observations": [{"features": {"f": NaN}}]}\n', 1, "NaN is not a number in JSON"),
    ('{"observations": [[-Infinity]]}\n', 1, "-Infinity is not a number"),
    ('{"observations": [[1e999]]}\n', 1, "numbers within 64-bit floats"),
    (r'{"observations": ["\ud800"]}' + "\n", 1, "half of a surrogate pair"),
    (GOOD + "}\n" + GOOD + ', "labels": ["X"]}\n', 2, "1 labels for 2 observations; give one per node"),
    (GOOD + ', "labels": ["X", "Y", "Z"]}\n', 1, "3 labels for 2"),
    (GOOD + ', "labels": ["X", 1.5]}\n', 1, "node 1: the label 1.5 is neither a string"),
    (GOOD + ', "labels": [NaN, "X"]}\n', 1, "NaN is not a number"),
    (GOOD + ', "labels": null}\n', 1, "labels must be an array.*leave the key out"),
    (GOOD + ', "heads": [0]}\n', 1, "2 .*heads; give one per node"),
    (GOOD + ', "heads": [-1, 2]}\n', 1, "node 1: its head is 2; give heads from 0 to 1"),
    (GOOD + ', "heads": [-1, "0"]}\n', 1, "heads.*'0'"),
    (GOOD + ', "heads": [-1, 0.0]}\n', 1, "heads"),
    (GOOD + ', "heads": [1, 0]}\n', 1, "node .: the edges close a cycle"),
    (GOOD + ', "edges": [[0, 1], [1, 0]]}\n', 1, "cycle"),
    (GOOD + ', "edges": [[0, 1], [0, 1]]}\n', 1, "given twice; keep it once"),
    (GOOD + ', "edges": [[0, 5]]}\n', 1, "there is no node 5; give nodes from 0 to 1"),
    (GOOD + ', "edges": [0, 1]}\n', 1, "pairs, but 0 was found"),
    (GOOD + ', "edges": [], "heads": [-1, 0]}\n', 1, "both heads and edges"),
    (GOOD + ', "comments": [1]}\n', 1, "comments must be an array of strings"),
]
DATA = [
    *(
        pytest.param(name, content, line, words, id=f"{name}-{what}")
        for name in TEXTS
        for what, content, line, words in ANY
    ),
    *(
        pytest.param(name, text.encode(), line, words, id=f"{name}-{number}")
        for name, cases in {"conll": CONLL, "conllu": CONLLU, "fasta": FASTA, "jsonl": JSONL}.items()
        for number, (text, line, words) in enumerate(cases)
    ),
]


def arguments_for(command: str, path: object, models: dict[str, Path], name: str, out: Path) -> list[object]:
    return {
        "train": ["train", path, "-o", out / "m.fuda", "--learner", "hmm"],
        "tag": ["tag", models[name], path, "-o", out / f"tagged.{name}"],
        "evaluate": ["evaluate", models[name], path],
        "convert": ["convert", path, out / "converted.jsonl"],
    }[command]


@pytest.mark.parametrize(("name", "content", "line", "words"), DATA)
def test_malformed_files(run, models, tmp_path, name, content, line, words):
    path = tmp_path / f"bad.{name}"
    path.write_bytes(content)
    place = f"^fuda: {re.escape(str(path))}:" + ("" if line is None else f"{line}:") + f" .*(?:{words})"
    for command in COMMANDS:
        assert_refused(run, tmp_path, arguments_for(command, path, models, name, tmp_path), place)


@pytest.mark.parametrize("name", TEXTS)
def test_malformed_standard_input(run, models, tmp_path, name):
    for command in COMMANDS:
        arguments = [*arguments_for(command, "-", models, name, tmp_path), "--format", name]
        assert_refused(run, tmp_path, arguments, "^fuda: <stdin>:1: not UTF-8", stdin=b"\xff\n")


# Data that can be read, but not used.
TREE, DAG = GOOD + ', "heads": [-1, 0], "labels": ["N", "V"]}\n', GOOD + ', "edges": [[0, 1]]}\n'
DAG_LABELLED = DAG.replace("}", ', "labels": ["N", "V"]}')
VECTORS = '{"observations": [[0.5, 1], [1, 2]], "labels": ["N", "V"]}\n'
UNUSABLE = [
    ("train", "jsonl", GOOD + "}\n", [], "F: has no labels to learn from.*--label"),
    ("evaluate", "jsonl", GOOD + "}\n", [], "F: has no labels to compare with.*--label"),
    ("train", "jsonl", TEXTS["jsonl"] + GOOD + "}\n", [], "F: structure 2 has no labels to learn from"),
    ("train", "jsonl", GOOD + ', "labels": [null, null]}\n', [], "F: no node has a label"),
    ("evaluate", "jsonl", GOOD + ', "labels": [null, null]}\n', [], "F: every label in it is unknown"),
    ("train", "conll", "a NN _\nb NN _\n", [], "F: no node has a label"),
    ("evaluate", "conll", "a NN _\nb NN _\n", [], "F: every label in it is unknown"),
    ("train", "conll", "a\nb\n", [], "F: one column only; .*--label none"),
    ("tag", "conll", "a\nb\n", [], "F:1: 1 column where 3 are expected with labels and 2 without.*--columns"),
    ("tag", "conll", "a b c d O\n", [], "F:1: 5 columns where 3 are expected"),
    ("tag", "conll", "a b c d O\n", ["--columns", "1,2"], "F:1: 5 columns where 3.*--columns and --label"),
    (
        "tag",
        "conll",
        "a b c d O\n",
        ["--columns", "1,2,3", "--label", "5"],
        "F: structure 0, node 0 is .*3 columns.*fitted on",
    ),
    ("evaluate", "conll", "a NN\nb NN\n", [], "F: has no labels to compare with"),
    ("train", "conll", "a NN O\n", ["--label", "none"], "F: has no labels to learn from"),
    ("train", "fasta", ">p\nACG\n", [], "F: has no labels to learn from"),
    ("evaluate", "fasta", ">p\nACG\n", [], "F: has no labels to compare with"),
    (
        "train",
        "jsonl",
        TEXTS["jsonl"] + TREE,
        [],
        "F: structure 2 is a tree but structure 0 is a sequence; give",
    ),
    ("train", "jsonl", DAG_LABELLED, [], "F: structure 0 is a dag, but HMM labels sequences and trees only"),
    ("train", "jsonl", DAG_LABELLED, ["--learner", "crf"], "F: structure 0 is a dag, but CRF labels"),
    ("tag", "jsonl", DAG, [], "F: structure 0 is a dag, but HMM labels"),
    ("tag", "jsonl", TREE, [], "F: structure 0 is a tree, but this HMM was fitted on sequences; give"),
    ("evaluate", "jsonl", TREE, [], "F: structure 0 is a tree, but this HMM was fitted on sequences"),
    ("tag", "jsonl", VECTORS, [], "F: structure 0, node 0 is .*fitted on"),
    ("train", "jsonl", VECTORS + TEXTS["jsonl"], [], "F: structure 1, node 0"),
    ("train", "jsonl", VECTORS + VECTORS.replace("[1, 2]", "[1]"), [], "F: structure 1, node 1"),
    ("train", "jsonl", VECTORS.replace("0.5", "-0.5"), [], "F: structure 0, node 0: .*negative"),
    (
        "train",
        "jsonl",
        '{"observations": ["a", "b"], "labels": ["N", 1]}\n',
        [],
        "F: structure 0, node 1: its label",
    ),
    (
        "train",
        "jsonl",
        '{"observations": ["a"], "labels": [""]}\n',
        [],
        "F: structure 0, node 0: its label is ''",
    ),
    (
        "evaluate",
        "jsonl",
        '{"observations": ["a"], "labels": [3]}\n',
        [],
        "F: .*give labels of one type",
    ),
    (
        "evaluate",
        "jsonl",
        '{"observations": ["a"], "labels": ["x"]}\n',
        ["--scheme", "IOB2"],
        "F: structure 0, node 0: .*x",
    ),
    ("train", "conllu", TEXTS["conllu"], ["--graph", "dag"], "F: structure 0 is a dag, but HMM labels"),
    ("train", "conllu", TEXTS["conllu"], ["--graph", "dag", "--learner", "crf"], "F: .*dag, but CRF"),
    (
        "tag",
        "conllu",
        TEXTS["conllu"],
        ["--graph", "sequence"],
        "F: structure 0 is a sequence, but this HMM was fitted on trees",
    ),
    ("train", "conllu", row("1 a _ X _ _ 0 root _"), ["--graph", "dag"], "F:1: DEPS is _: .*tree"),
    (
        "train",
        "conllu",
        row("1 a _ X _ _ 0 root 0"),
        ["--graph", "dag"],
        "F:1: DEPS contains '0'; write each",
    ),
    ("train", "conllu", row("1 a _ X _ _ 0 root 2:x"), ["--graph", "dag"], "F:1: DEPS names the node '2'"),
    ("train", "conllu", row("1 a _ X _ _ 0 root 1:x"), ["--graph", "dag"], "F:1: .*self loop.*cyclic='skip'"),
    (
        "train",
        "conllu",
        row("1 a _ X _ _ 0 root 1:x"),
        ["--graph", "dag", "--option", "cyclic=skip"],
        "F: no sentences; every one has a cycle",
    ),
    (
        "train",
        "conllu",
        row("1 a _ X _ _ 0 root _ NE=A|NE=B"),
        ["--label", "MISC:NE"],
        "F:1: .*NE twice.*keep it once",
    ),
    ("train", "conllu", row("1 a _ X _ _ 0 root _ NE="), ["--label", "MISC:NE"], "F:1: .*NE without a value"),
    ("train", "conllu", ROOT, ["--columns", "FORM,UPOS"], "columns: UPOS is both observed and the label"),
    (
        "convert",
        "conllu",
        TEXTS["conllu"],
        ["--to", "conll"],
        "F: structure 0: a tree in columns would lose its edges; pass flatten",
    ),
    (
        "convert",
        "conllu",
        TEXTS["conllu"],
        ["--to", "fasta"],
        "F: structure 0: FASTA contains sequences, not a tree; write jsonl",
    ),
    (
        "convert",
        "conll",
        TEXTS["conll"],
        ["--to", "fasta"],
        "F: structure 0, node 0: the observation .* is not a residue",
    ),
    ("convert", "jsonl", VECTORS, ["--to", "conll"], "F: structure 0, node 0: the observation .*write jsonl"),
    (
        "convert",
        "jsonl",
        '{"observations": ["a b"], "labels": ["X"]}\n',
        ["--to", "conll", "--write", "separator=' '"],
        "F: structure 0, node 0: the cell 'a b'",
    ),
    (
        "convert",
        "jsonl",
        '{"observations": ["a"], "labels": [3]}\n',
        ["--to", "conll"],
        "F: structure 0, node 0: the label 3",
    ),
    (
        "convert",
        "conll",
        TEXTS["conll"],
        ["--to", "conllu"],
        "F: structure 0, node 0: an observation of 2 columns, but 1",
    ),
]


@pytest.mark.parametrize(("command", "name", "text", "options", "words"), UNUSABLE)
def test_unusable_data(run, models, tmp_path, command, name, text, options, words):
    path = tmp_path / f"data.{name}"
    path.write_text(text)
    arguments = [*arguments_for(command, path, models, name, tmp_path), *options]
    assert_refused(
        run, tmp_path, arguments, words.replace("F", re.escape(str(path)), 1) if words[0] == "F" else words
    )


def test_structures_of_several_files_are_named_by_their_file(run, models, tmp_path):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(TEXTS["jsonl"])
    second.write_text(TEXTS["jsonl"] + TREE)
    words = (
        f"structure 2 of {second} is a tree but structure 0 of {first} is a sequence; give structures of one"
    )
    assert_refused(run, tmp_path, ["train", first, second, "-o", tmp_path / "m.fuda"], re.escape(words))
    second.write_text(GOOD + ', "labels": ["N", 1]}\n')
    words = f"fuda: structure 0 of {second}, node 1: its label is 1"
    assert_refused(run, tmp_path, ["train", first, second, "-o", tmp_path / "m.fuda"], re.escape(words))


@pytest.mark.parametrize("reading", [{"format": "conll", "path": 1}, {"format": "conll", "junk": [1]}])
def test_options_in_a_model_file_that_the_format_does_not_have(run, places, tmp_path, reading):
    path = altered(places["model"], tmp_path / "bad.fuda", lambda meta, members: meta.update(reading=reading))
    name = list(reading)[-1]
    assert_refused(run, tmp_path, ["tag", path, places["conll"]], f"reading conll takes no option '{name}'")
