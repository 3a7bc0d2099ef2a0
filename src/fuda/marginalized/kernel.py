"""The marginalized kernel of two structures.

A *pointed feature* is a substructure (a run or subsequence of a sequence, a connected subtree of
a tree, a directed path of a DAG, or other `parts`) in which one node is the point. With P(y|x) a
prior over the labelings of a structure, K(τ,t,ρ,σ) is the sum over all pairs of occurrences of the
same pointed feature, in a with the point at τ and in b with the point at t, and over all labelings
with y_τ = ρ and y'_t = σ, of

    P(y|a) P(y'|b) Π_{matched nodes (i,j)} c² k_x(x_i, x_j) k_y(y_i, y'_j) · Π_{skipped nodes} g.

The modules `sequence`, `tree`, `dag`, `lines` and `chain_prior` compute it by recursions instead
of enumeration. Numbers are plain doubles if a bound guarantees that they cannot overflow, and
scaled otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import is_number
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.data.graph import Adjacency, Span
from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError, place, short
from fuda.kernels import Kernel, Precomputed, as_kernel, check_kernel
from fuda.kernels.points import Points, points
from fuda.marginalized.numbers import Cells, Numbers, empty_cells
from fuda.marginalized.parts import shape_of_features
from fuda.marginalized.priors import distributions
from fuda.marginalized.recursions import chain_prior, shapes
from fuda.marginalized.recursions.chain_prior import Chain, chain

Array = np.ndarray
MIXING = 1e-150, 1e150  # the smallest and largest c, so that c² is a normal double


def marginalized_kernel(
    a: Any,
    b: Any,
    *,
    kernel: Any,
    label_kernel: Any = None,
    mixing: float = 1.0,
    prior: Any,
    gap: float = 0.0,
    parts: str | None = None,
    features: Any = "word",
    log: bool = False,
) -> Array:
    """Compute the marginalized kernel of two structures.

    Parameters
    ----------
    a, b : structures
        Two structures of the same shape, of Ta and Tb nodes.
    kernel : Kernel or callable
        k_x, the kernel between observations.
    label_kernel : Kernel, array (L, L) or None
        k_y, on the label numbers 0 … L−1; None is the identity.
    mixing : float
        c, above 0: a feature of d nodes has the weight c^d.
    prior : pair
        The priors of a and b: a (T, L) array of label probabilities, one row per node, or for
        sequences a chain (start, [transitions]) of P(y_0) and the T−1 matrices P(y_{t+1}|y_t).
    gap : float
        g, from 0 to 1: features of sequences may skip nodes, at a factor g per skipped node.
    parts : {"subtrees", "paths", "lines"}, with or without "sided-" before it, or None
        The features of trees, and of DAGs the paths, see `fuda.marginalized.parts`; None is
        "subtrees" for trees, and "paths" for DAGs.
    features : str or callable
        The feature set or function that extracts features from observations.
    log : bool
        Whether to return log K instead, −inf where K = 0.

    Returns
    -------
    array (Ta, Tb, L, L)
        K(τ,t,ρ,σ) between node τ of a with label ρ and node t of b with label σ.

    Raises
    ------
    DataError
        If a parameter is out of range, a prior is not a distribution, or K overflows.

    References
    ----------
    .. [1] H. Kashima, Y. Tsuboi. Kernel-based discriminative learning algorithms for labeling
       sequences, trees, and graphs. ICML 2004, equation (10).

    Examples
    --------
    >>> from fuda.kernels import Delta
    >>> uniform = np.full((2, 1), 1.0)
    >>> K = marginalized_kernel(["a", "b"], ["a", "b"], kernel=Delta(), prior=(uniform, uniform))
    >>> K[:, :, 0, 0].tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    encoded = WindowEncoder(features, 0).fit(as_structures([a, b]))
    corpus = encoded.corpus
    check_mixing(mixing)
    check_gap(gap, corpus.shape)
    shape = shape_of_features(corpus.shape, parts)
    mixing, gap = float(mixing), float(gap)
    k_x = as_kernel(kernel)
    priors = _priors(prior, corpus)
    nodes = [p.marginals if isinstance(p, Chain) else p for p in priors]
    k_y = label_gram(label_kernel, nodes[0].shape[1])
    weight = _weight(k_x, mixing, encoded)
    if isinstance(priors[0], Chain) or isinstance(priors[1], Chain):
        kappa = _chain_kappa(_as_chain(priors[0]), _as_chain(priors[1]), weight, k_y, gap, log)
    else:
        kappa = _product_kappa(shape, corpus.graph.adjacency, weight, nodes[0] @ k_y @ nodes[1].T, gap, log)
    if log:
        return _log_values(nodes, k_y, kappa)
    values = _values(nodes, k_y, kappa)
    if not np.isfinite(values).all():
        raise DataError(
            f"mixing={mixing:g} with the kernel {short(k_x)}: the marginalized kernel of structures of "
            f"{len(nodes[0])} and {len(nodes[1])} nodes passes 1e308; take log=True, a smaller mixing, or "
            "kernel.normalized()"
        )
    return values


def label_gram(label_kernel: Any, label_count: int) -> Array:
    """Compute the matrix of a label kernel.

    Parameters
    ----------
    label_kernel : Kernel, array (L, L) or None
        A kernel on label numbers, its matrix, or None for the identity.
    label_count : int
        L.

    Returns
    -------
    array (L, L)
        k_y(ρ,σ).

    Examples
    --------
    >>> label_gram(None, 2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if label_kernel is None:
        return np.eye(label_count)
    if isinstance(label_kernel, np.ndarray | list | tuple):
        label_kernel = Precomputed(label_kernel)
    k_y = as_kernel(label_kernel, "label_kernel")
    if isinstance(k_y, Precomputed) and len(k_y.gram_matrix) != label_count:
        raise DataError(
            f"label_kernel is a matrix of {len(k_y.gram_matrix)} labels, but there are {label_count}; give "
            "one row and one column per label"
        )
    numbers = list(range(label_count))
    labels = Points(np.eye(label_count), np.array(numbers), np.zeros(label_count), numbers)
    check_kernel(k_y, labels, lambda i: f"label {i}", most=label_count)
    return np.array(k_y.gram(labels, labels))  # a copy, since it may be read-only


def check_mixing(mixing: Any, bounds: tuple[float, float] = MIXING, otherwise: str = "") -> None:
    """Raise DataError if c is out of bounds; `otherwise` says what else the parameter may be."""
    if not is_number(mixing, *bounds):
        between = "from {:g} to {:g}".format(*bounds)
        raise DataError(f"mixing={short(mixing)}: give c, a number above 0 ({between}){otherwise}")


def check_gap(gap: Any, shape: str = "sequence") -> None:
    """Raise DataError if g is out of range, or not 0 for structures without gaps."""
    if not is_number(gap, 0, 1):
        raise DataError(f"gap={short(gap)}: give a number from 0 (no gaps) to 1 (gaps cost nothing)")
    if gap and shape != "sequence":
        raise DataError(
            f"gap={gap:g}: only sequences have gaps, but structure 0 is a {shape}; leave gap at 0"
        )


def _weight(k_x: Kernel, mixing: float, encoded: Encoded) -> Array:
    """Return c² k_x, (Ta, Tb)."""
    corpus = encoded.corpus
    types = points(encoded)
    check_kernel(k_x, types, corpus.place_of_type, most=len(types))
    of_a, of_b = corpus.split(corpus.types)
    with np.errstate(over="ignore", under="ignore"):
        weight = mixing**2 * k_x.gram(types, types)[of_a[:, None], of_b]
    if not np.isfinite(weight).all():
        raise DataError(
            f"mixing={mixing:g} with the kernel {short(k_x)}: c² k_x passes 1e308; take a smaller c"
        )
    return weight


def _priors(prior: Any, corpus: Corpus) -> list[Array | Chain]:
    """Check the priors of both structures."""
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise DataError(
            f"prior={short(prior)}: give a pair, the prior of the first structure and of the second"
        )
    priors: list[Array | Chain] = []
    counts = []
    for i, (structure_prior, size) in enumerate(zip(prior, np.diff(corpus.offsets).tolist(), strict=True)):
        if isinstance(structure_prior, tuple):
            priors.append(_checked_chain(structure_prior, size, i, corpus.shape))
        else:
            priors.append(distributions(structure_prior, (size, None), f"{place(i)}: its prior"))
        counts.append(priors[-1][0].shape[-1])
    if counts[0] != counts[1]:
        raise DataError(
            f"the prior of structure 0 has {counts[0]} labels, that of structure 1 has {counts[1]}; give "
            "both one column per label"
        )
    return priors


def _checked_chain(structure_prior: tuple, size: int, structure: int, shape: str) -> Chain:
    """Check a chain prior of one structure."""
    where = f"{place(structure)}: its prior"
    if shape != "sequence":
        raise DataError(f"{where} is a chain, but the structure is a {shape}; give a (nodes, labels) array")
    steps: Any = structure_prior[-1] if structure_prior else None
    if isinstance(steps, np.ndarray):
        steps = steps.tolist()
    if len(structure_prior) != 2 or not isinstance(steps, list | tuple):
        raise DataError(f"{where} is a tuple but not a chain; a chain is (start, [transition matrices])")
    if len(steps) != size - 1:
        raise DataError(f"{where} has {len(steps)} transition matrices; {size} nodes need {size - 1}")
    start = distributions([structure_prior[0]], (1, None), f"{where}, start")[0]
    square = (len(start), len(start))
    matrices = [distributions(m, square, f"{where}, transition {t}") for t, m in enumerate(steps)]
    return chain(start, matrices)


def _as_chain(prior: Array | Chain) -> Chain:
    """Return a product prior as a chain whose labels are independent."""
    if isinstance(prior, Chain):
        return prior
    return chain(prior[0], [np.tile(row, (len(row), 1)) for row in prior[1:]])


def _product_kappa(shape: int, near: Adjacency, weight: Array, mass: Array, gap: float, log: bool) -> Numbers:
    """Return κ in doubles, or in scaled numbers if doubles may overflow or for logarithms."""
    size_a, size_b = weight.shape
    with np.errstate(over="ignore", under="ignore"):
        largest = float(np.abs(weight).max()), float(np.abs(weight * mass).max())
    scaled = log or not shapes.plain_is_safe(shape, size_a, size_b, gap, *largest)
    kappa = empty_cells(scaled, size_a, size_b)
    a, b = Span(near, 0, size_a), Span(near, size_a, size_a + size_b)
    shapes.fill(shape, a, b, weight, mass, gap, kappa, shapes.workspace(scaled, size_a, size_b))
    return _over_labels(kappa)


def _chain_kappa(a: Chain, b: Chain, weight: Array, k_y: Array, gap: float, log: bool) -> Numbers:
    """Return κ under chain priors, in doubles or in scaled numbers."""
    (size_a, size_b), label_count = weight.shape, len(k_y)
    largest = float(np.abs(weight).max())
    product = largest * float(np.abs(k_y).max())
    scaled = log or not shapes.plain_is_safe(shapes.SHAPES["sequence"], size_a, size_b, gap, largest, product)
    if gap == 0.0 and np.array_equal(k_y, np.eye(label_count)):
        kappa = empty_cells(scaled, size_a, size_b, label_count)
        work = empty_cells(scaled, size_b, label_count)
        chain_prior.fill_diagonal(a.steps, b.steps, weight, kappa, work)
        return _over_labels(kappa)  # off the diagonal k_y = 0
    kappa = empty_cells(scaled, size_a, size_b, label_count, label_count)
    work = chain_prior.workspace(scaled, size_b, label_count)
    chain_prior.fill(a.steps, b.steps, weight, k_y, gap, kappa, work)
    return Numbers.of(kappa)


def _over_labels(kappa: Cells) -> Numbers:
    """Return numbers over (τ,t) or (τ,t,ρ) in a shape that broadcasts over (τ,t,ρ,σ)."""
    return Numbers.of(kappa).map(lambda x: x.reshape(*x.shape, *[1] * (4 - x.ndim)))


def _values(nodes: list[Array], k_y: Array, kappa: Numbers) -> Array:
    """Return K = P(ρ|τ) P(σ|t) k_y(ρ,σ) κ, infinite where it overflows."""
    values = _factors(nodes, k_y) * kappa.mantissas
    if kappa.exponents is None:
        return values
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, 512 * np.clip(kappa.exponents, -8, 8))


def _factors(nodes: list[Array], k_y: Array) -> Array:
    """Return P(ρ|τ) P(σ|t) k_y(ρ,σ)."""
    return np.einsum("ir,js,rs->ijrs", *nodes, k_y)


def _log_values(nodes: list[Array], k_y: Array, kappa: Numbers) -> Array:
    """Return log K as a sum of logarithms, since products may underflow."""
    if (_factors(nodes, k_y) * kappa.mantissas < 0.0).any():
        raise DataError("log=True: some values of the marginalized kernel are negative; take log=False")
    with np.errstate(divide="ignore"):
        log_a, log_b, log_y = np.log(nodes[0]), np.log(nodes[1]), np.log(np.abs(k_y))
    return kappa.logarithms() + log_y + log_a[:, None, :, None] + log_b[None, :, None, :]
