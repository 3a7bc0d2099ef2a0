"""FASTA: a header that starts with ``>``, then the residues of a sequence, one character each.

Labels come in two forms:

- *lines*: the residues on one line and their labels, one character each, on the next, ``?`` for a label not
  known (None)::

      >protein 1
      MKVLA
      CHHHC

- *marks*: a mark after a residue, over any number of lines, makes it a site: its label is ``site``, that of
  all others ``O``::

      >protein 2
      MRRS#VA

Where the form of the labels could be mistaken, as in a file of marks that has none, a first line says it:
``;labels=lines``, ``;labels=marks`` or ``;labels=none``. The writer adds it where it is needed, unless it is
told the form.

Headers are kept in ``Record.comments`` as they stood. Residues are ASCII letters, ``*``, ``-`` and ``.``, in
the case given. Writing gives a file that was read back byte for byte, labels replaced, if it has no blank
lines and its form can be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from fuda.checks import check_choice
from fuda.data import structures
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats.dataset import (
    Dataset,
    Label,
    Record,
    check_line,
    check_rows,
    label_text,
    labels_to_write,
)

SITE, OTHER, UNKNOWN, MARK = "site", "O", "?", "#"
MODES = ("auto", "lines", "marks", "none")
LINE_WIDTH = 60
_RESIDUE = re.compile(r"[A-Za-z*.-]")
_NOT_RESIDUES = re.compile(r"[^A-Za-z*.-]")
_STATED = re.compile(r";labels=(lines|marks|none)[ \t]*")


@dataclass(slots=True)
class Rows:
    """How the residues of a record stood: how many on each line, the form of the labels, and the mark."""

    widths: list[int]
    labels: str
    mark: str = MARK


def read(
    text: str, name: str, labels: str | None = "auto", mark: str = MARK, sites: str | None = None
) -> Dataset:
    """Proteins, DNA or RNA as sequences of characters.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    labels : {"auto", "lines", "marks", "none"} or None
        The form of the labels. "auto" is the form that the first line says; else marks if any mark is
        found; lines if every record has two lines and these cannot be residues broken at one length; else
        none.
    mark : str
        The character after a residue that makes it a site.
    sites : str, optional
        The residues that can be sites: marks after others are dropped and counted in the notes.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> X, y = read(">p\\nRRS#V\\n", "example")
    >>> X, y
    ([Sequence(['R', 'R', 'S', 'V'], 4 nodes)], [['O', 'O', 'site', 'O']])
    """
    labels = labels or "none"
    check_choice("labels", labels, MODES)
    _check_mark(mark)
    if sites is not None and (not isinstance(sites, str) or not sites):
        raise DataError(f"sites={sites!r}: give the residues that can be sites as text, such as STY")
    file_lines = split_lines(text, name)
    stated = _STATED.fullmatch(file_lines[0]) if file_lines else None
    if stated:
        file_lines[0] = ""  # blank, so that lines keep their numbers
    found = list(_records(file_lines, name))
    if labels == "auto":
        labels = "marks" if sites is not None else stated[1] if stated else _form(found, mark, name)
    elif sites is not None and labels != "marks":
        raise DataError(f"sites={sites!r} needs labels='marks', not labels={labels!r}; leave one of them out")
    records, dropped = [], 0
    for header, lines in found:
        if labels == "lines":
            record = _read_lines(header, lines, name)
        else:
            record, ignored = _read_marks(header, lines, name, mark if labels == "marks" else None, sites)
            dropped += ignored
        records.append(record)
    notes = [f"{name}: {dropped} mark(s) dropped: the residue before is none of {sites}"] if dropped else []
    return Dataset(records, notes)


def write(records: Sequence[Record], labels: str = "auto", mark: str | None = None) -> str:
    """FASTA text.

    Parameters
    ----------
    records : list of Record
    labels : {"auto", "lines", "marks", "none"}
        The form of the labels. "auto" is the form read; for other formats marks if every label is ``site``
        or ``O``, else lines.
    mark : str, optional
        The character after a residue that is a site; by default the one read, else ``#``.

    Returns
    -------
    str
    """
    check_choice("labels", labels, MODES)
    if mark is None:
        mark = _mark_to_write(records)
    _check_mark(mark)
    if labels == "auto":
        labels = _form_to_write(records)
        lines = _lines(records, labels, mark)
        return "\n".join([*_statement(lines, labels, mark), *lines]) + "\n"
    return "\n".join(_lines(records, labels, mark)) + "\n"


def _lines(records: Sequence[Record], labels: str, mark: str) -> list[str]:
    """The lines of a file, with labels in the given form."""
    lines: list[str] = []
    for index, record in enumerate(records):
        residues = _residues(index, record)
        lines.append(_header(index, record))
        values = labels_to_write(index, record)
        if labels == "lines":
            values = values or [None] * len(residues)
            lines += [
                residues,
                "".join(_label_character(value, index, node) for node, value in enumerate(values)),
            ]
            continue
        cells = list(residues)
        if labels == "marks":
            for node, value in enumerate(values or [None] * len(residues)):
                if value not in (SITE, OTHER):
                    raise DataError(
                        f"{place(index, node)}: the label {value!r} is neither {SITE!r} nor {OTHER!r}, so a "
                        "mark cannot say it; write labels='lines', or jsonl"
                    )
                cells[node] += mark if value == SITE else ""
        widths = [LINE_WIDTH] * (len(cells) // LINE_WIDTH + 1)
        if isinstance(record.rows, Rows) and record.rows.labels != "lines":
            check_rows(index, record, sum(record.rows.widths))
            widths = record.rows.widths
        ends = list(accumulate(widths))
        pieces = ("".join(cells[end - width : end]) for width, end in zip(widths, ends, strict=True))
        lines += [piece for piece in pieces if piece]
    return lines


def _statement(lines: list[str], labels: str, mark: str) -> list[str]:
    """The first line of a file, where readers would not see the form of its labels without it."""
    try:
        seen = _form(list(_records(lines, "")), mark, "")
    except DataError:  # it could be one form or another
        seen = None
    return [] if seen == labels else [f";labels={labels}"]


def _check_mark(mark: str) -> None:
    if not isinstance(mark, str) or len(mark) != 1 or _RESIDUE.match(mark) or mark in "> \t\r\n":
        raise DataError(f"mark={mark!r}: give one character that is no residue, such as #")


def _records(lines: list[str], name: str) -> Iterator[tuple[tuple[int, str], list[tuple[int, str]]]]:
    """(header, lines) of each record, every line with its number; blank lines are passed over."""
    header: tuple[int, str] | None = None
    body: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            if header is not None:
                yield header, _filled(header, body, name)
            header, body = (number, line), []
        elif content := line.rstrip(" \t"):
            if header is None:
                raise fault(
                    name, number, f"text before the first header: {short(line)}; a record starts with >name"
                )
            body.append((number, content))
    if header is None:
        raise DataError(f"{name}: no records; give each as a line >name and lines of residues")
    yield header, _filled(header, body, name)


def _filled(header: tuple[int, str], body: list[tuple[int, str]], name: str) -> list[tuple[int, str]]:
    if not body:
        raise fault(name, header[0], f"no residues after {short(header[1])}; remove the empty record")
    return body


def _form(found: list, mark: str, name: str) -> str:
    """Whether residues are marked, or have a line of labels, or no labels."""
    if any(mark in line for _, lines in found for _, line in lines):
        return "marks"
    if any(len(lines) != 2 for _, lines in found):
        return "none"
    lengths = {(len(first), len(second)) for _, ((_, first), (_, second)) in found}
    if len({first for first, _ in lengths}) > 1 or any(first < second for first, second in lengths):
        return "lines"  # residues broken into two lines are broken at one length
    if all(first == second for first, second in lengths):
        raise DataError(
            f"{name}: every record has two lines of {lengths.pop()[0]} characters; say whether the second "
            "holds labels (labels='lines') or residues (labels='none')"
        )
    return "none"


def _check_residues(residues: str, name: str, number: int) -> None:
    if bad := _NOT_RESIDUES.search(residues):
        raise fault(
            name,
            number,
            f"column {bad.start() + 1}: {bad[0]!r} is no residue; residues are letters, *, - and .; a line "
            "of labels is read with labels='lines', marks with labels='marks' and mark=",
        )


def _read_lines(header: tuple[int, str], lines: list[tuple[int, str]], name: str) -> Record:
    if len(lines) != 2:
        raise fault(
            name,
            header[0],
            f"{len(lines)} line(s) after the header; with labels='lines' there are two, residues and labels",
        )
    (number, residues), (labels_number, labels) = lines
    _check_residues(residues, name, number)
    if len(residues) != len(labels):
        raise fault(
            name,
            labels_number,
            f"{len(labels)} labels for {len(residues)} residues; give one character a residue",
        )
    if bad := re.search(r"\s", labels):
        raise fault(
            name, labels_number, f"column {bad.start() + 1}: {bad[0]!r} is no label; use ? for an unknown one"
        )
    values: list[Label] = [None if label == UNKNOWN else label for label in labels]
    return Record(structures.Sequence(list(residues)), values, [header[1]], Rows([len(residues)], "lines"))


def _read_marks(
    header: tuple[int, str], lines: list[tuple[int, str]], name: str, mark: str | None, sites: str | None
) -> tuple[Record, int]:
    """A record over any number of lines, and how many marks were dropped; `mark` None reads no labels."""
    residues = ""
    labels: list[Label] = []
    widths = []
    dropped = 0
    for number, line in lines:
        pieces = [line] if mark is None else line.split(mark)
        before = len(residues)
        for piece_number, piece in enumerate(pieces):
            _check_residues(piece, name, number)
            if piece_number:
                if not residues or labels[-1] == SITE or (not pieces[piece_number - 1] and piece_number > 1):
                    raise fault(
                        name, number, f"a mark {mark!r} that follows no residue: {short(line)}; remove it"
                    )
                if sites is None or residues[-1] in sites:
                    labels[-1] = SITE
                else:
                    dropped += 1
            residues += piece
            labels += [OTHER] * len(piece)
        widths.append(len(residues) - before)
    if not residues:
        raise fault(name, header[0], f"no residues after {short(header[1])}; remove the empty record")
    rows = Rows(widths, "none") if mark is None else Rows(widths, "marks", mark)
    return Record(
        structures.Sequence(list(residues)), None if mark is None else labels, [header[1]], rows
    ), dropped


def _form_to_write(records: Sequence[Record]) -> str:
    values = {value for record in records if record.labels is not None for value in record.labels}
    if not values:
        return "none"
    forms = {record.rows.labels if isinstance(record.rows, Rows) else "none" for record in records}
    if forms <= {"lines"} or forms <= {"marks"}:
        return forms.pop()
    return "marks" if values <= {SITE, OTHER} else "lines"


def _mark_to_write(records: Sequence[Record]) -> str:
    marks = {r.rows.mark for r in records if isinstance(r.rows, Rows) and r.rows.labels == "marks"}
    return marks.pop() if len(marks) == 1 else MARK


def _residues(index: int, record: Record) -> str:
    structure = record.structure
    if not isinstance(structure, structures.Sequence):
        raise DataError(f"{place(index)}: FASTA holds sequences, not a {structure.shape}; write jsonl")
    for node, observation in enumerate(structure.observations):
        if not (isinstance(observation, str) and len(observation) == 1 and _RESIDUE.match(observation)):
            raise DataError(
                f"{place(index, node)}: the observation {short(observation)} is no residue, which is a "
                "letter, *, - or .; write conll or jsonl"
            )
    return "".join(structure.observations)


def _header(index: int, record: Record) -> str:
    """The header that was read, even if another format put a ``#`` before it; else the record's number."""
    headers = [comment.removeprefix("# ") for comment in record.comments]
    header = next((line for line in headers if line.startswith(">")), f">{index + 1}")
    return check_line(header, index)


def _label_character(label: Label, index: int, node: int) -> str:
    text = label_text(label, index, node, UNKNOWN)
    if len(text) != 1 or text.isspace() or text == ">":
        raise DataError(
            f"{place(index, node)}: the label {label!r} is not one character other than a space or >, so it "
            "does not fit into a line of labels; write conll or jsonl"
        )
    return text


def from_command(options: dict[str, Any]) -> dict[str, Any]:
    """``--label none`` reads no labels, as ``labels=None`` does."""
    if "label" not in options or options["label"] is not None:
        return options
    return {name: value for name, value in options.items() if name != "label"} | {"labels": None}


def as_trained(
    path: str, given: dict[str, Any], learned: dict[str, Any] | None, labelled: bool
) -> dict[str, Any]:
    """A file to be labelled need not have lines of labels, even where the training files had them."""
    options = (learned or {}) | given
    unneeded = learned is not None and not labelled and options.get("labels") == "lines"
    return options | ({"labels": "auto"} if unneeded else {})
