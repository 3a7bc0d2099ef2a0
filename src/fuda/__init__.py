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
    from fuda.marginalized.kernel import marginalized_kernel
    from fuda.models.crf import CRF
    from fuda.models.hm_perceptron import HMPerceptron
    from fuda.models.hm_svm import HMSVM
    from fuda.models.hmm import HMM
    from fuda.models.marginalized_perceptron import MarginalizedPerceptron
    from fuda.models.marginalized_svm import MarginalizedSVM
    from fuda.models.memm import MEMM
    from fuda.models.reranker import Reranker
    from fuda.models.storage import load
    from fuda.structures import Dag, Sequence, Structure, Tree
    from fuda.templates import Template

_HOME = {
    "CRF": "fuda.models.crf",
    "Dag": "fuda.structures",
    "DataError": "fuda.errors",
    "HMM": "fuda.models.hmm",
    "HMPerceptron": "fuda.models.hm_perceptron",
    "HMSVM": "fuda.models.hm_svm",
    "MEMM": "fuda.models.memm",
    "MarginalizedPerceptron": "fuda.models.marginalized_perceptron",
    "MarginalizedSVM": "fuda.models.marginalized_svm",
    "ModelFileError": "fuda.errors",
    "Reranker": "fuda.models.reranker",
    "Sequence": "fuda.structures",
    "Structure": "fuda.structures",
    "Template": "fuda.templates",
    "Tree": "fuda.structures",
    "load": "fuda.models.storage",
    "marginalized_kernel": "fuda.marginalized.kernel",
    "read": "fuda.formats",
    "write": "fuda.formats",
}

__all__ = [
    "CRF",
    "HMM",
    "HMSVM",
    "MEMM",
    "Dag",
    "DataError",
    "HMPerceptron",
    "MarginalizedPerceptron",
    "MarginalizedSVM",
    "ModelFileError",
    "Reranker",
    "Sequence",
    "Structure",
    "Template",
    "Tree",
    "__version__",
    "load",
    "marginalized_kernel",
    "read",
    "write",
]


# Modules that may be reached as attributes: fuda.datasets.load_product_usage()
_MODULES = ("datasets", "features", "formats", "inference", "kernels", "metrics", "schemes", "templates")


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
