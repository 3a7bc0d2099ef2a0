"""The corpora of ../shared/data: counts that are known, and files that come back as they were."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from fuda.formats import FORMATS, read

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not at ../shared/data")


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def written(dataset, name: str) -> str:
    return FORMATS[name].write(dataset.records)


@pytest.mark.parametrize(
    ("name", "sentences", "nodes"),
    [
        ("conll2002/esp.train", 8323, 264715),
        ("conll2002/esp.testa", 1915, 52923),
        ("conll2002/esp.testb", 1517, 51533),
        ("ncbi_disease/train.tsv", 5424, None),
        ("ncbi_disease/devel.tsv", 923, None),
        ("ncbi_disease/test.tsv", 940, None),
    ],
)
def test_columns(name, sentences, nodes):
    dataset = read(DATA / name)
    assert len(dataset) == sentences
    assert nodes is None or sum(map(len, dataset.X)) == nodes
    assert dataset.notes == []
    assert {label[0] for labels in dataset.y for label in labels} == set("BIO")
    assert written(dataset, "conll") == text_of(DATA / name)


@pytest.mark.parametrize(("part", "sentences"), [("train", 12543), ("dev", 2001)])
def test_entities_of_several_annotators(part, sentences):
    """Some sentences of the training part have two columns more than others."""
    path = DATA / f"ewt/{part}.ner.iob2.gz"
    dataset = read(path, columns=2, label=3, ragged=True)
    assert len(dataset) == sentences
    assert {label[0] for labels in dataset.y for label in labels} <= set("BIO")
    assert written(dataset, "conll") == text_of(path)
    assert written(dataset.with_labels(dataset.y), "conll") == text_of(path)


def test_the_papers_spanish_sentences():
    dataset = read(DATA / "conll2002/esp.train", columns=1)
    assert sum(map(len, dataset.X[:300])) == 8541
    assert len({label for labels in dataset.y for label in labels}) == 9


@pytest.mark.parametrize(
    ("part", "sentences"), [pytest.param("train", 7050, marks=pytest.mark.slow), ("dev", 507)]
)
def test_japanese_trees(part, sentences):
    path = DATA / f"ja_gsd_ne/{part}.conllu.gz"
    dataset = read(path, label="MISC:NE")
    assert len(dataset) == sentences
    assert {label[0] for labels in dataset.y for label in labels} == set("BILUO")
    assert {label for labels in dataset.y for label in labels if label[0] == "O"} == {"O"}
    assert written(dataset, "conllu") == text_of(path)


def test_english_trees():
    trees = read(path := DATA / "ewt/dev.conllu.gz")
    assert len(trees) == 2001
    assert written(trees, "conllu") == text_of(path)


@pytest.mark.parametrize(
    ("part", "sentences", "acyclic", "many_parents"),
    [("train", 12544, 10749, 3864), ("dev", 2001, 1798, 476)],
)
def test_english_graphs(part, sentences, acyclic, many_parents):
    path = DATA / f"ewt/{part}.conllu.gz"
    graphs = read(path, graph="dag", cyclic="skip")
    assert len(graphs) == acyclic
    assert f"{sentences - acyclic} of {sentences} sentences" in graphs.notes[0]
    broken = read(path, graph="dag", cyclic="break")
    assert len(broken) == sentences
    assert f"of {sentences - acyclic} of {sentences} sentences left out" in broken.notes[0]
    assert written(broken, "conllu") == text_of(path)
    assert sum(len(x.edges) > 0 and np.bincount(x.edges[:, 1]).max() > 1 for x in graphs.X) == many_parents


@pytest.mark.parametrize(("kinase", "train", "test"), [("PKA", 166, 41), ("CK2", 111, 27)])
def test_phosphorylation_sites(kinase, train, test):
    for part, proteins in (("train", train), ("test", test)):
        path = DATA / f"phospho/{part}_{kinase}.fasta"
        dataset = read(path, sites="STY")
        assert len(dataset) == proteins
        pairs = {(r, y) for x, labels in zip(*dataset, strict=True) for r, y in zip(x, labels, strict=True)}
        assert {r for r, y in pairs if y == "site"} <= set("STY")
        assert written(read(path), "fasta") == text_of(path)
    dropped = read(DATA / "phospho/train_PKA.fasta", sites="STY").notes
    assert dropped[0].endswith("1 mark(s) dropped: the residue before is not one of STY")
