"""What a file format is: reading, writing, and all that the command needs to know of its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuda import files
from fuda.errors import DataError
from fuda.formats.dataset import Dataset

Options = dict[str, Any]


def _as_trained(path: str, given: Options, learned: Options | None, labelled: bool) -> Options:
    """The options of the training files, unless others are given."""
    return (learned or {}) | given


@dataclass(frozen=True)
class Format:
    """A file format. Each module of a format makes one, and `fuda.formats.FORMATS` lists them.

    Attributes
    ----------
    name : str
    extensions : tuple of str
        Those of files that have the format, in lower case with the dot.
    description : str
        One line for users.
    read : callable
        ``read(text, name, **options)`` gives a `Dataset`; `name` is the file's, for messages.
    write : callable
        ``write(records, **options)`` gives a text.
    help : dict of str
        What ``--label``, ``--columns`` and ``--graph`` of the command mean to the format, for those it has.
    from_command : callable
        Options as the command line gives them, as `read` and `write` take them.
    remembered : callable
        Further options by which a model that was trained on a dataset reads other files.
    as_trained : callable
        ``as_trained(path, given, learned, labelled)``: the options to read a file for a model, from those
        given on the command line and those of the training files (None where these had another format).
        `labelled` says whether labels are needed.
    """

    name: str
    extensions: tuple[str, ...]
    description: str
    read: Callable[..., Dataset]
    write: Callable[..., str]
    help: Mapping[str, str] = field(default_factory=dict)
    from_command: Callable[[Options], Options] = dict
    remembered: Callable[[Dataset], Options] = lambda data: {}
    as_trained: Callable[[str, Options, Options | None, bool], Options] = _as_trained

    @property
    def read_options(self) -> tuple[str, ...]:
        """The names of the options of `read`."""
        return tuple(inspect.signature(self.read).parameters)[2:]

    @property
    def write_options(self) -> tuple[str, ...]:
        """The names of the options of `write`."""
        return tuple(inspect.signature(self.write).parameters)[1:]

    def read_file(self, path: str | Path, options: Options) -> Dataset:
        """The dataset in a file, in its gzip, or from standard input (``-``)."""
        self._check_options("reading", self.read_options, options)
        return self.read(files.read_text(path), files.display_name(path), **options)

    def write_file(self, dataset: Dataset, path: str | Path, options: Options) -> None:
        """Write a dataset, whole or not at all."""
        self._check_options("writing", self.write_options, options)
        if not dataset.records:
            raise DataError(f"{path}: there are no structures to write; give at least one")
        files.write_text(path, self.write(dataset.records, **options))

    def _check_options(self, action: str, known: tuple[str, ...], options: Options) -> None:
        """Refuse an option that the format does not have."""
        for option in options:
            if option not in known:
                listed = ", ".join(known) or "none"
                raise DataError(f"{action} {self.name} takes no option {option!r}; it takes: {listed}")
