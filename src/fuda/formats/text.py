"""Raw text: one sentence or paragraph per line, cut into tokens by the rules of `fuda.data.text`.

Every line that is not blank is a sequence. Where its tokens begin and end is kept in
``Record.text``, and where the line begins in the file. There are no labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fuda.data.text import tokenize
from fuda.errors import DataError, place
from fuda.files import split_lines
from fuda.formats.dataset import Dataset, Record, check_line, text_to_write
from fuda.formats.spans import labelled_record


class Before(list[str]):
    """The lines without tokens before a line of text."""


def read(text: str, name: str, tokenizer: str = "words") -> Dataset:
    """Read lines as sequences of tokens.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    tokenizer : {"words", "blanks"}
        How tokens are found: by the rules of `fuda.data.text`, or between blanks.

    Returns
    -------
    Dataset
        One record per line that is not blank.

    Examples
    --------
    >>> data = read("Ana sings.\\n\\nBo sleeps.\\n", "example")
    >>> data.X[1]
    Sequence(['Bo', 'sleeps', '.'], 3 nodes)
    >>> data.records[1].text
    Text(content='Bo sleeps.', offsets=[(0, 2), (3, 9), (9, 10)], start=12)
    """
    return Dataset(list(records(split_lines(text, name), name, [], tokenizer)))


def records(lines: Iterable[str], name: str, notes: list[str], tokenizer: str) -> Iterator[Record]:
    """Yield the records of `read` as soon as their lines have come; there are no notes."""
    start = 0
    before, empty = Before(), True
    for line in lines:
        if offsets := tokenize(line, tokenizer):
            record = labelled_record(line, None, None, tokens=offsets, start=start)
            record.rows, before, empty = before, Before(), False
            yield record
        else:
            before.append(line)
        start += len(line) + 1
    if empty:
        raise DataError(f"{name}: no text; write one sentence or paragraph per line")


def write(records: Sequence[Record], after: Record | None = None) -> str:
    """Write the texts of structures without labels, one per line.

    Parameters
    ----------
    records : list of Record
        The structures.
    after : Record, optional
        The first record of the file, if `records` are to follow others in it.

    Returns
    -------
    str
        The content of the file.
    """
    lines: list[str] = []
    for index, record in enumerate(records):
        if record.labels is not None:
            message = "raw text cannot contain labels; write inline, jsonl or conll"
            raise DataError(f"{place(index)}: {message}, or set labels=None")
        lines += [*blank_lines(record), check_line(text_to_write(index, record).content, index)]
    return "\n".join([*lines, ""])


def blank_lines(record: Record) -> list[str]:
    """The blank lines that came before a line of text."""
    return record.rows if isinstance(record.rows, Before) else []
