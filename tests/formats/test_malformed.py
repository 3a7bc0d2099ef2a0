"""Every malformed input is refused with its file, its line where there is one, and a remedy."""

from __future__ import annotations

import re

import pytest

from fuda.errors import DataError
from fuda.formats import FORMATS

CONLL = [
    ("", {}, None, "no tokens"),
    ("\n \t\n", {}, None, "no tokens"),
    ("-DOCSTART- O\n\n", {}, None, "no tokens"),
    ("# sent_id = 1\n", {}, None, "no tokens"),
    ("a\nb\n", {}, None, "one column only; .*label=None"),
    ("a NN O\nb O\n", {}, 2, r"2 columns where 3 are expected \(line 1 has 3.*same columns"),
    ("a O\nb\n", {}, 2, r"1 column where 2 are expected .*blank line"),
    ("# c\n\na O\n\nb c d O\n", {}, 5, r"4 columns where 2 .*line 3 has 2"),
    ("a\tO\nb O\n", {}, 2, "1 column where 2 .*separated by tabs"),
    ("Ana lives in Lima .\nBo sleeps .\nEva .\n", {}, 2, "3 columns .*running text.*`fuda label`.*='text'"),
    ("a O\n# a comment inside\nb O\n", {}, 2, "4 columns .*comment comes before"),
    ("a\t\tO\n", {}, 1, "column 2 is empty.*fill it"),
    ("a\tO\nb\t\n", {}, 2, "column 2 is empty"),
    ("a\tO\n\tO\n", {}, 2, "column 1 is empty"),
    ("a,O\n,O\n", {"separator": ","}, 2, "column 1 is empty"),
    ("a  O\n", {"separator": " "}, 1, "column 2 is empty"),
    ("a b O\n", {"ragged": True}, None, "name the columns observed and that of the label, too"),
    ("a O x\nb\n", {"ragged": True, "columns": 1, "label": 2}, 2, "1 column where 3"),
    ("a\tO\nb\t\tx\n", {"ragged": True, "columns": 1, "label": 2}, 2, "column 2 is empty"),
    ("a O\n", {"separator": "||"}, None, "one character"),
    ("a O\n", {"separator": ""}, None, "one character"),
    ("a O\n", {"columns": 3}, None, "count columns from 1 to 2"),
    ("a O\n", {"columns": 0}, None, "count columns from 1 to 2"),
    ("a O\n", {"columns": [1, -1]}, None, "count columns from 1 to 2"),
    ("a O\n", {"columns": []}, None, "give a column number"),
    ("a O\n", {"columns": "1"}, None, "give a column number"),
    ("a O\n", {"columns": [1, 2]}, None, "column 2 is both observed and the label"),
    ("a O\n", {"label": 3}, None, "count columns from 1 to 2"),
    ("a O\n", {"label": 0}, None, "count columns from 1 to 2"),
    ("a O\n", {"label": "2"}, None, "count columns from 1 to 2"),
    ("a O\rb O\r", {}, 1, "carriage return alone.*tr"),
]


def row(line: str) -> str:
    return "\t".join([*line.split(" "), *"_" * 10][:10]) + "\n"


ROOT = row("1 a _ X _ _ 0 root 0:root")
CONLLU = [
    ("", {}, None, "no sentences"),
    ("# sent_id = 1\n\n", {}, None, "no sentences"),
    ("1\ta\n", {}, 1, "2 columns where 10 are expected.*single tabs"),
    ("1 a _ X _ _ 0 root _ _\n", {}, 1, "1 columns where 10"),
    (ROOT[:-1] + "\tmore\n", {}, 1, "11 columns where 10"),
    (ROOT + "# late\n" + row("2 b _ X _ _ 1"), {}, 2, "comment inside a sentence.*move it"),
    (row("1 a  X _ _ 0"), {}, 1, "LEMMA is empty.*write _"),
    (row("2 a _ X _ _ 0"), {}, 1, "'2' was found where 1 is expected"),
    (ROOT + "\n" + ROOT + row("3 b _ X _ _ 1"), {}, 4, "'3' was found where 2 is expected"),
    (row("x a _ X _ _ 0"), {}, 1, "'x' was found where 1"),
    (row("01 a _ X _ _ 0"), {}, 1, "'01' was found where 1"),
    (row("2-3 ab") + ROOT, {}, 1, "range 2-3 comes before word 1"),
    (row("1-3 ab") + ROOT + row("2-3 b") + row("2 c _ X _ _ 1"), {}, 3, "without overlap"),
    (row("1-2 ab") + ROOT, {}, 1, "range ends at 2, but the sentence has 1 words.*correct"),
    (ROOT + row("2.1 e"), {}, 2, r"empty node 2.1 was found where 1.1 is expected; renumber"),
    (row("0.1 e _ X _ _ _ _ 0:root"), {}, 1, "without words; remove"),
    (row("1 a _ X _ _ _"), {}, 1, "HEAD is '_', .*graph='sequence'"),
    (row("1 a _ X _ _ x"), {}, 1, "HEAD is 'x'"),
    (row("1 a _ X _ _ -1"), {}, 1, "HEAD is '-1'"),
    (row("1 a _ X _ _ 1.1"), {}, 1, "HEAD is '1.1'"),
    (ROOT + row("2 b _ X _ _ 7"), {}, 2, "HEAD is 7, but the sentence has 2 words"),
    (row("1 a _ X _ _ 1"), {}, 1, "sentence without sent_id: .*own parent.*cyclic='skip'"),
    (row("1 a _ X _ _ 0"), {"graph": "dag"}, 1, "DEPS is _: .*graph='tree'"),
    (row("1 a _ X _ _ 0 root 0"), {"graph": "dag"}, 1, "DEPS contains '0'; write each parent as ID:relation"),
    (row("1 a _ X _ _ 0 root 0:"), {"graph": "dag"}, 1, "DEPS contains '0:'"),
    (row("1 a _ X _ _ 0 root 2:x"), {"graph": "dag"}, 1, "DEPS names the node '2'"),
    (row("1 a _ X _ _ 0 root 1:x"), {"graph": "dag"}, 1, "self loop.*cyclic='skip'"),
    (row("1 a _ X _ _ 0 root _ NE=A|NE=B"), {"label": "MISC:NE"}, 1, "key NE twice.*keep it once"),
    (row("1 a _ X _ _ 0 root _ NE="), {"label": "MISC:NE"}, 1, "NE without a value"),
    (row("1 a _ X _ _ 0 root _ NE"), {"label": "MISC:NE"}, 1, "NE without a value"),
    (row("1 a _ X _ K 0"), {"columns": "FEATS:K"}, 1, "K without a value"),
    (ROOT, {"label": "NE"}, None, "label='NE': choose one of FORM, .*MISC:NE"),
    (ROOT, {"label": "MISC"}, None, "choose one of"),
    (ROOT, {"label": "MISC:a=b"}, None, "choose one of"),
    (ROOT, {"label": 4}, None, "choose one of"),
    (ROOT, {"columns": "HEAD"}, None, "columns='HEAD': choose one of"),
    (ROOT, {"columns": []}, None, "at least one"),
    (ROOT, {"columns": ["FORM", "FORM"]}, None, "FORM is named twice"),
    (ROOT, {"columns": ["FORM", "UPOS"]}, None, "UPOS is both observed and the label"),
    (ROOT, {"graph": "graph"}, None, "choose one of tree, dag, sequence"),
    (ROOT, {"cyclic": "ignore"}, None, "choose one of error, skip, break"),
]

FASTA = [
    ("", {}, None, "no records"),
    ("\n\n", {}, None, "no records"),
    ("ACGT\n>a\nA\n", {}, 1, "text before the first header.*>name"),
    ("; old comment\n>a\nA\n", {}, 1, "text before the first header"),
    (">a\n>b\nA\n", {}, 1, "no residues after '>a'; remove"),
    (">a\nA\n>b\n\n", {}, 3, "no residues after '>b'"),
    (">a\n#\n", {}, 2, "follows no residue"),
    (">a\nA##C\n", {}, 2, "follows no residue.*remove"),
    (">a\nA#\n#C\n", {}, 3, "follows no residue"),
    (">a\nK##C\n", {"sites": "S"}, 2, "follows no residue"),
    (">a\nAC1T\n", {}, 2, "column 3: '1' is not a residue"),
    (">a\nAC T\n", {}, 2, "column 3: ' ' is not a residue"),
    (">a\nACé\n", {}, 2, "column 3: 'é' is not a residue"),
    (">a\nAC\nA#C\n", {"labels": "none"}, 3, "column 2: '#' is not a residue.*labels='marks'"),
    (">a\nACG\nHH\n", {"labels": "lines"}, 3, "2 labels for 3 residues; give one"),
    (">a\nAC\nH H\n", {"labels": "lines"}, 3, "3 labels for 2"),
    (">a\nACG\nH H\n", {"labels": "lines"}, 3, "column 2: ' ' is not a label"),
    (">a\nACG\n", {"labels": "lines"}, 1, r"1 line\(s\) after the header.*two"),
    (">a\nAC\nGT\nHH\nHH\n", {"labels": "lines"}, 1, r"4 line\(s\) after the header"),
    (">a\nAC\nHH\n>b\nGT\nHH\n", {}, None, "two lines of 2 characters; .*labels='lines'.*labels='none'"),
    (">a\nA\n", {"labels": "some"}, None, "choose one of auto, lines, marks, none"),
    (">a\nA\n", {"mark": "A"}, None, "one character that is not a residue"),
    (">a\nA\n", {"mark": "##"}, None, "one character that is not a residue"),
    (">a\nA\n", {"sites": "S", "labels": "lines"}, None, "needs labels='marks'"),
]

GOOD = '{"observations": ["a", "b"]}\n'
JSONL = [
    ("", {}, None, "no records"),
    (GOOD + "not json\n", {}, 2, "not JSON: .*column 1; write one object per line"),
    ('{"observations": ["a"]\n', {}, 1, "not JSON"),
    ('{"observations": ["a"]} {}\n', {}, 1, "not JSON: Extra data"),
    ("[" * 100_000 + "\n", {}, 1, "nested too deeply|not JSON"),
    ('{"observations": [' + "1" * 5000 + "]}\n", {}, 1, "not a usable number"),
    ('["a", "b"]\n', {}, 1, "a record is an object"),
    ("{}\n", {}, 1, '"observations" is missing'),
    ('{"text": "a", "label": []}\n', {}, 1, "is missing.*--format doccano"),
    ('{"text": "a", "spans": []}\n', {}, 1, "is missing.*--format prodigy"),
    ('{"tokens": [{"start": 0}], "text": "a"}\n', {}, 1, "as in Prodigy; pass .*--format prodigy"),
    ('{"tokens": "ab"}\n', {}, 1, "tokens must be an array"),
    ('{"tokens": ["a"], "ner_tags": "X"}\n', {}, 1, "ner_tags must be an array"),
    ('{"tokens": ["a"], "pos": ["X", "Y"]}\n', {"label": "pos"}, 1, "2 labels for 1 observations"),
    ('{"tokens": ["a"]}\n', {"label": 3}, None, "label=3: name the key"),
    ('{"tokens": ["a"], "offsets": [[0, 1]]}\n', {}, 1, "within the string text.*correct"),
    ('{"tokens": ["a"], "text": "a", "offsets": 1}\n', {}, 1, "array of .start, end. pairs"),
    ('{"tokens": ["a"], "text": "a", "start": -1, "offsets": []}\n', {}, 1, "at least 0"),
    ('{"tokens": ["a"], "text": "a", "offsets": []}\n', {}, 1, "0 offsets for 1 observations"),
    ('{"tokens": ["a"], "text": "a", "offsets": [[0, 2]]}\n', {}, 1, "0 to 2 of node 0 are not within"),
    ('{"tokens": ["a"], "text": "a", "offsets": [[0, 0.5]]}\n', {}, 1, "give a start and an end"),
    ('{"tokens": ["a"], "text": "a", "offsets": [3]}\n', {}, 1, "give a start and an end"),
    ('{"tokens": ["a", "b"], "text": "ab", "offsets": [[0, 2], [1, 2]]}\n', {}, 1, "without overlap"),
    (
        '{"tokens": ["a"], "text": "a", "offsets": [[0, 1]], "labels": ["O"], "spans": [1]}\n',
        {},
        1,
        "spans and labels do not say the same",
    ),
    ('{"observations": ["a"], "observations": ["b"]}\n', {}, 1, "'observations' is given twice"),
    ('{"observations": [{"features": {"f": 1, "f": 2}}]}\n', {}, 1, "'f' is given twice"),
    ('{"observations": "ab"}\n', {}, 1, "observations must be an array"),
    ('{"observations": []}\n', {}, 1, "empty sequence"),
    ('{"observations": [null]}\n', {}, 1, "node 0: the observation None is not one of: a string"),
    ('{"observations": ["a", true]}\n', {}, 1, "node 1: the observation True"),
    ('{"observations": [1.5]}\n', {}, 1, "node 0: the observation 1.5"),
    ('{"observations": [["a", 1]]}\n', {}, 1, "neither of strings .* nor of numbers"),
    ('{"observations": [[1, true]]}\n', {}, 1, "neither of strings .* nor of numbers"),
    ('{"observations": [{"a": 1}]}\n', {}, 1, "not one of: .*features"),
    ('{"observations": [{"columns": ["a"], "set": []}]}\n', {}, 1, "not one of"),
    ('{"observations": [{"columns": ["a", 1]}]}\n', {}, 1, "not one of"),
    ('{"observations": [{"set": ["a", "a"]}]}\n', {}, 1, "names a feature twice"),
    (
        '{"observations": [{"features": {"f": null}}]}\n',
        {},
        1,
        "'f' has the value None; give a finite number",
    ),
    ('{"observations": [{"features": {"f": 1e999}}]}\n', {}, 1, "finite number"),
    ('{"observations": [{"features": {"f": NaN}}]}\n', {}, 1, "NaN is not a number in JSON"),
    ('{"observations": [[-Infinity]]}\n', {}, 1, "-Infinity is not a number"),
    ('{"observations": [[1e999]]}\n', {}, 1, "numbers within 64-bit floats"),
    ('{"observations": [[1' + "0" * 400 + "]]}\n", {}, 1, "numbers within 64-bit floats"),
    (r'{"observations": ["\ud800"]}' + "\n", {}, 1, "half of a surrogate pair"),
    (GOOD + GOOD[:-2] + ', "labels": ["X"]}\n', {}, 2, "1 labels for 2 observations"),
    (GOOD[:-2] + ', "labels": ["X", 1.5]}\n', {}, 1, "node 1: the label 1.5 is neither a string"),
    (GOOD[:-2] + ', "labels": [true, "X"]}\n', {}, 1, "node 0: the label True"),
    (GOOD[:-2] + ', "labels": null}\n', {}, 1, "labels must be an array.*leave the key out"),
    (GOOD[:-2] + ', "heads": [0]}\n', {}, 1, "2 .*heads"),
    (GOOD[:-2] + ', "heads": [-1, 2]}\n', {}, 1, "node 1: its head is 2"),
    (GOOD[:-2] + ', "heads": [-1, "0"]}\n', {}, 1, "heads.*'0'"),
    (GOOD[:-2] + ', "heads": [1, 0]}\n', {}, 1, "cycle"),
    (GOOD[:-2] + ', "edges": [[0, 1], [1, 0]]}\n', {}, 1, "cycle"),
    (GOOD[:-2] + ', "edges": [[0, 1], [0, 1]]}\n', {}, 1, "given twice"),
    (GOOD[:-2] + ', "edges": [[0, 5]]}\n', {}, 1, "there is no node 5"),
    (GOOD[:-2] + ', "edges": [0, 1]}\n', {}, 1, "pairs, but 0 was found"),
    (GOOD[:-2] + ', "edges": [{"0": 1}]}\n', {}, 1, "pairs"),
    (GOOD[:-2] + ', "edges": [[0, 1, 1]]}\n', {}, 1, "pair"),
    (GOOD[:-2] + ', "edges": [], "heads": [-1, 0]}\n', {}, 1, "both heads and edges"),
    (GOOD[:-2] + ', "comments": [1]}\n', {}, 1, "comments must be an array of strings"),
]

TEXT = [
    ("", {}, None, "no text; write one sentence"),
    ("\n \t\n\u200b\n", {}, None, "no text"),
    ("a", {"tokenizer": "letters"}, None, "tokenizer='letters': choose one of words, blanks"),
    ("a\rb\r", {}, 1, "carriage return alone"),
]
INLINE = [
    ("", {}, None, "no text"),
    ("\n[a](X\n", {}, 2, r"column 3: the bracket of .* has no label; write a mark as \[text\]"),
    ("[a]()\n", {}, 1, "has no label"),
    ("[a\n", {}, 1, "opens a mark that is not closed"),
    ("a](X)\n", {}, 1, "column 2: .* closes no mark"),
    ("[a [b](X)](Y)\n", {}, 1, "opens a mark within a mark"),
    ("a\\\n", {}, 1, "ends in a backslash; write two"),
    ("a [ ](X)\n", {}, 1, "span 2 to 3 .* contains no token; remove"),
    ("[](X) a\n", {}, 1, "span 0 to 0 is not within"),
    ("[a](X)\n", {"scheme": "FOO"}, 1, "no tagging scheme 'FOO'"),
]
SPANNED = '{"text": "a bc", "label": [%s]}\n'
DOCCANO = [
    ("", {}, None, "no records"),
    ("[1]\n", {}, 1, "a record is an object such as .*text"),
    ("{}\n", {}, 1, '"text" has the value None; give a text'),
    ('{"text": ""}\n', {}, 1, "has no tokens; remove"),
    ('{"text": "a", "label": "PER"}\n', {}, 1, "label must be an array of spans"),
    (SPANNED % '["X"]', {}, 1, "label contains .*write each span as .0, 3"),
    (SPANNED % '[0, 5, "X"]', {}, 1, "span 0 to 5 is not within the text of 4 characters"),
    (SPANNED % '[-1, 1, "X"]', {}, 1, "span -1 to 1 is not within"),
    (SPANNED % '["0", 1, "X"]', {}, 1, "span '0' to 1 is not within"),
    (SPANNED % '[1, 1, "X"]', {}, 1, "span 1 to 1"),
    (SPANNED % '[1, 2, "X"]', {}, 1, "span 1 to 2 .* contains no token"),
    (SPANNED % "[0, 1, 7]", {}, 1, "has the label 7; give a text"),
    (SPANNED % '[0, 1, ""]', {}, 1, "has the label ''; give a text"),
    (SPANNED % '[0, 4, "X"], [2, 4, "Y"]', {}, 1, "spans 0 to 4 .'X'. and 2 to 4 .'Y'. overlap.*one label"),
    ('{"text": "a", "entities": [[0, 1, "X"]]}\n', {}, 1, "entities contains .*start_offset"),
    ('{"text": "a", "entities": [{"label": "X"}]}\n', {}, 1, "span -1 to -1 is not within"),
]
TOKENS = '"tokens": [{"start": 0, "end": 1}, {"start": 2, "end": 4}]'
PRODIGY = [
    ('{"spans": []}\n', {}, 1, '"text" has the value None'),
    ('{"text": "a", "spans": [1]}\n', {}, 1, "spans contains 1; write each"),
    ('{"text": "a", "spans": {}}\n', {}, 1, "spans must be an array"),
    ('{"text": "a", "tokens": ["a"]}\n', {}, 1, "tokens are objects"),
    ('{"text": "a", "tokens": [{"start": 0}]}\n', {}, 1, "give a start and an end"),
    ('{"text": "a", "tokens": []}\n', {}, 1, "has no tokens"),
    (
        f'{{"text": "a bc", {TOKENS}, "spans": [{{"start": 2, "end": 3, "label": "X"}}]}}\n',
        {},
        1,
        "span 2 to 3 .'X'. does not begin and end with tokens; correct",
    ),
]

CSV = [
    ("", {}, None, "no header; name the columns"),
    ("sentence,word,tag\n", {}, None, "no rows; give"),
    ("a,b,c\n1,x,y\n", {}, None, "no column's name begins with 'sent'.*--option sentence=NAME"),
    ("sent,word,word\n1,x,y\n", {}, None, "name is given twice"),
    ("sent,tag\n1,x\n", {}, None, "columns of their own.*name others"),
    ("sent,w,tag\n1,x\n", {}, 2, "2 cells where the header has 3.*quote"),
    ("sent,w,tag\n,x,y\n", {}, 2, "'sent' is empty; give the first row"),
    ("sent,w,tag\n1,,y\n", {}, 2, "'w' is empty; fill"),
    ('sent,w,tag\n1,"x,y\n', {}, 2, "not CSV: .*quote cells"),
    ('sent,w,tag\n1,"x"z,y\n', {}, 2, "not CSV"),
    ("sent,w,tag\n1," + "x" * 200_000 + ",y\n", {}, 2, "not CSV: field larger"),
    ("sent,w,tag\n1,x,y\n", {"separator": ",,"}, None, "give one character"),
    ("sent,w,tag\n1,x,y\n", {"label": "nope"}, None, "label='nope': there is no such column"),
    ("sent,w,tag\n1,x,y\n", {"label": 9}, None, "label=9: there is no such column"),
    ("sent,w,tag\n1,x,y\n", {"columns": ["tag"]}, None, "columns of their own"),
]
CONLLX = [
    (row("1 a _ N N _ 0") + row("1 a _ N N _ 1"), {}, 2, "word 1 has several heads; read .*graph='dag'"),
    (row("1 a _ N N _ 0") + row("1 a _ N N _ 1"), {"graph": "dag"}, 1, "self loop.*cyclic='skip'.*'break'"),
    (row("1 a _ N N _ 0"), {"label": "UPOS"}, None, "choose one of FORM, LEMMA, CPOSTAG, POSTAG"),
    (row("1 a _ N N _ _"), {}, 1, "HEAD is '_'"),
]
CONLLUP = [
    ("", {}, 1, "does not name the columns; write # global.columns"),
    ("1\ta\n", {}, 1, "does not name the columns"),
    ("# global.columns = ID UPOS\n", {}, 1, "ID and FORM among them.*correct"),
    ("# global.columns = ID FORM FORM\n", {}, 1, "named once"),
    ("# global.columns = ID FORM NE\n1\ta\tX\n", {}, None, "label='UPOS': choose one of FORM, NE"),
    ("# global.columns = ID FORM NE\n1\ta\tX\n", {"label": "NE"}, 2, "HEAD is '_'.*graph='sequence'"),
    ("# global.columns = ID FORM NE\n1\ta\n", {"label": "NE"}, 2, "2 columns where 3"),
]
MALFORMED = {"conll": CONLL, "conllu": CONLLU, "fasta": FASTA, "jsonl": JSONL, "text": TEXT}
MALFORMED |= {
    "inline": INLINE,
    "doccano": DOCCANO,
    "prodigy": PRODIGY,
    "csv": CSV,
    "conllx": CONLLX,
    "conllup": CONLLUP,
}
CASES = [
    pytest.param(name, *case, id=f"{name}-{number}")
    for name, cases in MALFORMED.items()
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize(("name", "text", "options", "line", "words"), CASES)
def test_malformed(name, text, options, line, words):
    with pytest.raises(DataError, match=words) as caught:
        FORMATS[name].read(text, "dir/file", **options)
    if line is not None:
        assert re.match(rf"dir/file:{line}: ", str(caught.value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
