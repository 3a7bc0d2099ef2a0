"""The documentation mentions every public name, and what it shows is what is printed.

Pages are run from top to bottom, each in a folder of its own: ``>>>`` examples, files (code blocks
with a caption) and commands (``console`` blocks). ``...`` stands for any text. Numbers may differ
by one per cent: processors add in other orders, and a fit that stops by a tolerance multiplies
that.
"""

from __future__ import annotations

import doctest
import inspect
import math
import re
import runpy
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import fuda
from fuda.cli import group
from fuda.registry import MODELS
from scripts.public_modules import public_modules, public_names, reference_names

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CLUSTER = ROOT / "docs/guide/cluster.md"
TEXT = "".join(page.read_text(encoding="utf-8") for page in PAGES)
FILE = r"```\{code-block\} \w+\n:caption: (?P<name>\S+)\n\n(?P<text>.*?)```"
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
RUN = re.compile(rf"^(?:{FILE}|```console\n(?P<session>.*?)```)", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_public_names_are_in_the_guide(module):
    names = public_names(module)
    assert reference_names(module)
    assert [name for name in names if not is_mentioned(name)] == []


def test_attributes_of_estimators_are_in_the_guide():
    missing = {
        f"{name}.{attribute}"
        for name in MODELS
        for attribute in documented_attributes(getattr(fuda, name))
        if not is_mentioned(attribute)
    }
    assert missing == set()


def is_mentioned(name):
    return re.search(rf"\b{name}\b", TEXT) is not None


def documented_attributes(estimator):
    """The names in the section Attributes of a docstring, and those of public properties."""
    section = re.search(r"^Attributes\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(estimator), re.M | re.S)
    listed = re.findall(r"^(\w[\w, ]*) :", section[1], re.M) if section else []
    properties = [
        name
        for base in estimator.__mro__
        if base.__module__.startswith("fuda")
        for name, value in vars(base).items()
        if isinstance(value, property) and not name.startswith("_")
    ]
    return {name for line in listed for name in line.split(", ")} | set(properties)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page != CLUSTER and re.search(">>>|```console", page.read_text())],
    ids=lambda page: f"{page.parent.name}/{page.stem}",
)
@pytest.mark.slow  # the tutorial trains five models
def test_pages_show_what_is_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_page_of_clusters_shows_what_is_printed(cluster, tmp_path, monkeypatch):
    """With the workers of all tests in place of two more."""
    there = SimpleNamespace(scheduler_address=cluster.scheduler_address, close=lambda: None)
    monkeypatch.setattr("distributed.LocalCluster", lambda **options: there)
    monkeypatch.chdir(tmp_path)
    run_page(CLUSTER)


def run_page(page):
    text, begin, names = page.read_text(encoding="utf-8"), 0, {}
    for block in RUN.finditer(text):
        check_examples(text[begin : block.start()], names, page)
        if block["name"]:
            Path(block["name"]).write_text(block["text"], encoding="utf-8")
        else:
            check_session(block["session"])
        begin = block.end()
    check_examples(text[begin:], names, page)


class Checker(doctest.OutputChecker):
    """Compares numbers by their values."""

    def check_output(self, want, got, optionflags):
        """Whether what is printed is what the page shows."""
        pieces = [re.escape(piece) for piece in NUMBER.split(want)]
        pattern = f"({NUMBER.pattern})".join(pieces).replace(re.escape("..."), ".*?")
        match = re.fullmatch(pattern, got, re.DOTALL)
        return super().check_output(want, got, optionflags) or (
            match is not None and all(map(close, NUMBER.findall(want), match.groups()))
        )


def close(one, other):
    return math.isclose(*(float(number.replace(",", "")) for number in (one, other)), rel_tol=0.01)


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        ("by 2.809\n...\n", "by 2.808\nfor 3\n", True),
        ("1,706 found; ... 683\n", "1,707 found; correct: 686\n", True),
        ("6 labels\n", "7 labels\n", False),
        ("+0.51  a\n", "-0.51  a\n", False),
        ("0.51 a\n", "0.51 b\n", False),
    ],
)
def test_numbers_are_compared_by_their_values(want, got, same):
    assert Checker().check_output(want, got, doctest.ELLIPSIS) is same


def check_examples(text, names, page):
    text = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    output: list[str] = []
    runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS)
    runner.run(examples, out=output.append, clear_globs=False)
    names.update(examples.globs)
    assert "".join(output) == ""


def check_session(session):
    """Run commands, within this process where they are ours, and compare what they print."""
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        program, *arguments = shlex.split(command)
        if program == "fuda":
            result = CliRunner().invoke(group, arguments, catch_exceptions=False)
            assert result.exit_code == 0, result.output
            printed = result.output
        elif program == "python":
            runpy.run_path(arguments[0], run_name="__main__")
            printed = ""
        else:
            printed = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
        assert Checker().check_output(expected, printed, doctest.ELLIPSIS), printed
