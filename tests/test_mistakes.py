"""Mistakes: every wrong node is one, and every entity has one outcome."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuda.metrics import evaluate
from fuda.mistakes import find_mistakes

LABELS = ["B-PER", "I-PER", "B-LOC", "I-LOC", "O"]


def test_entities_by_what_happened_to_them():
    truth = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC", "O", "O"], [None, "B-PER"]]
    guess = [["B-PER", "O", "O", "B-PER", "O", "O", "O", "B-LOC"], ["O", "O"]]
    found = find_mistakes(truth, guess, evaluate(truth, guess))
    assert found.by_type["PER"] == {"correct": 0, "bounds": 1, "type": 0, "missed": 0, "invented": 0}
    assert found.by_type["LOC"] == {"correct": 0, "bounds": 0, "type": 1, "missed": 1, "invented": 1}
    assert found.structures == 2
    assert (found.seen, found.unseen) == (None, None)
    assert find_mistakes([["N"]], [["V"]], evaluate([["N"]], [["V"]])).by_type == {}


@given(st.lists(st.lists(st.tuples(*[st.sampled_from(LABELS)] * 2, st.booleans()), min_size=1, max_size=6)))
def test_all_is_counted_once(nodes):
    truth, guess, new = ([[node[k] for node in nodes] for nodes in nodes] for k in range(3))
    report = evaluate(truth, guess)
    found = find_mistakes(truth, guess, report, [np.array(own, dtype=bool) for own in new])
    assert sum(len(c.places) for c in found.confusions) == report.tokens - report.correct
    for c in found.confusions:
        for i, t in c.places:
            assert (truth[i][t], guess[i][t]) == (c.right, c.predicted)
    assert [len(c.places) for c in found.confusions] == sorted(len(c.places) for c in found.confusions)[::-1]
    assert [a + b for a, b in zip(found.seen, found.unseen, strict=True)] == [
        report.tokens,
        report.tokens - report.correct,
    ]
    if report.entity_scores is not None:
        for kind, counts in found.by_type.items():
            true = sum(counts.values()) - counts["invented"]
            assert true == report.entity_scores.each[kind].support
            assert counts["correct"] <= report.entity_scores.each[kind].predicted
    assert found.to_dict(1)["structures"] == found.structures
