"""Datasets that contain their labels, and `predict_proba`, which scikit-learn asks for.

scikit-learn's `cross_val_predict(model, X, y, method="predict_proba")` makes one number of every
structure's labels, which are lists. Without y it leaves data as they are; so `fit` takes a
dataset, or some of its records, that has labels of its own.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fuda.formats.dataset import Dataset, Record
from fuda.models.fitting.one_state import on_snapshot


class Probabilities:
    """A labeler whose `predict_marginals` is also called `predict_proba`."""

    predict_marginals: Any
    # Whether marginals estimate how often labels are right; else they are preferences.
    _estimates_probabilities: ClassVar[bool] = True

    @on_snapshot
    def predict_proba(self, X: Any) -> np.ndarray:
        """Compute P(y_t = label | x) for every node t; the same as `predict_marginals`.

        Parameters
        ----------
        X : list of structures, or Dataset
            Of the shape that the model was fitted on.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One array of shape (n_nodes, n_labels) per structure; columns as in `classes_`.
        """
        marginals: np.ndarray = self.predict_marginals(X)
        return marginals


def structures_of(X: Any) -> Any:
    """Return the structures of a dataset or of a list of its records; else return X itself."""
    if isinstance(X, list) and X and isinstance(X[0], Record):
        X = Dataset(X)
    return X.X if isinstance(X, Dataset) else X


def labels_of(X: Any, y: Any) -> Any:
    """Return y, or if it is None, the labels of a dataset or of a list of its records."""
    if y is None and isinstance(X, list) and X and isinstance(X[0], Record):
        X = Dataset(X)
    return X.y if y is None and isinstance(X, Dataset) else y
