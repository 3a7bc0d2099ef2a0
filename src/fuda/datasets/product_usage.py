"""The grammar of the product-usage corpus: labelled dependency trees of sales-log sentences, from a seed.

A *clause* has a status: the customer uses a product already (D), wishes to use it (P) or rejects it (R); a
clause of our own staff has none (O). Its predicate, the *cue*, alone says the status. The tokens of the
product's name (p), its vendor (v), the number bought (n) and the nouns, adjectives and verb of the reason
(r) carry the status of the clause they stand in. A number inside a rejecting clause is O: nothing was
bought. Words are dealt from shuffled decks, one deck a status, so that a word stands under each status
about equally often.

A sentence holds one or two clauses, mostly of different status. Relative clauses, asides and fronted
phrases come between a mention and its cue; in the tree the cue stays near.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from fuda.datasets import lexicon as lex
from fuda.datasets.chance import Chance
from fuda.datasets.syntax import (
    Sentence,
    VerbGroup,
    Word,
    claim,
    enclosed,
    flatten,
    phrase,
    punctuation,
    relative_clause,
    verb_group,
    word,
)

SEED = 2004
SIZE = 900
LENGTHS = range(8, 36)
KINDS = [*["nested"] * 5, *["subordinate"] * 4, *["coordinate"] * 4, *["report"] * 3, *["single"] * 4]
FORMS = [*["active"] * 5, *["passive"] * 4, "fronted", *["recalled"] * 2]
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
        kind = self.chance.deal("kind", KINDS)
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
        root.after.append(punctuation("."))
        return flatten(root)

    # Sentences of two clauses

    def subordinated(self, first: str, second: str) -> Word:
        fronted = self.chance.coin(0.5)
        main = self.clause(first, lead=not fronted)
        other = self.clause(second, lead=False, main=False)
        other.relation = "advcl"
        other.before.insert(0, word(self.chance.pick(lex.SUBORDINATORS), "SCONJ", "mark"))
        if fronted:
            other.after.append(punctuation(","))
            main.before.insert(0, other)
        else:
            other.before.insert(0, punctuation(","))
            main.after.append(other)
        return main

    def coordinated(self, first: str, second: str) -> Word:
        conjunction = word(self.chance.pick(["but", "and"]) if first != second else "and", "CCONJ", "cc")
        if (
            "O" not in (first, second) and first != second and self.chance.coin(0.5)
        ):  # one customer, two verbs
            subject = self.actor(first)
            main = self.active(first, subject, subject.plural)
            other = self.active(second, None, subject.plural, lead=False)
            other.before.insert(0, conjunction)
        else:
            main = self.clause(first)
            other = self.clause(second, lead=False)
            other.before[:0] = [punctuation(","), conjunction]
        other.relation = "conj"
        main.after.append(other)
        return main

    def report(self, first: str, second: str | None) -> Word:
        speaker = self.staff("nsubj")
        verb = self.predicate(self.chance.deal("report", lex.REPORT_FRAMES), speaker.plural).cue
        verb.before.insert(0, speaker)
        if self.chance.coin(0.3):
            verb.after.append(self.venue() if self.chance.coin(0.5) else self.time("past"))
        content = self.clause(first, inner=second, lead=False, main=False)
        content.relation = "ccomp"
        content.before.insert(0, word("that", "SCONJ", "mark"))
        verb.after.append(content)
        return verb

    # Clauses: in `inner`, the status of a relative clause on the customer

    def clause(self, status: str, inner: str | None = None, lead: bool = True, main: bool = True) -> Word:
        """A finite clause; `lead` allows a reason in front of it, `main` the forms of main clauses."""
        if status == "O" or not main:
            form = self.chance.deal("form of other clause", ["active", "active", "passive"])
        else:
            form = self.chance.deal("form", FORMS)
        if form == "fronted":
            return self.fronted(status, inner)
        if form == "recalled":
            return self.recalled(status, inner)
        if form == "passive":
            return self.passive(status, inner, lead)
        subject = self.actor(status, inner)
        return self.active(status, subject, subject.plural, inner if status == "O" else None, lead)

    def active(
        self, status: str, subject: Word | None, plural: bool, inner: str | None = None, lead: bool = True
    ) -> Word:
        """The customer rejected the product."""
        predicate = self.predicate(self.frame("active", status, inner), plural)
        if subject and subject.before and not _has_clause(subject) and self.chance.coin(0.15):
            predicate.cue.before.insert(0, self.aside())
        elif self.chance.coin(0.06):
            predicate.governor.after.append(self.aside())
        if subject:
            predicate.cue.before.insert(0, subject)
        if status == "O" and predicate.cue.lemma in lex.RECIPIENT_VERBS and self.chance.coin(0.25):
            adjective = self.chance.pick(lex.REASON_ADJECTIVES)
            product = phrase(f"the {adjective} {self.circumstance(status)}", "obj")
        else:
            product = self.product(status, "obl" if predicate.preposition else "obj")
        if predicate.preposition:
            product.before.insert(0, word(predicate.preposition, "ADP", "case"))
        predicate.governor.after.append(product)
        return self.completed(predicate, status, inner, lead)

    def passive(self, status: str, inner: str | None, lead: bool) -> Word:
        """The product was rejected by the customer."""
        product = self.product(status, "nsubj:pass")
        predicate = self.predicate(self.frame("passive", status, inner), product.plural, passive=True)
        agent = self.actor(status, inner, "obl:agent")
        agent.before.insert(0, word("by", "ADP", "case"))
        if self.chance.coin(0.15):
            product.after.append(self.presentation(product))
        elif self.chance.coin(0.15):
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
        product.after.append(punctuation(","))
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
        product.after.append(relative_clause(product, predicate.cue, pronoun=kind == "plain"))
        claim(product, predicate.cue)
        main = self.predicate(topic, product.plural, passive).cue
        main.before.insert(0, product)
        main.after.append(self.venue(passive) if self.chance.coin(0.5) else self.time("past"))
        return main

    def completed(
        self, predicate: VerbGroup, status: str, inner: str | None, lead: bool, agent: Word | None = None
    ) -> Word:
        """The clause with its purpose, time, agent, recipient and reason, its mentions tied to its cue."""
        cue = predicate.cue
        if status != "O" and self.chance.coin(0.15):
            predicate.governor.after.append(phrase(f"for the {self.chance.pick(lex.SITES)}", "obl"))
        if self.chance.coin(0.15):
            cue.after.append(self.time(predicate.tense))
        if agent:
            cue.after.append(agent)
        if status == "O" and inner:
            recipient = self.customer("obl", inner)
            recipient.before.insert(0, word("to", "ADP", "case"))
            cue.after.append(recipient)
        if self.chance.coin(0.35):
            reason = self.reason(status)
            if lead and self.chance.coin(0.6):
                reason.after.append(punctuation(","))
                cue.before.insert(0, reason)
            else:
                cue.after.append(reason)
        claim(cue, cue)
        return cue

    # Predicates

    def frame(self, voice: str, status: str, inner: str | None, kind: str = "any") -> str:
        """A frame of the status: any, a direct one (no preposition), or a plain one (a single verb)."""
        frames = (lex.ACTIVE_FRAMES if voice == "active" else lex.PASSIVE_FRAMES)[status]
        if kind == "plain":
            frames = [frame for frame in frames if _complement(frame) <= lex.PARTICLES]
        elif kind == "direct":
            frames = [frame for frame in frames if not _complement(frame) & lex.PREPOSITIONS]
        if status == "O" and inner:
            kind = "recipient"
            frames = [frame for frame in frames if frame.split()[1] in lex.RECIPIENT_VERBS]
        return self.chance.deal(f"{voice} {status} {kind}", frames)

    def predicate(self, frame: str, plural: bool, passive: bool = False) -> VerbGroup:
        manner = self.chance.pick(lex.MANNERS) if self.chance.coin(0.06) else None
        return verb_group(frame, plural, passive, manner)

    # Noun phrases with labels

    def product(self, status: str, relation: str, alone: bool = False) -> Word:
        """A product, perhaps with number and vendor; unless `alone`, perhaps two of them."""
        head = self.hardware(status, relation) if self.chance.coin(0.7) else self.software(status, relation)
        if self.chance.coin(0.65) and not any(part.relation == "nmod:poss" for part in head.subtree()):
            vendor = self.vendor(status, "nmod")
            vendor.before.insert(0, word(self.chance.pick(["from", "from", "by"]), "ADP", "case"))
            head.after.append(vendor)
        if not alone and self.chance.coin(0.08):
            other = self.product(status, "conj", alone=True)
            other.before.insert(0, word("and", "CCONJ", "cc"))
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
        elif number is None:
            head.before.append(word("the", "DET", "det"))
        if number:
            head.before.append(number)
        if self.chance.coin(0.05):
            head.before.append(word(self.chance.pick(lex.PRODUCT_ADJECTIVES), "ADJ", "amod"))
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
            head.before.insert(0, word(self.chance.pick(["of", "for"]), "ADP", "case"))
            head = Word(unit + "s", unit, "NOUN", relation, plural=True, before=[number], after=[head])
        return head

    def number(self, status: str) -> Word | None:
        if not self.chance.coin(0.4 if status in "DP" else 0.15):
            return None
        number = self.chance.deal(f"number {status}", lex.NUMBERS)
        return Word(number, number, "NUM", "nummod", _label(status, "n"))

    def vendor(self, status: str, relation: str) -> Word:
        name = self.chance.deal(f"vendor {status}", lex.VENDORS)
        return Word(name, name, "PROPN", relation, _label(status, "v"))

    def owner(self, status: str) -> Word:
        vendor = self.vendor(status, "nmod:poss")
        vendor.after.append(word("'s", "PART", "case"))
        return vendor

    def reason(self, status: str) -> Word:
        """Because of the new lease; because the lease has changed."""
        label = _label(status, "r")
        if self.chance.deal(f"reason {status}", ["phrase", "clause"]) == "phrase":
            preposition = self.chance.pick(lex.REASON_PREPOSITIONS)
            adjective = self.chance.deal(f"adjective {status}", ["", *lex.REASON_ADJECTIVES])
            noun = self.chance.deal(f"ground {status}", [*lex.CIRCUMSTANCES, *lex.EVENTS])
            return phrase(f"{preposition} the {adjective} {noun}", "obl", label)
        subject = phrase(f"the {self.circumstance(status)}", "nsubj", label)
        cause = self.chance.deal(f"cause {status}", ["active", "passive", "state"])
        if cause == "active":
            head = self.predicate(self.chance.deal(f"change {status}", lex.REASON_ACTIVE), subject.plural).cue
        elif cause == "passive":
            subject.relation = "nsubj:pass"
            head = self.predicate(lex.REASON_PASSIVE, subject.plural, passive=True).cue
        else:
            head = word(self.chance.deal(f"state {status}", lex.REASON_STATES), "ADJ", "advcl")
            head.before.append(word("are" if subject.plural else "is", "AUX", "cop", "be"))
        head.relation = "advcl"
        head.label = label
        head.before[:0] = [word("because", "SCONJ", "mark"), subject]
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
            head = phrase(f"the {city} {noun}", relation)
        else:
            head = phrase(f"the {noun}", relation)
            if people and self.chance.coin(0.3):
                head.after.append(phrase(f"at the {self.chance.pick(lex.ORGANIZATIONS)}", "nmod"))
            elif self.chance.coin(0.4):
                head.after.append(phrase(f"in {city}", "nmod"))
        if inner and inner != "O":
            pronoun = word("who" if people else "which", "PRON", "nsubj")
            clause = self.active(inner, pronoun, head.plural, lead=False)
            clause.relation = "acl:relcl"
            head.after.append(enclosed(clause))
        return head

    def staff(self, relation: str) -> Word:
        kind = self.chance.pick(["team", "team", "office", "person", "person", "employee", "employee"])
        if kind == "team":
            return phrase("our team", relation)
        if kind == "office":
            head = phrase("our office", relation)
            head.after.append(phrase(f"in {self.chance.pick(lex.CITIES)}", "nmod"))
            return head
        head = phrase(self.chance.deal("people", lex.PEOPLE), relation)
        if kind == "employee":
            head.after.append(phrase(f"of {self.chance.pick(lex.VENDORS)}", "nmod"))
        return head

    def presentation(self, product: Word) -> Word:
        """A relative clause of no status: that our team presented in Lund."""
        subject = self.staff("nsubj")
        head = self.predicate(self.chance.pick(lex.PRESENTATION_FRAMES), subject.plural).cue
        head.before.insert(0, subject)
        if self.chance.coin(0.4):
            head.after.append(self.venue(pages=True) if self.chance.coin(0.5) else self.time("past"))
        return relative_clause(product, head)

    def aside(self) -> Word:
        """A phrase between commas: as Mr. Vries of Keldwyn noted; after the visit in May."""
        kind = self.chance.pick(["source", "clause", "phrase", "phrase"])
        if kind == "clause":
            subject = self.staff("nsubj")
            head = self.predicate(self.chance.pick(lex.ASIDE_FRAMES), subject.plural).cue
            head.relation = "advcl"
            head.before[:0] = [word("as", "SCONJ", "mark"), subject]
        elif kind == "source":
            head = self.staff("obl")
            fixed = word("to", "ADP", "fixed")
            head.before.insert(0, Word("according", "according", "ADP", "case", after=[fixed]))
        else:
            head = phrase(self.chance.pick(lex.ASIDES), "obl")
            if self.chance.coin(0.3):
                head.after.append(phrase(f"in {self.chance.pick(lex.CITIES)}", "nmod"))
        return enclosed(head)

    def venue(self, pages: bool = False) -> Word:
        kind = self.chance.pick(["city", "room", "stand", "fair", "page" if pages else "room"])
        if kind == "room":
            return phrase(f"in room {self.chance.pick(lex.PLAIN_NUMBERS)}", "obl")
        if kind == "stand":
            return phrase(f"at the {self.chance.pick(lex.VENDORS)} stand", "obl")
        city = f"in {self.chance.pick(lex.CITIES)}"
        if kind == "city":
            return phrase(city, "obl")
        head = phrase(
            "at the fair" if kind == "fair" else f"on page {self.chance.pick(lex.PLAIN_NUMBERS)}", "obl"
        )
        head.after.append(phrase(city if kind == "fair" else "of our offer", "nmod"))
        return head

    def time(self, tense: str) -> Word:
        if tense != "past" or self.chance.coin(0.3):
            text = self.chance.pick(lex.TIMES[tense])
        elif self.chance.coin(0.4):
            text = f"on {self.chance.pick(lex.DATES)} {self.chance.pick(lex.MONTHS)}"
        else:
            text = self.chance.pick(
                [f"on {self.chance.pick(lex.DAYS)}", f"in {self.chance.pick(lex.MONTHS)}"]
            )
        head = phrase(text, "obl")
        if head.before[0].upos != "ADP":
            head.relation = "obl:tmod"
        return head


@cache
def sentences() -> tuple[Sentence, ...]:
    """The whole corpus, always the same."""
    grammar = Grammar(Chance(SEED))
    made: dict[str, Sentence] = {}
    while len(made) < SIZE:
        sentence = grammar.sentence()
        if len(sentence.words) in LENGTHS and not _repeats_product(sentence):
            made[sentence.text] = sentence
    return tuple(made.values())


def _repeats_product(sentence: Sentence) -> bool:
    """Whether a product is named twice, perhaps as wanted and rejected at once."""
    brands = {*lex.HARDWARE_BRANDS, *lex.SOFTWARE_BRANDS}
    products = [(a, b) for (_, a, _), (_, b, _) in pairwise(sentence.words) if a in brands]
    return len(set(products)) < len(products)


def _label(status: str, kind: str) -> str:
    return "O" if status == "O" or (status, kind) == ("R", "n") else f"{status}-{kind}"


def _has_clause(noun: Word) -> bool:
    return any(child.relation == "acl:relcl" for child in noun.after)


def _complement(frame: str) -> set[str]:
    """The words of a frame after its verb."""
    return set(frame.partition(": ")[2].split()[1:])
