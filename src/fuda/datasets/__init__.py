"""Data shipped with the package: a synthetic corpus of labelled dependency trees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fuda import formats
from fuda.formats.dataset import Dataset

__all__ = ["ProductUsage", "load_product_usage"]

TRAIN_SIZE = 600
PRODUCT_USAGE = Path(__file__).parent / "product_usage.conllu.gz"


@dataclass(repr=False)
class ProductUsage(Dataset):
    """The product-usage corpus with its fixed split.

    Parameters
    ----------
    records : list of Record
        All sentences, in file order.
    notes : list of str, default []
        Remarks of the reader; empty for this corpus.

    See Also
    --------
    load_product_usage : Load the corpus.

    Examples
    --------
    >>> data = load_product_usage()
    >>> len(data.train), len(data.test)
    (600, 300)
    """

    @property
    def train(self) -> Dataset:
        """The first 600 sentences."""
        return Dataset(self.records[:TRAIN_SIZE])

    @property
    def test(self) -> Dataset:
        """The last 300 sentences."""
        return Dataset(self.records[TRAIN_SIZE:])


def load_product_usage() -> ProductUsage:
    """Load 900 synthetic sales-log sentences as dependency trees with 12 labels.

    A label joins the state of the customer (D already uses, P wishes to use, R rejects) and the
    role of the token (p product, v vendor, n number bought, r reason), as in ``D-p``; all other
    tokens are ``O``. An observation is the tuple (form, lemma, part of speech).

    Returns
    -------
    ProductUsage
        The corpus; `train` contains the first 600 sentences, `test` the last 300. Every call reads
        the file anew, so the caller may modify the result.

    Notes
    -----
    ``fuda.formats.write(data, "usage.conllu")`` writes the corpus as CoNLL-U, with the labels in
    MISC under the key ``Usage``.

    Examples
    --------
    >>> X, y = load_product_usage().train
    >>> len(X), X[0].observations[13], y[0][13]
    (600, ('Planner', 'Planner', 'PROPN'), 'D-p')
    """
    data = formats.read(PRODUCT_USAGE, label="MISC:Usage", columns=("FORM", "LEMMA", "UPOS"))
    return ProductUsage(data.records)
