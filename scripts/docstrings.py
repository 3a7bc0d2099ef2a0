"""Validate the docstrings of the public API with numpydoc.

The public API is every name of ``fuda.__all__``, the public names of the modules that
``dir(fuda)`` lists, and the public methods and properties of their classes; a method without a
docstring of its own that overrides another inherits the docstring of that one. The checks are
those of ``[tool.numpydoc_validation]`` in pyproject.toml. Prints one line per finding and exits
with 1 if there are any.
"""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from numpydoc.validate import validate

import fuda

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    checks = set(configuration["tool"]["numpydoc_validation"]["checks"])
    findings = 0
    for name in sorted(set(public_names())):
        result = validate(name)
        for code, message in result["errors"]:
            if code in checks:
                findings += 1
                print(f"{name}: {code} {message}")
    print(f"{findings} findings in the docstrings of the public API")
    return int(findings > 0)


def public_names() -> Iterator[str]:
    """The dotted names of everything public, under the module that defines it."""
    modules = [getattr(fuda, name) for name in dir(fuda) if name not in fuda.__all__]
    modules += [
        import_module(f"fuda.compat.{name}") for name in ("crfsuite", "crfpp", "wapiti", "sklearn_crfsuite")
    ]
    for module in (fuda, *modules):
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            defined_here = getattr(value, "__module__", "").startswith(module.__name__)
            if not name.startswith("_") and defined_here and callable(value):
                is_class = inspect.isclass(value)
                # The parameters of such a class are those of Enum.
                if not (is_class and issubclass(value, Enum)):
                    yield dotted(value)
                if is_class:
                    yield from member_names(value)


def member_names(value: type[Any]) -> Iterator[str]:
    """The public methods and properties that a class defines or inherits from a class of fuda."""
    for base in value.__mro__:
        if base.__module__.startswith("fuda"):
            for name, member in vars(base).items():
                documented = inspect.isroutine(member) or isinstance(member, property)
                inherits = not member.__doc__ and inspect.getdoc(getattr(base, name))
                if not name.startswith("_") and documented and not inherits:
                    yield f"{dotted(base)}.{name}"


def dotted(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


if __name__ == "__main__":
    sys.exit(main())
