"""The reproduction of the Markov-loss paper, on files small enough for a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuda.errors import DataError
from fuda.reproduce import markov_loss

SENTENCES = [
    [("Ana", "B-PER"), ("vive", "O"), ("en", "O"), ("Lima", "B-LOC")],
    [("Lima", "B-LOC"), ("es", "O"), ("grande", "O")],
    [("La", "O"), ("casa", "O"), ("de", "O"), ("Ana", "B-PER"), ("Paz", "I-PER")],
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = "\n".join("".join(f"{word} X {label}\n" for word, label in sentence) for sentence in SENTENCES)
    (tmp_path / "conll2002").mkdir()
    for name in ("esp.train", "esp.testa", "esp.testb"):
        (tmp_path / "conll2002" / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_corpus_is_found_in_the_folder_or_in_conll2002_below_it(folder: Path) -> None:
    for path in (folder, folder / "conll2002"):
        corpus = markov_loss.load(path)
        assert len(corpus.train) == len(corpus.testb) == 3
        assert corpus.train.X[0].observations == ("Ana", "vive", "en", "Lima")


def test_a_folder_without_the_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no file esp\.train; --data names"):
        markov_loss.load(tmp_path)


def test_both_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markov_loss, "L2_GRID", (0.01, 0.1))
    monkeypatch.setattr(markov_loss, "SIZES", (2, 3))
    corpus = markov_loss.load(folder)
    messages: list[str] = []
    first = list(markov_loss.table_1(corpus, messages.append))
    assert [tuned.loss for tuned in first] == list(markov_loss.LOSSES)
    assert all(tuned.testa == tuned.testb == 100.0 for tuned in first)  # equal files
    second = dict(markov_loss.table_2(corpus, messages.append))
    assert list(second) == [2, 3]
    assert second[3] == [100.0] * len(markov_loss.LOSSES)
    assert len(messages) == 2 * 7 + 2 * 7


def test_the_papers_numbers_have_a_column_for_each_loss() -> None:
    assert len(markov_loss.PAPER_TABLE_1) == len(markov_loss.LOSSES)
    assert all(len(row) == len(markov_loss.LOSSES) for row in markov_loss.PAPER_TABLE_2.values())
    assert tuple(markov_loss.PAPER_TABLE_2) == markov_loss.SIZES
