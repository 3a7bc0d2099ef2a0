"""Maximum-margin training of a labeler: dual ascent over working sets, to a given duality gap.

With w in the kernel's space, F(x, y) = ⟨w, Φ(x, y)⟩, y_i the correct labeling of structure i, the
differences d_i(y) = Φ(x_i, y_i) − Φ(x_i, y) and losses Δ_i(y), which are 1 or a sum over incorrect
nodes,

    primal   ½‖w‖² + Σ_i slack_i(ξ_i),    ξ_i = max(0, max_{y ≠ y_i} Δ_i(y) − ⟨w, d_i(y)⟩)
    dual     Σ_i Σ_y α_i(y) Δ_i(y) − ½‖w‖² − Σ_i cost_i(Σ_y α_i(y)),    α ≥ 0,
             w = Σ_i Σ_y α_i(y) d_i(y)

==========  ===========  ===================
slack       slack_i(ξ)   cost_i(a)
==========  ===========  ===================
"l1"        C_i ξ        0, where a ≤ C_i
"l2"        C_i ξ² / 2   a² / 2 C_i
None        ξ = 0        0
==========  ===========  ===================

A round first measures the largest violation of the margin of each structure (two-best Viterbi),
and from these the primal, the dual and the duality gap, which is a sum over structures,

    gap_i = slack_i(ξ_i) + cost_i(a_i) − Σ_y α_i(y) (Δ_i(y) − ⟨w, d_i(y)⟩) ≥ 0.

The structures that contribute to it are then visited in random order: each adds the labeling
that violates its margin most at that moment to its working set, and its α_i is maximized exactly
with all others fixed, so the dual never decreases. Sweeps without a search for labelings follow,
as long as they promise a larger gain per visit. A structure that gains little in them is visited
less often. After some sweeps follows a line search along the sum of their changes, in which all
structures take part whose α keep moving in one direction: structures that contradict each other
gain little one by one. Where the duality gap hardly decreases, sweeps are thorough and include all
structures. Labelings whose α stays 0 are dropped.

Without slack, w need not satisfy any constraint before the end. If v < 1 is the largest violation,
w / (1 − v) satisfies all of them, which gives the primal value. No w does where the dual is
unbounded, along a ray of α with Σ α_i(y) d_i(y) = 0; each round ends by scaling α by the best
factor, so that a ray is followed at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fuda.checks import LARGEST, check_arrays, count_in, split_prefix
from fuda.errors import DataError, place
from fuda.functions import TrainingScores
from fuda.inference import Graph
from fuda.inference.best_other import best_others
from fuda.optimize import qp
from fuda.runtime.estimators import check_random_state
from fuda.runtime.parallel import Block, blocks, run
from fuda.runtime.randomness import restore_random, stored_random
from fuda.training.working_sets import (
    MarginProblem,
    PackedSets,
    Visits,
    WorkingSet,
    pack,
    products,
    sweep,
    unpack,
    visit,
    weighted_margins,
    wrong_nodes,
    wrong_somewhere,
)

Array = np.ndarray
SLACKS = ("l1", "l2", None)
_BLOCK_NODES = 1 << 12
# Structures whose duality gaps together are at most this share of the allowed one are skipped.
_IGNORED_GAP_SHARE = 0.3
_MAX_SWEEPS = 300  # per round
# Another sweep follows where the last one gained at least this share of tol times the duality gap.
_MIN_SWEEP_GAIN = 0.01
# After so many sweeps follows a line search along the sum of their changes of α.
_LINE_SEARCH_PERIOD = 4
# A structure takes part in a line search where the net change of its α is more than this share of
# the sum of the lengths of the changes.
_MIN_DIRECTNESS = 0.8
_MAX_LINE_SEARCH_STEPS = 1e6
# Rounds without progress before thorough sweeps; the number doubles where they gain little.
_PATIENCE = 5
# It is progress if the duality gap falls below this share of that `_PATIENCE` rounds before.
_MAX_GAP_RATIO = 0.9
_NO_MOVES = np.empty(0)
# A structure pauses where it gains less than this share of the mean gain per visit of a sweep.
_SMALL_GAIN_SHARE = 0.5
_MAX_PAUSE = 31  # Sweeps. The first pause is one sweep, the next are three, seven and so on.
_MAX_IDLE_ROUNDS = 20  # A labeling whose α has been 0 for more rounds is dropped.
_INFINITE = float(np.finfo(np.float64).max)  # stands for ∞ in files, which have finite numbers only
_STORED = ("first", "labelings", "losses", "gram", "alpha")  # the arrays of `PackedSets` in files
_MIN_MARGIN = 1e-7  # Data count as inseparable where ‖Σ α d‖ / Σ α ‖d‖ is below it.


class Measured(NamedTuple):
    """The state before a round.

    Attributes
    ----------
    dual, primal : float
        The objectives.
    support : int
        How many labelings have α > 0.
    """

    dual: float
    primal: float
    support: int

    @property
    def gap(self) -> float:
        """The relative duality gap, (primal − dual) / primal."""
        if self.primal == math.inf:
            return math.inf
        return (self.primal - self.dual) / self.primal if self.primal > 0 else 0.0


class MaxMargin:
    """The maximum-margin problem of a training corpus.

    Parameters
    ----------
    graph : Graph
        The structures.
    right : (N,) array of int
        The correct labels.
    scores : TrainingScores
        The scores of the nodes, a part of w; all 0.
    weights : (n,) array
        C_i.
    slack : {"l1", "l2", None}
        Which slack.
    loss : (N,) array
        What an incorrect node adds to Δ; empty where Δ = 1.
    seed : int, RandomState or None
        For the order of visits.
    n_jobs : int, optional
        Threads; None means all cores.

    Attributes
    ----------
    transitions : (L, L) array
        The weights of label pairs, the other part of w.
    working_sets : list of WorkingSet
        The working sets, with α.
    history : list of Measured
        The results of `measure` so far, in a new list after each call.
    resumed : int
        How often it had been called before the state that was restored.
    """

    def __init__(
        self,
        graph: Graph,
        right: Array,
        scores: TrainingScores,
        weights: Array,
        slack: str | None,
        loss: Array,
        seed: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.graph, self.right, self.scores, self.slack, self.loss = graph, right, scores, slack, loss
        self.weights, self.n_jobs = weights, n_jobs
        bounds = weights if slack == "l1" else np.full(len(graph), np.inf)
        self.penalties = np.zeros(len(graph))
        if slack == "l2":
            self.penalties[weights > 0] = 1.0 / weights[weights > 0]
        self.transitions = np.zeros((scores.label_count, scores.label_count))
        limits = bounds, self.penalties
        self.problem = MarginProblem(graph.offsets, graph.heads, right, *limits, self.transitions)
        sizes = np.diff(graph.offsets)
        self.working_sets = [WorkingSet(np.empty((0, size), dtype=np.int64)) for size in sizes]
        self.random = check_random_state(seed)
        self._gaps = np.empty(len(graph))
        self._measured = Measured(0.0, math.inf, 0)
        self.history: list[Measured] = []
        self.resumed = 0
        self._patience = _PATIENCE
        self._expected = math.inf  # gain of a visit when sweeps begin, from the last ones

    def measure(self) -> Measured:
        """Compute the objectives at the present α."""
        packed = pack(self.working_sets)
        weighted = np.empty(len(self.graph))  # Σ_y α_i(y) ⟨w, d_i(y)⟩
        excess = np.empty(len(self.graph))

        def fill(block: Block) -> None:
            nodes = self.graph.nodes(block)
            scores = self.scores.local(nodes.start, nodes.stop)
            forest, part = self.graph.forest(block), slice(*block)
            weighted_margins(self.problem, block[0], scores, packed, weighted[part])
            loss = self.loss[nodes] if len(self.loss) else self.loss
            right = self.right[nodes]
            labelings = np.empty_like(right)
            best_others(forest, self.transitions, scores, right, loss, labelings, excess[part])

        run(fill, blocks(self.graph.offsets, _BLOCK_NODES), self.n_jobs)
        violations = excess + (0.0 if len(self.loss) else 1.0)
        sums = np.array([s.alpha.sum() for s in self.working_sets])
        rewards = np.array([s.alpha @ s.losses for s in self.working_sets])
        slacks = np.where(self.weights > 0, np.maximum(violations, 0.0), 0.0)
        square = float(weighted.sum())
        dual, primal = float(rewards.sum()) - square / 2, square / 2
        if self.slack == "l1":
            self._gaps = self.weights * slacks - rewards + weighted
            primal += float(self.weights @ slacks)
        elif self.slack == "l2":
            self._gaps = (self.weights * slacks**2 + self.penalties * sums**2) / 2 - rewards + weighted
            primal += float(self.weights @ slacks**2) / 2
            dual -= float(self.penalties @ sums**2) / 2
        else:
            self._check_separable(square)
            self._gaps = np.where((sums > 0) | (slacks > 0), np.inf, 0.0)
            largest = slacks.max()
            primal = primal / (1 - largest) ** 2 if largest < 1 else math.inf
        self._measured = Measured(dual, float(primal), int((packed.alpha > 0).sum()))
        self.history = [*self.history, self._measured]
        return self._measured

    def state(self, final: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what `measure`, and the round after it, depend on."""
        packed, idle = pack(self.working_sets), [s.idle for s in self.working_sets]
        history = np.minimum(np.array(self.history, dtype=np.float64).reshape(-1, 3), _INFINITE)
        numbers = np.array([self._patience, min(self._expected, _INFINITE)])
        arrays = {name: getattr(packed, name) for name in _STORED}
        arrays |= {"idle": np.concatenate(idle), "history": history, "numbers": numbers}
        arrays |= {f"scores_{name}": array for name, array in self.scores.state().items()}
        values = {"rounds": len(self.history)}
        return values, arrays | {"transitions": self.transitions, "random": stored_random(self.random)}

    def restore(self, values: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Continue from a `state()`, without its last measurement, by calling `measure`."""
        of_scores, arrays = split_prefix(arrays, "scores_")
        random = arrays.pop("random", np.empty(0))
        set_arrays = {name: arrays.pop(name) for name in (*_STORED, "idle") if name in arrays}
        rounds = count_in(values, "rounds")
        shapes = {"transitions": self.transitions.shape, "history": (rounds, 3), "numbers": (2,)}
        check_arrays(arrays, shapes)
        self.working_sets = unpack(set_arrays, self.right, self.graph.offsets, len(self.transitions))
        history, (patience, expected) = arrays["history"], arrays["numbers"]
        if not len(history) or not (_PATIENCE <= patience <= LARGEST and patience % 1 == 0):
            raise DataError("it has no measurements, or no number of rounds to wait for")
        self.scores.restore(of_scores)
        restore_random(self.random, random)
        self.transitions[:] = arrays["transitions"]
        self.history = [Measured(a, _unbounded(b), int(c)) for a, b, c in history[:-1].tolist()]
        self.resumed = len(history)
        self._patience, self._expected = int(patience), _unbounded(float(expected))

    def multipliers(self) -> list[tuple[Array, Array]]:
        """The labelings in the working set of each structure, and their α."""
        return [(s.labelings, s.alpha.copy()) for s in self.working_sets]

    @property
    def _is_slow(self) -> bool:
        """Whether the duality gap has hardly decreased for `_patience` rounds."""
        wait = self._patience
        past = self.history
        return len(past) > wait and not past[-1].gap < _MAX_GAP_RATIO * past[-1 - wait].gap

    def improve(self, tol: float) -> None:
        """Run a round, after `measure`.

        Parameters
        ----------
        tol : float
            The relative duality gap to reach; structures that contribute little to it are skipped.
        """
        dual, primal, _ = self._measured
        allowed_gap = _IGNORED_GAP_SHARE * tol * primal / len(self.graph) if math.isfinite(primal) else 0.0
        active = np.flatnonzero(self._gaps > allowed_gap)
        renewed = sum(self._renew(i) for i in self.random.permutation(active).tolist())
        dual += renewed
        if self._is_slow:
            active = np.arange(len(self.working_sets))
        active = np.array([i for i in active if len(self.working_sets[i].alpha)], dtype=np.int64)
        if not len(active):
            return
        packed = pack([self.working_sets[i] for i in active])
        least = _MIN_SWEEP_GAIN * tol * (dual if self.slack is None else primal - dual)
        enough = (least if self._is_slow else max(least, renewed)) / len(active)  # a visit
        sweeps, thorough = _Sweeps(self, active, packed), self._is_slow
        for k in range(_MAX_SWEEPS // _LINE_SEARCH_PERIOD if self._expected > enough or thorough else 0):
            before = packed.alpha.copy()
            gain, count = sweeps.run_sweeps(_LINE_SEARCH_PERIOD)
            gain += sweeps.line_search(before)
            dual += gain
            if k == 0:
                self._expected = gain / count
                if thorough:
                    self._patience = _PATIENCE if gain > renewed else 2 * self._patience
            if gain / count <= enough:
                break
        for i in active:
            self.working_sets[i].drop_idle(_MAX_IDLE_ROUNDS)
        if self.slack is None:
            self._scale(dual)

    def _renew(self, i: int) -> float:
        """Add a structure's most violating labeling and maximize over its α; return the gain."""
        nodes = self.graph.nodes((i, i + 1))
        right = self.right[nodes]
        local = self.scores.local(nodes.start, nodes.stop)
        labeling, excess = np.empty_like(right), np.empty(1)
        loss = self.loss[nodes] if len(self.loss) else self.loss
        best_others(
            self.graph.forest((i, i + 1)), self.transitions, local.copy(), right, loss, labeling, excess
        )
        if excess[0] + (0.0 if len(loss) else 1.0) > 0:
            self._append(i, labeling)
        if not len(self.working_sets[i].alpha):
            return 0.0
        visits = Visits(*np.zeros((2, 1)))
        outcome = visit(0, i, self.problem, self.working_sets[i].packed(), local, _NO_MOVES, visits)
        if outcome == qp.UNBOUNDED:
            raise inseparable(i)
        self.scores.add(nodes.start, nodes.stop, local)
        return float(visits.gains[0])

    def _append(self, i: int, labeling: Array) -> None:
        """Add a labeling to a working set, unless it is there already."""
        nodes, chosen = self.graph.nodes((i, i + 1)), self.working_sets[i]
        right, parents = self.right[nodes], self.graph.heads[nodes]
        wrong = wrong_nodes(labeling, right, chosen.labelings)
        if not len(wrong):
            return
        kernel = self.scores.gram(np.arange(nodes.start, nodes.stop), nodes.start + wrong)
        gram_row = products(labeling, chosen.labelings, right, parents, nodes.start, wrong, kernel)
        loss = float(self.loss[nodes][wrong].sum()) if len(self.loss) else 1.0
        chosen.append(labeling, loss, gram_row)

    def _scale(self, dual: float) -> None:
        """Scale all α, which have no bounds, by the best factor."""
        rewards = sum(float(s.alpha @ s.losses) for s in self.working_sets)
        square = 2 * (rewards - dual)
        if square > 0:
            factor = rewards / square
            self.scores.scale(factor)
            self.transitions *= factor
            for s in self.working_sets:
                s.alpha = s.alpha * factor

    def _check_separable(self, square: float) -> None:
        """Raise where w is almost 0 although α is not; `square` is ‖w‖²."""
        lengths = np.array([s.alpha @ np.sqrt(np.diag(s.gram)) for s in self.working_sets])
        if square < (_MIN_MARGIN * lengths.sum()) ** 2:
            raise inseparable(int(lengths.argmax()))


def _unbounded(number: float) -> float:
    """A number of a file, in which ∞ is the largest finite number."""
    return math.inf if number >= _INFINITE else number


def violations(graph: Graph, right: Array, scores: Array, transitions: Array, loss: Array) -> Array:
    """(n,) max_{y ≠ y_i} Δ_i(y) − (F(y_i) − F(y)) of each structure; `scores` is overwritten."""
    excess = np.empty(len(graph))
    best_others(graph.forest((0, len(graph))), transitions, scores, right, loss, np.empty_like(right), excess)
    return excess + (0.0 if len(loss) else 1.0)


def inseparable(structure: int) -> DataError:
    """The error for data without a separating w."""
    return DataError(
        f"{place(structure)}: without slack no weights satisfy its margin together with those of the other "
        "structures, as where equal observations are labelled in different ways; choose slack='l1' or 'l2', "
        "richer features or a wider window, or correct the labels"
    )


class _Sweeps:
    """Sweeps over the packed working sets of some structures, here numbered from 0."""

    def __init__(self, problem: MaxMargin, structures: Array, packed: PackedSets) -> None:
        self.problem, self.structures, self.packed = problem, structures, packed
        self.gains, self.travelled = visits = Visits(*np.zeros((2, len(structures))))
        self._record = visits
        self._wrong = wrong_somewhere(problem.problem, structures, packed)
        self._arrays = problem.scores.arrays(np.flatnonzero(self._wrong))
        self.waits, self.pauses = np.zeros((2, len(structures)), dtype=np.int64)
        self.visits = np.zeros(len(structures), dtype=np.int64)

    def run_sweeps(self, count: int) -> tuple[float, int]:
        """Run `count` sweeps: the gain of the dual, and the number of visits."""
        self.visits[:], self.travelled[:] = 0, 0.0
        total = 0.0
        for _ in range(count):
            least = self.waits.min()
            due = np.flatnonzero(self.waits == least)
            self.waits -= least + 1
            self._visit(self.problem.random.permutation(due), _NO_MOVES)
            self.visits[due] += 1
            gains = self.gains[due]
            gain = float(gains.sum())
            total += gain
            longer = np.minimum(2 * self.pauses[due] + 1, _MAX_PAUSE)
            is_small = gains < _SMALL_GAIN_SHARE * (gain / len(due))
            self.waits[due] = self.pauses[due] = np.where(is_small, longer, 0)
        return total, int(self.visits.sum())

    def line_search(self, before: Array) -> float:
        """Search along the sum of the changes of α since `before`: the gain of the dual.

        Only structures whose α have moved in one direction take part. Structures that contradict
        each other increase their α in turn, by little per visit; together they can move as far as
        is best.
        """
        starts, alpha = self.packed.first, self.packed.alpha
        direction = np.where(alpha > 0, alpha - before, 0.0)
        moved = np.add.reduceat(np.abs(direction), starts[:-1])
        limits = self._limits(direction)
        is_direct = (self.visits > 2) & (moved > _MIN_DIRECTNESS * self.travelled) & (limits > 1)
        chosen = np.flatnonzero(is_direct)
        if not len(chosen):
            return 0.0
        direction[~np.repeat(is_direct, np.diff(starts))] = 0.0
        limit = float(limits[chosen].min())
        step = min(1.0, limit / 2)
        first, second = (self._move(chosen, step * direction) for _ in range(2))
        bend = first - second  # gains fall by as much with each step
        best = (first + bend / 2) / bend if bend > 0 else _MAX_LINE_SEARCH_STEPS
        best = min(max(best, 0.0), limit / step, _MAX_LINE_SEARCH_STEPS)
        total = first + second + self._move(chosen, (best - 2) * step * direction)
        return total if total >= 0 else total + self._move(chosen, -best * step * direction)

    def _limits(self, direction: Array) -> Array:
        """How far the α of each structure can move along a direction within their bounds."""
        starts, alpha = self.packed.first[:-1], self.packed.alpha
        falls = np.divide(alpha, -direction, out=np.full(len(alpha), np.inf), where=direction < 0)
        sums, growth = np.add.reduceat(alpha, starts), np.add.reduceat(direction, starts)
        rises = np.full(len(starts), np.inf)
        np.divide(self.problem.problem.bounds[self.structures] - sums, growth, out=rises, where=growth > 0)
        return np.minimum(np.minimum.reduceat(falls, starts), rises)

    def _move(self, chosen: Array, moves: Array) -> float:
        """Change the α of the chosen structures: the gain of the dual."""
        self._visit(chosen, moves)
        return float(self.gains[chosen].sum())

    def _visit(self, order: Array, moves: Array) -> None:
        """Visit structures in order: maximize over their α, or apply `moves` where not empty."""
        p = self.problem
        if self._arrays is not None:
            unbounded = sweep(
                order, self.structures, p.problem, self.packed, self._wrong, self._arrays, moves, self._record
            )
            if unbounded >= 0:
                raise inseparable(unbounded)
            return
        for k in order:
            i = int(self.structures[k])
            nodes = p.graph.nodes((i, i + 1))
            local = p.scores.local(nodes.start, nodes.stop)
            if visit(k, i, p.problem, self.packed, local, moves, self._record) == qp.UNBOUNDED:
                raise inseparable(i)
            p.scores.add(nodes.start, nodes.stop, local)
