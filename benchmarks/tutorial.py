"""sklearn-crfsuite's CoNLL-2002 tutorial, by it and by `fuda.compat.sklearn_crfsuite`.

Features of words and their neighbours as dicts, L-BFGS with c1 = c2 = 0.1 and 100
iterations, F1 over all labels but O, a report, a small parameter search on a part of the
data, and a look at weights.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from common import DATA, measure, ratio, spread, worker

HERE = Path(__file__).resolve().parent


def describe(word: str, tag: str) -> dict[str, Any]:
    """What is visible of a neighbour."""
    seen: dict[str, Any] = {"lower": word.lower(), "title": word.istitle(), "upper": word.isupper()}
    return seen | {"tag": tag, "tag2": tag[:2]}


def items(sentence: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Features of the words of a sentence."""
    rows = []
    for t, (word, tag) in enumerate(sentence):
        row = {
            "bias": 1.0,
            "end2": word[-2:],
            "end3": word[-3:],
            "digit": word.isdigit(),
            **describe(word, tag),
        }
        for offset, edge in ((-1, "BOS"), (1, "EOS")):
            if 0 <= t + offset < len(sentence):
                seen = describe(*sentence[t + offset])
                row |= {f"{offset:+d}:{name}": value for name, value in seen.items()}
            else:
                row[edge] = True
        rows.append(row)
    return rows


def run(module: str) -> dict[str, Any]:
    """All steps with a package of that name."""
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import RandomizedSearchCV

    from fuda import read

    # a file here has the rival's name: take the folder off the path before importing the rival
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != HERE]
    package = import_module(module)
    CRF, metrics = package.CRF, import_module(f"{module}.metrics")
    (X, y), (X_test, y_test) = (read(DATA / name) for name in ("esp.train", "esp.testb"))
    X, X_test = [items(list(x)) for x in X], [items(list(x)) for x in X_test]
    fixed = {"algorithm": "lbfgs", "max_iterations": 100, "all_possible_transitions": True}
    # Compilation is not measured.
    CRF(**fixed | {"max_iterations": 2}).fit(X[:20], y[:20]).predict(X[:2])
    began = time.perf_counter()
    crf = CRF(c1=0.1, c2=0.1, **fixed).fit(X, y)
    figures: dict[str, Any] = {"fit": time.perf_counter() - began}
    began = time.perf_counter()
    predicted = crf.predict(X_test)
    figures["predict"] = time.perf_counter() - began
    labels = [label for label in crf.classes_ if label != "O"]
    figures["f1"] = metrics.flat_f1_score(y_test, predicted, average="weighted", labels=labels)
    labels.sort(key=lambda name: (name[1:], name[0]))
    figures["report"] = metrics.flat_classification_report(y_test, predicted, labels=labels, digits=3)
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels, zero_division=0)
    space = {"c1": [0.05, 0.5], "c2": [0.01, 0.1]}
    search = RandomizedSearchCV(CRF(**fixed), space, cv=3, n_iter=2, scoring=scorer, random_state=0)
    figures["search"] = search.fit(X[:300], y[:300]).best_score_
    figures["size"], figures["attributes"] = crf.size_, crf.num_attributes_
    figures["likely"] = [key for key, _ in Counter(crf.transition_features_).most_common(5)]
    figures["unlikely"] = [key for key, _ in Counter(crf.transition_features_).most_common()[-5:]]
    figures["states"] = [key for key, _ in Counter(crf.state_features_).most_common(5)]
    return figures


def compare(rounds: int = 3) -> list[tuple[str, str]]:
    """Rows of the table: what, and how many times faster we are."""
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(measure(__file__, "theirs"))
        ours.append(measure(__file__, "ours"))
    rows = []
    for name in ("fit", "predict"):
        a, b = [f[name] for f in theirs], [f[name] for f in ours]
        rows += [(f"{name}, seconds, theirs / ours", f"{spread(a, 1)} / {spread(b, 1)}"), (name, ratio(a, b))]
    f1 = f"{theirs[0]['f1']:.4f} / {ours[0]['f1']:.4f}"
    return [*rows, ("F1 of labels other than O, theirs / ours", f1)]


if __name__ == "__main__":
    worker({"theirs": lambda: run("sklearn_crfsuite"), "ours": lambda: run("fuda.compat.sklearn_crfsuite")})
