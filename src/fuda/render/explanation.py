"""Explanations as HTML and for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fuda.render.display import Display
from fuda.render.nodes import nodes_of
from fuda.render.style import tone
from fuda.render.text import cut, kind_of, kinds_of, plain, safe, shown

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

_AROUND = 10  # nodes shown to each side of the explained one
_KIND_NOTES = {
    "training positions": "structure and node of the training data, and what agrees around it",
    "labels elsewhere": "what the best labeling with the other label changes at other nodes",
    "transitions": "labels that follow each other",
    "neighbours": "what a neighbour adds, with all nodes behind it",
    "features": "[0] is the node itself, [-1] the one before it, [+1] the one after it",
}


def explanation_html(explanation: Any) -> str:
    """Return an explanation as HTML.

    Parameters
    ----------
    explanation : Explanation
        Of `fuda.explanations`.

    Returns
    -------
    str
        HTML without the style.
    """
    chosen, rival = explanation.chosen, explanation.rival
    kinds = _kinds(explanation)
    chosen_chip = f'<span class="chip {tone(kinds, kind_of(chosen.label))}">{safe(chosen.label)}</span>'
    word = f"<b><bdi>{safe(shown(explanation.observation))}</bdi></b>"
    context = _context(explanation)
    if rival is None:
        return f'{context}<p class="versus">{word} is {chosen_chip}: {safe(explanation.without_rival)}</p>'
    rival_chip = f'<span class="chip {tone(kinds, kind_of(rival.label))}">{safe(rival.label)}</span>'
    difference = f"<b>{explanation.difference:.4g}</b>"
    head = f'<p class="versus">{word} is {chosen_chip}, not {rival_chip}, by {difference}</p>'
    head += f'<p class="soft small">{safe(explanation.unit)}: {chosen.score:.4g}, not {rival.score:.4g}</p>'
    largest = max((abs(c.value) for c in explanation.contributions), default=1.0) or 1.0
    rows = []
    for kind, several in explanation.by_kind():
        total, note = sum(c.value for c in several), _KIND_NOTES.get(kind, "")
        note = f' <span class="small">{note}</span>' if note else ""
        rows.append(
            f'<tr class="kind"><td></td><td>{total:+.4f}</td>'
            f'<td class="left"><b>{safe(kind)}</b>{note}</td></tr>'
        )
        for c in several:
            label = chosen.label if c.value > 0 else rival.label
            rows.append(
                f"<tr><td>{_meter(c.value / largest, tone(kinds, kind_of(label)))}</td>"
                f'<td>{c.value:+.4f}</td><td class="left">{_text(c)}</td></tr>'
            )
    columns = '<colgroup><col class="meter"><col class="value"><col></colgroup>'
    return f'{context}{head}<table class="why">{columns}<tbody>{"".join(rows)}</tbody></table>'


def _kinds(explanation: Any) -> dict[str, int]:
    """The colours of all labels in an explanation."""
    verdicts = [explanation.chosen] if explanation.rival is None else [explanation.chosen, explanation.rival]
    return kinds_of([[v.label for v in verdicts], *(v.labeling for v in verdicts)])


def _context(explanation: Any) -> str:
    """The nodes around the explained one, with the labels that were compared."""
    begin = max(0, explanation.node - _AROUND)
    end = min(len(explanation.structure), explanation.node + _AROUND + 1)
    labels = None if explanation.chosen.labeling is None else [explanation.chosen.labeling]
    if labels is None:
        labels = [[None] * len(explanation.structure)]
        labels[0][explanation.node] = explanation.chosen.label
    display = Display([explanation.structure], labels)
    return display.one(0, explanation.node, begin, end)


def _meter(share: float, colour: str) -> str:
    """A bar to the right for the label, or to the left for its rival."""
    fill = f'<span class="fill" style="width:{100 * min(1.0, abs(share)):.1f}%"></span>'
    left, right = ("", fill) if share > 0 else (fill, "")
    return (
        f'<span class="track {colour}"><span class="half minus">{left}</span>'
        f'<span class="half plus">{right}</span></span>'
    )


def _text(contribution: Any) -> str:
    """A contribution in words; of a training position, the matched words."""
    voice = contribution.voice
    if voice is None:
        return f"<bdi>{safe(contribution.text)}</bdi>"
    words = []
    for (node, _), observation in zip(voice.match, voice.matched, strict=True):
        word = f"<bdi>{safe(cut(shown(observation), 40))}</bdi>"
        words.append(f"<mark>{word}</mark>" if node == voice.node else word)
    where = f"structure {voice.structure}, node {voice.node}"
    return f'<b>{safe(voice.label)}</b> &ensp;{" ".join(words)} &ensp;<span class="soft small">{where}</span>'


def explanation_text(explanation: Any, width: int = 10) -> Group:
    """Return an explanation for a terminal.

    Parameters
    ----------
    explanation : Explanation
        Of `fuda.explanations`.
    width : int
        The length of the longest bar, in characters.

    Returns
    -------
    Group
        For ``rich.print``.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from fuda.render.terminal import colour

    kinds = _kinds(explanation)
    first = Text.assemble(
        (plain(shown(explanation.observation)), "bold"),
        " is ",
        (plain(explanation.chosen.label), f"bold {colour(kinds, explanation.chosen.label)}"),
    )
    if explanation.rival is None:
        return Group(first + Text(f": {explanation.without_rival}"))
    first.append(", not ")
    first.append(plain(explanation.rival.label), style=f"bold {colour(kinds, explanation.rival.label)}")
    first.append(f", by {explanation.difference:.4g}")
    unit = f"{explanation.unit}: {explanation.chosen.score:.4g}, not {explanation.rival.score:.4g}"
    table = Table.grid(padding=(0, 1))
    for justify in ("right", "left", "left"):
        table.add_column(justify=justify, no_wrap=justify == "right" or None)  # type: ignore[arg-type]
    largest = max((abs(c.value) for c in explanation.contributions), default=1.0) or 1.0
    for kind, several in explanation.by_kind():
        table.add_row()
        total = sum(c.value for c in several)
        table.add_row(Text(f"{total:+.4f}", style="dim"), "", Text(kind, style="bold"))
        for c in several:
            label = explanation.chosen.label if c.value > 0 else explanation.rival.label
            size = round(width * abs(c.value) / largest)
            meter = Text("█" * size or "▏", style=colour(kinds, label))
            table.add_row(f"{c.value:+.4f}", meter, _terminal_text(c))
    return Group(_around(explanation, kinds), Text(), first, Text(unit, style="dim"), table)


def _around(explanation: Any, kinds: dict[str, int]) -> Text:
    """The nodes around the explained one, as a line of text."""
    from rich.text import Text

    from fuda.render.terminal import line

    begin = max(0, explanation.node - _AROUND)
    end = min(len(explanation.structure), explanation.node + _AROUND + 1)
    nodes = nodes_of(explanation.structure, explanation.chosen.labeling, None, None)[begin:end]
    dots = ["… " if begin else "", " …" if end < len(explanation.structure) else ""]
    return Text(dots[0]) + line(nodes, kinds, explanation.node) + Text(dots[1])


def _terminal_text(contribution: Any) -> Text:
    """A contribution in words."""
    from rich.text import Text

    voice = contribution.voice
    if voice is None:
        return Text(plain(contribution.text))
    text = Text(f"{plain(voice.label)}  ")
    for (node, _), observation in zip(voice.match, voice.matched, strict=True):
        text.append(plain(cut(shown(observation), 40)), style="bold" if node == voice.node else "")
        text.append(" ")
    text.append(f" structure {voice.structure}, node {voice.node}", style="dim")
    return text
