"""What labelers with the marginalized kernel share.

Such a model is a set of *support* structures with coefficients α_τ(ρ) at some of their nodes, and scores

    S(t,σ) = Σ_{τ,ρ} α_τ(ρ) K(τ,t,ρ,σ)

of the nodes t of any structure, by `fuda.marginalized.machine`. A subclass says how α is learned; encoding,
c, priors, support, decoding, probabilities and files are here.
"""

from __future__ import annotations

import warnings
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from fuda import inference
from fuda.checks import check_arrays, check_flags, check_threads
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded, WindowEncoder
from fuda.data.labels import as_object_array
from fuda.data.structures import Structure
from fuda.errors import DataError, place, short
from fuda.interrupts import inner_training, is_inner
from fuda.kernels.algebra import Kernel, as_kernel, check_kernel
from fuda.kernels.points import Numbering
from fuda.marginalized import calibration
from fuda.marginalized.calibration import Calibration
from fuda.marginalized.kernel import label_gram
from fuda.marginalized.machine import Machine, Side
from fuda.marginalized.priors import Prior
from fuda.marginalized.scaled import Table
from fuda.marginalized.tables import added, doubles
from fuda.models import priors
from fuda.models.base import Labeler
from fuda.models.markov import graph_of
from fuda.models.priors import PriorSource
from fuda.schemes import OUTSIDE, legal, scheme_name
from fuda.storage import structures as stored_structures

if TYPE_CHECKING:
    from fuda.marginalized.explain import Explanation

Array = np.ndarray

DECODERS = ("pointwise", "viterbi")
ENGINES = ("auto", "cpu")
_FOLDS = 5
_SAMPLE = 20_000  # nodes that probabilities are calibrated on, at most about
_RECENT = 256  # nodes of support by `partial_fit` that are kept apart from all before, if not more


class SupportPosition(NamedTuple):
    """A node that speaks: its structure's number among the support structures, its own, and α by label."""

    structure: int
    node: int
    alpha: dict[Any, float]


class Support(NamedTuple):
    """Structures with their priors, and α (N, L) of their nodes."""

    side: Side
    alpha: Array


class MarginalizedLabeler(Labeler):
    """A subclass has the parameters below among others and defines

    - `_learn(side, labels, amounts, alpha)`, which fills α (N, L) and keeps it usable all the while, for the
      training corpus `side`; `labels` (N,) are −1 where not known, `amounts` (N,) weigh nodes.
    """

    _shapes: ClassVar[tuple[str, ...]] = ("sequence", "tree", "dag")

    kernel: Any
    label_kernel: Any
    mixing: float | None
    prior: Any
    prior_form: str
    gap: float
    decode: str
    scheme: str | None
    calibrate: bool
    engine: str
    n_jobs: int | None
    verbose: bool

    # Fitted: c, where priors come from, the support, and probabilities.
    mixing_: float
    prior_source_: PriorSource
    _support: list[Support]
    _calibration: Calibration

    def predict(self, X: Any, prior: Any = None) -> Array:
        """The labels of each structure, as a 1-D object array of lists.

        `prior` is one (nodes, labels) array a structure, in place of the priors that the model makes itself.
        """
        encoded = self._encode(X)
        if encoded is None:
            return np.empty(0, dtype=object)
        scores, belief = self._scores_of(encoded, prior)
        if self.decode == "pointwise":
            return self._named(encoded, scores.argmax(axis=1))
        nodes, pairs = self._calibration.labelings(scores, belief)
        return self._named(encoded, self._best(encoded, nodes, pairs))

    def predict_marginals(self, X: Any, prior: Any = None) -> Array:
        """P(y_t = label): one (nodes, labels) array a structure, in a 1-D object array; columns as in
        `classes_`.

        These are scores made probabilities by `fuda.marginalized.calibration`.
        """
        encoded = self._encode(X)
        if encoded is None:
            return np.empty(0, dtype=object)
        if not self.calibrate:
            raise DataError(
                "calibrate=False: scores have not been made probabilities; fit with calibrate=True"
            )
        marginals = self._calibration.marginals(*self._scores_of(encoded, prior))
        return as_object_array(encoded.corpus.split(marginals))

    def decision_scores(self, X: Any, prior: Any = None) -> Array:
        """S(t,σ): one (nodes, labels) array a structure, in a 1-D object array.

        Where numbers may pass all doubles, each node's scores are divided by a power of 2 of its own.
        """
        encoded = self._encode(X)
        if encoded is None:
            return np.empty(0, dtype=object)
        return as_object_array(encoded.corpus.split(self._scores_of(encoded, prior)[0]))

    def explain(self, x: Any, node: int, prior: Any = None, top: int = 5) -> Explanation:
        """Which support positions spoke for and against the best label of a node, by score, and its rival.

        The `top` loudest on each are given one by one, with what they matched; the shares of all add up to
        the score. ``print`` it, or see `fuda.marginalized.explain`.
        """
        from fuda.marginalized.explain import explain

        return explain(self, x, node, prior, top)

    @property
    def support_(self) -> list[SupportPosition]:
        """All nodes with α ≠ 0, support structure by support structure (`support_structures_`)."""
        check_is_fitted(self, "classes_")
        found, before = [], 0
        for side, alpha in self._support:
            owner = np.repeat(np.arange(len(side.sizes)), side.sizes)
            for node in np.flatnonzero(alpha.any(axis=1)).tolist():
                structure = int(owner[node])
                spoken = {self.classes_[k]: float(alpha[node, k]) for k in np.flatnonzero(alpha[node])}
                at = node - int(side.offsets[structure])
                found.append(SupportPosition(before + structure, at, spoken))
            before += len(side.sizes)
        return found

    @property
    def support_structures_(self) -> list[Structure]:
        """The structures that the support positions lie in."""
        check_is_fitted(self, "classes_")
        return [s for support in self._support for s in support.side.encoded.corpus.structures]

    def prune(self, threshold: float) -> int:
        """Drop α of size below `threshold` times the largest; the number of support positions that go."""
        check_is_fitted(self, "classes_")
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
            raise DataError(f"threshold={short(threshold)}: give a share of the largest α, from 0 to 1")
        before = len(self.support_)
        largest = max((np.abs(support.alpha).max(initial=0.0) for support in self._support), default=0.0)
        kept = []
        for side, alpha in self._support:
            kept += self._kept(side, np.where(np.abs(alpha) >= threshold * largest, alpha, 0.0))
        self._support = kept
        return before - len(self.support_)

    def _check_shared_parameters(self) -> None:
        as_kernel(self.kernel)
        if self.mixing is not None:
            plain = isinstance(self.mixing, int | float | np.number) and not isinstance(self.mixing, bool)
            if not plain or not 1e-150 <= self.mixing <= 1e150:
                raise DataError(
                    f"mixing={short(self.mixing)}: give c, a number above 0, or None for the largest at "
                    "which no number grows"
                )
        if isinstance(self.gap, bool) or not isinstance(self.gap, int | float) or not 0 <= self.gap <= 1:
            raise DataError(f"gap={short(self.gap)}: give a number from 0 (no gaps) to 1 (gaps at no price)")
        priors.check_prior(self.prior, self.prior_form)
        if self.prior_form == "chain" and (self.gap or self.label_kernel is not None):
            raise DataError("prior_form='chain' goes with gap=0 and label_kernel=None; choose 'marginals'")
        if self.decode not in DECODERS:
            raise DataError(f"decode={short(self.decode)}: choose {' or '.join(DECODERS)}")
        if self.scheme is not None:
            scheme_name(self.scheme)
            if self.decode == "pointwise":
                raise DataError("scheme goes with decode='viterbi', which keeps to its rules; set both")
        if self.engine == "cuda":
            raise DataError("engine='cuda' is not built; choose 'auto' or 'cpu'")
        if self.engine not in ENGINES:
            raise DataError(f"engine={short(self.engine)}: choose {' or '.join(ENGINES)}")
        check_flags(self, "verbose", "calibrate")
        check_threads(self)
        if self.decode == "viterbi" and not self.calibrate:
            raise DataError("decode='viterbi' needs scores made probabilities; set calibrate=True")

    def _fit(
        self,
        encoded: Encoded,
        labels: Array,
        sample_weight: Array | None,
        position_weight: Array | None,
    ) -> None:
        corpus = encoded.corpus
        self._check_encoded(encoded)
        labels = labels.astype(np.int64)
        with inner_training():
            prior, self.prior_source_ = priors.for_training(
                self.prior, self.prior_form, corpus, labels, self.classes_.tolist(), sample_weight
            )
        if self.prior_source_.source == priors.GIVEN:
            self._fitted_params["prior"] = priors.GIVEN  # arrays are of these structures, and not stored
        side = Side(encoded, Numbering(corpus), prior)
        check_kernel(self._kernel, side.points, corpus.place_of_type)
        self.mixing_ = self._largest_mixing(side) if self.mixing is None else float(self.mixing)
        amounts = np.ones(corpus.size) if position_weight is None else position_weight.copy()
        if sample_weight is not None:
            amounts *= np.repeat(sample_weight, side.sizes)
        alpha, whole = self._learned(side, labels, amounts)
        self._support = self._kept(side, alpha)
        self._calibration = calibration.untrained(len(self.classes_))
        if self.calibrate and whole and len(corpus) > 1:
            try:
                with inner_training():
                    # by a copy, since learning leaves more behind than α
                    self._calibration = copy(self)._calibrated(side, labels, amounts)
            except KeyboardInterrupt:
                self._warn_or_raise(stacklevel=4)

    def _learn(self, side: Side, labels: Array, amounts: Array, alpha: Array) -> None:
        raise NotImplementedError

    def _learned(self, side: Side, labels: Array, amounts: Array) -> tuple[Array, bool]:
        """α (N, L), and whether it is all that was asked for: Ctrl-C leaves what was learned until then."""
        alpha = np.zeros((len(labels), len(self.classes_)))
        try:
            self._learn(side, labels, amounts, alpha)
        except KeyboardInterrupt:
            if not alpha.any():
                raise  # there is nothing yet that would be worth keeping
            self._warn_or_raise(stacklevel=5)
            return alpha, False
        return alpha, True

    def _warn_or_raise(self, stacklevel: int) -> None:
        """Warn of the interrupt that is being handled, or raise it where this is part of larger work."""
        if is_inner():
            raise
        warnings.warn(
            f"{type(self).__name__} was interrupted; it predicts by what it had learned, and its "
            "probabilities are not fitted",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )

    def _machine(self, sources: Side, targets: Side) -> Machine:
        given = self._kernel, self._label_gram, self.mixing_, float(self.gap)
        return Machine(*given, sources, targets, n_jobs=self.n_jobs)

    @property
    def _kernel(self) -> Kernel:
        return as_kernel(self.kernel)

    @property
    def _label_gram(self) -> Array:
        return label_gram(self.label_kernel, len(self.classes_))

    def _check_encoded(self, encoded: Encoded) -> None:
        if not isinstance(self.encoder_, WindowEncoder) or self.encoder_.window:
            raise DataError(
                f"features={short(self.features)}, window={self.window}: the marginalized kernel sees the "
                "neighbours of a node by itself and compares single observations; give a feature set or "
                "function and window=0"
            )
        if self.gap and not encoded.corpus.is_chain:
            raise DataError(
                f"gap={self.gap}: only sequences have gaps, but structure 0 is a {encoded.corpus.shape}; "
                "leave gap at 0"
            )
        self._check_decoder(encoded.corpus)
        encoded.check_values()

    def _check_decoder(self, corpus: Corpus) -> None:
        if self.decode == "viterbi" and corpus.shape == "dag":
            raise DataError(
                "decode='viterbi' finds the best labelling of a sequence or tree, but structure 0 is a dag; "
                "choose decode='pointwise'"
            )
        if self.scheme is not None and not corpus.is_chain:
            raise DataError(
                f"scheme={self.scheme!r}: a tag scheme says which labels follow one another in a sequence, "
                f"but structure 0 is a {corpus.shape}; set scheme=None"
            )

    def _largest_mixing(self, side: Side) -> float:
        """The largest c at which c²k is never above 1, so that no number grows with the length of a match."""
        largest = side.largest(self._kernel, self._label_gram)[1]
        return float(1.0 / np.sqrt(largest)) if largest > 0 else 1.0

    def _kept(self, side: Side, alpha: Array) -> list[Support]:
        """The structures that have coefficients, alone."""
        members = np.flatnonzero(np.logical_or.reduceat(alpha.any(axis=1), side.offsets[:-1]))
        if not len(members):
            return []
        return [Support(side.part(self._window_encoder, members), alpha[side.nodes_of(members)])]

    def _more(self, encoded: Encoded, given: Any) -> Side:
        """Structures to learn from after `fit`, encoded anew by a vocabulary that grows by their features."""
        corpus, self.encoder_ = encoded.corpus, self.encoder_.copy()
        grown = self.encoder_.encode(corpus.structures, grow=True)
        count = grown.tables[0].n_features
        self._support = [Support(side.widened(count), alpha) for side, alpha in self._support]
        return Side(grown, Numbering(corpus), self._prior_of(corpus, given))

    def _joined(self, supports: list[Support]) -> list[Support]:
        """At most two supports: a large one, and what has come since, while that is small."""
        while len(supports) > 2 or (
            len(supports) == 2 and len(supports[1].alpha) > max(_RECENT, len(supports[0].alpha) // 8)
        ):
            *before, a, b = supports
            structures = [s for side, _ in (a, b) for s in side.encoded.corpus.structures]
            encoded = self.encoder_.encode(structures)
            prior = a.side.prior.followed_by(b.side.prior)
            side = Side(encoded, Numbering(encoded.corpus), prior)
            supports = [*before, Support(side, np.concatenate([a.alpha, b.alpha]))]
        return supports

    @property
    def _window_encoder(self) -> WindowEncoder:
        assert isinstance(self.encoder_, WindowEncoder)  # as checked in fit
        return self.encoder_

    def _scores_of(self, encoded: Encoded, given: Any = None) -> tuple[Array, Array]:
        """S (N, L) of all nodes, up to a factor a node, and their prior as its source says it."""
        prior = self._prior_of(encoded.corpus, given)
        return doubles(self._spoken(self._support, encoded, prior)), prior.nodes

    def _prior_of(self, corpus: Corpus, given: Any) -> Prior:
        if given is not None and self.prior_form == "chain":
            raise DataError(
                "the model has a chain prior, but arrays of node marginals say nothing of pairs of labels; "
                "leave prior out"
            )
        return self.prior_source_.prior_of(corpus, given)

    def _spoken(self, supports: list[Support], encoded: Encoded, prior: Prior) -> Table:
        scores: Table = np.zeros(prior.nodes.shape)
        for side, alpha in supports:
            machine = self._machine(side, Side(encoded, side.numbering, prior))
            machine.push_all(alpha)
            scores = added(scores, machine.all_scores())
        rows = doubles(scores)
        if np.isnan(rows).any():
            node = int(np.isnan(rows).any(axis=1).argmax())
            structure = int(np.searchsorted(encoded.corpus.offsets, node, side="right")) - 1
            raise DataError(
                f"{place(structure)}: the kernel {short(self._kernel)} says nan of an observation in it and "
                "one of the training data; correct the kernel, or the observation"
            )
        if not np.isfinite(rows).all():
            raise DataError(
                f"scores pass all doubles with mixing={self.mixing_:g} and {short(self._kernel)}, which is "
                "larger for two observations than for each with itself; correct the kernel, or choose a "
                "smaller mixing"
            )
        return scores

    def _calibrated(self, side: Side, labels: Array, amounts: Array) -> Calibration:
        """Probabilities fitted to the scores that structures have by machines that learned from others."""
        L, encoder, found = len(self.classes_), self._window_encoder, []
        held = _held_out(side.sizes)
        for members in held:
            rest = np.setdiff1d(np.arange(len(side.sizes)), members)
            others, asked, nodes = side.part(encoder, rest), side.part(encoder, members), side.nodes_of(rest)
            alpha, _ = self._learned(others, labels[nodes], amounts[nodes])
            found.append(doubles(self._spoken(self._kept(others, alpha), asked.encoded, asked.prior)))
        members = np.concatenate(held)
        asked, nodes = side.part(encoder, members), side.nodes_of(members)
        corpus = asked.encoded.corpus
        graph = None if corpus.shape == "dag" else graph_of(corpus)
        pairs = calibration.pair_information(labels, side.encoded.corpus.edges, L)
        scores, belief, labels = np.concatenate(found), asked.prior.nodes, labels[nodes]
        fitted = calibration.fit(scores, belief, labels, graph, pairs, self.n_jobs)
        if graph is None:
            return fitted
        labels_seen = self.classes_.tolist()
        outside = labels_seen.index(OUTSIDE) if OUTSIDE in labels_seen else None

        def quality(candidate: Calibration) -> float:
            predicted = self._best(asked.encoded, *candidate.labelings(scores, belief))
            return calibration.label_f1(labels, predicted, outside)

        return max(map(fitted.trusting, calibration.FACTORS.tolist()), key=quality)

    def _best(self, encoded: Encoded, scores: Array, pairs: Array) -> Array:
        """The best labelling as a whole, well-formed where there is a scheme."""
        corpus = encoded.corpus
        self._check_decoder(corpus)
        if self.scheme is not None:
            start, allowed, end = legal(self.classes_, self.scheme)
            scores[np.ix_(corpus.roots, np.flatnonzero(~start))] = -np.inf
            scores[np.ix_(corpus.leaves, np.flatnonzero(~end))] = -np.inf
            pairs = np.where(allowed, pairs, -np.inf)
        return inference.viterbi(graph_of(corpus), scores, pairs, self.n_jobs)[0]

    def _arrays(self) -> dict[str, Array]:
        fitted = self._calibration
        arrays = stored_structures.pack(self.support_structures_)[1]
        arrays |= {"mixing": np.array([self.mixing_])}
        arrays |= {"point": fitted.point, "whole": fitted.whole, "pairs": fitted.pairs}
        arrays["alpha"] = self._packed([alpha for _, alpha in self._support])
        if self.prior_source_.source != priors.UNIFORM:
            for name in ("nodes", "before", "after"):
                rows = [getattr(side.prior, name) for side, _ in self._support]
                if name == "nodes" or self.prior_form == "chain":
                    arrays[f"prior_{name}"] = self._packed(rows, 2 if name == "nodes" else 3)
        return arrays

    def _packed(self, rows: list[Array], ndim: int = 2) -> Array:
        return np.concatenate([np.empty((0, *[len(self.classes_)] * (ndim - 1))), *rows])

    def _texts(self) -> list[list[str]]:
        return [stored_structures.pack(self.support_structures_)[0]]

    def _parts(self) -> dict[str, Labeler]:
        source = self.prior_source_.source
        return {"prior": source} if isinstance(source, Labeler) else {}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        structures = stored_structures.unpack(texts[0] if texts else [], arrays, self.shape_)
        N, L = int(arrays["offsets"][-1]), len(self.classes_)
        shapes: dict[str, tuple[int, ...]] = {"alpha": (N, L), "mixing": (1,)}
        shapes |= {"point": (2,), "whole": (3,), "pairs": (L, L)}
        source = parts.get("prior", self.prior if isinstance(self.prior, str) else priors.GIVEN)
        form = self.prior_form
        if source != priors.UNIFORM:
            shapes["prior_nodes"] = (N, L)
            if form == "chain":
                shapes |= {"prior_before": (N, L, L), "prior_after": (N, L, L)}
        check_arrays({k: v for k, v in arrays.items() if k not in ("offsets", "types", "edges")}, shapes)
        self.mixing_ = float(arrays["mixing"][0])
        if not self.mixing_ > 0:
            raise DataError(f"its mixing is {self.mixing_}")
        self.prior_source_ = PriorSource(source, form, self.classes_.tolist())
        self._calibration = Calibration(arrays["point"], arrays["whole"], arrays["pairs"])
        self._support = []
        if structures:
            encoded = self.encoder_.encode(structures)
            if source == priors.UNIFORM:
                prior = self.prior_source_.prior_of(encoded.corpus)
            else:
                steps = arrays.get("prior_before"), arrays.get("prior_after")
                prior = Prior(arrays["prior_nodes"], *steps)
            self._support = [Support(Side(encoded, Numbering(encoded.corpus), prior), arrays["alpha"])]


def _held_out(sizes: Array) -> list[Array]:
    """Parts of the structures, dealt by a fixed shuffle, that are scored by machines that learned the rest.

    A part is a fifth of them, or about `_SAMPLE` nodes where that is less, and parts are taken while all of
    them together are not more. The shuffle is another than that of out-of-fold priors: where the parts are
    the same, priors look better on them than they are.
    """
    total = int(sizes.sum())
    count = min(len(sizes), max(_FOLDS, -(-total // _SAMPLE)))
    dealt = np.random.RandomState(1).permutation(len(sizes)) % count
    taken = max(1, min(_FOLDS, count * _SAMPLE // total))
    return [np.flatnonzero(dealt == part) for part in range(min(taken, count))]
