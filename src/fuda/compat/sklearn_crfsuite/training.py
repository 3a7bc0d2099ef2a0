"""CRFsuite's training algorithms by the learners of this package.

CRFsuite has weights only for the pairs of attribute and label, and of labels, that occur in the
training data, unless all possible ones are asked for. So all other weights are kept at 0 here. The
objective of lbfgs and l2sgd is then CRFsuite's, −log P + c1 ‖w‖₁ + c2 ‖w‖², and so are the updates
of ap, pa and arow.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fuda.compat.models import make_crf
from fuda.compat.sklearn_crfsuite.items import Vocabulary
from fuda.data.corpus import Corpus
from fuda.data.encoding import Channel, Encoded
from fuda.data.observations import Kind
from fuda.data.tables import Table
from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError, described
from fuda.models.crf import CRF
from fuda.models.fitting.training_data import TrainingData
from fuda.models.hm_perceptron import HMPerceptron
from fuda.progress import Iteration
from fuda.training.crf_loss import TrainingLoss
from fuda.training.perceptron import Pass, State, TrainingExamples

ALGORITHMS = {
    "lbfgs": "lbfgs",
    "l2sgd": "l2sgd",
    "ap": "ap",
    "averaged-perceptron": "ap",
    "pa": "pa",
    "passive-aggressive": "pa",
    "arow": "arow",
}
_UNLIMITED = (1 << 31) - 1
_OFFSET = re.compile(r"[+-]?\d{1,2}:")
_MOST_GROUPS = 11


class Generation(NamedTuple):
    """Which features CRFsuite generates.

    Attributes
    ----------
    min_freq : float
        The least sum of the values of a feature.
    states, transitions : bool
        Whether pairs of attribute and label, and of labels, are generated that do not occur.
    """

    min_freq: float
    states: bool
    transitions: bool

    def weights(self, encoded: Encoded, labels: np.ndarray, label_count: int) -> np.ndarray:
        """Return the indices of the weights of features that are generated."""
        corpus, parts = encoded.corpus, []
        for channel in encoded.channels:
            matrix = sp.csr_matrix(encoded.tables[channel.table].matrix)
            shape = matrix.shape[0], label_count
            labelled = sp.csr_matrix((np.ones(corpus.size), (channel.rows, labels)), shape=shape)
            parts.append([(values.T @ labelled).toarray() for values in (matrix, abs(matrix))])
        state, occurrences = (np.concatenate(both) for both in zip(*parts, strict=True))
        inner = np.ones(corpus.size, dtype=bool)
        inner[corpus.offsets[:-1]] = False
        after = np.flatnonzero(inner)
        pairs = np.zeros((label_count, label_count))
        np.add.at(pairs, (labels[after - 1], labels[after]), 1.0)
        generated = [(occurrences > 0) | self.states, (pairs > 0) | self.transitions]
        frequent = [state >= self.min_freq, pairs >= self.min_freq]
        return np.flatnonzero(
            np.concatenate([(a & b).ravel() for a, b in zip(generated, frequent, strict=True)])
        )


class TrainingView:
    """A training as its callback sees it.

    Parameters
    ----------
    labels : list
        The labels, by number.

    Attributes
    ----------
    names : list of str
        The attributes, in the order of their first occurrence.
    rows : ndarray
        The rows of their weights.
    weights : ndarray
        The present weights of features and label pairs, all or those of `generated`.
    generated : ndarray or slice
        The indices of these weights.
    costs : list of float
        The losses of the epochs of a perceptron.
    """

    names: list[str]
    rows: np.ndarray
    weights: np.ndarray

    def __init__(self, labels: list[str]) -> None:
        self.labels, self.costs = labels, list[float]()
        self.generated: np.ndarray | slice = slice(None)

    def model(self) -> CRF:
        """Return a model of the present weights, without attributes whose weights are all 0."""
        L = len(self.labels)
        table = np.zeros((len(self.names) + L, L))
        table.ravel()[self.generated] = self.weights
        state = table[self.rows]
        attribute_rows = np.flatnonzero(state.any(axis=1))
        weights = np.concatenate([state[attribute_rows].ravel(), table[-L:].ravel()])
        return make_crf("the fitted model", self.labels, [[self.names[k] for k in attribute_rows]], weights)


class _Generated:
    """A loss as a function of the weights of features that are generated; all others are 0."""

    def __init__(self, loss: TrainingLoss, view: TrainingView) -> None:
        self.loss, self.view, self.encoded = loss, view, loss.encoded
        self.weights = view.generated
        self._all = np.zeros(loss.weights.size)

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        self._all[self.view.generated] = self.view.weights = weights
        value, gradient = self.loss(self._all)
        return value, gradient[self.view.generated]

    def curvature(self) -> np.ndarray:
        return self.loss.curvature()[self.view.generated]


class _ChainCRF(CRF):
    """A CRF with the features that CRFsuite generates; `weights_` are theirs."""

    generation: Generation
    view: TrainingView
    _merges_features = False  # generated features are chosen by name

    def _fit(self, data: TrainingData) -> None:
        self.view.generated = self.generation.weights(data.encoded, data.labels, len(self.classes_))
        super()._fit(data)

    def _start(self) -> np.ndarray:
        return np.zeros(len(self.view.generated))  # type: ignore[arg-type]

    def _training_loss(self, data: TrainingData) -> Any:
        return _Generated(super()._training_loss(data), self.view)

    def _measure_curvature(self, *_: Any) -> None:
        return None


class _ChainPerceptron(HMPerceptron):
    """A perceptron with the features that CRFsuite generates."""

    generation: Generation
    view: TrainingView

    def _variances(self, data: TrainingData, state: State) -> np.ndarray:
        L = len(self.classes_)
        generated = np.zeros(state.nodes.size + L * L)
        generated[self.generation.weights(data.encoded, data.labels, L)] = 1.0
        pairs = generated[-L * L :].reshape(L, L).T.ravel()
        return np.concatenate([generated[: -L * L], np.zeros(state.short.size), pairs])

    def _measure_curvature(self, data: TrainingData) -> None:
        return None

    def _after_epoch(self, epoch: Pass, examples: TrainingExamples) -> None:
        sizes = np.diff(examples.offsets)
        costs = epoch.costs if self._update.kind else epoch.mistaken / sizes
        self.view.costs.append(float(costs.sum()))
        self.view.weights = self.crfsuite_weights(0)

    def crfsuite_weights(self, more_steps: int) -> np.ndarray:
        """Return the weights of features and label pairs after more steps without a mistake."""
        state = self._state
        nodes, pairs = state.nodes, state.full[0].T
        if self._averaged:
            steps = float(state.steps[0]) + more_steps + 1.0
            nodes, pairs = nodes - state.late_nodes / steps, pairs - state.late_full[0].T / steps
        return np.concatenate([nodes.ravel(), pairs.ravel()])


class Job(NamedTuple):
    """What to train.

    Attributes
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    generation : Generation
        Which features there are.
    options : dict
        The parameters of the algorithm that were given, by the names of sklearn-crfsuite.
    """

    algorithm: str
    generation: Generation
    options: dict[str, Any]

    def option(self, name: str, default: Any) -> Any:
        """Return a parameter, or CRFsuite's default."""
        return self.options.get(name, default)


# Called after every iteration with what was measured, and how to make a model of the
# present weights.
OnIteration = Callable[[dict[str, Any], Callable[[], CRF]], None]


def train(job: Job, X: Any, y: Any, on_iteration: OnIteration) -> CRF:
    """Train a model of CRFsuite.

    Parameters
    ----------
    job : Job
        What to train.
    X, y : lists of lists
        Items and their labels.
    on_iteration : callable
        Called after every iteration.

    Returns
    -------
    CRF
        The model, with labels in the order of their first occurrence, without attributes whose
        weights are all 0.
    """
    learner, view = _learner(job), TrainingView([])
    data = _training_data(X, y, view, grouped=isinstance(learner, CRF))
    size = len(data.encoded.corpus)
    learner.generation, learner.view = job.generation, view
    learner.set_params(callback=_Watch(job, view, size, on_iteration))
    learner._check_parameters()
    learner._fit_encoded(data)
    if isinstance(learner, HMPerceptron):
        epochs_left = job.option("max_iterations", 100) - len(learner.mistakes_)
        # CRFsuite goes on when there are no mistakes.
        idle = not learner.mistakes_[-1].nodes and not job.option("epsilon", 0.0)
        view.weights = learner.crfsuite_weights(epochs_left * size if idle else 0)
    else:
        view.weights = learner.weights_
    return view.model()


def _training_data(X: Any, y: Any, view: TrainingView, grouped: bool) -> TrainingData:
    """Items and labels as training data; empty sequences are left out.

    Labels and attributes are noted in `view`. The attributes may be grouped by channel.
    """
    vocabulary = Vocabulary()
    matrix, offsets = vocabulary.rows(X)
    number: dict[str, int] = {}
    label_lists = list(y)
    if len(label_lists) != len(offsets) - 1:
        raise DataError(
            f"X has {len(offsets) - 1} sequences but y has {len(label_lists)}; give one list each"
        )
    flat = []
    for i, (labels, size) in enumerate(zip(label_lists, np.diff(offsets).tolist(), strict=True)):
        numbers = [number.setdefault(label, len(number)) for label in labels]
        if len(numbers) != size:
            raise DataError(f"X[{i}] has {size} items but y[{i}] has {len(numbers)} labels; give one each")
        flat += numbers
    if not flat:
        raise DataError("there is nothing to learn from: X has no items; give at least one sequence")
    if bad := [label for label in number if not isinstance(label, str) or not label]:
        raise DataError(f"the label {described(bad[0])}: labels are strings, not empty; convert them")
    kind, encoder = Kind("features"), WindowEncoder("word", 0)
    view.labels, view.names = list(number), list(vocabulary.numbers)
    encoder.restore([view.names], kind)
    groups = _groups(view.names) if grouped else [np.arange(len(view.names))]
    view.rows = np.argsort(np.concatenate(groups))
    matrix.indices = view.rows[matrix.indices].astype(matrix.indices.dtype)
    matrix.sort_indices()
    tables: list[Table] = []
    channels: list[Channel] = []
    for end, size in zip(np.cumsum(list(map(len, groups))), map(len, groups), strict=True):
        part, rows = _distinct(matrix[:, end - size : end])
        channels.append(Channel(str(len(tables)), len(tables), rows))
        tables.append(Table.of(part, np.zeros(part.shape[0]), np.zeros(part.shape[0])))
    encoded = Encoded(Corpus.of_rows(np.unique(offsets), kind), tables, channels, [])
    return TrainingData(
        encoder, encoded, list(range(len(number))), np.array(flat, dtype=np.int32), None, None
    )


def _groups(names: list[str]) -> list[np.ndarray]:
    """Attributes by the offset that their names begin with, as ``-1:``; all others are one group.

    Together they have as many combinations as there are tokens, but those of a neighbour have as
    many as there are words, and what is computed once for each combination takes less time.
    """
    matches = [_OFFSET.match(name) for name in names]
    offsets = [match[0] if match else "" for match in matches]
    frequent = [offset for offset, _ in Counter(offsets).most_common(_MOST_GROUPS)]
    number = {offset: k for k, offset in enumerate(frequent)}
    groups = np.array([number.get(offset, 0) for offset in offsets])
    return [np.flatnonzero(groups == k) for k in range(len(frequent))]


def _distinct(matrix: sp.csr_matrix) -> tuple[sp.csr_matrix, np.ndarray]:
    """The distinct rows of a matrix, and which of them each row is."""
    random = np.random.default_rng(0).random((2, matrix.shape[1]))
    keys = matrix @ random[0] + 1j * (matrix @ random[1])
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    rows = matrix[first]
    again = rows[number]
    same = all(
        np.array_equal(getattr(again, part), getattr(matrix, part)) for part in ("indices", "indptr", "data")
    )
    return (rows, number.astype(np.int32)) if same else (matrix, np.arange(matrix.shape[0], dtype=np.int32))


def _learner(job: Job) -> _ChainCRF | _ChainPerceptron:
    """The learner of an algorithm; its callback ends the training, not a limit of the learner."""
    if job.algorithm in ("lbfgs", "l2sgd"):
        solver = "lbfgs" if job.algorithm == "lbfgs" else "sgd"
        l1 = job.option("c1", 0.0) if solver == "lbfgs" else 0.0
        return _ChainCRF(
            l1=l1, l2=job.option("c2", 1.0), window=0, solver=solver, tol=0.0, max_iter=_UNLIMITED
        )
    kind = {"ap": "perceptron", "pa": "passive-aggressive", "arow": "arow"}[job.algorithm]
    C, rescale, average = 1.0, True, True
    if job.algorithm == "pa":
        C, rescale = job.option("c", 1.0), bool(job.option("error_sensitive", True))
        average = bool(job.option("averaging", True))
        if job.option("pa_type", 1) == 2:
            kind = "passive-aggressive-2"
        elif job.option("pa_type", 1) == 0:
            C = 1e12  # no limit
    if job.algorithm == "arow":
        C, average = job.option("variance", 1.0) / job.option("gamma", 1.0), False
    epochs = job.option("max_iterations", 100)
    return _ChainPerceptron(window=0, epochs=epochs, update=kind, C=C, rescale=rescale, average=average)


class _Watch:
    """Ends a training where CRFsuite would, and reports its iterations."""

    def __init__(self, job: Job, view: TrainingView, size: int, on_iteration: OnIteration) -> None:
        self.job, self.view, self.size, self.on_iteration = job, view, size, on_iteration
        self.losses: list[float] = []
        self.began = time.perf_counter()

    def __call__(self, progress: Iteration) -> None:
        now, weights = time.perf_counter(), self.view.weights
        loss = self.view.costs[-1] if progress.objective is None else progress.objective
        norm = float(np.linalg.norm(weights))
        measured = {"num": progress.iteration, "scores": {}, "loss": loss, "feature_norm": norm}
        measured |= {"time": now - self.began}
        if self.job.algorithm == "lbfgs":
            measured |= {
                "error_norm": progress.gradient_norm,
                "active_features": int(np.count_nonzero(weights)),
            }
        self.on_iteration(measured, self.view.model)
        self.began = time.perf_counter()
        self.losses.append(loss)
        if self._converged(progress, loss, norm):
            raise StopIteration

    def _converged(self, progress: Iteration, loss: float, norm: float) -> bool:
        option, algorithm = self.job.option, self.job.algorithm
        if algorithm in ("ap", "pa", "arow"):
            mean, epsilon = loss / self.size, option("epsilon", 0.0)
            return mean <= epsilon if algorithm == "arow" else mean < epsilon
        limit = option("max_iterations", _UNLIMITED if algorithm == "lbfgs" else 1000)
        period, delta = option("period", 10), option("delta", 1e-5 if algorithm == "lbfgs" else 1e-6)
        flat = len(self.losses) > period and self.losses[-1 - period] - loss < delta * abs(loss)
        slope = progress.gradient_norm if algorithm == "lbfgs" else None
        small = slope is not None and slope <= option("epsilon", 1e-5) * max(1.0, norm)
        return flat or small or progress.iteration >= limit
