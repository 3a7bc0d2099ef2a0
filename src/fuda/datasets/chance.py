"""Random choices that are the same on every machine and Python version."""

from __future__ import annotations

import random
from typing import Any, TypeVar

T = TypeVar("T")


class Chance:
    """Random choices built on ``random()`` alone, whose values no Python version changes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self._decks: dict[str, list[Any]] = {}

    def coin(self, probability: float) -> bool:
        return self._random() < probability

    def pick(self, options: list[T]) -> T:
        return options[int(self._random() * len(options))]

    def deal(self, deck: str, options: list[T]) -> T:
        """The next card of a shuffled deck, shuffled anew when it is used up."""
        cards: list[T] = self._decks.setdefault(deck, [])
        if not cards:
            rest = list(options)
            while rest:
                cards.append(rest.pop(int(self._random() * len(rest))))
        return cards.pop()
