"""Imports go downwards only: each module imports its own package and packages of lower layers.

Imports inside functions count. `fuda/__init__.py`, which names everything, stands above all.
"""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fuda

ROOT = Path(fuda.__file__).parent
LAYERS = [
    ["errors", "registry"],
    ["runtime"],
    ["checks", "files", "progress", "schemes"],
    ["features"],
    ["data"],
    ["render", "vectors"],
    ["reports"],
    ["metrics", "formats", "kernels", "inference", "explanations"],
    ["optimize", "mistakes"],
    ["storage"],
    ["functions"],
    ["training"],
    ["marginalized", "selection"],
    ["models"],
    ["active"],
    ["datasets", "compat", "plots"],
    ["reproduce", "page"],
    ["cli"],
    ["__main__"],
]
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def name_of(path: Path) -> str:
    parts = ["fuda", *path.with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in MODULES}


def unit(module: str) -> str:
    """The package or loose module right below `fuda` that a dotted name lies in."""
    return module.split(".")[1]


def imported(path: Path) -> set[str]:
    """The modules of the package that a module imports anywhere in its text."""
    modules = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= inner & set(NAMES) if inner & set(NAMES) else {str(node.module)}
    return {name for name in modules if name.startswith("fuda.")}


def test_every_unit_has_a_layer():
    assert {path.parts[0].removesuffix(".py") for path in MODULES} == set(LEVEL)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_go_downwards(path):
    package = path.parts[0].removesuffix(".py")
    others = {unit(name) for name in imported(path)} - {package}
    upward = {other for other in others if LEVEL[other] >= LEVEL[package]}
    assert not upward, f"{path} imports {sorted(upward)}, which do not lie below {package}"


def test_there_are_no_cycles():
    TopologicalSorter({name: imported(path) - {name} for name, path in NAMES.items()}).prepare()


ENGINES = "fuda.marginalized.engines"


def test_engines_are_known_by_their_protocol_alone():
    """Others know `engines` itself, and an engine knows no other but by its class."""
    for path in MODULES:
        names = {name for name in imported(path) if name.startswith(f"{ENGINES}.")}
        parts = {name.removeprefix(f"{ENGINES}.") for name in names}
        if path.parts[:2] != ("marginalized", "engines"):
            assert not parts, f"{path} imports {sorted(parts)}; it may import {ENGINES} alone"
        elif len(path.parts) == 4 or path.stem in ("cluster", "explicit"):
            engine = path.parts[2].removesuffix(".py")
            others = {name for name in parts if "." in name and name.split(".")[0] != engine}
            assert others <= {"cpu.engine"}, f"{path} imports {sorted(others)}, which are another engine's"
