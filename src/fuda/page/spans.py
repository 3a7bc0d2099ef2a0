"""What the page shows of labels: spans of words, or one label per node.

People see spans and their types; models and files have a label per node, by a tag scheme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuda import schemes
from fuda.data.labels import Label
from fuda.errors import DataError, short
from fuda.formats.spans import segments

_TAG = re.compile(r"\b([BIESLU])-(?=\w)")
_PLACES = {"B": "begin of ", "I": "inside of ", "E": "end of ", "L": "end of ", "S": "", "U": ""}
_LONGEST = 100  # a label that a person adds has so many characters at most


@dataclass(frozen=True)
class Unit:
    """What a person labels: spans, encoded by a tag scheme, or nodes, where there is no scheme.

    Parameters
    ----------
    scheme : str or None
        The scheme of the labels of nodes; None where each node is labelled by itself.
    """

    scheme: str | None

    @property
    def name(self) -> str:
        """The name of the unit on the page."""
        return "nodes" if self.scheme is None else "spans"

    def kinds(self, labels: Iterable[Label]) -> list[str]:
        """Return what a person may choose, given labels of nodes.

        Parameters
        ----------
        labels : iterable
            Labels of nodes.

        Returns
        -------
        list of str
            The types of spans, or all labels of nodes; sorted.

        Examples
        --------
        >>> Unit("IOB2").kinds(["O", "B-PER", "I-PER"]), Unit(None).kinds(["V", "N"])
        (['PER'], ['N', 'V'])
        """
        known = {str(label) for label in labels if label is not None}
        if self.scheme is None:
            return sorted(known)
        return sorted({schemes.split_label(label)[1] for label in known - {schemes.OUTSIDE}})

    def classes(self, kinds: Iterable[str]) -> list[str]:
        """Return the labels of nodes that a model may need for what a person may choose.

        Parameters
        ----------
        kinds : iterable of str
            The types of spans, or the labels of nodes.

        Returns
        -------
        list of str
            The labels of nodes.

        Examples
        --------
        >>> Unit("IOB2").classes(["PER"])
        ['O', 'B-PER', 'I-PER']
        """
        if self.scheme is None:
            return list(kinds)
        classes = [schemes.OUTSIDE]
        for kind in kinds:
            long = schemes.encode([(kind, 0, 1), (kind, 2, 5)], 5, self.scheme)
            classes += [label for label in dict.fromkeys(long) if label != schemes.OUTSIDE]
        return classes

    def stored(self, labels: Sequence[Label]) -> list[Label]:
        """Return labels of a file by the scheme of the store; those not known stay None.

        Parameters
        ----------
        labels : list
            One label per node.

        Returns
        -------
        list
            One label per node.
        """
        if self.scheme is None:
            return [None if label is None else str(label) for label in labels]
        encoded = schemes.encode(segments(labels), len(labels), self.scheme)
        return [None if label is None else new for label, new in zip(labels, encoded, strict=True)]

    def shown(self, labels: Sequence[Label], probabilities: Sequence[float] | None) -> dict[str, Any]:
        """Return labels as the page shows them.

        Parameters
        ----------
        labels : list
            One label per node, None where it is not known.
        probabilities : list of float or None
            The probability of each; None for labels that a person or a file has given.

        Returns
        -------
        dict
            The entries ``spans`` and ``labels`` of an item.
        """
        sure = [1.0] * len(labels) if probabilities is None else [round(float(p), 4) for p in probabilities]
        if self.scheme is None:
            nodes = [{"label": label, "probability": p} for label, p in zip(labels, sure, strict=True)]
            return {"spans": [], "labels": nodes}
        spans = [
            {"start": start, "end": end, "label": kind, "probability": min(sure[start:end])}
            for kind, start, end in segments(labels)
        ]
        return {"spans": spans, "labels": None}

    def checked_labels(self, content: dict[str, Any], size: int, kinds: Sequence[str]) -> list[str]:
        """Return the labels of nodes that a page has sent, after checking them.

        Parameters
        ----------
        content : dict
            With ``spans`` or ``labels``.
        size : int
            The number of nodes.
        kinds : list of str
            What a person may choose.

        Returns
        -------
        list of str
            One label per node.
        """
        if self.scheme is None:
            labels = content.get("labels")
            if not isinstance(labels, list) or len(labels) != size:
                raise DataError(f"labels must be a list of {size} labels, one per node; reload the page")
            return [_known(label, kinds) for label in labels]
        spans = content.get("spans")
        if not isinstance(spans, list) or not all(isinstance(span, dict) for span in spans):
            raise DataError("spans must be a list of objects with start, end and label; reload the page")
        checked = []
        for span in spans:
            start, end = span.get("start"), span.get("end")
            if type(start) is not int or type(end) is not int or not 0 <= start < end <= size:
                raise DataError(
                    f"a span from {short(start)} to {short(end)} is not within {size} words; reload the page"
                )
            checked.append((_known(span.get("label"), kinds), start, end))
        return schemes.encode(checked, size, self.scheme)

    def compared(self, proposed: Sequence[Label], labels: Sequence[Label]) -> dict[str, int]:
        """Return how far labels that were proposed are those that a person gave.

        Parameters
        ----------
        proposed, labels : list
            One label per node.

        Returns
        -------
        dict
            How many words were right, and of how many. Of spans also how many were right, how many
            there are on either side, and how many a person had to change, to add or to remove.

        Examples
        --------
        >>> Unit("IOB2").compared(["B-PER", "O", "B-LOC"], ["B-PER", "I-PER", "O"])
        {'words': 3, 'right': 1, 'spans': 3, 'hits': 0, 'corrected': 2}
        """
        counts = {"words": len(labels), "right": sum(a == b for a, b in zip(proposed, labels, strict=True))}
        if self.scheme is None:
            return counts
        proposed_spans, given_spans = set(segments(proposed)), set(segments(labels))
        stray = [s for s in proposed_spans if not any(t[1] < s[2] and s[1] < t[2] for t in given_spans)]
        hits, corrected = len(proposed_spans & given_spans), len(given_spans - proposed_spans) + len(stray)
        return counts | {"spans": len(proposed_spans | given_spans), "hits": hits, "corrected": corrected}

    def kind(self, label: Label) -> str:
        """Return a label of a node as a person sees it.

        Parameters
        ----------
        label : str
            The label of a node.

        Returns
        -------
        str
            The type of its span; the label itself where there are no spans.

        Examples
        --------
        >>> Unit("IOB2").kind("B-PER"), Unit("IOB2").kind("O"), Unit(None).kind("N")
        ('PER', 'O', 'N')
        """
        text = str(label)
        return text if self.scheme is None or text == schemes.OUTSIDE else schemes.split_label(text)[1]

    def display_name(self, label: Label) -> str:
        """Return a label of a node in words, with its place in a span.

        Parameters
        ----------
        label : str
            The label of a node.

        Returns
        -------
        str
            The words.

        Examples
        --------
        >>> spans, nodes = Unit("IOB2"), Unit(None)
        >>> spans.display_name("B-PER"), spans.display_name("O"), nodes.display_name("N")
        ('begin of PER', 'no span', 'N')
        """
        if self.scheme is None:
            return str(label)
        return "no span" if label == schemes.OUTSIDE else plain_tags(str(label))


def unit_of(shape: str, labels: Iterable[Sequence[Label]], nodes: bool = False) -> Unit:
    """Return what is labelled in such data: spans of sequences, unless labels are not of spans.

    Parameters
    ----------
    shape : str
        The shape of the structures.
    labels : iterable of lists
        The labels that there are.
    nodes : bool
        Whether a person asks for nodes.

    Returns
    -------
    Unit
        The unit.
    """
    known = {str(label) for several in labels for label in several if label is not None}
    segment_labels = known - {schemes.OUTSIDE}
    has_tags = all(label[1:2] == "-" and label[0] in "BIESLU" for label in segment_labels)
    if nodes or shape != "sequence" or not has_tags:
        return Unit(None)
    prefixes = {label[0] for label in segment_labels}
    return Unit("IOBES" if prefixes & set("ES") else "BILOU" if prefixes & set("LU") else "IOB2")


def plain_tags(text: str) -> str:
    """Return a text in which tags of schemes are words.

    Parameters
    ----------
    text : str
        An explanation.

    Returns
    -------
    str
        The same without tags.

    Examples
    --------
    >>> plain_tags("B-PER after O")
    'begin of PER after O'
    """
    return _TAG.sub(lambda tag: _PLACES[tag[1]], text)


def new_kind(text: Any) -> str:
    """Return the name of a label that a person adds, after checking it.

    Parameters
    ----------
    text : object
        What was written.

    Returns
    -------
    str
        The name.
    """
    if not isinstance(text, str) or not text.strip():
        raise DataError("the name of a label is empty; write a word such as PER")
    name = text.strip()
    if len(name) > _LONGEST or not name.isprintable() or any(c.isspace() for c in name) or name == "_":
        problem = f"the label {short(name)} cannot be written to files"
        raise DataError(f"{problem}; use at most {_LONGEST} letters, digits and signs without blanks")
    return name


def probabilities_of(labels: Sequence[Label], marginals: np.ndarray, classes: Sequence[Label]) -> list[float]:
    """Return the probabilities of labels of nodes.

    Parameters
    ----------
    labels : list
        One label per node.
    marginals : array (n_nodes, n_labels)
        The probabilities of all labels.
    classes : list
        The labels.

    Returns
    -------
    list of float
        One per node.
    """
    number = {label: k for k, label in enumerate(classes)}
    return [float(marginals[t, number[label]]) for t, label in enumerate(labels)]


def _known(label: Any, kinds: Sequence[str]) -> str:
    if not isinstance(label, str) or label not in kinds:
        raise DataError(f"the label {short(label)} is not one of {', '.join(kinds)}; add it first")
    return label
