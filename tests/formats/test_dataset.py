"""Datasets as lists: records, parts, and scikit-learn's splits."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import train_test_split

from fuda import Sequence
from fuda.formats import Dataset
from fuda.formats.dataset import Record

DATA = Dataset([Record(Sequence([str(i)] * (i + 1)), ["A"] * (i + 1)) for i in range(6)], ["a note"])


def test_records_and_parts():
    assert DATA[2] is DATA.records[2]
    assert DATA[-1].structure == Sequence(["5"] * 6)
    part = DATA[1:3]
    assert isinstance(part, Dataset)
    assert part.notes == ["a note"]
    X, y = part
    assert list(map(len, X)) == list(map(len, y)) == [2, 3]
    assert [len(x) for x in DATA[np.array([4, 0])].X] == [5, 1]
    assert len(DATA[:0]) == 0


def test_splits():
    X, others, y, of_others = train_test_split(*DATA, random_state=0, test_size=2)
    assert list(map(len, X)) == list(map(len, y))
    assert sorted(map(len, [*X, *others])) == [1, 2, 3, 4, 5, 6]
    assert len(of_others) == 2
    first, second = train_test_split(DATA, random_state=0, test_size=2)
    assert [record.structure for record in first] == X
    assert len(Dataset(list(second))) == 2
