"""The engine of a cluster: the CPU engine's mistakes, coefficients and scores, to the last bit."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from fuda import MarginalizedPerceptron, MarginalizedSVM
from fuda.kernels import Polynomial
from fuda.marginalized.engines import cluster as cluster_engine
from fuda.marginalized.engines.base import Margins, PerceptronState
from fuda.marginalized.engines.cluster import ClusterEngine
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.problem import Settings, Sources
from fuda.runtime.cluster import connected
from machine_cases import SHAPES, random_prior, random_structures, two_sides
from usage_cases import usage

distributed = pytest.importorskip("distributed", reason="Dask (fuda[cluster]) is not installed")

L = 3
DATA = usage()
CASES = [*((shape, "marginals", 0.0, 0.6) for shape in SHAPES), ("sequence", "uniform", 0.0, 0.6)]
CASES += [
    ("sequence", "uniform", 0.5, 0.6),
    ("sequence", "chain", 0.0, 0.6),
    ("sequence", "marginals", 0.0, 1e60),
]


@pytest.fixture
def client(cluster, monkeypatch):
    monkeypatch.setattr(cluster_engine, "_STRETCH_NODES", 12)  # nodes: several stretches per epoch
    with connected(cluster.scheduler_address) as client:
        yield client


def problem_of(shape, form, gap, mixing, count=20):
    rng = np.random.default_rng(0)
    structures = random_structures(rng, shape, count)
    priors = random_prior(rng, structures, L, form)
    examples, _ = two_sides(structures, structures, priors, priors)
    return Sources(Settings(Polynomial(2).normalized(), np.eye(L), mixing, gap), examples).problem()


def trained(engine, epochs=3):
    """All that some epochs of the perceptron do, in other orders than the first."""
    rng, N = np.random.default_rng(1), int(engine.problem.targets.offsets[-1])
    labels, amounts = rng.integers(-1, L, N), rng.random(N) + 0.5
    state, order = PerceptronState(np.zeros((2, N, L))), np.arange(len(engine.problem.targets.sizes))
    mistakes = []
    for _ in range(epochs):
        mistakes.append(engine.perceptron_epoch(order, labels, amounts, state))
        order = rng.permutation(order)
    return mistakes, state


@pytest.mark.parametrize("case", CASES, ids=str)
def test_epochs_are_those_of_the_cpu_engine(client, case):
    """With real workers; `test_engines.py` has many more cases, computed in one process."""
    problem = problem_of(*case, count=8)
    assert problem.is_scaled == (case[3] > 1e50)
    ours, theirs = ClusterEngine(problem, None, client), CpuEngine(problem)
    (here, state), (there, other) = trained(theirs), trained(ours)
    assert here == there
    assert np.array_equal(state.sums, other.sums)
    assert state.steps == other.steps
    alpha = state.alpha(average=True)
    actual, expected = ours.scores(alpha), theirs.scores(alpha)
    np.testing.assert_array_equal(actual.doubles(), expected.doubles())
    np.testing.assert_array_equal(ours.kappa(1, 2).doubles(), theirs.kappa(1, 2).doubles())


def test_margins(client):
    problem = problem_of(*CASES[0])
    N, results = int(problem.targets.offsets[-1]), []
    for engine in (CpuEngine(problem), ClusterEngine(problem, None, client)):
        alpha, random = np.zeros((N, L)), np.random.RandomState(0)
        margins = Margins(np.random.default_rng(2).integers(0, L, N), np.ones(N), 1e-3)
        scores = [engine.margin_epoch(np.arange(20), margins, alpha, random) for _ in range(2)]
        results.append((alpha, *scores))
    for here, there in zip(*results, strict=True):
        np.testing.assert_array_equal(here, there)


def test_either_engine_continues_what_the_other_began(client):
    problem = problem_of(*CASES[0])
    N = int(problem.targets.offsets[-1])
    labels, amounts, order = (
        np.random.default_rng(1).integers(0, L, N),
        np.ones(N),
        np.arange(20)[::-1].copy(),
    )
    makers = {"cpu": CpuEngine, "cluster": lambda problem: ClusterEngine(problem, None, client)}
    ends = []
    for first, second in (("cpu", "cpu"), ("cpu", "cluster"), ("cluster", "cpu"), ("cluster", "cluster")):
        begun, state = makers[first](problem), PerceptronState(np.zeros((2, N, L)))
        mistakes = [begun.perceptron_epoch(order, labels, amounts, state)]
        continued = makers[second](problem)
        continued.restore(begun.state())
        mistakes.append(continued.perceptron_epoch(order, labels, amounts, state))
        ends.append((mistakes, state.sums.tolist()))
    assert ends == [ends[0]] * 4


def test_pushes_that_are_sent_twice_count_once(client):
    problem, asked = problem_of(*CASES[0]), []
    engine = ClusterEngine(problem, None, client)
    sums = engine._sums

    def forgetful(members):
        asked.append(None)
        engine._known = [0 if len(asked) > 1 else known for known in engine._known]
        return sums(members)

    engine._sums = forgetful
    assert trained(engine)[0] == trained(CpuEngine(problem))[0]
    assert len(asked) > 5


def test_a_killed_worker_costs_no_more_than_time(client):
    problem = problem_of(*CASES[0], count=40)
    engine, asked = ClusterEngine(problem, None, client), []
    sums = engine._sums

    def kill_first(members):
        asked.append(None)
        if len(asked) == 5:
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
        return sums(members)

    engine._sums = kill_first
    (here, state), (there, other) = trained(CpuEngine(problem)), trained(engine)
    assert len(asked) > 5
    assert here == there
    assert np.array_equal(state.sums, other.sums)


@pytest.mark.filterwarnings("ignore:MarginalizedSVM has not converged")
@pytest.mark.parametrize("make", [MarginalizedPerceptron, MarginalizedSVM])
def test_models(cluster, make):
    X, y = DATA.X[:24], DATA.y[:24]
    here, there = (
        make(epochs=2, mixing=0.5, engine="cpu", cluster=address, calibrate=False).fit(X, y)
        for address in (None, cluster.scheduler_address)
    )
    if make is MarginalizedPerceptron:
        assert here.mistakes_ == there.mistakes_
    assert here.support_ == there.support_
    assert here.predict(X).tolist() == there.predict(X).tolist()
