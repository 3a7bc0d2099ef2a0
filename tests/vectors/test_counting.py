"""Words as numbers, and counts of their neighbours, against plain dictionaries."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fuda.vectors.counting import Text, bigrams, contexts, is_shape, shape_key

SENTENCES = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "Dd", "E1"]), max_size=6), min_size=1, max_size=6
)


def shown(word, counts):
    """A rare word as its shape, as bigrams count it."""
    return shape_key(word) if counts[word] == 1 else word


@given(SENTENCES)
def test_bigrams_are_those_of_the_sentences(sentences):
    counts = Counter(word for sentence in sentences for word in sentence)
    expected: Counter = Counter()
    for sentence in sentences:
        padded = [None, *(shown(word, counts) for word in sentence), None] if sentence else []
        expected.update(pairwise(padded))
    text = Text.of(sentences)
    table = bigrams(text).tocoo()
    names = [*text.names, None]
    actual = {(names[i], names[j]): n for i, j, n in zip(table.row, table.col, table.data, strict=True)}
    assert actual == expected


@given(SENTENCES)
def test_contexts_are_those_of_the_sentences(sentences):
    counts = Counter(word for sentence in sentences for word in sentence)
    expected: Counter = Counter()
    for sentence in sentences:
        for at, word in enumerate(sentence):
            for offset in (-2, -1, 1, 2):
                inside = 0 <= at + offset < len(sentence)
                if not inside and abs(offset) > 1:
                    continue
                beside = sentence[at + offset] if inside else None
                for row in {word, shown(word, counts)}:
                    expected[row, offset, beside] += 1
    text = Text.of(sentences)
    table = contexts(text, 2, 100).tocoo()
    beside = [*text.names[: text.n_words], None]
    actual = {}
    for row, column, count in zip(table.row, table.col, table.data, strict=True):
        offset, word = divmod(int(column), len(beside))
        actual[text.names[row], (-2, -1, 1, 2)[offset], beside[word]] = count
    assert actual == expected


def test_only_frequent_words_are_contexts():
    text = Text.of([["a", "b", "a", "c"], ["a", "b"]])
    table = contexts(text, 1, 1)
    assert table.shape[1] == 2 * 2  # "a" and the end of the sentence, on each side
    assert table.toarray()[text.names.index("b")].tolist() == [2, 0, 1, 1]


def test_words_beyond_the_most_frequent_are_shapes():
    text = Text.of([["a", "a", "b", "b", "Lima", "Lima"]], most_words=2)
    assert text.names == ["Lima", "a", shape_key("b")]
    assert text.tokens.tolist() == [1, 1, 2, 2, 0, 0]
    assert [is_shape(name) for name in text.names] == [False, False, True]


def test_the_order_of_sentences_does_not_matter():
    sentences = [["x", "y"], ["z", "x"], ["y", "q"]]
    assert Text.of(sentences).names == Text.of(sentences[::-1]).names
