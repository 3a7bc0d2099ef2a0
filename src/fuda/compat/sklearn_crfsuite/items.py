"""python-crfsuite's items as collections of CRFsuite's attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fuda.checks import is_number
from fuda.errors import DataError, described


def attributes(sequence: Iterable[Any]) -> list[Any]:
    """Return the attributes of the items of a sequence, named as python-crfsuite names them.

    Parameters
    ----------
    sequence : iterable
        Items: dicts whose values are numbers, booleans, strings or again items, or collections of
        names. {"a": "x"} and {"a": ["x"]} have the attribute "a:x", {"a": {"b": 2}} has "a:b" with
        the value 2. True is 1; attributes of value 0 are left out.

    Returns
    -------
    list
        For each item a list of names, or a dict from names to values where these are not all 1.

    Examples
    --------
    >>> attributes([{"word": "Ana", "title": True, "digit": False}, {"length": 3, "tags": ["x", "y"]}])
    [['word:Ana', 'title'], {'length': 3.0, 'tags:x': 1.0, 'tags:y': 1.0}]
    """
    if hasattr(sequence, "items") and not isinstance(sequence, dict):
        sequence = sequence.items()  # an ItemSequence of python-crfsuite
    return list(map(_attributes, sequence))


def _attributes(item: Any) -> list[str] | dict[str, float]:
    """The attributes of an item."""
    if isinstance(item, dict):
        names = []
        for name, value in item.items():
            if type(name) is not str:
                break
            if type(value) is str:
                names.append(f"{name}:{value}")
            elif value is True or (type(value) is float and value == 1.0):
                names.append(name)
            elif value is not False:
                break
        else:
            return names  # by far the most frequent
    values: dict[str, float] = {}
    for name, number in _pairs(item):
        values[name] = values.get(name, 0.0) + number
    return {name: value for name, value in values.items() if value}


def _pairs(item: Any) -> Iterator[tuple[str, float]]:
    """Names and values of the attributes of an item."""
    if not isinstance(item, dict):
        yield from ((_text(name), 1.0) for name in item)
        return
    for key, value in item.items():
        name = _text(key)
        if isinstance(value, dict | list | set | tuple | frozenset):
            yield from ((f"{name}:{inner}", number) for inner, number in _pairs(value))
        elif isinstance(value, str | bytes):
            yield f"{name}:{_text(value)}", 1.0
        elif isinstance(value, bool) or is_number(value):
            yield name, float(value)
        else:
            raise DataError(
                f"the attribute {name!r} has the value {described(value)}; give a finite number, a string, "
                "a boolean or a collection of attributes"
            )


def _text(name: Any) -> str:
    """The name of an attribute; bytes are UTF-8."""
    if not isinstance(name, str | bytes):
        raise DataError(f"{described(name)} is not an attribute; attributes are strings")
    return name.decode() if isinstance(name, bytes) else str(name)
