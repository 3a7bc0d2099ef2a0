"""The models there are: one row each, which the package, the command and model files go by.

To add a model, add a row here; nothing else lists them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Model(NamedTuple):
    """Where the class of a model is defined, what the command calls it, and the newest version of
    its state that model files may have."""

    module: str
    command: str
    version: int = 1


MODELS = {
    "CRF": Model("fuda.models.crf", "crf"),
    "HMM": Model("fuda.models.hmm", "hmm"),
    "MEMM": Model("fuda.models.memm", "memm"),
    "HMPerceptron": Model("fuda.models.hm_perceptron", "hm-perceptron"),
    "HMSVM": Model("fuda.models.hm_svm", "hm-svm"),
    "MarginalizedPerceptron": Model("fuda.models.marginalized_perceptron", "marginalized"),
    "MarginalizedSVM": Model("fuda.models.marginalized_svm", "marginalized-svm"),
    "Reranker": Model("fuda.models.reranker", "reranker"),
}


def model_class(name: str) -> Any:
    """The class of a registered model, by the name of the class.

    >>> model_class("CRF").__name__
    'CRF'
    """
    return getattr(import_module(MODELS[name].module), name)
