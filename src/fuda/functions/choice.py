"""Which representation a function in a kernel's space gets."""

from __future__ import annotations

import numpy as np

from fuda.data.encoding import Encoded
from fuda.errors import DataError, short
from fuda.functions.base import LabelFunction, TrainingScores
from fuda.functions.explicit import ExplicitScores
from fuda.functions.monomials import Vectors
from fuda.functions.pushed import CACHE_BYTES, Expansion, PushedScores
from fuda.functions.windows import only_features, window_of
from fuda.kernels.algebra import Kernel, Linear, Normalized, Polynomial, check_kernel
from fuda.kernels.points import Numbering, points

Array = np.ndarray
_FEW_WEIGHTS = 1 << 13  # of a node, that cost next to nothing
_LARGEST = 1e100  # value of a kernel; squares and sums stay finite


def scores_for(
    kernel: Kernel,
    encoded: Encoded,
    label_count: int,
    n_jobs: int | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> TrainingScores:
    """Scores to be learned on a training corpus, all 0 at first.

    Parameters
    ----------
    kernel : Kernel
        The kernel between nodes.
    encoded : Encoded
        The training corpus.
    label_count : int
        The number of labels.
    n_jobs : int, optional
        Threads; None means all cores.
    cache_bytes : int
        How many bytes the monomials of the nodes, or cached kernel values, take at most.

    Returns
    -------
    TrainingScores
        By explicit features where the kernel has few enough of them, else by pushing.

    Raises
    ------
    DataError
        Where the kernel is not a kernel on these data.
    """
    vectors = _explicit_vectors(kernel, encoded, label_count, cache_bytes)
    if vectors is not None:
        return ExplicitScores(vectors, label_count, n_jobs)
    return PushedScores(encoded, kernel, label_count, n_jobs, cache_bytes)


def function_for(kernel: Kernel, encoded: Encoded, beta: Array, n_jobs: int | None = None) -> LabelFunction:
    """The function Σ_τ β(τ) k(x_τ, ·) over the nodes τ of a corpus, for coefficients β (N, L)."""
    vectors = _explicit_vectors(kernel, encoded, beta.shape[1], CACHE_BYTES)
    if vectors is None:
        numbering = Numbering(encoded.corpus)
        return Expansion(kernel, numbering, window_of(encoded, kernel, numbering), beta)
    held = ExplicitScores(vectors, beta.shape[1], n_jobs)
    held.add(0, len(beta), beta)
    return held.function()


def _explicit_vectors(
    kernel: Kernel, encoded: Encoded, label_count: int, cache_bytes: int
) -> Vectors | None:
    """The feature vectors of the nodes, where the kernel's features should be explicit; the kernel is checked.

    An explicit score reads the weights of a node's monomials for all labels; a push is a pass over all nodes
    for two labels or so. Where all kernel values fit into memory, the smaller of the two decides.
    """
    _check(kernel, encoded)
    if not isinstance(kernel.kernel if isinstance(kernel, Normalized) else kernel, Linear | Polynomial):
        return None
    vectors = Vectors(kernel, encoded)
    nodes = len(vectors)
    weights = label_count * (vectors.counts(vectors.binary).mean() if nodes else 0.0)
    push_is_faster = 8 * nodes**2 <= cache_bytes and weights > max(8 * nodes, _FEW_WEIGHTS)
    fits = vectors.numerable and vectors.sizes(vectors.binary).sum() <= cache_bytes
    return vectors if fits and not push_is_faster else None


def _check(kernel: Kernel, encoded: Encoded) -> None:
    """Raise DataError where the kernel is not symmetric, or of a node with itself negative or too large."""
    numbering = Numbering(encoded.corpus)
    norms = window_of(encoded, kernel, numbering).norms
    if not only_features(kernel):
        types = points(encoded, numbering)[: len(encoded.corpus.observations)]
        check_kernel(kernel, types, encoded.corpus.place_of_type)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.broadcast_to(kernel.evaluate(norms, norms, norms), (encoded.corpus.size,))
    bad = ~((squares >= 0) & (squares <= _LARGEST))
    if bad.any():
        node = int(bad.argmax())
        raise DataError(
            f"{encoded.corpus.place(node)}: the kernel {short(kernel)} of the node with itself is "
            f"{squares[node]:g}, not a number from 0 to {_LARGEST:g}; correct the kernel, or scale the features"
        )
