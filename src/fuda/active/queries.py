"""Which structure to label next.

The *uncertainty* of a structure is what its labels would tell at most, by the marginals p_t of a model:

    U = Σ_t H(p_t) = −Σ_t Σ_σ p_t(σ) log p_t(σ).

By this alone, ten near-copies of an uncertain sentence would come in a row. So what is known by now
counts too: with n_w the number of labelled structures that have the observation w, and v_w = log(n/n(w))
how rare w is among all n structures, the *novelty* of a structure is

    N = Σ_w v_w γ^{n_w} / Σ_w v_w    over its distinct observations w,

which a copy of a labelled structure has multiplied by γ. The most useful structure has the largest U · N.
Both are numbers of structures by themselves: all of N is one product of a sparse matrix with a vector, some
milliseconds for 100,000 sentences, and U of a piece of the pool can be replaced at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from fuda.data.corpus import Corpus
from fuda.data.structures import as_structures
from fuda.errors import DataError, short

ORDERS = ("useful", "file", "disagreement")
_FADING = 0.5  # γ


def uncertainties(marginals: Iterable[np.ndarray]) -> np.ndarray:
    """Return the sums of the entropies of nodes, in nats.

    Parameters
    ----------
    marginals : iterable of arrays (n_nodes, n_labels)
        Probabilities of labels, as by `predict_marginals`; one array per structure.

    Returns
    -------
    ndarray of shape (n_structures,)
        The uncertainties.

    Examples
    --------
    >>> uncertainties([np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[1.0, 0.0]])]).round(4).tolist()
    [0.6931, 0.0]
    """
    found = []
    for table in marginals:
        logs = np.log(table, where=table > 0, out=np.zeros_like(table))
        found.append(max(0.0, -float((table * logs).sum())))
    return np.array(found)


class Chooser:
    """Chooses which structure to label next, while a model learns from those labelled so far.

    `scored` may be called from another thread than `next`, for any piece of the pool, as often as
    there is a better model. Structures that have not been scored yet come after the others.

    Parameters
    ----------
    structures : list of structures
        All structures; a structure's number is its place in this list.
    order : {"useful", "file", "disagreement"}, default="useful"
        By uncertainty and novelty, in the order of the list, or those first where the model is
        surest that the label given is wrong. It may be changed at any time.
    random_state : int, default=0
        The seed of the order of structures that are equally useful, as all are before any model.

    Examples
    --------
    >>> X = [["Ana", "sings"], ["Ana", "sings"], ["Lima", "is", "big"]]
    >>> chooser = Chooser(X)
    >>> first = chooser.next()
    >>> chooser.next(exclude=[0]), chooser.next(exclude=[0, 2])
    (2, 1)
    """

    def __init__(self, structures: Sequence[Any], order: str = "useful", random_state: int = 0) -> None:
        self.order = order
        self._words, self._weights = _bags(Corpus(as_structures(structures)))
        self._sizes = np.maximum(self._words @ self._weights, 1e-9)
        count = len(structures)
        self._uncertainty, self._disagreement = np.full(count, -1.0), np.full(count, -1.0)
        self._shuffled = np.random.RandomState(random_state).permutation(count)
        self._lock = Lock()

    @property
    def order(self) -> str:
        """The order in which structures come."""
        return self._order

    @order.setter
    def order(self, order: str) -> None:
        if order not in ORDERS:
            raise DataError(f"order={short(order)}: choose {', '.join(ORDERS)}")
        self._order = order

    def scored(
        self, ids: Sequence[int], model: Any, structures: Sequence[Any], labels: Sequence[Any] | None = None
    ) -> None:
        """Score a piece of the pool by a model; earlier scores of these structures are replaced.

        Parameters
        ----------
        ids : list of int
            The numbers of the structures.
        model : Labeler
            A fitted model with `predict_marginals`.
        structures : list of structures
            The structures of these numbers.
        labels : list of lists, optional
            The labels they have, None where a node has none; for the order "disagreement".
        """
        marginals = model.predict_marginals(structures)
        useful = uncertainties(marginals)
        against = None if labels is None else _disagreements(marginals, labels, model.classes_.tolist())
        with self._lock:
            self._uncertainty[ids] = useful
            if against is not None:
                self._disagreement[ids] = against

    def next(self, exclude: Iterable[int] = (), labelled: Iterable[int] | None = None) -> int | None:
        """Return the number of the structure to label next.

        Parameters
        ----------
        exclude : iterable of int
            Structures that are not asked for: labelled, skipped, or with another person.
        labelled : iterable of int, optional
            Those whose words are known by now. Default: those excluded.

        Returns
        -------
        int or None
            None where all are excluded.
        """
        excluded = np.fromiter(exclude, dtype=np.int64)
        known = excluded if labelled is None else np.fromiter(labelled, dtype=np.int64)
        open_ones = np.ones(len(self._shuffled), dtype=bool)
        open_ones[excluded] = False
        if not open_ones.any():
            return None
        if self.order == "file":
            return int(open_ones.argmax())
        with self._lock:
            value = self._usefulness(known) if self.order == "useful" else self._disagreement.copy()
        value[~open_ones] = -np.inf
        return int(self._shuffled[value[self._shuffled].argmax()])

    def novelty(self, labelled: Iterable[int]) -> np.ndarray:
        """Return how new all structures are, from 0 to 1, when some are labelled.

        Parameters
        ----------
        labelled : iterable of int
            The numbers of these.

        Returns
        -------
        ndarray of shape (n_structures,)
            N.
        """
        seen = self._words[np.fromiter(labelled, dtype=np.int64)].sum(axis=0)
        found: np.ndarray = self._words @ (self._weights * _FADING**seen) / self._sizes
        return found

    def _usefulness(self, labelled: Iterable[int]) -> np.ndarray:
        """U · N; for structures not scored yet N − 1, which is below that of all others."""
        new = self.novelty(labelled)
        return np.where(self._uncertainty < 0, new - 1, self._uncertainty * new)


def _bags(corpus: Corpus) -> tuple[csr_array, np.ndarray]:
    """The distinct observations of structures as a matrix of 0 and 1, and the rarity of each."""
    counts = csr_array(
        (np.ones(corpus.size, dtype=np.float32), corpus.types, corpus.offsets),
        shape=(len(corpus), len(corpus.observations)),
    )
    counts.sum_duplicates()
    counts.data[:] = 1.0
    return counts, np.log(len(corpus) / np.maximum(counts.sum(axis=0), 1.0) + 1e-9).clip(0.0)


def _disagreements(marginals: Iterable[np.ndarray], labels: Sequence[Any], classes: list[Any]) -> np.ndarray:
    """The largest probability, over nodes, that the label given is wrong; −1 where there is none."""
    number: Callable[[Any], int] = {label: k for k, label in enumerate(classes)}.__getitem__
    found = []
    for table, given in zip(marginals, labels, strict=True):
        known = [(t, number(label)) for t, label in enumerate(given) if label in classes]
        unknown = any(label is not None and label not in classes for label in given)
        doubts = [1 - float(table[t, k]) for t, k in known]
        found.append(1.0 if unknown else max(doubts, default=-1.0))
    return np.array(found)
