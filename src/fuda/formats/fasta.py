"""FASTA: a header that starts with ``>``, then the residues of a sequence, one character each.

Labels have one of two forms:

- *lines*: the residues on one line and their labels, one character each, on the next; ``?`` is an
  unknown label (None)::

      >protein 1
      MKVLA
      CHHHC

- *marks*: a mark after a residue, on any number of lines, makes it a site: its label is ``site``,
  that of all others ``O``::

      >protein 2
      MRRS#VA

Where the form of the labels could be mistaken, as in a file of marks that has none, the first line
states it: ``;labels=lines``, ``;labels=marks`` or ``;labels=none``. The writer adds this line
where it is needed, unless the form is given.

Headers are kept unchanged in ``Record.comments``. Residues are ASCII letters, ``*``, ``-`` and
``.``; case is kept. Writing reproduces a file that was read byte for byte, except for the labels,
if it has no blank lines and the form of its labels is evident.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from fuda.checks import check_choice
from fuda.data import structures
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats.dataset import Dataset, Label, Record, check_line, check_rows, label_text, labels_to_write

SITE, OTHER, UNKNOWN, MARK = "site", "O", "?", "#"
MODES = ("auto", "lines", "marks", "none")
LINE_WIDTH = 60
_RESIDUE = re.compile(r"[A-Za-z*.-]")
_NOT_RESIDUES = re.compile(r"[^A-Za-z*.-]")
_STATED = re.compile(r";labels=(lines|marks|none)[ \t]*")

Line = tuple[int, str]  # with its number


@dataclass(slots=True)
class Rows:
    """The number of residues on each line of a record, the form of its labels, and the mark."""

    widths: list[int]
    labels: str
    mark: str = MARK


def read(
    text: str, name: str, labels: str | None = "auto", mark: str = MARK, sites: str | None = None
) -> Dataset:
    """Read proteins, DNA or RNA as sequences of characters.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    labels : {"auto", "lines", "marks", "none"} or None
        The form of the labels. "auto" means the form that the first line states; otherwise marks
        if there is any mark; lines if every record has two lines that cannot be residues broken at
        a fixed length; else none.
    mark : str
        The character after a residue that makes it a site.
    sites : str, optional
        The residues that can be sites; marks after others are dropped and counted in the notes.

    Returns
    -------
    Dataset
        One record per header.

    Examples
    --------
    >>> X, y = read(">p\\nRRS#V\\n", "example")
    >>> X, y
    ([Sequence(['R', 'R', 'S', 'V'], 4 nodes)], [['O', 'O', 'site', 'O']])
    """
    notes: list[str] = []
    record_iterator = records(split_lines(text, name), name, notes, labels, mark, sites)
    return Dataset(list(record_iterator), notes)


def records(
    lines: Iterable[str], name: str, notes: list[str], labels: str | None, mark: str, sites: str | None
) -> Iterator[Record]:
    """Yield the records of `read`, after all lines have come; notes are added at the end."""
    labels = labels or "none"
    check_choice("labels", labels, MODES)
    _check_mark(mark)
    if sites is not None and (not isinstance(sites, str) or not sites):
        raise DataError(f"sites={sites!r}: give the residues that can be sites as text, such as STY")
    file_lines = list(lines)
    stated = _STATED.fullmatch(file_lines[0]) if file_lines else None
    if stated:
        file_lines[0] = ""  # blank, so that lines keep their numbers
    sections = list(_records(file_lines, name))
    if labels == "auto":
        labels = "marks" if sites is not None else stated[1] if stated else _form(sections, mark, name)
    elif sites is not None and labels != "marks":
        raise DataError(f"sites={sites!r} needs labels='marks', not labels={labels!r}; leave one of them out")
    dropped = 0
    for header, section in sections:
        if labels == "lines":
            yield _read_lines(header, section, name)
        else:
            record, ignored = _read_marks(header, section, name, mark if labels == "marks" else None, sites)
            dropped += ignored
            yield record
    if dropped:
        notes.append(f"{name}: {dropped} mark(s) dropped: the residue before is not one of {sites}")


def write(records: Sequence[Record], labels: str = "auto", mark: str | None = None) -> str:
    """Write sequences of residues.

    Parameters
    ----------
    records : list of Record
        Sequences whose observations are residues.
    labels : {"auto", "lines", "marks", "none"}
        The form of the labels. "auto" is the form read; for other formats marks if every label is
        ``site`` or ``O``, else lines.
    mark : str, optional
        The character after a residue that is a site; by default the one read, else ``#``.

    Returns
    -------
    str
        The content of the file.
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
        cells = _residues(index, record)
        lines.append(_header(index, record))
        values = labels_to_write(index, record) or [None] * len(cells)
        if labels == "lines":
            lines.append("".join(cells))
            lines.append("".join(_label_character(value, index, node) for node, value in enumerate(values)))
            continue
        if labels == "marks":
            cells = [cell + _mark(values[node], index, node, mark) for node, cell in enumerate(cells)]
        widths = [LINE_WIDTH] * (len(cells) // LINE_WIDTH + 1)
        if isinstance(record.rows, Rows) and record.rows.labels != "lines":
            check_rows(index, record, sum(record.rows.widths))
            widths = record.rows.widths
        remaining = iter(cells)
        pieces = ("".join(islice(remaining, width)) for width in widths)
        lines += filter(None, pieces)
    return lines


def _statement(lines: list[str], labels: str, mark: str) -> list[str]:
    """The first line of a file, where readers would not see the form of its labels without it."""
    try:
        evident = _form(list(_records(lines, "")), mark, "")
    except DataError:  # it could be one form or another
        evident = None
    return [] if evident == labels else [f";labels={labels}"]


def from_command(options: dict[str, Any]) -> dict[str, Any]:
    """Replace ``--label none`` by ``labels=None``."""
    if "label" not in options or options["label"] is not None:
        return options
    return {name: value for name, value in options.items() if name != "label"} | {"labels": None}


def options_for_model(path: str, given: dict, stored: dict | None, labelled: bool) -> dict[str, Any]:
    """Allow files without lines of labels to be labelled, even if the training files had them."""
    options = (stored or {}) | given
    unneeded = stored is not None and not labelled and options.get("labels") == "lines"
    return options | ({"labels": "auto"} if unneeded else {})


def _check_mark(mark: str) -> None:
    """Refuse a mark that a reader could not distinguish from residues, headers or line ends."""
    if not isinstance(mark, str) or len(mark) != 1 or _RESIDUE.match(mark) or mark in "> \t\r\n":
        raise DataError(f"mark={mark!r}: give one character that is not a residue, such as #")


def _records(lines: list[str], name: str) -> Iterator[tuple[Line, list[Line]]]:
    """Yield header and lines of each record; blank lines are ignored."""
    numbered = [(number, line.rstrip(" \t")) for number, line in enumerate(lines, 1)]
    content = [(number, line) for number, line in numbered if line]
    starts = [i for i, (_, line) in enumerate(content) if line.startswith(">")]
    if not content:
        raise DataError(f"{name}: no records; give each as a line >name and lines of residues")
    if not starts or starts[0] > 0:
        number, line = content[0]
        raise fault(name, number, f"text before the first header: {short(line)}; a record starts with >name")
    for start, end in pairwise([*starts, len(content)]):
        number, header = content[start]
        if end == start + 1:
            raise fault(name, number, f"no residues after {short(header)}; remove the empty record")
        yield (number, lines[number - 1]), content[start + 1 : end]


def _form(records: list[tuple[Line, list[Line]]], mark: str, name: str) -> str:
    """The form of the labels: marks, lines or none."""
    if any(mark in line for _, lines in records for _, line in lines):
        return "marks"
    if any(len(lines) != 2 for _, lines in records):
        return "none"
    lengths = {(len(first), len(second)) for _, ((_, first), (_, second)) in records}
    if len({first for first, _ in lengths}) > 1 or any(first < second for first, second in lengths):
        return "lines"  # residues broken into two lines are broken at one length
    if all(first == second for first, second in lengths):
        problem = f"every record has two lines of {lengths.pop()[0]} characters"
        remedy = "pass labels='lines' if the second contains labels, labels='none' if it contains residues"
        raise DataError(f"{name}: {problem}; {remedy}")
    return "none"


def _check_residues(residues: str, name: str, number: int) -> None:
    """Refuse a line with other characters than residues."""
    if bad := _NOT_RESIDUES.search(residues):
        message = (
            f"column {bad.start() + 1}: {bad[0]!r} is not a residue; residues are letters, *, - and .; read "
            "lines of labels with labels='lines', marks with labels='marks' and mark="
        )
        raise fault(name, number, message)


def _read_lines(header: Line, lines: list[Line], name: str) -> Record:
    """A record of one line of residues and one of labels."""
    if len(lines) != 2:
        message = f"{len(lines)} line(s) after the header; labels='lines' requires two, residues and labels"
        raise fault(name, header[0], message)
    (number, residues), (labels_number, labels) = lines
    _check_residues(residues, name, number)
    if len(residues) != len(labels):
        message = f"{len(labels)} labels for {len(residues)} residues; give one character per residue"
        raise fault(name, labels_number, message)
    if bad := re.search(r"\s", labels):
        message = f"column {bad.start() + 1}: {bad[0]!r} is not a label; use ? for an unknown one"
        raise fault(name, labels_number, message)
    values: list[Label] = [None if label == UNKNOWN else label for label in labels]
    return Record(structures.Sequence(list(residues)), values, [header[1]], Rows([len(residues)], "lines"))


def _read_marks(
    header: Line, lines: list[Line], name: str, mark: str | None, sites: str | None
) -> tuple[Record, int]:
    """A record on any number of lines, and how many marks were dropped; no labels without mark."""
    residues = ""
    labels: list[Label] = []
    widths = []
    dropped = 0
    for number, line in lines:
        pieces = [line] if mark is None else line.split(mark)
        before = len(residues)
        for position, piece in enumerate(pieces):
            _check_residues(piece, name, number)
            if position:
                if not residues or labels[-1] == SITE or (not pieces[position - 1] and position > 1):
                    message = f"a mark {mark!r} that follows no residue: {short(line)}; remove it"
                    raise fault(name, number, message)
                if sites is None or residues[-1] in sites:
                    labels[-1] = SITE
                else:
                    dropped += 1
            residues += piece
            labels += [OTHER] * len(piece)
        widths.append(len(residues) - before)
    rows = Rows(widths, "none") if mark is None else Rows(widths, "marks", mark)
    values = None if mark is None else labels
    return Record(structures.Sequence(list(residues)), values, [header[1]], rows), dropped


def _form_to_write(records: Sequence[Record]) -> str:
    """The form of the labels that was read, or else the simplest that can express them."""
    values = {value for record in records if record.labels is not None for value in record.labels}
    if not values:
        return "none"
    forms = {record.rows.labels if isinstance(record.rows, Rows) else "none" for record in records}
    if forms <= {"lines"} or forms <= {"marks"}:
        return forms.pop()
    return "marks" if values <= {SITE, OTHER} else "lines"


def _mark_to_write(records: Sequence[Record]) -> str:
    """The mark of the records that were read with one, if it is the same for all."""
    marks = {r.rows.mark for r in records if isinstance(r.rows, Rows) and r.rows.labels == "marks"}
    return marks.pop() if len(marks) == 1 else MARK


def _residues(index: int, record: Record) -> list[str]:
    """The residues of a record."""
    structure = record.structure
    if not isinstance(structure, structures.Sequence):
        raise DataError(f"{place(index)}: FASTA contains sequences, not a {structure.shape}; write jsonl")
    for node, observation in enumerate(structure.observations):
        if not (isinstance(observation, str) and len(observation) == 1 and _RESIDUE.match(observation)):
            message = f"the observation {short(observation)} is not a residue, that is, a letter, *, - or ."
            raise DataError(f"{place(index, node)}: {message}; write conll or jsonl")
    return list(structure.observations)


def _header(index: int, record: Record) -> str:
    """The header that was read, even if another format added a ``#``; else the record's number."""
    headers = [comment.removeprefix("# ") for comment in record.comments]
    header = next((line for line in headers if line.startswith(">")), f">{index + 1}")
    return check_line(header, index)


def _label_character(label: Label, index: int, node: int) -> str:
    """A label in a line of labels."""
    text = label_text(label, index, node, UNKNOWN)
    if len(text) != 1 or text.isspace() or text == ">":
        message = f"the label {label!r} is not one character other than a space or >, so it does not fit"
        raise DataError(f"{place(index, node)}: {message} into a line of labels; write conll or jsonl")
    return text


def _mark(label: Label, index: int, node: int, mark: str) -> str:
    """What follows a residue with that label."""
    if label not in (SITE, OTHER):
        message = f"the label {label!r} is neither {SITE!r} nor {OTHER!r}, so a mark cannot express it"
        raise DataError(f"{place(index, node)}: {message}; write labels='lines', or jsonl")
    return mark if label == SITE else ""
