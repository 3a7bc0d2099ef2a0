"""Fuda (札, a tag): learn to label the nodes of sequences, trees and graphs.

Names load on first use, so that ``import fuda`` stays quick and pulls in neither numba nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fuda.errors import DataError, ModelFileError
    from fuda.formats import read, write
    from fuda.models.storage import load
    from fuda.models.crf import CRF
    from fuda.models.hmm import HMM
    from fuda.structures import Dag, Sequence, Structure, Tree
    from fuda.templates import Template

_HOME = {
    "CRF": "fuda.models.crf",
    "HMM": "fuda.models.hmm",
    "Dag": "fuda.structures",
    "DataError": "fuda.errors",
    "ModelFileError": "fuda.errors",
    "Sequence": "fuda.structures",
    "Structure": "fuda.structures",
    "Template": "fuda.templates",
    "Tree": "fuda.structures",
    "load": "fuda.models.storage",
    "read": "fuda.formats",
    "write": "fuda.formats",
}

__all__ = [
    "CRF",
    "HMM",
    "Dag",
    "DataError",
    "ModelFileError",
    "Sequence",
    "Structure",
    "Template",
    "Tree",
    "__version__",
    "load",
    "read",
    "write",
]


# Modules that may be reached as attributes: fuda.datasets.load_product_usage()
_MODULES = ("datasets", "features", "formats", "inference", "metrics", "schemes", "templates")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"fuda.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'fuda' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
