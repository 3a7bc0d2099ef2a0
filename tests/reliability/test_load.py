"""Large structures, in small: answers at a stated cost, or refusal before memory is allocated."""

from __future__ import annotations

import warnings

import pytest

from fuda import HMPerceptron, MarginalizedPerceptron, checks, registry
from fuda.errors import DataError
from fuda.optimize.lbfgs import Pairs
from fuda.optimize.vectors import VectorArithmetic
from reliability import load

SMALL = {"chain": 300, "deep": 200, "wide": 200, "dag": 300, "labels": 30, "types": 200, "one-token": 50}


@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("learner", ["crf", "hm-svm", "marginalized"])
def test_every_learner_answers_or_refuses(learner, case):
    X, y = load.CASES[case][0](SMALL[case])
    model = load.LEARNERS[learner]()
    if X[0].shape not in model._shapes:
        with pytest.raises(DataError, match="models that take"):
            model.fit(X, y)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few iterations to converge
        model.fit(X, y)
    assert [len(labels) for labels in model.predict(X)] == [len(x) for x in X]


def test_a_kernel_past_all_memory_is_refused_before_it_is_allocated(monkeypatch):
    X, y = load.chain(7_000)
    monkeypatch.setenv("FUDA_MAX_MEMORY", "1000000000")
    model = MarginalizedPerceptron(features="word", epochs=1, calibrate=False)
    with pytest.raises(DataError) as refused:
        model.fit(X, y)
    assert str(refused.value) == (
        "the marginalized kernel between structures of 7,000 and 7,000 nodes needs 2,744,000,000 bytes of "
        "memory, and 1,000,000,000 are available; split long structures, or set the environment variable "
        "FUDA_MAX_MEMORY to the number of bytes that may be taken"
    )
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("learner", load.LEARNERS)
def test_weights_and_scores_past_all_memory_are_refused(learner, monkeypatch):
    monkeypatch.setattr(checks, "_UNCHECKED_BYTES", 0)
    monkeypatch.setenv("FUDA_MAX_MEMORY", "20000")
    X, y = load.many_labels(60)
    model = load.LEARNERS[learner]()
    with pytest.raises(
        DataError, match=r"and 60 labels .*needs [\d,]+ bytes of memory, and 20,000 are avail"
    ):
        model.fit(X * 10, y * 10)
    assert not hasattr(model, "classes_")


def test_histories_and_orders_past_all_memory_are_refused():
    with pytest.raises(DataError, match="L-BFGS for 1,000,000,000,000 weights needs 120,000,000,000,000 byt"):
        Pairs(10**12, 10, VectorArithmetic(1))
    X, y = load.many_labels(1000)
    with pytest.raises(DataError, match=r"order=3 with 1,000 labels and .* needs 16,000,0.* a lower order"):
        HMPerceptron(features="word", order=3).fit(X, y)


def test_what_is_available(monkeypatch, tmp_path):
    monkeypatch.delenv("FUDA_MAX_MEMORY", raising=False)
    monkeypatch.setattr(checks, "_left_of_the_system", lambda: 5 << 30)
    monkeypatch.setattr(checks, "_left_of_the_process", lambda: None)
    monkeypatch.setattr(checks, "_GROUPS", [])
    assert checks.available_memory() == 5 << 30
    for name, text in {"max": "4000\n", "current": "3000\n", "stat": "anon 7\ninactive_file 500\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text)
    group = str(tmp_path / "memory.max"), str(tmp_path / "memory.current")
    monkeypatch.setattr(checks, "_GROUPS", [group, ("/no such file", "/no such file")])
    assert checks.available_memory() == 1500
    (tmp_path / "memory.max").write_text("max\n")
    assert checks.available_memory() == 5 << 30
    checks.check_memory(6 << 27, "a table", "split it")
    with pytest.raises(DataError, match="a table needs 6,442,450,944 bytes of memory, and 5,368,709,120"):
        checks.check_memory(6 << 30, "a table", "split it")
    monkeypatch.setenv("FUDA_MAX_MEMORY", "much")
    with pytest.raises(DataError, match="FUDA_MAX_MEMORY='much': give a whole number"):
        checks.available_memory()


def test_every_model_has_a_learner():
    assert {type(make()).__name__ for make in load.LEARNERS.values()} == set(registry.MODELS)
