"""Where a value stands in a row of CoNLL-U: in a column, or under a key of FEATS or MISC."""

from __future__ import annotations

from dataclasses import dataclass

from fuda.errors import DataError, place, short
from fuda.formats.dataset import Label, label_text

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
NAMEABLE = ("FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "DEPREL")
EMPTY = "_"


@dataclass(frozen=True, slots=True)
class Field:
    """A place in a row that holds a value: a column, or a key of FEATS or MISC."""

    column: int
    key: str | None = None

    def get(self, cells: list[str]) -> str | None:
        """The value; None where the key is absent."""
        cell = cells[self.column]
        if self.key is None:
            return cell
        if self.key not in cell:
            return None
        values = [value for key, _, value in _items(cell) if key == self.key]
        if len(values) > 1:
            raise DataError(
                f"{COLUMNS[self.column]} has the key {self.key} twice: {short(cell)}; keep it once"
            )
        if values == [""]:
            raise DataError(
                f"{COLUMNS[self.column]} has the key {self.key} without a value: {short(cell)}; give one"
            )
        return values[0] if values else None

    def put(self, cells: list[str], value: str | None) -> None:
        """Replace the value in its place; None takes the key out."""
        if self.key is None:
            cells[self.column] = EMPTY if value is None else value
            return
        items = _items(cells[self.column])
        at = next((i for i, (key, _, _) in enumerate(items) if key == self.key), len(items))
        items[at : at + 1] = [] if value is None else [(self.key, "=", value)]
        cells[self.column] = "|".join(map("".join, items)) or EMPTY

    def overlaps(self, other: Field) -> bool:
        return self.column == other.column and (None in (self.key, other.key) or self.key == other.key)


@dataclass(frozen=True, slots=True)
class LabelField:
    """Where labels stand. A word without the key has the label `absent`; None is a label not known."""

    field: Field
    absent: str | None

    def __post_init__(self) -> None:
        if self.absent is not None and (not isinstance(self.absent, str) or not self.absent):
            raise DataError(
                f"absent={self.absent!r}: give the label of words without the key as text, or None"
            )

    def get(self, cells: list[str]) -> Label:
        value = self.field.get(cells)
        if value is None:
            return self.absent
        return None if value == EMPTY else value

    def put(self, cells: list[str], label: Label, index: int, node: int) -> None:
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


def named(name: str, option: str) -> Field:
    """The field that the user calls `name`, given as `option`."""
    if isinstance(name, str):
        column, colon, key = name.partition(":")
        if not colon and column in NAMEABLE:
            return Field(COLUMNS.index(column))
        if column in ("FEATS", "MISC") and key and not set(key) & set("|=\t\r\n"):
            return Field(COLUMNS.index(column), key)
    raise DataError(
        f"{option}={name!r}: choose one of {', '.join(NAMEABLE)}, or a key such as MISC:NE or FEATS:Case"
    )


def check_value(value: str, field: Field, index: int, node: int) -> None:
    """Refuse a value that would not be read back from its field."""
    if not value or any(c in value for c in ("\t\n" if field.key is None else "\t\n|")):
        raise DataError(
            f"{place(index, node)}: {short(value)} does not fit into {COLUMNS[field.column]}: it is empty, "
            "or holds a tab, a line end or, under a key, a bar; write jsonl"
        )


def _items(cell: str) -> list[tuple[str, str, str]]:
    """The parts of FEATS or MISC as (key, "=" or "", value)."""
    return [] if cell == EMPTY else [item.partition("=") for item in cell.split("|")]
