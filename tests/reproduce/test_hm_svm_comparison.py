"""The reproduction of the hidden Markov SVM paper, on files small enough for a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fuda.cli import group
from fuda.errors import DataError
from fuda.reproduce import hm_svm, spanish

SENTENCES = [
    [("Ana", "B-PER"), ("vive", "O"), ("en", "O"), ("Lima", "B-LOC")],
    [("Lima", "B-LOC"), ("es", "O"), ("grande", "O")],
    [("La", "O"), ("casa", "O"), ("de", "O"), ("Ana", "B-PER"), ("Paz", "I-PER")],
    [("Ana", "B-PER"), ("es", "O"), ("de", "O"), ("Lima", "B-LOC")],
] * 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = "\n".join("".join(f"{word} X {label}\n" for word, label in sentence) for sentence in SENTENCES)
    (tmp_path / "esp.train").write_text(text, encoding="utf-8")
    return tmp_path


def test_all_methods(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hm_svm, "FOLDS", 2)
    messages: list[str] = []
    rows = list(hm_svm.comparison(spanish.first_sentences(folder), messages.append))
    assert sorted(row.method for row in rows) == sorted(hm_svm.PAPER_ORDER)
    assert len(messages) == 2 * len(rows)
    for row in rows:  # each half of the corpus holds the other's sentences
        assert row.accuracy.mean > 90
        assert row.entity_f1 is not None
    result = CliRunner().invoke(group, ["reproduce", "hm-svm", "--data", str(folder)])
    assert result.exit_code == 0, result.output
    for name in hm_svm.PAPER_ORDER:
        assert name in result.output


def test_a_folder_without_the_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no file esp\.train; --data names"):
        spanish.first_sentences(tmp_path)


def test_it_has_one_table(folder: Path) -> None:
    result = CliRunner().invoke(group, ["reproduce", "hm-svm", "--data", str(folder), "--table", "2"])
    assert result.exit_code == 2
    assert "--table 2: hm-svm has 1" in result.output


def test_the_corpus_of_the_papers(corpora: Path) -> None:
    data = spanish.first_sentences(corpora)
    assert len(data) == 300
    assert sum(map(len, data.X)) == 8541
