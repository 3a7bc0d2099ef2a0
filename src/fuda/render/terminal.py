"""The same for terminals, by rich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree as Branches

from fuda.render.nodes import Bar, Node, nodes_of
from fuda.render.text import kind_of, plain

# Of the 16 colours of a terminal, whose theme makes them readable.
_NAMES = ("blue", "green", "yellow", "magenta", "cyan", "red")
_COLOURS = (*_NAMES, *(f"bright_{name}" for name in _NAMES))


def colour(kinds: dict[str, int], label: Any) -> str:
    """Return the colour of a label; that of O is dim."""
    kind = kind_of(label)
    return _COLOURS[kinds[kind] % len(_COLOURS)] if kind in kinds else "dim"


def display(shown: Any) -> Group:
    """Return structures with labels for a terminal.

    Parameters
    ----------
    shown : Display
        The structures.

    Returns
    -------
    Group
        For ``rich.print``.
    """
    parts: list[Any] = []
    for i in range(shown.count):
        parts += [Text(plain(shown.names[i]), style="dim"), Padding(structure(shown, i), (0, 0, 1, 2))]
    if shown.rest:
        parts.append(Text(shown.rest, style="dim"))
    return Group(*parts)


def structure(shown: Any, i: int, here: int | None = None) -> Text | Branches | Group:
    """Return one structure for a terminal: text, a tree, or a list of nodes and their parents."""
    x = shown.structures[i]
    nodes = nodes_of(x, *shown.of(i))
    if x.shape == "sequence":
        return line(nodes, shown.kinds, here)
    words = [line([node], shown.kinds, here) for node in nodes]
    parents: list[list[int]] = [[] for _ in nodes]
    for parent, child in x.edges.tolist():
        parents[child].append(parent)
    if x.shape == "tree":
        top = Branches("", hide_root=True)
        branches: dict[int, Branches] = {}
        for t in x.order.tolist():
            over = branches[parents[t][0]] if parents[t] else top
            branches[t] = over.add(words[t])
        return top
    above = [", ".join(plain(nodes[p].word) for p in heads) for heads in parents]
    rows = zip(words, above, strict=True)
    return Group(*(word + Text(f"  ← {names}" if names else "", style="dim") for word, names in rows))


def line(nodes: Sequence[Node], kinds: dict[str, int], here: int | None = None) -> Text:
    """Return nodes as a line of text: words, with labels after their segments."""
    text = Text()
    for node in nodes:
        style = "" if node.bar is None else colour(kinds, node.bar.kind)
        style = f"{style} bold".strip() if node.bar is not None else ""
        if node.number == here:
            style = f"{style} bold underline".strip()
        text.append(f"[{plain(node.word)}]" if node.number == here else plain(node.word), style=style)
        if node.bar is not None and (node.bar.last or node.gold is not None):
            number = "" if node.probability is None else f" {100 * node.probability:.0f}"
            text.append(f"/{_name(node.bar)}{number}", style=colour(kinds, node.bar.kind))
        if node.gold is not None:
            text.append(f" ≠ {_name(node.gold)}", style="bold red")
        text.append(" ")
    text.rstrip()
    return text


def _name(bar: Bar) -> str:
    """A label as text; within a segment, its kind."""
    return plain(bar.text or bar.kind)
