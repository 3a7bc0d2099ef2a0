"""A lost connection is an error of the cluster, not of a file."""

from __future__ import annotations

import pytest

from fuda.errors import ClusterError
from fuda.runtime.cluster import Shared, connected

pytest.importorskip("distributed")


class Lost:
    """A client, and an answer, of a scheduler that is lost after the first question."""

    status, scheduler, asked = "running", None, 0

    def nthreads(self):
        if self.asked > 1:
            raise OSError
        return {"worker": 1}

    def submit(self, *_, **__):
        self.asked += 1
        if self.asked > 2:
            raise OSError
        return self

    def result(self, timeout):
        raise OSError  # as Dask's CommClosedError, which has no number and no text


def test_the_scheduler_is_lost_while_an_answer_is_awaited():
    shared = Shared(Lost(), "model")
    answer = shared.submit(len)
    with pytest.raises(ClusterError, match="the scheduler is lost"):
        shared.result(answer)
    with pytest.raises(ClusterError, match="the scheduler is lost"):
        shared.submit(len)


def test_an_address_without_port_is_refused_at_once():
    with pytest.raises(ClusterError, match="cluster=here: no scheduler answers"), connected("here"):
        pass
