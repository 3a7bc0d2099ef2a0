"""fuda explain, fuda render and fuda evaluate --errors and --report, as a user runs them."""

from __future__ import annotations

import json

import pytest

import fuda
from cli.command_cases import assert_refused
from render.test_render import checked


def test_a_node_is_explained(run, models, places):
    result = run("explain", models["crf"], places["conll"], "--structure", 0, "--node", 3, "--top", 2)
    assert result.code == 0
    lines = result.out.decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Ana/PER vive en [Lima]/LOC"
    wanted = fuda.load(models["crf"]).explain(
        [("Ana", "NP"), ("vive", "VB"), ("en", "IN"), ("Lima", "NP")], 3
    )
    assert lines[2] == f"Lima is B-LOC, not {wanted.rival.label}, by {wanted.difference:.4g}"
    assert any(line.rstrip().endswith("other features") for line in lines)


def test_without_a_node_all_are_listed(run, models, places):
    result = run("explain", models["crf"], places["conll"])
    assert result.code == 0
    rows = [line.split() for line in result.out.decode().splitlines()]
    assert ["node", "observation", "label", "rival", "ahead", "by", "probability"] in rows
    assert [row[:3] for row in rows if row and row[0] == "3"] == [["3", "Lima", "B-LOC"]]
    tree = run("explain", models["conllu"], places["conllu"], "--structure", 1)
    assert "duerme" in tree.out.decode()


@pytest.mark.parametrize("arguments", [[], ["--node", 1]])
@pytest.mark.parametrize("name", ["conll", "conllu", "fasta", "jsonl"])
def test_pages_of_explanations(run, models, places, tmp_path, name, arguments):
    page = tmp_path / "why.html"
    result = run("explain", models[name], places[name], *arguments, "--html", page)
    assert (result.code, result.out) == (0, b"")
    text = checked(page.read_text()).text
    assert f"good.{name}, structure 0" in text
    assert ("not" if arguments else "ahead by") in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--structure 2", "--structure 2: there are 2; give a number from 0 to 1"),
        ("--structure -1", "--structure -1: there are 2"),
        ("--node 4", "--node 4: there are 4; give a number from 0 to 3"),
        ("--node 1 --top 0", "0 is not in the range"),
        ("--node x", "'x' is not a valid integer"),
        ("--html {conll}", "is used twice"),
        ("--html {folder}", "is a folder; name a file"),
    ],
)
def test_bad_questions(run, models, places, tmp_path, line, words):
    arguments = line.format(**places).split()
    assert_refused(run, tmp_path, ["explain", models["crf"], places["conll"], *arguments], words)


def test_files_are_rendered(run, models, places, tmp_path):
    shown = run("render", places["conll"])
    assert "Ana/PER vive en Lima/LOC" in shown.out.decode()
    page = tmp_path / "page.html"
    for name in ("conll", "conllu", "fasta", "jsonl"):
        assert run("render", places[name], "-o", page).code == 0
        assert checked(page.read_text()).text
    assert run("render", places["conll"], "--model", models["crf"], "-o", page, "--limit", 1).code == 0
    text = checked(page.read_text()).text
    assert "Lima" in text
    assert "duerme" not in text
    wrong = tmp_path / "wrong.conll"
    wrong.write_text(places["conll"].read_text().replace("B-LOC", "B-ORG"))
    assert "Lima/LOC" in (text := run("render", wrong, "--model", models["crf"]).out.decode())
    assert "≠ ORG" in text
    assert_refused(run, tmp_path, ["render", places["missing"]], "does not belong to a format")


def test_errors_are_shown_in_context(run, models, places, tmp_path):
    right = run("evaluate", models["crf"], places["conll"], "--errors").out.decode()
    assert "no mistakes" in right
    wrong = tmp_path / "wrong.conll"
    wrong.write_text("Ana NP B-LOC\nvive VB O\nen IN O\nQuito NP B-PER\n\n")
    result = run("evaluate", models["crf"], wrong, "--errors")
    assert result.code == 0
    text = result.out.decode()
    assert "B-LOC predicted as B-PER" in text
    assert "0, 0: [Ana] vive en Quito" in text
    assert "new words: " in text
    assert "known words: 1 of 3 labels wrong, 33.33 %" in text
    result = json.loads(run("evaluate", models["crf"], wrong, "--errors", "--json").out)
    confusion = {"right": "B-LOC", "predicted": "B-PER", "count": 1, "places": [{"structure": 0, "node": 0}]}
    assert confusion in result["errors"]["confusions"]
    assert result["errors"]["seen"] == {"nodes": 3, "wrong": 1}
    page = tmp_path / "report.html"
    assert run("evaluate", models["crf"], wrong, "--report", page).code == 0
    text = checked(page.read_text()).text
    for part in ("Confusion", "Mistakes", "B-LOC predicted as B-PER", "structure 0, node 0"):
        assert part in text
    assert_refused(run, tmp_path, ["evaluate", models["crf"], wrong, "--report", wrong], "is used twice")


def test_several_files_are_evaluated_together(run, models, places, tmp_path):
    wrong, page = tmp_path / "wrong.conll", tmp_path / "report.html"
    wrong.write_text("Ana NP B-LOC\nvive VB O\n\n")
    both = ["evaluate", models["crf"], places["conll"], wrong]
    size = sum(map(len, fuda.read(places["conll"]).X)) + 2
    text = run(*both, "--errors", "--report", page).out.decode()
    assert f"processed {size} tokens" in text
    assert "wrong.conll 0, 0: [Ana] vive" in text
    assert "structure wrong.conll 0, node 0" in checked(page.read_text()).text
    unlabelled = tmp_path / "words.conllu"
    unlabelled.write_text("1\tAna\t_\t_\t_\t_\t0\t_\t_\t_\n\n")
    assert_refused(run, tmp_path, [*both, unlabelled], "words.conllu: the model was not trained on")


def test_labels_that_have_nothing_in_common_are_mentioned(run, models, places, tmp_path):
    other = tmp_path / "other.conll"
    other.write_text("Ana NP N\nvive VB V\n\n")
    result = run("evaluate", models["crf"], other)
    assert result.code == 0
    assert "its labels (N, V) and those of the model (B-LOC, B-PER) have nothing in common" in result.err
    assert "--label" in result.err
    assert "in common" not in run("evaluate", models["crf"], places["conll"]).err


def test_inspection_keeps_kinds_apart(run, models, tmp_path):
    text = run("inspect", models["crf"], "--top", 2).out.decode()
    features, most, least = (
        text.split("\nfeatures\n")[1]
        .replace("least likely", "|")
        .replace("transitions, most likely", "|")
        .split("|")
    )
    assert "→" not in features
    assert "after" not in features
    assert most.count("→") == least.count("→") == 2
    weights = fuda.load(models["crf"]).transition_features_
    result = json.loads(run("inspect", models["crf"], "--top", 2, "--json").out)["transitions"]
    assert result["most_likely"][0][2] == max(weights.values())
    assert result["least_likely"][0][2] == min(weights.values())
    hmm = run("inspect", models["conll"], "--top", 1).out.decode()
    assert "[0] w=Ana" in hmm
    assert "transitions, least likely" in hmm


def test_inspection_of_pairs_stretches_and_kernels(run, tmp_path):
    X, y = [["Ana", "vive", "en", "Lima"], ["en", "Lima"]], [["P", "O", "O", "L"], ["O", "L"]]
    path = tmp_path / "model.fuda"

    def text(model):
        model.fit(X, y).save(path)
        return run("inspect", path, "--top", 3).out.decode()

    pairs = text(fuda.CRF(features="word", pair_features=True))
    assert "features of label pairs" in pairs
    assert "[0] w=Lima after O" in pairs
    assert "O O → L" in text(fuda.HMPerceptron(order=2, features="word"))
    svm = text(fuda.HMSVM(features="word"))
    assert "transitions, most likely" in svm
    assert "features\n" not in svm.split("size")[1]
    fuda.MarginalizedPerceptron(epochs=1).fit(X, y).save(path)
    assert_refused(
        run, tmp_path, ["inspect", path, "--top", 3], "MarginalizedPerceptron has none; leave it out"
    )


def test_inspect_shows_what_was_chosen_by_the_data(run, tmp_path):
    path = tmp_path / "m.fuda"
    model = fuda.MarginalizedPerceptron(epochs=1).fit([["a", "b"], ["b", "a"]], [["X", "Y"], ["Y", "X"]])
    model.save(path)
    assert f"by the data mixing={model.mixing_:.4g}" in run("inspect", path).out.decode()
    assert json.loads(run("inspect", path, "--json").out)["chosen"] == {"mixing": model.mixing_}
    fuda.MarginalizedPerceptron(epochs=1, mixing=0.5).fit([["a", "b"]], [["X", "Y"]]).save(path)
    assert "by the data" not in run("inspect", path).out.decode()


def test_inspection_reaches_the_models_within_a_model(run, tmp_path):
    X, y, path = [["a", "b"], ["b", "a"]] * 2, [["X", "Y"], ["Y", "X"]] * 2, tmp_path / "m.fuda"
    machine = fuda.MarginalizedPerceptron(epochs=1)
    auto = fuda.Auto(candidates={"machine": machine}, combine=False).fit(X, y)
    auto.save(path)
    shown = " ".join(run("inspect", path).out.decode().split())
    assert f"mixing={auto.best_.mixing_:.4g}" in shown
    assert "mixing=None" not in shown
    fuda.Auto(candidates={"crf": fuda.CRF(features="word")}, combine=False).fit(X, y).save(path)
    text = run("inspect", path, "--top", 1).out.decode()
    assert "member0: CRF\n\nfeatures\n\nX\n" in text
    assert "transitions, most likely" in text
    fuda.MarginalizedPerceptron(prior=fuda.HMM(), epochs=1).fit(X, y).save(path)
    result = json.loads(run("inspect", path, "--top", 1, "--json").out)
    assert set(result["within"]) == {"prior"}
