"""What a candidate of `fuda.Auto` says of structures after learning from others."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from fuda.data.corpus import Corpus
from fuda.estimators import ConvergenceWarning, clone
from fuda.interrupts import inner_training
from fuda.models.base import Labeler
from fuda.models.choice.opinions import Opinion, has_scores, marginals_over, scores_over
from fuda.models.markov import MarkovLabeler
from fuda.progress import without
from fuda.selection.folds import Split
from fuda.selection.search import Candidate
from fuda.selection.validation import taken
from fuda.vectors import learn

Array = np.ndarray


class Output(NamedTuple):
    """What a model says of structures.

    Attributes
    ----------
    opinion : Opinion
        What it says of each label: scores, or marginals where it has no scores of label pairs.
    own : ndarray of shape (N,)
        The label numbers that it predicts.
    posterior : ndarray of shape (N,) or None
        Those that it would predict with decode="posterior"; None where that is no choice, or where
        rules of a scheme would have to be followed too.
    """

    opinion: Opinion
    own: Array
    posterior: Array | None = None


class Fits:
    """Fits candidates to parts of labelled structures; may be called by several threads at once.

    Parameters
    ----------
    corpus : Corpus
        The structures.
    y : list of lists
        Their labels, None where not known.
    classes : list
        All labels.
    weights : dict
        What `fit` takes besides, per structure; None stands for nothing.
    scheme : str or None
        The scheme that the labels of sequences are well-formed in.
    """

    def __init__(
        self, corpus: Corpus, y: list[Any], classes: list[Any], weights: dict[str, Any], scheme: str | None
    ) -> None:
        self.X, self.y, self.classes, self.weights = corpus.structures, y, classes, weights
        self.scheme = scheme if corpus.is_chain else None
        self.shape, self.vectors = corpus.shape, corpus.vectors

    def __call__(self, candidate: Candidate, split: Split, n_jobs: int | None) -> Output:
        """Return what a candidate says of one part of the structures, learning from the other."""
        with inner_training():
            return self.said(self.fitted(candidate, split.train, True, n_jobs), split.test)

    def fitted(self, candidate: Candidate, members: Array, quick: bool, n_jobs: int | None) -> Labeler:
        """Return the candidate, fitted to some structures; `quick` is for comparison only."""
        model: Labeler = clone(candidate.estimator)
        names = model.get_params()
        settings: dict[str, Any] = {name: n_jobs for name in names if name.split("__")[-1] == "n_jobs"}
        settings |= {name: value for name, value in candidate.quick.items() if quick and name in names}
        if "scheme" in names:
            settings["scheme"] = self.scheme
        if "decode" in names and self.shape != "dag":
            settings["decode"] = "viterbi"
        weights = {name: taken(value, members) for name, value in self.weights.items()}
        X = taken(self.X, members)
        if isinstance(model.features, str | None) and model._takes_vectors:
            is_own = candidate.learns_words and self.vectors is None
            weights["unlabelled"] = learn(X) if is_own else self.vectors
        model.set_params(**settings)
        # A candidate may end early.
        with without(ConvergenceWarning) if quick else nullcontext():
            return model.fit(X, taken(self.y, members), **weights)

    def said(self, model: Labeler, test: Array) -> Output:
        """Return what a fitted model says of some structures."""
        tested = taken(self.X, test)
        number = {label: k for k, label in enumerate(self.classes)}
        own = np.array([number[label] for labels in model.predict(tested) for label in labels])
        if not hasattr(model, "predict_marginals"):
            return Output(Opinion(np.eye(len(self.classes))[own]), own)
        has_decode = isinstance(model, MarkovLabeler) and "decode" in model.get_params(deep=False)
        posterior = None
        if has_decode and not self.scheme:
            posterior = marginals_over(model, tested, self.classes).nodes.argmax(axis=1)
        if has_scores(model):
            return Output(scores_over(model, Corpus(tested), self.classes), own, posterior)
        return Output(marginals_over(model, tested, self.classes), own, posterior)
