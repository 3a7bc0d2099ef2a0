"""The guide or the README mentions every public name."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "guide.md").read_text() + (ROOT / "README.md").read_text()
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
