"""PSI-BLAST's ASCII matrices: the profile of a protein, a row of twenty scores per residue.

``psiblast -out_ascii_pssm`` writes a title, a line of the twenty amino acids (once for scores,
once for percentages), and a line per residue: its position, the residue, scores, percentages, and
two more numbers::

               A   R   N   D  …   V    A   R  …   V
        1 M   -1  -2  -2  -3  …   1    0   0  …   0  0.55 0.14

Other lines follow after a blank one: statistics, of which programs write four, two or none. Widths
differ too: older programs give a score three characters, so that scores of -10 or less touch
(``-10-12``), newer ones four. Profiles made of conserved domains have scores alone. ``-I`` is the
score of what can never be; it is read as `NEVER`, and its percentage is left out. (Sources of
NCBI: posit.c of blastpgp, CBlastFormatUtil::PrintAsciiPssm of BLAST+.)

A file may have several matrices, one after the other. Each is a sequence of vectors of twenty
scores, in the order of PSI-BLAST, even if the file has another;
``Record.more["residues"]`` has the residues. PSI-BLAST has no labels: here they follow after a tab
at the ends of lines, ``?`` where they are not known. Writing reproduces the lines that were read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from fuda.data import structures
from fuda.errors import DataError, place, short
from fuda.features.substitution import AMINO_ACIDS
from fuda.files import fault, split_lines
from fuda.formats.dataset import Dataset, Label, Record, check_rows, label_text, labels_to_write

UNKNOWN = "?"
NEVER = -20  # a score below all that PSI-BLAST computes
# A number begins with a space or a sign, so that there is one way to read a row, however long.
_ROW = re.compile(r"\s*(\d+)\s+([A-Za-z*-])((?:\s+-?\d+|-\d+|\s*-I)*)((?:\s+-?(?:\d+\.\d+|inf|nan))*)\s*")
_NUMBER = re.compile(r"-I|-?\d+")
_MOST = 1000.0  # scores may be this large at most; those of PSI-BLAST are below 20
_TITLE = "Last position-specific scoring matrix computed"


@dataclass(slots=True)
class Rows:
    """The lines of a matrix: those before its rows, its rows without labels, and those after."""

    before: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def read(text: str, name: str) -> Dataset:
    """Read matrices as sequences of vectors.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.

    Returns
    -------
    Dataset
        One record per matrix; without labels, if no line has one.
    """
    notes: list[str] = []
    return Dataset(list(records(split_lines(text, name), name, notes)), notes)


def records(lines: Iterable[str], name: str, notes: list[str]) -> Iterator[Record]:
    """Yield the records of `read`."""
    rows = Rows()
    order: list[int] | None = None  # of the matrix that is being read, until its last row
    matrix: list[tuple[str, list[int], Label, bool]] = []
    has_matrix = False
    for number, line in enumerate(lines, 1):
        columns = _columns(line)
        if columns is not None:
            if order is not None and not matrix:
                raise fault(name, number, "a second line of amino acids without rows between; remove it")
            if matrix:
                title = _title_of_next(rows)
                yield _record(rows, matrix)
                rows, matrix = Rows(title), []
            order, has_matrix = columns, True
            rows.before.append(line)
        elif order is not None and line.strip():
            content, tab, label = line.partition("\t")
            matrix.append(_row(content, order, label.strip() if tab else None, len(matrix) + 1, name, number))
            rows.rows.append(content)
        elif matrix:
            order = None
            rows.after.append(line)
        else:
            rows.before.append(line)
    if not has_matrix or not matrix:
        remedy = "give the file that psiblast writes with -out_ascii_pssm"
        raise DataError(f"{name}: no {'rows' if has_matrix else 'line of the twenty amino acids'}; {remedy}")
    yield _record(rows, matrix)


def _columns(line: str) -> list[int] | None:
    """Where the scores of the amino acids, in their order, are in a row; None for other lines."""
    letters = line.split()
    if len(letters) not in (20, 40) or sorted(letters[:20]) != sorted(AMINO_ACIDS):
        return None
    return [letters.index(a) for a in AMINO_ACIDS]


def _title_of_next(rows: Rows) -> list[str]:
    """The lines after a matrix that belong to the next: its title and a blank line before it."""
    starts = [i for i, line in enumerate(rows.after) if line.startswith(_TITLE)]
    start = starts[-1] if starts else len(rows.after)
    if start and not rows.after[start - 1].strip():
        start -= 1
    title, rows.after = rows.after[start:], rows.after[:start]
    return title


def _row(
    line: str, order: list[int], label: str | None, position: int, name: str, number: int
) -> tuple[str, list[int], Label, bool]:
    """Residue, scores and label of a line, and whether it has a label."""
    match = _ROW.fullmatch(line)
    if match is None:
        message = f"{short(line)} is not a row of position, residue and scores; a blank line ends the rows"
        raise fault(name, number, message)
    if int(match[1]) != position:
        message = f"position {match[1]} where {position} follows; rows are numbered from 1, none is left out"
        raise fault(name, number, message)
    texts = _NUMBER.findall(match[3])
    values = [NEVER if text == "-I" else int(text) for text in texts]
    if len(values) not in (20, 40 - texts[:20].count("-I")) or "-I" in texts[20:]:
        message = f"{len(values)} scores and percentages for 20 amino acids; give 20 of each, or scores alone"
        raise fault(name, number, message)
    if max(map(abs, values)) > _MOST:
        raise fault(name, number, f"a score of size {max(map(abs, values))}; scores are at most {_MOST:g}")
    if label is not None and not label:
        raise fault(name, number, f"no label after the tab; write {UNKNOWN} for one that is not known")
    return match[2], [values[k] for k in order], None if label == UNKNOWN else label, label is not None


def _record(rows: Rows, matrix: list[tuple[str, list[int], Label, bool]]) -> Record:
    """The record of a matrix."""
    vectors = [np.array(scores, dtype=float) for _, scores, _, _ in matrix]
    labels = [label for _, _, label, _ in matrix] if any(has for *_, has in matrix) else None
    more = {"residues": "".join(residue for residue, *_ in matrix)}
    return Record(structures.Sequence(vectors), labels, rows=rows, more=more)


def write(records: Sequence[Record]) -> str:
    """Write matrices, with labels where there are any.

    Parameters
    ----------
    records : list of Record
        Sequences whose observations are vectors of twenty scores, whole numbers.

    Returns
    -------
    str
        The content of the file.
    """
    lines: list[str] = []
    for index, record in enumerate(records):
        rows = record.rows if isinstance(record.rows, Rows) else _new_rows(index, record)
        check_rows(index, record, len(rows.rows))
        labels = labels_to_write(index, record)
        lines += rows.before
        for node, row in enumerate(rows.rows):
            lines.append(row if labels is None else f"{row}\t{_label(labels[node], index, node)}")
        lines += rows.after
    return "\n".join(lines) + "\n"


def _label(label: Label, index: int, node: int) -> str:
    """A label at the end of a line."""
    text = label_text(label, index, node, UNKNOWN)
    if text != text.strip() or "\t" in text or "\n" in text or "\r" in text:
        problem = f"the label {label!r} contains a tab, or begins or ends with a space"
        raise DataError(f"{place(index, node)}: {problem}; rename it or write jsonl")
    return text


def _new_rows(index: int, record: Record) -> Rows:
    """Lines for vectors of another format."""
    structure = record.structure
    if not isinstance(structure, structures.Sequence):
        raise DataError(f"{place(index)}: a matrix is a sequence, not a {structure.shape}; write jsonl")
    residues = str(record.more.get("residues"))
    if len(residues) != len(structure) or not re.fullmatch(r"[A-Za-z*-]+", residues):
        residues = "X" * len(structure)
    rows = []
    for node, vector in enumerate(structure.observations):
        values = np.asarray(vector) if not isinstance(vector, str | dict) else np.zeros(0)
        if values.shape != (20,) or values.dtype.kind not in "iuf" or (values != np.round(values)).any():
            problem = f"the observation {short(vector)} is not a vector of twenty whole numbers"
            raise DataError(f"{place(index, node)}: {problem}; write jsonl")
        if np.abs(values).max() > _MOST:
            raise DataError(f"{place(index, node)}: a score larger than {_MOST:g}; write jsonl")
        rows.append(f"{node + 1:5d} {residues[node]}  " + "".join(f"{int(value):5d}" for value in values))
    header = " " * 9 + "".join(f"{a:>5}" for a in AMINO_ACIDS)
    return Rows(["", _TITLE, header], rows, [""])
