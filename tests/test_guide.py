"""The guide or the README mentions every public name, and the examples of the guide's pages run."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / "guide.md", ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
TEXT = "".join(page.read_text() for page in PAGES)
MODULES = ["", ".kernels", ".features", ".formats", ".inference", ".datasets", ".metrics", ".schemes"]
MODULES += [".compat", ".compat.sklearn_crfsuite"]


@pytest.mark.parametrize("module", [f"fuda{name}" for name in MODULES])
def test_public_names_are_in_the_guide(module):
    found = import_module(module)
    own = [name for name, value in vars(found).items() if getattr(value, "__module__", "") == module]
    names = getattr(found, "__all__", own)
    public = [name for name in names if not name.startswith("_")]
    assert public
    assert [name for name in public if not re.search(rf"\b{name}\b", TEXT)] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guide").glob("*.md")), ids=lambda page: page.name)
def test_examples_of_the_guide(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
