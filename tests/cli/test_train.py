"""fuda train: parameters that are kernels or learners, validation data, labels."""

from __future__ import annotations

import re

import pytest

import fuda
from cli.command_cases import TEXTS
from fuda import CRF, DataError
from fuda.cli.values import parameter
from fuda.kernels import Delta, Linear, Polynomial


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(TEXTS["conll"])
    return path


@pytest.mark.parametrize(
    ("learner", "parameters", "expected"),
    [
        ("hm-svm", {"kernel": "polynomial(2).normalized()"}, Polynomial(2).normalized()),
        ("hm-perceptron", {"kernel": "linear + 0.5 * Delta()"}, Linear() + 0.5 * Delta()),
        ("marginalized", {"prior": "crf"}, CRF()),
        (
            "marginalized",
            {"prior": "crf(l2=0.5, features=word)"},
            CRF(l2=0.5, features="word"),
        ),
        ("reranker", {"base": "MEMM(l2=2)"}, fuda.MEMM(l2=2)),
    ],
)
def test_kernels_and_learners_are_set(run, data, tmp_path, learner, parameters, expected):
    model = tmp_path / "m.fuda"
    chosen = [f"--set={name}={value}" for name, value in parameters.items()]
    chosen += ["--set=folds=2"] if learner == "reranker" else []
    assert run("train", data, "-o", model, "--learner", learner, *chosen).code == 0
    loaded = getattr(fuda.load(model), next(iter(parameters)))
    assert repr(loaded) == repr(expected)


def test_values_are_literals_where_they_are_no_kernels_or_learners():
    assert parameter("prior", "uniform") == "uniform"
    assert parameter("prior", "none") is parameter("kernel", "None") is None
    assert parameter("label_kernel", "[[1, 0], [0, 1]]") == [[1, 0], [0, 1]]
    assert parameter("features", "word") == "word"
    assert repr(parameter("base", "hm-perceptron(kernel=polynomial(2), epochs=3)")) == repr(
        fuda.HMPerceptron(kernel=Polynomial(2), epochs=3)
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("prior", "crff", "prior=crff: there is no such learner; there are crf, hmm"),
        ("prior", "crf(0.5)", "is not a learner; write a learner such as crf"),
        ("prior", "crf(c2=0.5)", "crf has the parameters callback"),
        ("prior", "crf(l2=-1)", "l2=-1"),
        ("prior", "crf(l2=open('x'))", "is not a number or a text"),
        ("base", "crf + crf", "is not a learner"),
        ("kernel", "crf", "there is no kernel 'crf'"),
    ],
)
def test_what_is_not_a_value_is_refused(name, text, message):
    with pytest.raises(DataError, match=message):
        parameter(name, text)


def test_a_bad_kernel_is_one_line_before_anything_is_read(run, tmp_path):
    chosen = ["--learner", "hm-svm", "--set", "kernel=poly"]
    outcome = run("train", tmp_path / "missing", "-o", tmp_path / "m", *chosen)
    assert outcome.code == 2
    assert outcome.err == (
        "fuda: --set kernel=poly: there is no kernel 'poly'; there are linear, polynomial, rbf, delta, "
        "precomputed, substitution, constant\n"
    )


def test_validation_data_and_their_curve(run, data, tmp_path):
    model, state = tmp_path / "m.fuda", tmp_path / "state"
    arguments = ["train", data, "-o", model, "--dev", data]
    outcome = run(*arguments)
    assert outcome.code == 0
    labels, curve, last = outcome.err.splitlines()
    assert labels == "labels: O 3, B-PER 2, B-LOC 1"
    assert re.fullmatch(r"entity F1 by iteration: 1: 1\.0000, .*, \d+: 1\.0000 \(best\)", curve)
    assert last == f"{model}: CRF, 2 sequences, 6 nodes, 3 labels"
    before = model.read_bytes()
    assert run(*arguments, "--checkpoint", state).code == 0
    assert model.read_bytes() == before
    assert not state.exists()


def test_validation_data_that_cannot_be_used(run, data, tmp_path):
    (tmp_path / "bad.conll").write_text("Ana\n\n")
    for dev, learner, message in (
        (tmp_path / "bad.conll", "crf", "bad.conll"),
        (tmp_path / "none.conll", "crf", "none.conll"),
        (data, "hmm", "HMM learns in one pass"),
    ):
        outcome = run("train", data, "-o", tmp_path / "m", "--dev", dev, "--learner", learner)
        assert outcome.code == 2
        assert message in outcome.err.splitlines()[-1]
        assert "Traceback" not in outcome.err


def test_validation_data_with_other_labels_are_mentioned(run, data, tmp_path):
    """Every iteration would be as good as any other."""
    other = tmp_path / "other.conll"
    other.write_text("Ana NP N\nvive VB V\n\n")
    outcome = run("train", data, "-o", tmp_path / "m.fuda", "--dev", other)
    assert outcome.code == 0
    assert outcome.err.startswith(f"fuda: {other}: its labels (N, V) and those of the model (B-LOC, B-PER)")


def test_labels_that_are_too_many_are_noticed(run, tmp_path):
    path = tmp_path / "words.conll"
    path.write_text("".join(f"a{i} w{i}\n" for i in range(60)))
    outcome = run("train", path, "-o", tmp_path / "m", "--learner", "hmm")
    assert outcome.code == 0
    warning, labels = outcome.err.splitlines()[:2]
    assert "60 labels for 60 nodes are many" in warning
    assert "--label" in warning
    assert labels.startswith("labels: w0 1, w1 1")
    assert labels.endswith(", and 40 more")


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (["Ana 0 3 PER", "met 4 7 O", "", "Bo 9 11 PER", "sat 12 15 O"], "columns 2, 3"),
        (["1 Ana PER", "2 met O", "", "1 Bo PER"], "column 1"),
        (["Ana 3 PER", "met 3 O"], None),  # equal
        (["Ana x PER", "met 3 O"], None),
        (["Ana 1 PER", "", "Bo 2 O"], None),  # nothing to see in single words
        (["Ana PER", "met O"], None),
    ],
)
def test_columns_of_positions_are_noticed(run, tmp_path, lines, columns):
    path = tmp_path / "offsets.conll"
    path.write_text("\n".join(lines) + "\n")
    outcome = run("train", path, "-o", tmp_path / "m", "--learner", "hmm")
    assert outcome.code == 0
    assert ("grow along every structure" in outcome.err) == (columns is not None)
    if columns is not None:
        assert f"fuda: {columns} of the observations" in outcome.err
