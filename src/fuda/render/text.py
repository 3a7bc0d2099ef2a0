"""Text that is safe to show: observations and labels may contain anything."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Any

from fuda.errors import short

# Controls, surrogates, line and paragraph separators: invisible, not encodable, or acted on
# by terminals.
_HIDDEN = frozenset(["Cc", "Cs", "Zl", "Zp"])
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(value: object) -> str:
    """Return a value as text in which control characters are written as escapes.

    >>> plain("a\\x1b[31m"), plain(7)
    ('a\\\\x1b[31m', '7')
    """
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(ascii(c)[1:-1] if _is_hidden(c) else c for c in text)


def _is_hidden(character: str) -> bool:
    return character in _DIRECTIONS or unicodedata.category(character) in _HIDDEN


def safe(value: object) -> str:
    """Return a value as text for HTML and SVG, in elements and in quoted attributes.

    >>> safe('<b a="1">')
    '&lt;b a=&quot;1&quot;&gt;'
    """
    return escape(plain(value), quote=True)


def shown(observation: Any) -> str:
    """Return an observation as text: the first column of several; others shortened."""
    if isinstance(observation, tuple) and observation:
        observation = observation[0]
    return observation if isinstance(observation, str) else short(observation)


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def width(text: str) -> int:
    """Return how many columns a text takes; wide characters take two.

    >>> width("札 a")
    4
    """
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def kind_of(label: object) -> str:
    """Return what colours a label: its entity type, or the label itself.

    >>> kind_of("B-PER"), kind_of("NOUN"), kind_of(3)
    ('PER', 'NOUN', '3')
    """
    text = str(label)
    return text[2:] if len(text) > 2 and text[0] in "BIESLU" and text[1] == "-" else text


def kinds_of(lists: Iterable[Iterable[Any] | None]) -> dict[str, int]:
    """Return the numbers of all kinds of labels, in order; O and unknown labels have none."""
    labels = {label for labels in lists for label in labels or [] if not is_outside(label)}
    return {kind: number for number, kind in enumerate(sorted({kind_of(label) for label in labels}))}


def is_outside(label: Any) -> bool:
    """Return whether a label carries no information: O, or unknown."""
    return label is None or label == "O"
