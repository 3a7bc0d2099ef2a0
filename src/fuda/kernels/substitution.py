"""The kernel of substitution matrices between residues."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.errors import DataError, short
from fuda.features.substitution import check_beta, scores, vector_of
from fuda.kernels.algebra import Array
from fuda.kernels.observations import OneInnerProduct
from fuda.kernels.points import Points


class Substitution(OneInnerProduct):
    """How often two residues replace each other in related proteins, by a matrix of scores.

    Scores are not a kernel. `fuda.features.substitution` says how they become one: centred, or as
    exp(β S), divided by the mean of the diagonal. Over a window it is the sum over its
    positions, the score of an alignment without gaps; 0 at boundary marks. Of a tuple of columns
    it sees the first.

    Parameters
    ----------
    matrix : {"BLOSUM45", "BLOSUM62", "BLOSUM80", "PAM70", "PAM250"}
        The scores S.
    beta : float, default=0.0
        0 for centred scores, or β of exp(β S), all of whose values are positive.

    Examples
    --------
    >>> from fuda.kernels import Substitution
    >>> Substitution("PAM250")
    Substitution(matrix='PAM250')
    """

    def __init__(self, matrix: str = "BLOSUM62", beta: float = 0.0) -> None:
        self.matrix, self.beta = matrix, beta

    def inners(self, a: Points, b: Points) -> list[Array]:
        return [self._vectors(a) @ self._vectors(b).T]

    def norms(self, a: Points) -> list[Array]:
        vectors = self._vectors(a)
        return [np.einsum("ij,ij->i", vectors, vectors)]

    def _vectors(self, a: Points) -> Array:
        """The vector of each point."""
        return np.array([self._vector(x) for x in a.observations]).reshape(-1, 20)

    def _vector(self, x: Any) -> Array:
        """The vector of an observation."""
        if x is None:
            return np.zeros(20)
        residue = x[0] if isinstance(x, tuple) else x
        vector = vector_of(residue, self.matrix, self.beta) if isinstance(residue, str) else None
        if vector is None:
            raise DataError(
                f"Substitution: the observation {short(x)} is not the code of a residue; give letters of "
                "amino acids, one per node"
            )
        return vector

    def check(self) -> None:
        scores(self.matrix)
        check_beta(self.beta)
