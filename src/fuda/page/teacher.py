"""The teacher: one thread that owns the model of a page and follows the log of the store.

The model is always the last snapshot, taught the lessons after it in order (`store.py` defines
both), so that it is the same after a restart: a snapshot is committed before it is used, and the
model goes on from what was read back of it. After an undo the last snapshot before the step is
where the model begins again. Meanwhile the page goes on with the model that it has: requests read
`current`, which is replaced and never changed.

Refits, from all labels there are, run in a second thread and end as snapshots, too.
"""

from __future__ import annotations

import copy
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from fuda.errors import DataError
from fuda.page.learners import BY_DATA, Learner, from_bytes, learners_of, new_estimator, to_bytes
from fuda.page.store import LABELLED, Snapshot, Store

_EVERY = 25  # a snapshot is stored after so many lessons
_ONE_BY_ONE = 50  # up to so many lessons are taught one by one; more are fitted at once
_FIRST, _GROWTH = 10, 0.25  # a refit comes after so many new lessons, and after this share of all
_SAMPLE = 1_000  # a learner is chosen by so many structures


class ModelInUse(NamedTuple):
    """A model, and the last event that it has learned; `model` is None before the first lesson.

    `version` counts the models in use, `structures` what this one has learned from.
    """

    model: Any
    event: int
    version: int
    structures: int


class Teacher:
    """Keeps the model of a store up to date.

    Parameters
    ----------
    store : Store
        The store.
    announce : callable
        Is called with messages to pages, of a better model and of refits.
    """

    def __init__(
        self, store: Store, announce: Callable[[dict[str, Any]], None] = lambda message: None
    ) -> None:
        self.store, self.announce = store, announce
        self.current = ModelInUse(None, 0, 0, 0)
        self.refitting = False
        self.preparing = False  # whether a model is loaded, or code compiled, before any lesson
        self.problem = ""
        self._last_lesson = 0.0  # seconds that it took
        self._changed = threading.Condition()
        self.refit = 0  # event of the refit that the model goes on from
        self._base = 0  # event of the snapshot that the model goes on from
        self._last_seen_event = 0  # last event that the thread has looked at
        self._stopped = self._again = False
        self._sample: list[Any] | None = None
        self._threads: list[threading.Thread] = []

    # For requests

    @property
    def learner(self) -> Learner:
        """The learner that is in use."""
        choices = learners_of(self.store.shape, bool(self.store.about("given")))
        chosen = self.store.about("learner")
        learner = next((learner for learner in choices if learner.name == chosen), choices[0])
        features = self.store.about("features", BY_DATA)
        return learner if features == BY_DATA else learner._replace(features=features)

    def start(self) -> None:
        """Start the threads."""
        self.preparing = True
        for work in (self._teach, self._refit):
            thread = threading.Thread(
                target=self._run, args=(work,), name=f"page{work.__name__}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def stop(self, seconds: float) -> None:
        """End the threads after the lesson that is under way, if that comes soon."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(seconds)

    def notice(self, again: bool = False) -> None:
        """Say that the log has grown; `again` if the model must restart from another snapshot."""
        with self._changed:
            self._again = self._again or again
            self._changed.notify_all()

    def wait_for(self, event: int, seconds: float) -> bool:
        """Wait until the model has learned all lessons up to an event; returns whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: self.current.event >= event or self._stopped, seconds)

    def is_quick(self, seconds: float) -> bool:
        """Return whether a lesson that comes now will probably be learned within some seconds."""
        is_fitted_first = self.refitting and self.current.model is None
        return self._last_lesson < seconds and not (is_fitted_first or self.preparing)

    def text(self) -> str:
        """Return a sentence on the model for the page."""
        if self.problem:
            return self.problem
        if self.current.model is None:
            return "not taught yet"
        count = self.current.structures
        return f"taught by {count:,} sentence{'' if count == 1 else 's'}"

    def rebuilt(self) -> Any:
        """Return the model that the log makes, found in this thread; None before any lesson."""
        if self._needs_fit():
            self._fit_all()
        self._begin()
        return self.current.model

    # The threads

    def _run(self, work: Callable[[], None]) -> None:
        while not self._stopped:
            try:
                with warnings.catch_warnings():
                    # Of trainings that ended early; the page shows accuracy.
                    warnings.simplefilter("ignore")
                    work()
                return
            except Exception as error:
                # A learner may raise any error: the page must go on, and shows it.
                self.problem = f"the model does not learn: {error}"
                self.announce({"type": "problem", "text": self.text()})
                time.sleep(1.0)

    def _teach(self) -> None:
        """Follow the log."""
        self._begin()
        if self.current.model is None:
            self._warm_up()
        self._catch_up()  # with what was accepted meanwhile
        self._announce_prepared()
        while not self._stopped:
            with self._changed:
                self._changed.wait_for(self._is_behind, 1.0)
                again, self._again = self._again, False
            if again:
                self._begin()
                text = f"a better model is in use, {self.text()}"
                self.announce({"type": "model", "version": self.current.version, "text": text})
            self._catch_up()
            self._announce_prepared()

    def _announce_prepared(self) -> None:
        """Say that the model is ready, where pages may wait for it."""
        if self.preparing:
            self.preparing = False
            self.announce({"type": "prepared"})

    def _warm_up(self) -> None:
        """Teach a model that nobody uses, to load compiled code before the first lesson."""
        some, classes = self._sampled()[:2], self.store.unit.classes(self.store.kinds or ["X"])
        model, labels = self._new_estimator(), [[classes[0]] * len(x) for x in some]
        model.partial_fit(some[:1], labels[:1], classes=classes).partial_fit(some[1:], labels[1:])
        model.predict_marginals(some)

    def _is_behind(self) -> bool:
        return self._stopped or self._again or self.store.last_event() > self._last_seen_event

    def _begin(self) -> None:
        """Restart from the last snapshot; the old model stays in use until a new one is ready."""
        self.problem = ""
        last = self._last_seen_event = self.store.last_event()
        refit = self.store.last_refit(self.learner.key)
        snapshot = self.store.snapshot(self.learner.key)
        model, event = (None, 0) if snapshot is None else (from_bytes(snapshot.model), snapshot.event)
        self._base = event
        if self._needs_fit() or (model is not None and self.current.model is None):
            self._use(model, event)  # until there is a better one
        if self._needs_fit():
            return
        for number in self.store.lessons_after(event, last):
            if self._stopped:
                return
            model = self._after_lesson(model, number)
        self.refit = refit
        self._use(model, last)

    def _needs_fit(self) -> bool:
        """Whether to learn the lessons after the last snapshot by a refit, not one by one."""
        learner = self.learner
        behind = self.store.lesson_count(0)
        return (
            learner.refitted_up_to > 0 and behind > _ONE_BY_ONE and self.store.snapshot(learner.key) is None
        )

    def _catch_up(self) -> None:
        """Teach the lessons that have come, and take a snapshot now and then."""
        last = self._last_seen_event = self.store.last_event()
        if self.store.undone(self.current.event, last):
            self._begin()
            return
        if self._needs_fit():
            return
        for number in self.store.lessons_after(self.current.event, last):
            if self._stopped:
                return
            self._use(self._after_lesson(self.current.model, number), number)
        if last > self.current.event:
            self._use(self.current.model, last)
        if self.current.model is not None and self.store.lesson_count(self._base) >= _EVERY:
            content = to_bytes(self.current.model)
            if self.store.add_snapshot(Snapshot(last, self.learner.key, False, content)):
                self._base = last
                self._use(from_bytes(content), last)

    def _after_lesson(self, model: Any, number: int) -> Any:
        """The model after a lesson; the one given is not changed."""
        lesson = self.store.lesson(number)
        if not lesson.structures:
            return model
        learned = self._new_estimator() if model is None else copy.copy(model)
        classes, began = self.store.unit.classes(self.store.kinds), time.perf_counter()
        try:
            if model is not None and hasattr(learned, "_relabel"):  # those that are corrected now
                learned._relabel(lesson.structures, lesson.labels)
            learned.partial_fit(lesson.structures, lesson.labels, classes=classes)
            self._last_lesson = (time.perf_counter() - began) / len(lesson.structures)
        except DataError as error:  # a lesson that a model given cannot learn, such as a new label
            self.problem = f"the model does not learn: {error}"
            return model
        return learned

    def _new_estimator(self) -> Any:
        """A model that has learned nothing."""
        return new_estimator(self.learner, self._sampled(), self.store.unit.scheme)

    def _sampled(self) -> list[Any]:
        """The first structures."""
        if self._sample is None:
            self._sample = [item.record.structure for item in self.store.items(f"items.id <= {_SAMPLE}")]
        return self._sample

    def _use(self, model: Any, event: int) -> None:
        """Put a model into use."""
        count = self.store.count(LABELLED)
        with self._changed:
            self.current = ModelInUse(model, event, self.current.version + 1, count)
            self._changed.notify_all()

    # Refits

    def _refit(self) -> None:
        """Fit all labels again, when there are many more than at the last refit."""
        while not self._stopped:
            with self._changed:
                self._changed.wait(0.5)
            if not self._stopped and self._is_due():
                self._fit_all()

    def _is_due(self) -> bool:
        """Whether a refit is worth its time: many lessons have come since the last one.

        What is learned one by one is never as good as what is learned from all lessons together.
        """
        learner, labelled = self.learner, self.store.count(LABELLED)
        new = self.store.lesson_count(self.store.last_refit(learner.key))
        is_worth_it = labelled <= learner.refitted_up_to and new >= max(_FIRST, _GROWTH * labelled)
        return is_worth_it or self._needs_fit()

    def _fit_all(self) -> None:
        learner = self.learner
        event, X, y = self.store.labelled()
        self.refitting = True
        self.announce({"type": "refit", "running": True})
        try:
            content = to_bytes(self._fit(X, y))
            stored = self.store.add_snapshot(Snapshot(event, learner.key, True, content))
        finally:
            self.refitting = False
            self.announce({"type": "refit", "running": False})
        if stored and learner == self.learner:
            self.notice(again=True)

    def _fit(self, X: list[Any], y: list[list[Any]]) -> Any:
        """A model of all labels; one that can start from what it has learned does."""
        fresh = new_estimator(self.learner, self._sampled(), self.store.unit.scheme, len(X))
        last = self.current.model
        model = fresh
        if getattr(fresh, "warm_start", False) and type(last) is type(fresh):
            model = copy.copy(last).set_params(**fresh.get_params(deep=False))
        # The other core is for the page.
        return model.set_params(n_jobs=1).fit(X, y).set_params(n_jobs=None)
