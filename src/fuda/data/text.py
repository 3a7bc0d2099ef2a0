r"""Texts and their tokens: where each token begins and ends in the text that it is a part of.

`tokenize` needs no model and no language. From left to right, the first rule that applies makes a
token; white space separates tokens and is in none:

=============  ====================================================================================
rule           examples
=============  ====================================================================================
URL            ``https://lima.pe/a?b=1``, ``www.lima.pe``, without punctuation at the end
e-mail         ``ana.diaz@lima.pe``
abbreviation   ``U.S.``, ``e.g.``; ``Dr.`` and the other words of `ABBREVIATIONS`; an initial, a
               capital before a full stop, white space and a capital: the ``J.`` of ``J. Smith``
character      each Chinese character, hiragana and katakana is a token of its own
elision        an article or pronoun that Italian, French or Catalan joins to the next word before
               a vowel: the ``d'`` of ``d'aglio``, the ``l'`` of ``l'eau``
word, number   letters, digits and ``_`` with the accents and vowel signs that belong to them.
               Single apostrophes and hyphens within stay (``O'Brien``, ``COVID-19``), and so do
               ``. , : /`` between digits (``1,000.50``, ``12:30``, ``3/4``)
other          every other character is a token of its own; an emoji of several characters is one
=============  ====================================================================================

Invisible marks such as the zero-width space and those of the direction of writing separate like
white space. Thai, Lao, Khmer and Burmese, written without spaces, are not cut into words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import lt

from fuda.checks import check_choice, is_whole
from fuda.errors import DataError, short

Offsets = tuple[int, int]

ABBREVIATIONS = (
    *("Mr", "Mrs", "Ms", "Dr", "Prof", "Sr", "Sra", "Srta", "Jr", "St", "Ste", "Mt", "Gen", "Col", "Capt"),
    *("Lt", "Sgt", "Rev", "Hon", "Inc", "Ltd", "Corp", "Co", "Bros", "vs", "etc", "approx"),
)
TOKENIZERS = ("words", "blanks")
_ELIDED = (  # shortened before a vowel: articles, pronouns, conjunctions
    *("l", "d", "c", "j", "m", "n", "s", "t", "qu", "jusqu", "lorsqu", "puisqu", "quoiqu"),
    *("un", "dell", "all", "dall", "nell", "sull", "coll", "quell", "quest", "bell", "sant", "dov", "com"),
)
_VOWELS = "aeiouyhàáâäèéêëìíîïòóôöùúûüœæ"

_MARK, _JOINER = "\u0301", "\u200d"  # stand for all of their kind in the pattern
_CJK = "\u3005-\u3007\u3031-\u3035\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK += "\uff66-\uff9f\U00020000-\U0003ffff"
_LETTER = rf"[^\W\d_{_CJK}]"
_WORD = rf"(?:[^\W{_CJK}]|[{_MARK}{_JOINER}])"
_TOKEN = re.compile(
    rf"""
      (?:https?://|ftp://|www\.) [^\s<>"]* [^\s<>".,;:!?'’)\]}}»”…]
    | [A-Za-z0-9_.+-]{{1,64}}+ @ [A-Za-z0-9-]{{1,63}} (?: \. [A-Za-z0-9-]{{1,63}} ){{1,9}}
    | (?P<initial> {_LETTER} )\. (?= \s++ (?P<next> \S ) )
    | {_LETTER} (?: \.{_LETTER} )++ \.?+ (?!{_WORD})
    | (?: {"|".join(ABBREVIATIONS)} ) \. (?!{_WORD})
    | [{_CJK}] {_MARK}*
    | (?i: {"|".join(_ELIDED)} ) ['’] (?= (?i: [{_VOWELS}] ) )
    | {_WORD}++ (?: (?: ['’‐‑-] | (?<=\d)[.,:/](?=\d) ) {_WORD}++ )*
    | \S {_MARK}*+ (?: {_JOINER}\S{_MARK}*+ )*
    """,
    re.VERBOSE,
)
_BLANKS = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Text:
    """The text that a structure was made from.

    Parameters
    ----------
    content : str
        The text.
    offsets : list of (start, end)
        Where each node begins and ends in the text, as in Python slices.
    start : int
        Where the text begins in its file; the end of a line counts as one character.

    Examples
    --------
    >>> text = Text("Ana sings.", tokenize("Ana sings."))
    >>> [text.content[start:end] for start, end in text.offsets]
    ['Ana', 'sings', '.']
    """

    content: str
    offsets: list[Offsets]
    start: int = 0

    def __post_init__(self) -> None:
        check_offsets(self.offsets, len(self.content))


def tokenize(text: str, tokenizer: str = "words") -> list[Offsets]:
    """Cut a text into tokens.

    Parameters
    ----------
    text : str
        Any text.
    tokenizer : {"words", "blanks"}
        The rules of `fuda.data.text`, or cuts at white space only, for texts whose tokens are
        already separated.

    Returns
    -------
    list of (start, end)
        Where each token begins and ends.

    Examples
    --------
    >>> text = "Dr. O'Brien (Lima) paid 1,000 €."
    >>> [text[start:end] for start, end in tokenize(text)]
    ['Dr.', "O'Brien", '(', 'Lima', ')', 'paid', '1,000', '€', '.']
    """
    check_choice("tokenizer", tokenizer, TOKENIZERS)
    if tokenizer == "blanks":
        return [match.span() for match in _BLANKS.finditer(text)]
    offsets: list[Offsets] = []
    for match in _TOKEN.finditer(text if text.isascii() else _simplified(text)):
        start, end = match.span()
        initial, after = match["initial"], match["next"]
        if initial and not (initial.isupper() and after.isupper()):
            offsets += [(start, end - 1), (end - 1, end)]
        else:
            offsets.append((start, end))
    return offsets


def split_at(offsets: Iterable[Offsets], places: Iterable[int]) -> list[Offsets]:
    """Return the tokens, those cut in two that have one of the places inside.

    Parameters
    ----------
    offsets : iterable of (start, end)
        Tokens in order.
    places : iterable of int
        Where to cut.

    Returns
    -------
    list of (start, end)
        The tokens.

    Examples
    --------
    >>> split_at([(0, 4), (5, 9)], [4, 7])
    [(0, 4), (5, 7), (7, 9)]
    """
    cuts = sorted(set(places), reverse=True)
    parts = []
    for start, end in offsets:
        while cuts and cuts[-1] <= start:
            cuts.pop()
        while cuts and cuts[-1] < end:
            parts.append((start, cuts[-1]))
            start = cuts.pop()
        parts.append((start, end))
    return parts


def check_offsets(offsets: Sequence[Offsets], length: int) -> None:
    """Raise DataError unless tokens are within a text, not empty, in order and apart.

    Parameters
    ----------
    offsets : list of (start, end)
        The tokens.
    length : int
        The number of characters of the text.
    """
    edges = list(chain.from_iterable(offsets)) if all(map(_is_pair, offsets)) else []
    starts, ends = edges[::2], edges[1::2]
    in_order = len(starts) == len(offsets) and set(map(type, edges)) <= {int} and edges == sorted(edges)
    if in_order and all(map(lt, starts, ends)) and (not edges or (edges[0] >= 0 and edges[-1] <= length)):
        return  # as nearly always
    for node, pair in enumerate(offsets):
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(map(is_whole, pair)):
            raise DataError(f"the offsets of node {node} are {short(pair)}; give a start and an end")
        if not 0 <= pair[0] < pair[1] <= length:
            problem = f"the offsets {pair[0]} to {pair[1]} of node {node}"
            raise DataError(f"{problem} are not within a text of {length} characters; correct them")
    for node, (left, right) in enumerate(pairwise(offsets), 1):
        if right[0] < left[1]:
            problem = f"node {node} begins at {right[0]}, before the end of the last at {left[1]}"
            raise DataError(f"{problem}; give offsets in order and without overlap")


def _is_pair(value: object) -> bool:
    """Whether a value is a pair."""
    return type(value) in (tuple, list) and len(value) == 2  # type: ignore[arg-type]


def _simplified(text: str) -> str:
    """A text of the same length in which marks are the same, and what is invisible is a space."""
    odd = {c for c in set(text) if c > "\u02ff" or c == "\xad"}
    return text.translate({ord(c): kind for c in odd if (kind := _kind(c))})


def _kind(character: str) -> str:
    """What a character stands for in the pattern; nothing if it is itself."""
    category = unicodedata.category(character)
    if category[0] == "M" or character == "\xad" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return _MARK
    if category == "Cf":
        return _JOINER if character in "\u200c\u200d" else " "
    return ""
