"""Trees and DAGs as SVG: words in a line, edges as arcs above them, labels below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuda.data.structures import Structure
from fuda.render.style import tone
from fuda.render.text import cut, is_outside, kind_of, plain, safe, shown, width

MOST_NODES, MOST_EDGES = 400, 1000
_MOST_TEXT = 24
_COLUMN, _SMALL = 7.4, 7.5  # width of a character in pixels: in words, and in labels, which are bold
_STEP, _TOP, _ROW = 15, 10, 21
_MOST_LEVELS = 40


def picture(
    structure: Structure,
    labels: Sequence[Any] | None,
    gold: Sequence[Any] | None,
    probabilities: Sequence[float] | None,
    kinds: dict[str, int],
) -> str:
    """Draw a structure.

    Parameters
    ----------
    structure : Structure
        The structure, of at most `MOST_NODES` nodes and `MOST_EDGES` edges.
    labels, gold : sequence or None
        Its labels, and the right ones, which are drawn where they differ.
    probabilities : sequence of float or None
        The probabilities of the labels.
    kinds : dict of str to int
        The colours of kinds of labels.

    Returns
    -------
    str
        An svg element.
    """
    words = [cut(plain(shown(x)), _MOST_TEXT) for x in structure.observations]
    below = [_labels_of(t, labels, gold, probabilities) for t in range(len(words))]
    left, middles = 6.0, []
    for word, rows in zip(words, below, strict=True):
        columns = max(width(word) * _COLUMN, *(width(text) * _SMALL + 14 for _, text, _ in rows), 14.0)
        middles.append(left + columns / 2)
        left += columns + 12
    edges = [(int(a), int(b)) for a, b in structure.edges]
    levels = _levels(edges)
    base = _TOP + _STEP * max(levels.values(), default=0) + 6
    parts = [_arc(middles[a], middles[b], base, levels[a, b]) for a, b in edges]
    for t, (word, x) in enumerate(zip(words, middles, strict=True)):
        extra = ' class="wrong-word"' if any(name == "gold-chip" for name, _, _ in below[t]) else ""
        parts.append(f'<text x="{x:.1f}" y="{base + 15}" text-anchor="middle"{extra}>{safe(word)}</text>')
        for row, (name, text, kind) in enumerate(below[t]):
            parts.append(_chip(x, base + 23 + _ROW * row, name, text, tone(kinds, kind)))
    height = base + 24 + _ROW * max(map(len, below), default=0)
    size = f'width="{left:.0f}" height="{height:.0f}" viewBox="0 0 {left:.0f} {height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{"".join(parts)}</svg>'


def _differ(label: Any, right: Any) -> bool:
    """Whether a label is wrong; nothing is known of one whose right label is None."""
    return right is not None and label != right


def _labels_of(
    t: int, labels: Sequence[Any] | None, gold: Sequence[Any] | None, probabilities: Sequence[float] | None
) -> list[tuple[str, str, str]]:
    """What stands below a node: the class, text and kind of its label, and of the right one."""
    if labels is None:
        return []
    differs = gold is not None and _differ(labels[t], gold[t])
    text = cut(plain("" if is_outside(labels[t]) and not differs else labels[t]), _MOST_TEXT)
    chips = []
    if text:
        if probabilities is not None:
            text += f" {100 * probabilities[t]:.0f}"
        chips.append(("chip", text, kind_of(labels[t])))
    if differs and gold is not None:
        chips.append(("gold-chip", cut(plain(gold[t]), _MOST_TEXT), kind_of(gold[t])))
    return chips


def _chip(x: float, y: float, name: str, text: str, colour: str) -> str:
    """A label in a rounded box."""
    size = width(text) * _SMALL + 12
    box = f'<rect x="{x - size / 2:.1f}" y="{y}" width="{size:.1f}" height="17" rx="6" class="{name}"/>'
    caption = f'<text x="{x:.1f}" y="{y + 12.5}" text-anchor="middle" class="{name.split("-")[0]}-text">'
    return f'<g class="{colour}">{box}{caption}{safe(text)}</text></g>'


def _levels(edges: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """How high each edge is drawn: above all shorter ones that it lies over or crosses."""
    levels: dict[tuple[int, int], int] = {}
    for a, b in sorted(edges, key=lambda edge: (abs(edge[0] - edge[1]), edge)):
        low, high = min(a, b), max(a, b)
        below = [n for (c, d), n in levels.items() if low < max(c, d) and min(c, d) < high]
        levels[a, b] = min(_MOST_LEVELS, 1 + max(below, default=0))
    return levels


def _arc(x: float, y: float, base: float, level: int) -> str:
    """An arc from the middle of the parent to that of the child, with a tip."""
    side = 3 if y > x else -3
    start, end, top = x + side, y - side, base - _STEP * level
    bend = min(abs(end - start) / 2, 10.0) * (1 if end > start else -1)
    path = (
        f"M{start:.1f} {base}C{start:.1f} {top + 3},{start:.1f} {top},{start + bend:.1f} {top}"
        f"L{end - bend:.1f} {top}C{end:.1f} {top},{end:.1f} {top + 3},{end:.1f} {base - 4}"
    )
    tip = f"M{end - 3:.1f} {base - 5}L{end + 3:.1f} {base - 5}L{end:.1f} {base}Z"
    return f'<path class="arc" d="{path}"/><path class="tip" d="{tip}"/>'
