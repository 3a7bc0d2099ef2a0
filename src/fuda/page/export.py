"""What comes out of a store: the labelled structures in a format of files, and the model."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fuda.errors import DataError
from fuda.formats import FORMATS, Format
from fuda.formats.dataset import Record
from fuda.page.store import Store, record_of
from fuda.page.teacher import Teacher

KINDS = {"model": ".fuda", "conll": ".conll", "jsonl": ".jsonl", "conllu": ".conllu"}
# Where CoNLL-U has labels that its file had no column for: of spans, and of nodes.
_SPANS, _NODES = "MISC:NE", "MISC:Label"


def records(store: Store, format: str) -> Iterator[Record]:
    """Yield the labelled structures of a store, in the order of its files.

    Parameters
    ----------
    store : Store
        The store.
    format : str
        The format to write: in the format of their file, sentences keep what else it had.

    Yields
    ------
    Record
        A structure with its labels.
    """
    for text, original, labels, read_as in store.export_rows():
        record = record_of(text)
        if original is not None and format == "conllu":
            options = {name: value for name, value in json.loads(read_as).items() if name != "format"}
            conllu = FORMATS["conllu"]
            record = conllu.read(original, "store", **conllu.from_command(options)).records[0]
        yield replace(record, labels=json.loads(labels))


def text_of(store: Store, format: Format) -> str:
    """Return the labelled structures of a store as the content of a file.

    Parameters
    ----------
    store : Store
        The store.
    format : Format
        The format.

    Returns
    -------
    str
        The content.
    """
    exported = list(records(store, format.name))
    if not exported:
        raise DataError("nothing has been labelled yet; accept a sentence first")
    options: dict[str, Any] = {}
    if flattened(store, format):
        options["flatten"] = True
    if format.name == "conllu" and _needs_field(store, exported):
        options["label"] = _field(store)
    text: str = format.write(exported, **options)
    return text


def flattened(store: Store, format: Format) -> bool:
    """Return whether a format has no place for the edges of the structures."""
    return "flatten" in format.write_options and store.shape != "sequence"


def _field(store: Store) -> str:
    """The field of CoNLL-U for labels that had none."""
    return _NODES if store.unit.scheme is None else _SPANS


def _needs_field(store: Store, exported: list[Record]) -> bool:
    """Whether labels have no CoNLL-U field yet: read without labels, or spans of other formats."""
    rows = [record.rows for record in exported if record.rows is not None]
    if not rows:
        return store.unit.scheme is not None
    return any(getattr(row, "label", None) is None for row in rows)


def model_of(store: Store, teacher: Teacher | None = None) -> Any:
    """Return the model that the log of a store makes, ready to be saved.

    Parameters
    ----------
    store : Store
        The store.
    teacher : Teacher, optional
        Has the model, where the page is open.

    Returns
    -------
    Labeler
        The model.
    """
    model = Teacher(store).rebuilt() if teacher is None else copy.copy(teacher.current.model)
    if model is None:
        raise DataError("the model has not been taught yet; accept a sentence first")
    reading = store.reading()
    if reading is not None:
        has_none = reading["format"] == "conllu" and reading.get("label", "") is None
        model.reading_ = reading | ({"label": _field(store)} if has_none else {})
    return model


def file_name(store: Store, kind: str) -> str:
    """Return the name of a file to export to: the store's title, without special characters."""
    title = re.sub(r"[^\w.-]+", "_", str(store.about("title") or "labels"))
    return f"{title}{KINDS[kind]}"
