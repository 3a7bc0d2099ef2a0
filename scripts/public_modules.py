"""The public modules of the package and their public names, for its reference and its checks."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType

import fuda

COMPAT = ("crfpp", "crfsuite", "sklearn_crfsuite", "wapiti")


def public_modules() -> list[ModuleType]:
    """The package, the modules that it offers, those of `compat`, and that of `Auto.best_`."""
    offered = [f"fuda.{name}" for name in dir(fuda) if name not in fuda.__all__]
    inner = [*(f"fuda.compat.{name}" for name in COMPAT), "fuda.models.choice.combination"]
    return [import_module(name) for name in ("fuda", *offered, *inner)]


def public_names(module: ModuleType) -> list[str]:
    """What a module offers, in the order of `__all__` or of its text; dunder names left out."""
    defined = [name for name, value in vars(module).items() if inspect.getmodule(value) is module]
    return [name for name in getattr(module, "__all__", defined) if not name.startswith("_")]


def reference_names(module: ModuleType) -> list[str]:
    """The public names that the reference lists under a module, without those of the package."""
    names = public_names(module)
    if module is fuda:
        return names
    return [name for name in names if getattr(module, name) is not getattr(fuda, name, None)]
