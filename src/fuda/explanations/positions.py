"""Scores of a node that are sums over training positions.

The score of label σ is Σ_τ P(σ) g_τ(σ), with the prior P of the node; P = 1 without a prior.
Of the difference between labels σ and ρ,

    Σ_τ P(σ) g_τ(σ) − P(ρ) g_τ(ρ)
        = Σ_τ P̄ (g_τ(σ) − g_τ(ρ)) + (P(σ) − P(ρ)) Σ_τ (g_τ(σ) + g_τ(ρ)) / 2,

P̄ the mean of P(σ) and P(ρ), each position contributes a term of the first sum, and the prior the
last one. With a uniform prior the latter is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fuda.explanations.base import KINDS, Contribution, Voice

Array = np.ndarray


@dataclass(frozen=True)
class Positions:
    """Training positions that a node's score is the sum over.

    Attributes
    ----------
    plain : (P, L) array
        g_τ(σ).
    prior : (L,) array
        P(σ).
    by_prior : (P,) array of bool
        Whether the prior multiplies a position; those that it does not multiply are remembered
        corrections.
    voice : callable
        From the number of a position, the number of a label and a share to the Voice.
    """

    plain: Array
    prior: Array
    by_prior: Array
    voice: Callable[[int, int, float], Voice]

    @property
    def shares(self) -> Array:
        """The shares (P, L) of the scores."""
        return np.where(self.by_prior[:, None], self.plain * self.prior, self.plain)

    def voices(self, label: int, top: int) -> list[Voice]:
        """Return the positions with the largest shares of the score of a label.

        Parameters
        ----------
        label : int
            The number of the label.
        top : int
            How many positions.

        Returns
        -------
        list of Voice
            By decreasing size of the share.
        """
        shares = self.shares[:, label]
        return [self.voice(k, label, float(shares[k])) for k in _largest(shares, top)]

    def terms(self, a: int, b: int, node: int, top: int) -> list[Contribution]:
        """Decompose the difference between the scores of two labels.

        Parameters
        ----------
        a, b : int
            The numbers of the labels.
        node : int
            The explained node.
        top : int
            How many positions to list by themselves.

        Returns
        -------
        list of Contribution
            Positions, corrections and the prior.
        """
        contributions = []
        differences = self.plain[:, a] - self.plain[:, b]
        differences[self.by_prior] *= (self.prior[a] + self.prior[b]) / 2
        for kind, is_of_kind in (("position", self.by_prior), ("correction", ~self.by_prior)):
            numbers = np.flatnonzero(is_of_kind)
            listed = numbers[_largest(differences[numbers], top)]
            for k in listed:
                value = float(differences[k])
                voice = self.voice(int(k), a, value)
                contributions.append(Contribution(kind, voice.text, value, node, voice=voice))
            rest = np.setdiff1d(numbers, listed)
            if len(rest):
                text, value = f"{len(rest):,} other {KINDS[kind]}", float(differences[rest].sum())
                contributions.append(Contribution(kind, text, value, node, max(2, len(rest))))
        mean = self.plain[self.by_prior][:, [a, b]].sum() / 2
        by_prior = float((self.prior[a] - self.prior[b]) * mean)
        return [*contributions, Contribution("prior", prior_text(self.prior, a, b), by_prior, node)]


def prior_text(prior: Array, a: int, b: int) -> str:
    """Return the prior of two labels in words."""
    return f"prior {prior[a]:.3g}, not {prior[b]:.3g}"


def _largest(values: Array, top: int) -> list[int]:
    """The indices of the largest magnitudes."""
    return [int(k) for k in np.argsort(-np.abs(values), kind="stable")[:top]]
