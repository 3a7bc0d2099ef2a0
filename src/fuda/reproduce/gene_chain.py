"""Chains of bases whose states keep the reading frame, as hidden Markov model and as CRF.

A base is in one of the states (`STATES`)

    N          outside of the gene
    S          the first base of its ATG
    E0 E1 E2   the first, second or third base of a codon
    T          the last base of its stop codon
    Dp Ip Ap   the first, an inner, the last base of an intron after p bases of a codon

and only steps that keep the frame are allowed. An intron begins with GT or GC and ends with AG; a
stop codon ends the gene, also one that an intron interrupts: introns remember T, TA and TG before
them (``I1.T``), and the first base after them what may not follow.

All scores are tied: the features of a base (`fuda.reproduce.gene_signals`), most of them log-odds
of counts, count for states by the weights of `TIED`, and steps by how often they are. With
weights of 1 that is a hidden Markov model; a CRF learns the weights, by −log P of the states
given the bases.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fuda import inference
from fuda.data.graph import Graph
from fuda.optimize import Lbfgs
from fuda.optimize.result import Function
from fuda.reproduce.gene_signals import COLUMNS, Locus, ends_of, positions, signals

Array = np.ndarray
_BEFORE = {0: ("",), 1: ("", "T"), 2: ("", "TA", "TG")}  # what introns remember, by p
_INTRON = [f"{kind}{p}{'.' * bool(m)}{m}" for kind in "DIA" for p in range(3) for m in _BEFORE[p]]
_AFTER = ["E1.T", "E2.TA", "E2.TG"]  # the first base after introns that remember something
STATES = ["N", "S", "E0", "E1", "E2", "T", *_INTRON, *_AFTER]
PLAIN = [state for state in STATES if "." not in state]  # that remember nothing, for learning

# Weights: for which states which feature counts, and the weight before learning. log 16 and so on
# are how much rarer than any base the bases of a signal are.
_EXON = "S E T"
TIED: dict[str, tuple[float, list[tuple[str, str]]]] = {
    "codons": (1.0, [("frame 0", "S E0"), ("frame 1", "E1"), ("frame 2", "E2 T")]),
    "exon": (0.0, [("base", _EXON)]),
    "repeat": (-0.5, [("repeat", _EXON)]),
    "gc of exons": (0.0, [("gc", _EXON)]),
    "outside": (0.0, [("base", "N")]),
    "gc outside": (0.0, [("gc", "N")]),
    "gc of introns": (0.0, [("gc", "I")]),
    "donor": (1.0, [("donor", "D")]),
    "GT": (np.log(16), [("GT", "D")]),
    "GC": (-2.0, [("GC", "D")]),
    "acceptor": (1.0, [("acceptor", "A")]),
    "AG": (np.log(16), [("AG", "A")]),
    "start": (1.0, [("start", "S")]),
    "ATG": (np.log(64), [("ATG", "S")]),
    "stop": (np.log(64 / 3), [("stop", "T")]),
}
COUNTED = np.array([weight for weight, _ in TIED.values()])
# The weight of the squared distance from these weights.
_L2 = 1.0
_ITERATIONS = 25
# The number of bases of a piece of a training locus.
_PIECE = 400
# Of so many pieces without exons, one is learned from, with this weight.
_SAMPLED_ONE_IN = 16


class Machine:
    """States, the steps between them, and the states that bases exclude.

    Parameters
    ----------
    states : list of str
        `STATES`, or `PLAIN`.
    """

    def __init__(self, states: Sequence[str] = STATES) -> None:
        self.states = list(states)
        self.number = {state: k for k, state in enumerate(self.states)}

    @cached_property
    def allowed(self) -> Array:
        """Which state (column) may follow which (row)."""
        return np.array([[_may_follow(a, b) for b in self.states] for a in self.states])

    @cached_property
    def ties(self) -> Array:
        """Where each weight applies: (weights, columns, states) of 0 and 1."""
        ties = np.zeros((len(TIED), len(COLUMNS), len(self.states)))
        for k, (_, parts) in enumerate(TIED.values()):
            for column, kinds in parts:
                members = [j for j, state in enumerate(self.states) if state.startswith(tuple(kinds.split()))]
                ties[k, COLUMNS.index(column), members] = 1.0
        return ties

    def scores(self, features: Array, weights: Array) -> Array:
        """Return the scores (n, states) of bases."""
        return features @ np.tensordot(weights, self.ties, axes=1)

    def steps(self, labelled: Sequence[Array]) -> Array:
        """Return log P of steps, counted in states of loci; what is remembered does not count."""
        plain = np.array([PLAIN.index(state.split(".")[0]) for state in self.states])
        counted = np.zeros((len(PLAIN), len(PLAIN)))
        for states in labelled:
            np.add.at(counted, (plain[states[:-1]], plain[states[1:]]), 1.0)
        counted = (counted + 0.5) * Machine(PLAIN).allowed
        log_p = np.log(np.maximum(counted, 1e-300) / counted.sum(axis=1, keepdims=True))
        return np.where(self.allowed, log_p[np.ix_(plain, plain)], -np.inf)

    def forbidden(self, bases: Array) -> Array:
        """Return which states bases forbid, (n, states)."""
        at = signals(bases)
        at["D"], at["A"] = np.concatenate([at["GT"], at["GC"]]), at["AG"]
        only = {"S": at["ATG"], "T": at["stop"], "D": at["D"], "A": at["A"]}
        forbidden = np.zeros((len(bases), len(self.states)), dtype=bool)
        for k, state in enumerate(self.states):
            if state[0] in only:
                forbidden[:, k] = True
                forbidden[only[state[0]], k] = False
        forbidden[at["stop"], self.number["E2"]] = True
        if len(self.states) == len(STATES):
            self._forbid_stops(bases, forbidden)
        return forbidden

    def _forbid_stops(self, bases: Array, forbidden: Array) -> None:
        """Forbid what introns cannot remember, and what would make a stop codon after them."""

        def ends(*texts: str) -> Array:
            marked = np.zeros(len(bases) + 2, dtype=bool)
            marked[ends_of(bases, texts)] = True
            return marked

        here = slice(len(bases))
        t, ta, tg = (np.concatenate([[False], ends(text)])[here] for text in ("T", "TA", "TG"))
        two = ends("AA", "AG", "GA")
        rules = {
            "D1": t, "D1.T": ~t, "D2": ta | tg, "D2.TA": ~ta, "D2.TG": ~tg,
            "E1.T": two[1 : len(bases) + 1], "E2.TA": ends("A", "G")[here], "E2.TG": ends("A")[here],
        }  # fmt: skip
        for state, rule in rules.items():
            forbidden[:, self.number[state]] |= rule

    def labels(self, locus: Locus) -> Array:
        """Return the states of a locus whose gene is known, what is remembered left out."""
        place = positions(locus)
        states = np.where(place < 0, self.number["N"], self.number["E0"] + place)
        passed = 0
        for (start, end), (following, _) in zip(locus.exons, locus.exons[1:], strict=False):
            passed += end - start
            for kind, part in (("I", slice(end, following)), ("D", end), ("A", following - 1)):
                states[part] = self.number[f"{kind}{passed % 3}"]
        states[locus.exons[0][0]], states[locus.exons[-1][1] - 1] = self.number["S"], self.number["T"]
        return states

    def predict(self, bases: Array, scores: Array, steps: Array) -> tuple[list[tuple[int, int]], float]:
        """Return the exons of the best states and their score; a locus begins and ends outside."""
        scores = np.where(self.forbidden(bases), -np.inf, scores)
        outside = np.arange(len(self.states)) == self.number["N"]
        scores[[0, -1]] = np.where(outside, scores[[0, -1]], -np.inf)
        best, score = inference.viterbi(Graph(np.array([0, len(bases)])), scores, steps)
        coding = np.isin(best, [k for k, state in enumerate(self.states) if state[0] in "SET"])
        bounds = np.flatnonzero(np.diff(np.pad(coding, 1).astype(int)))
        return list(zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True)), float(score[0])


def _may_follow(a: str, b: str) -> bool:
    """Whether a state may follow another."""
    after = {
        "N": "N S", "S": "E1", "E0": "E1 D1 D1.T", "E1": "E2 T D2 D2.TA D2.TG", "E2": "E0 D0", "T": "N",
        "E1.T": "E2", "E2.TA": "E0 D0", "E2.TG": "E0 D0",
    }  # fmt: skip
    if a in after:
        return b in after[a].split()
    kinds = {"D": "I", "I": "IA", "A": "E"}
    return b[0] in kinds[a[0]] and a[1:] == b[1:]


class Pieces(NamedTuple):
    """Pieces of training loci, one after another."""

    features: Array
    forbidden: Array
    labels: Array
    weights: Array
    offsets: Array


def pieces_of(machine: Machine, loci: Sequence[Locus], features: Sequence[Array]) -> Pieces:
    """Pieces with exons, and a sample of the others, which stand for all of them."""
    random = np.random.RandomState(0)
    parts: list[tuple[Array, ...]] = []
    weights = []
    quiet = [machine.number[state] for state in ("N", "I0", "I1", "I2")]
    for locus, rows in zip(loci, features, strict=True):
        labels, forbidden = machine.labels(locus), machine.forbidden(locus.bases)
        forbidden[np.arange(len(labels)), labels] = False
        for start in range(0, len(labels), _PIECE):
            part = slice(start, start + _PIECE)
            is_quiet = np.isin(labels[part], quiet).all()
            known = machine.allowed[labels[part][:-1], labels[part][1:]].all()
            if known and (not is_quiet or random.rand() < 1 / _SAMPLED_ONE_IN):
                parts.append((rows[part], forbidden[part], labels[part]))
                weights.append(float(_SAMPLED_ONE_IN) if is_quiet else 1.0)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    offsets = np.cumsum([0, *(len(part[2]) for part in parts)])
    return Pieces(columns[0], columns[1], columns[2], np.array(weights), offsets)


def loss_of(machine: Machine, pieces: Pieces, steps: Array) -> Function:
    """Return −Σ log P(states | bases) + l2 ‖w − w₀‖² as a function of the weights of `TIED`.

    Parameters
    ----------
    machine : Machine
        The states of the pieces.
    pieces : Pieces
        What to learn from.
    steps : (states, states) array
        log P of steps.

    Returns
    -------
    callable
        From weights to the loss and its gradient.
    """
    graph, size = Graph(pieces.offsets), len(pieces.labels)
    by_base = np.repeat(pieces.weights, np.diff(pieces.offsets))
    inner = np.setdiff1d(np.arange(size), pieces.offsets)
    along = by_base[inner] @ steps[pieces.labels[inner - 1], pieces.labels[inner]]
    blocked = np.where(pieces.forbidden, -np.inf, 0.0)

    def loss(weights: Array) -> tuple[float, Array]:
        scores = machine.scores(pieces.features, weights) + blocked
        log_z, node = inference.marginals(graph, scores, steps)
        right = by_base @ scores[np.arange(size), pieces.labels] + along
        node[np.arange(size), pieces.labels] -= 1.0
        gradient = np.tensordot(machine.ties, pieces.features.T @ (node * by_base[:, None]), axes=2)
        far = weights - COUNTED
        return float(pieces.weights @ log_z - right + _L2 * far @ far), gradient + 2 * _L2 * far

    return loss


def learned(machine: Machine, pieces: Pieces, steps: Array) -> Array:
    """Return the weights of `TIED` at which the loss is smallest, or after some iterations."""
    return Lbfgs(loss_of(machine, pieces, steps), COUNTED.copy()).minimize(max_iter=_ITERATIONS).x
