"""The Spanish corpus of CoNLL-2002, which all the papers use; observations are words only."""

from __future__ import annotations

from pathlib import Path

from fuda.errors import DataError
from fuda.formats import read
from fuda.formats.dataset import Dataset


def load(folder: str | Path, *names: str) -> list[Dataset]:
    """Read files of the corpus.

    Parameters
    ----------
    folder : str or Path
        The folder of the files, or the parent of a folder conll2002 with them.
    *names : str
        The names of the files.

    Returns
    -------
    list of Dataset
        The content of each file.
    """
    folder = Path(folder)
    if not (folder / "esp.train").exists() and (folder / "conll2002").is_dir():
        folder = folder / "conll2002"
    for name in names:
        if not (folder / name).exists():
            remedy = "--data names the folder with the Spanish files of CoNLL-2002"
            raise DataError(f"{folder}: has no file {name}; {remedy}")
    return [read(folder / name, columns=1) for name in names]


def first_sentences(folder: str | Path, count: int = 300) -> Dataset:
    """Read the first sentences of esp.train.

    Parameters
    ----------
    folder : str or Path
        As for `load`.
    count : int
        The number of sentences; the kernel papers use 300, with 8,541 words.

    Returns
    -------
    Dataset
        The sentences.
    """
    (train,) = load(folder, "esp.train")
    return Dataset(train.records[:count])
