"""The experiment on handwritten letters, on drawings small enough for a test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fuda import CRF, DataError, HMPerceptron
from fuda.cli import group
from fuda.reproduce import letters
from fuda.reproduce.letters import Method, flat, orientations

WORDS = ("abc", "bca", "cab", "aabb")
FOLDS = 4


def drawn(letter: str, shift: int) -> np.ndarray:
    """A stroke down, a stroke across, or a slanted one."""
    image = np.zeros((16, 8), dtype=np.uint8)
    if letter == "a":
        image[3:13, 3 + shift] = 1
    elif letter == "b":
        image[8 + shift, 1:7] = 1
    else:
        for k in range(7):
            image[4 + k + shift, k] = 1
    return image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.RandomState(0)
    words = [(word, fold) for fold in range(FOLDS) for word in WORDS for _ in range(3)]
    images = [drawn(letter, random.randint(-1, 2)) for word, _ in words for letter in word]
    text = "".join(word for word, _ in words)
    (tmp_path / "ocr_letters").mkdir()
    np.savez(
        tmp_path / "ocr_letters" / "letters.npz",
        pixels=np.packbits(np.array(images).reshape(len(images), -1), axis=1),
        labels=np.array(["abc".index(letter) for letter in text]),
        offsets=np.cumsum([0, *(len(word) for word, _ in words)]),
        folds=np.array([fold for _, fold in words]),
    )
    return tmp_path


def test_letters_are_read(folder: Path) -> None:
    images = letters.load(folder)
    assert images.pixels.shape == (len(images.labels), 16, 8)
    words = {"".join(word) for word in images.words(images.labels, np.arange(len(images.folds)))}
    assert words == set(WORDS)
    np.testing.assert_array_equal(images.pixels[0].sum(), 10)
    with pytest.raises(DataError, match=r"has no file letters.npz; --data names"):
        letters.load(folder / "nowhere")
    (folder / "broken").mkdir()
    (folder / "broken" / "letters.npz").write_bytes(b"no archive")
    with pytest.raises(DataError, match="has no pixels, labels, offsets and folds"):
        letters.load(folder / "broken")


def test_orientations_tell_directions_and_hardly_shifts() -> None:
    images = np.array([drawn(letter, shift) for letter in "abc" for shift in (-1, 0, 1)], dtype=float)
    vectors = orientations(images)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1)
    inner, pixels = vectors @ vectors.T, flat(images) @ flat(images).T
    for k in (0, 3, 6):  # letters, each with two neighbours
        assert inner[k : k + 3, k : k + 3].min() > 0.5
        others = np.setdiff1d(np.arange(9), np.arange(k, k + 3))
        assert inner[k : k + 3, others].max() < inner[k : k + 3, k : k + 3].min()
    assert pixels[0, 1] == 0, "by pixels a shifted stroke has nothing in common"
    assert not orientations(np.zeros((1, 16, 8))).any()


def test_words_that_were_learned_from_are_preferred(folder: Path) -> None:
    class Doubtful:
        def predict_nbest(self, X: list, n: int) -> list:
            return [[(list("aba"), -0.1), (list("abc"), -3.0)], [(list("ccc"), -0.1)]]

    words = letters._known_words(Doubtful(), [np.zeros(3)] * 2, [list("abc")])
    assert words == [list("abc"), list("ccc")]


def test_letters_by_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {"features": "word", "window": 0}
    chosen = {
        "CRF": Method(CRF(l2=0.02, **seen), orientations, words=True),
        "third order": Method(HMPerceptron(order=3, **seen), orientations),
    }
    monkeypatch.setattr(letters, "methods", lambda: chosen)
    report = folder / "report.md"
    report.write_text("<!-- fuda: letters 1 -->\n<!-- end -->\n")
    command = ["letters", "--data", str(folder), "--report", str(report)]
    result = CliRunner().invoke(group, ["reproduce", *command])
    assert result.exit_code == 0, result.output
    rows = {line.split(" | ")[0][2:]: line.split(" | ") for line in report.read_text().splitlines()}
    for method in chosen:
        assert float(rows[method][1]) < 5
        assert float(rows[method][3]) < 5


def test_choices_were_made_on_what_is_learned_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold 0, on which all was chosen, is never tested on; nine folds are all but the tested."""
    learned: list[tuple[set[int], set[int]]] = []

    def error(method, images, train, test):
        learned.append((set(images.folds[train]), set(images.folds[test])))
        return float(len(learned))

    monkeypatch.setattr(letters, "error", error)
    rows = list(letters.comparison(letters.load(folder), lambda _: None, {"any": Method(None, flat)}))
    assert learned == [({0}, {1, 2, 3}), ({0, 2, 3}, {1})]
    assert (rows[0].one, rows[0].nine) == (1, 2)


def test_real_methods_have_real_parameters() -> None:
    for method in letters.methods().values():
        method.model._check_parameters()


def test_the_corpus(corpora: Path) -> None:
    images = letters.load(corpora)
    assert (len(images.folds), len(images.labels)) == (6_877, 52_152)
    words = images.words(images.labels, np.flatnonzero(images.folds == 0))
    assert len({"".join(word) for word in words}) == 55
