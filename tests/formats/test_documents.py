"""brat, GraphML, cycles, and other libraries: datasets and spaCy where they are installed."""

from __future__ import annotations

import pytest
from format_cases import FEWER, assert_same, attempt, dag_edges, datasets, plain_tokens, tokens
from hypothesis import given
from hypothesis import strategies as st

from fuda.data.structures import Dag, Sequence, Tree
from fuda.errors import DataError
from fuda.formats import Dataset, Record, brat, conllu, graphml, read, text, write
from fuda.formats.cycles import without_cycles

LABELS = st.sampled_from(["N", "V", "O"])
SENTENCES = "Ana Díaz lives\r\n\r\nin Lima. Bo too.\n"
ANN = (
    "T1\tPER 0 8\tAna Díaz\nT7\tLOC 21 25\tLima\nR1\tLives Arg1:T1 Arg2:T7\n"
    "T3\tX 0 3;9 14\tAna lives\n#1\tAnnotatorNotes T1\thm\n"
)


@pytest.fixture
def document(tmp_path):
    (tmp_path / "a.txt").write_bytes(SENTENCES.encode())
    (tmp_path / "a.ann").write_text(ANN)
    return tmp_path / "a.ann"


def test_annotations_come_back(document, tmp_path):
    data = read(document)
    assert data.y == [["B-PER", "I-PER", "O"], ["O", "B-LOC", "O", "O", "O", "O"]]
    assert [record.text.start for record in data.records] == [0, 18]
    assert data.notes == [f"{document}: 1 entities of several parts are not labels"]
    write(data, document)
    assert sorted(document.read_text().splitlines()) == sorted(ANN.splitlines())
    assert (tmp_path / "a.txt").read_bytes() == SENTENCES.encode()
    write(data, tmp_path / "b.ann")
    assert_same(read(tmp_path / "b.ann"), data)


def test_new_annotations(document, tmp_path):
    data = read(document)
    changed = data.with_labels([["O", "B-PER", "O"], ["O", "B-LOC", "O", "B-PER", "O", "O"]])
    write(changed, document)
    lines = document.read_text().splitlines()
    assert lines[:3] == ["T2\tPER 4 8\tDíaz", "T7\tLOC 21 25\tLima", "T4\tPER 27 29\tBo"]
    assert "R1\tLives Arg1:T1 Arg2:T7" in lines
    raw = text.read("Ana\n\n  Bo lives\n", "f").with_labels([["B-PER"], ["B-PER", "O"]])
    write(raw, tmp_path / "new.ann")
    assert (tmp_path / "new.ann").read_text() == "T1\tPER 0 3\tAna\nT2\tPER 7 9\tBo\n"
    assert read(tmp_path / "new.ann").y == raw.y


@FEWER
@given(datasets(plain_tokens.filter(lambda word: word.split() == [word]), LABELS, labelled=True))
def test_documents_of_words_come_back(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("brat") / "a.ann"
    write(data, path)
    assert_same(read(path, scheme=None, tokenizer="blanks"), data)


@pytest.mark.parametrize(
    ("ann", "words"),
    [
        ("T1 PER 0 3\n", "a.ann:1: .* is not an annotation of brat; write an entity as"),
        ("T1\tPER 0 99\tx\n", "a.ann:1: T1 from 0 to 99 is not within the text of 35 characters; correct"),
        ("T1\tPER 3 3\tx\n", "a.ann:1: T1 from 3 to 3"),
        ("T1\tPER 9 20\tx\n", "T1 from 9 to 20 does not lie within one line of .*a.txt; correct"),
        ("T1\tPER 0 8\tx\nT2\tLOC 4 8\ty\n", "a.txt that begins at 0: the spans .* overlap"),
    ],
)
def test_malformed_annotations(document, ann, words):
    document.write_text(ann)
    with pytest.raises(DataError, match=words):
        read(document)


def test_texts_that_are_missing_or_others(document, tmp_path):
    with pytest.raises(DataError, match=r"none.txt: cannot be read"):
        brat.read("", str(tmp_path / "none.ann"))
    with pytest.raises(DataError, match="name the file"):
        brat.read("", "<stdin>")
    (tmp_path / "b.txt").write_text("other\n")
    with pytest.raises(DataError, match=r"b.txt exists and has another text at 0 than structure 0"):
        write(read(document), tmp_path / "b.ann")
    assert not (tmp_path / "b.ann").exists()
    both = Dataset(read(document).records + read(document).records)
    with pytest.raises(DataError, match="several documents"):
        write(both, tmp_path / "c.ann")
    with pytest.raises(DataError, match="the label 'a b' has a blank"):
        write(Dataset([Record(Sequence(["x"]), ["a b"])]), tmp_path / "c.ann")
    (tmp_path / "e.txt").write_text("\n")
    with pytest.raises(DataError, match=r"e.txt: no text"):
        brat.read("", str(tmp_path / "e.ann"))


# Cycles.


@FEWER
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.tuples(*[st.integers(0, n - 1)] * 2)))
    )
)
def test_what_is_left_has_no_cycle_and_every_edge_left_out_closes_one(case):
    nodes, edges = case
    remaining = without_cycles(nodes, edges)
    Dag(["x"] * nodes, remaining)
    assert set(remaining) <= edges
    for parent, child in edges - set(remaining):
        with pytest.raises(DataError):
            Dag(["x"] * nodes, sorted({*remaining, (parent, child)}))


@FEWER
@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), dag_edges(n))))
def test_acyclic_graphs_stay(case):
    assert without_cycles(*case) == sorted(case[1])


def test_cycles_of_enhanced_graphs_are_broken_where_asked():
    rows = ["1 a _ X _ _ 0 root 0:root|2:x _", "2 b _ X _ _ 1 x 1:x|2:y _", "3 c _ X _ _ 2 x 2:x _"]
    sentence = "".join(row.replace(" ", "\t") + "\n" for row in rows) + "\n"
    data = conllu.read(sentence, "f", graph="dag", cyclic="break")
    assert [Dag(["a", "b", "c"], [(0, 1), (1, 2)])] == data.X
    assert data.notes == ["f: 2 edges of 1 of 1 sentences left out: they close a cycle"]
    assert conllu.write(data.records) == sentence
    heads = sentence.replace("\t0\troot", "\t2\troot")
    assert [Tree(["a", "b", "c"], [-1, 0, 1])] == conllu.read(heads, "f", cyclic="break").X


# GraphML.

nx = pytest.importorskip("networkx", reason="the extra fuda[graph] is not installed")


@pytest.mark.parametrize("shape", ["sequence", "tree", "dag"])
def test_graphs_come_back(shape):
    observations = tokens | st.integers(-(10**12), 10**12)

    @FEWER
    @given(datasets(observations, shape=shape, labelled=True))
    def check(data):
        written, refused = attempt(graphml.write, data.records)
        if written is None:
            assert "XML" in refused
            return
        again = graphml.read(written, "f", graph=shape)
        if all(label is None for labels in data.y for label in labels):
            data = Dataset([Record(record.structure) for record in data.records])
        assert_same(again, data)

    check()


def test_a_file_that_networkx_wrote(tmp_path):
    graph = nx.DiGraph([("b", "a"), ("a", "b"), ("b", "c")])
    nx.set_node_attributes(graph, {name: name.upper() for name in graph}, "word")
    nx.write_graphml(graph, tmp_path / "a.graphml")
    with pytest.raises(DataError, match=r"a.graphml: structure 0: .*cycle"):
        read(tmp_path / "a.graphml", columns="word")
    data = read(tmp_path / "a.graphml", columns="word", cyclic="break")
    assert [Dag(["B", "A", "C"], [(0, 1), (0, 2)])] == data.X
    assert data.notes == ["1 edges left out: they close a cycle"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not GraphML"),
        ("<graphml/>", "no graphs|not GraphML"),
        ("<graphml", "not GraphML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><graphml/>', "no document type; remove"),
    ],
)
def test_malformed_graphml(content, words):
    with pytest.raises(DataError, match=f"^f: .*({words})"):
        graphml.read(content, "f")


# Libraries of others.


def test_datasets():
    library = pytest.importorskip("datasets", reason="the extra fuda[datasets] is not installed")
    from fuda.formats import from_datasets, to_datasets

    names = ["O", "I-PER", "B-PER", "B-NEVER"]
    features = {"id": library.Value("string"), "words": library.Sequence(library.Value("string"))}
    features["tags"] = library.Sequence(library.ClassLabel(names=names))
    rows = {"id": ["x", "y"], "words": [["Ana", "Díaz"], ["sings"]], "tags": [[2, 1], [-1]]}
    dataset = library.Dataset.from_dict(rows, features=library.Features(features))
    data = from_datasets(dataset)
    assert data.y == [["B-PER", "I-PER"], [None]]
    assert data.records[0].more == {"id": "x"}
    again = to_datasets(data)
    assert again.features["tags"].feature.names == names
    assert again.to_dict() == {"words": rows["words"], "tags": rows["tags"], "id": rows["id"]}
    with pytest.raises(DataError, match="choose one of 'train'"):
        from_datasets(library.DatasetDict({"train": dataset}))
    with pytest.raises(DataError, match="label='pos': there is no such column; it has id, words, tags"):
        from_datasets(dataset, label="pos")
    assert from_datasets(dataset, label=None).y is None

    @FEWER
    @given(datasets(plain_tokens, st.none() | st.sampled_from(["O", "B-X", "é"]), labelled=True))
    def check(data):
        assert_same(from_datasets(to_datasets(data)), data)

    check()


def test_spacy():
    spacy = pytest.importorskip("spacy", reason="the extra fuda[spacy] is not installed")
    from fuda.formats import from_spacy, to_spacy

    content = "  Ana Díaz  lives\n in Lima."
    data = text.read(content.replace("\n", " "), "f").with_labels(
        [["B-PER", "I-PER", "O", None, "B-LOC", "O"]]
    )
    docs = to_spacy(data)
    assert docs[0].text == content.replace("\n", " ")
    assert [(entity.text, entity.label_) for entity in docs[0].ents] == [("Ana Díaz", "PER"), ("Lima", "LOC")]
    again = from_spacy(spacy.tokens.DocBin(docs=docs))
    assert_same(again, data)
    assert again.records[0].text.offsets == data.records[0].text.offsets
    tree = Dataset([Record(Tree(["a", "b", "c"], [1, -1, 1]), ["NOUN", "VERB", None])])
    assert_same(from_spacy(to_spacy(tree, label="pos"), label="pos", graph="tree"), tree)
    assert from_spacy([spacy.blank("en")("Ana sings.")]).y is None
    with pytest.raises(DataError, match=r"pass \[doc\]"):
        from_spacy(docs[0])
    with pytest.raises(DataError, match="no dependencies"):
        from_spacy(docs, graph="tree")
    with pytest.raises(DataError, match="spaCy refuses it"):
        to_spacy(tree.with_labels([["no", "such", "tag"]]), label="pos")


def test_no_text_is_left_beside_annotations_that_cannot_be_written(tmp_path):
    (tmp_path / "a.ann").mkdir()
    with pytest.raises(DataError, match=r"a\.ann: is a folder"):
        write(Dataset([Record(Sequence(["Ana"]), ["B-PER"])]), tmp_path / "a.ann")
    assert [path.name for path in tmp_path.iterdir()] == ["a.ann"]
