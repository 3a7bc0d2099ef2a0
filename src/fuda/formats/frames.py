"""pandas DataFrames: one row per node, sentences by a column or by the first level of the index.

pandas is imported on first use; install it with the extra ``fuda[pandas]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fuda.data import structures
from fuda.errors import DataError, described, place
from fuda.formats.csv import find_layout
from fuda.formats.dataset import Dataset, Label, Record, labels_to_write

if TYPE_CHECKING:
    import pandas


def from_pandas(
    frame: pandas.DataFrame,
    sentence: str | None = None,
    columns: str | Sequence[str] | None = None,
    label: str | int | None = -1,
) -> Dataset:
    """Convert a DataFrame; consecutive rows of the same sentence are one sequence.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row per token, in order.
    sentence : str, optional
        The column of the sentence; by default the first level of a MultiIndex, or else the first
        column whose name begins with "sent".
    columns : str or list of str, optional
        The columns of the observation, one for strings and several for tuples; by default all but
        the sentence, the label, and ``start`` and ``end``.
    label : str, int or None
        The column of the label, by name or counted from 1; −1 is the last, None means that there
        are no labels. A missing value is an unknown label.

    Returns
    -------
    Dataset
        One record per sentence.

    Examples
    --------
    >>> import pandas
    >>> columns = {"sentence": [1, 1, 2], "word": ["Ana", "sings", "Bo"], "tag": list("NVN")}
    >>> frame = pandas.DataFrame(columns)
    >>> X, y = from_pandas(frame)
    >>> X, y
    ([Sequence(['Ana', 'sings'], 2 nodes), Sequence(['Bo'], 1 nodes)], [['N', 'V'], ['N']])
    """
    pandas = _pandas()
    if not isinstance(frame, pandas.DataFrame):
        raise DataError(f"a pandas DataFrame is expected, but {described(frame)} was given; make one")
    by_index = sentence is None and isinstance(frame.index, pandas.MultiIndex)
    layout = find_layout(list(frame.columns), "the DataFrame", sentence, columns, label, by_index)
    values = frame.index.get_level_values(0) if by_index else frame.iloc[:, layout.sentence]
    if values.isna().any():
        raise DataError("the DataFrame: a row has no sentence; fill it, for example with frame.ffill()")
    observed = [frame.iloc[:, column].tolist() for column in layout.observed]
    missing = [frame.iloc[:, column].isna().to_numpy().nonzero()[0] for column in layout.observed]
    for column, rows in zip(layout.observed, missing, strict=True):
        if len(rows):
            problem = f"row {rows[0]} has no value in {frame.columns[column]!r}"
            raise DataError(f"the DataFrame: {problem}; fill it, or read CSV with keep_default_na=False")
    labels: list[Label] | None = None
    if layout.label is not None:
        tags = frame.iloc[:, layout.label]
        labels = [None if absent else x for x, absent in zip(tags.tolist(), tags.isna(), strict=True)]
    records = []
    for _, group in groupby(range(len(frame)), key=values.tolist().__getitem__):
        members = list(group)
        nodes: list[Any] = [tuple(column[row] for column in observed) for row in members]
        if len(observed) == 1:
            nodes = [node[0] for node in nodes]
        record_labels = None if labels is None else [labels[row] for row in members]
        records.append(Record(structures.Sequence(nodes), record_labels))
    return Dataset(records)


def to_pandas(data: Dataset) -> pandas.DataFrame:
    """Convert sequences to a DataFrame with one row per node.

    Parameters
    ----------
    data : Dataset
        The sequences, whose observations are strings or tuples of as many columns.

    Returns
    -------
    pandas.DataFrame
        With the columns ``sentence`` (numbers from 0), ``token`` (``column1``, ``column2``, … for
        tuples), ``start`` and ``end`` (offsets within the text) where texts are known, and
        ``label`` where labels are.

    Examples
    --------
    >>> to_pandas(Dataset([Record(structures.Sequence(["Ana", "sings"]), ["N", None])]))
       sentence  token label
    0         0    Ana     N
    1         0  sings  None
    """
    pandas = _pandas()
    with_text = bool(data.records) and all(record.text is not None for record in data.records)
    labelled = any(record.labels is not None for record in data.records)
    rows: list[dict[str, Any]] = []
    for index, record in enumerate(data.records):
        if not isinstance(record.structure, structures.Sequence):
            problem = f"a {record.structure.shape} in rows would lose its edges"
            raise DataError(f"{place(index)}: {problem}; use to_networkx")
        labels = labels_to_write(index, record) or [None] * len(record.structure)
        for node, x in enumerate(record.structure.observations):
            row: dict[str, Any] = {"sentence": index}
            if isinstance(x, tuple):
                row |= {f"column{number}": value for number, value in enumerate(x, 1)}
            else:
                row["token"] = x
            if with_text and record.text is not None:
                row["start"], row["end"] = record.text.offsets[node]
            if labelled:
                row["label"] = labels[node]
            if rows and row.keys() != rows[0].keys():
                raise DataError(f"{place(index, node)}: other columns than the first node; give all the same")
            rows.append(row)
    frame = pandas.DataFrame(rows)
    if labelled:
        frame["label"] = pandas.Series([row["label"] for row in rows], dtype=object)
    return frame


def _pandas() -> Any:
    """The module pandas."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise DataError("pandas is not installed; install it with: pip install 'fuda[pandas]'") from None
    return pandas
