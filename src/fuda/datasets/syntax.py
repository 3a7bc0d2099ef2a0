"""Dependency trees under construction: words with children on either side, phrases and verb groups of them.

A phrase is known by its head. Children stand in the order of the sentence, so every tree is projective.
Relations are those of Universal Dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fuda.datasets import lexicon as lex

CONTENT = {"NOUN", "PROPN", "ADJ", "NUM"}
MODIFIERS = {
    "DET": "det",
    "ADJ": "amod",
    "NOUN": "compound",
    "PROPN": "compound",
    "NUM": "nummod",
    "PRON": "nmod:poss",
    "ADP": "case",
}


class Sentence(NamedTuple):
    """One sentence in columns; heads and cues are node numbers from 0, −1 for none."""

    words: tuple[tuple[str, str, str], ...]  # form, lemma, part of speech
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    labels: tuple[str, ...]
    cues: tuple[int, ...]

    @property
    def text(self) -> str:
        """The sentence as it is printed."""
        return "".join(form if clings(form) else " " + form for form, _, _ in self.words).strip()


@dataclass(eq=False, slots=True)
class Word:
    """A word and its children; `cue` is the predicate that gives a labelled word its status."""

    form: str
    lemma: str
    upos: str
    relation: str
    label: str = "O"
    plural: bool = False
    before: list[Word] = field(default_factory=list)
    after: list[Word] = field(default_factory=list)
    head: Word | None = None
    cue: Word | None = None

    def subtree(self) -> list[Word]:
        """The words of the subtree in the order of the sentence; sets their heads on the way."""
        words: list[Word] = []
        self._collect(words)
        return words

    def _collect(self, words: list[Word]) -> None:
        for child in self.before:
            child.head = self
            child._collect(words)
        words.append(self)
        for child in self.after:
            child.head = self
            child._collect(words)


class VerbGroup(NamedTuple):
    """The cue, the verb that governs the product, the product's preposition, and the tense of times."""

    cue: Word
    governor: Word
    preposition: str | None
    tense: str


def word(form: str, upos: str, relation: str, lemma: str | None = None) -> Word:
    """A word without label; the lemma is the form unless given."""
    return Word(form, lemma or form, upos, relation)


def punctuation(mark: str) -> Word:
    return word(mark, "PUNCT", "punct")


def phrase(text: str, relation: str, label: str = "O") -> Word:
    """A noun phrase from its words, the content words labelled.

    The last word is the head, or the noun before a number that ends the phrase (``in room 12``).
    """
    words = [_tagged(form) for form in text.split()]
    position = len(words) - (2 if words[-1].upos == "NUM" else 1)
    head = words[position]
    for part in words:
        part.relation = relation if part is head else MODIFIERS[part.upos]
        if part.upos in CONTENT:
            part.label = label
    head.before, head.after = words[:position], words[position + 1 :]
    if len(head.before) > 1 and head.before[1].upos == "ADP":  # because of, due to
        fixed = head.before.pop(1)
        fixed.relation = "fixed"
        head.before[0].after.append(fixed)
    return head


def verb_group(frame: str, plural: bool, passive: bool = False, manner: str | None = None) -> VerbGroup:
    """The words of a frame, agreeing with a singular or plural subject, perhaps with an adverb of manner.

    >>> group = verb_group("past: refuse to use", plural=False)
    >>> [part.form for part in group.cue.subtree()], group.governor.form
    (['refused', 'to', 'use'], 'use')
    """
    mood, _, rest = frame.partition(": ")
    verb, *tail = rest.split()
    *helpers, form = (lex.PASSIVE if passive else lex.ACTIVE)[mood].split()
    if form == "PRESENT":
        form = "base" if plural else "present"
    cue = word(lex.VERBS[verb][form], "VERB", "root", verb)
    helpers = [lex.AGREEMENT[helper][plural] if helper in lex.AGREEMENT else helper for helper in helpers]
    cue.before = [_helper(helper) for helper in helpers if helper != "no"]
    if passive:
        [part for part in cue.before if part.lemma == "be"][-1].relation = "aux:pass"
    if manner:
        inside = (
            bool(helpers) and lex.AUXILIARIES.get(helpers[0], "do") != "do"
        )  # has clearly bought; clearly does not
        cue.before.insert(int(inside), word(manner, "ADV", "advmod"))
    governor, preposition = cue, None
    for item in tail:
        if item in lex.PARTICLES:
            governor.after.append(word(item, "ADP", "compound:prt"))
        elif item in lex.PREPOSITIONS:
            preposition = item
        elif item != "to":
            inner = word(item, "VERB", "xcomp", lex.GERUNDS.get(item))
            if item not in lex.GERUNDS:
                inner.before.append(word("to", "PART", "mark"))
            governor.after.append(inner)
            governor = inner
    return VerbGroup(cue, governor, preposition, lex.TENSES.get(mood, "open"))


def enclosed(head: Word) -> Word:
    """The phrase between commas."""
    head.before.insert(0, punctuation(","))
    head.after.append(punctuation(","))
    return head


def relative_clause(product: Word, verb: Word, pronoun: bool = True) -> Word:
    """The clause of `verb` as a relative clause on its object; after a bare name between commas."""
    verb.relation = "acl:relcl"
    named = product.upos == "PROPN"
    if pronoun:
        verb.before.insert(0, word("which" if named else "that", "PRON", "obj"))
    return enclosed(verb) if named else verb


def claim(head: Word, cue: Word) -> None:
    """Tie the labelled words below `head` that no inner clause has claimed to their cue."""
    for part in head.subtree():
        if part.label != "O" and part.cue is None:
            part.cue = cue


def clings(form: str) -> bool:
    """Whether no space stands before the word."""
    return form in {",", ".", "'s"}


def flatten(root: Word) -> Sentence:
    """The columns of a finished tree; of two punctuation marks side by side only the last stays."""
    words: list[Word] = []
    for part in root.subtree():
        if words and part.upos == words[-1].upos == "PUNCT":
            words.pop()
        words.append(part)
    words[0].form = words[0].form[0].upper() + words[0].form[1:]
    position = {id(part): i for i, part in enumerate(words)}
    return Sentence(
        tuple((part.form, part.lemma, part.upos) for part in words),
        tuple(position[id(part.head)] if part.head else -1 for part in words),
        tuple(part.relation for part in words),
        tuple(part.label for part in words),
        tuple(position[id(part.cue)] if part.cue else -1 for part in words),
    )


def _helper(form: str) -> Word:
    """An auxiliary or adverb of a verb group; "longer" brings its "no"."""
    if form in lex.AUXILIARIES:
        return word(form, "AUX", "aux", lex.AUXILIARIES[form])
    adverb = word(form, "PART" if form == "not" else "ADV", "advmod", lex.LEMMAS.get(form))
    if form == "longer":
        adverb.before.append(word("no", "ADV", "advmod"))
    return adverb


def _tagged(form: str) -> Word:
    """A word of a noun phrase with its lemma and part of speech; its relation is set by the phrase."""
    upos = lex.TAGS.get(form, "NUM" if form.isdigit() else "PROPN" if form[0].isupper() else "NOUN")
    lemma = lex.LEMMAS.get(form, form)
    return Word(form, lemma, upos, "", plural=upos == "NOUN" and lemma != form)
