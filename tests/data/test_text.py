"""The tokenizer: its rules, and that offsets are in order and miss nothing visible."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuda.data.text import Text, check_offsets, split_at, tokenize
from fuda.errors import DataError

PROPERTY = settings(max_examples=150, deadline=None, derandomize=True)
tokens = st.sampled_from(
    ["U.S.", "www.", "a@b.c", "1,5", "e\u0301", "\u200d", "\ufeff", "A.", "日", "👍🏽", "-"]
)
RULES = {
    "Dr. O'Brien paid 1,000.50 €.": ["Dr.", "O'Brien", "paid", "1,000.50", "€", "."],
    "Uno spicchio d'aglio nell’olio": ["Uno", "spicchio", "d'", "aglio", "nell’", "olio"],
    "Qu'il aime l'École aujourd'hui": ["Qu'", "il", "aime", "l'", "École", "aujourd'hui"],
    "c'mon, don't eat rock'n'roll": ["c'mon", ",", "don't", "eat", "rock'n'roll"],
    "(see https://a.pe/b?c=1, or www.x.org).": [
        *("(", "see", "https://a.pe/b?c=1", ",", "or", "www.x.org", ")", "."),
    ],
    "Mail ana.b+c@lima.com.pe, now!": ["Mail", "ana.b+c@lima.com.pe", ",", "now", "!"],
    "the U.S. and e.g. U.S.A, etc.": ["the", "U.S.", "and", "e.g.", "U.S.A", ",", "etc."],
    "J. Smith has plan b. then": ["J.", "Smith", "has", "plan", "b", ".", "then"],
    "state-of-the-art -- don’t, James'": ["state-of-the-art", "-", "-", "don’t", ",", "James", "'"],
    "2024-01-15 12:30 3/4 1.5kg 10,5%": ["2024-01-15", "12:30", "3/4", "1.5kg", "10,5", "%"],
    "COVID-19 and/or foo_bar...": ["COVID-19", "and", "/", "or", "foo_bar", ".", ".", "."],
    "東京タワーは333mです。": ["東", "京", "タ", "ワ", "ー", "は", "333m", "で", "す", "。"],
    "서울에 삽니다.": ["서울에", "삽니다", "."],
    "हिन्दी में।": ["हिन्दी", "में", "।"],
    "e\u0301te\u0301 b\xada": ["e\u0301te\u0301", "b\xada"],
    "👩\u200d👩\u200d👧👍🏽 ❤\ufe0f": ["👩\u200d👩\u200d👧", "👍🏽", "❤\ufe0f"],
    "می\u200cخواهم \u202eשלום\u202c": ["می\u200cخواهم", "שלום"],
    "a\u200bb \ufeff": ["a", "b"],
    "www. http:// @": ["www", ".", "http", ":", "/", "/", "@"],
    " \t\x85\u2028": [],
}


@pytest.mark.parametrize("text", RULES)
def test_rules(text):
    assert [text[start:end] for start, end in tokenize(text)] == RULES[text]


def test_blanks():
    text = "a.b  c\u2028(d)"
    assert [text[start:end] for start, end in tokenize(text, "blanks")] == ["a.b", "c", "(d)"]


@PROPERTY
@given(st.lists(tokens | st.text(max_size=8), max_size=6).map(" ".join))
def test_tokens_are_in_order_and_nothing_visible_is_left_out(text):
    for tokenizer in ("words", "blanks"):
        offsets = tokenize(text, tokenizer)
        check_offsets(offsets, len(text))
        inside = {place for start, end in offsets for place in range(start, end)}
        left_out = {text[place] for place in range(len(text)) if place not in inside}
        assert all(c.isspace() or unicodedata.category(c) == "Cf" for c in left_out)
        assert not any(c.isspace() for start, end in offsets for c in text[start:end])


@pytest.mark.parametrize(
    "part", ["a.", "a@", "www.", "http://", "a-", "1,", "x", "e\u0301", "A. ", "\u200d", "www.,", "Mr.", "."]
)
def test_time_is_linear_in_the_length(part):
    began = time.perf_counter()
    tokenize(part * 50_000)
    assert time.perf_counter() - began < 2.0


@PROPERTY
@given(st.lists(st.integers(0, 12), max_size=5))
def test_cut_tokens(places):
    offsets = [(0, 4), (5, 9), (9, 12)]
    pieces = split_at(offsets, places)
    check_offsets(pieces, 12)
    assert {edge for pair in pieces for edge in pair} == {0, 4, 5, 9, 12, *places}
    assert sum(end - start for start, end in pieces) == 11


def test_offsets_of_a_text_are_checked():
    with pytest.raises(DataError, match="0 to 3 of node 0 are not within a text of 2 characters"):
        Text("ab", [(0, 3)])
