"""The labeler that chooses: learner, features, kernel, regularization and decoding by the data.

Candidates (`fuda.models.choice.candidates`) are compared by cross-validation with successive
halving within a time budget (`fuda.selection.search`). Of those that remain, the best one or a
combination of the best few (`fuda.models.choice.combination`) is fitted to all structures.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from fuda.checks import check_arrays, check_flags, is_number
from fuda.data.encoding import Encoded
from fuda.data.labels import NoLabelsError
from fuda.errors import DataError, short
from fuda.explanations.decisions import Decision
from fuda.models.base import Labeler, TrainingData, check_without_checkpoint
from fuda.models.choice.candidate_fits import Fits, Output
from fuda.models.choice.candidates import candidates_for
from fuda.models.choice.combination import Combination, Decoder
from fuda.models.choice.opinions import has_scores
from fuda.models.choice.tuning import LARGEST_POWER, Opinions, Tuner
from fuda.models.explained.combination import combined_decision
from fuda.models.fitting.one_state import on_snapshot
from fuda.progress import Callback, Iterations, warn
from fuda.runtime.estimators import ConvergenceWarning, check_random_state
from fuda.runtime.interrupts import inner_training, is_inner
from fuda.schemes import scheme_name
from fuda.selection.folds import Split
from fuda.selection.goals import Goal, goal_for
from fuda.selection.search import Candidate, Race, Trial
from fuda.selection.search_report import SearchReport
from fuda.selection.side_by_side import worker_count
from fuda.selection.significance import behind, standard_error
from fuda.selection.validation import Stopwatch

Array = np.ndarray
# The largest number of models in a combination.
_MOST_MEMBERS = 4
# The smallest and the largest budget in seconds, and the nodes up to which it is the smallest.
_LEAST_SECONDS, _MOST_SECONDS, _NODES = 60.0, 1200.0, 13_000
# With at least so many nodes, each family is fitted to so many structures before times are
# measured, to compile its code. Few iterations suffice for that; some data would need many.
_WARM_UP_NODES, _WARM_UP_STRUCTURES = 1000, 8
_WARM_UP_PARAMETERS = {"max_iter": 3, "epochs": 2}
# Another candidate replaces the default if it is better by more than so many standard errors.
_ERRORS = 1.0
# One more member of a combination must improve the score by `_GAIN`. The score may fall by
# `_COST_OF_ANOTHER`, if this is less than `_CHANCE` standard errors, for one of another family of
# learners: means over different models generalize better than out-of-fold scores of few structures
# show. Candidates that join on proof only must improve the score by `_PROOF` standard errors.
# Anything replaces a team only if it is better by `_CLEAR_PROOF` standard errors, since few
# structures tell little.
_GAIN, _COST_OF_ANOTHER, _CHANCE, _PROOF, _CLEAR_PROOF = 0.002, 0.01, 2.0, 2.0, 3.0
# The number of bootstrap samples of structures from which a standard error is estimated.
_ROUNDS = 200


def budget_for(nodes: int) -> float:
    """Seconds that suffice to compare candidates on so many nodes."""
    return min(_MOST_SECONDS, _LEAST_SECONDS * max(1.0, nodes / _NODES))


class _Choice(NamedTuple):
    """Candidates to fit to all structures, and how they are decoded.

    `decoder` decodes their opinions. If it is None, there is a single candidate, which is decoded
    by Viterbi or, if `posterior` is true, to the best label of each node.
    """

    trials: list[Trial]
    decoder: Decoder | None
    posterior: bool = False


class _TunedTeam(NamedTuple):
    """Candidates in combination, their tuned decoder, and their out-of-fold score and counts."""

    members: list[Trial]
    decoder: Decoder
    score: float
    counts: Array


class Auto(Labeler):
    """A labeler that chooses learner, features, kernel, regularization and decoding by the data.

    Parameters
    ----------
    budget : float or None, default=None
        Seconds for everything, including the final fit, but not for the compilation of code on its
        first use. None is 60 seconds for up to 13,000 nodes, in proportion for more, and at most
        20 minutes. If no candidate can be compared in that time, the default for the kind of data
        is fitted, however long it takes.
    combine : bool, default=True
        Whether several models may be combined. A single one has all methods of its learner, such
        as `partial_fit`, and a smaller file.
    features : str, Template or callable, optional
        Features to use in place of those that are compared.
    candidates : dict of str to Labeler, optional
        Models to compare in place of those of the table, the default first.
    n_jobs : int or None, default=None
        Threads, in which candidates are compared side by side; None is all cores. Acts at once.
        Within ``joblib.parallel_config(backend="dask")`` the workers of the cluster compare them.
    random_state : int, RandomState or None, default=0
        Seed of the folds.
    callback : callable or None, default=None
        Called after every fit with a `fuda.progress.Iteration`. It may raise StopIteration to end
        the comparison and fit the best so far. Never stored in model files.
    verbose : bool, default=False
        Whether to report what is compared on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,), dtype object
        The labels, sorted.
    best_ : Labeler or Combination
        The chosen model, fitted to all structures. This model has its methods and attributes.
    report_ : SearchReport
        The candidates with their scores and times; ``print`` shows a table.

    Notes
    -----
    The objective is entity F1 where labels encode segments, macro F1 where four of five nodes have
    the same label, else token accuracy. The scores of the report are out of fold, and slightly
    optimistic, since decoding is chosen on the same predictions.

    Ctrl-C ends the comparison and fits the best so far; a second one ends the fit.

    References
    ----------
    .. [1] K. Jamieson, A. Talwalkar. Non-stochastic best arm identification and hyperparameter
       optimization. AISTATS 2016, section 3: successive halving.
    .. [2] G. Hinton. Training products of experts by minimizing contrastive divergence. Neural
       Computation 14, 2002, equation (1): the product of what models say of a labeling.

    Examples
    --------
    >>> from fuda import CRF, HMM
    >>> X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"]] * 3
    >>> y = [["PER", "O", "O", "LOC"], ["LOC", "O", "O"]] * 3
    >>> model = Auto(candidates={"crf": CRF(), "hmm": HMM()}).fit(X, y)
    >>> model.predict([["Ana", "is", "in", "Lima"]])[0]
    ['PER', 'O', 'O', 'LOC']
    """

    _shapes: ClassVar[tuple[str, ...]] = ("sequence", "tree", "dag")
    _minimum_counts: ClassVar[tuple[int, int]] = (0, 1)  # not counting those of the candidates
    _live_params: ClassVar[tuple[str, ...]] = ("n_jobs", "verbose")
    _defaults: ClassVar[dict[str, Any]] = {"features": "word"}
    window = 0  # candidates have their own encoders; that of this model is not used

    best_: Any
    report_: SearchReport

    def __init__(
        self,
        budget: float | None = None,
        *,
        combine: bool = True,
        features: Any = None,
        candidates: dict[str, Labeler] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.budget, self.combine, self.features, self.candidates = budget, combine, features, candidates
        self.n_jobs, self.random_state = n_jobs, random_state
        self.callback, self.verbose = callback, verbose

    @on_snapshot
    def predict(self, X: Any, **keywords: Any) -> Array:
        """Label structures by the model that was chosen.

        Parameters
        ----------
        X : list of structures
            Of the shape that the model was fitted on.
        **keywords : Any
            Further arguments of the chosen model's `predict`.

        Returns
        -------
        ndarray of shape (n_structures,), dtype object
            One list of labels per structure.
        """
        self._check_fitted()
        labels: Array = self.best_.predict(X, **keywords)
        return labels

    def __getattr__(self, name: str) -> Any:
        """Return an attribute or method of the chosen model that this class does not have."""
        best = self.__dict__.get("best_")
        if best is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name == "partial_fit" and isinstance(best, Combination):
            raise AttributeError(
                "the models that decide together in this Auto have no partial_fit; fit Auto(combine=False), "
                "which chooses a single one"
            )
        attribute = getattr(best, name)
        return self._partial_fit_best if name == "partial_fit" else attribute

    def _partial_fit_best(self, X: Any, y: Any, **keywords: Any) -> Self:
        """Call `partial_fit` of the chosen model."""
        try:
            self.best_.partial_fit(X, y, **keywords)
        finally:
            self.classes_ = self.best_.classes_  # there may be new labels
        return self

    def _decision(self, encoded: Encoded) -> Decision:
        """The decision of `predict` about one structure."""
        if isinstance(self.best_, Combination):
            return combined_decision(self.best_, encoded.corpus)
        decision: Decision = self.best_._decision(self.best_._encode_corpus(encoded.corpus))
        return decision

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.budget is not None and not is_number(self.budget, 0):
            raise DataError(f"budget={short(self.budget)}: give seconds, a number of at least 0, or None")
        check_flags(self, "combine")
        if self.candidates is not None:
            if not isinstance(self.candidates, dict) or not self.candidates:
                raise DataError(f"candidates={short(self.candidates)}: give a dict of names to labelers")
            for name, model in self.candidates.items():
                if not isinstance(name, str) or not isinstance(model, Labeler) or isinstance(model, Auto):
                    raise DataError(f"candidates: {short(name)} is {short(model)}; give names and labelers")
                model._check_parameters()
                check_without_checkpoint(model, f"candidates: {short(name)}")

    def _fit(self, data: TrainingData) -> None:
        search = _Search(self, data)
        with Iterations("Auto", self.verbose, self.callback) as progress:
            try:
                with inner_training():
                    search.run(progress)
            except StopIteration:
                pass
            except KeyboardInterrupt:
                if is_inner():
                    raise
                warn("Auto was interrupted; it fits the best model so far", ConvergenceWarning)
            choice = search.choice()
            members = [search.refitted(trial, progress) for trial in choice.trials]
        if choice.posterior:
            members[0].set_params(decode="posterior")
        self.best_ = members[0] if choice.decoder is None else Combination(members, choice.decoder)
        self.report_ = search.report(choice)

    def _arrays(self) -> dict[str, Array]:
        if not isinstance(self.best_, Combination):
            return {}
        decoder = self.best_.decoder
        by_scores = decoder.by_scores or (False,) * len(self.best_.members)
        arrays = {name: getattr(decoder, name) for name in ("powers", "bias", "pairs")}
        return arrays | {"by_scores": np.array(by_scores, dtype=np.uint8)}

    def _texts(self) -> list[list[str]]:
        is_combined = isinstance(self.best_, Combination)
        scheme = self.best_.decoder.scheme if is_combined else None
        return [[json.dumps({"scheme": scheme, "report": asdict(self.report_)})]]

    def _parts(self) -> dict[str, Labeler]:
        members = self.best_.members if isinstance(self.best_, Combination) else [self.best_]
        return {f"member{k}": member for k, member in enumerate(members)}

    def _restore(self, arrays: dict[str, Array], texts: list[list[str]], parts: dict[str, Labeler]) -> None:
        members = [parts.get(f"member{k}") for k in range(len(parts))]
        if None in members or not members or len(texts) != 1 or len(texts[0]) != 1:
            raise DataError("its members or its report are not all there")
        if any(list(member.classes_) != list(self.classes_) for member in members if member):
            raise DataError("its members have other labels")
        scheme, self.report_ = _read_report(texts[0][0])
        self.best_ = members[0]
        if arrays and all(hasattr(member, "predict_marginals") for member in members):
            decoder = _restored(arrays, members, len(self.classes_), scheme)
            self.best_ = Combination([member for member in members if member], decoder)
        elif arrays or len(members) > 1:
            raise DataError("its members cannot decide together")
        if any(member.shape_ != self.shape_ for member in members if member):
            raise DataError("its members label structures of another shape")


def _restored(arrays: dict[str, Array], members: list[Any], L: int, scheme: str | None) -> Decoder:
    """The decoder of a model file; in version 1, all members are combined by their marginals."""
    count = len(members)
    arrays = {"by_scores": np.zeros(count, dtype=np.uint8)} | arrays
    shapes = {"powers": (count,), "bias": (L,), "pairs": (L, L), "by_scores": (count,)}
    check_arrays(arrays, shapes, {"by_scores": np.uint8})
    if not ((arrays["powers"] >= 0) & (arrays["powers"] <= LARGEST_POWER)).all():
        raise DataError(f"the powers of its members are not from 0 to {LARGEST_POWER:g}")
    by_scores = tuple(arrays["by_scores"].astype(bool).tolist())
    for member, scores in zip(members, by_scores, strict=True):
        if scores and not has_scores(member):
            raise DataError(f"its member {short(member)} has no scores of label pairs to decide by")
    return Decoder(arrays["powers"], arrays["bias"], arrays["pairs"], scheme, by_scores)


def _read_report(text: str) -> tuple[str | None, SearchReport]:
    """The scheme and the report of a model file."""
    stored = json.loads(text)
    scheme = None if stored["scheme"] is None else scheme_name(stored["scheme"])
    report = SearchReport(**stored["report"])
    report.text()  # fails where something is missing
    return scheme, report


class _Search:
    """The race between candidates on training data, and the choice after it."""

    def __init__(self, auto: Auto, data: TrainingData) -> None:
        self.corpus, self.classes, self.labels = data.encoded.corpus, list(data.classes), data.labels
        self.n_jobs, self.combine = auto.n_jobs, auto.combine
        names = np.array([*self.classes, None], dtype=object)
        y = [part.tolist() for part in self.corpus.split(names[self.labels])]
        self.goal: Goal = goal_for(y)
        self.fits = Fits(data, self.goal.scheme)
        candidates = candidates_for(self.corpus, auto.features)
        if auto.candidates is not None:
            candidates = [Candidate(name, model) for name, model in auto.candidates.items()]
        sizes = np.diff(self.corpus.offsets)
        budget = budget_for(self.corpus.size) if auto.budget is None else auto.budget
        callbacks, workers = (self._show, self._after_fit), worker_count(auto.n_jobs)
        self.race = Race(candidates, sizes, self.goal, budget, self.fits, self._count, *callbacks, workers)
        self.race.seed = int(check_random_state(auto.random_state).randint(1 << 30))
        self._tuner: tuple[int, Tuner] | None = None

    def run(self, progress: Iterations) -> None:
        """Compare the candidates, if there are at least two structures and candidates."""
        self.progress = progress
        if len(self.corpus) > 1 and len(self.race.trials) > 1:
            if self.corpus.size >= _WARM_UP_NODES:
                self._warm_up()
            with suppress(NoLabelsError):  # a part has no labels: there are too few to compare on
                self.race.run()

    def _warm_up(self) -> None:
        """Fit a model of each family to few structures, so that times exclude compilation."""
        few, families = np.arange(min(_WARM_UP_STRUCTURES, len(self.corpus))), set[str]()
        for trial in self.race.trials:
            if trial.family not in families:
                families.add(trial.family)
                self._show(f"compiling or loading {trial.candidate.name}")
                with suppress(DataError):  # the race will report it
                    briefly = replace(trial.candidate, quick=trial.candidate.quick | _WARM_UP_PARAMETERS)
                    self.fits(briefly, Split(few, few[:1]), self.n_jobs)
        self.race.clock = Stopwatch()

    def _show(self, text: str) -> None:
        self.progress.show(self.progress.count + 1, text)

    def _after_fit(self) -> None:
        if self.progress.report():
            raise StopIteration

    def _tuner_of(self, tests: list[Array]) -> Tuner:
        """The tuner of these test parts, which is the same for all candidates."""
        if self._tuner is None or self._tuner[0] != sum(map(len, tests)):
            members = np.concatenate(tests)
            labels = self.labels[self.corpus.nodes_of(members)]
            parts = [self.corpus.take(test) for test in tests]
            self._tuner = len(members), Tuner(parts, labels, self.classes, self.goal, self.n_jobs)
        return self._tuner[1]

    def _count(self, tests: list[Array], outputs: list[Output]) -> Array:
        """Counts by a model's own decoding, or by a tuned decoder of its opinions if better."""
        tuner = self._tuner_of(tests)
        plain, _ = self._plain_counts(tuner, outputs)
        if not self.combine:
            return plain
        opinions = [output.opinion for output in outputs]
        _, score, predicted = tuner.tuned([opinions], [tuner.power(opinions)])
        return plain if self.goal.score(plain) >= score else tuner.counts(predicted)

    def _plain_counts(self, tuner: Tuner, outputs: list[Output]) -> tuple[Array, bool]:
        """The counts of a model's own decoding, and whether it decodes each node by itself.

        It does so if that is better than Viterbi by more than chance.
        """
        viterbi = tuner.counts(np.concatenate([output.labels for output in outputs]))
        posteriors = [output.posterior for output in outputs if output.posterior is not None]
        if len(posteriors) == len(outputs):
            posterior = tuner.counts(np.concatenate(posteriors))
            if behind(self.goal, posterior, viterbi, _ERRORS):
                return posterior, True
        return viterbi, False

    def choice(self) -> _Choice:
        """The best candidate, or the best combination, for which there is time.

        The default counts as the best if its score is lower by chance only: of many equally good
        candidates one has the largest score by chance. A team of candidates that are usually good
        together is chosen unless another choice is better by more than chance, and more members
        join it only if that is better by more than chance.
        """
        trials = [trial for trial in self.race.running if trial.outputs]
        if not trials:
            return _Choice([self.race.trials[0]], None)
        tuner = self._tuner_of(self.race.tests)
        if not self.race.is_representative and self.race.trials[0] in trials:
            return self._by_default(tuner)
        opinions: dict[int, Opinions] = {id(t): [output.opinion for output in t.outputs] for t in trials}
        powers = {key: tuner.power(of_trial) for key, of_trial in opinions.items()}
        default, left = self.race.trials[0], self.race.seconds_left
        trials = [t for t in trials if t is default or self._seconds([t]) < left] or trials[:1]
        if default in trials and not behind(self.goal, trials[0].counts, default.counts, _ERRORS):
            trials = [default, *(trial for trial in trials if trial is not default)]

        def evaluate_team(members: list[Trial]) -> _TunedTeam:
            keys = [id(trial) for trial in members]
            tuned = tuner.tuned([opinions[key] for key in keys], [powers[key] for key in keys])
            return _TunedTeam(members, *tuned[:2], tuner.counts(tuned[2]))

        counts, posterior = self._plain_counts(tuner, trials[0].outputs)
        chosen, best, decoder = trials[:1], self.goal.score(counts), None
        if self.combine:
            alone = evaluate_team(chosen)
            if alone.score > best:
                _, decoder, best, counts = alone
            tuned_teams = [evaluate_team(members) for members in self._teams(trials)]
            team = max(tuned_teams, key=lambda team: team.score, default=None)
            if team and not behind(self.goal, counts, team.counts, _CLEAR_PROOF):
                chosen, decoder, best, counts = team
        while self.combine and len(chosen) < min(_MOST_MEMBERS, len(trials)):
            more = [[*chosen, trial] for trial in trials if trial not in chosen]
            more = [members for members in more if self._seconds(members) < self.race.seconds_left]
            scored = [(self._net_score(team, counts), team) for team in map(evaluate_team, more)]
            better = [(net_score, team) for net_score, team in scored if net_score >= best]
            if not better:
                break
            chosen, decoder, best, counts = max(better, key=lambda pair: pair[0])[1]
        self.out_of_fold = best
        return _Choice(chosen, decoder, posterior and decoder is None)

    def _teams(self, trials: list[Trial]) -> list[list[Trial]]:
        """The candidates of each team for which there is time, where there are at least two."""
        teams = []
        for number in sorted({number for trial in trials for number in trial.candidate.teams}):
            team = [trial for trial in trials if number in trial.candidate.teams]
            while len(team) > 1 and self._seconds(team) >= self.race.seconds_left:
                team.remove(max(team, key=self.race.seconds_to_refit))
            teams += [team] if len(team) > 1 else []
        return teams

    def _by_default(self, tuner: Tuner) -> _Choice:
        """The choice if time ran out after a small part, on which scores are not representative.

        The default is combined with the first candidate of another family that may join it and
        scores labelings too, if there is time for both; their decoder is not tuned.
        """
        default = self.race.trials[0]
        counts, posterior = self._plain_counts(tuner, default.outputs)
        self.out_of_fold = self.goal.score(counts)
        for trial in self.race.trials[1:] if self.combine else []:
            both = [default, trial]
            have_scores = [t.outputs and t.outputs[0].opinion.pairs is not None for t in both]
            can_join = trial.candidate.joins and trial.family != default.family and all(have_scores)
            if can_join and self._seconds(both) < self.race.seconds_left:
                return _Choice(both, tuner.untuned(2))
        return _Choice([default], None, posterior)

    def _net_score(self, team: _TunedTeam, counts: Array) -> float:
        """The score of a combination, less the gain over `counts` that its last member needs."""
        *before, last = team.members
        is_team = sum(bool(trial.candidate.teams) for trial in before) > 1
        if is_team or not last.candidate.joins:
            return team.score if behind(self.goal, team.counts, counts, _PROOF) else -np.inf
        if last.family in {trial.family for trial in before}:
            return team.score - _GAIN
        chance = _CHANCE * standard_error(self.goal, team.counts, counts, _ROUNDS)
        return team.score + min(_COST_OF_ANOTHER, chance)

    def _seconds(self, trials: list[Trial]) -> float:
        return sum(map(self.race.seconds_to_refit, trials))

    def refitted(self, trial: Trial, progress: Iterations) -> Labeler:
        """The model of a candidate, fitted to all structures; quickly, if time is short."""
        self._show(f"{trial.candidate.name} on all {len(self.corpus):,} structures")
        quick = bool(trial.times) and self._seconds([trial]) > self.race.seconds_left
        return self.fits.fitted(trial.candidate, np.arange(len(self.corpus)), quick, self.n_jobs)

    def report(self, choice: _Choice) -> SearchReport:
        """The candidates with their scores and times, and the choice."""
        names = " + ".join(trial.candidate.name for trial in choice.trials)
        by_node = ", the best label of each node" if choice.posterior else ""
        decoding = by_node if choice.decoder is None else ", decoded together"
        score = f", {self.goal.name} {100 * self.out_of_fold:.2f}" if self.race.tests else ""
        return SearchReport(self.goal.name, self.race.rows(), names + decoding + score, *self.race.clock())
