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
    mistakes = find_mistakes(truth, guess, evaluate(truth, guess))
    assert mistakes.by_type["PER"] == {"correct": 0, "bounds": 1, "type": 0, "missed": 0, "invented": 0}
    assert mistakes.by_type["LOC"] == {"correct": 0, "bounds": 0, "type": 1, "missed": 1, "invented": 1}
    assert mistakes.structures == 2
    assert (mistakes.seen, mistakes.unseen) == (None, None)
    assert find_mistakes([["N"]], [["V"]], evaluate([["N"]], [["V"]])).by_type == {}


@given(st.lists(st.lists(st.tuples(*[st.sampled_from(LABELS)] * 2, st.booleans()), min_size=1, max_size=6)))
def test_all_is_counted_once(nodes):
    truth, guess, new = ([[node[k] for node in nodes] for nodes in nodes] for k in range(3))
    report = evaluate(truth, guess)
    mistakes = find_mistakes(truth, guess, report, [np.array(flags, dtype=bool) for flags in new])
    assert sum(len(c.places) for c in mistakes.confusions) == report.tokens - report.correct
    for c in mistakes.confusions:
        for i, t in c.places:
            assert (truth[i][t], guess[i][t]) == (c.right, c.predicted)
    sizes = [len(c.places) for c in mistakes.confusions]
    assert sizes == sorted(sizes)[::-1]
    assert [a + b for a, b in zip(mistakes.seen, mistakes.unseen, strict=True)] == [
        report.tokens,
        report.tokens - report.correct,
    ]
    if report.entity_scores is not None:
        for kind, counts in mistakes.by_type.items():
            true = sum(counts.values()) - counts["invented"]
            assert true == report.entity_scores.each[kind].support
            assert counts["correct"] <= report.entity_scores.each[kind].predicted
    assert mistakes.to_dict(1)["structures"] == mistakes.structures
