"""The reproduction of the kernel-labeling papers, on files small enough for a test."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fuda import HMM
from fuda.data.structures import Sequence
from fuda.errors import DataError
from fuda.formats.dataset import Dataset, Record
from fuda.models.marginalized_perceptron import MarginalizedPerceptron
from fuda.reproduce import kernel_labeling
from fuda.reproduce.cross_validation import cross_validated
from fuda.selection.goals import Figure

SPANISH = "Ana X B-PER\nPaz X I-PER\nvive X O\n\nEn X O\nLima X B-LOC\nhoy X O\n\n" * 3
SENTENCE = [
    ("Ana", "PROPN", 2, "0.1:dep"),
    ("vive", "VERB", 0, "0:root"),
    ("aquí", "ADV", 2, "2:advmod|1:dep"),
]


def conllu(number: int, misc: str = "_", empty: bool = False) -> str:
    rows = [f"# sent_id = s-{number}"]
    if empty:
        rows.append("0.1\tquien\tquien\tPRON\t_\t_\t_\t_\t2:nsubj\t_")
    for i, (form, pos, head, deps) in enumerate(SENTENCE, 1):
        deps = deps if empty else deps.replace("0.1:dep", "2:nsubj")
        rows.append(f"{i}\t{form}\t{form}\t{pos}\t_\t_\t{head}\tdep\t{deps}\t{misc if i == 1 else '_'}")
    return "\n".join(rows) + "\n\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("conll2002", "ja_gsd_ne", "ewt"):
        (tmp_path / name).mkdir()
    (tmp_path / "conll2002" / "esp.train").write_text(SPANISH, encoding="utf-8")
    texts = {
        "ja_gsd_ne/train.conllu.gz": "".join(conllu(i, "NE=U-PERSON") for i in range(6)),
        "ewt/train.conllu.gz": "".join(conllu(i, empty=i == 0) for i in range(7)),
        # The last sentence has another word, so that it is left out.
        "ewt/train.ner.iob2.gz": "".join(
            f"# newdoc id = d\n# sent_id = s-{i}\n# text = x\n1\t{'Ana' if i < 6 else 'Eva'}\tB-PER\t-\tx\n"
            "2\tvive\tB-O\t-\tx\n3\taquí\tO\n\n"
            for i in range(7)
        ),
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_a_row_has_means_and_deviations_in_per_cent() -> None:
    data = Dataset([Record(Sequence(["a", "b"]), ["O", label]) for label in ("X", "X", "X", "Y")])
    messages: list[str] = []
    row = cross_validated("HMM", HMM(), data, 2, messages.append)
    assert len(messages) == 2
    # Trained on X and Y, the first fold has all right; trained on X alone, the second misses Y.
    assert str(row.accuracy) == "87.50 ± 12.50"
    assert row.label_f1 == Figure(75.0, 25.0)
    assert row.entity_f1 is None  # X and Y name no segments


def test_a_model_and_the_prior_within_it_are_left_as_they_are() -> None:
    data = Dataset([Record(Sequence(["a", "b"]), ["O", "X"]) for _ in range(4)])
    prior = HMM()
    model = MarginalizedPerceptron(prior=prior)
    cross_validated("alone", prior, data, 2, lambda words: None)
    cross_validated("within", model, data, 2, lambda words: None)
    assert not hasattr(prior, "classes_")  # it is not fitted across folds
    assert not hasattr(model, "classes_")


def test_all_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_labeling, "JAPANESE_SIZES", (3, 6))
    monkeypatch.setattr(
        "fuda.datasets.load_product_usage", lambda: Dataset(kernel_labeling.english(folder)[0].records)
    )
    messages: list[str] = []
    first, second, third = (list(table(folder, messages.append)) for table in kernel_labeling.TABLES)
    assert [len(c.rows) for c in first] == [len(kernel_labeling.entity_methods())] * 2
    assert [c.title for c in first] == [f"Table 1: first 6 Spanish sentences, {n} folds" for n in (5, 3)]
    assert set(first[0].paper) <= {row.method for row in first[0].rows}
    assert [row.method for c in second for row in c.rows] == list(kernel_labeling.PAPER_TABLE_2) * 3
    assert [row.method for row in third[0].rows] == [*kernel_labeling.PAPER_TABLE_2, "path kernel"]
    assert all(row.accuracy.mean == 100.0 for c in (*second, *third) for row in c.rows)
    assert messages


def test_english_sentences_are_joined_with_their_entities(folder: Path) -> None:
    trees, graphs = kernel_labeling.english(folder)
    assert len(trees) == len(graphs) == 6
    assert trees.y == [["B-PER", "O", "O"]] * 6
    assert graphs.y == [[None, "B-PER", "O", "O"], *[["B-PER", "O", "O"]] * 5]
    assert graphs.X[0].observations[0] == ("quien", "quien", "PRON")
    assert [x.shape for x in (trees.X[0], graphs.X[0])] == ["tree", "dag"]
    sequences = kernel_labeling.as_sequences(trees)
    assert sequences.X[0].shape == "sequence"
    assert sequences.y == trees.y


def test_a_folder_without_the_corpora_is_refused(tmp_path: Path) -> None:
    for table in kernel_labeling.TABLES:
        with pytest.raises(DataError, match="--data names the folder"):
            list(table(tmp_path, lambda words: None))


def test_the_real_corpora_are_those_of_the_papers(corpora: Path) -> None:
    trees, graphs = kernel_labeling.english(corpora)
    assert len(trees) == len(graphs) == kernel_labeling.ENGLISH_SIZE
    assert {label for y in trees.y for label in y} == {
        "O",
        *(f"{p}-{t}" for p in "BI" for t in ("LOC", "ORG", "PER")),
    }
