"""The choice of a representation for a function in a kernel's space.

An explicit score reads the weights of a node's monomials for all labels, and a change writes
them; a push is a sequential pass over all N nodes for about two labels, after which the scores
are known. So a push is cheaper where a node has more than 2 N weights and all kernel values fit
into memory, as with cubes of pixels or rich features of few sentences. To score another node, an
expansion needs N kernel values instead of the weights, each of which costs as much as about
eight look-ups.
"""

from __future__ import annotations

import numpy as np

from fuda.data.encoding import Encoded
from fuda.errors import DataError, short
from fuda.functions.base import LabelFunction, TrainingScores
from fuda.functions.explicit import ExplicitScores
from fuda.functions.monomials import MonomialVectors
from fuda.functions.pushed import CACHE_BYTES, Expansion, PushedScores
from fuda.functions.windows import window_of
from fuda.kernels import Kernel, Sees, check_kernel
from fuda.kernels.checked import LARGEST_VALUE
from fuda.kernels.points import Numbering, points

Array = np.ndarray
_FEW_WEIGHTS = 1 << 12  # reading at most so many weights per node costs next to nothing


def scores_for(
    kernel: Kernel,
    encoded: Encoded,
    label_count: int,
    n_jobs: int | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> TrainingScores:
    """Choose a representation for scores to be learned on a training corpus, all 0 at first.

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
        The largest number of bytes for the monomials of the nodes, or for cached kernel values.

    Returns
    -------
    TrainingScores
        Explicit weights where the kernel has few enough monomials, pushed scores otherwise.

    Raises
    ------
    DataError
        Where the kernel is not a kernel on these data.
    """
    vectors = _explicit_vectors(kernel, encoded, cache_bytes)
    if vectors is not None:
        pushed = 8 * len(vectors) ** 2 <= cache_bytes  # all kernel values fit
        if not pushed or _weights(vectors, label_count) <= max(2 * len(vectors), _FEW_WEIGHTS):
            return ExplicitScores(vectors, label_count, n_jobs)
    return PushedScores(encoded, kernel, label_count, n_jobs, cache_bytes)


def function_for(
    kernel: Kernel, encoded: Encoded, beta: Array, n_jobs: int | None = None, cache_bytes: int = CACHE_BYTES
) -> LabelFunction:
    """Choose a representation for the function Σ_τ β(τ) k(x_τ, ·).

    Parameters
    ----------
    kernel : Kernel
        The kernel between nodes.
    encoded : Encoded
        The corpus of the nodes τ.
    beta : (N, L) array
        Their coefficients β.
    n_jobs : int, optional
        Threads; None means all cores.
    cache_bytes : int
        The memory that explicit monomials may take.

    Returns
    -------
    LabelFunction
        Explicit weights, or an expansion over nodes.
    """
    vectors = _explicit_vectors(kernel, encoded, cache_bytes)
    if vectors is not None and _weights(vectors, beta.shape[1]) <= max(8 * len(vectors), 2 * _FEW_WEIGHTS):
        scores = ExplicitScores(vectors, beta.shape[1], n_jobs)
        scores.add(0, len(beta), beta)
        return scores.function()
    numbering = Numbering(encoded.corpus)
    return Expansion(kernel, numbering, window_of(encoded, kernel, numbering), beta)


def _explicit_vectors(kernel: Kernel, encoded: Encoded, cache_bytes: int) -> MonomialVectors | None:
    """Check the kernel; return the vectors of a polynomial whose monomials fit into memory."""
    _check(kernel, encoded)
    if kernel.polynomial is None:
        return None
    vectors = MonomialVectors(kernel, encoded)
    fits = vectors.numerable and vectors.sizes(vectors.binary).sum() <= cache_bytes
    return vectors if fits else None


def _weights(vectors: MonomialVectors, label_count: int) -> float:
    """The mean number of weights, of all labels, that the score of a node reads."""
    return label_count * float(vectors.counts(vectors.binary).mean())


def squared_norms(kernel: Kernel, encoded: Encoded) -> Array:
    """(N,) the kernel k(x_t, x_t) of each node with itself."""
    norms = window_of(encoded, kernel, Numbering(encoded.corpus)).norms
    with np.errstate(over="ignore", invalid="ignore"):
        return np.broadcast_to(kernel.evaluate(norms, norms, norms), (encoded.corpus.size,))


def _check(kernel: Kernel, encoded: Encoded) -> None:
    """Raise DataError if the kernel is not symmetric, or k(x_t, x_t) is negative or too large."""
    squares = squared_norms(kernel, encoded)
    if kernel.sees > Sees.FEATURES:
        types = points(encoded, Numbering(encoded.corpus))[: len(encoded.corpus.observations)]
        check_kernel(kernel, types, encoded.corpus.place_of_type)
    bad = ~((squares >= 0) & (squares <= LARGEST_VALUE))
    if bad.any():
        node = int(bad.argmax())
        raise DataError(
            f"{encoded.corpus.place(node)}: the kernel {short(kernel)} of the node with itself is "
            f"{squares[node]:g}, not a number from 0 to {LARGEST_VALUE:g}; correct the kernel, or scale the "
            "features"
        )
