"""Evidence for a label in plain words: features, neighbouring labels, labels elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import groupby
from typing import Any, NamedTuple

from fuda.features.sets import JOINT_KEYS

DisplayName = Callable[[str], str]
_CHANNEL = re.compile(r"\[([^\]]+)\] (.+)", re.DOTALL)
_PART = re.compile(r"([+-]?\d+)([a-z]*)")
_FOLLOWS = re.compile(r"(.+?) → (.+?), not (.+?) → (.+?)(?:, at (.+))?", re.DOTALL)
_ELSEWHERE = re.compile(r"(.+): (.+?), not (.+)", re.DOTALL)
_MARK = re.compile(r"<[+-]\d+>")
_MOST_PHRASES = 4  # so many phrases about one word are listed
_ANY_CASE = ", in capitals or not"
_RUN_CUT_AT = 4  # shapes do not distinguish longer runs of a class

_FLAGS = {
    "capitalized": "begins with a capital",
    "all-capitals": "is all in capitals",
    "initial": "is an initial",
    "single-capital": "is a single capital",
    "roman": "is a Roman number",
    "mixed-case": "has capitals within",
    "digits": "has digits",
    "year": "is a year",
    "all-digits": "is all digits",
    "number": "is a number",
    "hyphen": "has a hyphen",
    "period": "has a full stop",
    "ends-period": "ends in a full stop",
    "apostrophe": "has an apostrophe",
    "punctuation": "is punctuation",
    "unseen in training": "is new to the model",
}
_CLASSES = {  # names of classes of characters: of one character, of several
    "X": ("a capital", "capitals"),
    "x": ("a small letter", "small letters"),
    "0": ("a digit", "digits"),
    "h": ("a hiragana", "hiragana"),
    "k": ("a katakana", "katakana"),
    "c": ("a Chinese character", "Chinese characters"),
    "a": ("a letter", "letters"),
}


class Feature(NamedTuple):
    """What words at offsets have, each with the key of a joint or "", and the label before."""

    parts: list[tuple[int, str, str]]
    after: str | None


def parsed(text: str, labels: Collection[str] = ()) -> Feature | None:
    """Return the parts of a feature such as ``[-1] w=in`` or ``[-1lower&0lower] in&lima``.

    Parameters
    ----------
    text : str
        The feature, as explanations name it.
    labels : collection of str
        The labels after which it may count.

    Returns
    -------
    Feature or None
        None where the text is of another form.

    Examples
    --------
    >>> parsed("[-1lower&0classes] in&Xx").parts
    [(-1, 'lower', 'in'), (0, 'classes', 'Xx')]
    """
    match = _CHANNEL.fullmatch(text)
    if match is None:
        return None
    places = [_PART.fullmatch(part) for part in match[1].split("&")]
    name, _, after = match[2].rpartition(" after ")
    if not name or after not in labels:
        name, after = match[2], ""
    texts = [name] if len(places) == 1 else name.split("&")
    if len(texts) != len(places):  # a word that is or has an &
        return None
    parts = [(int(p[1]), p[2], t) for p, t in zip(places, texts, strict=True) if p is not None]
    known = all(not key or key in JOINT_KEYS for _, key, _ in parts)
    return Feature(parts, after or None) if len(parts) == len(places) and known else None


def place_of(text: str, labels: Collection[str] = ()) -> Any:
    """Return a key that features of the same words share, to group them.

    >>> place_of("[+1] p1=d") == place_of("[+1] w=di")
    True
    >>> place_of("[0] w=di") == place_of("[+1] w=di")
    False
    """
    feature = parsed(text, labels)
    return text if feature is None else (*(offset for offset, *_ in feature.parts), feature.after)


def feature_in_words(text: str, is_chain: bool, labels: Collection[str], display_name: DisplayName) -> str:
    """Return a feature of an explanation in plain words.

    Parameters
    ----------
    text : str
        The feature, as explanations name it.
    is_chain : bool
        Whether it is of a sequence; else words have heads and dependents.
    labels : collection of str
        The labels of the model.
    display_name : callable
        The name of a label for people.

    Returns
    -------
    str
        The same in words, or the text itself where it has another form.

    Examples
    --------
    >>> feature_in_words("[-1lower&0classes] in&Xx", True, [], str)
    'the word before is “in”, the word has capitals, then small letters'
    """
    feature = parsed(text, labels)
    if feature is None:
        return text
    words = ", ".join(_property(*part, is_chain) for part in feature.parts)
    return words if feature.after is None else f"{words}, after {display_name(feature.after)}"


def features_in_words(
    texts: list[str], is_chain: bool, labels: Collection[str], display_name: DisplayName
) -> str:
    """Return features of the same words in plain words, what the words are first.

    >>> features_in_words(["[+1] p1=d", "[+1] l=di", "[+1] length=2"], True, [], str)
    'the word after is “di”, begins with “d”, has 2 characters'
    """
    pairs = [(parsed(text, labels), feature_in_words(text, is_chain, labels, display_name)) for text in texts]
    places = {feature.parts[0][0] for feature, _ in pairs if feature is not None and len(feature.parts) == 1}
    if len(places) != 1 or any(feature is None or len(feature.parts) > 1 for feature, _ in pairs):
        return "; ".join(list(dict.fromkeys(phrases for _, phrases in pairs))[:_MOST_PHRASES])
    place = _place(places.pop(), is_chain)
    pairs.sort(key=lambda pair: (not pair[1].startswith(f"{place} is “"), _ANY_CASE in pair[1]))
    distinct: dict[str, str] = {}
    for _, text in pairs:
        text = text.removeprefix(f"{place} ").removesuffix(_ANY_CASE)
        distinct.setdefault(text.casefold(), text)
    phrases = list(distinct.values())
    more = f" and {len(phrases) - _MOST_PHRASES} more" if len(phrases) > _MOST_PHRASES else ""
    beginning = "" if phrases[0].startswith("there is no") else f"{place} "
    return f"{beginning}{', '.join(phrases[:_MOST_PHRASES])}{more}"


def follows_in_words(text: str, is_chain: bool, display_name: DisplayName) -> str:
    """Return in words which labels follow one another, and which would otherwise.

    >>> follows_in_words("B-PER → O, not O → O, at in", True, str)
    'O after B-PER, rather than O after O, at “in”'
    """
    match = _FOLLOWS.fullmatch(text)
    if match is None:
        return text
    pairs = (_pair(match[i], match[i + 1], is_chain, display_name) for i in (1, 3))
    return ", rather than ".join(pairs) + (f", at “{match[5]}”" if match[5] else "")


def elsewhere_in_words(text: str, display_name: DisplayName) -> str:
    """Return in words which label another word has, and which it would have.

    >>> elsewhere_in_words("Lima: B-LOC, not O", str)
    '“Lima” is then B-LOC, rather than O'
    """
    match = _ELSEWHERE.fullmatch(text)
    return (
        text
        if match is None
        else f"“{match[1]}” is then {display_name(match[2])}, rather than {display_name(match[3])}"
    )


def _pair(above: str, label: str, is_chain: bool, display_name: DisplayName) -> str:
    """A label and the one before it, or that of the head."""
    if above == "<start>":
        return f"{display_name(label)} at the {'start' if is_chain else 'root'}"
    if label == "<end>":
        return f"{display_name(above)} at the end"
    return f"{display_name(label)} {'after' if is_chain else 'below'} {display_name(above)}"


def _property(offset: int, key: str, text: str, is_chain: bool) -> str:
    """What the word at an offset has."""
    if _MARK.fullmatch(text):
        return f"there is no {_place(offset, is_chain).removeprefix('the ').removeprefix('a ')}"
    place = _place(offset, is_chain)
    if key:
        return f"{place} {_classes(text) if key == 'classes' else f'is “{text}”'}"
    if text in _FLAGS:
        return f"{place} {_FLAGS[text]}"
    name, _, value = text.partition("=")
    if name == "w" and value:
        return f"{place} is “{value}”"
    if name == "l" and value:
        return f"{place} is “{value}”{_ANY_CASE}"
    if re.fullmatch(r"[ps]\d", name) and value:
        return f"{place} {'begins with' if name[0] == 'p' else 'ends in'} “{value}”"
    if name == "shape":
        return f"{place} is {_shape(value)}"
    if name == "classes":
        return f"{place} {_classes(value)}"
    if name == "length":
        return f"{place} has {_length(value)}"
    return f"{place} has {text}"


def _place(offset: int, is_chain: bool) -> str:
    """Where an offset is, seen from the word."""
    if offset == 0:
        return "the word"
    if not is_chain:
        return ("the head" if offset < 0 else "a dependent") + (
            "" if abs(offset) == 1 else f" {abs(offset)} steps {'up' if offset < 0 else 'down'}"
        )
    side = "before" if offset < 0 else "after"
    return f"the word {side}" if abs(offset) == 1 else f"the word {abs(offset)} places {side}"


def _shape(value: str) -> str:
    """The runs of characters of a word, with their lengths."""
    runs = []
    for character, run in groupby(value):
        count = len(list(run))
        if character not in _CLASSES:
            runs.append(f"“{character * count}”")
        elif count == 1:
            runs.append(_CLASSES[character][0])
        else:
            runs.append(f"{count}{' or more' if count == _RUN_CUT_AT else ''} {_CLASSES[character][1]}")
    return ", then ".join(runs)


def _classes(value: str) -> str:
    """The classes of characters of a word."""
    names = [_CLASSES[character][1] if character in _CLASSES else f"“{character}”" for character in value]
    return f"has {'only ' if len(names) == 1 else ''}{', then '.join(names)}"


def _length(value: str) -> str:
    """A range of lengths."""
    if value == "1":
        return "one character"
    return f"{value.replace('-', ' to ').replace('+', ' or more')} characters"
