"""Which structure to label next.

The uncertainty about a *part* f of structures, an observation such as a word or a pair of
neighbours, is the sum of the entropies of its nodes t over all structures, by the marginals p_t of
the model:

    E_f = Σ_{t of f} H(p_t),    H(p) = −Σ_σ p(σ) log p(σ).

With n_f the number of labelled structures that contain f, the *use* of labelling a structure x is

    Σ_f √E_f γ^{n_f} / |x|^¼    over its distinct parts f.

So an uncertain word or pair has a weight that grows with its frequency in the pool and decreases
with the number of times it was labelled: ten near-copies of a sentence do not follow one another,
since labelling the first one reduces the use of the others. A known word is still useful in a new
context. Long structures contain more information but take longer to label; the exponent is a
compromise. Before there is a model, all nodes have the same entropy, and typical structures come
first.

All uses are products of sparse matrices with vectors, some milliseconds for 100,000 sentences, and
the entropies of a part of the pool can be replaced at any time.
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
_FADING = 0.3  # γ
_LENGTH = 0.25  # the exponent of |x|


def entropies(marginals: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Return the entropies of nodes, in nats.

    Parameters
    ----------
    marginals : iterable of arrays (n_nodes, n_labels)
        Probabilities of labels, as by `predict_marginals`; one array per structure.

    Returns
    -------
    list of arrays (n_nodes,)
        The entropies.

    Examples
    --------
    >>> entropies([np.array([[0.5, 0.5], [1.0, 0.0]])])[0].round(4).tolist()
    [0.6931, 0.0]
    """
    of_structures = []
    for table in marginals:
        logs = np.log(table, where=table > 0, out=np.zeros_like(table))
        of_structures.append(np.abs((table * logs).sum(axis=1)))
    return of_structures


class Chooser:
    """Chooses which structure to label next, while a model learns from those labelled so far.

    `scored` may be called from another thread than `next`, for any part of the pool, each time
    there is a better model.

    Parameters
    ----------
    structures : list of structures
        All structures; a structure's number is its place in this list.
    order : {"useful", "file", "disagreement"}, default="useful"
        By use, in the order of the list, or by the largest probability of the model that a present
        label is wrong. It may be changed at any time.
    random_state : int, default=0
        The seed of the order of structures with the same use.

    Examples
    --------
    >>> X = [["Ana", "sings"], ["Ana", "sings"], ["Lima", "is", "big"]]
    >>> chooser = Chooser(X)
    >>> chooser.next(exclude=[0]), chooser.next(exclude=[0, 2])
    (2, 1)
    """

    def __init__(self, structures: Sequence[Any], order: str = "useful", random_state: int = 0) -> None:
        self.order = order
        corpus = Corpus(as_structures(structures))
        self._offsets, self._lengths = corpus.offsets, np.diff(corpus.offsets) ** _LENGTH
        above, below = _edges(corpus)
        pairs = corpus.types[above].astype(np.int64) * len(corpus.observations) + corpus.types[below]
        self._parts = [
            _Parts(corpus.types, [np.arange(corpus.size, dtype=np.int32)], corpus.offsets),
            _Parts(np.unique(pairs, return_inverse=True)[1], [above, below], corpus.offsets),
        ]
        self._entropies: np.ndarray | None = None  # of nodes; 0 where they have not been scored
        self._disagreement = np.full(len(structures), -1.0)
        self._shuffled = np.random.RandomState(random_state).permutation(len(structures))
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
        """Score a part of the pool by a model; earlier scores of these structures are replaced.

        Parameters
        ----------
        ids : list of int
            The numbers of the structures.
        model : Labeler
            A fitted model with `predict_marginals`.
        structures : list of structures
            The structures of these numbers.
        labels : list of lists, optional
            Their present labels, None for nodes without one; for the order "disagreement".
        """
        marginals = model.predict_marginals(structures)
        uncertain = np.concatenate([np.empty(0), *entropies(marginals)])
        against = None if labels is None else _disagreements(marginals, labels, model.classes_.tolist())
        with self._lock:
            if self._entropies is None:
                self._entropies = np.zeros(self._offsets[-1], dtype=np.float32)
                for parts in self._parts:
                    parts.unknown[:] = 0.0
            places = [_ranges(parts.bounds, ids) for parts in self._parts]
            before = [parts.sums(at, self._entropies) for parts, at in zip(self._parts, places, strict=True)]
            self._entropies[_ranges(self._offsets, ids)] = uncertain
            for parts, at, old in zip(self._parts, places, before, strict=True):
                change = parts.sums(at, self._entropies) - old
                parts.unknown += np.bincount(parts.ids[at], change, len(parts.unknown))
            if against is not None:
                self._disagreement[ids] = against

    def next(self, exclude: Iterable[int] = (), labelled: Iterable[int] | None = None) -> int | None:
        """Return the number of the structure to label next.

        Parameters
        ----------
        exclude : iterable of int
            Structures not to return: labelled, skipped, or assigned to another person.
        labelled : iterable of int, optional
            Those whose words are known by now. Default: those excluded.

        Returns
        -------
        int or None
            None where all are excluded.
        """
        excluded = np.fromiter(exclude, dtype=np.int64)
        known = excluded if labelled is None else np.fromiter(labelled, dtype=np.int64)
        is_open = np.ones(len(self._shuffled), dtype=bool)
        is_open[excluded] = False
        if not is_open.any():
            return None
        if self.order == "file":
            return int(is_open.argmax())
        with self._lock:
            value = self.uses(known) if self.order == "useful" else self._disagreement.copy()
        value[~is_open] = -np.inf
        return int(self._shuffled[value[self._shuffled].argmax()])

    def uses(self, labelled: Iterable[int] = ()) -> np.ndarray:
        """Return the use of labelling each structure, when some are labelled.

        Parameters
        ----------
        labelled : iterable of int
            The numbers of these.

        Returns
        -------
        ndarray of shape (n_structures,)
            The uses.
        """
        rows = np.fromiter(labelled, dtype=np.int64)
        uses: np.ndarray = sum(parts.uses(rows) for parts in self._parts) / self._lengths
        return uses


class _Parts:
    """The parts of one kind that structures have: observations, or pairs of neighbours.

    Parameters
    ----------
    ids : array (P,)
        The part at each place, by number.
    nodes : list of arrays (P,)
        The nodes of each place; those of the last array in order.
    offsets : array (n + 1,)
        The bounds of the structures.
    """

    def __init__(self, ids: np.ndarray, nodes: list[np.ndarray], offsets: np.ndarray) -> None:
        self.ids, self.nodes = ids.astype(np.int32), nodes
        self.bounds = np.searchsorted(nodes[-1], offsets).astype(np.int32)
        self.unknown = len(nodes) * np.bincount(ids).astype(np.float64)  # E; H = 1 of all nodes
        ones, shape = np.ones(len(ids), dtype=np.float32), (len(offsets) - 1, len(self.unknown))
        self._bags = csr_array((ones, self.ids, self.bounds), shape=shape, copy=True)
        self._bags.sum_duplicates()
        self._bags.data[:] = 1.0

    def sums(self, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the sums of values of nodes over some places."""
        sums: np.ndarray = sum(values[nodes[places]] for nodes in self.nodes)
        return sums

    def uses(self, labelled: np.ndarray) -> np.ndarray:
        """Return the sum over the distinct parts of each structure, when some are labelled."""
        seen: np.ndarray = self._bags[labelled].sum(axis=0)
        weights = np.sqrt(self.unknown.clip(0.0), dtype=np.float32)
        known = np.flatnonzero(seen)
        weights[known] *= _FADING ** seen[known]
        uses: np.ndarray = self._bags @ weights
        return uses


def _edges(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Parents and children, by child; for sequences without their graph, to save memory."""
    if not corpus.is_chain:
        above, below = corpus.graph.edges.T.astype(np.int32)
        return above, below
    is_below = np.ones(corpus.size, dtype=bool)
    is_below[corpus.offsets[:-1][np.diff(corpus.offsets) > 0]] = False
    below = np.flatnonzero(is_below).astype(np.int32)
    return below - 1, below


def _ranges(bounds: np.ndarray, ids: Sequence[int]) -> np.ndarray:
    """The numbers of the nodes or places of some structures, one structure after another."""
    ranges = [np.arange(bounds[i], bounds[i + 1]) for i in ids]
    return np.concatenate([np.empty(0, dtype=np.int64), *ranges])


def _disagreements(marginals: Iterable[np.ndarray], labels: Sequence[Any], classes: list[Any]) -> np.ndarray:
    """The largest probability, over nodes, that the present label is wrong; −1 without labels."""
    number: Callable[[Any], int] = {label: k for k, label in enumerate(classes)}.__getitem__
    of_structures = []
    for table, present in zip(marginals, labels, strict=True):
        known = [(t, number(label)) for t, label in enumerate(present) if label in classes]
        unknown = any(label is not None and label not in classes for label in present)
        doubts = [1 - float(table[t, k]) for t, k in known]
        of_structures.append(1.0 if unknown else max(doubts, default=-1.0))
    return np.array(of_structures)
