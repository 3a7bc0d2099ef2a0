"""fuda doubt."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fuda.cli import group

SENTENCE = "Ana B-PER\nRuiz I-PER\nlives O\nin O\n{} B-LOC\n\n"
WRONG = "Ana B-PER\nRuiz O\nlives O\nin O\nLima B-LOC\n\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "names.conll"
    right = "".join(SENTENCE.format(place) for place in ["Lima", "Cusco", "Ica"] * 4)
    path.write_text(right + WRONG, encoding="utf-8")
    return str(path)


def run(*arguments):
    return CliRunner().invoke(group, ["doubt", *arguments])


def test_the_wrong_label_is_shown_first_with_context_and_why(file):
    result = run(file, "--top", "1")
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.output.splitlines()]
    assert lines[0].startswith("1. structure 12, nodes 0 to 1  9")
    assert lines[1] == "   given      [Ana]PER Ruiz lives in Lima"
    assert lines[2] == "   suggested  [Ana Ruiz]PER lives in Lima"
    assert "Ruiz elsewhere: I-PER 12" in lines[3]


def test_json(file):
    result = json.loads(run(file, "--json", "--top", "3", "--learner", "hmm", "--folds", "3").output)
    assert len(result) == 3
    assert result[0]["words"] == ["Ana", "Ruiz"]
    assert result[0]["suggested"] == ["B-PER", "I-PER"]


def test_several_files_are_judged_together(file, tmp_path):
    other = tmp_path / "more.conll"
    other.write_text(SENTENCE.format("Lima") + WRONG.replace("Lima", "Tacna"), encoding="utf-8")
    lines = run(str(other), file, "--top", "2").output.splitlines()
    places = [line.split("  ")[0] for line in lines if line[:1].isdigit()]
    assert sorted(place.split(". ")[1] for place in places) == [
        "structure more.conll 1, nodes 0 to 1",
        "structure names.conll 12, nodes 0 to 1",
    ]
    result = json.loads(run(str(other), file, "--top", "2", "--json").output)
    assert {(one["file"], one["structure"]) for one in result} == {(str(other), 1), (file, 12)}
    raw = tmp_path / "raw.conll"
    raw.write_text("Ana\n\n", encoding="utf-8")
    refused = run(file, str(raw))
    assert refused.exit_code == 2
    assert "raw.conll" in refused.output


def test_a_file_without_labels(tmp_path):
    path = tmp_path / "raw.txt"
    path.write_text("Ana lives in Lima\n", encoding="utf-8")
    result = run(str(path), "--format", "text")
    assert result.exit_code == 2
    assert "has no labels to doubt; name their column with --label" in result.output


def test_too_few_structures(tmp_path):
    path = tmp_path / "one.conll"
    path.write_text("Ana B-PER\n\n", encoding="utf-8")
    result = run(str(path))
    assert result.exit_code == 2
    assert "Traceback" not in result.output
