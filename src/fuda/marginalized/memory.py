"""Corrections that hold: a memory of labels that were given for single structures.

A label that somebody corrects must be predicted afterwards, however certain a prior or a thousand
training positions are of another one, and other text must stay as it is. No step of a perceptron
does both. So, beside the scores S, a model has

    M(t,σ) = Σ_τ m_τ(σ) κ₌(τ,t),     m_τ(σ) = Σ_ρ β_τ(ρ) k_y(ρ,σ),

where κ₌ is the marginalized kernel for the observation kernel that is 1 for equal observations and
0 for others: it counts the parts around τ and t that agree exactly. It is by far the largest at
the corrected node itself, smaller where some of the same words stand around the same word, and 0
at other words. M is added to the logarithms of probabilities (see `calibration`). For a corrected
structure, β are raised, for given labels and against their rivals, until the model predicts the
given labels, each ahead of its rivals by `LEAD`; where that is so already they are 0.

An engine computes scores P(σ|t) Σ_τ Σ_ρ α_τ(ρ) P(ρ|τ) k_y(ρ,σ) κ(τ,t). With α = β / P of the node
τ, and divided by P(σ|t), these are M; so α is what `Support` keeps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuda.kernels import Delta
from fuda.marginalized.problem import Settings

Array = np.ndarray
Shortfall = tuple[Array, Array]  # by how much a label is behind where it should be, and its rival

LEAD = 0.5  # a label is ahead of its rival by a factor e^LEAD in probability
_ROUNDS = 60
LEAST = 1e-12  # smaller priors, and smaller κ₌ of a node with itself, are replaced by this
_MOST = 1e100  # the largest |M|; larger values are cut off


def settings(label_gram: Array, is_uniform: bool) -> Settings:
    """Return the settings of κ₌, under which a match counts at most 1, whatever its length."""
    return Settings(Delta(), label_gram, float(np.sqrt(len(label_gram))) if is_uniform else 1.0, 0.0)


def recalled(scores: Array, prior: Array) -> Array:
    """Return M (N, L) of nodes from their scores by an engine and their prior."""
    return np.clip(scores / np.maximum(prior, LEAST), -_MOST, _MOST)


def shortfall(table: Array, labels: Array) -> Shortfall:
    """Return by how much labels are not ahead of the best other label by LEAD, and that label.

    Parameters
    ----------
    table : array (N, L)
        What ranks the labels of each node.
    labels : array (N,)
        Label numbers.

    Returns
    -------
    Shortfall
        Two arrays (N,).
    """
    rows, others = np.arange(len(labels)), table.copy()
    others[rows, labels] = -np.inf
    rivals = others.argmax(axis=1)
    return np.maximum(table[rows, rivals] - table[rows, labels] + LEAD, 0.0), rivals


def coefficients(
    shortfalls: Callable[[Array], list[Shortfall]],
    labels: Array,
    kappa: Array,
    prior: Array,
    label_gram: Array,
) -> Array:
    """Return α (T, L) of a structure that make a model predict its labels; 0 if it does already.

    Parameters
    ----------
    shortfalls : callable
        Given M (T, L) of the structure by these coefficients, how far each criterion of the model
        is from being met.
    labels : array (T,)
        Label numbers, −1 where any label will do.
    kappa : array (T, T, 1) or (T, T, L)
        κ₌ of the structure with itself.
    prior : array (T, L)
        P(σ|t).
    label_gram : array (L, L)
        The label kernel.

    Returns
    -------
    array (T, L)
        α.
    """
    beta = np.zeros_like(prior)
    self_values = np.einsum("ttl->tl", kappa) * np.diag(label_gram)
    for _ in range(_ROUNDS):
        recall = np.einsum("stl,sl->tl", kappa, beta @ label_gram)
        missing = False
        for lack, rivals in shortfalls(recall):
            at = np.flatnonzero((labels >= 0) & (lack > 0))
            missing = missing or len(at) > 0
            for columns, half in ((labels[at], 0.5), (rivals[at], -0.5)):
                beta[at, columns] += half * lack[at] / np.maximum(self_values[at, columns], LEAST)
        if not missing:
            break
    return beta / np.maximum(prior, LEAST)
