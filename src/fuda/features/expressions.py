r"""Wapiti's expressions, matched in bounded time.

The language: ``^`` at the start, ``$`` at the end, ``.`` any character, ``?`` (once if possible),
``*`` (as few times as possible), and the classes ``\a`` ``\d`` ``\l`` ``\p`` ``\s`` ``\u`` ``\w``,
negated in upper case. An expression is a list of items 0 … n − 1, each a set of characters that
occurs once, at most once or any number of times.

Let live(p) be the set of items from which the rest of the expression can match the text from
position p on; n is in it if a match may end at p. It follows from live(p + 1), so one pass from
the end computes all sets, as bit sets. The match that a backtracking search would find first is
then read off from the start without backtracking.

Backtracking, as in `re`, is faster on most cells and takes exponential time on some: it may try
every choice of a start, of each ``?`` and of each ``*``. It is used if there are few such choices.
"""

from __future__ import annotations

import re
from itertools import accumulate

_FEW_CHOICES = 1 << 14
_CLASSES = {
    "a": r"[^\W\d_]",
    "d": r"\d",
    "l": r"[a-z]",
    "p": r"[^\w\s]|_",
    "s": r"\s",
    "u": r"[A-Z]",
    "w": r"[^\W_]",
}


class Expression:
    """An expression of Wapiti's language.

    Parameters
    ----------
    text : str
        The expression; ValueError if a ``?`` or ``*`` follows nothing.

    Examples
    --------
    >>> Expression(r"^\\u\\l*$").search("Lima"), Expression(r"\\d?\\d$").search("May-25")
    ('Lima', '25')
    >>> Expression("x").search("Lima") is None
    True
    """

    def __init__(self, text: str) -> None:
        parts = re.findall(r"\\.|[^\\]", text, re.DOTALL)
        self._at_start, self._at_end = parts[:1] == ["^"], parts[-1:] == ["$"]
        items: list[str] = []
        repeats: list[str] = []
        for part in parts[self._at_start : len(parts) - self._at_end]:
            if part not in ("?", "*"):
                items.append(_character_class(part))
                repeats.append("")
            elif not repeats or repeats[-1]:
                raise ValueError(
                    f"the expression {text!r} repeats nothing at {part}; write \\{part} for itself"
                )
            else:
                repeats[-1] = part
        parts = [item + repeat.replace("*", "*?") for item, repeat in zip(items, repeats, strict=True)]
        pattern = (r"\A" if self._at_start else "") + "".join(parts) + (r"\Z" if self._at_end else "")
        self._backtracking = re.compile(pattern, re.DOTALL)
        self._items = [re.compile(item, re.DOTALL) for item in items]
        self._repeats = repeats
        self._skippable = [i for i in reversed(range(len(items))) if repeats[i]]
        self._stars = sum(1 << i for i in range(len(items)) if repeats[i] == "*")
        self._accepted: dict[str, int] = {}  # by character, the items that accept it

    def search(self, text: str) -> str | None:
        """Return the first part of a text that matches; None if no part does."""
        choices = (len(text) + 1) ** (self._repeats.count("*") + (not self._at_start))
        if choices << self._repeats.count("?") > _FEW_CHOICES:
            return self._linear_search(text)
        match = self._backtracking.search(text)
        return None if match is None else match.group()

    def _linear_search(self, text: str) -> str | None:
        """The same result in time linear in the text and in the expression."""
        live = list(accumulate(reversed(text), self._before, initial=self._closed(1 << len(self._items))))
        live.reverse()
        starts = live[:1] if self._at_start else live
        start = next((p for p, items in enumerate(starts) if items & 1), None)
        if start is None:
            return None
        position = start
        for i, repeat in enumerate(self._repeats):
            goes_on = 1 << (i + 1)  # live where the items after this one match
            if repeat == "*":
                while not live[position] & goes_on:
                    position += 1
            elif not repeat:
                position += 1
            elif position < len(text) and live[position + 1] & goes_on:
                position += self._accept(text[position]) >> i & 1
        return text[start:position]

    def _before(self, live: int, character: str) -> int:
        """The live items at the position before, which has this character."""
        accepted = self._accept(character)
        ends = 0 if self._at_end else 1 << len(self._items)
        return self._closed((live >> 1 & ~self._stars & accepted) | (live & self._stars & accepted) | ends)

    def _closed(self, live: int) -> int:
        """The live items, with items that may be absent if the next item is live."""
        for i in self._skippable:
            live |= (live >> 1) & (1 << i)
        return live

    def _accept(self, character: str) -> int:
        """The items that accept a character."""
        if character not in self._accepted:
            self._accepted[character] = sum(
                1 << i for i, item in enumerate(self._items) if item.fullmatch(character)
            )
        return self._accepted[character]


def _character_class(part: str) -> str:
    """An item of an expression as a pattern of one character."""
    character = part[-1]
    if part == ".":
        return "."
    if len(part) == 2 and character.lower() in _CLASSES:
        members = _CLASSES[character.lower()]
        return f"(?:{members})" if character.islower() else f"(?:(?!{members}).)"
    return re.escape(character)
