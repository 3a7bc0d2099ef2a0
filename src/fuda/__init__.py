"""Fuda (札, a tag): learn to label the nodes of sequences, trees and graphs.

Names load on first use, so that ``import fuda`` stays quick and pulls in neither numba nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuda.registry import MODELS

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fuda.data.structures import Dag as Dag
    from fuda.data.structures import Sequence as Sequence
    from fuda.data.structures import Structure as Structure
    from fuda.data.structures import Tree as Tree
    from fuda.errors import DataError as DataError
    from fuda.errors import ModelFileError as ModelFileError
    from fuda.features.templates import Template as Template
    from fuda.formats import read as read
    from fuda.formats import write as write
    from fuda.marginalized.kernel import marginalized_kernel as marginalized_kernel
    from fuda.models.crf import CRF as CRF
    from fuda.models.hm_perceptron import HMPerceptron as HMPerceptron
    from fuda.models.hm_svm import HMSVM as HMSVM
    from fuda.models.hmm import HMM as HMM
    from fuda.models.marginalized_perceptron import MarginalizedPerceptron as MarginalizedPerceptron
    from fuda.models.marginalized_svm import MarginalizedSVM as MarginalizedSVM
    from fuda.models.memm import MEMM as MEMM
    from fuda.models.reranker import Reranker as Reranker
    from fuda.storage.models import load as load

# Where each public name is defined.
_HOME = {name: model.module for name, model in MODELS.items()} | {
    "Dag": "fuda.data.structures",
    "DataError": "fuda.errors",
    "ModelFileError": "fuda.errors",
    "Sequence": "fuda.data.structures",
    "Structure": "fuda.data.structures",
    "Template": "fuda.features.templates",
    "Tree": "fuda.data.structures",
    "load": "fuda.storage.models",
    "marginalized_kernel": "fuda.marginalized.kernel",
    "read": "fuda.formats",
    "write": "fuda.formats",
}
# Modules that may be reached as attributes: fuda.datasets.load_product_usage()
_MODULES = ("datasets", "features", "formats", "inference", "kernels", "metrics", "schemes")

__all__ = [*sorted(_HOME), "__version__"]


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
