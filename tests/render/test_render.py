"""Pages and terminal output: hostile text is text, nothing is loaded, what matters is there."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from fuda import CRF, Dag, DataError, HMPerceptron, MarginalizedPerceptron, Sequence, Tree
from fuda.formats import Dataset, Record
from fuda.kernels import Polynomial
from fuda.metrics import evaluate
from fuda.render import Display, page
from fuda.render.svg import picture
from fuda.render.text import kinds_of, plain

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></svg><b>",
    "&amp;<",
    "'\"`${x}",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202egnp.exe",
    "\ud800",
    "\x00\r\n\t",
    "javascript:alert(1)",
    "[bold]x[/bold]",
    "札" * 50,
]
ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "h1",
        "h2",
        "p",
        "div",
        "span",
        "bdi",
        "b",
        "i",
    ),
    *(
        "mark",
        "table",
        "colgroup",
        "col",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "svg",
        "g",
        "path",
        "rect",
        "text",
    ),
    *("wbr", "details", "summary"),
}
ATTRIBUTES = {
    *("class", "style", "charset", "name", "content", "lang", "xmlns", "role", "width", "height", "viewbox"),
    *("x", "y", "rx", "d", "text-anchor"),
}


class Parsed(HTMLParser):
    """What a browser finds in a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words, self.styles = set(), [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        self.styles += [value for name, value in attrs if name == "style"]
        if tag not in ("meta", "col", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.styles if self.open and self.open[-1] == "style" else self.words).append(data)

    @property
    def text(self):
        return "".join(self.words)


def checked(html):
    """Parse HTML after a check that it loads and runs nothing."""
    html.encode()
    parsed = Parsed(html)
    assert parsed.tags <= ALLOWED
    for style in parsed.styles:
        assert "url(" not in style
        assert "@import" not in style
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    return parsed


def terminal(value, width=80):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(value)
    return console.file.getvalue()


def structures(words):
    chain = [(t, t + 1) for t in range(len(words) - 1)]
    return [
        Sequence(words),
        Tree(words, [-1, *range(len(words) - 1)]),
        Dag(words, [*chain, (0, len(words) - 1)]),
    ]


@pytest.mark.parametrize("number", range(3))
def test_hostile_words_and_labels_are_text(number):
    x = structures(HOSTILE)[number]
    display = Display(
        [x], [HOSTILE], gold=[HOSTILE[::-1]], probabilities=[[0.5] * len(x)], names=[HOSTILE[0]]
    )
    for html in (display._repr_html_(), page(HOSTILE[0], display.html()), display.one(0, 3, 0, 5)):
        parsed = checked(html)
        assert "script" not in parsed.tags
        assert "<script>" in parsed.text
    shown = terminal(display)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert "[bold]x[/bold]" in shown


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=5)), min_size=1, max_size=6
    )
)
def test_any_text_can_be_shown(nodes):
    words, labels = map(list, zip(*nodes, strict=True))
    for x in structures(words) if len(words) > 2 else [Sequence(words)]:
        checked(Display([x], [labels], gold=[labels[::-1]])._repr_html_())
        terminal(Display([x], [labels])).encode()


def test_explanations_and_reports_of_hostile_text():
    X, y = [HOSTILE, HOSTILE[::-1]], [[*HOSTILE[1:], "O"], ["O", *HOSTILE[1:]]]
    models = [CRF(), HMPerceptron(Polynomial(2)), MarginalizedPerceptron(epochs=2)]
    for model in models:
        model.fit(X, y)
        for node in range(3):
            explanation = model.explain(X[0], node)
            text = checked(explanation._repr_html_()).text
            assert plain(explanation.chosen.label) in text
            assert "\x1b" not in terminal(explanation)
    text = checked(evaluate([HOSTILE], [HOSTILE[::-1]])._repr_html_()).text
    assert "<script>" in text


def test_segments_are_spans_with_probabilities_and_gold():
    words = ["Ana", "Paz", "in", "Lima", "now"]
    labels = ["B-PER", "I-PER", "O", "B-LOC", "O"]
    gold = ["B-PER", "B-PER", "O", "B-ORG", "B-ORG"]
    html = Display([words], [labels], gold=[gold], probabilities=[[0.91, 0.8, 0.99, 0.55, 0.62]]).html()
    text = checked(html).text
    assert "PER91" in text
    assert html.count("wrong") == 3
    assert "B-PER" in text  # where only the bounds differ, labels are given in full
    shown = terminal(Display([words], [labels], gold=[gold]))
    assert "Lima/LOC ≠ ORG" in shown
    assert "Paz/I-PER ≠ B-PER" in shown
    assert "Ana Paz/PER in Lima/LOC now" in terminal(Display([words], [labels]))


def test_a_picture_has_an_arc_for_every_edge():
    dag = Dag(list("abcd"), [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)])
    svg = picture(dag, list("NVNV"), None, None, kinds_of([list("NV")]))
    root = ET.fromstring(svg)
    heights = {
        path.get("d").split("L")[1].split("C")[0].split()[1]
        for path in root.iter()
        if path.get("class") == "arc"
    }
    assert len(heights) >= 4  # arcs that cross are drawn at different heights
    assert sum(path.get("class") == "arc" for path in root.iter("{http://www.w3.org/2000/svg}path")) == 5
    assert [t.text for t in root.iter("{http://www.w3.org/2000/svg}text") if t.get("class") is None] == list(
        "abcd"
    )


def test_trees_and_dags_in_a_terminal():
    tree = Tree(["eats", "Ana", "fish"], [-1, 0, 0])
    shown = terminal(Display([tree], [["V", "N", "N"]]))
    assert "eats/V" in shown
    assert "├── Ana/N" in shown
    dag = Dag(list("abc"), [(0, 2), (1, 2)])
    assert "c/N  ← a, b" in terminal(Display([dag], [list("NVN")]))


def test_large_structures_and_many_of_them_stay_small():
    tree = Tree([str(i) for i in range(5000)], [-1, *range(4999)])
    assert "<svg" not in Display([tree]).html()
    dense = Dag([str(i) for i in range(200)], [(i, j) for j in range(200) for i in range(j)])
    assert "<svg" not in Display([dense]).html()
    many = Display([["a"]] * 50)
    assert many.html().count('class="item"') == 20
    assert "and 30 other structures" in checked(many.html()).text
    assert Display([["a"]] * 50, limit=None).html().count('class="item"') == 50


def test_lists_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="labels: 1 lists for 2 structures"):
        Display([["a"], ["b"]], [["N"]])
    with pytest.raises(DataError, match="structure 0: 2 gold for 1 nodes"):
        Display([["a"]], [["N"]], gold=[["N", "V"]])


def test_datasets_and_records_show_themselves():
    data = Dataset([Record(Sequence(["Ana", "sleeps"]), ["N", "V"]), Record(Sequence(["Bo"]), ["N"])])
    assert repr(data) == "Dataset(2 sequences, 3 nodes, 2 labels)"
    assert "sleeps" in checked(data._repr_html_()).text
    assert "Ana/N sleeps/V" in terminal(data)
    assert "Bo" in checked(data.records[1]._repr_html_()).text
    assert "Bo" in checked(Record(Sequence(["Bo"]))._repr_html_()).text
    some = Dataset([Record(Sequence(["Bo"])), Record(Sequence(["Ana"]), ["N"])])
    assert repr(some) == "Dataset(2 sequences, 2 nodes, 1 label)"
    checked(some._repr_html_())
    assert repr(Dataset([])) == "Dataset(0 structures, 0 nodes, 0 labels)"
    checked(Dataset([])._repr_html_())


def test_reports_show_scores_and_confusion():
    report = evaluate([["B-PER", "O", None, "B-LOC"]], [["B-PER", "O", "O", "O"]])
    text = checked(report._repr_html_()).text
    assert "3 nodes of 1 structures, 66.67 % with the right label" in text
    assert "Confusion" in text
    assert "whose label is not known" in text
