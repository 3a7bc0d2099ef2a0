"""The documentation mentions every public name, and its examples are run."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXT = "".join(page.read_text(encoding="utf-8") for page in PAGES)
MODULES = ["", ".kernels", ".features", ".formats", ".inference", ".datasets", ".metrics", ".schemes"]
MODULES += [".compat", ".compat.sklearn_crfsuite", ".plots"]


@pytest.mark.parametrize("module", [f"fuda{name}" for name in MODULES])
def test_public_names_are_in_the_guide(module):
    found = import_module(module)
    own = [name for name, value in vars(found).items() if getattr(value, "__module__", "") == module]
    names = getattr(found, "__all__", own)
    public = [name for name in names if not name.startswith("_")]
    assert public
    assert [name for name in public if not re.search(rf"\b{name}\b", TEXT)] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if ">>>" in page.read_text()], ids=lambda page: page.stem
)
def test_examples_give_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found, out=told.append)
    assert "".join(told) == ""
