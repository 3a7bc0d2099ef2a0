from __future__ import annotations

import copy
import pickle
import re
import string
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda import HMM, Dag, DataError, Sequence, Template, Tree, read
from fuda.data.observations import Kind
from fuda.data.template_encoding import TemplateEncoder
from fuda.features.expressions import Expression

CHUNKING = """
# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

U10:%x[-1,1]/%x[0,1]/%x[1,1]

# Bigram
B
"""
WAPITI = r"""
*
U:wrd-1 L=%X[-1,0]
U:wrd-1 X=%X[ 0,0]
U:wrd-2 L=%X[-1,0]/%X[ 0,0]
U:Pre-2 X=%m[ 0,0,"^.?.?"]
U:Suf-2 X=%m[ 0,0,".?.?$"]
U:Caps? L=%t[-1,0,"\u"]
U:Caps? X=%t[ 0,0,"\u"]
U:BCaps? X=%t[0,0,"^\u"]   # begins with a capital
"""


def expanded(template: Template, sentences) -> list[list[list[str]]]:
    """The texts that the encoder gives, by line of the label channels, sentence by sentence."""
    encoder = TemplateEncoder(template)
    encoded = encoder.fit([Sequence(s) for s in sentences])
    lines = []
    for number, channel in enumerate(encoded.channels):
        names, matrix = encoder.feature_names(number), encoded.tables[channel.table].matrix
        texts = [names[matrix[row].indices[0]] for row in channel.rows]
        lines.append([part.tolist() for part in encoded.corpus.split(np.array(texts, dtype=object))])
    return lines


def naive(line: str, sentence, position: int) -> str:
    """A line at a position as CRF++ expands it: %x[row,col] by cells, or marks past the ends."""

    def cell(match):
        at, column = position + int(match[1]), int(match[2])
        if at < 0:
            return f"_B{at}"
        if at >= len(sentence):
            return f"_B+{at - len(sentence) + 1}"
        return sentence[at][column]

    return re.sub(r"%x\[(-?\d+),(\d+)\]", cell, line)


CELLS = st.text(st.sampled_from("aB1é/:%#_-\u2028"), min_size=1, max_size=3)
MACROS = st.builds("%x[{},{}]".format, st.integers(-4, 4), st.integers(0, 1))
SEPARATORS = st.sampled_from(["", "/", "|", " ", "-#", ":"])


@given(
    st.lists(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5), min_size=1, max_size=3),
    st.lists(st.lists(st.tuples(SEPARATORS, MACROS), max_size=3), min_size=1, max_size=4),
)
def test_expansion_is_that_of_crfpp(sentences, parts):
    lines = [f"U{i:02}:" + "".join(a + b for a, b in line) for i, line in enumerate(parts)]
    texts = expanded(Template("\n".join([*lines, "B"])), sentences)
    assert texts == [[[naive(line, s, t) for t in range(len(s))] for s in sentences] for line in lines]


def test_the_chunking_template_of_crfpp():
    template = Template(CHUNKING)
    assert [line.name for line in template.lines] == ["U00", "U01", "U02", "U03", "U04", "U05", "U06", "U10"]
    assert repr(template) == "Template('template', 8 lines)"
    texts = expanded(template, [[("He", "PRP"), ("reckons", "VBZ")]])
    assert [line[0] for line in texts] == [
        ["U00:_B-2", "U00:_B-1"],
        ["U01:_B-1", "U01:He"],
        ["U02:He", "U02:reckons"],
        ["U03:reckons", "U03:_B+1"],
        ["U04:_B+1", "U04:_B+2"],
        ["U05:_B-1/He", "U05:He/reckons"],
        ["U06:He/reckons", "U06:reckons/_B+1"],
        ["U10:_B-1/PRP/VBZ", "U10:PRP/VBZ/_B+1"],
    ]


def test_patterns_as_wapiti_ships_them():
    template = Template(WAPITI)
    assert [line.name for line in template.lines][:3] == ["*", "U:wrd-1 L", "U:wrd-1 X"]
    assert not any(line.for_pairs for line in template.lines)
    texts = expanded(template, [["Ana", "in", "LIMA"]])
    assert [line[0] for line in texts] == [
        ["*", "*", "*"],
        ["U:wrd-1 L=_b-1", "U:wrd-1 L=ana", "U:wrd-1 L=in"],
        ["U:wrd-1 X=ana", "U:wrd-1 X=in", "U:wrd-1 X=lima"],
        ["U:wrd-2 L=_b-1/ana", "U:wrd-2 L=ana/in", "U:wrd-2 L=in/lima"],
        ["U:Pre-2 X=An", "U:Pre-2 X=in", "U:Pre-2 X=LI"],
        ["U:Suf-2 X=na", "U:Suf-2 X=in", "U:Suf-2 X=MA"],
        ["U:Caps? L=false", "U:Caps? L=true", "U:Caps? L=false"],
        ["U:Caps? X=true", "U:Caps? X=false", "U:Caps? X=true"],
        ["U:BCaps? X=true", "U:BCaps? X=false", "U:BCaps? X=true"],
    ]


def matches_one(item: str, character: str) -> bool:
    tests = {
        "a": str.isalpha,
        "d": str.isdigit,
        "l": str.islower,
        "p": lambda c: c in string.punctuation,
        "s": str.isspace,
        "u": str.isupper,
        "w": str.isalnum,
    }
    if item == ".":
        return True
    if len(item) == 2 and item[1].lower() in tests:
        return tests[item[1].lower()](character) == item[1].islower()
    return character == item[-1]


def match_here(items: list[str], at_end: bool, text: str) -> int | None:
    """The length of the match at the start of the text: ? takes one if possible, * the fewest."""
    if not items:
        return 0 if not at_end or not text else None
    repeated = items[1] if len(items) > 1 and items[1] in ("?", "*") else ""
    if repeated == "?":
        counts = [1, 0]
    elif repeated == "*":
        counts = list(range(len(text) + 1))
    else:
        counts = [1]
    for count in counts:
        if len(text) >= count and all(matches_one(items[0], c) for c in text[:count]):
            rest = match_here(items[1 + len(repeated) :], at_end, text[count:])
            if rest is not None:
                return count + rest
    return None


def naive_match(expression: str, text: str) -> str | None:
    items = re.findall(r"\\.|[^\\]", expression)
    start, end = items[:1] == ["^"], items[-1:] == ["$"]
    items = items[start : len(items) - end]
    for at in range(1 if start else len(text) + 1):
        length = match_here(items, end, text[at:])
        if length is not None:
            return text[at : at + length]
    return None


ATOMS = st.sampled_from([".", "a", "B", "-", "_", r"\a", r"\d", r"\l", r"\p", r"\u", r"\w", r"\A", r"\U"])
ITEMS = st.tuples(ATOMS, st.sampled_from(["", "", "?", "*"])).map("".join)


@given(
    st.sampled_from(["", "^"]),
    st.lists(ITEMS, min_size=1, max_size=4).map("".join),
    st.sampled_from(["", "$"]),
    st.lists(st.text(st.sampled_from("abBC1-_."), min_size=1, max_size=5), min_size=1, max_size=5),
)
def test_expressions_are_those_of_wapiti(start, inner, end, words):
    expression = start + inner + end
    template = Template(f'U0:%m[0,0,"{expression}"]\nU1:%t[0,0,"{expression}"]\nU2:%M[0,0,"{expression}"]\nB')
    parts, tests, lower = (line[0] for line in expanded(template, [words]))
    matched = [naive_match(expression, word) for word in words]
    assert parts == [f"U0:{part or ''}" for part in matched]
    assert tests == [f"U1:{'false' if part is None else 'true'}" for part in matched]
    assert lower == [f"U2:{(part or '').lower()}" for part in matched]


PYTHON_CLASSES = {
    r"\a": r"[^\W\d_]",
    r"\l": "[a-z]",
    r"\p": r"(?:[^\w\s]|_)",
    r"\u": "[A-Z]",
    r"\w": r"[^\W_]",
    r"\A": r"(?:(?![^\W\d_]).)",
    r"\U": "[^A-Z]",
}


@given(
    st.sampled_from(["", "^"]),
    st.lists(st.tuples(ATOMS, st.sampled_from(["", "?", "*"])), max_size=6),
    st.sampled_from(["", "$"]),
    st.text(st.sampled_from("abBC1-_.é"), max_size=8),
)
@settings(max_examples=80)
def test_expressions_find_what_a_backtracking_search_finds_first(start, items, end, text):
    expression = start + "".join(map("".join, items)) + end
    python = "".join(PYTHON_CLASSES.get(atom, atom) + repeat.replace("*", "*?") for atom, repeat in items)
    match = re.compile((r"\A" if start else "") + python + (r"\Z" if end else ""), re.DOTALL).search(text)
    for search in (Expression(expression).search, Expression(expression)._linear_search):
        assert search(text) == (None if match is None else match.group())


@pytest.mark.parametrize("expression", [".*" * 40 + "b$", "a?" * 40 + "a" * 40 + "b", r"\w*\a*" * 20 + "-"])
def test_expressions_take_linear_time(expression):
    began = time.perf_counter()
    assert Expression(expression).search("a" * 2000) is None
    assert time.perf_counter() - began < 2.0  # a backtracking search would take years


def test_comments_take_linear_time():
    began = time.perf_counter()
    line = "U0:%x[0,0]" + " #" * 100_000
    assert Template(line + "\nB").lines[0].texts == ["U0:", ""]
    with pytest.raises(DataError, match="'%' is not supported"):
        Template(line + "%\nB")
    assert time.perf_counter() - began < 2.0


@pytest.mark.parametrize(
    ("expression", "cell", "part"),
    [
        ("a*", "aaa", ""),
        ("a*b", "aab", "aab"),
        ("a?", "aaa", "a"),
        (r"\*", "a*b", "*"),
        (r"\.", "a.b", "."),
        (r"\"", 'a"b', '"'),
        ("a^b", "a^b", "a^b"),
        ("a$b", "a$b", "a$b"),
        (r"\p", "a_b", "_"),
        (r"\s", "a b", " "),
        (r"\D\D", "1ab", "ab"),
        ("(.)+", "(.)+", "(.)+"),
        ("", "abc", ""),
        (".$", "ab\n", "\n"),
    ],
)
def test_expressions(expression, cell, part):
    assert expanded(Template(f'U:%m[0,0,"{expression}"]\nB'), [[cell]]) == [[[f"U:{part}"]]]


def test_pairs_and_both():
    template = Template("U0:%x[0,0]\nB1:%x[0,0]\n*2:%x[-1,0]\nB")
    encoder = TemplateEncoder(template)
    encoded = encoder.fit([Sequence(["a", "b"])])
    assert [c.name for c in encoded.channels] == encoder.channel_names() == ["U0", "*2"]
    assert [c.name for c in encoded.edge_channels] == encoder.edge_channel_names() == ["B1", "*2"]
    assert encoder.feature_names(1) == ["*2:a", "*2:_B-1"]
    assert encoder.feature_count(1) == 2
    assert encoded.edge_channels[1].rows.tolist() == encoded.channels[1].rows.tolist()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "no feature line"),
        ("# nothing\n\n", None, "no feature line"),
        ("B", None, "no feature line"),
        ("U0:%x[0,0]", 1, "add a line B"),
        ("U0:%x[0,0]\n\n", 3, "add a line B"),
        ("X0:%x[0,0]\nB", 1, "begins with U (label), B (pair of labels) or * (both)"),
        ("U0:%x[0,0]\nlowercase words\nB", 2, "'lowercase words': a line begins with U"),
        ("B\n%x[0,0]", 2, "begins with U"),
        ("U0:%x[0]\nB", 1, "'%x[0]' is not supported; write %x[row,col]"),
        ("U0:%x[0,0\nB", 1, "is not supported"),
        ("U0:%x[@0,0]\nB", 1, "'%x[@0,0]' is not supported"),
        ("U0:%x[0,-1]\nB", 1, "is not supported"),
        ("U0:%y[0,0]\nB", 1, "'%y[0,0]' is not supported"),
        ("U0:50%\nB", 1, "'%' is not supported"),
        ("U0:%%x[0,0]\nB", 1, "'%' is not supported"),
        ('U0:%x[0,0,"a"]\nB', 1, "'%x[0,0,\"a\"]' is not supported"),
        ("U0:%t[0,0]\nB", 1, "'%t[0,0]' is not supported"),
        ("U0:%M[0,0]\nB", 1, "'%M[0,0]' is not supported"),
        ('B\nU0:%m[0,0,"*a"]', 2, "repeats nothing at *"),
        ('U0:%m[0,0,"a**"]\nB', 1, "repeats nothing at *"),
        ('U0:%t[0,0,"^?"]\nB', 1, "repeats nothing at ?"),
        ("U0:%x[101,0]\nB", 1, "give a row from −100 to 100"),
        ("U0:%x[-101,0]\nB", 1, "give a row from −100 to 100"),
        (f"U0:%x[{'9' * 5000},0]\nB", 1, "give a row from −100 to 100"),
        (f"U0:%x[0,{'9' * 5000}]\nB", 1, "column 999"),
        ("U0:%x[0,0]\nU0:%x[1,0]\nB", 2, "has the text of line 1"),
        ("U%x[0,0]\nU%x[1,0]\nB", 2, "give the lines different names"),
        ("U0:%x[0,0]/%x[1,0]\n\nU0:%x[1,0]/%x[2,0]\nB", 3, "has the text of line 1"),
    ],
)
def test_what_cannot_be_expressed_is_refused_by_line(text, line, words):
    with pytest.raises(DataError) as caught:
        Template(text, "my.template")
    assert str(caught.value).startswith("my.template:" if line is None else f"my.template:{line}: ")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 250


def test_lines_that_share_a_prefix_keep_names_apart():
    template = Template("U:%x[0,0]\nU:%x[0,0]/%x[1,0]\nB")
    assert [line.name for line in template.lines] == ["U", "U:%x[0,0]/%x[1,0]"]


def test_comments_and_line_ends():
    template = Template("# head\r\n  # indented\r\nU0:%x[0,0] # a word\r\nU1:#%x[0,0]\r\n\r\nB\r\n")
    assert [line.texts for line in template.lines] == [["U0:", ""], ["U1:#", ""]]
    assert [line.number for line in template.lines] == [3, 4]


def test_read_names_the_file_in_errors(tmp_path):
    path = tmp_path / "a.template"
    path.write_text("U0:%x[0,0]\nB\n")
    assert Template.read(path) == Template("U0:%x[0,0]\nB\n")
    path.write_text("U0:%x[0,0]\nQ\nB\n")
    with pytest.raises(DataError, match=re.escape(f"{path}:2: 'Q'")):
        Template.read(path)
    with pytest.raises(DataError, match="cannot be read"):
        Template.read(tmp_path / "none")


def test_templates_are_values():
    template = Template(CHUNKING, "chunking")
    for other in (pickle.loads(pickle.dumps(template)), copy.deepcopy(template)):
        assert other == template
        assert hash(other) == hash(template)
        assert other.name == "chunking"
    assert template != Template("U0:%x[0,0]\nB")
    assert template != CHUNKING


@pytest.mark.parametrize(
    ("structure", "words"),
    [
        (Tree(["a"], [-1]), "structure 0 is a tree, but a template needs a sequence"),
        (Dag(["a"], []), "structure 0 is a dag"),
        (
            Sequence([{"f": 1.0}]),
            "structure 0, node 0 is a dict or list of features, but a template needs columns",
        ),
        (Sequence([[1.0]]), "is a vector of 1 numbers"),
        (Sequence([7]), "is an integer id"),
        (Sequence(["a"]), "template:2: uses column 1 (from 0), but observations have 1"),
    ],
)
def test_structures_that_a_template_does_not_read(structure, words):
    encoder = TemplateEncoder(Template("U0:%x[0,0]\nU1:%x[0,1]\nB"))
    with pytest.raises(DataError) as caught:
        encoder.fit([structure])
    assert words in str(caught.value)


def test_integer_columns_are_text():
    assert expanded(Template("U:%x[0,1]\nB"), [[("a", 1), ("a", "1")]]) == [[["U:1", "U:1"]]]


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=3))
def test_restored_encoders_encode_alike(sentences):
    X = [Sequence(s) for s in sentences]
    template = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB2:%x[1,0]\nB")
    encoder, other = TemplateEncoder(template), TemplateEncoder(template)
    encoder.fit(X)
    other.restore(encoder.vocabularies(), encoder.observations)
    new = [*X, Sequence(["a", "z", "b"])]
    a, b = encoder.encode(new), other.encode(new)
    for one, two in zip(a.tables, b.tables, strict=True):
        assert (one.matrix != two.matrix).nnz == 0
        assert one.unknown.tolist() == two.unknown.tolist()
    words = {word for s in sentences for word in s}
    new_words = [word for s in new for word in s.observations if word not in words]
    assert a.tables[0].unknown[a.channels[0].rows].sum() == len(new_words)


def test_new_texts_are_unknown():
    encoder = TemplateEncoder(Template("U0:%x[0,0]\nB"))
    encoder.fit([Sequence(["a"])])
    encoded = encoder.encode([Sequence(["b", "a"])])
    table, rows = encoded.tables[0], encoded.channels[0].rows
    assert table.matrix[rows].toarray().tolist() == [[0.0], [1.0]]
    assert table.unknown[rows].tolist() == [1.0, 0.0]


def test_a_template_in_a_model():
    X, y = [[("a", "N"), ("b", "V")], [("b", "N")]], [["1", "2"], ["1"]]
    model = HMM(features=Template("U0:%x[0,0]\nU1:%x[-1,1]\nB")).fit(X, y)
    assert model.predict(X).tolist() == y
    with pytest.raises(DataError, match="template line 'B1': HMM has no features of label pairs"):
        HMM(features=Template("U0:%x[0,0]\nB1:%x[0,0]\nB")).fit(X, y)


@pytest.mark.parametrize("kind", [Kind("text"), Kind("columns", 2)])
def test_a_stored_template_of_more_columns_than_observations_have(kind):
    with pytest.raises(DataError, match=f"uses column 5 .from 0., but observations have {kind.size or 1}"):
        TemplateEncoder(Template("U0:%x[0,5]\nB")).restore([["a"]], kind)


@pytest.mark.slow
def test_a_real_corpus(corpora):
    X = read(corpora / "conll2002" / "esp.train").X
    encoder = TemplateEncoder(Template(CHUNKING))
    encoded = encoder.fit(X)
    assert len(encoded.channels) == 8
    assert encoder.feature_count(2) == 26_099
