"""Fields of a row of CoNLL-U: a column, or a key of FEATS or MISC."""

from __future__ import annotations

from dataclasses import dataclass

from fuda.errors import DataError, place, short
from fuda.formats.dataset import Label, label_text

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
EMPTY = "_"
_STRUCTURAL = ("ID", "HEAD", "DEPS", "MISC", "PHEAD")  # columns that are neither observed nor labels
_KEYED = ("FEATS", "MISC")


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a file, and whether a word with several heads has several lines."""

    names: tuple[str, ...] = COLUMNS
    repeats: bool = False

    def index(self, name: str) -> int | None:
        """The index of a column, None if no column has that name."""
        return self.names.index(name) if name in self.names else None

    @property
    def nameable(self) -> list[str]:
        """The columns that can be observed or labels."""
        return [name for name in self.names if name not in _STRUCTURAL]


CONLLU = Layout()


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a key of FEATS or MISC."""

    column: int
    key: str | None = None
    title: str = "MISC"

    def get(self, cells: list[str]) -> str | None:
        """The value in a row; None if the key is absent."""
        cell = cells[self.column]
        if self.key is None:
            return cell
        if self.key not in cell:  # fast: most words have no such key
            return None
        values = [value for key, _, value in _items(cell) if key == self.key]
        where = f"{self.title} has the key {self.key}"
        if len(values) > 1:
            raise DataError(f"{where} twice: {short(cell)}; keep it once")
        if values == [""]:
            raise DataError(f"{where} without a value: {short(cell)}; give one")
        return values[0] if values else None

    def put(self, cells: list[str], value: str | None) -> None:
        """Replace the value in a row; None removes the key."""
        if self.key is None:
            cells[self.column] = EMPTY if value is None else value
            return
        items = _items(cells[self.column])
        position = next((i for i, (key, _, _) in enumerate(items) if key == self.key), len(items))
        items[position : position + 1] = [] if value is None else [(self.key, "=", value)]
        cells[self.column] = "|".join(map("".join, items)) or EMPTY

    def overlaps(self, other: Field) -> bool:
        """Whether one of two fields contains the other."""
        return self.column == other.column and (None in (self.key, other.key) or self.key == other.key)


@dataclass(frozen=True, slots=True)
class LabelField:
    """The field of the labels; `absent` is the label of a word without the key."""

    field: Field
    absent: str | None

    def __post_init__(self) -> None:
        if self.absent is not None and (not isinstance(self.absent, str) or not self.absent):
            raise DataError(f"absent={self.absent!r}: give the label of words without the key, or None")

    def get(self, cells: list[str]) -> Label:
        """The label in a row."""
        value = self.field.get(cells)
        return self.absent if value is None else None if value == EMPTY else value

    def put(self, cells: list[str], label: Label, index: int, node: int) -> None:
        """Replace the label in the row of a node."""
        try:
            if label == self.get(cells):
                return
        except DataError as error:
            raise DataError(f"{place(index, node)}: {error}") from None
        if self.field.key is not None and label == self.absent:
            self.field.put(cells, None)
            return
        text = label_text(label, index, node, EMPTY)
        check_value(text, self.field, index, node)
        self.field.put(cells, text)


def parse_field(name: str, option: str, layout: Layout = CONLLU) -> Field:
    """The field of that name, such as ``UPOS`` or ``MISC:NE``, the value of `option`."""
    if isinstance(name, str):
        if name in layout.nameable:
            return Field(layout.names.index(name), None, name)
        column, _, key = name.partition(":")
        where = layout.index(column) if column in _KEYED else None
        if where is not None and key and not set(key) & set("|=\t\r\n"):
            return Field(where, key, column)
    keys = [
        f"{column}:{key}" for column, key in (("MISC", "NE"), ("FEATS", "Case")) if column in layout.names
    ]
    examples = f", or a key such as {' or '.join(keys)}" if keys else ""
    raise DataError(f"{option}={name!r}: choose one of {', '.join(layout.nameable)}{examples}")


def check_value(value: str, field: Field, index: int, node: int) -> None:
    """Refuse a value that would not be read back from its field."""
    if not value or any(c in value for c in ("\t\n" if field.key is None else "\t\n|")):
        raise DataError(
            f"{place(index, node)}: {short(value)} does not fit into {field.title}: it is empty, "
            "or contains a tab, a line break or, under a key, a bar; write jsonl"
        )


def _items(cell: str) -> list[tuple[str, str, str]]:
    """The parts of FEATS or MISC as (key, "=" or "", value)."""
    return [] if cell == EMPTY else [item.partition("=") for item in cell.split("|")]
