"""The CUDA engine against the CPU engine; `test_cuda.py` runs it on a card or in a simulator."""

from __future__ import annotations

import sys
from threading import Lock

import numpy as np
import pytest

from fuda import MarginalizedPerceptron, Sequence
from fuda.errors import DataError
from fuda.kernels import Delta, Polynomial
from fuda.marginalized import kernel_classes, problem
from fuda.marginalized.engines import make_engine
from fuda.marginalized.engines.base import Margins, PerceptronState, PlannedTraining
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.engines.cuda import epochs, kernels, layout, machine, plan, strips
from fuda.marginalized.engines.cuda.engine import CudaEngine
from fuda.marginalized.numbers import Numbers
from fuda.marginalized.problem import Settings, Sources
from machine_cases import random_prior, random_structures, two_sides

ALLOCATING = Lock()
LABELS = 3
KERNEL = Polynomial(2).normalized()
SIMILAR = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]])


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    """Shared classes; strips; few nodes in shared memory, few marks at a time."""
    monkeypatch.setattr(machine, "_MIN_STRIPS_PER_WARP", 0)
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", 0)
    monkeypatch.setattr(problem, "_FREQUENT_ONE_IN", 5)
    if machine.device.card(machine.device.load()).is_simulated:
        # Its launches poll their threads, for as long as they may keep the interpreter's lock.
        sys.setswitchinterval(1e-4)
        monkeypatch.setattr("numba.cuda.simulator.kernelapi.FakeCUDAShared.array", shared_array)
        monkeypatch.setattr(kernels, "ROWS", 3)
        monkeypatch.setattr(kernels, "STORED_MARKS", 2)
        monkeypatch.setattr(machine, "_MIN_STAGED_ROWS", 3)


def shared_array(self, shape, dtype):
    """The array of a block at a line; numba's own may give two threads that come at once two."""
    frame = sys._getframe(1)
    with ALLOCATING:
        key = frame.f_code.co_filename, frame.f_lineno
        if key not in self._allocations:
            self._allocations[key] = np.empty(shape, dtype)
        return self._allocations[key]


def a_problem(form="uniform", label_gram=None, kernel=KERNEL, seed=0, count=4, others=False):
    rng = np.random.default_rng(seed)
    X = random_structures(rng, "sequence", count, longest=8)
    Y = random_structures(rng, "sequence", 3, longest=5) if others else X
    priors = random_prior(rng, X, LABELS, form)
    sides = two_sides(X, Y, priors, random_prior(rng, Y, LABELS, form) if others else priors)
    gram = np.eye(LABELS) if label_gram is None else label_gram
    return Sources(Settings(kernel, gram, 1.3, 0.0), sides[0]).problem(sides[1])


def coefficients(case, seed=1):
    rng = np.random.default_rng(seed)
    shape = int(case.sources.offsets[-1]), LABELS
    return rng.normal(size=shape) * (rng.random((shape[0], 1)) < 0.5)


def trained(make, case, epochs=2, base=None):
    """Mistakes, state and engine after some epochs in different orders."""
    rng = np.random.default_rng(2)
    nodes = int(case.targets.offsets[-1])
    labels, amounts = rng.integers(-1, LABELS, nodes), rng.random(nodes) + 0.5
    engine, state = make(case), PerceptronState(np.zeros((2, nodes, LABELS)), base=base)
    orders = [rng.permutation(len(case.targets.sizes)) for _ in range(epochs)]
    return [engine.perceptron_epoch(order, labels, amounts, state) for order in orders], state, engine


def in_tiles(monkeypatch):
    monkeypatch.setattr(machine, "fit_belts", lambda *_: False)


@pytest.mark.parametrize("way", ["strips", "tiles"])
def test_epochs_with_a_constant_mass_are_equal_to_the_last_bit(monkeypatch, way):
    if way == "tiles":
        in_tiles(monkeypatch)
    case = a_problem(count=3)
    assert max(case.kernel_classes.counts) < len(case.points[0])
    mistakes, state, engine = trained(CudaEngine, case)
    expected, other, cpu = trained(CpuEngine, case)
    assert mistakes == expected
    assert mistakes[0]
    assert (state.sums == other.sums).all()
    assert state.steps == other.steps
    assert (engine.all_scores().doubles() == cpu.all_scores().doubles()).all()


def test_an_epoch_pushes_the_structures_with_mistakes_and_no_others(monkeypatch):
    monkeypatch.setattr(machine, "_LEAST_PUSHES", 1)  # so that launches count pushes
    monkeypatch.setattr(machine, "_LAUNCH_CELLS", 0.0)
    launches, kernel_of = [], epochs.epoch_kernel

    class Counted:
        def __init__(self, *variant):
            self.kernel = kernel_of(*variant)

        def __getitem__(self, configuration):
            launches.append(configuration)
            return self.kernel[configuration]

    monkeypatch.setattr(epochs, "epoch_kernel", Counted)
    case = a_problem(count=3)
    mistakes, state, _ = trained(CudaEngine, case, 1)
    assert mistakes == trained(CpuEngine, case, 1)[0]
    mistaken = np.logical_or.reduceat(state.sums[0].any(axis=1), case.targets.offsets[:-1]).sum()
    assert 0 < mistaken <= len(launches) <= mistaken + 1  # the last finds no other


def an_orders_case():
    """Sources, and perceptrons in two orders, on all structures and on three of them."""
    rng = np.random.default_rng(0)
    X = random_structures(rng, "sequence", 4, longest=4)
    side, _ = two_sides(X, X, *[random_prior(rng, X, LABELS, "uniform")] * 2)
    sources = Sources(Settings(KERNEL, np.eye(LABELS), 1.3, 0.0), side)
    parts = np.arange(4), np.array([0, 2, 3])
    orders = [[rng.permutation(len(part)) for _ in range(2)] for part in parts]
    return sources, [PlannedTraining(*each) for each in zip(parts, orders, strict=True)], rng


def test_perceptrons_that_are_trained_at_the_same_time_are_the_same():
    sources, planned, rng = an_orders_case()
    problem = sources.problem()
    nodes = int(problem.targets.offsets[-1])
    labels, amounts = rng.integers(-1, LABELS, nodes), rng.random(nodes) + 0.5
    problems = [problem, sources.take(planned[1].members).problem()]
    engines = CudaEngine(problem).plan_joint_training(planned, problems, labels, amounts)
    for engine, (members, orders), part_problem in zip(engines, planned, problems, strict=True):
        at = sources.examples.encoded.corpus.nodes_of(members)
        states = [PerceptronState(np.zeros((2, len(at), LABELS))) for _ in range(2)]
        cpu = CpuEngine(part_problem)
        last = orders[1] if members is planned[0].members else orders[1][::-1]  # not as planned
        for order in (orders[0], last):
            mistakes = [
                trainer.perceptron_epoch(order, labels[at], amounts[at], state)
                for trainer, state in zip((engine, cpu), states, strict=True)
            ]
            assert mistakes[0] == mistakes[1] > 0
        assert (states[0].sums == states[1].sums).all()
        assert states[0].steps == states[1].steps
        assert (engine.all_scores().doubles() == cpu.all_scores().doubles()).all()


@pytest.mark.parametrize("way", ["strips", "tiles", "many labels"])
@pytest.mark.parametrize("gram", [None, SIMILAR], ids=["identity", "label kernel"])
def test_epochs_with_product_priors_have_the_same_mistakes(monkeypatch, gram, way):
    if way == "tiles":
        in_tiles(monkeypatch)
    if way == "many labels":  # too many for registers
        monkeypatch.setattr(strips, "MAX_REGISTER_LABELS", 0)
        epochs.epoch_kernel.cache_clear()
    case = a_problem("marginals", gram, seed=3)
    base = Numbers(np.random.default_rng(5).normal(size=(int(case.targets.offsets[-1]), LABELS)))
    mistakes, state, engine = trained(CudaEngine, case, base=base)
    expected, other, cpu = trained(CpuEngine, case, base=base)
    assert mistakes == expected
    np.testing.assert_array_equal(state.sums, other.sums)
    np.testing.assert_allclose(
        engine.all_scores().doubles(), cpu.all_scores().doubles(), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("form", ["uniform", "marginals"])
@pytest.mark.parametrize("way", ["shared memory", "large tables", "many types", "tiles"])
def test_scores_of_other_structures(monkeypatch, form, way):
    case = a_problem(form, others=True, seed=7)
    if way == "tiles":
        in_tiles(monkeypatch)
    if way == "large tables":  # that no stage has room for
        monkeypatch.setattr(machine, "_MIN_STAGED_ROWS", 1000)
    if way == "many types":  # whose numbers need 64 bits
        monkeypatch.setattr(layout, "_NARROW", 0)
    alpha = coefficients(case)
    actual = CudaEngine(case).scores(alpha).doubles()
    np.testing.assert_allclose(actual, CpuEngine(case).scores(alpha).doubles(), rtol=1e-12, atol=1e-13)


def test_kernels_without_shared_codes():
    case = a_problem(kernel=Delta() + 0.5 * KERNEL, seed=4)
    alpha = coefficients(case)
    np.testing.assert_array_equal(
        CudaEngine(case).scores(alpha).doubles(), CpuEngine(case).scores(alpha).doubles()
    )


def test_an_engine_for_other_targets_shares_its_sources():
    rng = np.random.default_rng(8)
    X, Y = random_structures(rng, "sequence", 4), random_structures(rng, "sequence", 3)
    priors = random_prior(rng, X, LABELS), random_prior(rng, Y, LABELS)
    ours, theirs = two_sides(X, Y, *priors)
    sources = Sources(Settings(KERNEL, np.eye(LABELS), 1.3, 0.0), ours)
    first, part = CudaEngine(sources.problem(theirs)), theirs.take(np.array([2, 0]))
    alpha = coefficients(first.problem)
    expected = CpuEngine(sources.problem(part)).scores(alpha).doubles()
    np.testing.assert_allclose(
        first.for_targets(sources.problem(part)).scores(alpha).doubles(), expected, atol=1e-13
    )


def test_a_margin_epoch_is_that_of_the_cpu():
    case = a_problem(count=3)
    nodes, results = int(case.targets.offsets[-1]), []
    labels = np.random.RandomState(0).randint(-1, LABELS, nodes)
    for make in (CudaEngine, CpuEngine):
        alpha, margins = np.zeros((nodes, LABELS)), Margins(labels, np.full(nodes, 2.0), 0.0)
        scores = make(case).margin_epoch(np.array([2, 0, 1]), margins, alpha, np.random.RandomState(1))
        results.append((alpha, scores))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-12)


@pytest.mark.parametrize(("begun", "ended"), [(CudaEngine, CpuEngine), (CpuEngine, CudaEngine)])
def test_either_engine_continues_what_the_other_began(begun, ended):
    case = a_problem()
    _, _, first = trained(begun, case, 1)
    second = ended(case)
    second.restore({name: array.copy() for name, array in first.state().items()})
    np.testing.assert_array_equal(second.all_scores().doubles(), first.all_scores().doubles())
    assert (second.state()["visits"] == first.state()["visits"]).all()


def test_kappa_is_that_of_the_cpu():
    case = a_problem()
    np.testing.assert_array_equal(
        CudaEngine(case).kappa(0, 1).doubles(), CpuEngine(case).kappa(0, 1).doubles()
    )


def test_what_a_card_does_not_compute_is_refused():
    rng = np.random.default_rng(0)
    for shape, gap, form, what in (
        ("tree", 0.0, "uniform", "trees and DAGs, whatever their parts,"),
        ("dag", 0.0, "uniform", "trees and DAGs, whatever their parts,"),
        ("sequence", 0.5, "uniform", "gaps"),
        ("sequence", 0.0, "chain", "prior_form='chain'"),
    ):
        X = random_structures(rng, shape, 3)
        side, _ = two_sides(X, X, *[random_prior(rng, X, LABELS, form)] * 2)
        case = Sources(Settings(KERNEL, np.eye(LABELS), 1.3, gap), side).problem()
        with pytest.raises(DataError, match=f"{what}.*CPU engine; set engine='cpu'"):
            CudaEngine(case)
    X = [Sequence(["Lima", "EFE"] * 619)]
    side, _ = two_sides(X, X, *[random_prior(rng, X, LABELS, "uniform")] * 2)
    with pytest.raises(DataError, match="exceed the range of doubles"):
        CudaEngine(Sources(Settings(Polynomial(2), np.eye(LABELS), 3.0, 0.0), side).problem())


def little_memory(monkeypatch, case):
    """A card that has room for the rows of two structures or so, and the plan that follows."""
    monkeypatch.setattr(plan, "_LOAD", 1)
    needed = CudaEngine(case)._machine.plan.needed
    monkeypatch.setattr(machine.Machine, "_free", lambda self: needed - 1)
    small_plan = CudaEngine(case)._machine.plan
    assert not small_plan.has_one_load
    return small_plan


def test_epochs_and_scores_are_the_same_where_the_table_comes_in_loads(monkeypatch):
    monkeypatch.setattr(kernel_classes, "_SMALL_TABLE", 1 << 20)  # every type is a class: a large table
    case = a_problem(count=3)
    little_memory(monkeypatch, case)
    mistakes, state, engine = trained(CudaEngine, case, 1)
    expected, other, cpu = trained(CpuEngine, case, 1)
    assert mistakes == expected
    assert (state.sums == other.sums).all()
    assert (engine.all_scores().doubles() == cpu.all_scores().doubles()).all()
    assert (
        engine.plan_joint_training(
            [PlannedTraining(np.arange(3), [])] * 2, [case] * 2, np.zeros(0), np.zeros(0)
        )
        is None
    )
    alpha = coefficients(case)
    assert (engine.scores(alpha).doubles() == cpu.scores(alpha).doubles()).all()
    monkeypatch.setattr(plan, "available_memory", lambda: 1)  # the table is computed in loads, too
    again = CudaEngine(case)
    assert not again._machine.plan.keeps_table
    assert (again.scores(alpha).doubles() == cpu.scores(alpha).doubles()).all()


def test_memory_is_planned_before_it_is_allocated(monkeypatch):
    case = a_problem()
    needed = CudaEngine(case)._machine.plan.needed
    monkeypatch.setattr(machine.Machine, "_free", lambda self: needed - 1)
    with pytest.raises(
        DataError, match=rf"needs {needed:,} bytes of memory, and {needed - 1:,} are free on card 0"
    ):
        make_engine("cuda", case)


def test_strips_are_for_many_nodes_and_for_priors(monkeypatch):
    monkeypatch.setattr(machine, "_MIN_STRIPS_PER_WARP", 1e9)
    for form, others, expected in (
        ("uniform", False, layout.Places),
        ("marginals", False, layout.Strips),
        ("marginals", True, layout.Places),  # not a training
    ):
        assert isinstance(CudaEngine(a_problem(form, others=others))._machine.places, expected)


def test_a_model_is_the_same_with_either_engine(monkeypatch):
    X = [["Ana", "in", "Lima"], ["Lima", "is"], ["Bo", "in", "Rome"]]
    y = [["P", "O", "L"], ["L", "O"], ["P", "O", "L"]]
    batches, run = [], machine.Machine.epochs
    monkeypatch.setattr(
        machine.Machine, "epochs", lambda self, *args: batches.append(len(args[1])) or run(self, *args)
    )
    models = [
        MarginalizedPerceptron(epochs=1, orders=2, mixing=1.2, engine=engine).fit(X, y)
        for engine in ("cuda", "cpu")
    ]
    assert batches == [8]  # two orders, and those of all three folds, at the same time
    assert models[0].mistakes_ == models[1].mistakes_
    scores = [np.concatenate(list(model.decision_scores([["Ana", "is", "Bo"]]))) for model in models]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (
        models[0]._calibration.labeling_coefficients == models[1]._calibration.labeling_coefficients
    ).all()
    assert models[0].predict(X).tolist() == models[1].predict(X).tolist()
