"""The models: a row per model, which the package, the command and model files use.

To add a model, add a row here; there is no other list of models.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Model(NamedTuple):
    """A row of the registry.

    Attributes
    ----------
    module : str
        The module that defines the class.
    command : str
        The name of the model in the command.
    version : int
        The newest version of the model's state in model files.
    """

    module: str
    command: str
    version: int = 1


MODELS = {
    # 2: weights stored sparsely where few of them are not 0; 3: curvature
    "CRF": Model("fuda.models.crf", "crf", version=3),
    "HMM": Model("fuda.models.hmm", "hmm"),
    "MEMM": Model("fuda.models.memm", "memm"),
    "SemiCRF": Model("fuda.models.semi_crf", "semi-crf"),
    "HMPerceptron": Model("fuda.models.hm_perceptron", "hm-perceptron", version=2),  # 2: curvature
    "HMSVM": Model("fuda.models.hm_svm", "hm-svm", version=2),  # 2: scale of probabilities
    # 2: coefficients of labelings beside the scores of a prior; 3: margins of stages and labels
    "MarginalizedPerceptron": Model("fuda.models.marginalized_perceptron", "marginalized", version=3),
    "MarginalizedSVM": Model("fuda.models.marginalized_svm", "marginalized-svm", version=3),
    "Reranker": Model("fuda.models.reranker", "reranker", version=2),  # 2: verbose, cache_bytes
    "Auto": Model("fuda.models.auto", "auto", version=2),  # 2: members decide by their scores
}


def model_class(name: str) -> Any:
    """Return the class of a registered model by its name.

    >>> model_class("CRF").__name__
    'CRF'
    """
    return getattr(import_module(MODELS[name].module), name)
