"""Validate the docstrings of the public API with numpydoc, and look for examples and references.

The public API is every public name of the modules of `public_modules`, and the public methods and
properties of their classes; a method without a docstring of its own that overrides another
inherits the docstring of that one. Checked are

- the rules of ``[tool.numpydoc_validation]`` in pyproject.toml;
- that every public class and function has a section Examples;
- that every estimator has references, each of which names the place in the paper that it is of.

Prints one line per finding and exits with 1 if there are any.
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import fuda
from fuda.registry import MODELS
from public_modules import public_modules, public_names

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(r"[Ee]quation|[Ss]ection|Algorithm|Theorem|pages")  # in a paper


def main() -> int:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    checks = set(configuration["tool"]["numpydoc_validation"]["checks"])
    objects = {dotted(value): value for value in public_objects()}
    members = {name for value in objects.values() if inspect.isclass(value) for name in member_names(value)}
    findings = [f"{name}: {text}" for name, value in objects.items() for text in lacking(value)]
    # The parameters of an Enum are those of its base.
    plain = {
        name for name, value in objects.items() if not (inspect.isclass(value) and issubclass(value, Enum))
    }
    for name in plain | members:
        errors = validate(name)["errors"]
        findings += [f"{name}: {code} {message}" for code, message in errors if code in checks]
    for finding in sorted(findings):
        print(finding)
    print(f"{len(findings)} findings in the docstrings of the public API")
    return int(bool(findings))


def public_objects() -> Iterator[Any]:
    """The public classes and functions of the package."""
    for module in public_modules():
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                yield value


def lacking(value: Any) -> Iterator[str]:
    """The sections that the docstring of a class or function should have and has not."""
    docstring = NumpyDocString(inspect.getdoc(value) or "")
    if not docstring["Examples"]:
        yield "has no section Examples"
    is_estimator = value.__name__ in MODELS and value is getattr(fuda, value.__name__)
    references = "\n".join(docstring["References"]).split("\n.. [")
    for reference in references if is_estimator else []:
        if not PLACE.search(reference):
            yield f"names no equation, algorithm, section or pages of {reference or 'any reference'!r}"


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
