"""The CUDA engine: tests in numba's simulator, the choice of engines, and unusable cards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.utils import check_random_state

from fuda import DataError
from fuda.kernels import Polynomial
from fuda.marginalized import engines
from fuda.marginalized.engines import make_engine
from fuda.marginalized.engines.cpu.engine import CpuEngine
from fuda.marginalized.engines.cuda import device
from fuda.marginalized.engines.cuda.layout import STRIP, Places, Strips, fit_belts
from fuda.marginalized.engines.cuda.plan import Sizes, loads, plan_of
from fuda.marginalized.problem import Settings, Sources
from fuda.models.machines.perceptron_orders import planned_trainings
from machine_cases import random_prior, random_structures, two_sides

CASES = Path(__file__).with_name("cuda_cases.py")


@pytest.mark.slow
def test_in_the_simulator():
    """All of `cuda_cases.py` in a process of its own: numba reads the setting at import."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:cov",
        str(CASES),
    ]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=CASES.parents[4]
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " failed" not in done.stdout


def a_problem(shape="sequence"):
    rng = np.random.default_rng(0)
    X = random_structures(rng, shape, 4)
    side, _ = two_sides(X, X, *[random_prior(rng, X, 2, "uniform")] * 2)
    return Sources(Settings(Polynomial(2).normalized(), np.eye(2), 1.0, 0.0), side).problem()


class FakeDriverError(Exception):
    pass


def fake(version=(12, 4), available=True, capability=(9, 0), context=None, cards=1):
    """A module like `numba.cuda`, with a card in some state."""

    def current_context():
        if context is not None:
            raise FakeDriverError(context)

    card = SimpleNamespace(name=b"NVIDIA H200", compute_capability=capability, id=0, MULTIPROCESSOR_COUNT=132)
    driver = SimpleNamespace(driver=SimpleNamespace(get_version=lambda: version))
    return SimpleNamespace(
        config=SimpleNamespace(ENABLE_CUDASIM=0),
        cudadrv=SimpleNamespace(driver=driver, error=SimpleNamespace(CudaDriverError=FakeDriverError)),
        is_available=lambda: available,
        get_current_device=lambda: card,
        current_context=current_context,
        gpus=[card] * cards,
    )


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"version": (11, 8)}, "driver is too old: it supports CUDA 11.8, and 12.0 is needed; update it"),
        ({"available": False}, "the NVIDIA driver finds no card; set engine='cpu'"),
        ({"capability": (5, 2)}, "NVIDIA H200 has compute capability 5.2, and 6.0 is needed"),
        ({"context": "[46] CUDA_ERROR_DEVICE_UNAVAILABLE"}, "the card is taken by another program"),
        ({"context": "[2] CUDA_ERROR_OUT_OF_MEMORY"}, "other programs have taken all memory of the card"),
        ({"context": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}, "does not fit its own libraries"),
        ({"context": "[999] CUDA_ERROR_UNKNOWN"}, r"the card cannot be used \(.*999.*nvidia-smi, or set"),
    ],
    ids=str,
)
def test_a_card_that_cannot_be_used_is_a_sentence(monkeypatch, state, sentence):
    monkeypatch.setattr(device, "has_driver", lambda: True)
    with pytest.raises(DataError, match=f"engine='cuda': .*{sentence}"):
        device.card(fake(**state))


def test_a_card_that_others_fill_meanwhile_is_a_sentence():
    with (
        pytest.raises(DataError, match="engine='cuda': other programs have taken all memory of the card"),
        device.explained_errors(fake()),
    ):
        raise FakeDriverError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")


def test_cards_are_named(monkeypatch):
    monkeypatch.setattr(device, "has_driver", lambda: True)
    assert str(device.card(fake())) == "card 0 of 1 (NVIDIA H200)"
    assert "card 0 of 2 (NVIDIA H200), where CUDA_VISIBLE_DEVICES chooses" in str(device.card(fake(cards=2)))
    assert device.card(fake()).multiprocessors == 132


def test_no_driver_is_a_sentence(monkeypatch):
    monkeypatch.setattr(device, "has_driver", lambda: False)
    with pytest.raises(
        DataError, match=r"no NVIDIA driver here \(libcuda\); install it, or set engine='cpu'"
    ):
        device.card(fake())


def test_numba_cuda_that_is_not_installed_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba.cuda", None)
    monkeypatch.delattr("numba.cuda", raising=False)
    with pytest.raises(DataError, match=r"needs numba-cuda .*pip install 'fuda\[gpu\]'"):
        device.load()


def test_auto_falls_back_to_the_cpu_and_says_so(monkeypatch):
    def refused(*_):
        raise device.Refused("engine='cuda': 2 bytes needed, 1 free")

    monkeypatch.setattr("fuda.marginalized.engines.cuda.engine.CudaEngine.__init__", refused)
    monkeypatch.setattr(device, "has_driver", lambda: True)
    assert isinstance(make_engine("auto", a_problem()), CpuEngine)  # too small to ask for a card
    monkeypatch.setattr(engines, "_LARGE_IN_TRAINING", 1)
    with pytest.warns(UserWarning, match="2 bytes needed, 1 free; engine='auto' continues on the CPU"):
        assert isinstance(make_engine("auto", a_problem()), CpuEngine)
    with pytest.raises(DataError, match="2 bytes needed"):
        make_engine("cuda", a_problem())
    assert isinstance(make_engine("auto", a_problem("tree")), CpuEngine)  # which no card computes


def test_auto_without_a_card_says_nothing(monkeypatch):
    def none(*_):
        raise device.NoCard("no card")

    monkeypatch.setattr(engines, "_LARGE_IN_TRAINING", 1)
    monkeypatch.setattr("fuda.marginalized.engines.cuda.engine.CudaEngine.__init__", none)
    for has_driver in (True, False):
        monkeypatch.setattr(device, "has_driver", lambda answer=has_driver: answer)
        assert isinstance(make_engine("auto", a_problem()), CpuEngine)


SIZES = Sizes(targets=1000, perceptron=100, node=10, row=50)
ONE = device.Card("NVIDIA H200", 0, 1, 132)


def a_plan(free, problem=None):
    """A plan for 4 structures, of which the longest has 3 nodes."""
    return plan_of(problem or other_targets(), SIZES, free, ONE)


def other_targets(classes=(0, 1, 2, 3, 4, 5, 6, 7)):
    """What a plan reads of a problem."""
    sizes = np.array([3, 1, 2, 2])
    source = SimpleNamespace(offsets=np.append(0, np.cumsum(sizes)), sizes=sizes, classes=np.array(classes))
    return SimpleNamespace(sources=source, targets=SimpleNamespace(offsets=np.array([0, 1])))


def test_a_plan_has_all_on_the_card_if_it_fits():
    total_bytes = 1000 + 8 * 10 + 8 * 50
    plan = a_plan(total_bytes + 250)
    assert (plan.needed, plan.has_one_load, plan.perceptrons) == (total_bytes, True, 3)
    assert loads(plan, np.arange(8), np.array([3, 1, 2, 2])) == [slice(0, 4)]


def test_sources_and_rows_come_in_loads_where_they_do_not_fit(monkeypatch):
    plan = a_plan(1000 + 3 * 10 + 3 * 50 + 110)
    assert (plan.rows, plan.nodes, plan.has_one_load, plan.perceptrons) == (4, 8, False, 1)
    assert loads(plan, np.arange(8), np.array([3, 1, 2, 2])) == [slice(0, 2), slice(2, 4)]
    assert loads(plan, np.zeros(8, dtype=int), np.array([3, 1, 2, 2])) == [slice(0, 4)]
    few = plan._replace(nodes=3)
    assert loads(few, np.zeros(8, dtype=int), np.array([3, 1, 2, 2])) == [
        slice(0, 1),
        slice(1, 3),
        slice(3, 4),
    ]
    monkeypatch.setattr("fuda.marginalized.engines.cuda.plan.available_memory", lambda: 100)
    assert not a_plan(1 << 40).has_one_load  # the table is computed here


def test_what_does_not_fit_in_loads_names_the_bytes_needed_and_free():
    needed = 1000 + 3 * 10 + 3 * 50
    with pytest.raises(
        DataError, match=rf"needs {needed:,} bytes of memory, and {needed - 1:,} are free on card 0 of 1"
    ):
        a_plan(needed - 1)
    trained = other_targets()
    trained.targets.offsets = trained.sources.offsets  # whose nodes are all there, as targets
    with pytest.raises(DataError, match=f"needs {needed + 50:,} bytes"):
        a_plan(needed, trained)


@pytest.mark.parametrize("seed", [3, np.random.RandomState(3)], ids=["number", "generator"])
def test_orders_are_planned_without_using_up_random_numbers(seed):
    model = SimpleNamespace(random_state=seed, epochs=2)
    planned = planned_trainings(model, [np.arange(5), np.array([1, 2, 4])], 2)
    assert [each.members.tolist() for each in planned[1:3]] == [[0, 1, 2, 3, 4], [1, 2, 4]]
    # The first is not shuffled.
    assert [order.tolist() for order in planned[2].visits] == [[0, 1, 2]] * 2
    random = check_random_state(seed)  # a generator has drawn for the first before the second
    drawn = [random.permutation(5)]
    drawn.append(random.permutation(drawn[0]))
    assert [order.tolist() for order in planned[1].visits] == [order.tolist() for order in drawn]
    assert planned[3].visits[0].tolist() == check_random_state(seed).permutation(3).tolist()


def test_tiles_are_whole_structures_of_similar_size():
    rng = np.random.default_rng(0)
    sizes = np.append(rng.integers(1, 60, 500), 700)
    places = Places(sizes, edge=700)
    for blocks in (1, 7, 100):
        bounds = places.tiles(blocks)
        assert len(bounds) <= 1 + blocks * -(-places.size // (blocks * 2112))
        assert np.isin(bounds[:-1] + 1, places.begins).all()
        assert bounds[-1] == places.size - 1 - 700
        assert np.diff(bounds).max() <= max(701, 1.3 * sizes.sum() / blocks)
    nodes, owners = places.nodes(places.of_visits(np.array([3, 1])))
    assert nodes.tolist() == [*range(*np.cumsum(sizes)[2:4]), *range(*np.cumsum(sizes)[:2])]
    assert owners.tolist() == [3] * sizes[3] + [1] * sizes[1]


def test_strips_are_full_and_have_whole_structures():
    rng = np.random.default_rng(0)
    sizes = np.append(rng.integers(1, 60, 500), [STRIP - 1, 3 * STRIP, STRIP - 2])
    strips = Strips(sizes, warps=4)
    assert strips.belts == 2
    assert strips.strips <= 1.06 * (sizes + 1).sum() / STRIP
    is_used = np.zeros(strips.size, dtype=int)
    for begin, size in zip(strips.begins.tolist(), sizes.tolist(), strict=True):
        is_used[begin : begin + size] += 1
        assert not is_used[begin - 1]
        within = 4 * STRIP if begin < 2 * 4 * STRIP else STRIP
        assert begin // within == (begin + size) // within  # and the place after it is there
    assert is_used.max() == 1
    assert sorted(strips.of_nodes.tolist()) == sorted(set(strips.of_nodes.tolist()))
    nodes, owners = strips.nodes(strips.of_visits(np.array([3, 1])))
    assert nodes.tolist() == [*range(*np.cumsum(sizes)[2:4]), *range(*np.cumsum(sizes)[:2])]
    assert owners.tolist() == [3] * sizes[3] + [1] * sizes[1]
    assert strips.spread(np.arange(sizes.sum()), -1)[strips.of_nodes].tolist() == list(range(sizes.sum()))


def test_what_is_longer_than_a_belt_does_not_fit():
    assert fit_belts(np.array([3, 2 * STRIP - 2]), warps=2)
    assert not fit_belts(np.array([3, 2 * STRIP - 1]), warps=2)
