"""Why the model labels something as it does, for the page: voices for and against."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fuda.explanations.base import Contribution, Explanation
from fuda.page.importing import digest_of
from fuda.page.spans import Unit, plain_tags
from fuda.page.store import Item, Store
from fuda.page.views import spaces_of, stretch_of, words_of
from fuda.page.witnesses import Witness, Witnesses
from fuda.page.wording import elsewhere_in_words, feature_in_words, follows_in_words, parsed

_TOP = 6  # contributions of each kind
Json = dict[str, Any]


def why(store: Store, model: Any, item: Item, start: int, end: int) -> Json:
    """Return what speaks for and against the label of a span or node.

    Parameters
    ----------
    store : Store
        Has the sentences that speak.
    model : Labeler
        The model.
    item : Item
        The structure.
    start, end : int
        The nodes of the span; of a span, its first node is explained, where it is decided to begin.

    Returns
    -------
    dict
        As the page shows it.
    """
    structure, unit = item.record.structure, store.unit
    found: Explanation = model.explain(structure, start, top=_TOP)
    support = getattr(model, "support_structures_", [])
    largest = max((abs(part.value) for part in found.contributions), default=0.0) or 1.0
    parts = [part for part in found.contributions if part.count == 1]
    classes, is_chain = set(map(str, model.classes_)), structure.shape == "sequence"
    witnesses = Witnesses(store, model)
    voices = []
    for part in parts:
        text = _in_words(part, unit, classes, is_chain)
        voice = _voice(store, unit, support, part, text, largest)
        voices.append(voice)
        side = found.chosen if part.value > 0 else found.rival
        feature = parsed(part.text, classes) if part.kind == "feature" else None
        if feature is not None and side is not None:
            witness = witnesses.of(feature, found.observation, side.label)
            voice |= {} if witness is None else _witnessed(unit, witness, side.label)
    rest = sum(part.value for part in found.contributions if part.count > 1)
    chosen, rival = unit.kind(found.chosen.label), None
    if found.rival is not None:
        rival = unit.kind(found.rival.label)
    words = stretch_of(item, start, end)
    return {
        "chosen": chosen,
        "rival": rival,
        "difference": found.difference,
        "for": sorted((v for v in voices if v["value"] > 0), key=lambda v: -v["value"]),
        "against": sorted((v for v in voices if v["value"] < 0), key=lambda v: v["value"]),
        "rest": rest,
        "text": _text(words, found, unit),
    }


def _witnessed(unit: Unit, witness: Witness, label: Any) -> Json:
    """What a sentence that has the feature adds to its voice."""
    item = witness.item
    return {
        "item": item.id,
        "words": words_of(item.record.structure),
        "spaces": spaces_of(item),
        "matched": witness.matched,
        "node": witness.node,
        "label": unit.kind(label),
    }


def _text(words: str, found: Explanation, unit: Unit) -> str:
    """The decision in a sentence."""
    if found.rival is None:
        return f"“{words}” is {_named(found.chosen.label, unit)}; {found.without_rival}."
    chosen, rival = (_named(label, unit) for label in (found.chosen.label, found.rival.label))
    return f"“{words}” is {chosen}, not {rival}: ahead by {found.difference:.3g} ({found.unit})."


def _named(label: Any, unit: Unit) -> str:
    """A label of a node in words."""
    if unit.scheme is None:
        return str(label)
    return "no span" if label == "O" else plain_tags(str(label))


def _in_words(part: Contribution, unit: Unit, classes: Collection[str], is_chain: bool) -> str:
    """A part of the difference in plain words."""

    def named(label: str) -> str:
        return _named(label, unit)

    if part.kind == "feature":
        return feature_in_words(part.text, is_chain, classes, named)
    if part.kind == "transition":
        return follows_in_words(part.text, is_chain, named)
    if part.kind == "elsewhere":
        return elsewhere_in_words(part.text, named)
    return part.text if unit.scheme is None else plain_tags(part.text)


def _voice(
    store: Store, unit: Unit, support: list[Any], part: Contribution, text: str, largest: float
) -> Json:
    """A part of the difference: of a training position, with its sentence."""
    found: Json = {
        "kind": part.kind,
        "text": text,
        "value": part.value,
        "share": abs(part.value) / largest,
        "item": None,
        "words": [],
        "spaces": [],
        "matched": [],
        "node": part.node,
        "label": None,
    }
    voice = part.voice
    if voice is None or not 0 <= voice.structure < len(support):
        return found
    structure = support[voice.structure]
    spoken = store.items("digest = ?", (digest_of(structure),), "status = 'done' DESC, items.id LIMIT 1")
    found |= {
        "words": words_of(structure),
        "spaces": spaces_of(spoken[0]) if spoken else [True] * len(structure),
        "item": spoken[0].id if spoken else None,
        "matched": [node for node, _ in voice.match],
        "node": voice.node,
        "label": unit.kind(voice.label),
        "text": f"{unit.kind(voice.label)} in {spoken[0].place}" if spoken else text,
    }
    return found
