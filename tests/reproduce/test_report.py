"""The report is regenerated: tables change, the text around them stays."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.table import Table

from fuda import CRF
from fuda.cli import group
from fuda.errors import DataError
from fuda.reproduce.report import check_places, markdown, replace_table

REPORT = Path(__file__).parents[2] / "docs" / "reproduction.md"
TEXT = "before\n\n<!-- fuda: a 1 -->\n\nold\n\n<!-- end -->\n\nbetween\n\n<!-- fuda: a 2 -->\n<!-- end -->\n"


def table(*rows):
    filled = Table("method", "accuracy", "F1")
    for row in rows:
        filled.add_row(*row)
    return filled


def test_a_table_as_markdown():
    text = markdown(table(("HMM", "1", "2\n(3)")), without=("accuracy",))
    assert text == "| method | F1 |\n| --- | --- |\n| HMM | 2 (3) |\n"


def test_one_table_is_replaced(tmp_path):
    path = tmp_path / "report.md"
    path.write_text(TEXT)
    replace_table(path, "a 1", "| new |\n")
    assert path.read_text() == TEXT.replace("\nold\n", "\n| new |\n")
    with pytest.raises(DataError, match="has no place for a 3"):
        replace_table(path, "a 3", "")
    with pytest.raises(DataError, match="has no place for b 1"):
        check_places(path, ["a", "b"])


@pytest.fixture
def experiments(monkeypatch):
    """Experiments that take no time: each shows as many tables as the real one, and a note."""
    for name, count in (("markov-loss", 2), ("hm-svm", 1), ("kernel-labeling", 6)):

        def run(data, number, show, progress, name=name, count=count):
            for k in range(count):
                show(table((f"{name} {k + 1} on {data}", "0", "1")))
            show("a note")

        monkeypatch.setitem(import_module("fuda.cli.reproduce").EXPERIMENTS, name, run)


def test_all_writes_every_table_of_the_report(tmp_path, experiments):
    path = tmp_path / "report.md"
    path.write_text(REPORT.read_text())
    result = CliRunner().invoke(group, ["reproduce", "all", "--data", "D", "--report", str(path)])
    assert result.exit_code == 0, result.output
    text = path.read_text()
    for name, count in (("markov-loss", 2), ("hm-svm", 1), ("kernel-labeling", 6)):
        for k in range(count):
            assert f"<!-- fuda: {name} {k + 1} -->\n\n| method |" in text
            assert f"| {name} {k + 1} on D |" in text
    assert "HM-SVM |" not in text, "the old rows are gone"
    assert "## Beyond the paper" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["all", "--table", "1"], "all repeats every table"),
        (["hm-svm", "--report", "x.md"], "hm-svm writes no report"),
        (["all", "--report", "{empty}"], "has no place for markov-loss 1"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_runs(tmp_path, experiments, arguments, message):
    empty = tmp_path / "empty.md"
    empty.write_text("nothing\n")
    arguments = [argument.format(empty=empty) for argument in arguments]
    result = CliRunner().invoke(group, ["reproduce", *arguments, "--data", "D"])
    assert result.exit_code == 2
    assert message in result.output
    assert "on D" not in result.output


def test_an_interrupt_ends_the_command(monkeypatch):
    """A training within an experiment does not end early, as one of the user's own does."""

    def run(data, number, show, progress):
        CRF(callback=interrupted).fit([["a", "b"], ["b"]], [["A", "B"], ["B"]])
        show("after the interrupt")

    def interrupted(iteration):
        raise KeyboardInterrupt

    monkeypatch.setitem(import_module("fuda.cli.reproduce").EXPERIMENTS, "hm-svm", run)
    result = CliRunner().invoke(group, ["reproduce", "hm-svm", "--data", "D"])
    assert result.exit_code == 130
    assert "after the interrupt" not in result.output
