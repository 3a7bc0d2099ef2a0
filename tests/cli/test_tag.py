"""fuda tag: raw text, several files, n-best labelings, probabilities, known labels."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import fuda
from cli.command_cases import TEXTS

WORDS = "Ana vive.\n\n  Bo (duerme)\n"


@pytest.fixture(scope="session")
def tagger(tmp_path_factory):
    """A model of one column, whose labels are segments."""
    path = tmp_path_factory.mktemp("tagger") / "m.fuda"
    X = [["Ana", "Díaz", "vive", "."], ["Bo", "duerme", "(", ")"], ["vive", "Ana"]]
    y = [["B-PER", "I-PER", "O", "O"], ["B-PER", "O", "O", "O"], ["O", "B-PER"]]
    fuda.CRF(max_iter=30).fit(X, y).save(path)
    return path


def test_raw_text_with_inline_marks(run, tagger, tmp_path):
    marked = "[Ana](PER) vive.\n\n  [Bo](PER) (duerme)\n"
    result = run("tag", tagger, "--text", stdin=WORDS.encode())
    assert (result.code, result.out.decode(), result.err) == (0, marked, "")
    (tmp_path / "a.txt").write_text(WORDS)
    for name in ("b.txt", "b.inline", "b.anything"):
        assert run("tag", tagger, tmp_path / "a.txt", "--text", "-o", tmp_path / name).code == 0
        assert (tmp_path / name).read_text() == marked
    train = ["train", tmp_path / "b.inline", "-o", tmp_path / "n.fuda", "--learner", "hmm"]
    assert run(*train).code == 0
    again = run("tag", tmp_path / "n.fuda", tmp_path / "b.txt")  # the model's own format
    assert again.out.decode() == marked


def test_raw_text_in_other_formats(run, tagger, tmp_path):
    (tmp_path / "a.txt").write_text(WORDS)

    def tagged(*arguments):
        result = run("tag", tagger, tmp_path / "a.txt", "--text", *arguments)
        assert (result.code, result.err) == (0, "")
        return result.out.decode()

    assert tagged("--as", "conll") == "Ana\tB-PER\nvive\tO\n.\tO\n\nBo\tB-PER\n(\tO\nduerme\tO\n)\tO\n\n"
    assert tagged("-o", tmp_path / "a.conll") == ""
    assert (tmp_path / "a.conll").read_text() == tagged("--as", "conll")
    first, second = map(json.loads, tagged("--as", "jsonl").splitlines())
    assert first["spans"] == [{"start": 0, "end": 3, "label": "PER"}]
    assert second["text"] == "  Bo (duerme)"
    assert second["start"] == WORDS.index("  Bo")
    assert second["offsets"] == [[2, 4], [5, 6], [6, 12], [12, 13]]
    doccano = [json.loads(line) for line in tagged("--as", "doccano").splitlines()]
    assert doccano[1] == {"text": "  Bo (duerme)", "label": [[2, 4, "PER"]]}
    assert tagged("--as", "jsonl", "--option", "tokenizer=blanks").count('"vive."') == 1


def test_options_of_writing(run, tagger, tmp_path):
    result = run("tag", tagger, "--text", "--as", "conllu", "--write", "label=MISC:NE", stdin=b"Ana vive\n")
    assert result.out.decode().splitlines()[1].split("\t")[3::6] == ["_", "TokenRange=0:3|NE=B-PER"]
    result = run("tag", tagger, "--text", "--write", "separator=tab", stdin=b"Ana vive\n")
    assert (result.code, result.out) == (2, b"")
    assert "writing inline takes no option 'separator'; it takes: none" in result.err


def test_a_model_of_doccano_files_reads_json_lines_as_such(run, tmp_path):
    path, model = tmp_path / "a.jsonl", tmp_path / "m.fuda"
    path.write_text('{"id": 5, "text": "Ana vive.", "label": [[0, 3, "PER"]], "by": "me"}\n')
    train = ["train", path, "--format", "doccano", "-o", model, "--learner", "hmm"]
    assert run(*train).code == 0
    assert json.loads(run("tag", model, path).out) == json.loads(path.read_text())
    assert run("tag", model, path, "-o", tmp_path / "b.jsonl").code == 0
    assert json.loads((tmp_path / "b.jsonl").read_text()) == json.loads(path.read_text())
    assert run("evaluate", model, path).code == 0


def test_several_files_into_one_stream(run, models, places, tmp_path):
    once = run("tag", models["conll"], places["conll"]).out
    assert run("tag", models["conll"], places["conll"], "-", stdin=TEXTS["conll"].encode()).out == once * 2
    (tmp_path / "bad.conll").write_text("a b c d\n")
    result = run("tag", models["conll"], places["conll"], tmp_path / "bad.conll")
    assert (result.code, result.out) == (2, once)
    assert result.err.startswith(f"fuda: {tmp_path / 'bad.conll'}:1: 4 columns")
    fasta = run("tag", models["fasta"], places["fasta"], places["fasta"])
    assert fasta.out == run("tag", models["fasta"], places["fasta"]).out * 2


def test_structures_are_counted_within_their_file(run, models, places, tmp_path):
    tree = '{"observations": ["a", "b"], "heads": [-1, 0]}\n'
    (tmp_path / "t.jsonl").write_text(TEXTS["jsonl"] + tree)
    result = run("tag", models["jsonl"], places["jsonl"], tmp_path / "t.jsonl")
    assert result.err.startswith(f"fuda: {tmp_path / 't.jsonl'}: structure 2 is a tree")


def test_a_folder_gets_a_file_of_the_same_name(run, models, places, tmp_path):
    folder = places["folder"]
    other = tmp_path / "other.conll.gz"
    assert run("convert", places["conll"], other).code == 0
    assert run("tag", models["conll"], places["conll"], other, "-o", folder).code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["good.conll", "other.conll.gz"]
    assert (folder / "good.conll").read_bytes() == run("tag", models["conll"], places["conll"]).out
    assert run("tag", models["conll"], other, "-", "--as", "jsonl", "-o", folder, stdin=b"Ana NP\n").code == 0
    assert {"other.jsonl.gz", "stdin.jsonl"} <= {path.name for path in folder.iterdir()}


def test_a_folder_that_contains_the_files_is_refused(run, models, places, tmp_path):
    path = tmp_path / "a.conll"
    path.write_bytes(before := places["conll"].read_bytes())
    result = run("tag", models["conll"], path, "-o", tmp_path)
    assert result.code == 2
    assert "a.conll: is used twice by the same command and would be lost" in result.err
    assert path.read_bytes() == before


def test_raw_text_into_a_folder(run, tagger, places, tmp_path):
    (tmp_path / "a.txt").write_text(WORDS)
    assert run("tag", tagger, "--text", tmp_path / "a.txt", "-o", places["folder"]).code == 0
    assert (places["folder"] / "a.txt").read_text().startswith("[Ana](PER) vive.\n")


def test_n_best_labelings(run, models, places, tmp_path):
    data = fuda.formats.read(places["conll"])
    expected = fuda.load(models["crf"]).predict_nbest(data.X, 2)
    under_keys = run("tag", models["crf"], places["conll"], "--nbest", 2, "--as", "jsonl").out.decode()
    for line, candidates in zip(under_keys.splitlines(), expected, strict=True):
        record = json.loads(line)
        assert record["labels"] == candidates[0][0]
        assert [candidate["labels"] for candidate in record["nbest"]] == [labels for labels, _ in candidates]
        for candidate, (_, logp) in zip(record["nbest"], candidates, strict=True):
            assert math.isclose(candidate["log_probability"], logp, abs_tol=1e-6)
    (tmp_path / "n.conll").write_bytes(run("tag", models["crf"], places["conll"], "--nbest", 2).out)
    listed = fuda.formats.read(tmp_path / "n.conll")
    assert listed.y == [labels for candidates in expected for labels, _ in candidates]
    assert [r.comments[-2] for r in listed.records] == ["# rank = 1", "# rank = 2"] * 2
    assert listed.records[0].comments[-1].startswith("# log_probability = -")


def test_marginals(run, models, places, tmp_path):
    data = fuda.formats.read(places["conll"])
    model = fuda.load(models["crf"])
    expected, labels = model.predict_marginals(data.X), model.predict(data.X)
    lines = run("tag", models["crf"], places["conll"], "--marginals", "--as", "jsonl").out.decode()
    for line, table in zip(lines.splitlines(), expected, strict=True):
        for node, row in zip(json.loads(line)["marginals"], table, strict=True):
            for label, p in zip(model.classes_, row, strict=True):
                assert math.isclose(node.get(label, 0), p, abs_tol=1e-6)
    columns = run("tag", models["crf"], places["conll"], "--marginals").out.decode()
    first = columns.splitlines()[0].split()
    assert first[:3] == ["Ana", "NP", labels[0][0]]
    assert math.isclose(float(first[3]), expected[0][0].max(), abs_tol=1e-4)
    tree = run("tag", models["conllu"], places["conllu"], "--marginals").out.decode()
    assert tree.splitlines()[1].split("\t")[9].startswith("NE=B-PER|Gloss=x|P=")
    assert run("tag", models["conllu"], places["conllu"]).out.count(b"P=") == 0


def test_known_labels_are_kept(run, models, places, tmp_path):
    path = tmp_path / "known.conll"
    path.write_text("Ana NP B-LOC\nvive VB _\nBo NP _\n\n")
    plain = run("tag", models["crf"], path).out
    assert plain.startswith(b"Ana NP B-PER\n")
    tagged = run("tag", models["crf"], path, "--known").out
    assert tagged.startswith(b"Ana NP B-LOC\n")
    assert b"_" not in tagged
    path.write_text("Ana NP B-XYZ\n\n")
    result = run("tag", models["crf"], path, "--known")
    assert result.code == 2
    assert "known.conll: structure 0, node 0: the label 'B-XYZ' was never seen in training" in result.err


def test_what_a_model_does_not_have(run, places, tmp_path):
    plain, reranker = tmp_path / "m.fuda", Path(__file__).parents[1] / "fixtures" / "reranker-1.fuda"
    fuda.MarginalizedPerceptron(epochs=1, calibrate=False).fit([["a", "b"]], [["X", "Y"]]).save(plain)
    (tmp_path / "a.jsonl").write_text('{"tokens": ["a", "b"]}\n')
    for model, option, words in (
        (reranker, "--known", "cannot label nodes given the labels of others; leave --known out"),
        (reranker, "--nbest=2", "has no n-best labelings; leave --nbest out"),
        (plain, "--nbest=2", "calibrate=False"),
        (plain, "--marginals", "calibrate=False"),
    ):
        result = run("tag", model, tmp_path / "a.jsonl", option)
        assert (result.code, result.out) == (2, b"")
        assert words in result.err


def test_what_an_earlier_run_wrote_is_not_kept(run, models, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"observations": ["Ana"], "nbest": [1], "marginals": [2], "id": 3}\n')
    assert json.loads(run("tag", models["jsonl"], path).out) == {
        "observations": ["Ana"],
        "labels": ["N"],
        "id": 3,
    }


def test_files_that_are_read_as_a_whole(run, tagger, tmp_path):
    (tmp_path / "a.txt").write_text(WORDS)
    path = tmp_path / "a.ann"
    assert run("tag", tagger, tmp_path / "a.txt", "--text", "-o", path).code == 0
    assert path.read_text() == "T1\tPER 0 3\tAna\nT2\tPER 13 15\tBo\n"
    result = run("tag", tagger, path)
    assert (result.code, result.out.decode(), result.err) == (0, path.read_text(), "")
    assert run("tag", tagger, path, "-o", tmp_path / "b.ann").code == 0
    assert (tmp_path / "b.txt").read_text() == WORDS
    (tmp_path / "c.txt").write_text("another text")
    result = run("tag", tagger, path, "-o", tmp_path / "c.ann")
    assert result.code == 2
    assert "c.txt exists and has another text" in result.err
    assert not (tmp_path / "c.ann").exists()


def test_columns_of_csv_by_name(run, tagger, tmp_path):
    path, model, other = tmp_path / "a.csv", tmp_path / "m.fuda", tmp_path / "b.csv"
    path.write_text("sentence,word,pos,tag\n1,Ana,NP,B-PER\n1,vive,VB,O\n")
    other.write_text("sentence,pos,word\n1,NP,Ana\n")
    train = ["train", path, "-o", model, "--learner", "hmm", "--label", "tag", "--columns", "word"]
    assert run(*train).code == 0
    assert run("tag", model, path).out == path.read_bytes()
    assert run("tag", model, other).out == b"sentence,pos,word,tag\n1,NP,Ana,B-PER\n"
    result = run("evaluate", model, other)
    assert result.code == 2
    assert "label='tag': there is no such column" in result.err
    assert run("tag", model, other, "--label", "none").out == b"sentence,pos,word,label\n1,NP,Ana,B-PER\n"
    result = run("tag", tagger, path)
    assert result.code == 2
    assert "not trained on such files; name the column of the labels with --label" in result.err
    assert run("tag", tagger, path, "--label", "tag", "--columns", "word").code == 0


def test_crfsuite_files_are_labelled_as_they_come(run, tmp_path):
    path, model = tmp_path / "a.txt", tmp_path / "m.fuda"
    path.write_text("X\tw=a\nY\tw=b\n\nX\tw=a\n\n")
    assert run("train", path, "--format", "crfsuite", "-o", model, "--learner", "crf").code == 0
    result = run("tag", model, "--format", "crfsuite", stdin=path.read_bytes())
    assert (result.code, result.out) == (0, path.read_bytes())
