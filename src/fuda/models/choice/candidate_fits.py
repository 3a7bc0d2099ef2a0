"""What a candidate of `fuda.Auto` predicts for structures after learning from others."""

from __future__ import annotations

from contextlib import nullcontext
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.models.base import Labeler
from fuda.models.choice.opinions import Opinion, has_scores, marginals_over, scores_over
from fuda.models.fitting.defaults import encoder_for
from fuda.models.fitting.training_data import TrainingData
from fuda.models.markov import MarkovLabeler
from fuda.progress import without
from fuda.runtime.estimators import ConvergenceWarning, clone
from fuda.runtime.interrupts import inner_training
from fuda.selection.folds import Split
from fuda.selection.search import Candidate
from fuda.vectors import Vectors, learn

Array = np.ndarray


class Output(NamedTuple):
    """What a model predicts for structures.

    Attributes
    ----------
    opinion : Opinion
        The evidence for each label: scores, or marginals where it has no scores of label pairs.
    labels : ndarray of shape (N,)
        The label numbers that it predicts.
    posterior : ndarray of shape (N,) or None
        Those that it would predict with decode="posterior"; None where that is not
        compared, or where rules of a scheme would have to be followed too.
    """

    opinion: Opinion
    labels: Array
    posterior: Array | None = None


class _Heat(NamedTuple):
    """Structures that candidates are compared on, and their encodings so far.

    Attributes
    ----------
    members : ndarray of int
        The numbers of the structures, ascending.
    corpus : Corpus
        The structures.
    encodings : list of (tuple, TrainingData)
        By what determines an encoder, which may be unhashable.
    """

    members: Array
    corpus: Corpus
    encodings: list[tuple[tuple[Any, ...], TrainingData]]


class Fits:
    """Fits candidates to parts of labelled structures; may be called by several threads at once.

    Structures are encoded once for all candidates with the same features, and folds are index
    operations.

    Parameters
    ----------
    data : TrainingData
        The structures, under whatever encoding, with labels and weights.
    scheme : str or None
        The scheme that the labels of sequences are well-formed in.
    """

    def __init__(self, data: TrainingData, scheme: str | None) -> None:
        self.data, self.shape = data, data.encoded.corpus.shape
        self.scheme = scheme if data.encoded.corpus.is_chain else None
        self._heat: _Heat | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, which encodes what it needs."""
        return self.__dict__ | {"_heat": None}

    def __call__(self, candidate: Candidate, split: Split, n_jobs: int | None) -> Output:
        """Return what a candidate predicts for one part of structures, learning from the other."""
        with inner_training():
            members = np.union1d(split.train, split.test)
            train, test = (np.searchsorted(members, part) for part in split)
            data, encoded = self._encoded(candidate, members, train).split(train, test)
            return self.output(self._fitted(candidate, data, True, n_jobs), encoded)

    def fitted(self, candidate: Candidate, members: Array, quick: bool, n_jobs: int | None) -> Labeler:
        """Return the candidate, fitted to some structures; `quick` is for comparison only."""
        every = np.arange(len(members))
        data = self._encoded(candidate, np.sort(members), every)
        if len(members) < len(self.data.encoded.corpus):  # labels may be missing
            data, _ = data.split(every, every[:1])
        return self._fitted(candidate, data, quick, n_jobs)

    def output(self, model: Any, encoded: Encoded) -> Output:
        """Return what a fitted model predicts for structures that it encoded."""
        number = {label: k for k, label in enumerate(self.data.classes)}
        numbers = np.array([number[label] for label in model.classes_])
        labels = numbers[model._predicted_labels(encoded)]
        if not hasattr(model, "predict_marginals"):
            return Output(Opinion(np.eye(len(number))[labels]), labels)
        has_decode = isinstance(model, MarkovLabeler) and "decode" in model.get_params(deep=False)
        posterior = None
        if has_decode and not self.scheme:
            posterior = marginals_over(model, encoded, self.data.classes).nodes.argmax(axis=1)
        evidence = scores_over if has_scores(model) else marginals_over
        return Output(evidence(model, encoded, self.data.classes), labels, posterior)

    def _fitted(self, candidate: Candidate, train: TrainingData, quick: bool, n_jobs: int | None) -> Labeler:
        """The candidate, fitted to encoded structures."""
        model: Labeler = clone(candidate.estimator)
        names = model.get_params()
        settings: dict[str, Any] = {name: n_jobs for name in names if name.split("__")[-1] == "n_jobs"}
        settings |= {name: value for name, value in candidate.quick.items() if quick and name in names}
        if "scheme" in names:
            settings["scheme"] = self.scheme
        if "decode" in names and self.shape != "dag":
            settings["decode"] = "viterbi"
        model.set_params(**settings)
        model._check_parameters()
        # A candidate may end early.
        with without(ConvergenceWarning) if quick else nullcontext():
            return model._fit_encoded(train)

    def _encoded(self, candidate: Candidate, members: Array, train: Array) -> TrainingData:
        """Some structures with the features of a candidate, which learns from those at `train`."""
        heat, model = self._heat, candidate.estimator
        if heat is None or not np.array_equal(heat.members, members):
            heat = self._heat = self._new_heat(members)
        corpus = heat.corpus
        if candidate.learns_words and corpus.vectors is None:
            corpus = copy(corpus)
            corpus.vectors = learn([corpus.structures[i] for i in train])
            return self._encoded_by(encoder_for(model, corpus), corpus, members)
        encoder = encoder_for(model, corpus)
        features, window = (*encoder.settings, None)[:2]
        if features is not model.features and isinstance(features, Vectors):
            features = features.base  # the table of the corpus, with this set before it
        for key, encoded in list(heat.encodings):  # other threads may append to it
            if key == (type(encoder), features, window):
                return encoded
        encoded = self._encoded_by(encoder, corpus, members)
        heat.encodings.append(((type(encoder), features, window), encoded))
        return encoded

    def _new_heat(self, members: Array) -> _Heat:
        """Some structures, whose types are numbered anew: there are fewer than in all of them."""
        whole = self.data.encoded.corpus
        corpus = Corpus([whole.structures[i] for i in members])
        corpus.vectors = whole.vectors
        return _Heat(members, corpus, [])

    def _encoded_by(self, encoder: Any, corpus: Corpus, members: Array) -> TrainingData:
        """Structures with the features of an encoder, which learns its vocabulary from them."""
        return self.data.take(members)._replace(encoder=encoder, encoded=encoder.fit_corpus(corpus))
