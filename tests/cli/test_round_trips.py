"""train → evaluate → tag → inspect → convert, on small files of every format."""

from __future__ import annotations

import gzip
import json
import re
from types import SimpleNamespace

import pytest

from cli.command_cases import TEXTS, conllu_row
from fuda import datasets, formats
from fuda.cli.train import LEARNERS
from fuda.registry import MODELS


def numbers(value):
    """All leaves of a JSON value."""
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in numbers(part)]
    return [leaf for part in value for leaf in numbers(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("learner", ["crf", "hmm"])
@pytest.mark.parametrize("name", TEXTS)
def test_train_evaluate_tag_inspect(run, places, tmp_path, name, learner):
    data, model = places[name], places["out"]
    trained = run("train", data, "-o", model, "--learner", learner)
    assert (trained.code, trained.out) == (0, b"")
    assert trained.err.splitlines()[-1].startswith(f"{model}: {learner.upper()}, 2 ")
    assert trained.err.count("\n") == 2
    assert trained.err.startswith("labels: ")

    shown = run("evaluate", model, data)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(b"processed ")
    report = json.loads(run("evaluate", model, data, "--json").out)
    assert report["tokens"] == sum(map(len, formats.read(data).X))
    assert {type(leaf) for leaf in numbers(report)} <= {int, float, str, type(None)}
    if learner == "crf":
        assert report["accuracy"] == 1.0

    tagged = run("tag", model, data)
    assert (tagged.code, tagged.err) == (0, "")
    if learner == "crf":
        assert tagged.out == data.read_bytes()

    described = run("inspect", model)
    assert described.code == 0
    version = MODELS[learner.upper()].version
    assert f"model       {learner.upper()} (version {version})".encode() in described.out
    assert json.loads(run("inspect", model, "--json").out)["class"] == learner.upper()


@pytest.mark.parametrize("name", TEXTS)
def test_gzip_and_standard_streams(run, places, models, tmp_path, name):
    data = places[name].read_bytes()
    packed = tmp_path / f"packed.{name}.gz"
    packed.write_bytes(gzip.compress(data))
    plain = run("tag", models[name], places[name])
    target = tmp_path / f"tagged.{name}.gz"
    assert run("tag", models[name], packed, "-o", target).code == 0
    assert gzip.decompress(target.read_bytes()) == plain.out
    assert run("tag", models[name], stdin=data).out == plain.out  # the training format
    assert run("tag", models[name], "-", stdin=gzip.compress(data)).out == plain.out
    assert (
        run("evaluate", models[name], "-", stdin=data).out == run("evaluate", models[name], places[name]).out
    )
    arguments = ("--learner", "hmm", "--format", name, "-o", places["out"])
    assert run("train", "-", *arguments, stdin=data).code == 0
    assert places["out"].read_bytes() == models[name].read_bytes()


def test_training_on_several_files_is_training_on_all(run, places, tmp_path):
    first, second = TEXTS["conll"].split("\n\n", 1)
    (tmp_path / "a.conll").write_text(first + "\n\n")
    (tmp_path / "b.conll").write_text(second)
    whole, parts = tmp_path / "whole.fuda", tmp_path / "parts.fuda"
    run("train", places["conll"], "-o", whole, "--learner", "hmm")
    result = run("train", tmp_path / "a.conll", tmp_path / "b.conll", "-o", parts, "--learner", "hmm")
    assert result.err.splitlines()[1:] == [f"{parts}: HMM, 2 sequences, 6 nodes, 3 labels"]
    assert parts.read_bytes() == whole.read_bytes()


def test_tagging_keeps_all_else_byte_for_byte(run, models, tmp_path):
    text = "# sent_id = 7\nAna   NP  ?\nduerme   VB ?\n\n\n-DOCSTART- x y\n\nLima NP\t?\n\n"
    path = tmp_path / "odd.conll"
    path.write_text(text)
    tagged = run("tag", models["conll"], path).out.decode()
    labels = [line.split()[-1] for line in tagged.splitlines() if line[:2] in ("An", "du", "Li")]
    assert labels == ["B-PER", "O", "B-LOC"]
    expected = text
    for label in labels:
        expected = expected.replace("?", label, 1)
    assert tagged == expected

    rows = conllu_row(1, "Ana", "X", 2, "Gloss=x|NE=B-PER"), conllu_row(2, "duerme", "X", 0)
    extra = "1-2\tAnaduerme" + "\t_" * 8 + "\n"
    path = tmp_path / "odd.conllu"
    path.write_text("# text = y\n" + extra + "".join(rows) + "\n")
    tagged = run("tag", models["conllu"], path).out.decode()
    assert tagged == path.read_text().replace("X", "PROPN", 1).replace("\tX\t", "\tVERB\t", 1)


@pytest.mark.parametrize("options", [[], ["--label", "none"]])
def test_files_without_labels_get_a_label_column(run, models, tmp_path, options):
    path = tmp_path / "words.conll"
    path.write_text("Ana NP\nduerme VB\n\n")
    assert run("tag", models["conll"], path, *options).out == b"Ana NP B-PER\nduerme VB O\n\n"


def test_windows_line_ends(run, models, tmp_path):
    path = tmp_path / "crlf.conll"
    path.write_bytes(b"Ana NP O\r\nduerme VB O\r\n\r\n")
    assert run("tag", models["conll"], path).out == b"Ana NP B-PER\nduerme VB O\n\n"


def test_options_of_training_are_remembered(run, places, tmp_path):
    model = places["out"]
    assert run("train", places["conllu"], "-o", model, "--label", "MISC:NE", "--graph", "sequence").code == 0
    assert b"reads       label=MISC:NE, graph=sequence, format=conllu" in run("inspect", model).out
    assert run("tag", model, places["conllu"]).out == places["conllu"].read_bytes()
    report = json.loads(run("evaluate", model, places["conllu"], "--json").out)
    assert report["entity_scores"]["micro"]["f1"] == 1.0


def test_tagging_into_another_format(run, models, places, tmp_path):
    target = tmp_path / "tagged.jsonl"
    assert run("tag", models["conll"], places["conll"], "-o", target).code == 0
    assert formats.read(target).y == formats.read(places["conll"]).y


def test_a_template(run, places):
    result = run("train", places["conll"], "-o", places["out"], "--template", places["template"])
    assert result.code == 0
    assert f"template {places['template']}" in " ".join(run("inspect", places["out"]).out.decode().split())
    assert run("tag", places["out"], places["conll"]).out == places["conll"].read_bytes()


def test_parameters(run, places):
    settings = ("--set", "loss=markov", "--set", "order=2", "--set", "features=word", "--set", "window=2")
    assert run("train", places["conll"], "-o", places["out"], *settings).code == 0
    parameters = json.loads(run("inspect", places["out"], "--json").out)["parameters"]
    assert (parameters["loss"], parameters["order"], parameters["features"]) == ("markov", 2, "word")
    assert parameters["verbose"] is False


def test_warnings_are_lines(run, places):
    result = run("train", places["conll"], "-o", places["out"], "--set", "max_iter=1")
    assert result.code == 0
    warning, _, summary = result.err.splitlines()
    assert (
        warning == "fuda: the CRF has not converged: max_iter=1 was reached; the weights are the best so far"
    )
    assert summary.startswith(str(places["out"]))


def test_top_features(run, models):
    shown = run("inspect", models["crf"], "--top", 2).out.decode()
    for label in ("B-LOC", "B-PER", "O"):
        _, first, second, *_ = shown[shown.index(f"\n{label}\n") + 1 :].splitlines()
        weights = [float(line.split()[0]) for line in (first, second)]
        assert abs(weights[0]) >= abs(weights[1])
    top = json.loads(run("inspect", models["crf"], "--top", 3, "--json").out)["top_features"]
    assert [len(features) for features in top.values()] == [3, 3, 3]


@pytest.mark.parametrize(
    ("source", "target", "options"),
    [
        ("conll", "jsonl", []),
        ("conllu", "jsonl", []),
        ("fasta", "jsonl", []),
        ("fasta", "conll", []),
        ("jsonl", "conll", []),
        ("conllu", "conll", ["--write", "flatten=true"]),
        ("conll", "conllu", ["--columns", "1"]),
    ],
)
def test_convert(run, places, tmp_path, source, target, options):
    out = tmp_path / f"converted.{target}"
    result = run("convert", places[source], out, *options)
    assert (result.code, result.out) == (0, b"")
    assert result.err == f"{out}: {result.err.split(': ', 1)[1]}"
    read = {"graph": "sequence"} if target == "conllu" else {}
    assert formats.read(out, **read).y == formats.read(places[source]).y
    printed = run("convert", places[source], "-", "--to", target, *options)
    assert (printed.out, printed.err) == (out.read_bytes(), "")


@pytest.mark.parametrize("name", ["conll", "jsonl"])  # JSON lines keep all of these
def test_convert_to_jsonl_and_back(run, places, tmp_path, name):
    between = run("convert", places[name], "-", "--to", "jsonl").out
    back = run("convert", "-", "-", "--format", "jsonl", "--to", name, stdin=between).out
    expected = places[name].read_bytes().replace(b"  ", b" ")
    assert back == (
        expected.replace(b" ", b"\t").replace(b"#\tid\t=\t2", b"# id = 2") if name == "conll" else expected
    )


def test_notes_of_the_reader_go_to_standard_error(run, places, tmp_path):
    path = tmp_path / "dag.conllu"
    path.write_text(TEXTS["conllu"] + conllu_row(1, "a", "X", 1) + "\n")
    result = run("convert", path, "-", "--to", "jsonl", "--graph", "dag", "--option", "cyclic=skip")
    assert result.err == f"fuda: {path}: 1 of 3 sentences left out: their graph has a cycle\n"
    assert result.out.count(b"\n") == 2


def test_demo(run, monkeypatch):
    whole = datasets.load_product_usage()
    part = SimpleNamespace(train=whole.train[:60], test=whole.test[:30])
    monkeypatch.setattr(datasets, "load_product_usage", lambda: part)
    result = run("demo")
    assert (result.code, result.err) == (0, "")
    text = result.out.decode()
    rows = {tuple(cell.strip() for cell in line.split("│")[1:3]) for line in text.splitlines() if "│" in line}
    shapes = {("CRF", "sequence"), ("CRF", "tree"), ("marginalized kernel", "tree")}
    assert shapes <= rows
    assert "├── " in text, "the tree is drawn"
    assert re.search(r"node \d+, .*: [DPR]-p, not ", text), "the label is explained"


def test_files_without_labels_are_tagged_as_they_are(run, tmp_path):
    files = {
        "a.conll": "Ana N B\nx V O\n",
        "words.conll": "Ana\nx\n",
        "p.fasta": ">p\nMKV\nHHE\n",
        "n.fasta": ">n\nMKV\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    conll, fasta = str(tmp_path / "c.fuda"), str(tmp_path / "f.fuda")
    assert run("train", str(tmp_path / "a.conll"), "-o", conll, "--columns", "1").code == 0
    assert run("tag", conll, str(tmp_path / "words.conll")).out == b"Ana B\nx O\n\n"
    assert run("train", str(tmp_path / "p.fasta"), "-o", fasta, "--option", "labels=lines").code == 0
    assert run("tag", fasta, str(tmp_path / "n.fasta")).out == b";labels=lines\n>n\nMKV\nHHE\n"


@pytest.mark.parametrize("options", [["--label", "none"], ["--option", "labels=none"]])
def test_fasta_without_labels(run, tmp_path, options):
    path = tmp_path / "p.fasta"
    path.write_text(">p\nMKV\nHHE\n")
    result = run("convert", str(path), "-", "--to", "jsonl", *options)
    assert json.loads(result.out)["observations"] == list("MKVHHE")


def test_options_that_are_lists_or_tabs(run, tmp_path):
    path, copy = tmp_path / "a.conll", tmp_path / "b.conll"
    path.write_text("Ana N B\n")
    assert run("convert", str(path), "-", "--to", "conllu", "--write", "columns=FORM,XPOS").out == (
        b"1\tAna\t_\tB\tN\t_\t_\t_\t_\t_\n\n"
    )
    assert run("convert", str(path), str(copy), "--write", "separator=tab").code == 0
    assert copy.read_text() == "Ana\tN\tB\n\n"


@pytest.mark.parametrize("learner", [name for name in LEARNERS if name not in ("crf", "hmm")])
def test_every_learner_can_be_trained_and_asked(run, places, tmp_path, learner):
    model = tmp_path / "model.fuda"
    settings = ["--set", "folds=2"] if learner == "reranker" else []
    trained = run("train", places["conll"], "-o", model, "--learner", learner, *settings)
    assert trained.code == 0, trained.err
    assert trained.err.splitlines()[-1] == f"{model}: {LEARNERS[learner]}, 2 sequences, 6 nodes, 3 labels"
    tagged = run("tag", model, places["conll"])
    assert tagged.code == 0, tagged.err
    assert len(tagged.out.splitlines()) == len(TEXTS["conll"].splitlines())
    assert run("evaluate", model, places["conll"], "--errors").code == 0
    explained = run("explain", model, places["conll"], "--node", 3)
    assert explained.code == 0, explained.err
    label = tagged.out.decode().splitlines()[3].split()[-1]
    assert f"Lima is {label}" in explained.out.decode()
    described = run("inspect", model)
    assert described.code == 0, described.err
    assert (b"contains" in described.out) == (learner in ("auto", "reranker"))
