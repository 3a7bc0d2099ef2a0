"""Messages: what the neighbours of a node add to the logarithms of its marginal probabilities.

On a tree, with the node t as its root and N(u) the neighbours of a node u,

    log P(y_t = b) = s_t(b) + Σ_{u ∈ N(t)} m_{u→t}(b) − log Z,
    m_{u→v}(b) = log Σ_a exp( s_u(a) + Σ_{w ∈ N(u) ∖ v} m_{w→u}(a) + A(a, b) ),

where A(a, b) scores the labels a of u and b of v, in the direction of their edge. The sum in the
exponent without A is the log-weight of the label a of u if t did not exist.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Message(NamedTuple):
    """The message of a neighbour.

    Attributes
    ----------
    values : (L,) array
        m(b), what it adds to log P of each label of t.
    log_weights : (L,) array
        The log-weights of its own labels if t did not exist.
    """

    values: Array
    log_weights: Array


def messages_to(node: int, heads: Array, scores: Array, transitions: Array) -> dict[int, Message]:
    """Return the message of each neighbour of a node.

    Parameters
    ----------
    node : int
        t.
    heads : (T,) array of int
        The parent of each node of one chain or tree, −1 for roots.
    scores : (T, L) array
        s; −inf forbids a label.
    transitions : (L, L) or (T, L, L) array
        A of all edges, or of the edge to each node from its parent; parents by rows.

    Returns
    -------
    dict of int to Message
        By neighbour.

    Examples
    --------
    >>> transitions = np.log([[0.75, 0.25], [0.5, 0.5]])
    >>> messages = messages_to(1, np.array([-1, 0]), np.zeros((2, 2)), transitions)
    >>> np.exp(messages[0].values).tolist()
    [1.25, 0.75]
    """
    neighbours: list[list[int]] = [[] for _ in heads]
    for child, parent in enumerate(heads.tolist()):
        if parent >= 0:
            neighbours[child].append(parent)
            neighbours[parent].append(child)
    towards, order = {node: -1}, [node]
    for u in order:
        for w in neighbours[u]:
            if w not in towards:
                towards[w] = u
                order.append(w)
    log_weights = scores[order].copy()
    position = {u: i for i, u in enumerate(order)}
    messages = {}
    for u in reversed(order[1:]):
        v, weights_of_u = towards[u], log_weights[position[u]]
        child = u if heads[u] == v else v
        matrix = transitions[child] if transitions.ndim == 3 else transitions
        values = _log_sums((matrix if child == u else matrix.T) + weights_of_u)
        if v == node:
            messages[u] = Message(values, weights_of_u)
        log_weights[position[v]] += values
    return messages


def _log_sums(table: Array) -> Array:
    """log Σ exp of each row; −inf where all of a row is."""
    top = table.max(axis=1)
    at = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return at + np.log(np.exp(table - at[:, None]).sum(axis=1))
