"""Named feature sets: the features of one observation.

A feature set is a function from one observation to a list of feature names (or a dict
name → value). It never looks at neighbours: context is a window of offsets, each with separate
weights, see `fuda.data.encoding`. The sets of the papers are

====  =========================  ==========================
S1    word                       features="word", window=0
S2    word + spelling            features="spelling", window=0
S3    S2 of three words          features="spelling", window=1
====  =========================  ==========================

and the names S1, S2, S3 mean exactly these, whatever the parameter `window` is. ``text`` is richer
(affixes, shape, character classes, length), and with a window it also has features of neighbouring
tokens together (`JOINTS`). The sets for residues and bases, ``protein``, ``physicochemical``,
``blosum62`` and ``dna``, are in `fuda.features.residues`.

An observation that is a dict, a list or set of feature names, an integer id or a numeric vector
*is* its features; named sets do not change it. Of a tuple of columns, a named set uses the first,
and each further column is one more feature.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from fuda.checks import is_whole
from fuda.errors import DataError, short
from fuda.features.residues import blosum62, dna, physicochemical, protein

_CACHED = 1 << 14  # the number of tokens whose shapes are cached
_YEAR = re.compile(r"(1[5-9]|20)\d\d")
_NUMBER = re.compile(r"[+-]?\d+([.,:/]\d+)*%?")
_ROMAN = re.compile(r"[IVXLCDM]+")
# The feature of each length, the last for all others.
_LENGTHS = [f"length={n}" for n in (0, 1, 2, 3, *["4-5"] * 2, *["6-8"] * 3, *["9-12"] * 4, "13+")]
_RUNS = re.compile(r"((.)\2{0,3})\2*", re.DOTALL)  # a run of one character: up to four, the first


def word(token: str) -> list[str]:
    """Return the token itself (S1).

    Parameters
    ----------
    token : str
        A word or other token.

    Returns
    -------
    list of str
        One feature.

    Examples
    --------
    >>> word("Lima")
    ['w=Lima']
    """
    return [f"w={token}"]


def spelling(token: str) -> list[str]:
    """Return the token and properties of its spelling (S2).

    Parameters
    ----------
    token : str
        A word or other token.

    Returns
    -------
    list of str
        The features.

    Examples
    --------
    >>> spelling("EFE")
    ['w=EFE', 'capitalized', 'all-capitals']
    >>> spelling("J.")
    ['w=J.', 'capitalized', 'all-capitals', 'initial', 'period', 'ends-period']
    """
    return [f"w={token}", *_spelling_flags(token)]


def text(token: str) -> list[str]:
    """Return token, lower-cased token, affixes, spelling, shape, character classes and length.

    Parameters
    ----------
    token : str
        A word or other token.

    Returns
    -------
    list of str
        The features; affixes have up to four characters.

    Examples
    --------
    >>> text("May-25")
    ... # doctest: +NORMALIZE_WHITESPACE
    ['w=May-25', 'l=may-25', 'p1=M', 's1=5', 'p2=Ma', 's2=25', 'p3=May', 's3=-25', 'p4=May-',
     's4=y-25', 'capitalized', 'digits', 'hyphen', 'shape=Xxx-00', 'classes=Xx-0', 'length=6-8']
    """
    features = [f"w={token}", f"l={token.lower()}"]
    for size in range(1, min(4, len(token) - 1) + 1):
        features += [f"p{size}={token[:size]}", f"s{size}={token[-size:]}"]
    return [
        *features,
        *_spelling_flags(token),
        f"shape={_shape(token)}",
        f"classes={character_classes(token)}",
        _LENGTHS[min(len(token), len(_LENGTHS) - 1)],
    ]


def _spelling_flags(token: str) -> list[str]:
    """The properties of the spelling that a token has."""
    flags = []
    first, last = token[:1], token[-1:]
    if first.isupper():
        flags.append("capitalized")
        if token.isupper():
            flags.append("all-capitals")
            if len(token) == 2 and last == ".":
                flags.append("initial")
            elif len(token) == 1:
                flags.append("single-capital")
            elif _ROMAN.fullmatch(token):
                flags.append("roman")
    if token[1:].lower() != token[1:] and not token.isupper():
        flags.append("mixed-case")
    if token.isalpha():  # most words have nothing of what follows
        return flags
    if any(map(str.isdigit, token)):
        flags.append("digits")
        if _YEAR.fullmatch(token):
            flags.append("year")
        elif token.isdigit():
            flags.append("all-digits")
        elif _NUMBER.fullmatch(token):
            flags.append("number")
    if "-" in token:
        flags.append("hyphen")
    if "." in token:
        flags.append("period")
        if last == ".":
            flags.append("ends-period")
    if "'" in token or "’" in token:
        flags.append("apostrophe")
    if token and not any(map(str.isalnum, token)):
        flags.append("punctuation")
    return flags


class _CharacterClasses(dict[int, str]):
    """The class of each character, for `str.translate`, found when it first occurs."""

    def __missing__(self, point: int) -> str:
        character = chr(point)
        if character.isupper():
            symbol = "X"
        elif character.islower():
            symbol = "x"
        elif character.isdigit():
            symbol = "0"
        else:
            symbol = _script(character) if character.isalpha() else character
        self[point] = symbol
        return symbol


_CHARACTER_CLASSES = _CharacterClasses()


@lru_cache(_CACHED)
def _shape(token: str) -> str:
    """Characters by class: X upper, x lower, 0 digit, a script, else itself; runs cut to four."""
    return "".join([four for four, _ in _RUNS.findall(token.translate(_CHARACTER_CLASSES))])


def _script(letter: str) -> str:
    """The script of a letter without case; the scripts of Japanese separate its words."""
    point = ord(letter)
    if 0x3041 <= point <= 0x309F:
        return "h"
    if 0x30A0 <= point <= 0x30FF or 0xFF66 <= point <= 0xFF9F:
        return "k"
    if 0x3400 <= point <= 0x9FFF or 0xF900 <= point <= 0xFAFF or 0x20000 <= point <= 0x3FFFF:
        return "c"
    return "a"


@lru_cache(_CACHED)
def character_classes(token: str) -> str:
    """The classes of the characters, each run of one class once."""
    return "".join([first for _, first in _RUNS.findall(_shape(token))])


# Joints: conjunctions of neighbouring nodes, as (offset, key) pairs. A joint is one feature, the
# texts of its keys side by side.
JOINT_KEYS: dict[str, Callable[[str], str]] = {"lower": str.lower, "classes": character_classes}
Joint = tuple[tuple[int, str], ...]
JOINTS: dict[str, tuple[Joint, ...]] = {
    "text": (
        ((-1, "classes"), (0, "classes")),
        ((-1, "lower"), (0, "lower")),
        ((-1, "lower"), (0, "classes")),
        ((0, "classes"), (1, "classes")),
        ((0, "lower"), (1, "lower")),
        ((0, "classes"), (1, "lower")),
        ((-1, "classes"), (0, "classes"), (1, "classes")),
    )
}


FEATURE_SETS: dict[str, Callable[[str], list[str] | dict[str, float]]] = {
    "word": word,
    "spelling": spelling,
    "text": text,
    "protein": protein,
    "dna": dna,
    "physicochemical": physicochemical,
    "blosum62": blosum62,
}
NUMERIC_SETS = ("physicochemical", "blosum62")  # whose features have values other than 1
PAPER_SETS = {"S1": ("word", 0), "S2": ("spelling", 0), "S3": ("spelling", 1)}


def extract(features: str | Callable[[Any], Any], observation: Any) -> Any:
    """Return the features of one observation, by a named set or a function.

    Parameters
    ----------
    features : str or callable
        The name of a feature set, or a function from one observation to its features.
    observation : Any
        An observation of any kind.

    Returns
    -------
    list, dict, set or array
        The features.

    Examples
    --------
    >>> extract("word", ("Lima", "NP"))
    ['w=Lima', 'column1=NP']
    """
    if not isinstance(features, str):
        return features(observation)
    if isinstance(observation, str):
        return FEATURE_SETS[features](observation)
    if isinstance(observation, tuple):
        columns = [f"column{i}={value}" for i, value in enumerate(observation[1:], start=1)]
        word_features = FEATURE_SETS[features](str(observation[0]))
        if isinstance(word_features, dict):
            return word_features | dict.fromkeys(columns, 1.0)
        return word_features + columns
    return [f"id={observation}"] if is_whole(observation) else observation


def set_name(features: Any) -> str | None:
    """Return the name of the feature set that features are, or extend; None for other functions.

    >>> set_name("text"), set_name(len)
    ('text', None)
    """
    base = getattr(features, "base", None) if callable(features) else features
    return base if isinstance(base, str) else None


def resolve(features: Any, window: Any) -> tuple[Any, int]:
    """Check the parameters `features` and `window` of a model.

    Parameters
    ----------
    features : str or callable
        The name of a set, one of the papers' included, or a function.
    window : int
        The number of neighbours on each side; the papers' sets have a window of their own.

    Returns
    -------
    features : str or callable
    window : int
    """
    if not is_whole(window, 0, 100):
        raise DataError(f"window={short(window)}: give the number of neighbours on each side, from 0 to 100")
    if isinstance(features, str) and features in PAPER_SETS:
        return PAPER_SETS[features]
    if features not in FEATURE_SETS if isinstance(features, str) else not callable(features):
        known = ", ".join([*FEATURE_SETS, *PAPER_SETS])
        raise DataError(
            f"features={short(features)}: no such feature set; give one of {known}, a function from one "
            "observation to a list of feature names or a dict, or a Template"
        )
    return features, int(window)
