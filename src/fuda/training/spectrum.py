"""The directions in which a loss curves most, from the Hessian of a part of the structures.

What makes the training of a CRF slow are few combinations of the weights of frequent features and
of label pairs: they occur at most nodes, and their curvature is thousands of times that of all
others. A tenth of the structures shows them. A product with the Hessian of a sample is a
difference of two gradients of it,

    H x ≈ (∇f(w + ε x) − ∇f(w)) / ε.

It is the Hessian in v = w · h^p, with h a rough diagonal of it, that is looked at. Before, z = w ·
h^⅕ makes rare and frequent features move at comparable pace; afterwards p = 1/20 is enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.data.corpus import Corpus
from fuda.optimize.deflation import Spectrum, leading
from fuda.optimize.result import Function
from fuda.training.crf_curvature import features_per_node
from fuda.training.crf_loss import TrainingLoss
from fuda.training.crf_parts import part_of

Array = np.ndarray
# In smaller corpora, the spectrum costs as much as it saves.
LEAST_NODES = 20_000
# A sample has every tenth structure, and fewer where these would have more nodes than this.
_SAMPLE_EVERY, _SAMPLE_NODES = 10, 16_000
_WEIGHTS = 1 << 13
_STEPS, _COUNT = 130, 100
POWER, DEFLATED_POWER = 0.2, 0.05  # the exponents p of h before and after deflation
# About the change of the scores of a node by which differences of gradients are computed.
_DIFFERENCE = 1e-3


def sample_of(corpus: Corpus) -> Array:
    """Return the structures of the sample whose Hessian is measured."""
    return np.arange(0, len(corpus), max(_SAMPLE_EVERY, corpus.size // _SAMPLE_NODES))


def leading_curvature(
    loss: Function, w: Array, curvature: Array, l2: float, share: float, overlap: float
) -> Spectrum:
    """Compute the largest eigenvalues of the Hessian of share · loss(w) + l2 ‖w‖² in v.

    Parameters
    ----------
    loss : callable
        From weights to loss and gradient of a sample of the structures.
    w : ndarray
        The weights.
    curvature : ndarray
        A rough diagonal of the Hessian: only the weights for which it is largest are measured.
    l2 : float
        The factor of ‖w‖².
    share : float
        How many times as many nodes as the sample all structures have.
    overlap : float
        The features per node.

    Returns
    -------
    Spectrum
        The eigenvalues above θ, which is the next one.
    """
    positions = np.sort(np.argsort(-curvature, kind="stable")[:_WEIGHTS])
    center = _rounded(w)
    before = loss(center)[1][positions]
    by_v = curvature[positions] ** -DEFLATED_POWER
    apart = _DIFFERENCE / max(1.0, overlap)
    point = np.empty_like(center)

    def product(vector: Array) -> Array:
        x = by_v * vector
        np.copyto(point, center)
        point[positions] += apart * x
        return by_v * (share / apart * (loss(point)[1][positions] - before) + 2 * l2 * x)

    values, vectors = leading(product, by_v * before, _STEPS, _COUNT + 1)
    least = max(values[-1], 1e-6 * values[0]) if len(values) else 0.0
    count = int((values > least).sum()) if least > 0.0 else 0
    ratios = np.sqrt(least / values[:count])
    return Spectrum(positions, ratios, vectors[:count].astype(np.float32))


def leading_crf_curvature(
    w: Array, arguments: tuple[Any, ...], curvature: Array, l2: float, n_jobs: int | None = None
) -> Spectrum:
    """Compute that of a CRF from the weights that a sample of its structures has.

    Parameters
    ----------
    w : ndarray
        The weights.
    arguments : tuple
        The arguments of `TrainingLoss`, from the encoded corpus to the weights of nodes.
    curvature : ndarray
        A rough diagonal of the Hessian.
    l2 : float
        The factor of ‖w‖².
    n_jobs : int or None
        The number of threads; None is all cores.

    Returns
    -------
    Spectrum
        The eigenvalues above θ.
    """
    corpus = arguments[0].corpus
    part, part_arguments = part_of(sample_of(corpus), *arguments)
    loss_arguments: list[Any] = [*part_arguments, n_jobs]
    loss = TrainingLoss(*loss_arguments)
    original_positions = part.of(np.arange(float(len(w)))).astype(np.int64)
    share, overlap = corpus.size / loss.encoded.corpus.size, features_per_node(loss.encoded)
    spectrum = leading_curvature(loss, part.of(w), curvature[original_positions], l2, share, overlap)
    return spectrum._replace(at=original_positions[spectrum.at])


def _rounded(w: Array) -> Array:
    """Round to 12 binary digits.

    Gradients that are summed in another order, as on a cluster, differ in their last digits, and
    differences of gradients magnify that; of weights that are rounded nothing is left of it.
    """
    mantissa, exponent = np.frexp(w)
    return np.ldexp(np.round(mantissa * 4096) / 4096, exponent)
