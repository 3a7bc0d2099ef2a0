"""Data that comes with the package: a generated corpus of labelled trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fuda.formats import conllu
from fuda.formats.dataset import Dataset

__all__ = ["ProductUsage", "load_product_usage"]

TRAIN_SIZE = 600


@dataclass
class ProductUsage(Dataset):
    """The product-usage corpus; `train` and `test` are its fixed split."""

    @property
    def train(self) -> Dataset:
        return Dataset(self.records[:TRAIN_SIZE])

    @property
    def test(self) -> Dataset:
        return Dataset(self.records[TRAIN_SIZE:])


def load_product_usage() -> ProductUsage:
    """900 synthetic sales-log sentences as dependency trees, with 12 labels: 600 to train, 300 to test.

    A label links a role (p product, v vendor, n number bought, r reason) to the state of the customer (D
    already uses, P wishes to use, R rejects), as in ``D-p``; all other tokens are ``O``. An observation is
    the tuple (form, lemma, part of speech). Each call gives data of its own, which the caller may change.
    Written as CoNLL-U, the labels stand in MISC under the key ``Usage``.

    >>> X, y = load_product_usage().train
    >>> len(X), X[0].observations[13], y[0][13]
    (600, ('Planner', 'Planner', 'PROPN'), 'D-p')
    """
    data = conllu.read(_text(), "product-usage", label="MISC:Usage", columns=("FORM", "LEMMA", "UPOS"))
    return ProductUsage(data.records)


@cache
def _text() -> str:
    """The corpus as CoNLL-U."""
    from fuda.datasets.product_usage import sentences
    from fuda.datasets.syntax import clings

    lines: list[str] = []
    for number, sentence in enumerate(sentences(), 1):
        lines += [f"# sent_id = product-usage-{number:04}", f"# text = {sentence.text}"]
        columns = zip(*sentence[:4], strict=True)
        for node, ((form, lemma, upos), head, relation, label) in enumerate(columns):
            misc = [] if label == "O" else [f"Usage={label}"]
            if sentence.words[node + 1 :] and clings(sentence.words[node + 1][0]):
                misc.insert(0, "SpaceAfter=No")
            cells = (node + 1, form, lemma, upos, "_", "_", head + 1, relation, "_", "|".join(misc) or "_")
            lines.append("\t".join(map(str, cells)))
        lines.append("")
    return "\n".join(lines) + "\n"
