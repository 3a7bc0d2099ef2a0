"""brat's standoff annotation: ``name.ann`` beside the text ``name.txt``.

::

    T1	PER 0 8	Ana Díaz
    R1	Lives Arg1:T1 Arg2:T2

Every line of the text that is not blank is a sequence, cut into tokens and labelled by the T lines
as described in `fuda.formats.spans`. An entity lies within one line. All other annotations, and
entities of several parts, are not labels; they are kept and written again.

Writing ``name.ann`` writes ``name.txt``, too, unless that has the texts already. Where texts come
from one file, they keep their places in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path

from fuda import files
from fuda.data.text import tokenize
from fuda.errors import DataError, place, short
from fuda.files import fault, split_lines
from fuda.formats.dataset import Dataset, Record, check_line, text_to_write
from fuda.formats.spans import Span, check_spans, labelled_record, spans_of, written_as

_ENTITY = re.compile(r"(T[^\t]*)\t([^ \t]+) ([0-9]{1,15}) ([0-9]{1,15})(?:\t.*)?", re.DOTALL)
_PARTS = re.compile(r"T[^\t]*\t[^ \t]+ [0-9]+ [0-9]+(?:;[0-9]+ [0-9]+)+(?:\t|\Z)")
_KNOWN = re.compile(r"[RENMA*#][^\t]*\t")


@dataclass
class Document:
    """A text, the lines of annotations that are not labels, and the names of the entities."""

    content: str
    others: list[str]
    names: dict[Span, str]


def read(text: str, name: str, scheme: str | None = "IOB2", tokenizer: str = "words") -> Dataset:
    """Read the lines of the text beside an annotation file as sequences of labelled tokens.

    Parameters
    ----------
    text : str
        The content of the annotation file.
    name : str
        Its name, to which that of the text belongs.
    scheme : str or None
        The tag scheme of the labels; None gives each token the label of its entity.
    tokenizer : {"words", "blanks"}
        How tokens are found: by the rules of `fuda.data.text`, or between blanks.

    Returns
    -------
    Dataset
        One record per line of the text that is not blank.
    """
    if name == files.display_name("-"):
        raise DataError(f"{name}: annotations of brat stand beside a text; name the file, not its content")
    beside = _text_path(name)
    document = Document(files.read_text(beside), [], {})
    entities = sorted(_entities(split_lines(text, name), name, document), key=lambda x: x[1][0])
    firsts = [first for _, (first, *_) in entities]
    records, start, placed_count = [], 0, 0
    for line in document.content.split("\n"):
        content = line.removesuffix("\r")
        end = start + len(content)
        inside = entities[bisect_left(firsts, start) : bisect_right(firsts, end)]
        inside = [x for x in inside if x[1][1] <= end]
        placed_count += len(inside)
        spans = [(first - start, last - start, label) for _, (first, last, label) in inside]
        if spans or tokenize(content, tokenizer):
            try:
                record = labelled_record(content, spans, scheme, tokenizer, start=start)
            except DataError as error:
                raise DataError(f"{name}: in the line of {beside} that begins at {start}: {error}") from None
            for (ident, _), span in zip(inside, spans, strict=True):
                first, last, label = written_as(record, span)
                document.names[first + start, last + start, label] = ident
            record.rows = document
            records.append(record)
        start += len(line) + 1
    if placed_count < len(entities):
        placed = set(document.names.values())
        ident, (first, last, _) = next(x for x in entities if x[0] not in placed)
        problem = f"{ident} from {first} to {last} does not lie within one line of {beside}"
        raise DataError(f"{name}: {problem}; correct it, or join the lines")
    if not records:
        raise DataError(f"{beside}: no text; write one sentence or paragraph per line")
    parts = sum(bool(_PARTS.match(line)) for line in document.others)
    notes = [f"{name}: {parts} entities of several parts are not labels"] if parts else []
    return Dataset(records, notes)


def write(records: Sequence[Record]) -> str:
    """Write the annotations of a document.

    Parameters
    ----------
    records : list of Record
        The structures and labels, of one document.

    Returns
    -------
    str
        The content of the annotation file.
    """
    document, starts = _document(records)
    spans = []
    for index, (record, start) in enumerate(zip(records, starts, strict=True)):
        check_spans(index, record, "brat")
        text, entity_spans = spans_of(index, record)
        for first, last, label in entity_spans:
            if re.search(r"\s", label):
                raise DataError(f"{place(index)}: the label {short(label)} has a blank; rename it")
            shown = " ".join(text.content[first:last].split())
            spans.append(((first + start, last + start, label), shown))
    used = {*document.names.values(), *(line.partition("\t")[0] for line in document.others)}
    free = (ident for ident in map("T{}".format, count(1)) if ident not in used)
    lines = []
    for span, shown in spans:
        first, last, label = span
        lines.append(f"{document.names.get(span) or next(free)}\t{label} {first} {last}\t{shown}")
    return "".join(f"{line}\n" for line in [*lines, *document.others])


def beside(records: Sequence[Record], path: str | Path) -> tuple[Path, str] | None:
    """The text file that belongs to an annotation file; None if it is there."""
    if str(path) == "-":
        return None
    target = _text_path(path)
    document, starts = _document(records)
    if not target.exists():
        return target, document.content
    existing = files.read_text(target)
    for index, (record, start) in enumerate(zip(records, starts, strict=True)):
        content = text_to_write(index, record).content
        if existing[start : start + len(content)] != content:
            problem = f"{target} exists and has another text at {start} than {place(index)}"
            raise DataError(f"{problem}; name another file, or remove it")
    return None


def _text_path(path: str | Path) -> Path:
    """The text beside an annotation file."""
    return Path(str(path).removesuffix(".gz")).with_suffix(".txt")


def _entities(lines: list[str], name: str, document: Document) -> list[tuple[str, Span]]:
    """The entities of one part with their names; other annotations go to the document."""
    entities = []
    for number, line in enumerate(lines, 1):
        if match := _ENTITY.fullmatch(line):
            span = int(match[3]), int(match[4]), match[2]
            if not span[0] < span[1] <= len(document.content):
                problem = f"{match[1]} from {span[0]} to {span[1]} is not within the text"
                raise fault(name, number, f"{problem} of {len(document.content)} characters; correct it")
            entities.append((match[1], span))
        elif _KNOWN.match(line) or _PARTS.match(line):
            document.others.append(line)
        elif line.strip():
            remedy = "write an entity as T1, tab, LABEL START END, tab, its text"
            raise fault(name, number, f"{short(line)} is not an annotation of brat; {remedy}")
    return entities


def _document(records: Sequence[Record]) -> tuple[Document, list[int]]:
    """The document of records, and where the text of each begins in it."""
    documents = {id(record.rows): record.rows for record in records if isinstance(record.rows, Document)}
    texts = [text_to_write(index, record) for index, record in enumerate(records)]
    if len(documents) == 1 and all(isinstance(record.rows, Document) for record in records):
        return next(iter(documents.values())), [text.start for text in texts]
    if documents:
        raise DataError("the structures are of several documents of brat; write a file for each")
    content, starts = "", []
    keeps_starts = all(a.start + len(a.content) < b.start for a, b in pairwise(texts))
    for index, text in enumerate(texts):
        check_line(text.content, index)
        start = text.start if keeps_starts else len(content)
        content += "\n" * (start - len(content)) + text.content + "\n"
        starts.append(start)
    return Document(content, [], {}), starts
