"""Progress goes to standard error: live on a terminal, else in occasional lines; only if asked."""

from __future__ import annotations

import io
import sys

import pytest

from fuda.progress import Iteration, Iterations, stage


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def iterations(count, shown):
    with Iterations("fit", shown=shown) as progress:
        for i in range(1, count + 1):
            progress(Iteration(i, 1.5, 1234.5678, 0.25))


def test_a_line_for_the_first_and_every_tenth(capsys):
    iterations(25, shown=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        f"fit: iteration {i}, objective 1,234.57, gradient 0.25, 1.5 s" for i in (1, 10, 20)
    ]


def test_nothing_unasked(capsys):
    iterations(25, shown=False)
    assert capsys.readouterr().err == ""


def test_one_live_line_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    iterations(3, shown=True)
    assert "fit: iteration 1, objective 1,234.57, gradient 0.25, 1.5 s\n" not in terminal.getvalue()
    with pytest.raises(KeyError), Iterations("fit", shown=True):
        raise KeyError


def test_a_stage(monkeypatch, capsys):
    with stage("reading") as say:
        say("8 sequences")
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with stage("reading a[b].txt") as say:
        say("8 sequences [new]")
    with stage("fitting"):
        pass
    assert "reading a[b].txt: 8 sequences [new] " in terminal.getvalue()
    assert "fitting: done " in terminal.getvalue()


def test_callbacks_run_in_order_until_one_stops(capsys):
    ran = []

    def stop(iteration):
        ran.append("second")
        if iteration.iteration == 2:
            raise StopIteration

    with Iterations(
        "fit", True, lambda _: ran.append("first"), None, stop, lambda _: ran.append("third")
    ) as it:
        answers = [it.report(mistakes=7), it.report(mistakes=3)]
    assert answers == [False, True]
    assert ran == ["first", "second", "third", "first", "second"]
    assert capsys.readouterr().err.startswith("fit: iteration 1, mistakes 7, 0.")


def test_an_iteration_says_what_was_measured():
    assert str(Iteration(1, 2.0)) == "iteration 1, 2.0 s"
    everything = Iteration(1000, 2.04, 5.5, 0.125, 1234, 0.5, 9)
    assert str(everything) == "iteration 1000, objective 5.50, gradient 0.12, mistakes 1,234, gap 0.5, 2.0 s"
    with pytest.raises(AttributeError):
        everything.gap = 0.0
