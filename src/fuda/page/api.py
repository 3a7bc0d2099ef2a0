"""What the page can ask for: every method answers with plain values for JSON."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any

from fuda import schemes
from fuda.active.queries import ORDERS
from fuda.errors import DataError, short
from fuda.page.importing import add_kinds
from fuda.page.learners import BY_DATA, feature_sets_of, learners_of
from fuda.page.pool import Pool
from fuda.page.review import Review
from fuda.page.spans import new_kind, probabilities_of
from fuda.page.store import ConflictError, Item, Step, Store
from fuda.page.teacher import Teacher
from fuda.page.views import heads_of, spaces_of, words_of
from fuda.page.why import why

Json = dict[str, Any]

_PATIENCE = 0.1  # an accept waits so many seconds at most for the model to learn
_LAST_WAIT = 1.0  # each thread has so many seconds to end; its unfinished work can be repeated from the log
_SHOWN = 2_000  # so many predictions are kept in memory
_LISTED = 200  # a list has so many items at most


class ConflictingEditError(Exception):
    """Two edits of one structure; `answer` has both."""

    def __init__(self, answer: Json) -> None:
        super().__init__(answer["error"])
        self.answer = answer


class Api:
    """A store, its model and its pool, and what people do with them.

    Parameters
    ----------
    store : Store
        The store.
    announce : callable
        Is given messages to all pages.
    """

    def __init__(self, store: Store, announce: Callable[[Json], None] = lambda message: None) -> None:
        self.store, self.announce = store, announce
        self.teacher = Teacher(store, announce)
        self.pool = Pool(store, self.teacher, lambda number: self._predicted(self._stored_item(number)))
        self.review = Review(store, announce)
        self._people: set[str] = set()  # who are here
        self._predictions: OrderedDict[tuple[int, int], tuple[list[Any], list[float]]] = OrderedDict()
        self._shown: dict[int, list[Any]] = {}  # the labels that the page showed last, by item
        self._choosing = threading.Lock()

    def start(self) -> None:
        """Start what runs in the background."""
        self.teacher.start()
        self.pool.start()

    def stop(self) -> None:
        """End what runs in the background."""
        self.pool.stop(_LAST_WAIT)
        self.teacher.stop(_LAST_WAIT)

    def _other_people(self, by: Step) -> set[str]:
        """The other people who are here."""
        self._people.add(by.who)
        return self._people - {by.who}

    # What is shown

    def state(self, by: Step) -> Json:
        """Return what the page shows of the whole."""
        store, counts, unit = self.store, self.store.counts(), self.store.unit
        kinds, current = store.kinds, self.teacher.current
        choices = learners_of(store.shape, bool(store.about("given")))
        outside = schemes.OUTSIDE if unit.scheme is not None or schemes.OUTSIDE in kinds else None
        return {
            "store": store.about("id"),
            "title": store.about("title"),
            "shape": "graph" if store.shape == "dag" else store.shape,
            "unit": unit.name,
            "labels": kinds,
            "outside": outside,
            "total": sum(counts.values()),
            "done": counts["done"],
            "skipped": counts["skipped"],
            "order": self.pool.order,
            "orders": list(ORDERS),
            "learner": self.teacher.learner.name,
            "learners": [{"name": learner.name, "text": learner.text} for learner in choices],
            "features": store.about("features", BY_DATA),
            "feature_sets": [{"name": name, "text": text} for name, text in self._feature_sets.items()],
            "event": store.last_event(),
            "model": {
                "version": current.version,
                "event": current.event,
                "refit": self.teacher.refit,
                "text": self.teacher.text(),
            },
            "refitting": self.teacher.refitting,
            "preparing": self.teacher.preparing,
            "undo": store.depth(self._other_people(by)),
        }

    @cached_property
    def _feature_sets(self) -> dict[str, str]:
        """The feature sets to choose from."""
        first = self._stored_item(1).record.structure
        return feature_sets_of(first, bool(self.store.about("given")))

    def item(self, number: int, by: Step) -> Json:
        """Return a structure, which the tab has from now on."""
        item = self._stored_item(number)
        if number not in self._leased_by_others(by):
            self.store.lease(number, by.tab)
        return self._item(item)

    def next(self, by: Step, order: str | None = None, after: int | None = None) -> Json | None:
        """Return the structure to label next, which the tab has from now on."""
        if order is not None and order != self.pool.order:
            self.settings({"order": order}, by)
        with self._choosing:  # so that two tabs never get the same one
            unavailable = set(self.store.leased()) | ({after} if after is not None else set())
            number = self.pool.next(unavailable)
            if number is None:
                # What this tab was handed and has not answered is better than nothing.
                leased_here = set(self.store.leased(by.tab)) - {after}
                number = min((i for i in leased_here if self._stored_item(i).status == "new"), default=None)
            if number is None:
                return None
            self.store.lease(number, by.tab)
        return self._item(self._stored_item(number))

    def items(self, offset: int, limit: int, status: str, label: str, search: str) -> Json:
        """Return a part of the list of structures."""
        where, values = ["1"], []
        if status:
            where.append("status = ?")
            values.append(status)
        if search:
            where.append("words LIKE ? ESCAPE '!'")
            for sign in "!%_":
                search = search.replace(sign, f"!{sign}")
            values.append(f"%{search}%")
        if label:
            names = self.store.unit.classes([label]) if self.store.unit.scheme else [label]
            chosen_labels = [
                name for name in names if name != schemes.OUTSIDE or self.store.unit.scheme is None
            ]
            where.append(
                """EXISTS (SELECT 1 FROM json_each(items.labels) l
                WHERE l.value IN (SELECT value FROM json_each(?)))"""
            )
            values.append(json.dumps(chosen_labels))
        condition = " AND ".join(where)
        total = self.store.count(condition, values)
        limits = f"items.id LIMIT {min(limit, _LISTED)} OFFSET {offset}"
        items = self.store.items(condition, values, limits)
        return {"total": total, "items": [self._short(item) for item in items]}

    def _short(self, item: Item) -> Json:
        """An item of a list; without what a model predicts for it."""
        labels = item.labels or [None] * len(item.record.structure)
        known = {"id": item.id, "words": words_of(item.record.structure), "spaces": spaces_of(item)}
        return known | {"status": item.status, "place": item.place} | self.store.unit.shown(labels, None)

    def _item(self, item: Item) -> Json:
        """An item with its labels, or those that the model predicts."""
        structure, current = item.record.structure, self.teacher.current
        labels, probabilities, source = item.labels, None, item.source
        if item.status != "done":
            labels, probabilities = self._predicted(item)
            source = "model"
        assert labels is not None
        self._shown[item.id] = labels
        return {
            "id": item.id,
            "version": item.version,
            "words": words_of(structure),
            "spaces": spaces_of(item),
            "heads": heads_of(structure),
            "status": item.status,
            **self.store.unit.shown(labels, probabilities),
            "source": source,
            "learned": current.event,
            "place": item.place,
        }

    def _predicted(self, item: Item) -> tuple[list[Any], list[float]]:
        """The model's labels of a structure, given those that its file has, and probabilities."""
        structure, current = item.record.structure, self.teacher.current
        if current.model is None:
            outside = schemes.OUTSIDE if self.store.unit.scheme is not None else None
            labels: list[Any] = [outside] * len(structure)
            probabilities = [0.0] * len(structure)
        elif (item.id, current.version) in self._predictions:
            labels, probabilities = self._predictions[item.id, current.version]
        else:
            labels = list(current.model.predict([structure])[0])
            marginals = current.model.predict_marginals([structure])[0]
            probabilities = probabilities_of(labels, marginals, current.model.classes_)
            self._predictions[item.id, current.version] = labels, probabilities
            while len(self._predictions) > _SHOWN:
                self._predictions.popitem(last=False)
        for node, label in enumerate(item.labels or []):
            if label is not None:
                labels, probabilities = (
                    [*labels[:node], label, *labels[node + 1 :]],
                    [*probabilities[:node], 1.0, *probabilities[node + 1 :]],
                )
        return labels, probabilities

    def _stored_item(self, number: int) -> Item:
        item = self.store.item(number) if number < 1 << 63 else None  # the largest one of SQLite
        if item is None:
            raise DataError(f"there is no sentence {short(number)}; reload the page")
        return item

    def _leased_by_others(self, by: Step) -> set[int]:
        return set(self.store.leased()) - set(self.store.leased(by.tab))

    def progress(self) -> Json:
        """Return how far a person is."""
        from fuda.page.progress import progress  # with scipy, when it is asked for

        return progress(self.store)

    def why(self, content: Json) -> Json:
        """Return the reasons for and against a label."""
        number, start, end = (content.get(name) for name in ("id", "start", "end"))
        item = self._stored_item(number if type(number) is int else -1)
        size = len(item.record.structure)
        if type(start) is not int or type(end) is not int or not 0 <= start < end <= size:
            raise DataError(
                f"words {short(start)} to {short(end)} are not within {size} words; reload the page"
            )
        model = self.teacher.current.model
        if model is None:
            raise DataError("the model has not been taught yet; accept a sentence first")
        return why(self.store, model, item, start, end)

    # What people do

    def accept(self, number: int, content: Json, by: Step) -> Json:
        """Give a structure its labels, and teach them."""
        item = self._stored_item(number)
        labels = self.store.unit.checked_labels(content, len(item.record.structure), self.store.kinds)
        before = self._shown.get(number) or self._predicted(item)[0]
        compared = self.store.unit.compared(before, labels)
        # How good the model was before this lesson; labels that it has learned do not count.
        is_informative = item.labels is None and self.teacher.current.model is not None
        event = self._step("accept", item, content, labels, by, compared if is_informative else {})
        began = time.perf_counter()
        self.teacher.notice()
        if self.teacher.is_quick(_PATIENCE):
            self.teacher.wait_for(event, _PATIENCE)
        effect = {
            "milliseconds": round(1000 * (time.perf_counter() - began), 1),
            "changed": compared["words"] - compared["right"],
        }
        return self._reply(number, content, by) | {"taught": effect, "event": event}

    def skip(self, number: int, content: Json, by: Step) -> Json:
        """Put a structure aside."""
        self._step("skip", self._stored_item(number), content, None, by, {})
        self.teacher.notice()
        return self._reply(number, content, by) | {"taught": {"milliseconds": 0, "changed": 0}}

    def _step(
        self, kind: str, item: Item, content: Json, labels: list[Any] | None, by: Step, more: Json
    ) -> int:
        version = content.get("version")
        try:
            return self.store.step(kind, item.id, version if type(version) is int else -1, labels, by, more)
        except ConflictError:
            theirs = self._item(self._stored_item(item.id))
            shown = self.store.unit.shown(labels, None) if labels is not None else {}
            error = "this sentence was changed meanwhile, in another tab or by another person"
            yours = theirs | shown | {"source": "person", "version": version}
            raise ConflictingEditError({"error": error, "yours": yours, "theirs": theirs}) from None

    def _reply(self, number: int, content: Json, by: Step) -> Json:
        """What follows a step."""
        self.announce({"type": "items", "ids": [number], "tab": by.tab})
        after = content.get("after")
        following = self.next(by, after=after if type(after) is int else None)
        return {"item": self._item(self._stored_item(number)), "next": following} | self._counts(by)

    def _counts(self, by: Step) -> Json:
        counts = self.store.counts()
        return {
            "undo": self.store.depth(self._other_people(by)),
            "done": counts["done"],
            "skipped": counts["skipped"],
        }

    def undo(self, by: Step) -> Json:
        """Take the last step back."""
        undone = self.store.undo(by, self._other_people(by))
        if undone is None:
            return {"item": None} | self._counts(by)
        number, _ = undone
        self.teacher.notice()
        self.announce({"type": "items", "ids": [number], "tab": by.tab})
        self.store.lease(number, by.tab)
        return {"item": self._item(self._stored_item(number))} | self._counts(by)

    def add_label(self, name: Any, by: Step) -> Json:
        """Add a label to those that can be chosen."""
        kind = new_kind(name)
        if kind not in self.store.kinds:
            with self.store.transaction():
                add_kinds(self.store, [kind])
                self.store.log("label", step=by, more={"add": kind})
        return self.state(by)

    def settings(self, content: Json, by: Step) -> Json:
        """Change the order, the learner or its features."""
        learners = [
            learner.name for learner in learners_of(self.store.shape, bool(self.store.about("given")))
        ]
        offered = {"order": list(ORDERS), "learner": learners, "features": list(self._feature_sets)}
        for name, choices in offered.items():
            if name not in content:
                continue
            value = content[name]
            if value not in choices:
                raise DataError(f"{name} {short(value)} is not known; choose one of {', '.join(choices)}")
            self.store.set_about(name, value, "setting", by)
        if "learner" in content or "features" in content:
            self.teacher.preparing = True
            self.teacher.notice(again=True)
        return self.state(by)
