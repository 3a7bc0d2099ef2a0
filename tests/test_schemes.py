"""Tag schemes against definitions of their own (brute force) and against seqeval."""

from __future__ import annotations

import warnings
from itertools import pairwise, product

import numpy as np
import pytest
import seqeval.scheme
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from fuda.errors import DataError
from fuda.schemes import (
    SCHEMES,
    check_labels,
    convert,
    encode,
    entities,
    forbid,
    guess_scheme,
    legal,
    scheme_name,
    split_label,
)

TYPES = ("X", "Y")
PREFIXES = {"IOB1": "IB", "IOB2": "IB", "IOE1": "IE", "IOE2": "IE", "IOBES": "BIES", "BILOU": "BILU"}
quick = settings(max_examples=300, deadline=None, derandomize=True)


def alphabet(scheme, types=TYPES):
    return ["O", *(f"{prefix}-{kind}" for prefix in PREFIXES[scheme] for kind in types)]


def segmentations(length, types=TYPES):
    """Every set of segments that do not overlap, of every type, over `length` nodes."""
    if length == 0:
        yield []
        return
    for rest in segmentations(length - 1, types):
        yield rest
    for size in range(1, length + 1):
        for rest in segmentations(length - size, types):
            for kind in types:
                yield [*rest, (kind, length - size, length)]


def written(segments, length, scheme):
    """The labels of segments, from the schemes' definitions node by node."""
    labels = ["O"] * length
    for kind, start, end in segments:
        after_twin = any(k == kind and e == start for k, _, e in segments)
        before_twin = any(k == kind and s == end for k, s, _ in segments)
        for node in range(start, end):
            first, last = node == start, node == end - 1
            prefix = {
                "IOB1": "B" if first and after_twin else "I",
                "IOB2": "B" if first else "I",
                "IOE1": "E" if last and before_twin else "I",
                "IOE2": "E" if last else "I",
                "IOBES": "S" if first and last else "B" if first else "E" if last else "I",
                "BILOU": "U" if first and last else "B" if first else "L" if last else "I",
            }[scheme]
            labels[node] = f"{prefix}-{kind}"
    return labels


def accepted(sequence, labels, masks):
    start, transition, end = masks
    ids = [labels.index(label) for label in sequence]
    return bool(start[ids[0]] and all(transition[a, b] for a, b in pairwise(ids)) and end[ids[-1]])


@st.composite
def segmented(draw, types=("PER", "LOC", "_", "A-B")):
    """A length and segments over it."""
    sizes = draw(st.lists(st.tuples(st.integers(1, 4), st.sampled_from([None, *types])), max_size=8))
    segments, at = [], 0
    for size, kind in sizes:
        if kind is not None:
            segments.append((kind, at, at + size))
        at += size
    return at, segments


# ---
# well-formedness ------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_legal_masks_accept_exactly_the_encodings_of_segments(scheme):
    labels = alphabet(scheme)
    masks = legal(labels, scheme)
    for length in range(1, 5):
        well_formed = {tuple(written(segments, length, scheme)) for segments in segmentations(length)}
        by_masks = {
            sequence for sequence in product(labels, repeat=length) if accepted(sequence, labels, masks)
        }
        assert by_masks == well_formed


@pytest.mark.parametrize("scheme", SCHEMES)
def test_legal_masks_of_longer_sequences_of_one_type(scheme):
    labels = alphabet(scheme, types=("X",))
    masks = legal(labels, scheme)
    well_formed = {tuple(written(segments, 6, scheme)) for segments in segmentations(6, types=("X",))}
    assert {s for s in product(labels, repeat=6) if accepted(s, labels, masks)} == well_formed


def test_legal_shapes_and_types_of_masks():
    for labels in ([], ["O"], ["B-PER", "I-PER", "O"]):
        start, transition, end = legal(labels, "IOB2")
        assert start.shape == end.shape == (len(labels),)
        assert transition.shape == (len(labels), len(labels))
        assert start.dtype == transition.dtype == end.dtype == np.bool_


def test_legal_knows_labels_without_a_type():
    start, transition, _ = legal(["O", "B", "I"], "IOB2")
    assert start.tolist() == [True, True, False]
    assert transition.tolist() == [[True, True, False], [True, True, True], [True, True, True]]


# --- writing and
# converting -----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_encode_equals_the_definition(scheme):
    for length in range(5):
        for segments in segmentations(length):
            assert encode(segments, length, scheme) == written(segments, length, scheme)


@quick
@given(segmented(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_convert_keeps_the_segments(case, source, target):
    length, segments = case
    assert convert(encode(segments, length, source), source, target) == encode(segments, length, target)


@quick
@given(segmented(), st.sampled_from([scheme for scheme in SCHEMES if scheme != "IOE1"]))
def test_strict_reading_undoes_encode(case, scheme):
    length, segments = case
    assert entities(encode(segments, length, scheme), scheme) == segments


@quick
@given(segmented(), st.sampled_from([scheme for scheme in SCHEMES if scheme != "BILOU"]))
def test_lenient_reading_undoes_encode(case, scheme):
    length, segments = case
    assert entities(encode(segments, length, scheme)) == segments


def test_seqeval_misses_a_lone_ioe1_segment_before_its_twin():
    labels = encode([("X", 0, 1), ("X", 1, 2)], 2, "IOE1")
    assert labels == ["E-X", "I-X"]
    assert entities(labels, "IOE1") == [("X", 1, 2)]  # as seqeval
    assert convert(labels, "IOE1", "IOB2") == ["B-X", "B-X"]  # as the scheme says


def test_segments_may_come_in_any_order():
    assert encode([("Y", 1, 2), ("X", 0, 1)], 2, "IOB2") == ["B-X", "B-Y"]


@quick
@given(st.data(), st.sampled_from(SCHEMES))
def test_convert_refuses_what_is_not_well_formed(data, scheme):
    labels = alphabet(scheme)
    sequence = data.draw(st.lists(st.sampled_from(labels), min_size=1, max_size=6))
    if accepted(sequence, labels, legal(labels, scheme)):
        assert convert(sequence, scheme, scheme) == sequence
    else:
        with pytest.raises(DataError, match=rf"node \d+: .* cannot follow .* in {scheme}; .*repair"):
            convert(sequence, scheme, "IOB2")


# --- reading as
# seqeval ---------------------------------------------------------------------------


def seqeval_default(labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(kind, start, end + 1) for kind, start, end in get_entities(list(labels))]


def seqeval_strict(labels, scheme):
    tokens = seqeval.scheme.Tokens(list(labels), getattr(seqeval.scheme, scheme))
    return [(entity.tag, entity.start, entity.end) for entity in tokens.entities]


odd = [
    "O",
    "O-X",
    "B",
    "I",
    "E",
    "S",
    "L",
    "U",
    "NOUN",
    ".",
    ".-X",
    "B-",
    "B--X",
    "I-X-",
    "BX",
    "B-A-B",
    "I-A-B",
    "B-_",
]
any_label = st.one_of(
    st.sampled_from([f"{prefix}-{kind}" for prefix in "BIESLU" for kind in TYPES]), st.sampled_from(odd)
)


@settings(quick, max_examples=500)
@given(st.lists(any_label, max_size=12))
def test_lenient_reading_is_that_of_seqeval(labels):
    assert entities(labels) == seqeval_default(labels)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_strict_reading_of_all_short_sequences_is_that_of_seqeval(scheme):
    for length in range(5):
        for labels in product(alphabet(scheme), repeat=length):
            assert entities(labels, scheme) == seqeval_strict(labels, scheme)


@settings(quick)
@given(st.data(), st.sampled_from(SCHEMES))
def test_strict_reading_is_that_of_seqeval(data, scheme):
    allowed = [*alphabet(scheme), *(label for label in odd if label[0] in PREFIXES[scheme] + "O")]
    labels = data.draw(st.lists(st.sampled_from(allowed), max_size=14))
    assert entities(labels, scheme) == seqeval_strict(labels, scheme)


def test_reading_takes_arrays():
    assert entities(np.array(["B-X", "I-X"], dtype=object)) == [("X", 0, 2)]
    assert entities(np.array(["B-X", "I-X"]), "IOB2") == [("X", 0, 2)]


# ---
# guessing -------------------------------------------------------------------------------------


@quick
@given(st.lists(segmented(), min_size=1, max_size=4), st.sampled_from(SCHEMES))
def test_a_guess_is_right_or_none(cases, scheme):
    guess = guess_scheme([encode(segments, length, scheme) for length, segments in cases])
    ambiguous = {"IOB1", "IOE1"}  # alike unless twins touch
    assert guess == scheme or (
        guess is None and (scheme in ambiguous or not any(segments for _, segments in cases))
    )


@pytest.mark.parametrize(
    ("lists", "scheme"),
    [
        ([["B-X", "I-X"], ["O"]], "IOB2"),
        ([["I-X", "B-X"]], "IOB1"),
        ([["I-X", "E-X", "I-X"]], "IOE1"),
        ([["I-X", "E-X", "O"]], "IOE2"),
        ([["S-X"]], "IOBES"),
        ([["O", "U-X"]], "BILOU"),
        ([["B", "I", "O"]], "IOB2"),
        ([["B-X", None, "I-X"]], "IOB2"),
        ([["I-X"]], None),
        ([["O", "O"]], None),
        ([[]], None),
        ([], None),
        ([["B-X"], ["I-X"]], None),
        ([["NOUN", "VERB"]], None),
        ([["B-X", "NOUN"]], None),
        ([[0, 1]], None),
        ([["B-X", "O", ""]], None),
    ],
)
def test_guess(lists, scheme):
    assert guess_scheme(lists) == scheme


# --- names, parts and
# errors ----------------------------------------------------------------------


def test_scheme_names():
    assert [scheme_name(name) for name in SCHEMES] == list(SCHEMES)
    assert scheme_name("BILUO") == scheme_name("bilou") == "BILOU"
    assert entities(["U-X"], "BILUO") == [("X", 0, 1)]
    with pytest.raises(DataError, match="no tagging scheme 'IOB3'; the schemes are IOB1, IOB2"):
        entities(["O"], "IOB3")
    for function in (lambda: encode([], 1, "?"), lambda: convert([], "IOB1", "?"), lambda: legal([], "?")):
        with pytest.raises(DataError, match="no tagging scheme"):
            function()


@pytest.mark.parametrize(
    ("label", "parts"),
    [
        ("B-PER", ("B", "PER")),
        ("O", ("O", "_")),
        ("I", ("I", "_")),
        ("B-A-B", ("B", "A-B")),
        ("B-", ("B", "_")),
    ],
)
def test_split_label(label, parts):
    assert split_label(label) == parts


@pytest.mark.parametrize("label", [3, None, "", ["B-X"]])
def test_a_label_that_says_no_segment_is_named(label):
    with pytest.raises(DataError, match=r"node 1: the label .* encodes no segment; give labels such"):
        entities(["O", label])
    with pytest.raises(DataError, match=r"node 1: the label .* encodes no segment"):
        convert(["O", label], "IOB1", "IOB2")
    with pytest.raises(DataError, match="structure 7, node 0: the label"):
        check_labels([label], structure=7)
    with pytest.raises(DataError, match="label 0 of the label set: the label"):
        legal([label], "IOB2")
    with pytest.raises(DataError, match="encodes no segment"):
        split_label(label)


def test_a_label_of_another_scheme_is_named():
    message = (
        "node 1: the label 'E-X' is not of the scheme IOB2, whose labels are O or begin with B-, I-; correct"
    )
    with pytest.raises(DataError, match=message):
        entities(["O", "E-X"], "IOB2")
    with pytest.raises(DataError, match=message):
        convert(["O", "E-X"], "IOB2", "IOE2")
    for label in ("E-X", "BX", "B-", "O-X", "NOUN"):
        with pytest.raises(
            DataError, match=f"label 1 of the label set: the label {label!r} is not of the scheme"
        ):
            legal(["O", label], "IOB2")


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([("X", 0, 0)], "0 ≤ start < end ≤ 3"),
        ([("X", -1, 1)], "0 ≤ start < end ≤ 3"),
        ([("X", 2, 4)], "0 ≤ start < end ≤ 3"),
        ([("", 0, 1)], "its type must be"),
        ([(1, 0, 1)], "its type must be"),
        ([("X", 1, 3), ("Y", 0, 2)], r"\('Y', 0, 2\) and \('X', 1, 3\) overlap at node 1"),
    ],
)
def test_bad_segments_are_named(segments, message):
    with pytest.raises(DataError, match=message):
        encode(segments, 3, "IOB2")


def test_forbid_leaves_well_formed_sequences_alone():
    classes, nodes = ["O", "B-X", "I-X"], 3
    scores, transitions = np.zeros((nodes, 3)), np.zeros((3, 3))
    masked = forbid(scores, transitions, classes, "IOB2", np.array([0]), np.array([nodes - 1]))
    assert not transitions.any()  # a copy
    for sequence in product(range(3), repeat=nodes):
        total = sum(scores[t, k] for t, k in enumerate(sequence))
        total += sum(masked[a, b] for a, b in pairwise(sequence))
        labels = [classes[k] for k in sequence]
        assert (total == 0) == (encode(entities(labels, "IOB2"), nodes, "IOB2") == labels)
