"""Sentences as evidence for a feature: those in which a word with the label has it."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from fuda.data.structures import Structure
from fuda.errors import DataError
from fuda.features import extract
from fuda.features.sets import JOINT_KEYS
from fuda.page.store import Item, Store
from fuda.page.views import heads_of
from fuda.page.wording import Feature

_RECENT = 300  # so many labelled sentences are searched, the latest first
Heads = list[list[int]] | None


class Evidence(NamedTuple):
    """A sentence, the word with the label, and the words that have the feature."""

    item: Item
    node: int
    matched: list[int]


class EvidenceSearch:
    """Finds labelled sentences that have a feature where a label is.

    Parameters
    ----------
    store : Store
        The store.
    model : Labeler
        The model whose features are named.
    """

    def __init__(self, store: Store, model: Any) -> None:
        features = getattr(model.encoder_, "features", None)  # a template has none of single words
        self._features = cache(lambda word: _names(features, word))
        self._items = (
            store.items("status = 'done'", (), f"version > 0 DESC, items.id DESC LIMIT {_RECENT}")
            if features is not None
            else []
        )

    def find(self, feature: Feature, word: Any, label: Any) -> Evidence | None:
        """Return a sentence as evidence for a feature, with the same word if possible.

        Parameters
        ----------
        feature : Feature
            The feature.
        word : object
            The explained observation.
        label : object
            The label of a node.

        Returns
        -------
        Evidence or None
            None where no recent sentence does.
        """
        other = None
        for item in self._items:
            x = item.record.structure
            heads = heads_of(x)
            for node, node_label in enumerate(item.labels or []):
                if node_label != label or (matched := self._matched(feature, x, heads, node)) is None:
                    continue
                if x.observations[node] == word:
                    return Evidence(item, node, matched)
                other = other or Evidence(item, node, matched)
        return other

    def _matched(self, feature: Feature, x: Structure, heads: Heads, node: int) -> list[int] | None:
        """The words by which a node has a feature; None if it has not."""
        matched = []
        for offset, key, text in feature.parts:
            at = (u for u in _beside(x, heads, node, offset) if self._has(x.observations[u], key, text))
            if (first := next(at, None)) is None:
                return None
            matched.append(first)
        return matched

    def _has(self, word: Any, key: str, text: str) -> bool:
        """Whether a word has a feature, or a text by the key of a joint."""
        if not key:
            return text in self._features(word)
        return JOINT_KEYS[key](str(word[0] if isinstance(word, tuple) else word)) == text


def _beside(x: Structure, heads: Heads, node: int, offset: int) -> list[int]:
    """The nodes at an offset: of a sequence one or none, else heads or dependents."""
    if heads is None:
        return [node + offset] if 0 <= node + offset < len(x.observations) else []
    reached = [node]
    for _ in range(abs(offset)):
        if offset < 0:
            reached = [head for u in reached for head in heads[u]]
        else:
            reached = [u for u, node_heads in enumerate(heads) if not set(node_heads).isdisjoint(reached)]
    return reached


def _names(features: Any, word: Any) -> frozenset[str]:
    """The features of an observation."""
    try:
        return frozenset(map(str, extract(features, word)))
    except DataError:  # of another kind of observation than the set is for
        return frozenset()
