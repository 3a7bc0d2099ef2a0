"""Which representation a function in a kernel's space gets.

An explicit score reads the weights of a node's monomials for all labels, and a change writes them; a push is
a pass over all N nodes for two labels or so, along memory, and the score is there. So a push is cheaper where
a node has more than 2 N weights and all kernel values fit into memory, as with cubes of pixels or with rich
features of few sentences. The score of another node by expansion takes N kernel values in place of its
weights, each of which costs as much as eight look-ups or so.
"""

from __future__ import annotations

import numpy as np

from fuda.data.encoding import Encoded
from fuda.errors import DataError, short
from fuda.functions.base import LabelFunction, TrainingScores
from fuda.functions.explicit import ExplicitScores
from fuda.functions.monomials import Vectors
from fuda.functions.pushed import CACHE_BYTES, Expansion, PushedScores
from fuda.functions.windows import window_of
from fuda.kernels import Kernel, Sees, check_kernel
from fuda.kernels.points import Numbering, points

Array = np.ndarray
_FEW_WEIGHTS = 1 << 12  # of a node, that cost next to nothing
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
    vectors = _explicit_vectors(kernel, encoded, cache_bytes)
    if vectors is not None:
        pushed = 8 * len(vectors) ** 2 <= cache_bytes  # all kernel values fit
        if not pushed or _weights(vectors, label_count) <= max(2 * len(vectors), _FEW_WEIGHTS):
            return ExplicitScores(vectors, label_count, n_jobs)
    return PushedScores(encoded, kernel, label_count, n_jobs, cache_bytes)


def function_for(
    kernel: Kernel,
    encoded: Encoded,
    beta: Array,
    n_jobs: int | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> LabelFunction:
    """The function Σ_τ β(τ) k(x_τ, ·) over the nodes τ of a corpus, for coefficients β (N, L)."""
    vectors = _explicit_vectors(kernel, encoded, cache_bytes)
    if vectors is not None and _weights(vectors, beta.shape[1]) <= max(8 * len(vectors), 2 * _FEW_WEIGHTS):
        held = ExplicitScores(vectors, beta.shape[1], n_jobs)
        held.add(0, len(beta), beta)
        return held.function()
    numbering = Numbering(encoded.corpus)
    return Expansion(kernel, numbering, window_of(encoded, kernel, numbering), beta)


def _explicit_vectors(kernel: Kernel, encoded: Encoded, cache_bytes: int) -> Vectors | None:
    """The feature vectors of the nodes, where the kernel is a polynomial whose monomials fit into memory; the
    kernel is checked."""
    _check(kernel, encoded)
    if kernel.polynomial is None:
        return None
    vectors = Vectors(kernel, encoded)
    fits = vectors.numerable and vectors.sizes(vectors.binary).sum() <= cache_bytes
    return vectors if fits else None


def _weights(vectors: Vectors, label_count: int) -> float:
    """How many weights the score of a node reads on average, for all labels."""
    return label_count * float(vectors.counts(vectors.binary).mean())


def squared_norms(kernel: Kernel, encoded: Encoded) -> Array:
    """(N,) k(x_t, x_t) of all nodes."""
    norms = window_of(encoded, kernel, Numbering(encoded.corpus)).norms
    with np.errstate(over="ignore", invalid="ignore"):
        return np.broadcast_to(kernel.evaluate(norms, norms, norms), (encoded.corpus.size,))


def _check(kernel: Kernel, encoded: Encoded) -> None:
    """Raise DataError where the kernel is not symmetric, or of a node with itself negative or too large."""
    squares = squared_norms(kernel, encoded)
    if kernel.sees > Sees.FEATURES:
        types = points(encoded, Numbering(encoded.corpus))[: len(encoded.corpus.observations)]
        check_kernel(kernel, types, encoded.corpus.place_of_type)
    bad = ~((squares >= 0) & (squares <= _LARGEST))
    if bad.any():
        node = int(bad.argmax())
        raise DataError(
            f"{encoded.corpus.place(node)}: the kernel {short(kernel)} of the node with itself is "
            f"{squares[node]:g}, not a number from 0 to {_LARGEST:g}; correct the kernel, or scale the "
            "features"
        )
