"""What all tests share: how they are run, and where corpora outside of the project are."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Also where there is a card; what runs on one is tested in numba's simulator, in processes
# of their own.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# "quick" if nothing else is asked for; CI asks for "thorough".
for profile, examples in {"quick": 40, "thorough": 120}.items():
    settings.register_profile(
        profile,
        derandomize=True,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],  # it depends on the load of the machine
    )
settings.load_profile("quick")

CORPORA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    """Do without what costs time and is not tested.

    No test is about a loss of power: the system writes what is saved when it likes to. Processes
    that run tests side by side have a core each, so that small fits do not wait for threads;
    thorough ones have all.
    """
    os.fsync = lambda handle: None
    number = os.environ.get("PYTEST_XDIST_WORKER", "")[2:]
    is_thorough = config.getoption("--hypothesis-profile") == "thorough"
    if number and not is_thorough and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(number) % len(cores)]})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests come first: the other processes wait for the end of one that begins last.

    Before these come the tests of a cluster, then those of a browser, so that one process has them
    and starts each once.
    """

    def place(item: pytest.Item) -> tuple[bool, ...]:
        names = getattr(item, "fixturenames", ())
        is_fast = item.get_closest_marker("slow") is None
        return "cluster" not in names, "browser" not in names, is_fast

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay to the end: among these, no garbage is looked for, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of the real corpora; a test that asks for it is skipped where there is none."""
    if not CORPORA.is_dir():
        pytest.skip("the corpora are not at ../shared/data")
    return CORPORA


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model file."""
    from fuda import HMM

    path = tmp_path_factory.mktemp("models") / "small.fuda"
    X = [["Ana", "lives", "in", "Lima"], ["Bo", "sleeps"]]
    HMM(window=1).fit(X, [["PER", "O", "O", "LOC"], ["PER", "O"]]).save(path)
    return path


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A Dask cluster of two processes, whose workers come back when they are killed."""
    distributed = pytest.importorskip("distributed", reason="Dask (fuda[cluster]) is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=60
    ) as cluster:
        yield cluster


@pytest.fixture
def default_signals() -> Iterator[None]:
    """The handlers of a new process, also where the tests run in the background of a shell."""
    new: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in new.items()}
    yield
    assert {number: signal.getsignal(number) for number in new} == new
    for number, handler in before.items():
        signal.signal(number, handler)
