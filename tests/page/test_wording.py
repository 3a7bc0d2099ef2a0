"""Features, transitions and labels elsewhere in plain words, with sentences that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuda.explanations.base import Contribution
from fuda.features.sets import JOINTS, text
from fuda.page.evidence import EvidenceSearch
from fuda.page.spans import Unit
from fuda.page.store import Store
from fuda.page.why import _in_words
from fuda.page.wording import (
    elsewhere_in_words,
    feature_in_words,
    features_in_words,
    follows_in_words,
    parsed,
)
from page.conftest import Page, add_file

FEATURES = {
    "[0] w=Lima": "the word is “Lima”",
    "[-1] l=in": "the word before is “in”, in capitals or not",
    "[+1] p2=Li": "the word after begins with “Li”",
    "[+2] s3=ima": "the word 2 places after ends in “ima”",
    "[0] shape=Xxxx": "the word is a capital, then 3 small letters",
    "[0] shape=xxxx-00": "the word is 4 or more small letters, then “-”, then 2 digits",
    "[0] classes=k": "the word has only katakana",
    "[0] length=13+": "the word has 13 or more characters",
    "[-1] ends-period": "the word before ends in a full stop",
    "[-1] <-1>": "there is no word before",
    "[-1classes&0lower] <-1>&lima": "there is no word before, the word is “lima”",
    "[0] w=B-52": "the word is “B-52”",
    "[0] w=in after B-PER": "the word is “in”, after *B-PER*",
    "[0] suffix-of-mine": "the word has suffix-of-mine",
    "[-1lower&0lower] a&b&c": "[-1lower&0lower] a&b&c",
    "of another form": "of another form",
}


@pytest.mark.parametrize("raw", FEATURES)
def test_features_in_words(raw: str) -> None:
    assert feature_in_words(raw, True, {"B-PER"}, "*{}*".format) == FEATURES[raw]


def test_features_of_one_word_are_described_together() -> None:
    ending = ["[+1] s1=i", "[+1] l=di", "[+1] w=di", "[+1] shape=xx", "[+1] length=2", "[+1] p1=d"]
    sentence = features_in_words(ending, True, (), str)
    assert sentence == "the word after is “di”, ends in “i”, is 2 small letters, has 2 characters and 1 more"
    assert features_in_words(["[-1] <-1>"], True, (), str) == "there is no word before"
    both = ["[-1lower&0lower] in&lima", "[-1lower&0classes] in&Xx"]
    assert features_in_words(both, True, (), str) == (
        "the word before is “in”, the word is “lima”; "
        "the word before is “in”, the word has capitals, then small letters"
    )
    alike = ["[0classes&+1lower] Xx&<+1>", "[0classes&+1classes] Xx&<+1>"]
    sentence = features_in_words(alike, False, (), str)
    assert sentence == "the word has capitals, then small letters, there is no dependent"
    assert features_in_words(["of another form"], True, (), str) == "of another form"


def test_neighbours_in_trees_are_heads_and_dependents() -> None:
    assert feature_in_words("[-1] w=to", False, (), str) == "the head is “to”"
    assert feature_in_words("[+1] <+1>", False, (), str) == "there is no dependent"
    assert follows_in_words("V → N, not V → D", False, str) == "N below V, rather than D below V"


def test_all_features_of_text_have_words() -> None:
    for word in ("May-25", "J.", "IV", "1999", "O'Brien", "iPhone", "...", "東京"):
        for name in text(word):
            sentence = feature_in_words(f"[0] {name}", True, (), str)
            assert "=" not in sentence, sentence
            assert sentence != f"the word has {name}" or name == "digits"
    for joint in JOINTS["text"]:
        name = "&".join(f"{offset:+d}{key}" if offset else f"0{key}" for offset, key in joint)
        assert parsed(f"[{name}] {'&'.join('x' for _ in joint)}") is not None


def test_other_parts_in_words() -> None:
    assert (
        follows_in_words("<start> → O, not <start> → B", True, str)
        == "O at the start, rather than B at the start"
    )
    assert elsewhere_in_words("a: b: B-X, not O", str) == "“a: b” is then B-X, rather than O"
    assert follows_in_words("who knows", True, str) == elsewhere_in_words("who knows", str) == "who knows"


def test_why_has_no_raw_features_and_joints_have_sentences(page: Page) -> None:
    page.post("settings", learner="crf")
    for number, spans in ((1, [(0, 1, "PER"), (3, 4, "LOC")]), (2, [(0, 1, "PER"), (3, 4, "LOC")]), (5, [])):
        page.accept(page.get(f"items/{number}")["item"], spans)
    page.taught()
    answer = page.post("why", id=4, start=4, end=5)
    evidence = answer["for"] + answer["against"]
    assert evidence
    assert not any("[" in entry["text"] or "→" in entry["text"] for entry in evidence)
    search = EvidenceSearch(page.store, page.api.teacher.current.model)
    joint = parsed("[-1lower&0classes] in&Xx")
    assert joint is not None
    answer = search.find(joint, "Lima", "B-LOC")
    assert answer is not None
    assert (answer.item.id, answer.node, answer.matched) == (1, 3, [2, 3])
    assert search.find(joint, "Lima", "B-PER") is None


def test_features_of_trees_have_sentences(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"observations": ["Ana", "sings"], "heads": [1, -1], "labels": ["N", "V"]}\n'
        '{"observations": ["Bo", "sings"], "heads": [1, -1], "labels": ["N", "V"]}\n'
        '{"observations": ["Cy", "sings"], "heads": [1, -1]}\n'
    )
    store = Store(tmp_path / "a.db", create=True)
    add_file(store, path)
    with Page(store) as page:
        page.taught()
        answer = page.post("why", id=3, start=0, end=1)
        heads = [voice for voice in answer["for"] if voice["text"].startswith("the head")]
        assert heads
        assert all((voice["node"], voice["matched"][0], voice["item"]) == (0, 1, 2) for voice in heads)
    store.close()


def test_a_search_finds_text_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "ja.txt"
    path.write_text("私は日本へ行く。\nDr. Smith came (late).\n")
    store = Store(tmp_path / "ja.db", create=True)
    add_file(store, path, ["LOC"])
    with Page(store) as page:
        for sought in ("日本", "(late)", "( late"):
            assert page.get("items", search=sought)["total"] == 1, sought
    store.close()


@pytest.mark.parametrize(("scheme", "name"), [("IOB2", "no span"), (None, "O")])
def test_the_price_of_no_label_in_words(scheme: str | None, name: str) -> None:
    part = Contribution("penalty", "penalty of O", 1.0, 0)
    assert _in_words([part], Unit(scheme), [], True) == f"{name} has to be likelier than the rest"
