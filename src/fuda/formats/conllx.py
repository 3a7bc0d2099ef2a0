"""CoNLL-X: ten columns separated by tabs, one word per line, a blank line after each sentence.

The columns are ID, FORM, LEMMA, CPOSTAG, POSTAG, FEATS, HEAD, DEPREL, PHEAD and PDEPREL, ``_``
where there is no value. A sentence is read as a tree (HEAD), as a sequence, or as a DAG: then a
word with several heads has several lines with the same ID, one per head, as in semantic dependency
graphs (SDP) of SemEval-2016. A label is written to all of them. All lines are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fuda.files import split_lines
from fuda.formats.conllu import layout_records, layout_text, options_for_model
from fuda.formats.conllu_fields import Layout
from fuda.formats.dataset import Dataset, Record

CONLLX = Layout(
    ("ID", "FORM", "LEMMA", "CPOSTAG", "POSTAG", "FEATS", "HEAD", "DEPREL", "PHEAD", "PDEPREL"), repeats=True
)

__all__ = ["options_for_model", "read", "records", "write"]


def read(
    text: str,
    name: str,
    label: str | None = "POSTAG",
    absent: str | None = "O",
    graph: str = "tree",
    columns: str | Sequence[str] = ("FORM",),
    cyclic: str = "error",
) -> Dataset:
    """Read sentences as trees, DAGs or sequences.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    label : str or None
        The column of the label, or a key such as ``FEATS:Case``; None means that there
        are no labels.
    absent : str or None
        The label of a word without the key.
    graph : {"tree", "dag", "sequence"}
        The shape of the structures.
    columns : str or list of str
        The observed columns or keys, as a list or separated by commas.
    cyclic : {"error", "skip", "break"}
        What is done with a graph that has cycles, as in `fuda.formats.conllu`.

    Returns
    -------
    Dataset
        One record per sentence.

    Examples
    --------
    >>> X, y = read("1\\tsing\\t_\\tV\\tVB\\t_\\t0\\troot\\t_\\t_\\n", "example")
    >>> X, y
    ([Tree(['sing'], 1 nodes)], [['VB']])
    """
    notes: list[str] = []
    record_iterator = records(split_lines(text, name), name, notes, label, absent, graph, columns, cyclic)
    return Dataset(list(record_iterator), notes)


def records(
    lines: Iterable[str],
    name: str,
    notes: list[str],
    label: str | None,
    absent: str | None,
    graph: str,
    columns: str | Sequence[str],
    cyclic: str,
) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; notes are added at the end."""
    return layout_records(lines, name, notes, label, absent, graph, columns, cyclic, CONLLX)


def write(
    records: Sequence[Record],
    label: str | None = None,
    absent: str | None = "O",
    columns: str | Sequence[str] = ("FORM",),
    after: Record | None = None,
) -> str:
    """Write the lines that were read with new labels, or new lines for other formats.

    Parameters
    ----------
    records : list of Record
        The structures and labels.
    label : str, optional
        The column or key of the labels; by default that from which they were read, and POSTAG for
        other formats.
    absent : str or None
        The label for which the key is removed.
    columns : str or list of str
        The columns of the observations of other formats: one for strings, several for tuples.
    after : Record, optional
        The first record of the file, if `records` are to follow others in it.

    Returns
    -------
    str
        The content of the file.
    """
    return layout_text(records, label, absent, columns, after, CONLLX, "POSTAG")
