"""The Spanish corpus of CoNLL-2002, which all the papers use; words only."""

from __future__ import annotations

from pathlib import Path

from fuda.errors import DataError
from fuda.formats import read
from fuda.formats.dataset import Dataset


def load(folder: str | Path, *names: str) -> list[Dataset]:
    """The named files from a folder that holds them, or has a folder conll2002 that does."""
    folder = Path(folder)
    if not (folder / "esp.train").exists() and (folder / "conll2002").is_dir():
        folder = folder / "conll2002"
    for name in names:
        if not (folder / name).exists():
            raise DataError(
                f"{folder}: has no file {name}; --data names the folder with the Spanish files of CoNLL-2002"
            )
    return [read(folder / name, columns=1) for name in names]


def first_sentences(folder: str | Path, count: int = 300) -> Dataset:
    """The first sentences of esp.train; 300 of them, with 8,541 words, are what the kernel papers use."""
    (train,) = load(folder, "esp.train")
    return Dataset(train.records[:count])
