"""Engines: scores and epochs against the marginalized kernel, whatever way they are computed.

Tests with the fixture `make` hold for every engine; the others look into the one for
processor cores.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest

from fuda import DataError, Sequence
from fuda.kernels import Constant, Delta, Function, Linear, Polynomial
from fuda.marginalized import kernel_classes, problem
from fuda.marginalized.engines import check_engine, make_engine
from fuda.marginalized.engines.base import Margins, PerceptronState
from fuda.marginalized.engines.cpu import engine as cpu
from fuda.marginalized.engines.cpu import layout
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.engines.log import Log
from fuda.marginalized.kernel import label_gram
from fuda.marginalized.kernel_classes import KernelClasses, Types
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.parts import PARTS
from fuda.marginalized.problem import Settings, Sources
from machine_cases import (
    ENGINES,
    SHAPES,
    random_prior,
    random_structures,
    renumbered,
    two_sides,
    whole_kernel,
)

LABELS = 3
SIMILAR = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]])
KERNEL = Polynomial(2).normalized()
SHAPES_AND_PARTS = [("tree", parts) for parts in PARTS] + [("dag", "paths"), ("dag", "sided-paths")]


@pytest.fixture(params=ENGINES)
def make(request):
    return ENGINES[request.param]


class Case:
    """Two random corpora (or one), random coefficients, and the scores an engine should give."""

    def __init__(self, seed, shape="sequence", form="marginals", same=False, longest=6, **parameters) -> None:
        rng = np.random.default_rng(seed)
        self.parameters = {"kernel": KERNEL, "mixing": 1.3, "gap": 0.0, "label_kernel": None} | parameters
        self.sources = random_structures(rng, shape, 7, longest)
        self.targets = self.sources if same else random_structures(rng, shape, 5)
        if parameters.get("parts") is not None:
            self.sources, self.targets = (
                [renumbered(rng, x) for x in side] for side in (self.sources, self.targets)
            )
        self.source_priors = random_prior(rng, self.sources, LABELS, form)
        self.target_priors = self.source_priors if same else random_prior(rng, self.targets, LABELS, form)
        self.sides = two_sides(self.sources, self.targets, self.source_priors, self.target_priors)
        self.alpha = rng.integers(-2, 3, (sum(map(len, self.sources)), LABELS)) * (
            rng.random((sum(map(len, self.sources)), 1)) < 0.5
        )

    def problem(self) -> problem.Problem:
        p = self.parameters
        k_y = label_gram(p["label_kernel"], LABELS)
        settings = Settings(p["kernel"], k_y, p["mixing"], p["gap"], p.get("parts"))
        return Sources(settings, self.sides[0]).problem(self.sides[1])

    def scores(self, make=CpuEngine) -> np.ndarray:
        return make(self.problem()).scores(self.alpha.astype(float)).doubles()

    def nodes(self, i) -> slice:
        return slice(*self.sides[0].offsets[i : i + 2])

    @cached_property
    def kernel(self) -> np.ndarray:
        return whole_kernel(
            self.sources, self.targets, self.source_priors, self.target_priors, **self.parameters
        )

    def expected(self, alpha=None) -> np.ndarray:
        return np.einsum("ir,itrs->ts", self.alpha if alpha is None else alpha, self.kernel)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["uniform", "marginals"])
def test_scores_are_sums_of_the_kernel(make, shape, form, seed):
    case = Case(seed, shape, form)
    np.testing.assert_allclose(case.scores(make), case.expected(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", ["uniform", "marginals"])
def test_scores_by_structures_of_one_node_are_sums_of_the_kernel(make, form):
    case = Case(6, form=form, longest=1)
    np.testing.assert_allclose(case.scores(make), case.expected(), rtol=1e-10, atol=1e-12)


def test_mistakes_at_last_nodes_need_no_kernel_within_the_structure(monkeypatch):
    case = Case(6, form="uniform", same=True, longest=1)
    monkeypatch.setattr(CpuEngine, "kappa", None)
    labels, amounts = np.array([0, 1, 2, 0, 1, 2, 0]), np.ones(7)
    state = PerceptronState(np.zeros((2, 7, LABELS)))
    mistakes = CpuEngine(case.problem()).perceptron_epoch(np.arange(7), labels, amounts, state)
    assert mistakes == np.count_nonzero(state.alpha(average=False)) / 2 > 0


def test_a_push_costs_the_same_after_many():
    log, marked, gamma = Log(LABELS), np.array([1, 3]), np.ones((2, LABELS))
    log.add(np.array([0, 2, 4]), marked, gamma)
    for _ in range(1000):
        log.add_one(2, 4, marked[1:], gamma[1:])
    pushes, before = log.pushes(), log.since(1001)
    assert np.shares_memory(pushes.begins, log.pushes().begins)  # not a copy each time
    assert pushes.begins.tolist() == [0, 2, *[2] * 1000]
    assert pushes.firsts.tolist() == list(range(1003))
    assert [array.tolist() for array in before] == [[[2, 4, 0], [0, 0, 1]], [3], [[1.0] * LABELS]]
    assert Log.restored(*log.since(0)).pushes().ends.tolist() == pushes.ends.tolist()


@pytest.mark.parametrize(("shape", "parts"), SHAPES_AND_PARTS)
@pytest.mark.parametrize("form", ["uniform", "marginals"])
def test_scores_of_all_parts_are_sums_of_the_kernel(make, shape, parts, form):
    case = Case(4, shape, form, parts=parts)
    np.testing.assert_allclose(case.scores(make), case.expected(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [
        {"gap": 0.4},
        {"label_kernel": SIMILAR},
        {"label_kernel": SIMILAR, "form": "uniform"},
        {"label_kernel": np.zeros((3, 3)), "form": "uniform"},
        {"form": "chain"},
        {"kernel": Delta() + 0.5 * Linear()},
        {"kernel": Constant(0.3), "form": "uniform"},
        {"kernel": Function(lambda a, b: float(a[0] == b[0])), "form": "uniform"},
        {"same": True},
    ],
    ids=str,
)
def test_scores_of_other_kernels_and_priors(make, parameters):
    case = Case(5, **parameters)
    np.testing.assert_allclose(case.scores(make), case.expected(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "form", "parts"),
    [(shape, form, None) for shape in SHAPES for form in ("uniform", "marginals")]
    + [("sequence", "chain", None)]
    + [(shape, "marginals", parts) for shape, parts in SHAPES_AND_PARTS],
)
def test_scaled_numbers_say_the_same(monkeypatch, make, shape, form, parts):
    case = Case(2, shape, form, parts=parts)
    monkeypatch.setattr(Sources, "_plain_is_safe", lambda self, targets, types: False)
    assert case.problem().is_scaled
    scores = make(case.problem()).scores(case.alpha.astype(float))
    values = np.ldexp(scores.mantissas, 512 * np.maximum(scores.exponents, -4))
    np.testing.assert_allclose(values, case.expected(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", [KERNEL, Delta() * Polynomial(3), Linear() + Delta()], ids=str)
def test_shared_codes_and_parts_of_tables_say_the_same(monkeypatch, kernel):
    case = Case(3, kernel=kernel)
    expected = case.scores()
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", 0)
    monkeypatch.setattr(problem, "_FREQUENT_ONE_IN", 5)  # types that more than a fifth of all nodes have
    assert max(case.problem().kernel_classes.counts) <= 6 < len(case.sides[0].points)
    np.testing.assert_allclose(case.scores(), expected, rtol=1e-12, atol=1e-12)
    # No table is kept, so each is made for a group of blocks.
    monkeypatch.setattr(kernel_classes, "_LARGEST_TABLE", 0)
    monkeypatch.setattr(cpu, "_TABLE_ENTRIES", 20)
    monkeypatch.setattr(layout, "_BLOCK", 4)
    np.testing.assert_allclose(case.scores(), expected, rtol=1e-12, atol=1e-12)


@pytest.fixture
def without_tables(monkeypatch):
    """Values by common features, however few they are, in several stretches of pushes."""

    def begin():
        monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", 0)
        monkeypatch.setattr(kernel_classes, "_READ_TABLE", 0)
        monkeypatch.setattr(KernelClasses, "_share", lambda self, frequent: None)
        monkeypatch.setattr(layout, "_BLOCK", 8)
        monkeypatch.setattr(cpu, "_COUNT_BYTES", 100)

    return begin


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"form": "uniform"},
        {"form": "uniform", "longest": 1},
        {"same": True},
        {"kernel": Linear().normalized() + Constant(0.5)},
        {"gap": 0.4},
        {"label_kernel": SIMILAR},
        {"form": "chain"},
        *({"shape": shape, "parts": parts} for shape, parts in SHAPES_AND_PARTS),
    ],
    ids=str,
)
def test_scores_are_those_by_tables(monkeypatch, without_tables, parameters, scaled):
    if scaled:
        monkeypatch.setattr(Sources, "_plain_is_safe", lambda self, targets, types: False)
    case = Case(7, **parameters)
    assert case.problem().kernel_classes.all_values is not None
    expected = case.scores()
    without_tables()
    assert case.problem().kernel_classes.products is not None
    np.testing.assert_array_equal(case.scores(), expected)


def test_kappa_and_epochs_are_those_by_tables(without_tables):
    case = Case(8, same=True)
    labels, amounts = np.random.default_rng(0).integers(0, LABELS, len(case.alpha)), np.ones(len(case.alpha))

    def learned():
        machine = CpuEngine(case.problem())
        state = PerceptronState(np.zeros((2, *case.alpha.shape)))
        mistakes = [machine.perceptron_epoch(np.arange(7)[::way], labels, amounts, state) for way in (1, -1)]
        return mistakes, state.sums, machine.kappa(2, 3).doubles()

    expected = learned()
    without_tables()
    for actual, exact in zip(learned(), expected, strict=True):
        np.testing.assert_array_equal(actual, exact)


def test_types_that_differ_in_features_of_their_own_share_a_code(monkeypatch):
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", 0)
    words = [f"word{chr(97 + i)}" for i in range(20)] + [f"Word{chr(97 + i)}" for i in range(20)] + ["J."]
    structures = [Sequence(words)]
    sides = two_sides(structures, structures, *[random_prior(None, structures, 1, "uniform")] * 2)
    for kernel in (KERNEL, Delta() + Polynomial(3)):
        classes = KernelClasses(Types(kernel, sides[0].points), Types(kernel, sides[0].points))
        assert classes.counts == (3, 3)
        table = np.empty((41, 41))
        classes.fill(classes.sources, classes.targets, 1.0, table)
        are_equal = classes.source_ids[:, None] == classes.target_ids
        expected = np.where(are_equal, classes.self_values[:, None], table)
        np.testing.assert_allclose(expected, kernel.gram(sides[0].points, sides[0].points))
    types = Types(Function(lambda a, b: 1.0), sides[0].points)
    assert KernelClasses(types, types).counts == (41, 41)


@pytest.mark.parametrize("shape", SHAPES)
# No type, some types or all types have a class of their own.
@pytest.mark.parametrize("often", [1, 5, 1000])
@pytest.mark.parametrize(("form", "labels"), [("uniform", 3), *(("marginals", n) for n in (1, 2, 3, 4, 9))])
def test_large_structures_with_few_nodes_marked(monkeypatch, make, form, labels, often, shape):
    """Rows without marks are gone through four at once, whatever nodes they equal.

    Masses are made of several nodes, labels and places at once.
    """
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", 0)
    monkeypatch.setattr(problem, "_FREQUENT_ONE_IN", often)
    rng = np.random.default_rng(often)
    X = random_structures(rng, shape, 20, longest=40)
    priors = random_prior(rng, X, labels, form)
    side, _ = two_sides(X, X, priors, priors)
    tested = make(Sources(Settings(KERNEL, np.eye(labels), 1.6, 0.0), side).problem())
    alpha = np.zeros((side.offsets[-1], labels))
    for i in range(len(X)):
        for t in rng.integers(0, len(X[i]), rng.integers(0, 3)):
            alpha[side.offsets[i] + t] = rng.normal(size=labels)
    gamma, expected = tested.problem.gamma(alpha), np.zeros(alpha.shape)
    nodes = tested.problem.sources.nodes
    for i in range(len(X)):
        for j in range(len(X)):
            expected[nodes(j)] += tested.kappa(i, j).doubles()[:, :, 0].T @ gamma[nodes(i)]
    scores = tested.scores(alpha).doubles()
    np.testing.assert_allclose(scores, expected * side.prior.nodes, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("block", [1, 4, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_online_order_whatever_the_blocks(monkeypatch, shape, block):
    """Scores that are asked for between pushes have what was pushed before, and nothing else."""
    case = Case(7, shape, "uniform", same=True)
    monkeypatch.setattr(layout, "_BLOCK", block)
    monkeypatch.setattr(cpu, "_MIN_GROUP_PUSHES", 3)
    pushed, tested = np.zeros(case.alpha.shape), CpuEngine(case.problem())
    for order in ([3, 1, 0, 2, 6, 5, 4], range(7), [6, 0, 5, 1, 4, 2, 3]):
        if order != range(7):
            tested.prepare_visits(np.array(order))
        for i in order:
            nodes = case.nodes(i)
            actual = tested.structure_scores(i).doubles()
            np.testing.assert_allclose(actual, case.expected(pushed)[nodes], atol=1e-10)
            tested.push(i, case.alpha[nodes].astype(float))
            pushed[nodes] += case.alpha[nodes]
    np.testing.assert_allclose(tested.all_scores().doubles(), case.expected(pushed), atol=1e-10)


@pytest.mark.parametrize("shape", ["sequence", "tree"])
def test_no_result_depends_on_the_number_of_threads(monkeypatch, make, shape):
    monkeypatch.setattr(layout, "_BLOCK", 5)
    case = Case(1, shape)
    one, four = (case.scores(lambda problem, n=n: make(problem, n)) for n in (1, 4))
    assert (one == four).all()


def test_all_at_once_and_pair_by_pair(make):
    case = Case(6, "tree")
    tested = make(case.problem())
    scores = tested.scores(case.alpha.astype(float)).doubles()
    np.testing.assert_allclose(scores, case.expected(), atol=1e-10)
    gamma, target = tested.problem.gamma(case.alpha), tested.problem.targets
    kappas = [tested.kappa(i, 1).doubles()[:, :, 0] for i in range(len(case.sources))]
    total = sum(kappa.T @ gamma[case.nodes(i)] for i, kappa in enumerate(kappas))
    expected = case.expected()[target.nodes(1)] / target.prior[target.nodes(1)]
    np.testing.assert_allclose(total, expected, atol=1e-10)


def test_a_structure_that_is_never_pushed_costs_nothing():
    case = Case(0)
    tested = CpuEngine(case.problem())
    tested.push(0, np.zeros((len(case.sources[0]), LABELS)))
    assert tested._log.count == 0
    assert not tested.all_scores().doubles().any()


def test_numbers_past_all_doubles(make):
    """A match of 1,238 nodes with a raw kernel of degree 2 at c = 3."""
    structures = [Sequence(["Lima", "EFE"] * 619), Sequence(["EFE"])]
    priors = [np.full((len(x), 2), 0.5) for x in structures]
    side, _ = two_sides(structures, structures, priors, priors)
    tested = make(Sources(Settings(Polynomial(2), np.eye(2), 3.0, 0.0), side).problem())
    assert tested.problem.is_scaled
    alpha = np.zeros((1239, 2))
    alpha[600] = 1.0, -1.0
    scores = tested.scores(alpha)
    k = 9 * 0.5 * np.array([[9.0, 4.0], [4.0, 16.0]])  # of Lima (two features) and EFE (three)
    # At the same node the longest match decides: log κ is near the sum of logarithms
    # of k along it.
    product = 619 * (np.log(k[0, 0]) + np.log(k[1, 1]))
    assert scores.logarithms()[600, 0] == pytest.approx(product, rel=1e-3)
    assert (scores.doubles()[:1238].argmax(axis=1) == 0).all()
    assert (np.sign(scores.doubles()[:1238]) == [1, -1]).all()
    assert np.isfinite(scores.doubles()).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_base", [False, True])
def test_a_perceptron_epoch_is_the_papers_algorithm(make, shape, with_base):
    """Node by node, in any order of structures, from scores outside of the problem or none."""
    case = Case(4, shape, same=True)
    rng = np.random.default_rng(0)
    labels, amounts = rng.integers(-1, LABELS, len(case.alpha)), rng.random(len(case.alpha)) + 0.5
    K = whole_kernel(*[case.sources] * 2, *[case.source_priors] * 2, **case.parameters)
    base = rng.normal(size=case.alpha.shape) if with_base else np.zeros(case.alpha.shape)
    alpha, late, step, mistakes = np.zeros(case.alpha.shape), np.zeros(case.alpha.shape), 0, []
    tested = make(case.problem())
    state = PerceptronState(np.zeros((2, *alpha.shape)), base=Numbers(base) if with_base else None)
    for order in (np.arange(7), rng.permutation(7), rng.permutation(7)):
        mistakes.append(0)
        for i in order:
            for t in range(*case.sides[0].offsets[i : i + 2]):
                best = int((base[t] + np.einsum("ir,irs->s", alpha, K[:, t])).argmax())
                if labels[t] >= 0 and best != labels[t]:
                    for label, sign in ((labels[t], 1), (best, -1)):
                        alpha[t, label] += sign * amounts[t]
                        late[t, label] += step * sign * amounts[t]
                    mistakes[-1] += 1
            step += 1
        assert tested.perceptron_epoch(order, labels, amounts, state) == mistakes[-1]
        np.testing.assert_allclose(state.sums, [alpha, late], atol=1e-12)
    assert mistakes[0]
    assert state.steps == 21
    np.testing.assert_allclose(state.alpha(average=True), alpha - late / 21, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_margin_epoch_returns_the_scores_of_its_coefficients(make, shape):
    case = Case(4, shape, same=True)
    rng = np.random.RandomState(0)
    labels = rng.randint(-1, LABELS, len(case.alpha))
    tested, alpha = make(case.problem()), np.zeros(case.alpha.shape)
    margins = Margins(labels, np.full(len(labels), 2.0), 0.0)
    for _ in range(3):
        scores = tested.margin_epoch(rng.permutation(7), margins, alpha, rng)
        np.testing.assert_allclose(scores, case.expected(alpha), atol=1e-9)
    assert alpha.any()
    assert not alpha[labels < 0].any()


@pytest.mark.parametrize("form", ["uniform", "marginals"])
def test_an_engine_for_other_targets_shares_its_sources(make, form):
    case = Case(8, form=form)
    alpha = case.alpha.astype(float)
    sources = Sources(Settings(KERNEL, np.eye(LABELS), 1.3, 0.0), case.sides[0])
    first = make(sources.problem(case.sides[1]))
    expected = first.scores(alpha).doubles()
    for structures in ([2], [4, 1], [0, 1, 2, 3, 4]):
        part = case.sides[1].take(np.array(structures))
        other = first.for_targets(sources.problem(part))
        actual = other.scores(alpha).doubles()
        nodes = case.sides[1].encoded.corpus.nodes_of(np.array(structures))
        np.testing.assert_allclose(actual, expected[nodes], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("small", [0, 1 << 20])
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_of_sources_share_codes_and_give_the_same_scores(monkeypatch, make, shape, small):
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", small)
    case = Case(9, shape, same=True)
    sources, members = Sources(Settings(KERNEL, np.eye(LABELS), 1.3, 0.0), case.sides[0]), np.array([5, 0, 3])
    part, asked = sources.take(members), case.sides[0].take(np.array([1, 6]))
    alpha = np.zeros(case.alpha.shape)
    nodes = case.sides[0].encoded.corpus.nodes_of(members)
    alpha[nodes] = case.alpha[nodes]
    assert part.problem(asked).kernel_classes is sources.problem().kernel_classes
    actual = make(part.problem(asked)).scores(alpha[nodes]).doubles()
    expected = case.expected(alpha)[case.sides[0].encoded.corpus.nodes_of(np.array([1, 6]))]
    np.testing.assert_allclose(actual, expected, atol=1e-10)


def test_engines_are_chosen_by_name():
    case = Case(0)
    for name in ("auto", "cpu"):
        check_engine(name)
        assert isinstance(make_engine(name, case.problem()), CpuEngine)
    for name in ("gpu", "", None, 3, ["cpu"]):
        with pytest.raises(DataError, match=r"engine=.*: there is no such engine; choose 'auto', 'cpu'"):
            check_engine(name)
