"""python-crfsuite's items as collections of CRFsuite's attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

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
    >>> item = {"word": "Ana", "title": True, "digit": False}
    >>> attributes([item, {"length": 3, "tags": ["x", "y"]}])
    [['word:Ana', 'title'], {'length': 3.0, 'tags:x': 1.0, 'tags:y': 1.0}]
    """
    if hasattr(sequence, "items") and not isinstance(sequence, dict):
        sequence = sequence.items()  # an ItemSequence of python-crfsuite
    return list(map(_attributes, sequence))


def _attributes(item: Any) -> list[str] | dict[str, float]:
    """The attributes of an item."""
    values: dict[str, float] = {}
    for name, number in _pairs(item):
        values[name] = values.get(name, 0.0) + number
    values = {name: value for name, value in values.items() if value}
    return list(values) if set(values.values()) == {1.0} else values


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


_MOST_KEYS = 1000  # the values of so many keys are remembered


class _Unusual(Exception):
    """A value that is neither text nor 0 nor 1."""


class _Column(dict[Any, int]):
    """The numbers of the attributes of a key by the key's values; −1 for those without one."""

    def __init__(self, key: Any, vocabulary: dict[str, int], learn: bool) -> None:
        super().__init__()
        self.key, self.vocabulary, self.learn = key, vocabulary, learn

    def __missing__(self, value: Any) -> int:
        if type(self.key) is not str or not (type(value) is str or value in (0, 1)):
            raise _Unusual
        name = f"{self.key}:{value}" if type(value) is str else self.key
        if type(value) is not str and not value:
            number = self[value] = -1
        elif self.learn:
            number = self[value] = self.vocabulary.setdefault(name, len(self.vocabulary))
        elif (number := self.vocabulary.get(name, -1)) >= 0:
            self[value] = number
        return number


class Vocabulary:
    """Numbers of attributes, and the items of sequences by them.

    Parameters
    ----------
    names : list of str, optional
        The attributes, where they are known.
    """

    def __init__(self, names: Iterable[str] | None = None) -> None:
        self.numbers = {} if names is None else {name: k for k, name in enumerate(names)}
        self._learn = names is None
        self._columns: dict[Any, _Column] = {}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_columns": {}}  # filled again as items come

    def rows(self, X: Iterable[Iterable[Any]]) -> tuple[sp.csr_matrix, np.ndarray]:
        """Return a matrix (a row per item, a column per attribute) and the bounds of sequences.

        Without known names, all attributes are added; else others than these are left out.
        """
        ids: list[int] = []
        lengths: list[int] = []
        sizes: list[int] = []
        other_values: dict[int, float] = {}  # values other than 1, by their positions in ids
        for i, sequence in enumerate(X):
            before = len(lengths)
            if hasattr(sequence, "items"):
                if isinstance(sequence, dict):
                    raise DataError(f"X[{i}] is an item, not a sequence of items; wrap X in a list: [X]")
                sequence = sequence.items()  # an ItemSequence of python-crfsuite
            for item in sequence:
                columns = self._row(item, len(ids), other_values)
                ids += columns
                lengths.append(len(columns))
            sizes.append(len(lengths) - before)
        data = np.ones(len(ids))
        data[list(other_values)] = list(other_values.values())
        is_known = np.array(ids, dtype=np.int64) >= 0
        indptr = np.append(0, np.cumsum(is_known))[np.append(0, np.cumsum(lengths, dtype=np.int64))]
        parts = data[is_known], np.array(ids, dtype=np.int32)[is_known], indptr
        matrix = sp.csr_matrix(parts, shape=(len(lengths), len(self.numbers)))
        matrix.sum_duplicates()
        return matrix, np.append(0, np.cumsum(sizes, dtype=np.int64))

    def _row(self, item: Any, start: int, other_values: dict[int, float]) -> list[int]:
        """The numbers of an item's attributes; values other than 1 go to `others` from `start`."""
        columns = self._columns
        if type(item) is dict:
            try:
                return [columns[key][value] for key, value in item.items()]
            except KeyError:  # a new key
                if len(columns) < _MOST_KEYS:
                    new = item.keys() - columns.keys()
                    columns |= {key: _Column(key, self.numbers, self._learn) for key in new}
                    return self._row(item, start, other_values)
            except (TypeError, _Unusual):  # a list among the values, or a number
                pass
        pairs = list(_pairs(item))
        other_values.update({start + k: value for k, (_, value) in enumerate(pairs) if value != 1.0})
        if self._learn:
            return [self.numbers.setdefault(name, len(self.numbers)) for name, _ in pairs]
        return [self.numbers.get(name, -1) for name, _ in pairs]
