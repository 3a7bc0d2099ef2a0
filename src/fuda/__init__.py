"""Fuda (札, a tag): learn to label the nodes of sequences, trees and graphs.

Names are imported on first use, so that ``import fuda`` is fast and imports neither numba nor
scikit-learn.
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
    from fuda.models.auto import Auto as Auto
    from fuda.models.crf import CRF as CRF
    from fuda.models.hm_perceptron import HMPerceptron as HMPerceptron
    from fuda.models.hm_svm import HMSVM as HMSVM
    from fuda.models.hmm import HMM as HMM
    from fuda.models.marginalized_perceptron import MarginalizedPerceptron as MarginalizedPerceptron
    from fuda.models.marginalized_svm import MarginalizedSVM as MarginalizedSVM
    from fuda.models.memm import MEMM as MEMM
    from fuda.models.reranker import Reranker as Reranker
    from fuda.models.semi_crf import SemiCRF as SemiCRF
    from fuda.storage.models import load as load
    from fuda.vectors import Vectors as Vectors

# The module that defines each public name.
_HOME = {name: model.module for name, model in MODELS.items()}
_HOME |= dict.fromkeys(["Dag", "Sequence", "Structure", "Tree"], "fuda.data.structures")
_HOME |= dict.fromkeys(["DataError", "ModelFileError"], "fuda.errors")
_HOME |= dict.fromkeys(["read", "write"], "fuda.formats")
_HOME |= {"Template": "fuda.features.templates", "load": "fuda.storage.models"}
_HOME |= {"marginalized_kernel": "fuda.marginalized.kernel", "Vectors": "fuda.vectors"}
# Modules that are attributes of the package: fuda.datasets.load_product_usage()
_MODULES = (
    *("active", "compat", "datasets", "explanations", "features", "formats", "inference", "kernels"),
    *("metrics", "mistakes", "plots", "progress", "render", "schemes", "selection", "vectors"),
)

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
