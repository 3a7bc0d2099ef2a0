"""The grammar of the product-usage corpus: sales-log sentences with dependency trees and labels, from a fixed seed.

A *clause* has a status: the customer uses a product already (D), wishes to use it (P) or rejects it (R); a clause of our
own staff has none (O). Its predicate, the *cue*, alone says the status. The tokens of the product's name (p), its vendor
(v), the number bought (n) and the content words of the reason (r) carry the status of the clause they stand in. A number
inside a rejecting clause is O: nothing was bought. Words are dealt from shuffled decks, one deck a status, so that a word
stands under each status about equally often.

A sentence holds one or two clauses, mostly of different status. Relative clauses, asides and fronted phrases come
between a mention and its cue; in the tree the cue stays near. All trees are projective, with the relations of Universal
Dependencies.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, TypeVar

from fuda.datasets import lexicon as lex

T = TypeVar("T")

SEED = 2004
SIZE = 900
LENGTHS = range(8, 36)

CONTENT = {"NOUN", "PROPN", "ADJ", "VERB", "ADV", "NUM"}
MODIFIERS = {"DET": "det", "ADJ": "amod", "NOUN": "compound", "PROPN": "compound", "NUM": "nummod"}
MODIFIERS |= {"PRON": "nmod:poss", "ADP": "case"}


class Sentence(NamedTuple):
    """One sentence in columns; heads and cues are node numbers from 0, −1 for the root and for a node without cue."""

    words: tuple[tuple[str, str, str], ...]  # form, lemma, part of speech
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    labels: tuple[str, ...]
    cues: tuple[int, ...]

    @property
    def text(self) -> str:
        """The sentence as it is printed."""
        return "".join(form if _clings(form) else " " + form for form, _, _ in self.words).strip()


@dataclass(eq=False, slots=True)
class Word:
    """A node of a tree under construction, with its children on either side in the order of the sentence."""

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

    def subtree(self) -> Iterator[Word]:
        """The words of the subtree in the order of the sentence; sets their heads on the way."""
        for child in self.before:
            child.head = self
            yield from child.subtree()
        yield self
        for child in self.after:
            child.head = self
            yield from child.subtree()


class Predicate(NamedTuple):
    """A verb group: the cue, the verb that governs the product, the product's preposition, and the tense of its times."""

    cue: Word
    governor: Word
    preposition: str | None
    tense: str


class Chance:
    """Random choices built on ``random()`` alone, whose values no Python version changes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self._decks: dict[str, list] = {}

    def coin(self, probability: float) -> bool:
        return self._random() < probability

    def pick(self, options: list[T]) -> T:
        return options[int(self._random() * len(options))]

    def deal(self, deck: str, options: list[T]) -> T:
        """The next card of a shuffled deck, shuffled anew when it is used up."""
        cards = self._decks.setdefault(deck, [])
        if not cards:
            rest = list(options)
            while rest:
                cards.append(rest.pop(int(self._random() * len(rest))))
        return cards.pop()


STATUS_PAIRS = [
    *[(first, second) for first in "DPR" for second in "DPR" if first != second] * 4,
    *[(status, status) for status in "DPR"],
    *[pair for status in "DPR" for pair in ((status, "O"), ("O", status))],
]


class Grammar:
    """Draws sentences; every method returns the head of the phrase it is named after."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance

    def sentence(self) -> Sentence:
        kind = self.chance.deal("kind", [*["nested"] * 5, *["subordinate"] * 4, *["coordinate"] * 4, *["report"] * 4, *["single"] * 3])
        first, second = self.chance.deal("statuses", STATUS_PAIRS)
        if first == "O" and kind in ("report", "single"):
            first, second = second, first
        if kind == "nested":
            root = self.clause(first, inner=second)
        elif kind == "subordinate":
            root = self.subordinated(first, second)
        elif kind == "coordinate":
            root = self.coordinated(first, second)
        elif kind == "report":
            root = self.report(first, second if self.chance.coin(0.5) else None)
        else:
            root = self.clause(first)
        root.relation = "root"
        root.after.append(_punctuation("."))
        return _flatten(root)

    # Sentences of two clauses

    def subordinated(self, first: str, second: str) -> Word:
        fronted = self.chance.coin(0.5)
        main = self.clause(first, lead=not fronted)
        other = self.clause(second, lead=False, main=False)
        other.relation = "advcl"
        other.before.insert(0, _word(self.chance.pick(lex.SUBORDINATORS), "SCONJ", "mark"))
        if fronted:
            other.after.append(_punctuation(","))
            main.before.insert(0, other)
        else:
            other.before.insert(0, _punctuation(","))
            main.after.append(other)
        return main

    def coordinated(self, first: str, second: str) -> Word:
        conjunction = _word(self.chance.pick(["but", "and"]) if first != second else "and", "CCONJ", "cc")
        if "O" not in (first, second) and self.chance.coin(0.5):  # one customer, two verbs
            subject = self.actor(first)
            main = self.active(first, subject, subject.plural)
            other = self.active(second, None, subject.plural, lead=False)
            other.before.insert(0, conjunction)
        else:
            main = self.clause(first)
            other = self.clause(second, lead=False)
            other.before[:0] = [_punctuation(","), conjunction]
        other.relation = "conj"
        main.after.append(other)
        return main

    def report(self, first: str, second: str | None) -> Word:
        speaker = self.staff("nsubj")
        verb = self.predicate(self.chance.deal("report", lex.REPORT_FRAMES), speaker.plural).cue
        verb.before.insert(0, speaker)
        if self.chance.coin(0.6):
            verb.after.append(self.venue() if self.chance.coin(0.5) else self.time("past"))
        content = self.clause(first, inner=second, lead=False, main=False)
        content.relation = "ccomp"
        content.before.insert(0, _word("that", "SCONJ", "mark"))
        verb.after.append(content)
        return verb

    # Clauses: in `inner`, the status of a relative clause on the customer

    def clause(self, status: str, inner: str | None = None, lead: bool = True, main: bool = True) -> Word:
        """A finite clause; `lead` allows a reason in front of it, `main` the forms that only a main clause has."""
        if status == "O" or not main:
            form = self.chance.deal("form of other clause", ["active", "active", "passive"])
        else:
            form = self.chance.deal("form", [*["active"] * 5, *["passive"] * 4, "fronted", *["recalled"] * 2])
        if form == "passive":
            return self.passive(status, inner, lead)
        if form == "fronted":
            return self.fronted(status, inner)
        if form == "recalled":
            return self.recalled(status, inner)
        subject = self.actor(status, inner)
        return self.active(status, subject, subject.plural, inner if status == "O" else None, lead)

    def active(
        self, status: str, subject: Word | None, plural: bool, inner: str | None = None, lead: bool = True
    ) -> Word:
        """The customer rejected the product."""
        predicate = self.predicate(self.frame("active", status, inner), plural)
        if subject:
            if subject.upos != "PRON" and self.chance.coin(0.2):
                predicate.cue.before.insert(0, self.aside())
            predicate.cue.before.insert(0, subject)
        if self.chance.coin(0.12):
            predicate.governor.after.append(self.aside())
        product = self.product(status, "obl" if predicate.preposition else "obj")
        if predicate.preposition:
            product.before.insert(0, _word(predicate.preposition, "ADP", "case"))
        predicate.governor.after.append(product)
        return self.completed(predicate, status, inner, lead)

    def passive(self, status: str, inner: str | None, lead: bool) -> Word:
        """The product was rejected by the customer."""
        product = self.product(status, "nsubj:pass")
        predicate = self.predicate(self.frame("passive", status, inner), product.plural, passive=True)
        agent = self.actor(status, inner, "obl:agent")
        agent.before.insert(0, _word("by", "ADP", "case"))
        if self.chance.coin(0.3):
            product.after.append(self.presentation(product))
        elif self.chance.coin(0.3):
            predicate.cue.before.insert(0, self.aside())
        predicate.cue.before.insert(0, product)
        return self.completed(predicate, status, inner, lead, agent)

    def fronted(self, status: str, inner: str | None) -> Word:
        """The product, the customer rejected."""
        product = self.product(status, "obj")
        subject = self.actor(status, inner)
        predicate = self.predicate(self.frame("active", status, inner, "plain"), subject.plural)
        predicate.cue.before.insert(0, subject)
        if self.chance.coin(0.4):
            product.after.append(self.presentation(product))
        else:
            predicate.cue.before.insert(0, self.aside())
        product.after.append(_punctuation(","))
        predicate.cue.before.insert(0, product)
        return self.completed(predicate, status, inner, lead=False)

    def recalled(self, status: str, inner: str | None) -> Word:
        """The product that the customer rejected came up again."""
        topic = self.chance.deal("topic", lex.TOPIC_FRAMES)
        passive = topic != "past: come up"
        product = self.product(status, "nsubj:pass" if passive else "nsubj", alone=True)
        subject = self.actor(status, inner)
        kind = "plain" if product.upos == "PROPN" or self.chance.coin(0.5) else "direct"
        predicate = self.predicate(self.frame("active", status, inner, kind), subject.plural)
        predicate.cue.before.insert(0, subject)
        self.completed(predicate, status, inner, lead=False)
        product.after.append(_relative(product, predicate.cue, pronoun=kind == "plain"))
        _claim(product, predicate.cue)
        main = self.predicate(topic, product.plural, passive).cue
        main.before.insert(0, product)
        main.after.append(self.venue(passive) if self.chance.coin(0.5) else self.time("past"))
        return main

    def completed(
        self, predicate: Predicate, status: str, inner: str | None, lead: bool, agent: Word | None = None
    ) -> Word:
        """The clause with its purpose, time, agent, recipient and reason, its mentions tied to its cue."""
        cue = predicate.cue
        if status != "O" and self.chance.coin(0.15):
            predicate.governor.after.append(self.phrase(self.chance.pick(lex.PURPOSES), "obl"))
        if self.chance.coin(0.15):
            cue.after.append(self.time(predicate.tense))
        if agent:
            cue.after.append(agent)
        if status == "O" and inner:
            recipient = self.customer("obl", inner)
            recipient.before.insert(0, _word("to", "ADP", "case"))
            cue.after.append(recipient)
        if self.chance.coin(0.35):
            reason = self.reason(status)
            if lead and self.chance.coin(0.6):
                reason.after.append(_punctuation(","))
                cue.before.insert(0, reason)
            else:
                cue.after.append(reason)
        _claim(cue, cue)
        return cue

    # Predicates

    def frame(self, voice: str, status: str, inner: str | None, kind: str = "any") -> str:
        """A frame of the status: any, a direct one (no preposition before the product), or a plain one (a single verb)."""
        frames = (lex.ACTIVE_FRAMES if voice == "active" else lex.PASSIVE_FRAMES)[status]
        if kind == "plain":
            frames = [frame for frame in frames if _tail(frame) <= lex.PARTICLES]
        elif kind == "direct":
            frames = [frame for frame in frames if not _tail(frame) & lex.PREPOSITIONS]
        if status == "O" and inner:
            kind = "recipient"
            frames = [frame for frame in frames if frame.split()[1] in lex.RECIPIENT_VERBS]
        return self.chance.deal(f"{voice} {status} {kind}", frames)

    def predicate(self, frame: str, plural: bool, passive: bool = False) -> Predicate:
        """The verb group of a frame, agreeing with a singular or plural subject."""
        mood, _, rest = frame.partition(": ")
        verb, *tail = rest.split()
        *helpers, form = (lex.PASSIVE if passive else lex.ACTIVE)[mood].split()
        if form == "PRESENT":
            form = "base" if plural else "present"
        cue = _word(lex.VERBS[verb][form], "VERB", "root", verb)
        forms = [lex.AGREEMENT[helper][plural] if helper in lex.AGREEMENT else helper for helper in helpers]
        cue.before = [_helper(helper) for helper in forms if helper != "no"]
        if passive:
            [word for word in cue.before if word.lemma == "be"][-1].relation = "aux:pass"
        if self.chance.coin(0.1):
            late = bool(forms) and lex.AUXILIARIES.get(forms[0], "do") != "do"
            cue.before.insert(int(late), _word(self.chance.pick(lex.MANNERS), "ADV", "advmod"))
        governor, preposition = cue, None
        for item in tail:
            if item in lex.PARTICLES:
                governor.after.append(_word(item, "ADP", "compound:prt"))
            elif item in lex.PREPOSITIONS:
                preposition = item
            elif item != "to":
                inner = _word(item, "VERB", "xcomp", lex.GERUNDS.get(item, item))
                if item not in lex.GERUNDS:
                    inner.before.append(_word("to", "PART", "mark"))
                governor.after.append(inner)
                governor = inner
        return Predicate(cue, governor, preposition, lex.TENSES.get(mood, "open"))

    # Noun phrases with labels

    def product(self, status: str, relation: str, alone: bool = False) -> Word:
        """A product, perhaps with number and vendor; unless `alone`, perhaps two of them."""
        if status == "O" and relation == "obj" and self.chance.coin(0.2):
            return self.phrase(f"the {self.chance.pick(lex.REASON_ADJECTIVES)} {self.circumstance(status)}", relation)
        head = self.hardware(status, relation) if self.chance.coin(0.6) else self.software(status, relation)
        if self.chance.coin(0.5) and not any(word.relation == "nmod:poss" for word in head.subtree()):
            vendor = self.vendor(status, "nmod")
            vendor.before.insert(0, _word(self.chance.pick(["from", "by"]), "ADP", "case"))
            head.after.append(vendor)
        if not alone and self.chance.coin(0.12):
            other = self.product(status, "conj", alone=True)
            other.before.insert(0, _word("and", "CCONJ", "cc"))
            head.after.append(other)
            head.plural = True
        return head

    def hardware(self, status: str, relation: str) -> Word:
        name = self.chance.deal(f"category {status}", lex.CATEGORIES)
        number = self.number(status)
        plural = number is not None or self.chance.coin(0.7)
        label = _label(status, "p")
        head = Word(name + "s" if plural else name, name, "NOUN", relation, label, plural)
        if self.chance.coin(0.15):
            head.before.append(self.owner(status))
        elif not plural or self.chance.coin(0.5):
            head.before.append(_word("the", "DET", "det"))
        if number:
            head.before.append(number)
        if self.chance.coin(0.15):
            head.before.append(_word(self.chance.pick(lex.PRODUCT_ADJECTIVES), "ADJ", "amod"))
        brand = self.chance.deal(f"hardware {status}", lex.HARDWARE_BRANDS)
        head.before.append(Word(brand, brand, "PROPN", "compound", label))
        return head

    def software(self, status: str, relation: str) -> Word:
        label = _label(status, "p")
        brand = self.chance.deal(f"software {status}", lex.SOFTWARE_BRANDS)
        head = Word(brand, brand, "PROPN", relation, label)
        if self.chance.coin(0.5):
            module = self.chance.deal(f"module {status}", lex.MODULES)
            head.relation = "compound"
            head = Word(module, module, "PROPN", relation, label, before=[head])
        if self.chance.coin(0.15):
            head.before.insert(0, self.owner(status))
        number = self.number(status)
        if number:
            unit = self.chance.pick(lex.UNITS)
            head.relation = "nmod"
            head.before.insert(0, _word(self.chance.pick(["of", "for"]), "ADP", "case"))
            head = Word(unit + "s", unit, "NOUN", relation, plural=True, before=[number], after=[head])
        return head

    def number(self, status: str) -> Word | None:
        if not self.chance.coin(0.5 if status in "DP" else 0.15):
            return None
        number = self.chance.deal(f"number {status}", lex.NUMBERS)
        return Word(number, number, "NUM", "nummod", _label(status, "n"))

    def vendor(self, status: str, relation: str) -> Word:
        name = self.chance.deal(f"vendor {status}", lex.VENDORS)
        return Word(name, name, "PROPN", relation, _label(status, "v"))

    def owner(self, status: str) -> Word:
        vendor = self.vendor(status, "nmod:poss")
        vendor.after.append(_word("'s", "PART", "case"))
        return vendor

    def reason(self, status: str) -> Word:
        """Because of the new lease; because the lease has changed."""
        label = _label(status, "r")
        preposition = self.chance.pick(lex.REASON_PREPOSITIONS)
        form = self.chance.deal(f"reason {status}", ["event", "circumstance", "circumstance", "clause", "clause", "clause"])
        if form != "clause":
            noun = self.circumstance(status) if form == "circumstance" else self.chance.deal(f"event {status}", lex.EVENTS)
            adjective = self.chance.deal(f"adjective {status}", ["", *lex.REASON_ADJECTIVES])
            return self.phrase(f"{preposition} the {adjective} {noun}", "obl", label)
        subject = self.phrase(f"the {self.circumstance(status)}", "nsubj", label)
        cause = self.chance.deal(f"cause {status}", ["active", "passive", "state"])
        if cause == "active":
            head = self.predicate(self.chance.deal(f"change {status}", lex.REASON_ACTIVE), subject.plural).cue
        elif cause == "passive":
            subject.relation = "nsubj:pass"
            head = self.predicate(self.chance.deal(f"revision {status}", lex.REASON_PASSIVE), subject.plural, True).cue
        else:
            head = _word(self.chance.deal(f"state {status}", lex.REASON_STATES), "ADJ", "advcl")
            head.before.append(_word("are" if subject.plural else "is", "AUX", "cop", "be"))
        head.relation = "advcl"
        head.label = label
        head.before[:0] = [_word("because", "SCONJ", "mark"), subject]
        return head

    def circumstance(self, status: str) -> str:
        return self.chance.deal(f"circumstance {status}", lex.CIRCUMSTANCES)

    # Noun phrases without labels

    def actor(self, status: str, inner: str | None = None, relation: str = "nsubj") -> Word:
        """Who uses, wants or rejects: a customer; who presents: our staff."""
        return self.staff(relation) if status == "O" else self.customer(relation, inner)

    def customer(self, relation: str, inner: str | None) -> Word:
        people = self.chance.coin(0.35)
        noun = self.chance.pick(lex.GROUPS) + "s" if people else self.chance.pick(lex.ORGANIZATIONS)
        city = self.chance.pick(lex.CITIES)
        if self.chance.coin(0.25):
            head = self.phrase(f"the {city} {noun}", relation)
        else:
            head = self.phrase(f"the {noun}", relation)
            if people and self.chance.coin(0.3):
                head.after.append(self.phrase(f"at the {self.chance.pick(lex.ORGANIZATIONS)}", "nmod"))
            elif self.chance.coin(0.4):
                head.after.append(self.phrase(f"in {city}", "nmod"))
        if inner and inner != "O":
            relative = self.active(inner, _word("who" if people else "which", "PRON", "nsubj"), head.plural, lead=False)
            relative.relation = "acl:relcl"
            head.after.append(_enclosed(relative))
        return head

    def staff(self, relation: str) -> Word:
        kind = self.chance.pick(["team", "team", "office", "person", "person", "employee", "employee"])
        if kind == "team":
            return self.phrase("our team", relation)
        if kind == "office":
            head = self.phrase("our office", relation)
            head.after.append(self.phrase(f"in {self.chance.pick(lex.CITIES)}", "nmod"))
            return head
        head = self.phrase(self.chance.pick(lex.PEOPLE), relation)
        if kind == "employee":
            head.after.append(self.phrase(f"of {self.chance.pick(lex.VENDORS)}", "nmod"))
        return head

    def presentation(self, product: Word) -> Word:
        """A relative clause of no status: that our team presented in Lund."""
        subject = self.staff("nsubj")
        head = self.predicate(self.chance.pick(lex.PRESENTATION_FRAMES), subject.plural).cue
        head.before.insert(0, subject)
        if self.chance.coin(0.6):
            head.after.append(self.venue(pages=True) if self.chance.coin(0.5) else self.time("past"))
        return _relative(product, head)

    def aside(self) -> Word:
        """A phrase between commas: as Mr. Vries of Orbexa noted; after the visit in May."""
        kind = self.chance.pick(["source", "clause", "phrase", "phrase"])
        if kind == "clause":
            subject = self.staff("nsubj")
            head = self.predicate(self.chance.pick(lex.ASIDE_FRAMES), subject.plural).cue
            head.relation = "advcl"
            head.before[:0] = [_word("as", "SCONJ", "mark"), subject]
        elif kind == "source":
            head = self.staff("obl")
            fixed = _word("to", "ADP", "fixed")
            head.before.insert(0, Word("according", "according", "ADP", "case", after=[fixed]))
        else:
            head = self.phrase(self.chance.pick(lex.ASIDES), "obl")
            if self.chance.coin(0.5):
                place = self.venue()
                place.relation = "nmod"
                head.after.append(place)
        return _enclosed(head)

    def venue(self, pages: bool = False) -> Word:
        kind = self.chance.pick(["city", "room", "stand", "fair", "page" if pages else "room"])
        if kind == "room":
            return self.phrase(f"in room {self.chance.pick(lex.PLAIN_NUMBERS)}", "obl")
        if kind == "stand":
            return self.phrase(f"at the {self.chance.pick(lex.VENDORS)} stand", "obl")
        city = self.phrase(f"in {self.chance.pick(lex.CITIES)}", "obl")
        if kind == "city":
            return city
        head = self.phrase("at the fair" if kind == "fair" else f"on page {self.chance.pick(lex.PLAIN_NUMBERS)}", "obl")
        city.relation = "nmod"
        head.after.append(city if kind == "fair" else self.phrase("of our offer", "nmod"))
        return head

    def time(self, tense: str) -> Word:
        if tense != "past" or self.chance.coin(0.3):
            text = self.chance.pick(lex.TIMES[tense])
        elif self.chance.coin(0.4):
            text = f"on {self.chance.pick(lex.DATES)} {self.chance.pick(lex.MONTHS)}"
        else:
            text = self.chance.pick([f"on {self.chance.pick(lex.DAYS)}", f"in {self.chance.pick(lex.MONTHS)}"])
        head = self.phrase(text, "obl")
        if head.before[0].upos != "ADP":
            head.relation = "obl:tmod"
        return head

    def phrase(self, text: str, relation: str, label: str = "O") -> Word:
        """A noun phrase from its words: the last is the head, or the noun before a number that ends it (room 12)."""
        words = [_tagged(form) for form in text.split()]
        position = len(words) - 1
        if words[-1].upos == "NUM":
            position -= 1
        head = words[position]
        head.relation = relation
        for word in words:
            if word.upos in CONTENT:
                word.label = label
            if word is not head:
                word.relation = MODIFIERS[word.upos]
        head.before, head.after = words[:position], words[position + 1 :]
        if len(head.before) > 1 and head.before[1].upos == "ADP":  # because of, due to
            fixed = head.before.pop(1)
            fixed.relation = "fixed"
            head.before[0].after.append(fixed)
        return head


@cache
def sentences() -> tuple[Sentence, ...]:
    """The whole corpus, always the same."""
    grammar = Grammar(Chance(SEED))
    made: dict[str, Sentence] = {}
    while len(made) < SIZE:
        sentence = grammar.sentence()
        if len(sentence.words) in LENGTHS:
            made[sentence.text] = sentence
    return tuple(made.values())


def _word(form: str, upos: str, relation: str, lemma: str | None = None) -> Word:
    return Word(form, lemma or form, upos, relation)


def _punctuation(mark: str) -> Word:
    return _word(mark, "PUNCT", "punct")


def _helper(form: str) -> Word:
    """An auxiliary or adverb of a verb group; "longer" brings its "no"."""
    if form in lex.AUXILIARIES:
        return _word(form, "AUX", "aux", lex.AUXILIARIES[form])
    word = _word(form, "PART" if form == "not" else "ADV", "advmod", "long" if form == "longer" else form)
    if form == "longer":
        word.before.append(_word("no", "ADV", "advmod"))
    return word


def _tagged(form: str) -> Word:
    """A word of a noun phrase with its lemma and part of speech."""
    if form in lex.TAGS:
        upos = lex.TAGS[form]
    elif form.isdigit():
        upos = "NUM"
    else:
        upos = "PROPN" if form[0].isupper() else "NOUN"
    lemma = lex.LEMMAS.get(form, form)
    return Word(form, lemma, upos, "dep", plural=upos == "NOUN" and lemma != form)


def _tail(frame: str) -> set[str]:
    """The words of a frame after its verb."""
    return set(frame.partition(": ")[2].split()[1:])


def _label(status: str, kind: str) -> str:
    return "O" if status == "O" or (status, kind) == ("R", "n") else f"{status}-{kind}"


def _enclosed(head: Word) -> Word:
    """The phrase between commas."""
    head.before.insert(0, _punctuation(","))
    head.after.append(_punctuation(","))
    return head


def _relative(product: Word, verb: Word, pronoun: bool = True) -> Word:
    """The clause as a relative clause with the product as its object: set off by commas after a bare name."""
    verb.relation = "acl:relcl"
    named = product.upos == "PROPN"
    if pronoun:
        verb.before.insert(0, _word("which" if named else "that", "PRON", "obj"))
    return _enclosed(verb) if named else verb


def _claim(head: Word, cue: Word) -> None:
    """Tie the labelled words below `head` that no inner clause has claimed to their cue."""
    for word in head.subtree():
        if word.label != "O" and word.cue is None:
            word.cue = cue


def _clings(form: str) -> bool:
    return form in {",", ".", "'s"}


def _flatten(root: Word) -> Sentence:
    """The columns of a finished tree; of two punctuation marks side by side only the last stays."""
    words = list(root.subtree())
    words = [w for w, after in zip(words, [*words[1:], None], strict=True) if not (after and w.upos == after.upos == "PUNCT")]
    position = {id(word): i for i, word in enumerate(words)}
    words[0].form = words[0].form[0].upper() + words[0].form[1:]
    return Sentence(
        tuple((word.form, word.lemma, word.upos) for word in words),
        tuple(position[id(word.head)] if word.head else -1 for word in words),
        tuple(word.relation for word in words),
        tuple(word.label for word in words),
        tuple(position[id(word.cue)] if word.cue else -1 for word in words),
    )
