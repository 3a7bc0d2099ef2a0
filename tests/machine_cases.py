"""Small corpora for kernel machines, the engines, and scores by the marginalized kernel itself."""

from __future__ import annotations

from contextlib import nullcontext
from unittest import mock

import numpy as np

from fuda import Dag, Sequence, Tree
from fuda.data.window_encoding import WindowEncoder
from fuda.marginalized import marginalized_kernel
from fuda.marginalized.engines import cluster
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.engines.explicit import ExplicitEngine
from fuda.marginalized.priors import Prior
from fuda.marginalized.problem import Examples
from fuda.marginalized.recursions.chain_prior import chain

WORDS = [
    "Ana",
    "Lima",
    "Bo",
    "Paris",
    "Rome",
    "EFE",
    "25",
    "the",
    "lives",
    "in",
    "of",
    "by",
    "at",
    "on",
    "sea",
]
SHAPES = ("sequence", "tree", "dag")


class Answer:
    """A future that is over, of a value."""

    status = "finished"

    def __init__(self, value):
        self.value = value

    def result(self, timeout=None):
        return self.value


class Actor:
    """A Dask actor that lives here."""

    def __init__(self, resident):
        self.resident = resident

    def __getattr__(self, name):
        def ask(*arguments):
            with mock.patch.object(cluster, "worker_threads", return_value=1):
                return Answer(getattr(self.resident, name)(*arguments))

        return ask


class LocalClient:
    """A Dask client whose two workers are this thread; `test_cluster_engine.py` has real ones."""

    status, scheduler = "running", None

    def nthreads(self):
        return {"one": 1, "two": 1}

    def as_current(self):
        return nullcontext()

    def submit(self, make, **options):
        return Answer(Actor(make()))


# Engines that compute any problem; a new engine is added here, and all tests of engines
# run over it.
ENGINES = {
    "cpu": CpuEngine,
    "cluster": lambda problem, n_jobs=None: cluster.ClusterEngine(problem, n_jobs, LocalClient()),
}
# The oracle, for linear kernels and structures of few nodes.
ORACLES = {"explicit": ExplicitEngine}


def random_structures(rng, shape, count, longest=6):
    structures = []
    for size in rng.integers(1, longest + 1, count).tolist():
        words = rng.choice(WORDS, size).tolist()
        if shape == "sequence":
            structures.append(Sequence(words))
        elif shape == "tree":
            structures.append(Tree(words, [int(rng.integers(-1, t)) if t else -1 for t in range(size)]))
        else:
            pairs = [(s, t) for t in range(size) for s in range(t) if rng.random() < 0.4]
            structures.append(Dag(words, pairs))
    return structures


def renumbered(rng, structure):
    """A tree or DAG with its nodes reordered, so that parents are on both sides of children."""
    new = rng.permutation(len(structure))
    words = [structure.observations[node] for node in np.argsort(new)]
    edges = new[structure.edges]
    if isinstance(structure, Dag):
        return Dag(words, edges.tolist())
    heads = np.full(len(words), -1)
    heads[edges[:, 1]] = edges[:, 0]
    return Tree(words, heads.tolist())


def random_rows(rng, *shape):
    rows = rng.random(shape) + 0.05
    return rows / rows.sum(axis=-1, keepdims=True)


def random_prior(rng, structures, labels, form="marginals"):
    """The prior of each structure as `marginalized_kernel` takes it."""
    if form == "uniform":
        return [np.full((len(x), labels), 1.0 / labels) for x in structures]
    if form == "marginals":
        return [random_rows(rng, len(x), labels) for x in structures]
    return [
        (random_rows(rng, labels), [random_rows(rng, labels, labels) for _ in range(len(x) - 1)])
        for x in structures
    ]


def packed(priors):
    """The same as a machine takes it."""
    if not isinstance(priors[0], tuple):
        return Prior(np.concatenate(priors))
    chains = [chain(*prior) for prior in priors]
    return Prior(*(np.concatenate([c[k] for c in chains]) for k in range(3)))


def two_sides(sources, targets, source_priors, target_priors):
    """Examples of sources and of targets, as sources and targets of a problem."""
    encoder = WindowEncoder("spelling", 0)
    examples = Examples.of(encoder.fit(sources), packed(source_priors))
    if targets is sources:
        return examples, examples
    return examples, Examples.of(encoder.encode(targets), packed(target_priors), examples.numbering)


def whole_kernel(sources, targets, source_priors, target_priors, **parameters):
    """K between all nodes and labels, (N, M, L, L)."""
    rows = [
        np.concatenate(
            [
                marginalized_kernel(a, b, prior=(pa, pb), features="spelling", **parameters)
                for b, pb in zip(targets, target_priors, strict=True)
            ],
            axis=1,
        )
        for a, pa in zip(sources, source_priors, strict=True)
    ]
    return np.concatenate(rows)
