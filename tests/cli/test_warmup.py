"""fuda warmup compiles what learners need, on small data of every shape."""

from __future__ import annotations

from importlib import import_module

from fuda.cli.train import make_learner
from fuda.cli.values import LEARNERS, parameter
from fuda.runtime.compiled import _announce

module = import_module("fuda.cli.warmup")  # the package has the command by this name


def test_chosen_learners_are_run(run, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "run", lambda learner, parameters: seen.append((learner, parameters)))
    result = run("warmup", "hmm", "memm")
    assert (result.code, result.out) == (0, b"")
    assert result.err.startswith("compiled: 2 learners in ")
    assert seen == [("hmm", {}), ("memm", {}), ("memm", {"decode": "posterior"})]
    seen.clear()
    assert run("warmup").code == 0
    assert {learner for learner, _ in seen} == LEARNERS.keys()
    for learner, parameters in seen:
        make_learner(learner, parameters)
    assert run("warmup", "crff").code == 2


def test_a_learner_is_used_on_every_shape():
    module.run("hmm", {})
    module.run("marginalized", {"orders": 1, "prior": parameter("prior", "hmm")})


def test_compiling_is_announced_once_and_on_terminals_only(monkeypatch, capsys):
    for terminal, expected in ((False, ""), (True, "fuda: compiling")):
        _announce.cache_clear()
        monkeypatch.setattr("sys.stderr.isatty", lambda shown=terminal: shown, raising=False)
        _announce()
        _announce()
        message = capsys.readouterr().err
        assert message.startswith(expected)
        assert message.count("\n") == int(terminal)
