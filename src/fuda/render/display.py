"""Structures with labels, to look at: in a notebook, on a page, in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fuda.data.structures import Structure, as_structures
from fuda.errors import DataError, place
from fuda.render.nodes import Bar, Node, nodes_of
from fuda.render.style import fragment, tone
from fuda.render.svg import MOST_EDGES, MOST_NODES, picture
from fuda.render.text import kinds_of, safe

if TYPE_CHECKING:
    from rich.console import Group

MOST_SHOWN = 20  # a notebook or terminal shows so many structures by default


class Display:
    """Structures with labels; a notebook shows it in colours, ``rich.print`` in a terminal.

    Parameters
    ----------
    X : list of structures
        The structures; plain lists of observations will do.
    labels : list of lists, optional
        Their labels, such as a model predicts.
    gold : list of lists, optional
        The right labels, shown where they differ; None where not known.
    probabilities : list of sequences of float, optional
        The probability of each label.
    names : list of str, optional
        What each structure is called; by default its number.
    limit : int or None, default=20
        How many structures are shown; None shows all.

    Examples
    --------
    >>> display = Display([["Ana", "lives", "in", "Lima"]], [["B-PER", "O", "O", "B-LOC"]])
    >>> display
    Display(1 structure, 4 nodes)
    >>> "Lima" in display.html()
    True
    """

    def __init__(
        self,
        X: Any,
        labels: Any = None,
        gold: Any = None,
        probabilities: Any = None,
        names: Sequence[str] | None = None,
        limit: int | None = MOST_SHOWN,
    ) -> None:
        self.structures = as_structures(X)
        lists = {"labels": labels, "gold": gold, "probabilities": probabilities}
        for name, values in lists.items():
            _check(name, values, self.structures)
        self.names = [str(i) for i in range(len(self.structures))] if names is None else list(names)
        self.labels, self.gold, self.probabilities, self.limit = labels, gold, probabilities, limit
        self.kinds = kinds_of([*(labels if labels is not None else []), *(gold if gold is not None else [])])

    def __repr__(self) -> str:
        nodes = sum(map(len, self.structures))
        return f"Display({_counted(len(self.structures), 'structure')}, {_counted(nodes, 'node')})"

    def _repr_html_(self) -> str:
        return fragment(self.html())

    def html(self) -> str:
        """Return the structures as HTML, without the style that `fuda.render.page` adds.

        Returns
        -------
        str
            An element for each structure.
        """
        items = [
            f'<div class="item"><div class="name">{safe(self.names[i])}</div>{self.one(i)}</div>'
            for i in range(self.count)
        ]
        rest = f'<p class="soft small">{self.rest}</p>' if self.rest else ""
        return f"{self.legend()}<div>{''.join(items)}</div>{rest}"

    @property
    def count(self) -> int:
        """How many structures are shown."""
        return len(self.structures) if self.limit is None else min(self.limit, len(self.structures))

    @property
    def rest(self) -> str:
        """A line on the structures that are not shown."""
        hidden = len(self.structures) - self.count
        return f"and {_counted(hidden, 'other structure')}" if hidden else ""

    def legend(self) -> str:
        """Return the colours of labels as HTML.

        Returns
        -------
        str
            An element; empty where there are no labels.
        """
        if not self.kinds:
            return ""
        chips = "".join(f'<span class="chip {tone(self.kinds, k)}">{safe(k)}</span>' for k in self.kinds)
        note = "predicted; outlined: the right label where it differs" if self.gold is not None else ""
        more = f'<span class="soft">{note}</span>' if note else ""
        return f'<div class="legend">{chips}{more}</div>'

    def one(self, i: int, here: int | None = None, begin: int = 0, end: int | None = None) -> str:
        """Return one structure as HTML.

        Parameters
        ----------
        i : int
            Its number.
        here : int, optional
            A node to point out.
        begin, end : int, optional
            The first node of a part of it, and the one after the last; the part is shown as text.

        Returns
        -------
        str
            Text with labels, or a picture of edges.
        """
        structure = self.structures[i]
        labels, gold, probabilities = self.of(i)
        as_picture = structure.shape != "sequence" and begin == 0 and end is None and here is None
        if as_picture and len(structure) <= MOST_NODES and len(structure.edges) <= MOST_EDGES:
            return f'<div class="scroll">{picture(structure, labels, gold, probabilities, self.kinds)}</div>'
        end = len(structure) if end is None else end
        several = nodes_of(structure, labels, gold, probabilities)[begin:end]
        nodes = "".join(_node(node, here, self.kinds) for node in several)
        dots = ["… " if begin else "", " …" if end < len(structure) else ""]
        return f'<div class="flow">{dots[0]}{nodes}{dots[1]}</div>'

    def of(self, i: int) -> tuple[Any, Any, Any]:
        """Return what is known of a structure.

        Parameters
        ----------
        i : int
            Its number.

        Returns
        -------
        tuple
            Its labels, right labels and probabilities, None where not given.
        """
        labels, gold, probabilities = (
            None if lists is None else lists[i] for lists in (self.labels, self.gold, self.probabilities)
        )
        return labels, gold, probabilities

    def __rich__(self) -> Group:
        from fuda.render.terminal import display

        return display(self)


def _node(node: Node, marked: int | None, kinds: dict[str, int]) -> str:
    """A node as HTML: its word, its label, the right label."""
    names = ["node"] + ["wrong"] * (node.gold is not None) + ["here"] * (node.number == marked)
    parts = [f'<span class="word"><bdi>{safe(node.word)}</bdi></span>']
    if node.bar is not None:
        parts.append(_bar_html(node.bar, kinds, "", node.probability))
    if node.gold is not None:
        parts.append(_bar_html(node.gold, kinds, " gold", None))
    return f'<span class="{" ".join(names)}">{"".join(parts)}</span><wbr>'


def _bar_html(bar: Bar, kinds: dict[str, int], more: str, probability: float | None) -> str:
    """A label as HTML."""
    shape = " first" * bar.first + " last" * bar.last
    number = "" if probability is None or not bar.text else f"<i>{100 * probability:.0f}</i>"
    return (
        f'<span class="bar {tone(kinds, bar.kind)}{more}{shape}">{safe(bar.text) or "&nbsp;"}{number}</span>'
    )


def _check(name: str, lists: Any, structures: list[Structure]) -> None:
    """Raise DataError where lists do not fit structures."""
    if lists is None:
        return
    if len(lists) != len(structures):
        raise DataError(f"{name}: {len(lists)} lists for {len(structures)} structures; give one for each")
    for i, (values, structure) in enumerate(zip(lists, structures, strict=True)):
        if values is not None and len(values) != len(structure):
            raise DataError(
                f"{place(i)}: {len(values)} {name} for {len(structure)} nodes; give one for each node"
            )


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
