"""Scorers for scikit-learn's cross-validation and parameter searches."""

from __future__ import annotations

from sklearn.metrics import make_scorer

from fuda.compat.sklearn_crfsuite import metrics

flat_accuracy = make_scorer(metrics.flat_accuracy_score)
sequence_accuracy = make_scorer(metrics.sequence_accuracy_score)
