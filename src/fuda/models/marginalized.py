"""The base of the labelers with the marginalized kernel.

    S(t,σ) = Σ_{τ,ρ} α_τ(ρ) K(τ,t,ρ,σ)

are the scores of nodes t, with coefficients α at nodes τ of *support* structures, learned
by subclasses.
"""

from __future__ import annotations

from copy import copy
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from fuda.checks import check_flags, is_choice, is_number
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.data.structures import Structure
from fuda.errors import DataError, short
from fuda.explanations.base import Explanation
from fuda.explanations.decisions import Decision, explained
from fuda.kernels import Kernel, Polynomial, as_kernel, check_kernel
from fuda.marginalized import calibration, memory
from fuda.marginalized.calibration import DecisionInputs
from fuda.marginalized.engines import Engine, check_engine, on_cluster
from fuda.marginalized.kernel import MIXING, check_gap, check_mixing, label_gram
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.parts import check_parts, usual_parts
from fuda.marginalized.priors import Prior
from fuda.marginalized.problem import Examples, Settings, Sources
from fuda.marginalized.support import Support, SupportPosition, members_among, supports
from fuda.models import priors
from fuda.models.base import Labeler
from fuda.models.explained.marginalized import marginalized_decision
from fuda.models.explained.markov import encoded_question
from fuda.models.files import marginalized as marginalized_file
from fuda.models.fitting.one_state import on_snapshot
from fuda.models.fitting.training_data import TrainingData
from fuda.models.fitting.validation import Held
from fuda.models.machines import held_out
from fuda.models.machines.checks import check_fits, checked_scores
from fuda.models.machines.defaults import marginalized_defaults
from fuda.models.machines.held_out import Choice
from fuda.models.machines.predictions import DECODERS, RENAMED, MarginalizedPredictions
from fuda.models.machines.pruning import Pruning
from fuda.models.priors import PriorSource
from fuda.progress import warn
from fuda.runtime.estimators import ConvergenceWarning, check_is_fitted
from fuda.runtime.interrupts import inner_training, is_inner
from fuda.schemes import scheme_name
from fuda.storage import structures as stored_structures
from fuda.storage.checkpoint import part

Array = np.ndarray


class MarginalizedLabeler(MarginalizedPredictions):
    """Base of the labelers with the marginalized kernel.

    A subclass has the parameters declared below, among others, and defines
    `_learn(sources, labels, amounts, alpha, engines)`, which learns α (N, L) in place from the
    training structures `sources`, with a usable value at any time. `labels` (N,) are −1 where not
    known, `amounts` (N,) are weights of nodes, and `engines` are those that `_plan_joint_training`
    returned, or None.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel between observations.
    label_kernel_ : ndarray of shape (n_labels, n_labels)
        The matrix of the label kernel.
    mixing_ : float
        c, the weight of each node of a match.
    gap_ : float
        The factor per skipped node.
    parts_ : str
        The parts of structures that may match.
    prior_source_ : PriorSource
        Where the priors of structures come from.
    margins_ : ndarray or None
        The margins of clear cases, see `prune`; None where all scores are exact.
    """

    _shapes: ClassVar[tuple[str, ...]] = ("sequence", "tree", "dag")
    _minimum_counts: ClassVar[tuple[int, int]] = (0, 6)
    # Parameters of earlier versions, with the value at which a file that has them can be loaded.
    _retired: ClassVar[dict[str, Any]] = {"window": 0, "max_nodes": None}
    _live_params: ClassVar[tuple[str, ...]] = ("decode", "scheme", "n_jobs", "verbose", "engine")
    _defaults: ClassVar[dict[str, Any]] = {
        "kernel": Polynomial(1).normalized(),
        "features": "text",
        "decode": "posterior",
        "parts": None,  # chosen in `_fit`
    }
    # Whether predicted labels stay the same if the kernel is multiplied by a number.
    _is_scale_free: ClassVar[bool] = False
    window = 0  # the kernel compares the neighbours of nodes itself

    kernel: Any
    label_kernel: Any
    mixing: float | None
    prior: Any
    prior_form: str
    gap: float
    parts: str | None
    decode: str | None
    scheme: str | None
    calibrate: bool
    engine: str
    n_jobs: int | None
    cluster: str | None = None
    verbose: bool

    kernel_: Kernel
    label_kernel_: Array
    mixing_: float
    gap_: float
    parts_: str
    prior_source_: PriorSource
    margins_: Array | None
    _support: list[Support]
    _memory: list[Support]  # remembered corrections
    _calibration: calibration.Calibration
    _validation_data: Held | None = None  # set during a fit only
    # The number of epochs of trainings on folds, after a training that validation has stopped.
    _max_epochs: int | None = None

    @on_snapshot
    def explain(
        self, x: Any, node: int, *, known: Any = None, prior: Any = None, top: int = 5
    ) -> Explanation:
        """Explain the label that `predict` gives a node, against the best other one.

        Parameters
        ----------
        x : structure
            The structure.
        node : int
            The node of x whose label is explained.
        known : list, optional
            Labels of x that are known, None where the label is open.
        prior : ndarray of shape (n_nodes, n_labels), optional
            The prior of x, where the model was fitted with arrays.
        top : int, default=5
            How many support positions, and other contributions of each kind, to list: those with
            the largest shares first. All contributions add up to the difference.

        Returns
        -------
        Explanation
            Of `fuda.explanations`; ``print`` shows it.
        """
        encoded = encoded_question(self, x, node, top)
        known_labels = None if known is None else [known]
        return explained(self._decision(encoded, known_labels, prior), node, top)

    def _decision(self, encoded: Encoded, known: Any = None, prior: Any = None) -> Decision:
        """The decision of `predict` about one structure."""
        return marginalized_decision(self, encoded, prior, known)

    @property
    def support_(self) -> list[SupportPosition]:
        """All nodes with α ≠ 0, in the order of `support_structures_`."""
        check_is_fitted(self, "classes_")
        positions, first = [], 0  # the number of the first structure of a part
        for support in self._support:
            offsets, alpha = support.examples.offsets, support.alpha
            owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
            for node in np.flatnonzero(alpha.any(axis=1)).tolist():
                structure = int(owner[node])
                by_label = {self.classes_[k]: float(alpha[node, k]) for k in np.flatnonzero(alpha[node])}
                positions.append(SupportPosition(first + structure, node - int(offsets[structure]), by_label))
            first += len(offsets) - 1
        return positions

    @property
    def support_structures_(self) -> list[Structure]:
        """The structures of the support positions, then those of remembered corrections."""
        check_is_fitted(self, "classes_")
        parts = [*self._support, *self._memory]
        return [s for part in parts for s in part.examples.encoded.corpus.structures]

    def prune(self, X: Any, y: Any = None, *, prior: Any = None, loss: float = 0.001) -> int:
        """Make predictions faster, at a limited loss of quality on other data.

        On sequences with a uniform prior, `predict` labels large inputs by approximate scores, if
        there are few kinds of observations: clear cases by their neighbours, all others by matches
        that extend a few nodes. Support positions with small coefficients are removed. The
        thresholds are chosen by the quality of predicted labels, which is the F1 of entities,
        that of labels other than O, or accuracy, whichever fits the labels.

        Parameters
        ----------
        X : list of structures
            Data that the model was not fitted on.
        y : list of lists
            Their labels, None where not known.
        prior : list of ndarray, optional
            One (n_nodes, n_labels) array per structure, where the model was fitted with arrays.
        loss : float, default=0.001
            How much lower the quality may be than that of the model before pruning, from 0 to 1.

        Returns
        -------
        int
            The number of support positions removed.
        """
        self._check_fitted()
        if y is None:
            raise DataError(
                "y is missing: prune(X, y) chooses by labelled data that the model was not fitted on what "
                "predictions can do without; a threshold is not given"
            )
        if not is_number(loss, 0, 1):
            raise DataError(f"loss={short(loss)}: give the loss of quality that is allowed, from 0 to 1")
        encoded = self._encode(X)
        if encoded is None:
            raise DataError("X is empty: give structures with labels that the model was not fitted on")
        count_before = len(self.support_)
        prior_of_X = self._prior_of(encoded.corpus, prior)
        numbers = self._label_numbers(y, encoded.corpus)
        self._support, self.margins_ = Pruning(self, encoded, numbers, prior_of_X, loss).chosen()
        return count_before - len(self.support_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.mixing is not None:
            check_mixing(self.mixing, otherwise=", or None to choose it by held-out scores")
        check_gap(self.gap)
        check_parts(self.parts)
        priors.check_prior(self.prior, self.prior_form)
        if self.prior_form == "chain" and (self.gap or self.label_kernel is not None):
            raise DataError("prior_form='chain' requires gap=0 and label_kernel=None; choose 'marginals'")
        self._check_live_params()
        check_flags(self, "calibrate")
        if (self.decode == "viterbi" or self.scheme is not None) and not self.calibrate:
            raise DataError("decode='viterbi' needs calibrated probabilities; set calibrate=True")

    def _check_live_params(self) -> None:
        super()._check_live_params()
        if not is_choice(self.decode, (None, *DECODERS, *RENAMED)):
            raise DataError(f"decode={short(self.decode)}: choose {' or '.join(DECODERS)}")
        if self.scheme is not None:
            scheme_name(self.scheme)
            if self.decode not in (None, "viterbi"):
                raise DataError("scheme requires decode='viterbi', which follows its rules; set both")
        check_engine(self.engine)

    def _fit(self, data: TrainingData) -> None:
        with on_cluster(self.cluster):
            self._train_and_calibrate(data)

    def _train_and_calibrate(self, data: TrainingData) -> None:
        encoded, corpus, sample_weight = data.encoded, data.encoded.corpus, data.sample_weight
        check_fits(self, corpus)
        labels = data.labels.astype(np.int64)
        with inner_training(), part("prior"):
            prior, self.prior_source_ = priors.for_training(
                self.prior, self.prior_form, corpus, labels, self.classes_.tolist(), sample_weight
            )
        self._resolve_parameters()
        if self.prior_source_.source == priors.GIVEN:
            # Arrays are of these structures, and not stored.
            self._fitted_params["prior"] = priors.GIVEN
        examples = Examples.of(encoded, prior)
        check_kernel(self.kernel_, examples.points, corpus.place_of_type)
        amounts = np.ones(corpus.size) if data.position_weight is None else data.position_weight.copy()
        if sample_weight is not None:
            amounts *= np.repeat(sample_weight, examples.sizes)
        self.mixing_, self.parts_ = self._choose_mixing_and_parts(examples, labels, amounts)
        self._fitted_params["parts"] = None if corpus.is_chain else self.parts_
        sources = Sources(self._settings, examples, self.n_jobs)
        self._validation_data = data.held
        folds = held_out.training_parts(examples) if self.calibrate and len(corpus) > 1 else []
        engines = self._plan_joint_training(sources, [np.arange(len(corpus)), *folds], labels, amounts)
        alpha, completed = self._trained("machine", sources, labels, amounts, engines.pop(0))
        self._validation_data = None
        self._support, self._memory, self.margins_ = supports(examples, alpha), [], None
        self._calibration = calibration.untrained(len(self.classes_))
        if self.calibrate and completed and len(corpus) > 1:
            try:
                with inner_training(), part("calibration"):
                    trial = self._trial_copy(Choice(self.mixing_, self.parts_))
                    trial._max_epochs = self.n_iter_ if data.held else None
                    self._calibration = held_out.calibrated(trial, sources, labels, amounts, engines)
            except KeyboardInterrupt:
                self._warn_or_raise()

    def _plan_joint_training(
        self, sources: Sources, parts: list[Array], labels: Array, amounts: Array
    ) -> list[list[Engine] | None]:
        """Engines that train jointly on parts of the sources; None where training creates one."""
        return [None] * len(parts)

    def _learn(
        self,
        sources: Sources,
        labels: Array,
        amounts: Array,
        alpha: Array,
        engines: list[Engine] | None = None,
    ) -> None:
        raise NotImplementedError

    def _trained(
        self,
        name: str,
        sources: Sources,
        labels: Array,
        amounts: Array,
        engines: list[Engine] | None = None,
    ) -> tuple[Array, bool]:
        """α (N, L), and whether training was completed; after Ctrl-C, the α learned until then."""
        alpha = np.zeros((len(labels), len(self.classes_)))
        try:
            with part(name):
                self._learn(sources, labels, amounts, alpha, engines)
        except KeyboardInterrupt:
            if not alpha.any():
                raise  # there is nothing to keep yet
            self._warn_or_raise()
            return alpha, False
        return alpha, True

    def _warn_or_raise(self) -> None:
        """Warn about the current interrupt, or raise it again if this is an inner training."""
        if is_inner():
            raise
        text = "it predicts by what it had learned, and its probabilities are not fitted"
        warn(f"{type(self).__name__} was interrupted; {text}", ConvergenceWarning)

    def _resolve_parameters(self) -> None:
        """Set fitted attributes from the parameters of the fit."""
        params = self._fitted_params
        self.kernel_, self.gap_ = as_kernel(params["kernel"]), float(params["gap"])
        self.label_kernel_ = label_gram(params["label_kernel"], len(self.classes_))
        self.parts_ = usual_parts(self.shape_, params["parts"])

    @property
    def _settings(self) -> Settings:
        return Settings(self.kernel_, self.label_kernel_, self.mixing_, self.gap_, self.parts_)

    @property
    def _memory_settings(self) -> Settings:
        return memory.settings(self.label_kernel_, self.prior_source_.source == priors.UNIFORM)

    def _defaults_by(self, corpus: Corpus, letters: str | None) -> dict[str, Any]:
        return marginalized_defaults(self, corpus, letters)

    def _largest_mixing(self, examples: Examples) -> float:
        """The largest c with c²k ≤ 1, so that no number grows with the length of a match."""
        settings = Settings(self.kernel_, self.label_kernel_, 1.0, self.gap_)
        largest = Sources(settings, examples).largest_product()
        return float(np.clip(1.0 / np.sqrt(largest), *MIXING)) if largest > 0 else 1.0

    def _choose_mixing_and_parts(self, examples: Examples, labels: Array, amounts: Array) -> Choice:
        """c and parts: the parameters, or chosen by held-out scores where they are None."""
        c = self._largest_mixing(examples) if self.mixing is None else float(self.mixing)
        with inner_training(), part("mixing"):
            return held_out.chosen(self, examples, labels, amounts, c)

    def _trial_copy(self, choice: Choice) -> Self:
        """A copy to be trained on parts of the data; this model does not change."""
        trial = copy(self)
        trial.callback, trial.mixing_, trial.parts_ = None, *choice
        return trial

    def _for_comparison(self) -> Self:
        """This copy, set to train no longer than a comparison with other copies needs."""
        return self

    def _inputs_of(self, encoded: Encoded, prior: Any = None, margins: Array | None = None) -> DecisionInputs:
        """The scores and priors that decide about all nodes; `prior` is theirs or None."""
        prior = prior if isinstance(prior, Prior) else self._prior_of(encoded.corpus, prior)
        scores = self._scores_by(self._support, encoded, prior, margins=margins)
        inputs = self._inputs_with_memory(encoded, prior, scores)
        if margins is None or not self._memory:
            return inputs
        members = members_among(self._memory, encoded.corpus)
        if len(members):  # their corrections hold by exact scores
            nodes = encoded.corpus.nodes_of(members)
            exact = self._scores_by(self._support, encoded.take(members), prior.take(nodes))
            inputs.scores[nodes] = exact.doubles()
        return inputs

    def _inputs_with_memory(self, encoded: Encoded, prior: Prior, scores: Numbers) -> DecisionInputs:
        """The same from the scores of the support, with the memory of corrections."""
        if not self._memory:
            return DecisionInputs(scores.doubles(), prior.nodes, joint=prior.joint)
        by_memory = self._scores_by(self._memory, encoded, prior, self._memory_settings).clipped()
        recalled = memory.recalled(by_memory, prior.nodes)
        return DecisionInputs(scores.doubles(), prior.nodes, recalled, prior.joint)

    def _prior_of(self, corpus: Corpus, prior: Any) -> Prior:
        if prior is not None and self.prior_source_.form == "chain":
            raise DataError(
                "the model has a chain prior, but arrays of node marginals do not contain label pairs; "
                "leave prior out"
            )
        return self.prior_source_.prior_of(corpus, prior)

    def _support_engine(
        self, support: Support, encoded: Encoded, prior: Prior, settings: Settings | None = None
    ) -> Engine:
        targets = Examples.of(encoded, prior, support.examples.numbering)
        return support.engine(settings or self._settings, self.engine, self.n_jobs, targets)

    def _scores_by(
        self,
        parts: list[Support],
        encoded: Encoded,
        prior: Prior,
        settings: Settings | None = None,
        margins: Array | None = None,
    ) -> Numbers:
        """S (N, L) of all nodes, by parts of the support or of the memory with its settings."""
        scores = Numbers(np.zeros(prior.nodes.shape))
        engines = [self._support_engine(support, encoded, prior, settings) for support in parts]
        if margins is not None and any(engine.can_prune() for engine in engines):
            # What is approximated depends on the whole support, and on how often each type occurs.
            whole = self._cached_for(parts, lambda: self._as_loaded(parts))
            if whole is not parts:
                parts, engines = whole, [self._support_engine(whole[0], encoded, prior, settings)]
        for support, engine in zip(parts, engines, strict=True):
            scores = scores + engine.scores(support.alpha, margins)
        return checked_scores(self, scores, encoded.corpus)

    def _as_loaded(self, parts: list[Support]) -> list[Support]:
        """A support as after `load`: one part, each type in it, equal observations one type."""
        corpora = [support.examples.encoded.corpus for support in parts]
        keys = list(corpora[0].keys())
        if len(parts) == 1 and len(set(keys)) == len(keys) == len(np.unique(corpora[0].types)):
            return parts
        encoded = self.encoder_.encode([x for corpus in corpora for x in corpus.structures])
        prior = reduce(Prior.followed_by, (support.examples.prior for support in parts))
        return [Support(Examples.of(encoded, prior), np.concatenate([support.alpha for support in parts]))]

    def _arrays(self) -> dict[str, Array]:
        return marginalized_file.arrays_of(self)

    def _texts(self) -> list[list[str]]:
        return [stored_structures.pack(self.support_structures_)[0]]

    def _parts(self) -> dict[str, Labeler]:
        source = self.prior_source_.source
        return {"prior": source} if isinstance(source, Labeler) else {}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        marginalized_file.restore(self, arrays, texts[0] if texts else [], parts.get("prior"))
