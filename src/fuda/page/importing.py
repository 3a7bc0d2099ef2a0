"""Files into a store: all of a file or nothing, and no structure twice.

A file that is given again, as it was, is not read again. A file that has changed, or that was
exported from the store, adds only the structures that the store does not have yet, and labels for
those that have none; other files are added as a whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from fuda import files
from fuda.data.structures import Structure
from fuda.errors import DataError
from fuda.formats import FORMATS, Dataset, Format, format_of, jsonl
from fuda.formats.dataset import Record, replace
from fuda.page.learners import GIVEN
from fuda.page.spans import Unit, new_kind, unit_of
from fuda.page.store import Snapshot, Store
from fuda.render.text import shown
from fuda.storage.models import load

_LOOKED_AT = 1_000  # lines by which a file of columns is told from raw text
_MOST_COLUMNS = 14


def format_for(path: str, named: str | None) -> tuple[Format, dict[str, Any]]:
    """Return the format of a file and options for it: raw text or columns by what it contains.

    Parameters
    ----------
    path : str
        The file.
    named : str or None
        The format that a person has named.

    Returns
    -------
    format : Format
        The format.
    options : dict
        Options of its reader that the content asks for.
    """
    extension = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    known = any(extension in format.extensions for format in FORMATS.values())
    if named is not None or (known and extension not in (".txt", ".tsv")):
        format = format_of(path, named)
        is_columns = format.name == "conll"
        return format, {"label": None} if is_columns and _columns(path) == 1 else {}
    count = _columns(path)
    if count == 0:
        return FORMATS["text"], {}
    return FORMATS["conll"], {"label": None} if count == 1 else {}


def _columns(path: str) -> int:
    """The number of columns that all lines have; 0 where it differs, as in raw text."""
    lines = [line for line in files.read_text(path).split("\n")[:_LOOKED_AT] if line.strip()]
    if any("\t" in line for line in lines):
        return len(lines[0].split("\t"))
    counts = {len(line.split()) for line in lines if not line.startswith(("#", "-DOCSTART-"))}
    if len(counts) != 1 or len(lines) < 2 or (count := counts.pop()) > _MOST_COLUMNS:
        return 0
    # A word with blanks between would be a column; words at the ends of sentences tell columns from text.
    return count if count == 1 or not all(re.search(r"[.!?…。]\s*$", line) for line in lines) else 0


def digest_of_file(path: str, keywords: dict[str, Any]) -> str:
    """Return what tells a file, read with these options, from others."""
    found = hashlib.sha256(files.read_bytes(path))
    found.update(repr(sorted(keywords.items())).encode())
    return found.hexdigest()


def knows(store: Store, digest: str) -> bool:
    """Return whether a file is in a store as it is."""
    return digest in store.about("digests", [])


def add(
    store: Store,
    path: str,
    data: Dataset,
    digest: str,
    reading: dict[str, Any],
    nodes: bool = False,
) -> int:
    """Add a file to a store, in one transaction.

    Parameters
    ----------
    store : Store
        The store.
    path : str
        The file; the store keeps the last part of its name.
    data : Dataset
        What it contains.
    digest : str
        Of `digest_of_file`.
    reading : dict
        How it was read: the name of its format, and the options as the command has them.
    nodes : bool
        Whether a person asks to label nodes, in a new store.

    Returns
    -------
    int
        How many structures were added.
    """
    shape = data.records[0].structure.shape
    with store.transaction() as writer:
        if store.about("shape") is None:
            unit = unit_of(shape, (record.labels or [] for record in data.records), nodes)
            store.set_about("shape", shape)
            store.set_about("scheme", unit.scheme)
            store.set_about("title", os.path.basename(files.display_name(path)))
        unit = store.unit
        _check(path, data, store.shape)
        name = os.path.basename(files.display_name(path))
        records = _unknown(writer, name, data.records, unit)
        store.set_about("digests", [*store.about("digests", []), digest])
        if records:
            file = writer.execute(
                "INSERT INTO files (name, options) VALUES (?, ?)", (name, json.dumps(reading))
            ).lastrowid
            first = writer.execute("SELECT IFNULL(MAX(id), 0) + 1 FROM items").fetchone()[0]
            rows = [_row(file, place, record, unit, reading["format"]) for place, record in records]
            writer.executemany(
                """INSERT INTO items (file, place, digest, words, record, original, given, complete, status,
                labels, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                rows,
            )
            labelled = sum(row[6] is not None for row in rows)
            items = [first, first + len(rows) - 1]
            store.log("file", more={"name": name, "items": items, "labelled": labelled})
        found = unit.kinds({label for record in data.records for label in record.labels or []})
        add_kinds(store, found)
    return len(records)


def add_kinds(store: Store, kinds: Iterable[str]) -> None:
    """Add labels to those that a person may choose."""
    with store.transaction():
        before = store.kinds
        new = [kind for kind in kinds if kind not in before]
        for kind in new:
            new_kind(kind)
        if new:
            store.set_about("labels", [*before, *new])


def digest_of(structure: Structure) -> bytes:
    """Return what equal structures have in common and others do not."""
    text = jsonl.write([Record(structure)])
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _check(path: str, data: Dataset, shape: str) -> None:
    for index, record in enumerate(data.records):
        if record.structure.shape != shape:
            problem = f"structure {index} is a {record.structure.shape}, but the store has {shape}s"
            raise DataError(f"{path}: {problem}; read it with --graph {shape}, or use another --store")


def _unknown(writer: Any, name: str, records: list[Record], unit: Unit) -> list[tuple[int, Record]]:
    """The records that the store does not have, with their places; the others give it their labels."""
    named = writer.execute("SELECT 1 FROM files WHERE name = ?", (name,)).fetchone() is not None
    digests = [digest_of(record.structure) for record in records]
    stored = Counter(digest for (digest,) in writer.execute("SELECT digest FROM items"))
    if not named and any(count > stored[digest] for digest, count in Counter(digests).items()):
        return list(enumerate(records, 1))
    seen: Counter[bytes] = Counter()
    unknown = []
    for place, (digest, record) in enumerate(zip(digests, records, strict=True), 1):
        seen[digest] += 1
        if seen[digest] > stored[digest]:
            unknown.append((place, record))
        elif record.labels is not None and any(label is not None for label in record.labels):
            _give(writer, digest, seen[digest], unit.stored(record.labels))
    return unknown


def _give(writer: Any, digest: bytes, which: int, labels: list[Any]) -> None:
    """Give labels of a file to a structure that has none."""
    row = writer.execute(
        "SELECT id, given, version FROM items WHERE digest = ? ORDER BY id LIMIT 1 OFFSET ?",
        (digest, which - 1),
    ).fetchone()
    if row[1] is None and row[2] == 0:
        complete, text = None not in labels, json.dumps(labels, ensure_ascii=False)
        writer.execute(
            """UPDATE items SET given = ?, complete = ?, status = ?, labels = ?, source = 'file',
            version = version + 1 WHERE id = ?""",
            (text, complete, "done" if complete else "new", text, row[0]),
        )
        more = json.dumps({"items": [row[0], row[0]], "labelled": 1})
        writer.execute("INSERT INTO events (time, kind, more) VALUES (unixepoch(), 'file', ?)", (more,))


def _row(file: int, place: int, record: Record, unit: Unit, format: str) -> tuple[Any, ...]:
    """The columns of a structure."""
    plain = replace(record, labels=None, rows=None, marginals=None)
    known = record.labels is not None and any(label is not None for label in record.labels)
    labels = unit.stored(record.labels or []) if known else None
    given = None if labels is None else json.dumps(labels, ensure_ascii=False)
    complete = labels is not None and None not in labels
    return (
        *(file, place, digest_of(record.structure), " ".join(map(shown, record.structure.observations))),
        *(jsonl.write([plain]), _original(record, format), given, complete, "done" if complete else "new"),
        *(given, None if given is None else "file"),
    )


def _original(record: Record, format: str) -> str | None:
    """What CoNLL-U has of a sentence beside its labels, so that it can be written again."""
    return FORMATS[format].write([record]) if format == "conllu" else None


def add_model(store: Store, path: str) -> None:
    """Let a model label to begin with; in a store that has one already, nothing changes."""
    if store.about("given"):
        return
    model = load(path)
    if not hasattr(model, "partial_fit"):
        problem = f"{path}: a {type(model).__name__} does not learn from single sentences"
        raise DataError(
            f"{problem}; train one with --learner marginalized or perceptron, or leave --model out"
        )
    if model.shape_ != store.shape:
        problem = f"{path}: the model labels {model.shape_}s, but the store has {store.shape}s"
        raise DataError(f"{problem}; read the files with --graph {model.shape_}")
    if store.last_event() and store.count("version > 0"):
        raise DataError(f"{path}: the store has labels already; give --model when it is made")
    unit = unit_of(model.shape_, [model.classes_.tolist()])
    with store.transaction():
        store.set_about("scheme", unit.scheme)
        store.set_about("given", os.path.basename(path))
        store.add_snapshot(Snapshot(0, GIVEN.name, False, files.read_bytes(path)))
        add_kinds(store, unit.kinds(model.classes_))
