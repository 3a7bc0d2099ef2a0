"""The experiments on proteins, on files small enough for a test."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib import pyplot as plt
from sklearn.base import BaseEstimator

from fuda import CRF, HMM, DataError, HMPerceptron
from fuda.cli import group
from fuda.kernels import RBF
from fuda.reproduce import drawings, genes, phosphorylation, secondary_structure
from fuda.reproduce.drawings import gene, precision_by_recall, roc
from fuda.reproduce.gene_signals import Locus
from fuda.reproduce.secondary_structure import by_state, labelled, refined
from planted import proteins_with_sites

HELIX, STRAND = "LKELAKKLLEALKKL", "VTVKVEVTVRVTYTV"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cb513").mkdir()
    rows = ["input,dssp3,dssp8,disorder,cb513_mask"]
    for k in range(14):
        residues = f"GS{HELIX[k % 4 :]}PNGD{STRAND[k % 3 :]}GGWW"
        states = "CC" + "H" * (15 - k % 4) + "CCCC" + "E" * (15 - k % 3) + "CCXX"
        mask = " ".join(["1.0"] * (len(residues) - 2) + ["0.0"] * 2)
        rows.append(f"{residues},{states},,,{mask}")
    rows.append("MKV,HHH,,,0.0 0.0 0.0")
    with gzip.open(tmp_path / "cb513" / "cb513.csv.gz", "wt") as file:
        file.write("\n".join(rows) + "\n")
    (tmp_path / "phospho").mkdir()
    for kinase in phosphorylation.KINASES:
        for part, seed, count in (("train", 0, 20), ("test", 1, 6)):
            text = proteins_with_sites(count, seed)
            (tmp_path / "phospho" / f"{part}_{kinase}.fasta").write_text(text)
    return tmp_path


def test_chains_are_cut_by_the_mask(folder: Path) -> None:
    chains = secondary_structure.load(folder)
    assert len(chains.X) == 14
    assert {state for y in chains.y for state in y} == set("HEC")
    assert not any("W" in x for x in chains.X)
    assert list(map(len, chains.X)) == list(map(len, chains.y))


def test_refined_labels_tell_states_and_ends() -> None:
    for labels in ("H", "HH", "HHH", "CEEC", "HHHHHHEEEC"):
        assert [label[0] for label in refined(labels)] == list(labels)
    assert refined("HHHH") == ["H+0", "H+1", "H-1", "H-0"]


def test_probabilities_are_summed_over_refinements(folder: Path) -> None:
    chains = secondary_structure.load(folder)
    model = HMM().fit(chains.X, list(map(refined, chains.y)))
    for rows, marginals in zip(by_state(model, chains.X), model.predict_marginals(chains.X), strict=True):
        np.testing.assert_allclose(rows.sum(axis=1), 1)
        classes = list(model.classes_)
        helix = sum(marginals[:, k] for k, label in enumerate(classes) if label.startswith("H"))
        np.testing.assert_allclose(rows[:, 0], helix)
    assert labelled([np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])]) == [["C", "H"]]


def test_both_experiments_by_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hmm(train, X):
        return list(HMM().fit(*train).predict(X))

    monkeypatch.setattr(secondary_structure, "FOLDS", 3)
    monkeypatch.setattr(phosphorylation, "FOLDS", 2)
    structured = secondary_structure._structured(ends=True)
    monkeypatch.setattr(secondary_structure, "methods", lambda: {"HMM": hmm, "structured": structured})
    kernel = HMPerceptron(RBF(0.1), order=0, features="blosum62", window=3)
    sites = {"CRF, default": [CRF(window=3), CRF(window=3, l2=1e4)], phosphorylation.KERNEL: [kernel]}
    monkeypatch.setattr(phosphorylation, "methods", lambda: sites)
    monkeypatch.setattr(genes, "comparison", lambda data, progress: [])  # has tests of its own
    monkeypatch.setattr(drawings, "motif", partial(drawings.motif, window=1, most=3))  # quicker
    report = folder / "report.md"
    report.write_text("".join(f"<!-- fuda: biology {k} -->\n<!-- end -->\n" for k in (1, 2, 3, 4)))
    command = ["biology", "--data", str(folder), "--report", str(report)]
    result = CliRunner().invoke(group, ["reproduce", *command])
    assert result.exit_code == 0, result.output
    assert "PKA, CRF, default, test proteins: ROC AUC 1.000, l2=1.0\n" in result.output
    rows = {line.split(" | ")[0][2:]: line.split(" | ") for line in report.read_text().splitlines()}
    assert float(rows["HMM"][1].split()[0]) > 60
    assert float(rows["structured"][1].split()[0]) > 60
    for method in sites:
        assert float(rows[method][3]) > 95, "sites are planted, and found in other proteins"
    assert float(rows["CRF, default"][7]) > 80, "F1"
    assert rows["PhosphoPredict (Song et al. 2017)"][1] == "72.7"
    before = report.read_text()
    plots = folder / "plots"
    plots.mkdir()
    result = CliRunner().invoke(group, ["reproduce", *command, "--table", "3", "--plots", str(plots)])
    assert result.exit_code == 0, result.output
    after = report.read_text()
    assert after.split("biology 3")[0] == before.split("biology 3")[0]
    assert after.split("biology 4")[1] == before.split("biology 4")[1]
    names = {"motif_ck2.png", "precision_ck2.png", "roc_ck2.png"}
    assert {path.name for path in plots.iterdir()} == names


def test_kinases_are_those_of_the_files(tmp_path: Path) -> None:
    assert phosphorylation.kinases_in(tmp_path) == []
    for name in ("ATM", "CK2", "Abl", "PKA"):
        (tmp_path / f"train_{name}.fasta").write_text(">a\nMS#K\n")
    assert phosphorylation.kinases_in(tmp_path) == ["PKA", "CK2", "ATM", "Abl"]


def test_another_kinase_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few sites, chains of one residue, unusual letters, lower case; no other file there."""
    text = proteins_with_sites(5, 0) + ">one\nM\n>rare\nMXUBZOJ*kslt-\n"
    for k in range(6):
        text += f">none {k}\nMKWVLAGERTSY\n"
    (tmp_path / "train_ATM.fasta").write_text(text.lower())
    (tmp_path / "test_ATM.fasta").write_text(">t\nMKVS\n>one\nS\n")
    monkeypatch.setattr(phosphorylation, "methods", lambda: {"CRF, default": [CRF(window=3)]})
    result = CliRunner().invoke(group, ["reproduce", "biology", "--data", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for words in ("Table 1 is left out", "has no file cb513.csv.gz", "Table 4 is left out", "sites of ATM"):
        assert words in " ".join(result.output.split())  # lines are wrapped
    assert "Song et al." not in result.output, "these figures are of other kinases"
    assert "CRF, default  " in result.stdout, "the name, though 80 columns have no room for it"
    assert "ATM, CRF, default, fold 1 of" in result.output, "progress, where there is no terminal"
    assert "Seeds are 0. " in result.output
    folds = phosphorylation.parts(tmp_path, "ATM")[:-1]
    assert all(any("site" in y for y in part.y) for fold in folds for part in fold), "each has sites"
    result = CliRunner().invoke(group, ["reproduce", "biology", "--data", str(tmp_path), "--table", "3"])
    assert result.exit_code == 2
    assert "has the tables 1, 2, 4; choose one" in result.output


class _Ranking(BaseEstimator):
    """Ranks residues well, or the other way round, and notes which proteins it has seen."""

    seen: ClassVar[set[str]] = set()

    def __init__(self, good: bool = True) -> None:
        self.good = good

    def fit(self, X, y):
        self.classes_ = ["O", "site"]
        self.seen.update("".join(x.observations) for x in X)
        return self

    def predict_marginals(self, X):
        self.seen.update("".join(x.observations) for x in X)
        tables = []
        for x in X:
            letters = "".join(x.observations)
            after = [letters[max(0, t - 3) : t - 1] == "RR" for t in range(len(letters))]
            tables.append(np.array([[0.5, is_after == self.good] for is_after in after]))
        return tables


def test_models_are_chosen_by_what_is_learned_from(folder: Path) -> None:
    """The better one of the grid, by training proteins alone, wherever it stands in the grid."""
    good, bad = _Ranking(), _Ranking(good=False)
    train, test = phosphorylation.parts(folder, "PKA")[0]
    for models in ([good, bad], [bad, good]):
        _Ranking.seen.clear()
        assert phosphorylation.chosen(models, train) is good
        assert {"".join(x.observations) for x in train.X} == _Ranking.seen
    assert not _Ranking.seen & {"".join(x.observations) for x in test.X}
    one_with_site = train[[0]]
    assert phosphorylation.chosen([bad, good], one_with_site) is bad, "nothing to choose by"
    halves = phosphorylation._folds(train, 2)
    assert sum(len(other) for _, other in halves) == len(train)


def test_a_kinase_without_sites_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train_ATM.fasta").write_text(">a\nMKW#S\n>b\nMS#\n")
    (tmp_path / "test_ATM.fasta").write_text(">a\nMKWS\n")
    with pytest.raises(DataError, match=r"1 of the 2 proteins of train_ATM\.fasta has a site"):
        phosphorylation.parts(tmp_path, "ATM")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["reproduce", "biology", "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "has no file" in result.output


def test_only_what_draws_takes_a_folder_for_plots(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["reproduce", "letters", "--data", "d", "--plots", str(tmp_path)])
    assert result.exit_code == 2
    assert "letters draws no plots" in result.output


def test_areas_under_the_curves_are_those_of_scikit_learn() -> None:
    random = np.random.RandomState(0)
    sites = random.rand(400) < 0.2
    part = phosphorylation.Part(sites, sites + random.normal(size=400), sites, 0.0, None)
    at, share = roc(part.sites, part.scores)
    assert np.trapezoid(np.concatenate([[0], share]), np.concatenate([[0], at])) == pytest.approx(part.roc)
    recall, precision = precision_by_recall(part.sites, part.scores)
    assert recall[-1] == 1
    assert (np.diff(precision) <= 0).all()
    assert precision[0] == max(np.cumsum(sites[np.argsort(-part.scores)]) / np.arange(1, 401))


def test_a_gene_is_drawn_with_what_is_right_and_wrong() -> None:
    locus = Locus("one", np.zeros(1000, dtype=np.int64), [(100, 200), (400, 500), (700, 800)])
    axes = gene(locus, [(100, 200), (410, 500), (900, 950)])
    assert [len(bars.get_paths()) for bars in axes.collections] == [3, 1, 1, 1]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["right", "one end or both wrong", "no exon there"]
    assert axes.get_title(loc="left") == "one: 3 exons, 3 predicted"
    plt.close(axes.figure)


def test_the_gene_of_the_page_has_median_correlation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loci = [Locus(f"{k}", np.zeros(100, dtype=np.int64), [(10, 20), (40, 60)]) for k in range(24)]
    monkeypatch.setattr(drawings, "load", lambda data: loci)
    chosen: list[str] = []
    monkeypatch.setattr(drawings, "gene", lambda locus, _: chosen.append(locus.name))
    monkeypatch.setattr(drawings, "save", lambda *_: None)
    predicted = [[(10, 12 + k % 8), (40, 60)] for k in range(24)]
    drawings.draw_gene(genes.Row(*[None] * 9, predicted), "data", tmp_path)
    unseen = np.concatenate(genes.folds_of(loci)[genes.DEVELOPED_ON :])
    assert int(chosen[0]) % 8 == sorted(k % 8 for k in unseen)[len(unseen) // 2]


def test_real_methods_have_real_parameters() -> None:
    assert "CRF" in secondary_structure.methods()
    for models in phosphorylation.methods().values():
        for model in models:
            model._check_parameters()


def test_a_folder_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no file cb513.csv.gz; --data names"):
        secondary_structure.load(tmp_path)
    with pytest.raises(DataError, match=r"has no file test_CK2.fasta; --data names"):
        phosphorylation.load(tmp_path, "CK2", "test")
    with gzip.open(tmp_path / "cb513.csv.gz", "wt") as file:
        file.write("input,dssp3,cb513_mask\nMK,H,1 1\n")
    with pytest.raises(DataError, match="record 1"):
        secondary_structure.load(tmp_path)
    with gzip.open(tmp_path / "cb513.csv.gz", "wt") as file:
        file.write("input,dssp3\nmk,HC\nMK,HL\n")
    with pytest.raises(DataError, match="record 2: dssp3 has 'L'; states are H, E and C"):
        secondary_structure.load(tmp_path)
    with gzip.open(tmp_path / "cb513.csv.gz", "wt") as file:
        file.write("input,dssp3\nmk,HC\n")
    assert secondary_structure.load(tmp_path) == ([["M", "K"]], [["H", "C"]])


def test_the_corpora(corpora: Path) -> None:
    chains = secondary_structure.load(corpora)
    assert (len(chains.X), sum(map(len, chains.X))) == (509, 83_991)
    assert len(phosphorylation.load(corpora, "PKA", "train")) == 166
