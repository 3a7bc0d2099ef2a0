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
from fuda.data.text import tokenize
from fuda.errors import DataError
from fuda.formats import FORMATS, Dataset, Format, format_of, jsonl
from fuda.formats.dataset import Record, replace
from fuda.page.learners import GIVEN
from fuda.page.spans import Unit, new_kind, unit_of
from fuda.page.store import Snapshot, Store
from fuda.render.text import shown

_LOOKED_AT = 1_000  # so many lines decide whether a file is raw text or columns
_MOST_COLUMNS = 14
_TAG = re.compile(r"O|[BIESLU]-\S+")


def format_for(path: str, format_name: str | None) -> tuple[Format, dict[str, Any]]:
    """Return the format of a file and options for it: raw text or columns by what it contains.

    Parameters
    ----------
    path : str
        The file.
    format_name : str or None
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
    if format_name is not None or (known and extension not in (".txt", ".tsv")):
        format = format_of(path, format_name)
        is_columns = format.name == "conll"
        return format, {"label": None} if is_columns and _columns(path) == 1 else {}
    count = _columns(path)
    if count == 0 or not _is_parted(path, count):
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
    # Where every line ends like a sentence, lines are sentences.
    return 0 if all(re.search(r"[.!?…。]\s*$", line) for line in lines) else count


def _is_parted(path: str, count: int) -> bool:
    """Whether lines of so many columns are words; logs and languages without spaces look alike."""
    text = files.read_text(path)
    blocks = [block.split("\n") for block in re.split(r"\n\s*\n", text.strip())]
    if "\t" in text or 1 < len(blocks) < sum(map(len, blocks)):  # blank lines between sentences
        return True
    lines = [line for block in blocks for line in block][:_LOOKED_AT]
    if count == 1:
        return all(len(tokenize(line)) == 1 for line in lines)
    return all(_TAG.fullmatch(line.split()[-1]) for line in lines)


def digest_of_file(path: str, keywords: dict[str, Any]) -> str:
    """Return a digest of a file and of the options that it is read with."""
    digest = hashlib.sha256(files.read_bytes(path))
    digest.update(repr(sorted(keywords.items())).encode())
    return digest.hexdigest()


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
        records = _unknown(store, name, data.records)
        store.set_about("digests", [*store.about("digests", []), digest])
        if records:
            file = writer.execute(
                "INSERT INTO files (name, options) VALUES (?, ?)", (name, json.dumps(reading))
            ).lastrowid
            assert file is not None
            rows = [_row(file, place, record, unit, reading["format"]) for place, record in records]
            labelled = sum(row["given"] is not None for row in rows)
            number = store.log("file", more={"name": name, "structures": len(rows), "labelled": labelled})
            writer.executemany(
                """INSERT INTO items (file, place, digest, words, record, original, given, complete, lesson,
                status, labels, source) VALUES (:file, :place, :digest, :words, :record, :original, :given,
                :complete, :lesson, :status, :given, :source)""",
                [row | {"lesson": None if row["given"] is None else number} for row in rows],
            )
        kinds = unit.kinds({label for record in data.records for label in record.labels or []})
        add_kinds(store, kinds)
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


def _unknown(store: Store, name: str, records: list[Record]) -> list[tuple[int, Record]]:
    """The records that the store does not have, and their places; others give it their labels."""
    with store.transaction() as writer:
        is_known_file = writer.execute("SELECT 1 FROM files WHERE name = ?", (name,)).fetchone() is not None
        stored = Counter(digest for (digest,) in writer.execute("SELECT digest FROM items"))
        digests = [digest_of(record.structure) for record in records]
        if not is_known_file and any(count > stored[digest] for digest, count in Counter(digests).items()):
            return list(enumerate(records, 1))
        occurrences: Counter[bytes] = Counter()
        unknown = []
        for place, (digest, record) in enumerate(zip(digests, records, strict=True), 1):
            occurrences[digest] += 1
            if occurrences[digest] > stored[digest]:
                unknown.append((place, record))
            elif record.labels is not None and any(label is not None for label in record.labels):
                _add_labels(store, digest, occurrences[digest], store.unit.stored(record.labels))
        return unknown


def _add_labels(store: Store, digest: bytes, occurrence: int, labels: list[Any]) -> None:
    """Give labels of a file to a structure that has none."""
    with store.transaction() as writer:
        number, known_labels, version = writer.execute(
            "SELECT id, given, version FROM items WHERE digest = ? ORDER BY id LIMIT 1 OFFSET ?",
            (digest, occurrence - 1),
        ).fetchone()
        if known_labels is not None or version > 0:
            return
        lesson = store.log("file", more={"structures": 0, "labelled": 1})
        writer.execute(
            """UPDATE items SET given = :given, complete = :complete, lesson = :lesson, status = :status,
            labels = :given, source = :source, version = version + 1 WHERE id = :id""",
            _label_columns(labels) | {"lesson": lesson, "id": number},
        )


def _row(file: int, place: int, record: Record, unit: Unit, format: str) -> dict[str, Any]:
    """The columns of a structure."""
    known = record.labels is not None and any(label is not None for label in record.labels)
    return {
        "file": file,
        "place": place,
        "digest": digest_of(record.structure),
        "words": _search_text(record),
        "record": jsonl.write([replace(record, labels=None, rows=None, marginals=None)]),
        "original": _original(record, format),
        **_label_columns(unit.stored(record.labels or []) if known else None),
    }


def _search_text(record: Record) -> str:
    """What a search looks through: the words apart, and the text as it is, if there is one."""
    words = " ".join(map(shown, record.structure.observations))
    return words if record.text is None else f"{words}\n{record.text.content}"


def _label_columns(labels: list[Any] | None) -> dict[str, Any]:
    """The columns of a structure for the labels that its file has."""
    complete = labels is not None and None not in labels
    text = None if labels is None else json.dumps(labels, ensure_ascii=False)
    status, source = "done" if complete else "new", None if labels is None else "file"
    return {"given": text, "complete": complete, "status": status, "source": source}


def _original(record: Record, format: str) -> str | None:
    """What CoNLL-U has of a sentence beside its labels, so that it can be written again."""
    return FORMATS[format].write([record]) if format == "conllu" else None


def add_model(store: Store, path: str) -> None:
    """Let a model label to begin with; in a store that has one already, nothing changes."""
    if store.about("given"):
        return
    from fuda.storage.models import load

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
