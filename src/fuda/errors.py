"""Errors caused by input. Each message names the place, what was found and what to do."""

from __future__ import annotations


class DataError(ValueError):
    """Invalid data: the message contains the place, what was found and the remedy.

    Examples
    --------
    >>> from fuda import CRF
    >>> try:
    ...     CRF().fit([["Ana", "sings"]], [["PER"]])
    ... except DataError as error:
    ...     print(error)
    structure 0 has 2 nodes but 1 labels; give one label per node
    """


class ModelFileError(DataError):
    """Invalid model file: damaged, of another format, of a newer version, or unsafe.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> import fuda
    >>> with NamedTemporaryFile(suffix=".fuda") as file:
    ...     try:
    ...         fuda.load(file.name)
    ...     except ModelFileError:
    ...         print("an empty file is not a model file")
    an empty file is not a model file
    """


class ClusterError(DataError):
    """A cluster that cannot be used: it does not answer, is lost, or has no workers."""


class AbsentError(DataError, AttributeError):
    """An attribute that a model with these parameters does not have: `hasattr` is False."""


def place(structure: int | None = None, node: int | None = None) -> str:
    """Return the name of a place in messages, with indices from 0.

    >>> place(3, 5)
    'structure 3, node 5'
    """
    indices = {"structure": structure, "node": node}
    return ", ".join(f"{name} {index}" for name, index in indices.items() if index is not None)


def short(value: object) -> str:
    """Return a value for messages: its repr on one line, truncated to 40 characters."""
    try:
        text = " ".join(repr(value).split())
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"
    return text if len(text) <= 40 else text[:39] + "…"


def described(value: object) -> str:
    """Return a value and its type for messages.

    >>> described(1.5)
    '1.5 (float)'
    """
    return f"{short(value)} ({type(value).__name__})"
