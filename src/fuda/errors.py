"""The errors a user can cause. Each message names the place, what was found and what to do."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be used as given: the message says where, what was found and the remedy."""


class ModelFileError(DataError):
    """A model file that cannot be read: damaged, foreign, made by a newer version, or unsafe."""


def place(structure: int | None = None, node: int | None = None) -> str:
    """The words by which every message names a place: ``structure 3, node 5`` (both count from 0)."""
    words = []
    if structure is not None:
        words.append(f"structure {structure}")
    if node is not None:
        words.append(f"node {node}")
    return ", ".join(words)


def short(value: object) -> str:
    """A value as messages show it: its repr on one line, cut where it is long."""
    try:
        text = " ".join(repr(value).split())
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"
    return text if len(text) <= 40 else text[:39] + "…"


def described(value: object) -> str:
    """A value and its kind, as messages show them.

    >>> described(1.5)
    '1.5 (float)'
    """
    return f"{short(value)} ({type(value).__name__})"
