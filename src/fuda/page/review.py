"""Doubtful labels, found in the background when somebody asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from fuda import schemes
from fuda.errors import DataError
from fuda.page.spans import Unit
from fuda.page.store import Item, Store
from fuda.page.views import spaces_of, words_of
from fuda.page.wording import features_in_words, place_of

Json = dict[str, Any]
_FEWEST = 5  # fewer labelled structures cannot be judged by each other
_LISTED = 200


class _Doubtful(NamedTuple):
    """A doubt, the structure, and the version that it is of."""

    item: int
    version: int
    doubt: Any


class Review:
    """The labels of a store that the rest of it contradicts.

    Parameters
    ----------
    store : Store
        The store.
    announce : callable
        Is called with messages to pages, on the progress of the work.
    """

    def __init__(self, store: Store, announce: Callable[[Json], None]) -> None:
        self.store, self.announce = store, announce
        self._doubts: list[_Doubtful] = []
        self._progress, self._ready, self._problem = 0.0, False, ""
        self._search = 0  # the number of the search, by which pages recognize late messages
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self) -> Json:
        """Begin to look for doubts, unless that is under way; returns what `listed` does."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                items = self.store.items("status = 'done'")
                if len(items) < _FEWEST:
                    problem = f"doubts need at least {_FEWEST} labelled sentences, there are {len(items)}"
                    raise DataError(f"{problem}; label some more first")
                self._progress, self._ready, self._problem = 0.0, False, ""
                self._search += 1
                self._thread = threading.Thread(target=self._work, args=(items,), daemon=True)
                self._thread.start()
        return self.listed(0, 0)

    def listed(self, offset: int, limit: int) -> Json:
        """Return some of the doubts, largest first, without those whose labels have changed."""
        if self._problem:
            raise DataError(self._problem)
        versions = dict(self.store.versions())
        current = [doubtful for doubtful in self._doubts if versions[doubtful.item] == doubtful.version]
        part = current[offset : offset + min(limit, _LISTED)]
        return {
            "ready": self._ready,
            "progress": self._progress,
            "search": self._search,
            "total": len(current),
            "likely": sum(doubtful.doubt.score > 0 for doubtful in current),
            "doubts": [self._shown(doubtful) for doubtful in part],
        }

    def _work(self, items: list[Item]) -> None:
        from fuda.active.doubts import doubts

        unit = self.store.unit
        X, y = [item.record.structure for item in items], [item.labels or [] for item in items]
        try:
            found_doubts = doubts(X, y, scheme=unit.scheme, progress=self._advance)
        except DataError as error:
            self._problem = f"no doubts were found: {error}"
            self._advance(1.0)  # pages ask then, and get the error
            return
        self._doubts = [
            _Doubtful(items[doubt.structure].id, items[doubt.structure].version, doubt)
            for doubt in found_doubts
        ]
        self._ready = True
        self._advance(1.0)

    def _advance(self, share: float) -> None:
        self._progress = share
        self.announce({"type": "doubts", "progress": share, "search": self._search})

    def _shown(self, doubtful: _Doubtful) -> Json:
        """A doubt as the page shows it."""
        item, doubt, unit = self.store.item(doubtful.item), doubtful.doubt, self.store.unit
        assert item is not None
        assert item.labels is not None
        instead = [*item.labels[: doubt.start], *doubt.suggested, *item.labels[doubt.end :]]
        return {
            "id": item.id,
            "start": doubt.start,
            "end": doubt.end,
            "given": _kind(doubt.given, unit),
            "suggested": _kind(doubt.suggested, unit),
            "now": unit.shown(item.labels, None),
            "instead": unit.shown(instead, None),
            "score": doubt.score,
            "words": words_of(item.record.structure),
            "spaces": spaces_of(item),
            "text": self._reasons(doubt, item.record.structure.shape == "sequence"),
        }

    def _reasons(self, doubt: Any, is_chain: bool) -> str:
        """The evidence for a doubt, in plain words."""
        unit, classes = self.store.unit, self.store.unit.classes(self.store.kinds)
        counts = ", ".join(f"{unit.display_name(label)} {count:,} ×" for label, count in doubt.elsewhere)
        reasons = [f"“{doubt.word}” elsewhere: {counts}" if counts else f"“{doubt.word}” is nowhere else"]
        groups: dict[Any, list[str]] = {}
        for text, _ in doubt.features:
            groups.setdefault(place_of(text, classes), []).append(text)
        evidence = [
            features_in_words(group, is_chain, classes, unit.display_name) for group in groups.values()
        ]
        if evidence:
            suggested = doubt.suggested[doubt.nodes[0] - doubt.start]
            reasons.append(f"Evidence for {unit.display_name(suggested)}: {'; '.join(evidence)}")
        return ". ".join(reasons if doubt.word else reasons[1:])


def _kind(labels: list[Any], unit: Unit) -> str:
    """The types of the labels of some nodes, as the page shows them."""
    kinds = list(dict.fromkeys(unit.kind(label) for label in labels))
    spans = [kind for kind in kinds if kind != schemes.OUTSIDE] if unit.scheme is not None else kinds
    return ", ".join(spans or kinds)
