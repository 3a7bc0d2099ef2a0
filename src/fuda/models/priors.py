"""The sources of the priors P(y|x) of the marginalized models:

- "uniform": the uniform prior,
- arrays of one row per node, used as they are,
- a labeler (HMM, MEMM, CRF) that is fitted: its posterior P(y|x),
- a labeler that is not fitted: structures are divided into five parts by a fixed shuffle, and the
  prior of each part is the posterior of a clone fitted on the four others, so that the priors of
  training structures are as accurate as those of new structures, not more. The priors of new
  structures come from one more clone, fitted on all structures.

A labeler's posterior is conditioned on the labels of the model. A label that it gives probability
0 could never be learned, even if the posterior is wrong or the labeler has never seen that label.
So it is mixed with a share ε of the uniform prior, node by node and edge by edge:

    P'(y_t = ρ) = (1 − ε) P(y_t = ρ) + ε/L,     P'(y_{t−1}, y_t) = (1 − ε) P(y_{t−1}, y_t) + ε/L².

The pairs have the nodes as their marginals, so they are a chain again.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuda import inference
from fuda.checks import listed
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.errors import DataError, short
from fuda.marginalized.priors import Joint, Prior, given_prior, uniform_prior
from fuda.models.base import check_without_checkpoint
from fuda.models.fitting.folds import prior_folds
from fuda.models.fitting.training_data import TrainingData
from fuda.models.markov import MarkovLabeler
from fuda.runtime.estimators import clone
from fuda.runtime.interrupts import inner_training
from fuda.runtime.parallel import run, thread_count
from fuda.storage.checkpoint import is_checkpointed, part

FORMS = ("marginals", "chain")
UNIFORM, GIVEN = "uniform", "given"
SHARE = 0.01  # ε


@dataclass(frozen=True)
class PriorSource:
    """The source of the priors of a fitted model.

    Parameters
    ----------
    source : "uniform", "given" or Labeler
        "given" requires arrays with every call; a labeler is fitted.
    form : {"marginals", "chain"}
        How a labeler is used.
    classes : list
        The labels of the model.
    """

    source: Any
    form: str
    classes: list[Any]

    def __post_init__(self) -> None:
        if isinstance(self.source, MarkovLabeler):
            _check_labels(self.source, self.classes)

    def prior_of(self, corpus: Corpus, arrays: Any = None) -> Prior:
        """The prior of structures, from `arrays` where it is not None.

        Parameters
        ----------
        corpus : Corpus
            The structures.
        arrays : list of ndarray, optional
            One array of shape (n_nodes, n_labels) per structure.

        Returns
        -------
        Prior
            The prior of all nodes.
        """
        if arrays is not None:
            return given_prior(arrays, corpus, len(self.classes))
        if self.source == GIVEN:
            raise DataError(
                "the model was fitted with priors given as arrays, so it needs those of these structures: "
                f"give one (nodes, {len(self.classes)}) array per structure"
            )
        if self.source == UNIFORM:
            return uniform_prior(corpus, len(self.classes))
        _check_shape(self.source, self.form, corpus)
        return _posterior(self.source, self.form, self.classes, self.source._encode_corpus(corpus))

    @property
    def can_learn(self) -> bool:
        """Whether the source is a CRF whose `partial_fit` can learn from more structures."""
        return bool(getattr(self.source, "can_learn", False))

    def taught(self, X: Any, y: Any) -> PriorSource:
        """Return a source that has learned from more structures; this one does not change.

        Parameters
        ----------
        X, y : list of structures, list of lists
            The structures and their labels.

        Returns
        -------
        PriorSource
            The new source.
        """
        return replace(self, source=copy(self.source).partial_fit(X, y))


def check_prior(prior: Any, form: str) -> None:
    """Raise DataError where the parameters are not a prior, whatever the data.

    Parameters
    ----------
    prior : object
        The parameter `prior` of a model.
    form : str
        The parameter `prior_form`.
    """
    if form not in FORMS:
        raise DataError(f"prior_form={short(form)}: choose {' or '.join(FORMS)}")
    if isinstance(prior, type):
        raise DataError(f"prior={short(prior)}: give a labeler, not its class: prior={prior.__name__}()")
    if isinstance(prior, MarkovLabeler):
        if not hasattr(prior, "classes_"):
            check_without_checkpoint(prior, "prior")
        if form == "chain" and not prior._is_pairwise:
            raise DataError(
                f"prior_form='chain' with a {type(prior).__name__}, whose labels depend on whole segments "
                "and not on label pairs; choose prior_form='marginals', or an HMM, MEMM or CRF as prior"
            )
        return
    if isinstance(prior, str) and prior in (UNIFORM, GIVEN):
        return
    if listed(prior) is None:
        raise DataError(
            f"prior={short(prior)}: give 'uniform', an HMM, MEMM or CRF (fitted or not), or a list of "
            "arrays, one (nodes, labels) per structure"
        )
    if form == "chain":
        raise DataError(
            "prior_form='chain' with arrays of node marginals, which do not contain label pairs; "
            "choose prior_form='marginals', or an HMM, MEMM or CRF as prior"
        )


def for_training(
    prior: Any,
    form: str,
    corpus: Corpus,
    labels: np.ndarray,
    classes: list[Any],
    sample_weight: np.ndarray | None = None,
) -> tuple[Prior, PriorSource]:
    """Make the prior of training structures, and the source of those of other structures.

    Parameters
    ----------
    prior, form : object, str
        The parameters `prior` and `prior_form` of a model.
    corpus : Corpus
        The training structures.
    labels : ndarray of shape (n_nodes,)
        Label numbers, −1 where not known.
    classes : list
        The labels.
    sample_weight : ndarray of shape (n_structures,), optional
        Weights of structures, for a labeler that is fitted here.

    Returns
    -------
    Prior, PriorSource
        The prior of the training structures, and the source.
    """
    check_prior(prior, form)
    if isinstance(prior, MarkovLabeler):
        _check_shape(prior, form, corpus)
        if not hasattr(prior, "classes_"):
            return _out_of_fold(prior, form, corpus, labels, classes, sample_weight)
    elif not isinstance(prior, str):
        return given_prior(prior, corpus, len(classes)), PriorSource(GIVEN, form, classes)
    source = PriorSource(prior, form, classes)
    prior_of_corpus = source.prior_of(corpus)
    if isinstance(prior, MarkovLabeler) and not set(classes) <= set(prior.classes_):
        # With joint scores, labels that the prior has not seen would hardly ever be predicted.
        prior_of_corpus = prior_of_corpus._replace(joint=None)
    return prior_of_corpus, source


def _out_of_fold(
    prior: MarkovLabeler,
    form: str,
    corpus: Corpus,
    labels: np.ndarray,
    classes: list[Any],
    sample_weight: np.ndarray | None,
) -> tuple[Prior, PriorSource]:
    count = len(corpus)
    if count < 2:
        raise DataError(
            "prior: a labeler that is not fitted is trained on other structures than it predicts, but there "
            "is only one structure; give a fitted labeler, or more structures"
        )
    prior._check_parameters()
    data = prior._training_data(corpus, classes, labels, sample_weight)
    folds = prior_folds(count)
    L = len(classes)
    nodes, scores, pairs = np.empty((corpus.size, L)), np.empty((corpus.size, L)), []
    before, after = (np.empty((corpus.size, L, L)) if form == "chain" else None for _ in range(2))
    held_out = [
        data.split(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(folds.max() + 1)
    ]
    names = [*(f"fold {k + 1}" for k in range(len(held_out))), "all"]
    training_parts = [*(training for training, _ in held_out), data]
    *fitted, fitted_on_all = _trained(prior, dict(zip(names, training_parts, strict=True)))
    for fold, (_, others) in enumerate(held_out):
        posterior = _posterior(fitted[fold], form, classes, others)
        positions = np.flatnonzero(np.repeat(folds == fold, np.diff(corpus.offsets)))
        arrays = (nodes, posterior.nodes), (before, posterior.before), (after, posterior.after)
        for of_all, of_fold in arrays:
            if of_all is not None:
                of_all[positions] = of_fold
        if posterior.joint is not None:
            scores[positions] = posterior.joint.nodes
            pairs.append(posterior.joint.pairs)
    # The pair scores of the parts hardly differ, and calibration uses only their mean.
    joint = Joint(scores, np.mean(pairs, axis=0)) if len(pairs) == folds.max() + 1 else None
    return Prior(nodes, before, after, joint), PriorSource(fitted_on_all, form, classes)


def _trained(prior: MarkovLabeler, parts: dict[str, TrainingData]) -> list[MarkovLabeler]:
    """Clones of a labeler, fitted on parts of a corpus: in parallel where there are enough cores.

    A training uses few cores efficiently. Results are the same however many run in parallel. With
    a callback, progress reports or a checkpoint they run one after another.
    """
    jobs = getattr(prior, "n_jobs", 1)
    is_watched = getattr(prior, "callback", None) or getattr(prior, "verbose", 0)
    is_serial = is_watched or is_checkpointed() or not hasattr(prior, "callback")
    cores = thread_count(jobs)
    count = 1 if is_serial else min(len(parts), cores // 2)
    names, stopped = list(parts), list[None]()

    def stop(_: object) -> None:
        if stopped:
            raise KeyboardInterrupt

    def fitted(name: str) -> MarkovLabeler:
        with part(name):
            if count < 2:
                return clone(prior)._fit_encoded(parts[name])
            labeler = clone(prior).set_params(n_jobs=-(-cores // count), callback=stop)
            try:
                with inner_training():
                    labeler._fit_encoded(parts[name])
            except BaseException:
                stopped.append(None)  # the others stop too
                raise
            return labeler.set_params(n_jobs=jobs, callback=None)

    return [fitted(name) for name in names] if count < 2 else run(fitted, names, count)


def _posterior(labeler: MarkovLabeler, form: str, classes: list[Any], encoded: Encoded) -> Prior:
    """P(y|x) of a fitted labeler over the labels `classes`, mixed with a uniform share."""
    graph = encoded.corpus.graph
    number = {label: i for i, label in enumerate(labeler.classes_)}
    columns = [number.get(label, -1) for label in classes]  # −1 for a label that it has not seen
    _check_labels(labeler, classes)
    L = len(classes)
    if not labeler._is_pairwise:
        return Prior(_mixed(_of_labels(labeler._marginals(encoded, None), columns, 0.0), L))
    log_scores = labeler._log_scores(encoded)
    scores, transitions = labeler._constrained(encoded.corpus, log_scores[0].copy(), log_scores[1], None)
    scores = _of_labels(scores, columns, -np.inf)
    transitions = _of_labels(transitions, columns, 0.0, pairs=True)
    joint = _joint(*log_scores, columns) if log_scores[1].ndim == 2 else None
    if form == "marginals":
        nodes = inference.marginals(graph, scores, transitions, n_jobs=labeler.n_jobs)[1]
        return Prior(_mixed(nodes, L), joint=joint)
    _, nodes, edges = inference.marginals(graph, scores, transitions, edges=True, n_jobs=labeler.n_jobs)
    nodes, edges = _mixed(nodes, L), _mixed(edges, L * L)
    edges[graph.roots] = 0.0
    before = np.ascontiguousarray(edges.transpose(0, 2, 1)) / nodes[:, :, None]
    after = np.zeros_like(edges)
    after[:-1] = edges[1:] / nodes[:-1, :, None]
    return Prior(nodes, before, after, joint)


def _joint(scores: np.ndarray, pairs: np.ndarray, columns: list[int]) -> Joint | None:
    """The scores of labelings; labels that the labeler has not seen get the lowest scores.

    None if some labels or pairs are impossible.
    """
    if not (np.isfinite(scores).all() and np.isfinite(pairs).all()):
        return None
    nodes = np.maximum(_of_labels(scores, columns, -np.inf), scores.min(axis=1, keepdims=True))
    return Joint(nodes, _of_labels(pairs, columns, float(pairs.min()), pairs=True))


def _of_labels(values: np.ndarray, columns: list[int], unseen: float, pairs: bool = False) -> np.ndarray:
    """The columns of labels (or of pairs of labels) in arrays, `unseen` for the column −1."""
    if columns == list(range(values.shape[-1])):  # usually, all labels are the same
        return values
    around = [(0, 0)] * (values.ndim - 1 - pairs) + [(0, 1)] * (1 + pairs)
    padded = np.pad(values, around, constant_values=unseen)[..., columns]
    return padded[..., columns, :] if pairs else padded


def _mixed(probabilities: np.ndarray, outcomes: int) -> np.ndarray:
    return (1.0 - SHARE) * probabilities + SHARE / outcomes


def _check_labels(labeler: MarkovLabeler, classes: list[Any]) -> None:
    if set(classes).isdisjoint(labeler.classes_):
        raise DataError(
            f"prior: the {type(labeler).__name__} knows none of the labels {short(classes)}, only "
            f"{short(labeler.classes_.tolist())}; fit it on the same labels"
        )


def _check_shape(labeler: MarkovLabeler, form: str, corpus: Corpus) -> None:
    if form == "chain" and not corpus.is_chain:
        raise DataError(
            f"prior_form='chain': a chain prior is over sequences, but structure 0 is a {corpus.shape}; "
            "choose prior_form='marginals'"
        )
    if corpus.shape not in labeler._shapes:
        raise DataError(
            f"prior: a {type(labeler).__name__} labels {' and '.join(f'{s}s' for s in labeler._shapes)}, but "
            f"structure 0 is a {corpus.shape}; give arrays instead, such as its predict_marginals of the "
            "same nodes as sequences"
        )
