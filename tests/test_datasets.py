"""The product-usage corpus: its labels, its trees, its English."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import pytest

from fuda import Tree, formats
from fuda.datasets import PRODUCT_USAGE, load_product_usage
from fuda.formats import conllu

LABELS = {"D-p", "D-v", "D-n", "D-r", "P-p", "P-v", "P-n", "P-r", "R-p", "R-v", "R-r", "O"}
CHECKSUM = "564d78fe51b64a780c3a67e58f8c82b4643c4a48cfb58022ce55b3af4e638351"
SINGULAR, PLURAL = {"has", "is", "was", "does"}, {"have", "are", "were", "do"}
TOPIC_VERBS = {"come", "mention", "discuss", "show"}  # the product … came up: they have no status


class Sentence(NamedTuple):
    """One sentence in columns; heads are node numbers from 0, −1 at the root."""

    words: tuple[tuple[str, str, str], ...]  # form, lemma, part of speech
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def text(self) -> str:
        forms = [form for form, _, _ in self.words]
        return "".join(form if form in {",", ".", "'s"} else " " + form for form in forms).strip()


@cache
def corpus() -> list[Sentence]:
    columns = ("FORM", "LEMMA", "UPOS", "DEPREL")
    X, y = formats.read(PRODUCT_USAGE, label="MISC:Usage", columns=columns)
    return [
        Sentence(
            tuple(observed[:3] for observed in x.observations),
            tuple(x.heads),
            tuple(observed[3] for observed in x.observations),
            tuple(labels),
        )
        for x, labels in zip(X, y, strict=True)
    ]


def children(sentence: Sentence, node: int) -> list[int]:
    return [child for child, head in enumerate(sentence.heads) if head == node]


def ancestors(sentence: Sentence, node: int) -> list[int]:
    """The node itself, its parent, …, the root."""
    path = [node]
    while sentence.heads[path[-1]] >= 0:
        path.append(sentence.heads[path[-1]])
    return path


def tree_distance(sentence: Sentence, a: int, b: int) -> int:
    up_a, up_b = ancestors(sentence, a), ancestors(sentence, b)
    return min(up_a.index(node) + up_b.index(node) for node in up_a if node in up_b)


def cue_of(sentence: Sentence, node: int) -> int:
    """The predicate that gives a labelled token its status: the finite verb of its clause.

    A verb that only mentions a product ("the product that the school rejected came up") does not
    determine its status; then the verb of the product's relative clause is the cue.
    """
    path = ancestors(sentence, node)
    for below, verb in pairwise(path):
        _, lemma, upos = sentence.words[verb]
        if upos != "VERB" or sentence.relations[verb] == "xcomp" or sentence.labels[verb] != "O":
            continue
        relative = [child for child in children(sentence, below) if sentence.relations[child] == "acl:relcl"]
        topic = lemma in TOPIC_VERBS and sentence.relations[below].startswith("nsubj")
        return relative[-1] if topic and relative else verb
    raise AssertionError(f"no predicate above token {node} of: {sentence.text}")


def cues(sentence: Sentence) -> dict[int, int]:
    """The cue of every labelled token."""
    return {node: cue_of(sentence, node) for node, label in enumerate(sentence.labels) if label != "O"}


def label_counts(role: str) -> dict[str, Counter[str]]:
    """How often every lemma of a role occurs with every label of that role."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in corpus():
        for (_, lemma, _), label in zip(sentence.words, sentence.labels, strict=True):
            if label.endswith(f"-{role}"):
                seen[lemma][label] += 1
    return seen


# The loader


def test_the_whole_and_its_fixed_split() -> None:
    data = load_product_usage()
    X, y = data
    assert (len(X), len(data.train), len(data.test)) == (900, 600, 300)
    assert data.train.X + data.test.X == X
    assert data.train.y + data.test.y == y
    assert all(type(x) is Tree and len(x) == len(labels) for x, labels in zip(X, y, strict=True))
    assert X[0].observations[12:14] == (("Quandrisk", "Quandrisk", "PROPN"), ("Planner", "Planner", "PROPN"))


def test_checksum_pins_the_corpus() -> None:
    text = conllu.write(load_product_usage().records)
    assert hashlib.sha256(text.encode()).hexdigest() == CHECKSUM


def test_every_call_gives_data_of_its_own() -> None:
    changed, untouched = load_product_usage(), load_product_usage()
    assert changed == untouched
    changed.records[0].labels[0] = "changed"
    changed.records[1].comments.clear()
    changed.records.pop()
    assert load_product_usage() == untouched


def test_written_as_conllu_it_comes_back(tmp_path) -> None:
    data = load_product_usage()
    path = tmp_path / "usage.conllu"
    formats.write(data, path)
    again = formats.read(path, label="MISC:Usage", columns=("FORM", "LEMMA", "UPOS"))
    assert again.records == data.records
    assert data.records[0].comments[0] == "# sent_id = product-usage-0001"


def test_with_labels_keeps_the_split() -> None:
    data = load_product_usage()
    blank = data.with_labels([["O"] * len(x) for x in data.X])
    assert len(blank.train) == 600
    assert {label for labels in blank.test.y for label in labels} == {"O"}


def test_loading_imports_no_heavy_library() -> None:
    code = (
        "import sys, fuda.datasets as d; d.load_product_usage(); "
        "print(*{'numba', 'scipy', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# Labels


def test_twelve_labels_all_frequent_in_both_parts() -> None:
    data = load_product_usage()
    whole = Counter(label for labels in data.y for label in labels)
    assert set(whole) == LABELS
    assert min(whole.values()) >= 150
    for part in (data.train, data.test):
        assert min(Counter(label for labels in part.y for label in labels).values()) >= 50


@pytest.mark.parametrize(("role", "chance"), [("p", 1 / 3), ("v", 1 / 3), ("n", 1 / 2), ("r", 1 / 3)])
def test_a_word_alone_does_not_give_the_status_away(role: str, chance: float) -> None:
    seen = label_counts(role)
    majority = sum(max(counts.values()) for counts in seen.values())
    assert majority / sum(counts.total() for counts in seen.values()) < chance + 0.07


def test_names_numbers_and_reasons_occur_without_label_too() -> None:
    bare = Counter()
    labelled = defaultdict(set)
    for sentence in corpus():
        for (_, lemma, _), label in zip(sentence.words, sentence.labels, strict=True):
            bare[lemma] += label == "O"
            labelled[label[2:]].add(lemma)
    for role in "pvn":
        assert all(bare[lemma] >= 3 for lemma in labelled[role])
    assert sum(bare[lemma] for lemma in labelled["r"]) >= 100


def test_a_rejected_number_is_not_a_number_bought() -> None:
    for sentence in corpus():
        for node, (_, _, upos) in enumerate(sentence.words):
            head = sentence.heads[node]
            below = [sentence.labels[child] for child in children(sentence, head)] if head >= 0 else []
            if upos == "NUM" and any(label.startswith("R-p") for label in [*below, sentence.labels[head]]):
                assert sentence.labels[node] == "O"


def test_one_cue_gives_one_status() -> None:
    for sentence in corpus():
        status: dict[int, str] = {}
        for node, cue in cues(sentence).items():
            assert sentence.words[cue][2] == "VERB"
            assert status.setdefault(cue, sentence.labels[node][0]) == sentence.labels[node][0]


def test_the_cue_is_far_in_the_sentence_and_near_in_the_tree() -> None:
    words, edges = [], []
    for sentence in corpus():
        for node, cue in cues(sentence).items():
            words.append(abs(node - cue))
            edges.append(tree_distance(sentence, node, cue))
    assert median(words) >= 5
    assert sum(distance >= 5 for distance in words) >= 0.5 * len(words)
    assert sum(distance <= 3 for distance in edges) >= 0.95 * len(edges)


def test_another_status_often_stands_in_the_same_sentence() -> None:
    mixed = sum(len({label[0] for label in sentence.labels} - {"O"}) > 1 for sentence in corpus())
    assert mixed >= 0.45 * len(corpus())


# Trees and English


def test_trees_have_one_root_and_are_projective() -> None:
    for sentence in corpus():
        assert sentence.heads.count(-1) == 1
        assert sentence.relations[sentence.heads.index(-1)] == "root"
        assert sentence.relations.count("root") == 1
        for node, head in enumerate(sentence.heads):
            if head >= 0:
                assert all(
                    head in ancestors(sentence, between)
                    for between in range(min(node, head) + 1, max(node, head))
                )


def test_lengths_capitals_and_periods() -> None:
    assert len({sentence.text for sentence in corpus()}) == 900
    for sentence in corpus():
        forms = [form for form, _, _ in sentence.words]
        assert 8 <= len(forms) <= 35
        assert forms[0][0].isupper() or forms[0].isdigit()
        assert forms[-1] == "."
        assert "." not in forms[:-1]
        assert not any(a == "," and b in {",", "."} for a, b in pairwise(forms))
        assert not any(a == b for a, b in pairwise(forms))


def test_determiners_and_numbers_agree_with_their_nouns() -> None:
    for sentence in corpus():
        for node, (form, lemma, upos) in enumerate(sentence.words):
            if form.lower() in {"a", "an"}:
                assert (sentence.words[node + 1][0][0] in "aeiou") == (form.lower() == "an")
            if sentence.relations[node] == "nummod" and lemma != "6" and node < sentence.heads[node]:
                noun = sentence.words[sentence.heads[node]]
                assert noun[2] == "PROPN" or noun[0] != noun[1]  # 15 May, or a plural
            if (
                upos == "NOUN"
                and form == lemma
                and lemma in {"scanner", "printer", "router", "camera", "pump"}
            ):
                before = [sentence.relations[child] for child in children(sentence, node) if child < node]
                assert {"det", "nmod:poss"} & set(before)  # no bare singular


def test_verbs_agree_with_their_subjects() -> None:
    checked = 0
    for sentence in corpus():
        for node, relation in enumerate(sentence.relations):
            if not relation.startswith("nsubj"):
                continue
            verb, subject = sentence.heads[node], node
            if sentence.words[node][2] == "PRON":  # who, which
                subject = sentence.heads[verb]
            form, lemma, _ = sentence.words[subject]
            joined = any(
                sentence.relations[child] == "conj" and sentence.words[child][2] != "VERB"
                for child in children(sentence, subject)
            )
            plural = joined or (sentence.words[subject][2] == "NOUN" and form != lemma)
            helpers = {sentence.words[child][0] for child in children(sentence, verb)}
            assert not helpers & (SINGULAR if plural else PLURAL)
            verb_form, verb_lemma, upos = sentence.words[verb]
            if upos == "VERB" and not helpers & (SINGULAR | PLURAL | {"would"}):
                checked += 1
                assert verb_form != (verb_lemma + "s" if plural else verb_lemma)
    assert checked > 500


# What the grammar promised


@pytest.mark.parametrize("role", ["p", "v", "n", "r"])
def test_words_are_dealt_evenly_to_the_statuses(role: str) -> None:
    statuses = {label for label in LABELS if label.endswith(f"-{role}")}
    counts = label_counts(role)
    assert len(counts) >= 6
    for lemma, count in counts.items():
        assert set(count) == statuses, lemma
        assert max(count.values()) < 2 * min(count.values()), lemma


@pytest.mark.parametrize(
    ("words", "plural", "passive"),
    [
        ("relies", False, False),
        ("have never stopped using", True, False),
        ("is no longer used", False, True),
        ("are being considered", True, True),
        ("does not want", False, False),
        ("were turned down", True, True),
        ("would like to buy", None, False),
    ],
)
def test_verb_groups(words: str, plural: bool | None, passive: bool) -> None:
    """Auxiliaries, adverbs, verb and complements make one subtree that fits its subject."""
    groups = 0
    for sentence in corpus():
        forms = [form for form, _, _ in sentence.words]
        for start in range(len(forms)):
            group = range(start, start + len(words.split()))
            if forms[start : group.stop] != words.split():
                continue
            groups += 1
            top = [node for node in group if sentence.heads[node] not in group]
            assert [sentence.words[node][2] for node in top] == ["VERB"]
            for node in children(sentence, top[0]):
                if sentence.relations[node].startswith("nsubj"):
                    assert (sentence.relations[node] == "nsubj:pass") == passive
                    form, lemma, upos = sentence.words[node]
                    if plural is False and upos == "NOUN":
                        assert form == lemma
    assert groups >= 5
