"""Large tables among the parameters of a model, which files have as arrays and texts.

Parameters are JSON. A matrix of a kernel becomes ``{"array": NAME}``; a `Vectors` becomes
``{"vectors": NUMBER, "base": SET}``, and each is stored once: its matrix, the number of each
word's class, and two lists of texts, the words and the classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import check_arrays, is_count
from fuda.errors import DataError, short
from fuda.vectors import Vectors

_LARGE = 1000  # longer lists are stored as arrays


def extract_tables(value: Any, arrays: dict[str, np.ndarray], texts: list[list[str]]) -> Any:
    """Return parameters without large tables, which are added to the arrays and texts.

    Parameters
    ----------
    value : Any
        Parameters as JSON, with matrices as lists and `Vectors` as they are.
    arrays : dict of ndarray
        The arrays of the model.
    texts : list of list of str
        The texts of tables: two lists for each `Vectors`.

    Returns
    -------
    Any
        JSON.
    """
    if isinstance(value, dict):
        return {key: extract_tables(inner, arrays, texts) for key, inner in value.items()}
    if isinstance(value, Vectors):
        return {"vectors": _number(value, arrays, texts), "base": value.base}
    if not isinstance(value, list) or np.size(value) <= _LARGE:
        return value
    name = f"matrix{sum(key.startswith('matrix') for key in arrays)}"
    arrays[name] = np.array(value, dtype=np.float64)
    return {"array": name}


def insert_tables(value: Any, arrays: dict[str, np.ndarray], texts: list[list[str]]) -> Any:
    """Return parameters with their tables, which are removed from the arrays.

    Parameters
    ----------
    value : Any
        JSON, as `extract_tables` returns it.
    arrays : dict of ndarray
        The arrays of a file.
    texts : list of list of str
        The texts of tables.

    Returns
    -------
    Any
        Parameters.
    """
    tables = [_vectors(number, arrays, texts) for number in range(len(texts) // 2)]
    return _with(value, arrays, tables)


def _number(table: Vectors, arrays: dict[str, np.ndarray], texts: list[list[str]]) -> int:
    """The number of a table in the file, to which it is added where it is not there yet."""
    for number in range(len(texts) // 2):
        if arrays[f"vectors{number}"] is table.matrix:  # the base may differ
            return number
    number, classes = len(texts) // 2, table.classes or []
    distinct = {bits: i for i, bits in enumerate(dict.fromkeys(classes))}
    arrays[f"vectors{number}"] = table.matrix
    arrays[f"vectors{number}_classes"] = np.array([distinct[bits] for bits in classes], dtype=np.int32)
    texts += [table.words, list(distinct)]
    return number


def _vectors(number: int, arrays: dict[str, np.ndarray], texts: list[list[str]]) -> Vectors:
    """A table of a file, checked."""
    words, distinct = texts[2 * number : 2 * number + 2]
    names = f"vectors{number}", f"vectors{number}_classes"
    stored = {name: arrays.pop(name) for name in names if name in arrays}
    shapes = {names[0]: (len(words), None), names[1]: (len(words) if distinct else 0,)}
    check_arrays(stored, shapes, {names[0]: np.float32, names[1]: np.int32})
    matrix, classes = (stored[name] for name in names)
    if distinct and not ((classes >= 0) & (classes < len(distinct))).all():
        raise DataError("a word of its vectors has a class that is not listed")
    return Vectors(words, matrix, [distinct[k] for k in classes] if distinct else None)


def _with(value: Any, arrays: dict[str, np.ndarray], tables: list[Vectors]) -> Any:
    """Parameters with matrices and vectors in place of their names and numbers."""
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        if value["array"] not in list(arrays):
            raise DataError(f"its matrix {short(value['array'])} is missing")
        return arrays.pop(value["array"])
    if set(value) == {"vectors", "base"}:
        number = value["vectors"]
        if not is_count(number) or number >= len(tables):
            raise DataError(f"its vectors {short(number)} are missing")
        return tables[number].extending(value["base"])
    return {key: _with(inner, arrays, tables) for key, inner in value.items()}
