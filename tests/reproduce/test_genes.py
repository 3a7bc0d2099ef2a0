"""Gene finding, on genes whose exons are known because they are made up."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fuda import DataError
from fuda.cli import group
from fuda.reproduce import genes
from fuda.reproduce.gene_chain import COUNTED, PLAIN, STATES, TIED, Machine, learned, loss_of, pieces_of
from fuda.reproduce.gene_segments import KINDS, LONGEST, best_exons, log_lengths, segment_scores
from fuda.reproduce.gene_signals import (
    COLUMNS,
    Locus,
    Signals,
    counts,
    encoded,
    load,
    positions,
    repeated_words,
    words,
)  # fmt: skip

STOPS = ("TAA", "TAG", "TGA")
CODONS = ["GCC", "GAG", "CTG", "AAG", "GAC", "CGC", "ATC", "TTC", "GGC", "TGC"]


def made_up(seed: int, introns: int = 2) -> tuple[str, list[tuple[int, int]]]:
    """Bases with a gene of few codons among bases of another kind, and its exons."""
    random = np.random.RandomState(seed)

    def other(size: int) -> str:
        return "".join(random.choice(list("ATATTACG"), size))

    coding = "ATG" + "".join(random.choice(CODONS, 150)) + "TAA"
    cuts = sorted(random.choice(np.arange(30, len(coding) - 30), introns, replace=False).tolist())
    text, exons = other(200) + "GCCGCCACC", []
    for start, end in zip([0, *cuts], [*cuts, len(coding)], strict=True):
        exons.append((len(text), len(text) + end - start))
        text += coding[start:end]
        if end < len(coding):
            text += "GTAAGT" + other(150) + "TTTTCTTTCTTTCCTTTCAG"
    return text + other(200), exons


def loci(count: int) -> list[Locus]:
    return [Locus(f"{k}", encoded(made_up(k)[0]), made_up(k)[1]) for k in range(count)]


def translated(bases: np.ndarray, exons: list[tuple[int, int]]) -> str:
    return "".join("ACGT"[k] for start, end in exons for k in bases[start:end])


def codons(text: str) -> list[str]:
    return [text[k : k + 3] for k in range(0, len(text), 3)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gene_mouse").mkdir()
    with tarfile.open(tmp_path / "gene_mouse" / "loci.tar.gz", "w:gz") as archive:
        for k in range(8):
            text, exons = made_up(k)
            join = ",".join(f"{start + 1}..{end}" for start, end in exons)
            lines = [text[i : i + 70] for i in range(0, len(text), 70)]
            content = "\n".join([f">locus {k}", f"join({join})", *lines, ""]).encode()
            member = tarfile.TarInfo(f"./{k:03}.txt")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return tmp_path


def test_loci_are_read_as_they_were_written(folder: Path) -> None:
    annotated = load(folder)
    assert len(annotated) == 8
    for k, locus in enumerate(annotated):
        assert (locus.bases == encoded(made_up(k)[0])).all()
        assert locus.exons == made_up(k)[1]
    assert load(folder / "gene_mouse")[0].name == "000"


def test_files_that_are_no_loci_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no file loci.tar.gz; --data names"):
        load(tmp_path)
    (tmp_path / "loci.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(DataError, match="is not an archive of loci"):
        load(tmp_path)
    with tarfile.open(tmp_path / "loci.tar.gz", "w:gz") as archive:
        content = b">a\njoin(2..9)\nACGT\n"
        member = tarfile.TarInfo("7.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    with pytest.raises(DataError, match=r"7 is not a header, join"):
        load(tmp_path)


def test_features_of_a_locus_are_those_of_signals_and_counts() -> None:
    parts = loci(6)
    total = counts(parts[0])
    for locus in parts[1:5]:
        total = total.plus(counts(locus))
    again = total.plus(counts(parts[2])).plus(counts(parts[2]), -1)
    assert all((a == b).all() for a, b in zip(total[:2], again[:2], strict=True))
    repeats = repeated_words([parts[5]])
    rows = Signals(total).features(parts[5].bases, repeated_words(parts), repeats)
    column = {name: rows[:, k] for k, name in enumerate(COLUMNS)}
    starts, ends = zip(*parts[5].exons, strict=True)
    assert column["ATG"][starts[0]] == column["stop"][ends[-1] - 1] == 1
    assert (column["GT"][list(ends[:-1])] == 1).all()
    assert (column["AG"][[a - 1 for a in starts[1:]]] == 1).all()
    assert (column["donor"][list(ends[:-1])] > 3).all(), "all introns begin alike"
    place = positions(parts[5])
    for k in range(3):
        inside, outside = column[f"frame {k}"][place == k], column[f"frame {k}"][place < 0]
        assert inside.mean() > 0.2 > 0 > outside.mean()


def test_repeats_are_words_of_other_loci() -> None:
    random = np.random.RandomState(0)
    repeat = "".join(random.choice(list("ACGT"), 60))
    texts = ["".join(random.choice(list("ACGT"), 300)) for _ in range(4)]
    complement = repeat[::-1].translate(str.maketrans("ACGT", "TGCA"))
    parts = [
        Locus("", encoded(text[:100] + middle + text[100:]), [(0, 3)])
        for text, middle in zip(texts, (repeat, complement, repeat, ""), strict=True)
    ]
    total = counts(loci(1)[0])
    for part, expected in ((parts[0], True), (parts[3], False)):
        rows = Signals(total).features(part.bases, repeated_words(parts), repeated_words([part]))
        column = rows[:, COLUMNS.index("repeat")]
        assert (column[110:150].mean() > 0.9) == expected
        assert column[200:].mean() < 0.1
    assert words(encoded("AACA"), 3).tolist() == [0, 0, 1, 4]


def test_any_chain_and_any_segments_keep_the_frame() -> None:
    random = np.random.RandomState(0)
    machine, plain = Machine(), Machine(PLAIN)
    some = 0
    for _ in range(30):
        bases = random.randint(0, 4, 400)
        by_state = random.normal(size=(400, len(PLAIN)))
        by_state[:, PLAIN.index("N")] -= 1
        scores = by_state[:, [PLAIN.index(state.split(".")[0]) for state in STATES]]
        steps = np.where(machine.allowed, 0.0, -np.inf)
        flat = np.zeros((len(KINDS), LONGEST + 1))
        segments = segment_scores(bases, by_state, np.where(plain.allowed, 0.0, -np.inf), flat)
        for exons, _ in (machine.predict(bases, scores, steps), best_exons(segments)):
            some += len(exons)
            text = translated(bases, exons)
            assert len(text) % 3 == 0
            # Genes follow one another: each ends with the first stop codon in its frame.
            count = sum(codon in STOPS for codon in codons(text))
            assert not text or codons(text)[-1] in STOPS
            assert count <= len(exons)
            for start, end in exons:
                before, after = translated(bases, [(start - 2, start)]), translated(bases, [(end, end + 2)])
                assert before == "AG" or translated(bases, [(start, start + 3)]) == "ATG"
                assert after in ("GT", "GC") or translated(bases, [(end - 3, end)]) in STOPS
    assert some > 100


def test_segments_whose_lengths_do_not_count_are_the_chain() -> None:
    random = np.random.RandomState(1)
    machine, plain = Machine(), Machine(PLAIN)
    compared = 0
    for _ in range(40):
        text = "".join(random.choice(list("ACGT"), 300))
        # The chain may cut start codons there.
        text = text.replace("ATGT", "ATGA").replace("ATGC", "ATGA")
        bases = encoded(text)
        by_state = random.normal(size=(300, len(PLAIN)))
        for kind in "DIA":  # what introns are made of does not depend on the codon before them
            by_state[:, [PLAIN.index(f"{kind}{p}") for p in range(3)]] = random.normal(size=(300, 1))
        scores = by_state[:, [PLAIN.index(state.split(".")[0]) for state in STATES]]
        by_chain, best = machine.predict(bases, scores, np.where(machine.allowed, 0.0, -np.inf))
        steps = np.where(plain.allowed, 0.0, -np.inf)
        segments = segment_scores(bases, by_state, steps, np.zeros((len(KINDS), LONGEST + 1)))
        both = np.logaddexp(np.logaddexp(0, 0), 0)
        donor = segments.donor - np.logaddexp(0, 0) + both  # undo the shares of the ends of exons
        by_segments, score = best_exons(segments._replace(donor=donor, stop=segments.stop + both))
        if min((end - start for start, end in by_chain), default=2) >= 2:
            assert by_segments == by_chain
            assert score == pytest.approx(best)
            compared += len(by_chain)
    assert compared > 50


def test_lengths_are_log_probabilities_by_kind() -> None:
    tables = log_lengths([[(0, 40), (60, 180), (300, 420), (500, 900)], [(5, 1200)]])
    np.testing.assert_allclose(np.exp(tables).sum(axis=1), 1, atol=0.02)
    assert tables[:, 0].max() == -np.inf
    assert (tables[:, 20:].argmax(axis=1) + 20).tolist() == pytest.approx([38, 110, 370, 1095], rel=0.1)


def test_states_of_loci_are_allowed_and_learned() -> None:
    parts, plain = loci(4), Machine(PLAIN)
    labels = [plain.labels(locus) for locus in parts]
    for locus, states in zip(parts, labels, strict=True):
        assert plain.allowed[states[:-1], states[1:]].all()
        assert not plain.forbidden(locus.bases)[np.arange(len(states)), states].any()
    steps = plain.steps(labels)
    np.testing.assert_allclose(np.exp(steps).sum(axis=1), 1)
    none = np.zeros(0, dtype=np.int64)
    made = Signals(counts(parts[0]))
    rows = [made.features(locus.bases, repeated_words(parts), (none, none)) for locus in parts]
    pieces = pieces_of(plain, parts, rows)
    loss = loss_of(plain, pieces, steps)
    direction = np.random.RandomState(0).normal(size=len(TIED))
    ahead, behind = (loss(COUNTED + sign * 1e-5 * direction)[0] for sign in (1, -1))
    np.testing.assert_allclose((ahead - behind) / 2e-5, loss(COUNTED)[1] @ direction, rtol=1e-4)
    assert loss(learned(plain, pieces, steps))[0] < loss(COUNTED)[0]


@pytest.mark.parametrize("method", ["chain, counts", "segments, counts"])
def test_a_gene_is_found_on_either_strand(method: str) -> None:
    known, (other,) = loci(9)[:-1], loci(9)[-1:]
    finder = genes.Finder(known, [counts(locus) for locus in known], genes.METHODS[method])
    exons, is_given_strand = finder.exons_of_either(other.bases)
    assert is_given_strand
    assert exons == finder.exons(other.bases) == other.exons
    turned, is_given_strand = finder.exons_of_either(3 - other.bases[::-1])
    assert not is_given_strand
    assert turned == [(len(other.bases) - b, len(other.bases) - a) for a, b in other.exons[::-1]]


def test_accuracy_is_that_of_burset_and_guigo() -> None:
    locus = Locus("", np.zeros(100, dtype=np.int64), [(10, 20), (40, 60)])
    scores = genes.accuracy([locus, locus], [[(10, 20), (45, 60)], [(10, 20), (40, 60)]])
    assert scores["bases"].tolist() == [[25, 30, 25], [30, 30, 30]]
    assert scores["exons"].tolist() == [[1, 2, 2], [2, 2, 2]]
    assert scores["genes"].tolist() == [False, True]
    conditional = np.mean([25 / 30, 1, 1, 70 / 75])
    np.testing.assert_allclose(scores["correlation"], [2 * (conditional - 0.5), 1])


def test_genes_are_found_by_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(genes, "FOLDS", 2)
    monkeypatch.setattr(genes, "DEVELOPED_ON", 1)
    report = folder / "report.md"
    report.write_text("".join(f"<!-- fuda: biology {k} -->\n<!-- end -->\n" for k in (1, 2, 3, 4)))
    command = ["biology", "--data", str(folder), "--table", "4", "--report", str(report)]
    result = CliRunner().invoke(group, ["reproduce", *command])
    assert result.exit_code == 0, result.output
    rows = {line.split(" | ")[0][2:]: line.split(" | ") for line in report.read_text().splitlines()}
    for method in genes.METHODS:
        for share in (rows[method][1], rows[method][2]):
            assert all(float(figure) > 80 for figure in share.split(" / ")), (method, share)
    assert rows["GENSCAN (570 vertebrate sequences)"][6] == "78 / 81"


def test_the_corpus(corpora: Path) -> None:
    annotated = load(corpora)
    assert (len(annotated), sum(len(locus.bases) for locus in annotated)) == (48, 1_791_756)
    for locus in annotated:
        text = translated(locus.bases, locus.exons)
        assert [codon in STOPS for codon in codons(text)] == [False] * (len(text) // 3 - 1) + [True]
