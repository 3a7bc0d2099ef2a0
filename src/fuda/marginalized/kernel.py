"""The marginalized kernel of two structures.

A *pointed feature* is a substructure together with the one of its nodes that is the point: a run or
subsequence of a sequence, a connected subtree of a tree, a directed path of a DAG. With P(y|x) a prior over
the labelings of a structure, K(τ,t,ρ,σ) sums over all pairs of occurrences of one pointed feature, in a with
the point at τ and in b with the point at t, and over all labelings with y_τ = ρ and y'_t = σ,

    P(y|a) P(y'|b) Π_{matched nodes (i,j)} c² k_x(x_i, x_j) k_y(y_i, y'_j) · Π_{skipped nodes} g.

The modules `sequence`, `tree`, `dag` and `chain_prior` have the recursions that do this without enumeration.
Numbers are plain doubles where a bound says that these cannot overflow, else scaled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import is_number
from fuda.data.corpus import Corpus
from fuda.data.encoding import Encoded
from fuda.data.graph import Span
from fuda.data.structures import as_structures
from fuda.data.window_encoding import WindowEncoder
from fuda.errors import DataError, described, place, short
from fuda.kernels import Kernel, Precomputed, as_kernel, check_kernel
from fuda.kernels.points import Points, points
from fuda.marginalized.numbers import Cells, Numbers, empty_cells
from fuda.marginalized.recursions import chain_prior, pair
from fuda.marginalized.recursions.chain_prior import Chain, chain

Array = np.ndarray
_TOLERANCE = 1e-6  # of a sum of probabilities


def marginalized_kernel(
    a: Any,
    b: Any,
    *,
    kernel: Any,
    label_kernel: Any = None,
    mixing: float = 1.0,
    prior: Any,
    gap: float = 0.0,
    features: Any = "word",
    log: bool = False,
) -> Array:
    """(Ta, Tb, L, L) the kernel K(τ,t,ρ,σ) between node τ of a with label ρ and node t of b with label σ.

    ``kernel`` is k_x, on observations; ``features`` is the set or function that gives strings their features.
    ``label_kernel`` is k_y: None for the identity, an (L, L) matrix, or a kernel on the numbers 0..L−1.
    ``mixing`` is c, above 0: features of d nodes weigh c^d. ``gap`` g, from 0 to 1, lets features of
    sequences skip nodes, each at the price g. ``prior`` is a pair, for a and for b: a (T, L) array of label
    probabilities, one row a node, or for sequences a chain, the tuple (start, [transitions]) of P(y_0) and
    T−1 matrices P(y_{t+1}|y_t). With ``log`` the result is log K, −inf where K = 0.

    >>> from fuda.kernels import Delta
    >>> uniform = np.full((2, 1), 1.0)
    >>> K = marginalized_kernel(["a", "b"], ["a", "b"], kernel=Delta(), prior=(uniform, uniform))
    >>> K[:, :, 0, 0].tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    encoded = WindowEncoder(features, 0).fit(as_structures([a, b]))
    corpus = encoded.corpus
    _check_numbers(mixing, gap, corpus.shape)
    mixing, gap = float(mixing), float(gap)
    k_x = as_kernel(kernel)
    priors = _priors(prior, corpus)
    nodes = [p.marginals if isinstance(p, Chain) else p for p in priors]
    k_y = label_gram(label_kernel, nodes[0].shape[1])
    weight = _weight(k_x, mixing, encoded)
    if isinstance(priors[0], Chain) or isinstance(priors[1], Chain):
        kappa = _chain_kappa(_as_chain(priors[0]), _as_chain(priors[1]), weight, k_y, gap, log)
    else:
        kappa = _product_kappa(corpus, weight, nodes[0] @ k_y @ nodes[1].T, gap, log)
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
    """(L, L) the label kernel's values: None is the identity, else a matrix or a kernel on label numbers.

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
            "one row and one column a label"
        )
    numbers = list(range(label_count))
    labels = Points(np.eye(label_count), np.array(numbers), np.zeros(label_count), numbers)
    check_kernel(k_y, labels, lambda i: f"label {i}", most=label_count)
    return np.array(k_y.gram(labels, labels))  # a copy, since a constant kernel's may be read-only


def _check_numbers(mixing: Any, gap: Any, shape: str) -> None:
    if not is_number(mixing, 1e-150, 1e150):
        raise DataError(f"mixing={short(mixing)}: give c, a number above 0 (from 1e-150 to 1e150)")
    if not is_number(gap, 0, 1):
        raise DataError(f"gap={short(gap)}: give a number from 0 (no gaps) to 1 (gaps at no price)")
    if gap > 0.0 and shape != "sequence":
        raise DataError(f"gap={gap:g}: only sequences have gaps, but these are {shape}s; leave gap at 0")


def _weight(k_x: Kernel, mixing: float, encoded: Encoded) -> Array:
    """(Ta, Tb) c² k_x."""
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
    """The priors of both structures, checked."""
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise DataError(
            f"prior={short(prior)}: give a pair, the prior of the first structure and of the second"
        )
    found: list[Array | Chain] = []
    counts = []
    for i, (given, size) in enumerate(zip(prior, np.diff(corpus.offsets).tolist(), strict=True)):
        if isinstance(given, tuple):
            found.append(_given_chain(given, size, i, corpus.shape))
        else:
            found.append(_distributions(given, (size, None), f"{place(i)}: its prior"))
        counts.append(found[-1][0].shape[-1])
    if counts[0] != counts[1]:
        raise DataError(
            f"the prior of structure 0 has {counts[0]} labels, that of structure 1 has {counts[1]}; give "
            "both one column a label"
        )
    return found


def _given_chain(given: tuple, size: int, structure: int, shape: str) -> Chain:
    where = f"{place(structure)}: its prior"
    if shape != "sequence":
        raise DataError(f"{where} is a chain, but the structure is a {shape}; give a (nodes, labels) array")
    steps: Any = given[-1] if given else None
    if isinstance(steps, np.ndarray):
        steps = steps.tolist()
    if len(given) != 2 or not isinstance(steps, list | tuple):
        raise DataError(f"{where} is a tuple but no chain; a chain is (start, [transition matrices])")
    if len(steps) != size - 1:
        raise DataError(f"{where} has {len(steps)} transition matrices; {size} nodes need {size - 1}")
    start = _distributions([given[0]], (1, None), f"{where}, start")[0]
    square = (len(start), len(start))
    matrices = [_distributions(m, square, f"{where}, transition {t}") for t, m in enumerate(steps)]
    return chain(start, matrices)


def _distributions(values: Any, shape: tuple[int, int | None], where: str) -> Array:
    """Rows of probabilities as an array of the shape, any number of columns where that is None."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{where} is {described(values)}; give an array of probabilities") from None
    rows, columns = array.shape if array.ndim == 2 else (0, 0)
    if rows != shape[0] or columns == 0 or shape[1] not in (None, columns):
        expected = f"({shape[0]}, {shape[1] or 'labels'})"
        raise DataError(f"{where} has the shape {array.shape}; give {expected}")
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0.0)))
    if len(bad):
        row, label = bad[0].tolist()
        raise DataError(
            f"{where} has {array[row, label]} for label {label} in row {row}; probabilities are finite and "
            "not negative"
        )
    sums = array.sum(axis=1)
    off = np.abs(sums - 1.0) > _TOLERANCE
    if off.any():
        row = int(off.argmax())
        raise DataError(
            f"{where} sums to {sums[row]:.6g} in row {row}; divide each row by its sum, so that it is 1"
        )
    return array


def _as_chain(prior: Array | Chain) -> Chain:
    """A product prior is a chain whose next label does not depend on the last."""
    if isinstance(prior, Chain):
        return prior
    return chain(prior[0], [np.tile(row, (len(row), 1)) for row in prior[1:]])


def _product_kappa(corpus: Corpus, weight: Array, mass: Array, gap: float, log: bool) -> Numbers:
    """κ in doubles, or in scaled numbers where doubles may overflow or logarithms are wanted."""
    shape = pair.SHAPES[corpus.shape]
    edges = corpus.graph.links
    size_a, size_b = weight.shape
    with np.errstate(over="ignore", under="ignore"):
        largest = float(np.abs(weight).max()), float(np.abs(weight * mass).max())
    scaled = log or not pair.plain_is_safe(shape, size_a, size_b, gap, *largest)
    kappa = empty_cells(scaled, size_a, size_b)
    a, b = Span(edges, 0, size_a), Span(edges, size_a, size_a + size_b)
    pair.fill(shape, a, b, weight, mass, gap, kappa, pair.workspace(scaled, size_a, size_b))
    return _over_labels(kappa)


def _chain_kappa(a: Chain, b: Chain, weight: Array, k_y: Array, gap: float, log: bool) -> Numbers:
    (size_a, size_b), label_count = weight.shape, len(k_y)
    largest = float(np.abs(weight).max())
    product = largest * float(np.abs(k_y).max())
    scaled = log or not pair.plain_is_safe(pair.SHAPES["sequence"], size_a, size_b, gap, largest, product)
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
    """Numbers over (τ,t) or (τ,t,ρ) as an array that broadcasts over (τ,t,ρ,σ)."""
    return Numbers.of(kappa).map(lambda x: x.reshape(*x.shape, *[1] * (4 - x.ndim)))


def _values(nodes: list[Array], k_y: Array, kappa: Numbers) -> Array:
    """K = P(ρ|τ) P(σ|t) k_y(ρ,σ) κ, inf where that passes all doubles."""
    values = _factors(nodes, k_y) * kappa.mantissas
    if kappa.exponents is None:
        return values
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, 512 * np.clip(kappa.exponents, -8, 8))


def _factors(nodes: list[Array], k_y: Array) -> Array:
    return np.einsum("ir,js,rs->ijrs", *nodes, k_y)


def _log_values(nodes: list[Array], k_y: Array, kappa: Numbers) -> Array:
    """log K, whose parts may be too small for their product to be a double."""
    if (_factors(nodes, k_y) * kappa.mantissas < 0.0).any():
        raise DataError("log=True: some values of the marginalized kernel are negative; take log=False")
    with np.errstate(divide="ignore"):
        log_a, log_b, log_y = np.log(nodes[0]), np.log(nodes[1]), np.log(np.abs(k_y))
    return kappa.logarithms() + log_y + log_a[:, None, :, None] + log_b[None, :, None, :]
