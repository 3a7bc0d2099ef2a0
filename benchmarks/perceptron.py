"""python-crfsuite's averaged perceptron and ours on the same features; what higher orders cost."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from common import load, measure, ratio, spread, window_features, word_features, worker

EPOCHS = 10
SENTENCES = 1000  # of the table of orders
ORDERS = (0, 1, 2, 3)


def theirs(all_pairs: float) -> dict[str, Any]:
    """`ap` with weights for all pairs of features and labels, or (default) those that occur."""
    import pycrfsuite

    from fuda.metrics import entity_scores

    X, y = load("esp.train")
    began = time.perf_counter()
    trainer = pycrfsuite.Trainer("ap", verbose=False)
    pairs = {"feature.possible_states": bool(all_pairs), "feature.possible_transitions": bool(all_pairs)}
    trainer.set_params({"max_iterations": EPOCHS, **pairs})
    for words, labels in zip(X, y, strict=True):
        trainer.append(window_features(words), labels)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        training = time.perf_counter()
        trainer.train(path)
        ended = time.perf_counter()
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        test, truth = load("esp.testb")
        f1 = entity_scores(truth, [tagger.tag(window_features(words)) for words in test]).micro.f1
    return {"whole": ended - began, "training": ended - training, "f1": 100 * f1}


def ours(order: float, sentences: float) -> dict[str, Any]:
    """A fit on the first sentences (0: all): the epochs alone, and end to end from words."""
    from fuda.data.structures import as_structures
    from fuda.data.window_encoding import WindowEncoder
    from fuda.metrics import entity_scores
    from fuda.models.hm_perceptron import HMPerceptron

    X, y = load("esp.train")
    X, y = X[: int(sentences) or None], y[: int(sentences) or None]
    model = HMPerceptron(features=word_features, window=1, order=int(order), epochs=EPOCHS, random_state=0)
    model.fit(X[:50], y[:50])  # loads compiled code
    began = time.perf_counter()
    WindowEncoder(word_features, 1).fit(as_structures(X))
    encoded = time.perf_counter()
    model.fit(X, y)
    ended = time.perf_counter()
    test, truth = load("esp.testb")
    f1 = entity_scores(truth, model.predict(test)).micro.f1
    return {
        "whole": ended - encoded,
        "training": (ended - encoded) - (encoded - began),
        "epochs": len(model.mistakes_),
        "f1": 100 * f1,
    }


def compare(rounds: int = 5) -> list[tuple[str, str]]:
    """Rows of the table: how many times faster we are, and time and F1 by order."""
    measured: dict[str, list[dict[str, Any]]] = {"all": [], "seen": [], "ours": []}
    for _ in range(rounds):
        measured["seen"].append(measure(__file__, "theirs", 0))
        measured["ours"].append(measure(__file__, "ours", 1, 0))
        measured["all"].append(measure(__file__, "theirs", 1))

    def column(contender: str, figure: str) -> list[float]:
        return [figures[figure] for figures in measured[contender]]

    f1 = " / ".join(f"{measured[contender][0]['f1']:.2f}" for contender in ("seen", "all", "ours"))
    rows = [(f"{EPOCHS} epochs: entity F1 on testb, theirs / theirs with all pairs / ours", f1)]
    rows += [
        (f"{EPOCHS} epochs: {whose} training, seconds", spread(column(contender, "training")))
        for contender, whose in (("seen", "their"), ("all", "their (all pairs)"), ("ours", "our"))
    ]
    rows += [
        (f"{EPOCHS} epochs: {figure}{words}", ratio(column(contender, figure), column("ours", figure)))
        for contender, words in (("seen", ""), ("all", ", their weights for all pairs"))
        for figure in ("training", "whole")
    ]
    memory = " / ".join(f"{measured[contender][0]['megabytes']:.0f}" for contender in ("seen", "all", "ours"))
    return [*rows, (f"{EPOCHS} epochs: peak memory, MB, theirs / all pairs / ours", memory), *by_order()]


def by_order(rounds: int = 3) -> list[tuple[str, str]]:
    """Seconds per epoch and F1, by how many labels before it a label depends on."""
    rows = []
    for order in ORDERS:
        runs = [measure(__file__, "ours", order, SENTENCES) for _ in range(rounds)]
        seconds = [figures["training"] / figures["epochs"] for figures in runs]
        rows.append((f"order {order}, {SENTENCES:,} sentences: seconds per epoch", spread(seconds, 3)))
        rows.append((f"order {order}, {SENTENCES:,} sentences: entity F1 on testb", f"{runs[0]['f1']:.2f}"))
    return rows


if __name__ == "__main__":
    worker({"theirs": theirs, "ours": ours})
