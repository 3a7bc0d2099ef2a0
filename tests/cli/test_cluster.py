"""fuda tag and fuda train on a cluster: the same bytes as without one."""

from __future__ import annotations

import os
import signal

import pytest

import fuda
from usage_cases import usage

distributed = pytest.importorskip("distributed", reason="Dask (fuda[cluster]) is not installed")

DATA = usage()
X = [list(x.observations) for x in DATA.X]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files of sentences, and a model of the first."""
    folder = tmp_path_factory.mktemp("files")
    for number in range(3):
        part = DATA.records[40 * number : 40 * number + 40]
        many = fuda.formats.Dataset(part * (1 if number < 2 else 30))
        fuda.write(many, folder / f"{number}.conll", flatten=True)
    fuda.CRF(tol=0.05, max_iter=100).fit(X[:40], DATA.y[:40]).save(folder / "m.fuda")
    return folder


def tagged(run, files, *more):
    result = run("tag", files / "m.fuda", *(files / f"{number}.conll" for number in range(3)), *more)
    assert result.code == 0, result.err
    return result.out


def test_files_are_labelled_as_without_a_cluster(run, files, cluster, tmp_path):
    there = ["--cluster", cluster.scheduler_address]
    assert tagged(run, files, *there) == tagged(run, files)
    more = ["--marginals", "--as", "jsonl"]
    assert tagged(run, files, *there, *more) == tagged(run, files, *more)
    for name, where in (("here", []), ("there", there)):
        (tmp_path / name).mkdir()
        tagged(run, files, *where, "-o", tmp_path / name)
    for number in range(3):
        path = f"{number}.conll"
        assert (tmp_path / "here" / path).read_bytes() == (tmp_path / "there" / path).read_bytes()


def test_a_worker_killed_while_files_are_labelled(run, files, cluster, monkeypatch):
    here, count, shared = tagged(run, files), [], fuda.runtime.cluster.Shared.submit

    def submit(self, *arguments):
        count.append(None)
        if len(count) == 2:
            os.kill(min(self.client.run(os.getpid).values()), signal.SIGKILL)
        return shared(self, *arguments)

    monkeypatch.setattr(fuda.runtime.cluster.Shared, "submit", submit)
    assert tagged(run, files, "--cluster", cluster.scheduler_address) == here
    assert len(count) > 2


def test_errors_are_those_without_a_cluster(run, files, cluster, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"sequence": [1.5, 2.5]}\n')
    line = ["tag", files / "m.fuda", tmp_path / "bad.jsonl"]
    here, there = run(*line), run(*line, "--cluster", cluster.scheduler_address)
    assert (here.code, here.err) == (there.code, there.err) == (2, there.err)


def test_training_on_a_cluster(run, files, cluster, tmp_path):
    line = ["train", files / "0.conll", "--set", "max_iter=4"]
    assert run(*line, "-o", tmp_path / "here.fuda").code == 0
    there = run(*line, "-o", tmp_path / "there.fuda", "--cluster", cluster.scheduler_address)
    assert there.code == 0
    models = [fuda.load(tmp_path / f"{name}.fuda") for name in ("here", "there")]
    assert models[0].predict(X).tolist() == models[1].predict(X).tolist()


def test_learners_that_are_not_trained_on_clusters(run, files, tmp_path):
    line = ["train", files / "0.conll", "-o", tmp_path / "m.fuda", "--cluster", "tcp://127.0.0.1:1"]
    result = run(*line, "--learner", "hmm")
    assert result.code == 2
    assert "--cluster: hmm is not trained on clusters" in result.err
