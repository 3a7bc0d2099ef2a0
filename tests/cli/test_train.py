"""fuda train: parameters that are kernels or learners."""

from __future__ import annotations

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
    ("learner", "given", "expected"),
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
def test_kernels_and_learners_are_set(run, data, tmp_path, learner, given, expected):
    model = tmp_path / "m.fuda"
    chosen = [f"--set={name}={value}" for name, value in given.items()]
    chosen += ["--set=folds=2"] if learner == "reranker" else []
    assert run("train", data, "-o", model, "--learner", learner, *chosen).code == 0
    loaded = getattr(fuda.load(model), next(iter(given)))
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
def test_what_is_no_value_is_said(name, text, message):
    with pytest.raises(DataError, match=message):
        parameter(name, text)


def test_a_bad_kernel_is_one_line_before_anything_is_read(run, tmp_path):
    chosen = ["--learner", "hm-svm", "--set", "kernel=poly"]
    outcome = run("train", tmp_path / "missing", "-o", tmp_path / "m", *chosen)
    assert outcome.code == 2
    assert outcome.err == (
        "fuda: --set kernel=poly: there is no kernel 'poly'; there are linear, polynomial, rbf, delta, "
        "precomputed, constant\n"
    )
