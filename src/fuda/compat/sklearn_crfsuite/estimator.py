"""The estimator of sklearn-crfsuite."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from fuda.compat import crfsuite
from fuda.compat.sklearn_crfsuite import metrics
from fuda.compat.sklearn_crfsuite.tagger import Info, Tagger
from fuda.compat.sklearn_crfsuite.training import ALGORITHMS, Generation, Job, train
from fuda.errors import DataError, short
from fuda.models.crf import CRF as FudaCRF

_GENERATION = ("min_freq", "all_possible_states", "all_possible_transitions")
_ALGORITHM = (
    "c1", "c2", "max_iterations", "epsilon", "period", "delta",
    "pa_type", "c", "error_sensitive", "averaging", "variance", "gamma",
)  # fmt: skip


class LabelScore(NamedTuple):
    """How well a label is predicted: counts of matches, predictions and references, and scores."""

    match: int
    model: int
    ref: int
    precision: float
    recall: float
    f1: float


class TrainingLog:
    """What was measured in the iterations of a training.

    Attributes
    ----------
    iterations : list of dict
        Per iteration "num", "loss", "feature_norm", "time" and, by algorithm, "error_norm" and
        "active_features"; with held-out data also "avg_precision", "avg_recall", "avg_f1",
        "item_accuracy", "instance_accuracy", both with "_float", and "scores" by label.
    last_iteration : dict or None
        The last of them.
    """

    def __init__(self) -> None:
        self.iterations: list[dict[str, Any]] = []

    @property
    def last_iteration(self) -> dict[str, Any] | None:
        """The last iteration."""
        return self.iterations[-1] if self.iterations else None


class CRF(BaseEstimator):
    """sklearn-crfsuite's CRF, trained and applied by this package.

    Parameters, attributes and results are those of sklearn-crfsuite 0.5, up to the point at which
    an optimizer stops: objective (lbfgs, l2sgd) and updates (ap, pa, arow) are CRFsuite's.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"} or None, default=None
        L-BFGS (OWL-QN with c1), stochastic gradients (AdaGrad), averaged perceptron,
        passive-aggressive, AROW. None is "lbfgs".
    min_freq : float or None, default=None
        The least sum of the values of a feature in the training data; None is 0.
    all_possible_states, all_possible_transitions : bool or None, default=None
        Whether pairs of attribute and label, or of labels, that do not occur in the training data
        have weights.
    c1, c2 : float or None, default=None
        The weights of ‖w‖₁ (lbfgs) and ‖w‖² (lbfgs, l2sgd); None is 0 and 1.
    max_iterations : int or None, default=None
        The largest number of iterations; None sets no limit (lbfgs), 1000 (l2sgd) or 100.
    num_memories : int or None, default=None
        Accepted, without effect.
    epsilon : float or None, default=None
        Training ends where the norm of the gradient is at most this share of max(1, ‖w‖) (lbfgs;
        None is 1e-5), or the mean loss of a sequence is below this (ap, pa, arow; None is 0).
    period, delta : int and float or None, default=None
        Training ends where `period` iterations improve the objective by less than this share of it
        (lbfgs, l2sgd); None is 10 and 1e-5 or, with l2sgd, 1e-6.
    linesearch, max_linesearch : str and int or None, default=None
        Accepted, without effect.
    calibration_eta, calibration_rate, calibration_samples : float or None, default=None
        Accepted, without effect: AdaGrad needs no calibration.
    calibration_candidates, calibration_max_trials : int or None, default=None
        Accepted, without effect.
    pa_type : {0, 1, 2} or None, default=None
        PA without slack, PA-I or PA-II; None is 1.
    c : float or None, default=None
        The aggressiveness of pa; None is 1.
    error_sensitive, averaging : bool or None, default=None
        Whether the margin of pa is the root of the number of mistakes, and whether its weights are
        averaged; None is True.
    variance, gamma : float or None, default=None
        The first variance and the trade-off of arow; None is 1.
    verbose : bool, default=False
        Whether to print a line per iteration.
    model_filename : str or None, default=None
        A model file of CRFsuite: `fit` writes it, and without `fit` it is read.
    keep_tempfiles : bool, default=False
        Accepted, without effect: there are no temporary files.
    trainer_cls : None, default=None
        Not supported.

    Attributes
    ----------
    training_log_ : TrainingLog
        What was measured in the iterations.
    model_ : fuda.CRF
        The fitted model, on attributes; it can be saved by its `save`.

    Examples
    --------
    >>> sentences = [["Ana", "sings"], ["Lima", "is", "big"]]
    >>> X = [[{"word": word} for word in sentence] for sentence in sentences]
    >>> y = [["PER", "O"], ["LOC", "O", "O"]]
    >>> crf = CRF(c2=0.01).fit(X, y)
    >>> crf.predict([[{"word": "Ana"}, {"word": "is"}]]).tolist()
    [['PER', 'O']]
    >>> sorted(crf.transition_features_)
    [('LOC', 'O'), ('O', 'O'), ('PER', 'O')]
    """

    training_log_: TrainingLog | None

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: float | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | Path | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: Any = None,
    ) -> None:
        self.algorithm, self.min_freq = algorithm, min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1, self.c2, self.max_iterations, self.num_memories = c1, c2, max_iterations, num_memories
        self.epsilon, self.period, self.delta = epsilon, period, delta
        self.linesearch, self.max_linesearch = linesearch, max_linesearch
        self.calibration_eta, self.calibration_rate = calibration_eta, calibration_rate
        self.calibration_samples, self.calibration_candidates = calibration_samples, calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type, self.c = pa_type, c
        self.error_sensitive, self.averaging = error_sensitive, averaging
        self.variance, self.gamma, self.verbose = variance, gamma, verbose
        self.model_filename, self.keep_tempfiles = model_filename, keep_tempfiles
        self.trainer_cls = trainer_cls
        self.training_log_ = None
        self._tagger: Tagger | None = None

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Train a model.

        Parameters
        ----------
        X : list of lists
            The items of sequences, as python-crfsuite takes them: dicts of attributes.
        y : list of lists
            Their labels, strings.
        X_dev, y_dev : lists of lists, optional
            Held-out sequences, on which every iteration is evaluated for the log.

        Returns
        -------
        Self
            The fitted model itself.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("Pass both X_dev and y_dev to use the holdout data")
        job = self._job()
        log, self._tagger = TrainingLog(), None
        held_out = None if X_dev is None else (list(X_dev), list(map(list, y_dev)))

        def on_iteration(measured: dict[str, Any], model: Callable[[], FudaCRF]) -> None:
            if held_out is not None and held_out[1]:
                measured |= _evaluation(Tagger(model()).predict(held_out[0]), held_out[1])
            log.iterations.append(measured)
            if self.verbose:
                print(_line(measured))

        model = train(job, X, y, on_iteration)
        if self.model_filename is not None:
            crfsuite.write(model, self.model_filename)
        self.training_log_, self._tagger = log, Tagger(model)
        return self

    def _job(self) -> Job:
        """What to train, by the parameters."""
        algorithm = "lbfgs" if self.algorithm is None else self.algorithm
        if algorithm not in ALGORITHMS:
            raise DataError(f"algorithm={short(algorithm)}: choose lbfgs, l2sgd, ap, pa or arow")
        if self.trainer_cls is not None:
            raise DataError("trainer_cls: trainers of python-crfsuite are not used here; leave it out")
        frequency, states, transitions = (getattr(self, name) for name in _GENERATION)
        generation = Generation(float(frequency or 0.0), bool(states), bool(transitions))
        values = {name: getattr(self, name) for name in _ALGORITHM}
        options = {name: value for name, value in values.items() if value is not None}
        return Job(ALGORITHMS[algorithm], generation, options)

    def predict(self, X: Any) -> np.ndarray:
        """Label sequences.

        Parameters
        ----------
        X : list of lists
            The items of sequences.

        Returns
        -------
        ndarray of dtype object
            A list of labels per sequence.
        """
        return np.array(self._fitted().predict(X), dtype=object)

    def predict_single(self, xseq: Any) -> list[str]:
        """Label a sequence.

        Parameters
        ----------
        xseq : list
            The items of the sequence.

        Returns
        -------
        list of str
            The labels.
        """
        return self._fitted().predict([xseq])[0]

    def predict_marginals(self, X: Any) -> np.ndarray:
        """Compute the probabilities of labels.

        Parameters
        ----------
        X : list of lists
            The items of sequences.

        Returns
        -------
        ndarray of dtype object
            A list per sequence, of a dict from labels to probabilities per item.
        """
        return np.array(self._fitted().marginals(X), dtype=object)

    def predict_marginals_single(self, xseq: Any) -> list[dict[str, float]]:
        """Compute the probabilities of the labels of a sequence.

        Parameters
        ----------
        xseq : list
            The items of the sequence.

        Returns
        -------
        list of dict
            From labels to probabilities, per item.
        """
        return self._fitted().marginals([xseq])[0]

    def score(self, X: Any, y: Any) -> float:
        """Compute the share of items with the correct label.

        Parameters
        ----------
        X : list of lists
            The items of sequences.
        y : list of lists
            Their labels.

        Returns
        -------
        float
            The accuracy.
        """
        return metrics.flat_accuracy_score(y, self.predict(X))

    @property
    def model_(self) -> FudaCRF:
        """The fitted model, on attributes."""
        return self._fitted().model

    def _fitted(self) -> Tagger:
        if self.tagger_ is None:
            raise NotFittedError("this CRF is not fitted; call fit, or give model_filename")
        return self.tagger_

    @property
    def tagger_(self) -> Tagger | None:
        """The fitted model behind the interface of python-crfsuite's Tagger."""
        if self._tagger is None and self.model_filename is not None:
            self._tagger = Tagger(crfsuite.read(self.model_filename))
        return self._tagger

    @property
    def classes_(self) -> list[str] | None:
        """The labels."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self) -> int | None:
        """The size of the model as a file of CRFsuite, in bytes."""
        return None if self._info is None else int(self._info.header["size"])

    @property
    def num_attributes_(self) -> int | None:
        """The number of attributes with a weight that is not 0."""
        return None if self._info is None else len(self._info.attributes)

    @property
    def attributes_(self) -> list[str] | None:
        """The attributes with a weight that is not 0."""
        return None if self._info is None else list(self._info.attributes)

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """The weights of pairs of attribute and label that are not 0."""
        return None if self._info is None else self._info.state_features

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """The weights of pairs of labels that are not 0."""
        return None if self._info is None else self._info.transitions

    @property
    def _info(self) -> Info | None:
        return None if self.tagger_ is None else self.tagger_.info()


def _evaluation(predicted: Any, labels: list[list[str]]) -> dict[str, Any]:
    """The scores of predictions, as CRFsuite reports them."""
    flat = [(a, b) for x, y in zip(labels, predicted, strict=True) for a, b in zip(x, y, strict=True)]
    right = sum(a == b for a, b in flat)
    right_sequences = sum(x == y for x, y in zip(labels, predicted, strict=True))
    scores = {}
    for label in dict.fromkeys([a for a, _ in flat] + [b for _, b in flat]):
        match = sum(a == b == label for a, b in flat)
        model, ref = (sum(pair[k] == label for pair in flat) for k in (1, 0))
        precision, recall = match / model if model else 0.0, match / ref if ref else 0.0
        f1 = 2 * match / (model + ref)
        scores[label] = LabelScore(match, model, ref, precision, recall, f1)
    means = (float(np.mean([score[k] for score in scores.values()])) for k in (3, 4, 5))
    evaluation: dict[str, Any] = {"scores": scores}
    evaluation |= zip(("avg_precision", "avg_recall", "avg_f1"), means, strict=True)
    for name, accuracy in (
        ("item", Fraction(right, len(flat))),
        ("instance", Fraction(right_sequences, len(labels))),
    ):
        evaluation |= {f"{name}_accuracy": accuracy, f"{name}_accuracy_float": float(accuracy)}
    return evaluation


def _line(measured: dict[str, Any]) -> str:
    """An iteration as a line of text."""
    texts = {
        "num": "Iter {:<3} ",
        "time": "time={:<5.2f} ",
        "loss": "loss={:<8.2f} ",
        "active_features": "active={:<5} ",
        "avg_precision": "precision={:0.3f}  ",
        "avg_recall": "recall={:0.3f}  ",
        "avg_f1": "F1={:0.3f}  ",
        "item_accuracy_float": "Acc(item/seq)={:0.3f} ",
        "instance_accuracy_float": "{:0.3f}  ",
        "feature_norm": "feature_norm={:<8.2f}",
    }
    return "".join(text.format(measured[name]) for name, text in texts.items() if name in measured).strip()
