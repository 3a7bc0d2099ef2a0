"""Strategies that the tests of all formats share: odd tokens, labels and structures."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st

from fuda.data.structures import Dag, Sequence, Tree
from fuda.errors import DataError
from fuda.formats import Dataset, Record

PROPERTY = settings(max_examples=80, deadline=None, derandomize=True)
FEWER = settings(PROPERTY, max_examples=40)  # for what takes longer

ODD = [
    *(
        "#",
        "# a = b",
        "#hash",
        "-DOCSTART-",
        "-DOCSTART-x",
        "-DOCSTART- x",
        "_",
        "-",
        ",",
        ".",
        "|",
        "=",
        "O",
    ),
    *(
        '"',
        "''",
        "\\",
        "\\n",
        "\\t",
        "{",
        "[1]",
        "null",
        "1",
        "1-2",
        "5.1",
        ">p",
        "New York",
        " a",
        "a ",
        " ",
    ),
    *(
        "a\u2028b",
        "\u2029",
        "a\x85b",
        "a\x0bb",
        "\x0c",
        "\x1c",
        "\x1e",
        "\x00",
        "\x7f",
        "\ufeff",
        "\u200b",
        "\u00a0",
    ),
    *(
        "e\u0301",
        "\u0301",
        "😀",
        "👩\u200d👩\u200d👧",
        "שלום",
        "\u202eabc",
        "ﬁ",
        "a\r",
        "\r",
        "a\rb",
        "a\tb",
        "a\nb",
        "",
    ),
]
tokens = st.sampled_from(ODD) | st.text(max_size=4) | st.sampled_from(["Ana", "vive", "en", "Lima"])
plain_tokens = st.sampled_from(
    ["Ana", "vive", "#", "#x", "_", "e\u0301", "a\u2028b", "😀", "\x85", "\x1c", '"', "\\"]
)
labels = st.none() | st.sampled_from(["O", "B-PER", "I-PER", "é", "a\u2028b", "#"])


@st.composite
def forests(draw, size: int) -> list[int]:
    """Heads of a random forest whose nodes stand in any order."""
    order = draw(st.permutations(range(size)))
    heads = [-1] * size
    for position, node in enumerate(order):
        up = draw(st.integers(-1, position - 1))
        heads[node] = -1 if up < 0 else order[up]
    return heads


@st.composite
def dag_edges(draw, size: int) -> list[tuple[int, int]]:
    order = draw(st.permutations(range(size)))
    pairs = [(order[i], order[j]) for j in range(size) for i in range(j)]
    return draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []


@st.composite
def structures_of(draw, observations, shape: str):
    nodes = draw(st.lists(observations, min_size=1, max_size=5))
    if shape == "sequence":
        return Sequence(nodes)
    if shape == "tree":
        return Tree(nodes, draw(forests(len(nodes))))
    return Dag(nodes, draw(dag_edges(len(nodes))))


@st.composite
def datasets(
    draw, observations, labels=labels, shape: str = "sequence", labelled: bool | None = None
) -> Dataset:
    """Records of one shape; all with labels or none."""
    structures = draw(st.lists(structures_of(observations, shape), min_size=1, max_size=4))
    if labelled is None:
        labelled = draw(st.booleans())
    return Dataset(
        [
            Record(x, draw(st.lists(labels, min_size=len(x), max_size=len(x))) if labelled else None)
            for x in structures
        ]
    )


def assert_same(actual: Dataset, expected: Dataset) -> None:
    """Equal structures and labels."""
    assert len(actual) == len(expected)
    for a, b in zip(actual.records, expected.records, strict=True):
        assert a.structure == b.structure
        assert a.labels == b.labels


def attempt(write: Callable[..., str], *args: object, **options: object) -> tuple[str | None, str]:
    """What a writer gives: its text, or None and the message by which it refuses."""
    try:
        return write(*args, **options), ""
    except DataError as error:
        return None, str(error)
