"""fuda compare, and fuda train --learner auto."""

from __future__ import annotations

import json
import signal

import pytest

import fuda
from cli.command_cases import assert_refused
from fuda import HMM
from fuda.models.choice.candidates import TABLE

SENTENCES = "Ana NP B-PER\nvive VB O\nen IN O\nLima NP B-LOC\n\nBo NP B-PER\nduerme VB O\n\n" * 4


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.conll"
    path.write_text(SENTENCES)
    return path


def test_compare_prints_a_table_and_writes_figures(run, corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = tmp_path / "figures.json"
    learners = "hmm,hmm:smoothing=0.5,hm-perceptron"
    arguments = ["--folds", "2", "--sizes", "2,4", "--json", out, "--set", "epochs=2", "--seed", "3"]
    result = run("compare", corpus, "--learners", learners, *arguments)
    assert result.code == 0, result.err
    text = result.out.decode()
    assert "hmm:smoothing=0.5" in text
    assert "entity F1" in text
    assert "over 2 folds" in text
    rows = json.loads(out.read_text())["rows"]
    assert [(row["model"], row["structures"]) for row in rows] == [
        (name, size) for size in (2, 4) for name in learners.split(",")
    ]


def test_an_interrupted_comparison_prints_what_it_has(run, corpus, monkeypatch, default_signals):
    calls, fit = [], HMM._fit

    def interrupted(self, data):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        fit(self, data)

    monkeypatch.setattr(HMM, "_fit", interrupted)
    result = run("compare", corpus, "--learners", "hmm,hmm:window=1", "--folds", "2")
    assert result.code == 130
    assert "the comparison was interrupted" in result.err
    assert b"hmm" in result.out
    assert b"window=1" not in result.out


def test_auto_is_trained_and_says_what_it_tried(run, corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(TABLE, "text", [("plain", "HMM", {}), ("crf", "CRF", {"features": "word"})])
    out = tmp_path / "auto.fuda"
    result = run("train", corpus, "-o", out, "--learner", "auto", "--budget", "1m", "--columns", "1")
    assert result.code == 0, result.err
    for word in ("candidate", "plain", "crf", "chosen: ", "auto.fuda: Auto, 8 sequences"):
        assert word in result.err
    model = fuda.load(out)
    assert model.budget == 60.0
    assert {row["name"] for row in model.report_.rows} == {"plain", "crf"}
    assert run("evaluate", out, corpus).code == 0
    assert run("tag", out, corpus).out.count(b"B-PER") == 8


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("compare {conll} --learners crf,nope", "there is no learner 'nope'; choose crf"),
        ("compare {conll} --learners crf,crf", "crf is there twice; give it once"),
        ("compare {conll} --learners crf:l2=-1", "l2=-1"),
        ("compare {conll} --learners crf:nope=1", "crf has no such parameter"),
        ("compare {conll} --learners crf:l2", "write --learners crf: NAME=VALUE"),
        ("compare {conll} --set nope=1", "--set nope=…: none of the learners has such a parameter"),
        ("compare {conll} --folds 1", "1 is not in the range"),
        ("compare {conll} --folds 9", "folds=9: there are 2 structures"),
        ("compare {conll} --sizes 1,x", "--sizes 1,x: give numbers of structures"),
        ("compare {conll} --sizes 0", "--sizes 0: give numbers"),
        ("compare {conll} --json {folder}", "is a folder"),
        ("compare {conll} --json {conll}", "is used twice"),
        ("compare {conll} --label none", "has no labels to learn from"),
        ("compare {missing}", "missing"),
        ("train {conll} -o {out} --budget 5s", "--budget 5s: crf takes what it takes; choose --learner auto"),
        ("train {conll} -o {out} --learner auto --budget soon", "--budget soon: give a time such as 60s"),
        ("train {conll} -o {out} --learner auto --set budget=-1", "budget=-1: give seconds"),
        ("train {conll} -o {out} --learner auto --checkpoint {missing}", "has no state of training"),
    ],
)
def test_mistakes_are_refused(line, words, run, places, tmp_path):
    arguments = [part.format(**places) for part in line.split()]
    assert_refused(run, tmp_path, arguments, words)
