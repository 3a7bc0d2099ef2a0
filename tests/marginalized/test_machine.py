"""The kernel machine: its scores against the marginalized kernel, whatever way they are computed."""

from __future__ import annotations

import numpy as np
import pytest

from fuda import Sequence
from fuda.kernels import Constant, Delta, Function, Linear, Polynomial
from fuda.marginalized import codes, machine
from fuda.marginalized.kernel import label_gram
from fuda.marginalized.machine import Machine
from fuda.marginalized.scaled import logarithms
from fuda.marginalized.tables import doubles
from machine_cases import SHAPES, random_prior, random_structures, two_sides, whole_kernel

LABELS = 3
SIMILAR = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]])
KERNEL = Polynomial(2).normalized()


class Case:
    """A machine on two random corpora (or one), random coefficients, and the scores that it should give."""

    def __init__(self, seed, shape="sequence", form="marginals", same=False, **parameters) -> None:
        rng = np.random.default_rng(seed)
        self.parameters = {"kernel": KERNEL, "mixing": 1.3, "gap": 0.0, "label_kernel": None} | parameters
        self.sources = random_structures(rng, shape, 7)
        self.targets = self.sources if same else random_structures(rng, shape, 5)
        self.source_priors = random_prior(rng, self.sources, LABELS, form)
        self.target_priors = self.source_priors if same else random_prior(rng, self.targets, LABELS, form)
        self.sides = two_sides(self.sources, self.targets, self.source_priors, self.target_priors)
        self.alpha = rng.integers(-2, 3, (sum(map(len, self.sources)), LABELS)) * (
            rng.random((sum(map(len, self.sources)), 1)) < 0.5
        )

    def machine(self, **options) -> Machine:
        p = self.parameters
        k_y = label_gram(p["label_kernel"], LABELS)
        return Machine(p["kernel"], k_y, p["mixing"], p["gap"], *self.sides, **options)

    def scores(self, machine=None) -> np.ndarray:
        machine = machine or self.machine()
        for i in range(len(self.sources)):
            machine.push(i, self.alpha[self.sides[0].nodes(i)].astype(float))
        return machine.all_scores()

    def expected(self, alpha=None) -> np.ndarray:
        K = whole_kernel(
            self.sources, self.targets, self.source_priors, self.target_priors, **self.parameters
        )
        return np.einsum("ir,itrs->ts", self.alpha if alpha is None else alpha, K)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["uniform", "marginals"])
def test_scores_are_sums_of_the_kernel(shape, form, seed):
    case = Case(seed, shape, form)
    np.testing.assert_allclose(case.scores(), case.expected(), rtol=1e-10, atol=1e-12)


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
def test_scores_of_other_kernels_and_priors(parameters):
    case = Case(5, **parameters)
    np.testing.assert_allclose(case.scores(), case.expected(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "form"),
    [(shape, form) for shape in SHAPES for form in ("uniform", "marginals")] + [("sequence", "chain")],
)
def test_scaled_numbers_say_the_same(monkeypatch, shape, form):
    case = Case(2, shape, form)
    monkeypatch.setattr(Machine, "_plain_is_safe", lambda self, kernel: False)
    scaled = case.machine()
    assert scaled.is_scaled
    mantissa, exponent = case.scores(scaled)
    values = np.ldexp(mantissa, 512 * np.maximum(exponent, -4))
    np.testing.assert_allclose(values, case.expected(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", [KERNEL, Delta() * Polynomial(3), Linear() + Delta()], ids=str)
def test_shared_codes_and_parts_of_tables_say_the_same(monkeypatch, kernel):
    case = Case(3, kernel=kernel)
    expected = case.scores()
    monkeypatch.setattr(codes, "_SMALL", 0)
    monkeypatch.setattr(machine, "_OFTEN", 5)  # types that more than a fifth of all nodes have
    assert max(case.machine()._codes.counts) <= 6 < len(case.sides[0].points)
    np.testing.assert_allclose(case.scores(), expected, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(codes, "_LARGEST", 0)  # no table is kept, so each is made for a group of blocks
    monkeypatch.setattr(machine, "_TABLE", 20)
    monkeypatch.setattr(machine, "_BLOCK", 4)
    np.testing.assert_allclose(case.scores(), expected, rtol=1e-12, atol=1e-12)


def test_types_that_differ_in_features_of_their_own_share_a_code(monkeypatch):
    monkeypatch.setattr(codes, "_SMALL", 0)
    words = [f"word{chr(97 + i)}" for i in range(20)] + [f"Word{chr(97 + i)}" for i in range(20)] + ["J."]
    structures = [Sequence(words)]
    sides = two_sides(structures, structures, *[random_prior(None, structures, 1, "uniform")] * 2)
    for kernel in (KERNEL, Delta() + Polynomial(3)):
        coded = codes.Codes(kernel, sides[0].points, sides[0].points)
        assert coded.counts == (3, 3)
        table = coded.table(coded.sources, coded.targets)
        twins = coded.source_twins[:, None] == coded.target_twins
        whole = np.where(twins, coded.own[:, None], table)
        np.testing.assert_allclose(whole, kernel.gram(sides[0].points, sides[0].points))
    own = codes.Codes(Function(lambda a, b: 1.0), sides[0].points, sides[0].points)
    assert own.counts == (41, 41)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("often", [1, 5, 1000])  # no type, some types, all types have a code for themselves
@pytest.mark.parametrize(("form", "labels"), [("uniform", 3), *(("marginals", n) for n in (1, 2, 3, 4, 9))])
def test_large_structures_with_few_nodes_marked(monkeypatch, form, labels, often, shape):
    """Rows are gone through four at once where nothing is marked, whatever twins they meet; masses are made
    of several nodes, labels and places at once."""
    monkeypatch.setattr(codes, "_SMALL", 0)
    monkeypatch.setattr(machine, "_OFTEN", often)
    rng = np.random.default_rng(often)
    X = random_structures(rng, shape, 20, longest=40)
    priors = random_prior(rng, X, labels, form)
    side, _ = two_sides(X, X, priors, priors)
    tested = Machine(KERNEL, np.eye(labels), 1.6, 0.0, side, side)
    alpha = np.zeros((side.offsets[-1], labels))
    for i in range(len(X)):
        for t in rng.integers(0, len(X[i]), rng.integers(0, 3)):
            alpha[side.offsets[i] + t] = rng.normal(size=labels)
    tested.push_all(alpha)
    gamma, expected = tested.gamma(alpha, slice(None)), np.zeros(alpha.shape)
    for i in range(len(X)):
        for j in range(len(X)):
            expected[side.nodes(j)] += tested.kappa(i, j).T @ gamma[side.nodes(i)]
    np.testing.assert_allclose(tested.all_scores(), expected * side.prior.nodes, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("block", [1, 4, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_online_order_whatever_the_blocks(monkeypatch, shape, block):
    """Scores that are asked for between pushes have what was pushed before, and nothing else."""
    case = Case(7, shape, "uniform", same=True)
    monkeypatch.setattr(machine, "_BLOCK", block)
    monkeypatch.setattr(machine, "_MANY", 3)
    pushed, tested = np.zeros(case.alpha.shape), case.machine()
    side = case.sides[0]
    for order in ([3, 1, 0, 2, 6, 5, 4], range(7), [6, 0, 5, 1, 4, 2, 3]):
        if order != range(7):
            tested.visit_in(np.array(order))
        for i in order:
            nodes = side.nodes(i)
            np.testing.assert_allclose(tested.scores(i), case.expected(pushed)[nodes], atol=1e-10)
            tested.push(i, case.alpha[nodes].astype(float))
            pushed[nodes] += case.alpha[nodes]
    np.testing.assert_allclose(tested.all_scores(), case.expected(pushed), atol=1e-10)


@pytest.mark.parametrize("shape", ["sequence", "tree"])
def test_no_result_depends_on_the_number_of_threads(monkeypatch, shape):
    monkeypatch.setattr(machine, "_BLOCK", 5)
    case = Case(1, shape)
    one, four = (case.scores(case.machine(n_jobs=n)) for n in (1, 4))
    assert (one == four).all()


def test_all_at_once_and_pair_by_pair():
    case = Case(6, "tree")
    at_once = case.machine()
    at_once.push_all(case.alpha.astype(float))
    np.testing.assert_allclose(at_once.all_scores(), case.expected(), atol=1e-10)
    gamma = at_once.gamma(case.alpha.astype(float), slice(None))
    source, target = case.sides
    total = sum(at_once.kappa(i, 1).T @ gamma[source.nodes(i)] for i in range(len(case.sources)))
    expected = case.expected()[target.nodes(1)] / target.prior.nodes[target.nodes(1)]
    np.testing.assert_allclose(total, expected, atol=1e-10)


def test_a_structure_that_is_never_pushed_costs_nothing():
    case = Case(0)
    tested = case.machine()
    tested.push(0, np.zeros((len(case.sources[0]), LABELS)))
    assert tested._log.count == 0
    assert not tested.all_scores().any()


def test_numbers_past_all_doubles():
    """A match of 1,238 nodes with a raw kernel of degree 2 at c = 3."""
    structures = [Sequence(["Lima", "EFE"] * 619), Sequence(["EFE"])]
    priors = [np.full((len(x), 2), 0.5) for x in structures]
    side, _ = two_sides(structures, structures, priors, priors)
    tested = Machine(Polynomial(2), np.eye(2), 3.0, 0.0, side, side)
    assert tested.is_scaled
    alpha = np.zeros((1238, 2))
    alpha[600] = 1.0, -1.0
    tested.push(0, alpha)
    scores = tested.scores(0)
    k = 9 * 0.5 * np.array([[9.0, 4.0], [4.0, 16.0]])  # of Lima (two features) and EFE (three)
    # At the same node the longest match decides: log κ is near the sum of logarithms of k along it.
    product = 619 * (np.log(k[0, 0]) + np.log(k[1, 1]))
    assert logarithms(scores)[600, 0] == pytest.approx(product, rel=1e-3)
    assert (doubles(scores).argmax(axis=1) == 0).all()
    assert (np.sign(doubles(scores)) == [1, -1]).all()
    assert np.isfinite(doubles(tested.scores(1))).all()
