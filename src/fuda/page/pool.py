"""Which structure comes next: the pool is scored in the background, piece by piece."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fuda.active.queries import ORDERS, Chooser
from fuda.data.structures import Sequence, Structure
from fuda.page.store import Store
from fuda.page.teacher import Teacher

_PIECE = 0.05  # scoring a piece takes so many seconds, and as long a pause follows
_GIVEN = "status = 'done' AND source = 'file'"  # structures whose labels no person has confirmed
_LARGEST = 500  # a piece has so many structures at most


class Pool:
    """Scores the structures of a store by its model, and chooses the next one.

    Parameters
    ----------
    store : Store
        The store.
    teacher : Teacher
        Has the model.
    prepare : callable
        Is given the structure that will probably be next, so that it is ready when it
        is asked for.
    """

    def __init__(self, store: Store, teacher: Teacher, prepare: Callable[[int], object]) -> None:
        self.store, self.teacher, self.prepare = store, teacher, prepare
        self._chooser: Chooser | None = None
        self._expected: tuple[str, int] | None = None  # an order, and what comes next in it
        self._size = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="page_pool", daemon=True)

    @property
    def order(self) -> str:
        """The order in which structures come."""
        return str(self.store.about("order", ORDERS[0]))

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End the thread after its piece, if that comes soon."""
        self._stopped.set()
        self._thread.join(seconds)

    def next(self, leave_out: set[int]) -> int | None:
        """Return the number of the structure to label next.

        Parameters
        ----------
        leave_out : set of int
            Structures that tabs have already.

        Returns
        -------
        int or None
            None where no structure is left.
        """
        order = self.order
        condition = _GIVEN if order == "disagreement" else "status = 'new'"
        if self._chooser is None or order == "file":
            listed = ", ".join(map(str, leave_out))
            first = f"SELECT MIN(id) FROM items WHERE {condition} AND id NOT IN ({listed})"
            return next(iter(self.store.numbers(f"id = ({first})")), None)
        (chosen_in, expected), self._expected = self._expected or ("", 0), None
        is_open = chosen_in == order and expected not in leave_out
        if is_open and self.store.numbers(f"id = {expected} AND {condition}"):
            return expected
        return self._chosen(order, leave_out)

    def _chosen(self, order: str, leave_out: set[int]) -> int | None:
        """The structure to label next, when those that tabs have are labelled too."""
        assert self._chooser is not None
        self._chooser.order = order
        closed, reserved = (
            self._closed(order),
            np.array([i for i in leave_out if i <= self._size], dtype=np.int64),
        )
        closed[reserved - 1] = True
        labelled = np.array(self.store.numbers("status = 'done'"), dtype=np.int64)
        chosen = self._chooser.next(np.flatnonzero(closed), np.union1d(labelled, reserved) - 1)
        return None if chosen is None else chosen + 1

    def _look_ahead(self) -> None:
        """Choose what comes next before it is asked for, and have its labels predicted."""
        order = self.order
        if order != "file" and (number := self._chosen(order, set(self.store.leased()))) is not None:
            self.prepare(number)
            self._expected = order, number

    def _closed(self, order: str) -> np.ndarray:
        """Which structures are not asked for in an order."""
        if order == "disagreement":
            closed = np.ones(self._size, dtype=bool)
            closed[np.array(self.store.numbers(_GIVEN), dtype=np.int64) - 1] = False
            return closed
        closed = np.zeros(self._size, dtype=bool)
        closed[np.array(self.store.numbers("status IN ('done', 'skipped')"), dtype=np.int64) - 1] = True
        return closed

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._work()
            except Exception as error:
                # Whatever a model may raise: sentences come in file order then, and the
                # page shows the reason.
                self.teacher.problem = f"sentences are not scored: {error}"
                self._stopped.wait(1.0)

    def _work(self) -> None:
        structures = _thrifty(self.store.structures())
        self._size = len(structures)
        self._chooser = Chooser(structures, self.order)
        del structures
        scored_by = np.zeros(self._size, dtype=np.int64)  # versions of the model
        shuffled, size = np.random.RandomState(0).permutation(self._size), 10
        looked_ahead_at = -1
        while not self._stopped.is_set():
            current = self.teacher.current
            if current.version != looked_ahead_at or self._expected is None:
                looked_ahead_at = current.version
                self._look_ahead()
            to_score = self._to_score(scored_by, shuffled, current.version)
            if current.model is None or not len(to_score):
                self._stopped.wait(0.2)
                continue
            began = time.perf_counter()
            piece = np.sort(to_score[:size])
            self._score(piece, current.model)
            scored_by[piece] = current.version
            elapsed = time.perf_counter() - began
            size = int(np.clip(size * _PIECE / max(elapsed, 1e-4), 1, min(_LARGEST, 2 * size)))
            self._stopped.wait(min(elapsed, 1.0))

    def _to_score(self, scored_by: np.ndarray, shuffled: np.ndarray, version: int) -> np.ndarray:
        """The structures to score: those that the oldest models have scored come first."""
        order = self.order
        if order == "file":
            return np.zeros(0, dtype=np.int64)
        old = shuffled[(~self._closed(order) & (scored_by < version))[shuffled]]
        return old[np.argsort(scored_by[old], kind="stable")]

    def _score(self, piece: np.ndarray, model: Any) -> None:
        assert self._chooser is not None
        listed = ", ".join(map(str, (piece + 1).tolist()))
        items = self.store.items(f"items.id IN ({listed})")
        labels = [item.labels or [None] * len(item.record.structure) for item in items]
        self._chooser.scored(piece.tolist(), model, [item.record.structure for item in items], labels)


def _thrifty(structures: Iterable[Structure]) -> list[Structure]:
    """Structures in which equal words are one object: half of the memory of 100,000 sentences."""
    known: dict[Any, Any] = {}
    return [
        Sequence([known.setdefault(word, word) for word in x.observations])
        if isinstance(x, Sequence) and all(isinstance(word, str) for word in x.observations)
        else x
        for x in structures
    ]
