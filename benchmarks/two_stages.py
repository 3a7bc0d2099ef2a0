"""Second CRFs that see votes on names that come again, and four CRFs that decide together.

Everything is learned from the training file of the Spanish corpus (CoNLL-2002) alone. The first
stage, ``CRF(scheme="IOB2")``, says what is seen of the other occurrences of a word: out of fold,
in five folds of neighbouring sentences, where a second stage learns, and on the part that is
labelled where it predicts. The members are a CRF with ``window=2`` and one with word classes of
the training text, each as first and as second stage; together they add their scores of whole
labelings, with equal weights, and nothing is chosen.

    python benchmarks/two_stages.py [--part dev|test] [--jobs N]

prints entity F1 on testa, or on testb. On one core it takes some three minutes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np

from common import load
from fuda import CRF
from fuda.features import text_and_votes, text_votes
from fuda.metrics import entity_scores
from fuda.models.choice.combination import Decoder
from fuda.models.choice.opinions import Opinion, scores_over
from fuda.vectors import Vectors, learn

SCHEME = "IOB2"
FOLDS = 5
FILES = {"dev": "esp.testa", "test": "esp.testb"}
Words = list[list[str]]
Observed = list[list[tuple[str, str]]]


class ClassesAndVotes:
    """Features of a word by a table of classes and vectors, and the votes on it."""

    base = "text"

    def __init__(self, table: Vectors) -> None:
        self.table = table

    def __call__(self, observation: tuple[str, str]) -> dict[str, float]:
        word, votes = observation
        return self.table(word) | dict.fromkeys(votes.split(), 1.0)


def observed(first: CRF, X: Words) -> Observed:
    """The words of a text with the votes of a first stage that has not learned from it."""
    votes = text_votes(X, first.predict_marginals(X), first.classes_)
    return [list(zip(x, names, strict=True)) for x, names in zip(X, votes, strict=True)]


def observed_out_of_fold(X: Words, y: Words, jobs: int) -> Observed:
    """The words of the training text with votes, each fold a text of its own."""
    bounds = [round(i * len(X) / FOLDS) for i in range(FOLDS + 1)]
    found: Observed = []
    for a, b in pairwise(bounds):
        first = CRF(scheme=SCHEME, n_jobs=jobs).fit(X[:a] + X[b:], y[:a] + y[b:])
        found += observed(first, X[a:b])
    return found


def scores_of(model: CRF, X: Any, classes: Any) -> Opinion:
    """What a model adds to the scores of labelings."""
    return scores_over(model, model._encode(X), classes)


def report(name: str, y: Words, predicted: Any, began: float) -> None:
    """Print the entity F1 of predictions, and the seconds since the beginning."""
    f1 = 100 * entity_scores(y, [list(labels) for labels in predicted]).micro.f1
    print(f"{name:<32}{f1:6.2f}   after {time.perf_counter() - began:.0f} s", flush=True)


def run(part: str, jobs: int) -> None:
    """Fit all models, and print the F1 of each and of the four together."""
    began = time.perf_counter()
    (X, y), (text, gold) = load("esp.train"), load(FILES[part])
    first = CRF(scheme=SCHEME, n_jobs=jobs).fit(X, y)
    report("CRF", gold, first.predict(text), began)
    table = learn(X)
    seen, seen_text = observed_out_of_fold(X, y, jobs), observed(first, text)
    wide = {"scheme": SCHEME, "n_jobs": jobs, "window": 2}
    classed = {"scheme": SCHEME, "n_jobs": jobs}
    members: list[tuple[str, CRF, Any, Any]] = [
        ("window=2", CRF(**wide), X, text),
        ("classes", CRF(features=table, **classed), X, text),
        ("second stage, window=2", CRF(features=text_and_votes, **wide), seen, seen_text),
        ("second stage, classes", CRF(features=ClassesAndVotes(table), **classed), seen, seen_text),
    ]
    opinions = []
    for name, model, train, shown in members:
        model.fit(train, y)
        report(name, gold, model.predict(shown), began)
        opinions.append(scores_of(model, shown, first.classes_))
    n_labels = len(first.classes_)
    decoder = Decoder(
        np.ones(len(members)),
        np.zeros(n_labels),
        np.zeros((n_labels, n_labels)),
        SCHEME,
        (True,) * len(members),
    )
    corpus = first._encode(text).corpus
    labels = decoder.decode(corpus, opinions, first.classes_.tolist(), n_jobs=jobs)
    report("the four together", gold, [first.classes_[part] for part in corpus.split(labels)], began)


def main() -> None:
    """Read the options, and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=list(FILES), default="dev")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    run(options.part, options.jobs)


if __name__ == "__main__":
    main()
