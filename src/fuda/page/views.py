"""Structures as people see them: words, white space, arcs."""

from __future__ import annotations

import numpy as np

from fuda.data.structures import Structure
from fuda.page.store import Item
from fuda.render.text import shown


def words_of(structure: Structure) -> list[str]:
    """Return the words of a structure."""
    return [shown(observation) for observation in structure.observations]


def spaces_of(item: Item) -> list[bool]:
    """Return whether white space follows each word; after the last, as if more came."""
    text = item.record.text
    if text is None:
        return [True] * len(item.record.structure)
    after = [*(start for start, _ in text.offsets[1:]), len(text.content) + 1]
    return [next_start > end for (_, end), next_start in zip(text.offsets, after, strict=True)]


def stretch_of(item: Item, start: int, end: int) -> str:
    """Return the words from start to end (exclusive), with white space where the text has it."""
    both = zip(words_of(item.record.structure)[start:end], spaces_of(item)[start:end], strict=True)
    return "".join(word + " " * space for word, space in both).rstrip()


def heads_of(structure: Structure) -> list[list[int]] | None:
    """Return the parents of each node; None for a sequence."""
    if structure.shape == "sequence":
        return None
    heads: list[list[int]] = [[] for _ in structure.observations]
    for parent, child in np.asarray(structure.edges).tolist():
        heads[child].append(parent)
    return heads
