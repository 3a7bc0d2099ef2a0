"""The models there are: registry, package, command and documents agree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fuda
from fuda.cli.train import LEARNERS, train
from fuda.registry import MODELS, model_class

ROOT = Path(__file__).parents[1]


def test_classes_are_found_by_their_names():
    for name in MODELS:
        cls = model_class(name)
        assert cls.__name__ == name
        assert getattr(fuda, name) is cls
        assert name in fuda.__all__


def test_what_type_checkers_see_is_what_the_package_offers():
    tree = ast.parse(Path(fuda.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert set(seen) == set(fuda.__all__) - {"__version__"}
    assert seen == fuda._HOME


def test_the_command_offers_every_model():
    learner = next(parameter for parameter in train.params if parameter.name == "learner")
    assert list(learner.type.choices) == [model.command for model in MODELS.values()] == list(LEARNERS)


@pytest.mark.parametrize("name", MODELS)
def test_the_documents_describe_every_model(name):
    readme = (ROOT / "README.md").read_text()
    pages = [page.read_text() for page in (ROOT / "docs" / "models").glob("*.md")]
    row = re.search(rf"^\| `{name}` \| ([^|]*) \|", readme, re.MULTILINE)
    assert row is not None, f"the table of README.md has no row for {name}"
    assert row[1].lower().split(", ") == [f"{shape}s" for shape in model_class(name)._shapes]
    assert sum(f"**{name}(" in page for page in pages) == 1, f"docs/models has no page of {name}"
