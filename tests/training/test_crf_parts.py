"""The CRF on a cluster: the same objective at every iteration, whatever happens to the workers."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone

import fuda
from fuda import CRF, DataError, Sequence
from fuda.data.window_encoding import WindowEncoder
from fuda.runtime.cluster import Residents
from fuda.training.crf_loss import Loss, TrainingLoss
from fuda.training.crf_parts import CorpusPart, DistributedLoss, _cut, _shares
from usage_cases import usage

dask = pytest.importorskip("dask", reason="Dask (fuda[cluster]) is not installed")
distributed = pytest.importorskip("distributed", reason="Dask (fuda[cluster]) is not installed")

DATA = usage()
X, Y = [Sequence(x.observations) for x in DATA.X[:120]], DATA.y[:120]


def objectives(model):
    return [iteration.objective for iteration in model.result_.history]


def fitted(cluster, X=X, y=Y, fit=(), **parameters):
    parameters = {"max_iter": 15, "tol": 0.0} | parameters
    with pytest.warns(match="has not converged"):
        return CRF(cluster=cluster, **parameters).fit(X, y, *fit)


def same(cluster, *data, **parameters):
    """Fit here and there, compare all that was measured, bit by bit, and return both models."""
    here, there = fitted(None, *data, **parameters), fitted(cluster.scheduler_address, *data, **parameters)
    assert objectives(there) == objectives(here)
    np.testing.assert_array_equal(there.weights_, here.weights_)
    np.testing.assert_allclose(there._curvature, here._curvature, rtol=1e-2)
    assert there.predict(data[0] if data else X).tolist() == here.predict(data[0] if data else X).tolist()
    return here, there


@pytest.mark.parametrize(
    "parameters",
    [{}, {"loss": "markov", "order": 2.0, "class_weight": "balanced"}, {"l1": 0.1}, {"solver": "cg"}],
    ids=str,
)
def test_objectives_are_those_of_a_local_fit(cluster, parameters):
    here, there = same(cluster, X[:20], Y[:20], **parameters)
    assert len(objectives(here)) == len(objectives(there))


def test_objectives_are_those_of_a_local_fit_where_the_spectrum_is_measured(cluster, monkeypatch):
    monkeypatch.setattr("fuda.models.crf.LEAST_NODES", 1)
    here, _ = same(cluster, X[:20], Y[:20], max_iter=32)
    assert len(objectives(here)) == 32


def test_trees_unknown_labels_weights_and_pair_features(cluster):
    y = [[None if (i + t) % 5 == 0 else label for t, label in enumerate(of)] for i, of in enumerate(Y[:30])]
    same(cluster, DATA.X[:30], y, (np.linspace(0.5, 2.0, 30),), pair_features=True, max_iter=8)


def test_the_same_bits_where_no_memory_is_shared(cluster, monkeypatch):
    """As where workers are on other machines: scores and gradients are in messages."""
    monkeypatch.setattr("fuda.training.crf_parts.offered", lambda count: nullcontext((np.zeros(count), None)))
    same(cluster, X[:40], Y[:40])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files of memory are Linux's")
def test_workers_on_this_machine_share_memory(cluster, monkeypatch):
    messages, scores_for = [], DistributedLoss._scores_for

    def recorded(loss, number):
        messages.append(scores_for(loss, number)[0])
        return (messages[-1],)

    monkeypatch.setattr(DistributedLoss, "_scores_for", recorded)
    same(cluster, X[:40], Y[:40])
    assert len(messages) > 30
    assert all(message is None for message in messages)


def kill(cluster):
    """Kill the process of a worker."""
    with distributed.Client(cluster, set_as_default=False) as client:
        os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)


def test_a_killed_worker_costs_no_more_than_time(cluster):
    killed = []

    def callback(iteration):
        if iteration.iteration == 3:
            killed.append(kill(cluster))

    here, there = fitted(None), fitted(cluster.scheduler_address, callback=callback)
    assert len(killed) == 1
    assert objectives(there) == objectives(here)


class Workers:
    """Workers without Dask: objects of this process, in place of client and residents."""

    def __init__(self, count):
        self.count = count

    def nthreads(self):
        return dict.fromkeys(range(self.count), 1)

    def hire(self, client, recipes, on_created):
        self.objects = [make(*arguments) for make, *arguments in recipes]
        return self

    def results(self, function, arguments):
        return (function(value, *arguments(number)) for number, value in enumerate(self.objects))


@pytest.fixture(params=[1, 2, 3])
def parts(request, monkeypatch):
    """A number of parts in this process, for models with any `cluster`."""
    workers = Workers(request.param)
    monkeypatch.setattr("fuda.training.crf_parts.connected", lambda address: nullcontext(workers))
    monkeypatch.setattr("fuda.training.crf_parts.Residents", workers.hire)
    monkeypatch.setattr("fuda.training.crf_parts.worker_threads", lambda: 1)
    return workers


HERE: dict[bytes, CRF] = {}  # the same fits for all numbers of parts


def converged(X, y, fit=(), **parameters):
    """A fit here and one by parts, until objectives stop falling."""
    key = pickle.dumps((X, y, fit, parameters, fuda.models.crf.LEAST_NODES))
    if key not in HERE:
        HERE[key] = CRF(**parameters).fit(X, y, *fit)
    here, there = HERE[key], CRF(cluster="parts", **parameters).fit(X, y, *fit)
    assert here.result_.converged
    assert len(objectives(here)) > 20
    return here, there


CASES = [
    {"pair_features": True},
    {"loss": "pointwise", "class_weight": "balanced"},
    {"loss": "markov", "order": 2.0},
    {"l1": 0.1},
    {"solver": "cg"},
]


@pytest.mark.parametrize("parameters", [{}, *CASES], ids=str)
def test_parts_have_the_bits_of_the_whole_until_convergence(parts, parameters):
    here, there = converged(X[:20], Y[:20], **parameters)
    assert len(parts.objects) == parts.count
    assert objectives(there) == objectives(here)
    np.testing.assert_array_equal(there.weights_, here.weights_)


def test_also_where_the_spectrum_is_measured(parts, monkeypatch):
    monkeypatch.setattr("fuda.models.crf.LEAST_NODES", 1)
    here, there = converged(X[:60], Y[:60], tol=1e-9)
    assert objectives(there) == objectives(here)


def test_also_where_values_of_features_and_weights_are_any_numbers(parts):
    """Sums of products with features are computed here, from sums that are exact."""
    inputs = [
        [{"word": str(w), "length": len(str(w)) / 7, "share": t / 10} for t, w in enumerate(x)] for x in X
    ]
    here, there = converged(inputs[:40], Y[:40], (np.linspace(0.1, 3.0, 40),))
    assert objectives(there) == objectives(here)


def test_also_trees_and_unknown_labels(parts):
    y = [[None if (i + t) % 9 == 0 else label for t, label in enumerate(of)] for i, of in enumerate(Y[:40])]
    here, there = converged(DATA.X[:40], y)
    assert objectives(there) == objectives(here)
    here, there = converged(X[:40], y)
    assert objectives(there) == objectives(here)


def test_vectors_have_sums_in_another_order(parts):
    random = np.random.default_rng(0)
    inputs = [list(random.normal(size=(len(x.observations), 5))) for x in X[:40]]
    here, there = converged(inputs, Y[:40])
    np.testing.assert_allclose(objectives(there), objectives(here), rtol=1e-9)


@pytest.fixture
def programs(tmp_path):
    """The address of a scheduler in its own process, as on a real cluster, and the process."""
    started, file = [], tmp_path / "scheduler.json"
    for name, *options in (["scheduler", "--port", "0"], ["worker", "--no-nanny"]):
        command = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--no-dashboard", *options]
        command += ["--scheduler-file", file]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    while not file.exists() or not file.read_text().endswith("}"):
        time.sleep(0.05)
    yield json.loads(file.read_text())["address"], started[0]
    for program in started:
        program.kill()
        program.wait()


def test_a_lost_scheduler_is_an_error_and_the_checkpoint_is_kept(programs, tmp_path, monkeypatch):
    monkeypatch.setattr("fuda.storage.checkpoint.SECONDS_BETWEEN", 0.0)
    (address, scheduler), path, began = programs, tmp_path / "checkpoint", []

    def lose(iteration):
        if iteration.iteration == 6:
            scheduler.kill()
            scheduler.wait()

    def stop(iteration):
        began.append(iteration.iteration)
        raise StopIteration

    model = CRF(cluster=address, checkpoint=path, callback=lose, max_iter=100_000, tol=0.0)
    with pytest.raises(DataError, match="the scheduler is lost; start the cluster again") as caught:
        model.fit(X, Y)
    assert "\n" not in str(caught.value)
    model.set_params(cluster=None, callback=stop).fit(X, Y)
    assert began[0] > 6


def test_a_worker_that_is_ending_counts_as_lost():
    class Ending:
        def result(self, timeout):
            raise RuntimeError("cannot schedule new futures after shutdown")  # as Dask says it

    assert Residents(None, [])._wait(0, Ending()) is None


def test_no_cluster_at_the_address():
    quickly = dask.config.set({"distributed.comm.timeouts.connect": "0.2s"})
    with quickly, pytest.raises(DataError, match=r"cluster=tcp://127.0.0.1:1: no scheduler answers there"):
        CRF(cluster="tcp://127.0.0.1:1").fit(X, Y)


@pytest.mark.parametrize("cluster", [3, "", ["tcp://127.0.0.1:1"]])
def test_an_address_is_text(cluster):
    with pytest.raises(DataError, match="give the address of the scheduler"):
        CRF(cluster=cluster).fit(X, Y)


def test_steps_of_sgd_are_not_shared_out():
    with pytest.raises(DataError, match="choose solver='lbfgs' or 'cg'"):
        CRF(cluster="tcp://127.0.0.1:1", solver="sgd").fit(X, Y)


def test_the_address_is_neither_stored_nor_needed_afterwards(cluster, tmp_path):
    model = fitted(cluster.scheduler_address, X[:20], Y[:20], max_iter=3)
    assert clone(model).cluster == cluster.scheduler_address
    model.save(tmp_path / "model.fuda")
    assert fuda.load(tmp_path / "model.fuda").cluster is None
    assert cluster.scheduler_address.encode() not in (tmp_path / "model.fuda").read_bytes()


@pytest.mark.parametrize("count", [1, 2, 7, 500])
def test_parts_add_up_to_the_whole(count):
    encoded = WindowEncoder("text", 1).fit(X[:50])
    names = sorted({label for labels in Y for label in labels})
    labels = np.array([names.index(label) for of in Y[:50] for label in of])
    kind = Loss(2.0, True)
    reference = TrainingLoss(encoded, labels, len(names), kind)
    vector = np.random.default_rng(0).normal(size=reference.weights.size)
    value, gradient, curvature = 0.0, np.zeros(vector.size), np.zeros(vector.size)
    shares = _shares(encoded.corpus.offsets, count)
    assert np.concatenate(shares).tolist() == list(range(50))
    for members in shares:
        part, columns = _cut(encoded, members)
        at, nodes = CorpusPart(part, columns, reference.weights), encoded.corpus.nodes_of(members)
        loss = TrainingLoss(part, labels[nodes], len(names), kind)
        assert count == 1 or loss.weights.size < reference.weights.size
        part_loss = loss(at.of(vector))
        value += part_loss[0]
        at.add(part_loss[1], gradient)
        at.add(loss.curvature(), curvature)
    np.testing.assert_allclose(value, reference(vector)[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, reference(vector)[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(curvature, reference.curvature(), rtol=1e-12)
