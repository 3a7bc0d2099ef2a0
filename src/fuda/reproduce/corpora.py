"""The files of a corpus: in a folder with its name below the data folder, or in that folder."""

from __future__ import annotations

from pathlib import Path

from fuda.errors import DataError


class MissingCorpusError(DataError):
    """A file that an experiment needs is not there."""


def folders(data: str | Path, corpus: str) -> list[Path]:
    """Return the folders in which files of a corpus may be."""
    return [Path(data) / corpus, Path(data)]


def find(data: str | Path, corpus: str, name: str) -> Path:
    """Return the path of a file of a corpus.

    Parameters
    ----------
    data : str or Path
        The folder with the corpora, or that of the corpus itself.
    corpus : str
        The name of the folder of the corpus.
    name : str
        The name of the file.

    Returns
    -------
    Path
        The file.
    """
    for folder in folders(data, corpus):
        if (folder / name).is_file():
            return folder / name
    raise MissingCorpusError(f"{data}: has no file {name}; --data names the folder with the corpora")
