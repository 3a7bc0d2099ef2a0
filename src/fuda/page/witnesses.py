"""Sentences that speak for a feature: those in which it stands at a word with the label."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from fuda.data.structures import Structure
from fuda.errors import DataError
from fuda.features import extract
from fuda.page.store import Item, Store

_RECENT = 300  # labelled sentences that are looked through, the last ones first
_FEATURE = re.compile(r"\[([+-]?\d+)\] (.+)", re.DOTALL)


class Witness(NamedTuple):
    """A sentence, the word with the label, and the word that has the feature."""

    item: Item
    node: int
    matched: int


class Witnesses:
    """Finds labelled sentences that have a feature where a label is.

    Parameters
    ----------
    store : Store
        The store.
    model : Labeler
        The model whose features are named.
    here : Item
        The explained structure, which cannot speak for itself unless it is labelled.
    """

    def __init__(self, store: Store, model: Any, here: Item) -> None:
        self._is_chain = here.record.structure.shape == "sequence" and isinstance(model.features, str)
        self._features = cache(lambda word: _names(model.features, word))
        self._items = (
            store.items("status = 'done'", (), f"version > 0 DESC, items.id DESC LIMIT {_RECENT}")
            if self._is_chain
            else []
        )

    def of(self, text: str, word: Any, label: Any) -> Witness | None:
        """Return a sentence that speaks for a feature, with the same word if there is one.

        Parameters
        ----------
        text : str
            The feature, as explanations name it: ``[-1] w=in``.
        word : object
            The explained observation.
        label : object
            The label of a node.

        Returns
        -------
        Witness or None
            None where no recent sentence does.
        """
        parsed = _FEATURE.fullmatch(text)
        if parsed is None:
            return None
        offset, name = int(parsed[1]), parsed[2]
        found = None
        for item in self._items:
            for node in self._nodes(item.record.structure, item.labels or [], offset, name, label):
                if item.record.structure.observations[node] == word:
                    return Witness(item, node, node + offset)
                found = found or Witness(item, node, node + offset)
        return found

    def _nodes(self, x: Structure, labels: list[Any], offset: int, name: str, label: Any) -> list[int]:
        """The nodes with a label beside which a feature stands."""
        return [
            node
            for node, own in enumerate(labels)
            if own == label
            and 0 <= node + offset < len(labels)
            and name in self._features(x.observations[node + offset])
        ]


def _names(features: str, word: Any) -> frozenset[str]:
    """The features of an observation."""
    try:
        return frozenset(map(str, extract(features, word)))
    except DataError:  # of another kind of observation than the set is for
        return frozenset()
