"""Wrong labels that were planted: how many of the first doubts are of them?

Two kinds, each in a copy of the data of its own: 2 % of all labels are turned to others at
random; and 2 % of the bounds of entities are moved by one word. Then as many doubts are looked at
as there are planted errors, and precision is the share that name one (each error counts once).
The rival is cleanlab (https://github.com/cleanlab/cleanlab, ``pip install cleanlab``), whose
ranking of tokens gets the out-of-fold marginals of the same CRFs: the first tokens, as many as
have a wrong label, and precision is the share that do. Labels that were wrong before count as
false alarms of both. With ``--left-out`` a kernel machine of all sentences judges each without
its own coefficients, too.

Run: ``python benchmarks/doubts.py [CORPUS ...] [--sentences N] [--seed S] [--left-out]
[--json FILE]``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from corpora import FILES, sentences
from fuda import CRF
from fuda.active import learner_for
from fuda.active.doubts import doubts
from fuda.active.edits import Field, changes
from fuda.marginalized.calibration import DecisionInputs
from fuda.marginalized.support import Support
from fuda.schemes import encode, entities
from fuda.selection.folds import splits

SHARE = 0.02
Labels = list[list[str]]
Errors = list[tuple[int, set[int]]]  # structure and the nodes whose labels were changed


def turned(y: Labels, seed: int) -> tuple[Labels, Errors]:
    """Labels of which some are turned to others."""
    random, labels = np.random.RandomState(seed), sorted({label for row in y for label in row})
    places = [(i, t) for i, row in enumerate(y) for t in range(len(row))]
    changed, errors = [list(row) for row in y], []
    for place in random.choice(len(places), round(SHARE * len(places)), replace=False):
        i, t = places[place]
        changed[i][t] = str(random.choice([label for label in labels if label != y[i][t]]))
        errors.append((i, {t}))
    return changed, errors


def moved(y: Labels, seed: int) -> tuple[Labels, Errors]:
    """Labels in which some bounds of entities are moved by one word."""
    random, changed, errors = np.random.RandomState(seed), [list(row) for row in y], []
    bounds = [(i, segment, side) for i, row in enumerate(y) for segment in entities(row) for side in (1, 2)]
    for place in random.permutation(len(bounds)):
        i, segment, side = bounds[place]
        now = entities(changed[i])
        if segment not in now or len(errors) == round(SHARE * len(bounds)):
            continue
        others, kind = [other for other in now if other != segment], segment[0]
        occupied = {t for _, a, b in others for t in range(a, b)}
        by = 1 - 2 * random.randint(2)
        start, end = segment[1] + by * (side == 1), segment[2] + by * (side == 2)
        if start < 0 or end > len(y[i]) or start >= end or occupied & set(range(start, end)):
            continue
        after = encode([*others, (kind, start, end)], len(y[i]), "IOB2")
        errors.append((i, {t for t in range(len(after)) if after[t] != changed[i][t]}))
        changed[i] = after
    return changed, errors


def precision(named: list[tuple[int, set[int]]], errors: Errors) -> float:
    """The percentage of the first places, as many as there are errors, that name a new error."""
    unmatched = {i: [nodes for k, nodes in errors if k == i] for i, _ in errors}
    hits = 0
    for i, nodes in named[: len(errors)]:
        match = next((error for error in unmatched.get(i, []) if error & nodes), None)
        if match is not None:
            unmatched[i].remove(match)
            hits += 1
    return 100 * hits / len(errors)


def rivals(X: Labels, y: Labels, judge: CRF, errors: Errors) -> dict[str, float]:
    """The precision of cleanlab's rankings of tokens, by the marginals of the same folds."""
    from cleanlab.token_classification.filter import find_label_issues
    from cleanlab.token_classification.rank import get_label_quality_scores

    classes = sorted({label for row in y for label in row})
    tables: list[Any] = [None] * len(X)
    for train, test in splits(len(X), 5, shuffle=True):
        fold = CRF(**judge.get_params()).fit([X[i] for i in train], [y[i] for i in train])
        for i, table in zip(test, fold.predict_marginals([X[i] for i in test]), strict=True):
            wide = np.zeros((len(table), len(classes)))
            wide[:, [classes.index(label) for label in fold.classes_]] = table
            tables[i] = wide
    numbers = [[classes.index(label) for label in row] for row in y]
    wrong = [(i, {t}) for i, nodes in errors for t in nodes]
    precisions = {}
    for method in ("self_confidence", "normalized_margin"):
        scores = get_label_quality_scores(numbers, tables, token_score_method=method)[1]
        tokens = [(float(s), i, t) for i, row in enumerate(scores) for t, s in enumerate(row)]
        ranked = [(i, {t}) for _, i, t in sorted(tokens)]
        precisions[f"cleanlab, {method}"] = precision(ranked, wrong)
        if method == "self_confidence":
            issues = [(int(i), {int(t)}) for i, t in find_label_issues(numbers, tables)]
            rest = (
                [place for place in ranked if place not in issues[: len(wrong)]]
                if len(issues) < len(wrong)
                else []
            )
            precisions["cleanlab, issues"] = precision([*issues, *rest], wrong)
    return precisions


def left_out(X: list[list[str]], y: list[list[str]], top: int) -> Errors:
    """Doubts by one kernel machine, each structure judged without its own coefficients."""
    model: Any = learner_for(X, "IOB2", kernel=True).fit(X, y)
    encoded = model._encode(X)
    prior, bounds = model._prior_of(encoded.corpus, None), encoded.corpus.offsets
    scores, (support,) = model._scores_by(model._support, encoded, prior).doubles(), model._support
    members = {tuple(x): number for number, x in enumerate(model.support_structures_)}
    for i, x in enumerate(X):
        if (number := members.get(tuple(x))) is not None:
            a, b = support.examples.offsets[number : number + 2]
            itself = Support(support.examples.take(np.array([number])), support.alpha[a:b])
            alone = model._encode([x])
            by_itself = model._scores_by([itself], alone, model._prior_of(alone.corpus, None))
            scores[bounds[i] : bounds[i + 1]] -= by_itself.doubles()
    nodes, pairs = model._calibration.labelings(DecisionInputs(scores, prior.nodes, joint=prior.joint))
    names, scored = model.classes_.tolist(), []
    for i, (a, b) in enumerate(pairwise(bounds.tolist())):
        own_pairs = np.maximum(pairs[a:b] if pairs.ndim == 3 else pairs, -1e3)
        field = Field(nodes[a:b], np.arange(-1, b - a - 1), own_pairs)
        numbers = np.array([names.index(label) for label in y[i]])
        for change in changes(field, numbers, names, "IOB2", np.ones(b - a, dtype=bool)):
            scored.append((-change.score, i, set(change.nodes)))
    return [(i, places) for _, i, places in sorted(scored, key=lambda entry: entry[:2])[:top]]


def main() -> None:
    """Measure, and print a row per corpus and kind of errors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="*", default=list(FILES))
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--left-out", action="store_true", help="also by a kernel machine; minutes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for corpus in options.corpora:
        X, y = sentences(corpus)
        chosen = np.random.RandomState(options.seed).permutation(len(X))[: options.sentences]
        X, y = [X[i] for i in chosen], [y[i] for i in chosen]
        for plant in (turned, moved):
            labels, errors = plant(y, options.seed)
            judge, began = CRF(tol=1e-3), time.perf_counter()
            doubtful = doubts(X, labels, estimator=judge, top=len(errors))
            row: dict[str, Any] = {"corpus": corpus, "errors": plant.__name__, "planted": len(errors)}
            row |= {"sentences": len(X), "words": sum(map(len, X)), "seed": options.seed}
            row |= {"seconds": time.perf_counter() - began}
            row |= {"fuda": precision([(d.structure, set(d.nodes)) for d in doubtful], errors)}
            row |= rivals(X, labels, judge, errors)
            if options.left_out:
                row["one left out"] = precision(left_out(X, labels, len(errors)), errors)
            rows.append(row)
            print({k: round(v, 1) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
