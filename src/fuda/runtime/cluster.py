"""A Dask cluster: objects that stay on its workers, and are made again where a worker is lost.

Nothing here imports Dask before a cluster is used.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from fuda import __version__
from fuda.errors import ClusterError, short

_POLL = 1.0  # seconds between checks that the scheduler is still there
_PATIENCE = 60.0  # seconds to wait for a worker where all are lost


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Within the block, there is a client of a cluster.

    Parameters
    ----------
    address : str
        The address of the scheduler, such as "tcp://10.0.0.1:8786".

    Yields
    ------
    distributed.Client
        The client.
    """
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError:
        raise ClusterError(
            f"cluster={address}: Dask is not installed; run pip install 'fuda[cluster]'"
        ) from None
    try:
        # Where there is none, a client raises the same error but is not closed.
        get_address_host_port(address)
        client = Client(address, direct_to_workers=True, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # a TypeError where TLS is not configured
        raise ClusterError(
            f"cluster={address}: no scheduler answers there ({short(error)}); correct the address, or start "
            "one with `dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from None
    try:
        yield client
    finally:
        log = logging.getLogger("distributed.client")
        level = log.level
        log.setLevel(logging.CRITICAL)  # that it cannot connect again was reported before
        try:
            client.close(timeout=5)
        finally:
            log.setLevel(level)


def worker_threads() -> int:
    """Return the number of threads of the worker that this runs on."""
    from distributed import get_worker

    return int(get_worker().state.nthreads)


class Resident:
    """An object on a worker."""

    value: Any

    def make(self, version: str, factory: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
        """Make the object; returns None and an error where that fails."""
        if version != __version__:
            message = f"a worker has fuda {__version__}, but here is {version}; install the same version"
            return None, ClusterError(message)
        return _called(self._keep, factory, *arguments)

    def _keep(self, factory: Callable[..., Any], *arguments: Any) -> None:
        self.value = factory(*arguments)

    def call(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
        """Return what a function returns for the object, and None; or None and its error."""
        return _called(function, self.value, *arguments)


class Residents:
    """Objects that stay on the workers of a cluster; results come in the order of the objects.

    Where a worker is lost, its objects are made again on others, and asked again.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    recipes : list of tuples
        For each object a function that makes it, which the workers can import, and its arguments.
    on_created : callable, optional
        Called with the number of each object that is made.
    """

    def __init__(
        self, client: Any, recipes: Sequence[tuple[Any, ...]], on_created: Callable[[int], None] | None = None
    ) -> None:
        self.client, self.recipes = client, list(recipes)
        self._on_created = on_created or (lambda number: None)
        # An actor lives as long as there is a future of it.
        self._actors: list[Any] = [None] * len(self.recipes)
        self._futures: list[Any] = [None] * len(self.recipes)
        self._places = [""] * len(self.recipes)
        self._create(range(len(self.recipes)))

    def call(self, function: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]]) -> list[Any]:
        """Call a function of every object, all at once.

        Parameters
        ----------
        function : callable
            A function of the object and the arguments, which the workers can import.
        arguments : callable
            From the number of an object to further arguments; asked again where it was made again.

        Returns
        -------
        list
            What it returned for each object.
        """
        return list(self.results(function, arguments))

    def results(
        self, function: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Call a function of every object, and return an iterator over the results; see `call`.

        All are asked at once, so that they work also while nobody waits for the results.
        """
        numbers = range(len(self.recipes))
        answers = {number: self._ask(number, "call", function, *arguments(number)) for number in numbers}
        return self._answers(answers, function, arguments)

    def _answers(
        self,
        answers: dict[int, Any],
        function: Callable[..., Any],
        arguments: Callable[[int], tuple[Any, ...]],
    ) -> Iterator[Any]:
        """The values of answers in order, asked for again where a worker is lost."""
        for number in list(answers):
            answer = self._wait(number, answers.pop(number))
            while answer is None:
                self._create([number])
                answer = self._wait(number, self._ask(number, "call", function, *arguments(number)))
            yield _value(answer)

    def _ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Send a question to an object; return the future answer, None if its worker is lost."""
        if self._actors[number] is None:
            return None
        with self.client.as_current():
            try:
                return getattr(self._actors[number], method)(*arguments)
            except RuntimeError:  # of Dask, where it knows that the worker is lost
                return None

    def _wait(self, number: int, answer: Any) -> tuple[Any, Any] | None:
        """The answer; None if its worker is lost."""
        while answer is not None:
            try:
                return answer.result(timeout=_POLL)
            except TimeoutError:
                gone = self._places[number] not in self._workers()
                if gone or self._futures[number].status not in ("finished", "pending"):
                    return None
            # Of the connection, or of a worker that is ending: errors of the function are
            # in the answer.
            except (OSError, RuntimeError):
                return None
        return None

    def _create(self, numbers: Sequence[int]) -> None:
        """Make objects, each on the worker that has the fewest."""
        waiting = list(numbers)
        for number in waiting:
            self._places[number] = ""
        while waiting:
            workers = self._some_workers()
            used = Counter(dict.fromkeys(workers, 0))
            used.update(place for place in self._places if place in used)
            for number in waiting:
                self._places[number] = min(workers, key=lambda worker: (used[worker], worker))
                used[self._places[number]] += 1
                self._futures[number] = self.client.submit(
                    Resident, actor=True, workers=[self._places[number]], pure=False
                )
            creations = {}
            for number in waiting:
                self._actors[number] = self._new_actor(number)
                self._on_created(number)
                creations[number] = self._ask(number, "make", __version__, *self.recipes[number])
            answers = {number: self._wait(number, answer) for number, answer in creations.items()}
            waiting = [number for number, answer in answers.items() if answer is None]
            for answer in answers.values():
                if answer is not None:
                    _value(answer)

    def _new_actor(self, number: int) -> Any:
        """The actor for an object, on its worker; None if the worker is lost."""
        with self.client.as_current():
            while True:
                try:
                    return self._futures[number].result(timeout=_POLL)
                except TimeoutError:
                    if self._places[number] not in self._workers():
                        return None
                except ImportError as error:
                    message = f"the workers cannot import fuda ({error}); install it there, the same version"
                    raise ClusterError(message) from None
                except (OSError, RuntimeError):  # of Dask: the worker is lost, or the scheduler
                    self._workers()
                    return None

    def _some_workers(self) -> list[str]:
        """The workers, after waiting for one where there is none."""
        until = time.monotonic() + _PATIENCE
        while not (workers := self._workers()):
            if time.monotonic() > until:
                raise ClusterError(
                    f"cluster={self.client.scheduler.address}: it has had no workers for {_PATIENCE:.0f} s; "
                    "start some with `dask worker ADDRESS`"
                )
            time.sleep(0.1)
        return workers

    def _workers(self) -> list[str]:
        return workers_of(self.client)


class Shared:
    """A value that the workers of a cluster have, for tasks that any of them may do.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    value : object
        The value, which workers get again from the scheduler where they were lost.

    Attributes
    ----------
    threads : int
        How many tasks the workers do at a time.
    """

    def __init__(self, client: Any, value: Any) -> None:
        self.client, self.threads = client, sum(client.nthreads().values())
        with warnings.catch_warnings():
            # It goes by way of the scheduler, which keeps it for workers that come later.
            warnings.filterwarnings("ignore", "Sending large graph")
            self._value = client.submit(_same, value, pure=False)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Let a worker call a function of the value and arguments: its answer in the future."""
        try:
            return self.client.submit(_called, function, self._value, *arguments, pure=False)
        except OSError:  # of the connection
            workers_of(self.client)
            raise

    def result(self, answer: Any) -> Any:
        """Return what the function returned, or raise what it raised."""
        from distributed import KilledWorker

        while True:
            try:
                outcome = answer.result(timeout=_POLL)
                break
            except TimeoutError:
                workers_of(self.client)
            except OSError:  # of the connection: errors of the function are part of the answer
                workers_of(self.client)
                time.sleep(0.1)
            except KilledWorker as error:
                message = f"several workers died of the same piece ({error}); give them more memory"
                raise ClusterError(message) from None
            except CancelledError:
                workers_of(self.client)
                raise
        return _value(outcome)


def _same(value: Any) -> Any:
    return value


def _called(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    """What a function returns, and None; or None and its error."""
    try:
        return function(*arguments), None
    except Exception as error:  # raised by the client, which tells it from what Dask raises
        return None, error


def workers_of(client: Any) -> list[str]:
    """Return the sorted addresses of the workers; raise ClusterError if the scheduler is lost."""
    address = getattr(client.scheduler, "address", "?")
    try:
        if client.status == "running":
            return sorted(client.nthreads())
    except (OSError, RuntimeError):  # of Dask: the connection is lost
        pass
    raise ClusterError(
        f"cluster={address}: the scheduler is lost; start the cluster again and repeat the command: a "
        "training with a checkpoint continues from it"
    )


def _value(answer: tuple[Any, Any]) -> Any:
    """The value of an answer; raises its error."""
    value, error = answer
    if error is not None:
        raise error
    return value
