"""How far a person is: how good the model was before each lesson, counts of labels, speed.

Of spans the measure is F1: nearly all words are in none, and are right from the first sentence on.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from itertools import pairwise
from typing import Any

from fuda import schemes
from fuda.active.outlook import learning_curve, outlook
from fuda.formats.spans import segments
from fuda.page.store import LABELLED, Store

_PAUSE = 120.0  # a person who does not answer for so many seconds was away
_RECENT = 50  # the speed is that of the last so many answers
_AHEAD = 50
_LATELY = 25  # the share of right words and the corrections are of the last so many sentences
_POINTS = 300  # a curve has so many points at most


def progress(store: Store) -> dict[str, Any]:
    """Return how far a person is.

    Parameters
    ----------
    store : Store
        The store.

    Returns
    -------
    dict
        As the page shows it.
    """
    steps = store.steps()
    is_spans = store.unit.scheme is not None
    right, total = ("hits", "spans") if is_spans else ("right", "words")
    measured = [more for *_, more in steps if total in more]
    counts = [more[right] for more in measured], [more[total] for more in measured]
    points = learning_curve(*counts, f1=is_spans)
    more_to_come = outlook(*counts, ahead=_AHEAD, f1=is_spans)
    recent = measured[-_LATELY:]
    words = sum(more["words"] for more in recent)
    times = [when for _, when, *_ in steps][-_RECENT - 1 :]
    gaps = [after - before for before, after in pairwise(times) if after - before < _PAUSE]
    per_minute = round(60 / statistics.fmean(gaps), 2) if gaps and sum(gaps) > 0 else None
    return {
        "measure": "f1" if is_spans else "accuracy",
        "words": sum(more["right"] for more in recent) / words if words else None,
        "corrected": statistics.fmean(more["corrected"] for more in recent) if is_spans and recent else None,
        "points": [point._asdict() for point in points[:: 1 + len(points) // _POINTS]],
        "labels": _counts(store),
        "per_minute": per_minute,
        "outlook": None if more_to_come is None else more_to_come._asdict(),
    }


def _counts(store: Store) -> list[dict[str, Any]]:
    """How often each label was given, in the order of the labels."""
    counts: Counter[str] = Counter()
    is_spans = store.unit.scheme is not None
    for text, often in store.label_lists(LABELLED):
        labels = json.loads(text)
        kinds = (
            [kind for kind, *_ in segments(labels)] if is_spans else [str(x) for x in labels if x is not None]
        )
        for kind in kinds:
            counts[kind] += often
    return [
        {"label": kind, "count": counts[kind]}
        for kind in store.kinds
        if kind != schemes.OUTSIDE or not is_spans
    ]
