"""The marginalized kernel twice more: by enumeration, and by the papers' recursions, exactly.

`marginalized_kernel` goes over all pointed features and all labelings, straight from the
definition. An occurrence of a feature is the list of nodes that it covers, in the feature's own
order, and the number of nodes that it skips. Two occurrences are of one feature when their forms
are equal: the number of nodes, and for trees the place of each node's parent in the list; with
sides also whether nodes stand after their parents.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np

from fuda import Dag, Sequence, Tree


def occurrences(structure, gap, parts=None):
    """All of a structure's (form, nodes, skipped)."""
    if parts is not None and parts.startswith("sided-"):
        return [(_with_sides(f, nodes), nodes, 0) for f, nodes, _ in occurrences(structure, gap, parts[6:])]
    if isinstance(structure, Dag) or parts == "paths":
        return list(_paths(len(structure), structure.edges.tolist()))
    if isinstance(structure, Tree):
        subtrees = _subtrees(structure.heads.tolist())
        return [s for s in subtrees if parts != "lines" or _is_line(s[0])]
    assert isinstance(structure, Sequence)
    size = len(structure)
    if gap == 0.0:
        runs = itertools.combinations(range(size + 1), 2)
        return [(last - first, tuple(range(first, last)), 0) for first, last in runs]
    subsets = [nodes for d in range(1, size + 1) for nodes in itertools.combinations(range(size), d)]
    return [(len(nodes), nodes, nodes[-1] - nodes[0] + 1 - len(nodes)) for nodes in subsets]


def _subtrees(heads):
    for size in range(1, len(heads) + 1):
        for nodes in map(set, itertools.combinations(range(len(heads)), size)):
            tops = [node for node in nodes if heads[node] not in nodes]
            if len(tops) == 1:
                listed = _preorder(tops[0], nodes, heads)
                parents = [listed.index(heads[node]) if node != tops[0] else -1 for node in listed]
                yield tuple(parents), tuple(listed), 0


def _is_line(parents):
    """Whether no node of a subtree has more than one child, but its root, which may have two."""
    return all(parents.count(k) <= (2 if k == 0 else 1) for k in range(len(parents)))


def _with_sides(form, nodes):
    """The form of a subtree or path, with the side of each edge."""
    parents = form if isinstance(form, tuple) else range(-1, form - 1)
    return form, tuple(node > nodes[p] for node, p in zip(nodes, parents, strict=True) if p >= 0)


def _preorder(node, nodes, heads):
    below = [_preorder(child, nodes, heads) for child in sorted(nodes) if heads[child] == node]
    return [node, *itertools.chain.from_iterable(below)]


def _paths(size, edges):
    paths = [(node,) for node in range(size)]
    while paths:
        yield from ((len(path), path, 0) for path in paths)
        paths = [(*path, child) for path in paths for parent, child in edges if path[-1] == parent]


def labeling_probability(prior, labels):
    if not isinstance(prior, tuple):
        return float(np.prod([row[y] for row, y in zip(prior, labels, strict=True)]))
    start, transitions = prior
    steps = zip(transitions, itertools.pairwise(labels), strict=True)
    return float(start[labels[0]] * np.prod([matrix[y][z] for matrix, (y, z) in steps]))


def _label_count(prior):
    return len(prior[0])


def _labels_of(nodes, size, prior):
    """The probability of each tuple of labels of some nodes, summed over all labelings."""
    sums = defaultdict(float)
    for labels in itertools.product(range(_label_count(prior)), repeat=size):
        sums[tuple(labels[node] for node in nodes)] += labeling_probability(prior, labels)
    return {labels: p for labels, p in sums.items() if p > 0.0}


def marginalized_kernel(a, b, k_x, k_y, mixing, priors, gap=0.0, parts=None):
    """(Ta, Tb, L, L) for observations that are row numbers of the matrix k_x."""
    count = _label_count(priors[0])
    result = np.zeros((len(a), len(b), count, count))
    features = [
        [
            (form, nodes, skipped, _labels_of(nodes, len(x), prior))
            for form, nodes, skipped in occurrences(x, gap, parts)
        ]
        for x, prior in zip((a, b), priors, strict=True)
    ]
    for (form, nodes, skipped, labels), (form_b, nodes_b, skipped_b, labels_b) in itertools.product(
        *features
    ):
        if form != form_b:
            continue
        seen = zip(nodes, nodes_b, strict=True)
        alike = np.prod([mixing**2 * k_x[a.observations[i]][b.observations[j]] for i, j in seen])
        for (y, p), (z, q) in itertools.product(labels.items(), labels_b.items()):
            labels_alike = np.prod([k_y[r][s] for r, s in zip(y, z, strict=True)])
            value = p * q * alike * labels_alike * gap ** (skipped + skipped_b)
            for point in range(len(nodes)):
                result[nodes[point], nodes_b[point], y[point], z[point]] += value
    return result


def exact_kappa(a, b, k, gap=0):
    """u · d of two structures in integers of any size, k (Ta, Tb) being c² k in integers.

    The recursions are those of the papers, with their subtractions.
    """
    if isinstance(a, Tree):
        return _exact_trees(a, b, k)
    if isinstance(a, Dag):
        up = _exact_paths(a.order.tolist(), _near(a, 1), _near(b, 1), k)
        down = _exact_paths(a.order.tolist()[::-1], _near(a, 0), _near(b, 0), k)
        return up * down
    return _exact_gaps(k, gap) * _exact_gaps(k[::-1, ::-1], gap)[::-1, ::-1]


def _exact_gaps(k, gap):
    """u(τ,t) = 1 + R(τ−1,t−1), R(τ,t) = K_U(τ,t) + gR(τ−1,t) + gR(τ,t−1) − g²R(τ−1,t−1)."""
    u = np.full(k.shape, 1, dtype=object)
    rests = np.full((k.shape[0] + 1, k.shape[1] + 1), 0, dtype=object)
    for i, j in np.ndindex(k.shape):
        u[i, j] += rests[i, j]
        rests[i + 1, j + 1] = k[i, j] * u[i, j] + gap * (
            rests[i, j + 1] + rests[i + 1, j] - gap * rests[i, j]
        )
    return u


def _near(structure, end):
    """The neighbours of each node over edges of which it is the given end."""
    near = defaultdict(list)
    for edge in structure.edges.tolist():
        near[edge[end]].append(edge[1 - end])
    return near


def _exact_paths(order, near_a, near_b, k):
    u = np.full(k.shape, 1, dtype=object)
    for i in order:
        for j in range(k.shape[1]):
            u[i, j] += sum(k[p, q] * u[p, q] for p in near_a[i] for q in near_b[j])
    return u


def _exact_trees(a, b, k):
    children_a, children_b = _near(a, 0), _near(b, 0)
    down = np.full(k.shape, 1, dtype=object)
    up = np.full(k.shape, 1, dtype=object)

    def matchings(left, right):
        """S_F over two lists of siblings."""
        table = np.full((len(left) + 1, len(right) + 1), 1, dtype=object)
        for v, w in np.ndindex(len(left), len(right)):
            product = k[left[v], right[w]] * down[left[v], right[w]]
            table[v + 1, w + 1] = product * table[v, w] + table[v, w + 1] + table[v + 1, w] - table[v, w]
        return table[-1, -1]

    pairs = [(i, j) for i in a.order.tolist() for j in b.order.tolist()]
    for i, j in reversed(pairs):
        down[i, j] = matchings(children_a[i], children_b[j])
    for i, j in pairs:
        left, right = children_a[i], children_b[j]
        for v, w in np.ndindex(len(left), len(right)):
            beside = matchings(left[:v], right[:w]) * matchings(left[v + 1 :], right[w + 1 :])
            up[left[v], right[w]] = 1 + k[i, j] * up[i, j] * beside
    return up * down
