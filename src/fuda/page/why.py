"""Why the model labels something as it does, for the page: evidence for and against."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fuda import schemes
from fuda.explanations.base import Contribution, Explanation
from fuda.page.evidence import Evidence, EvidenceSearch
from fuda.page.importing import digest_of
from fuda.page.spans import Unit, plain_tags
from fuda.page.store import Item, Store
from fuda.page.views import spaces_of, stretch_of, words_of
from fuda.page.wording import elsewhere_in_words, features_in_words, follows_in_words, parsed, place_of

_POSITIONS, _FEATURES = 6, 40  # so many contributions of each kind are considered
_SHOWN = 6  # so many reasons are shown for a label, and as many against it
Json = dict[str, Any]


def why(store: Store, model: Any, item: Item, start: int, end: int) -> Json:
    """Return the reasons for and against the label of a span or node.

    Parameters
    ----------
    store : Store
        Has the sentences that are shown as evidence.
    model : Labeler
        The model.
    item : Item
        The structure.
    start, end : int
        The nodes of the span; of a span, its first node is explained, where it is
        decided to begin.

    Returns
    -------
    dict
        As the page shows it.
    """
    structure, unit = item.record.structure, store.unit
    support = getattr(model, "support_structures_", [])
    explanation: Explanation = model.explain(structure, start, top=_POSITIONS if len(support) else _FEATURES)
    classes, is_chain = set(map(str, model.classes_)), structure.shape == "sequence"
    groups = _groups(explanation, classes)
    pro, con = ([g for g in groups if sign * g[0].value > 0][:_SHOWN] for sign in (1, -1))
    shown = [*pro, *con]
    values = [sum(part.value for part in group) for group in shown]
    largest = max(map(abs, values), default=1.0)
    search = EvidenceSearch(store, model)
    entries = []
    for group, value in zip(shown, values, strict=True):
        text = _in_words(group, unit, classes, is_chain)
        entry = _entry(store, unit, support, group[0], text)
        entry |= {"value": value, "share": abs(value) / largest}
        entries.append(entry)
        side = explanation.chosen if value > 0 else explanation.rival
        features = [parsed(part.text, classes) for part in group if part.kind == "feature"]
        if side is not None:
            candidates = (
                search.find(f, explanation.observation, side.label) for f in features if f is not None
            )
            evidence = next(filter(None, candidates), None)
            entry |= {} if evidence is None else _sentence_fields(unit, evidence, side.label)
    rest = sum(part.value for part in explanation.contributions) - sum(values)
    chosen, rival = unit.kind(explanation.chosen.label), None
    if explanation.rival is not None:
        rival = unit.kind(explanation.rival.label)
    words = stretch_of(item, start, end)
    return {
        "chosen": chosen,
        "rival": rival,
        "difference": explanation.difference,
        "for": entries[: len(pro)],
        "against": entries[len(pro) :],
        "rest": rest if len(explanation.contributions) > sum(map(len, shown)) else 0.0,
        "text": _text(words, explanation, unit),
    }


def _groups(explanation: Explanation, classes: Collection[str]) -> list[list[Contribution]]:
    """The parts of the difference, in groups: those about the same thing, such as the same words.

    A word, its ending and its length are one piece of evidence to a person. Evidence against a
    label is kept apart from evidence for it. The largest come first.
    """
    together: dict[Any, list[Contribution]] = {}
    for part in explanation.contributions:
        if part.count > 1:
            continue
        place = place_of(part.text, classes) if part.kind == "feature" else part.text
        together.setdefault((part.kind, place, part.node, part.value > 0), []).append(part)
    groups = [sorted(group, key=lambda part: -abs(part.value)) for group in together.values()]
    return sorted(groups, key=lambda group: -abs(sum(part.value for part in group)))


def _sentence_fields(unit: Unit, evidence: Evidence, label: Any) -> Json:
    """The fields of an entry that show a sentence as evidence for a feature."""
    item = evidence.item
    return {
        "item": item.id,
        "words": words_of(item.record.structure),
        "spaces": spaces_of(item),
        "matched": evidence.matched,
        "node": evidence.node,
        "label": unit.kind(label),
    }


def _text(words: str, explanation: Explanation, unit: Unit) -> str:
    """The decision in a sentence."""
    if explanation.rival is None:
        return f"“{words}” is {unit.display_name(explanation.chosen.label)}; {explanation.without_rival}."
    chosen, rival = (
        unit.display_name(label) for label in (explanation.chosen.label, explanation.rival.label)
    )
    difference = f"{explanation.difference:.3g} ({explanation.unit})"
    return f"“{words}” is {chosen} rather than {rival}: ahead by {difference}."


def _in_words(group: list[Contribution], unit: Unit, classes: Collection[str], is_chain: bool) -> str:
    """Parts of the difference that belong together, in plain words."""
    part = group[0]
    if part.kind == "feature":
        return features_in_words([part.text for part in group], is_chain, classes, unit.display_name)
    if part.kind == "transition":
        return follows_in_words(part.text, is_chain, unit.display_name)
    if part.kind == "penalty":
        return f"{unit.display_name(schemes.OUTSIDE)} has to be likelier than the rest"
    if part.kind == "elsewhere":
        return elsewhere_in_words(part.text, unit.display_name)
    return part.text if unit.scheme is None else plain_tags(part.text)


def _entry(store: Store, unit: Unit, support: list[Any], part: Contribution, text: str) -> Json:
    """A part of the difference: of a training position, with its sentence."""
    entry: Json = {
        "kind": part.kind,
        "text": text,
        "item": None,
        "words": [],
        "spaces": [],
        "matched": [],
        "node": part.node,
        "label": None,
    }
    voice = part.voice
    if voice is None or not 0 <= voice.structure < len(support):
        return entry
    structure = support[voice.structure]
    items = store.items("digest = ?", (digest_of(structure),), "status = 'done' DESC, items.id LIMIT 1")
    entry |= {
        "words": words_of(structure),
        "spaces": spaces_of(items[0]) if items else [True] * len(structure),
        "item": items[0].id if items else None,
        "matched": [node for node, _ in voice.match],
        "node": voice.node,
        "label": unit.kind(voice.label),
        "text": f"{unit.kind(voice.label)} in {items[0].place}" if items else text,
    }
    return entry
