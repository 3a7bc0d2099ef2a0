"""The package's front door."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def test_modules_and_names_are_reached_from_the_package():
    code = """
import fuda
assert len(fuda.datasets.load_product_usage().train) == 600
assert fuda.metrics.token_accuracy([["a"]], [["a"]]) == 1.0
assert all(hasattr(fuda, name) for name in dir(fuda))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_is_not_there():
    import fuda

    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        fuda.nothing  # noqa: B018


def test_the_version_is_stated_the_same_everywhere():
    import fuda

    root = Path(__file__).parents[1]
    assert f"\nversion: {fuda.__version__}\n" in (root / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {fuda.__version__}\n" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
