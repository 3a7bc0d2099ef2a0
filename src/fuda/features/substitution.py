"""Substitution matrices of amino acids, and the vectors whose inner products they become.

The scores S(a, b) are log-odds of seeing a and b in place of each other in related proteins. They
are not a kernel: the constant vector has a negative eigenvalue. A kernel is made of them in one
of two ways.

- *Centred* (β = 0). Where Σ c = 0 implies cᵀSc ≥ 0, as for all BLOSUM matrices, there are vectors
  with ‖φ(a) − φ(b)‖² = S(a, a) + S(b, b) − 2 S(a, b) around the origin, and their inner products
  are PSP with P = I − 11ᵀ/20: scores less the mean scores of both residues. PAM matrices miss the
  condition by little; λI with the smallest sufficient λ is added, which moves all residues apart
  by the same amount.
- *Exponents* (β > 0). exp(β S) is positive definite under the same condition (Schoenberg), and all
  of its values are positive. With β = ln(2)/2 it is the odds themselves where scores are in half
  bits, as in BLOSUM62. Here, too, λI is added where it is needed.

Both are divided by the mean of their diagonal. A code of several amino acids is the mean of their
vectors: B, Z, J, and X for all; U counts as C, O as K. Gaps and stops have the vector 0.

The scores are those of the files that NCBI distributes with BLAST
(ftp.ncbi.nih.gov/blast/matrices): BLOSUM after S. Henikoff and J. G. Henikoff, PNAS 89 (1992)
10915; PAM after M. O. Dayhoff, R. M. Schwartz and B. C. Orcutt, Atlas of Protein Sequence and
Structure 5, suppl. 3 (1978) 345.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fuda.checks import is_number
from fuda.errors import DataError, short

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
_AMBIGUOUS = {"B": "ND", "Z": "QE", "J": "IL", "U": "C", "O": "K", "X": AMINO_ACIDS}
_NONE = "*-."
_LARGEST_BETA = 2.0  # with which exp(β S) is a multiple of the identity, up to rounding

# Lower triangles, rows in the order of `AMINO_ACIDS`.
_TRIANGLES = {
    "BLOSUM45": """
        5 -2 7 -1 0 6 -2 -1 2 7 -1 -3 -2 -3 12 -1 1 0 0 -3 6 -1 0 0 2 -3 2 6 0 -2 0 -1 -3 -2 -2 7 -2
        0 1 0 -3 1 0 -2 10 -1 -3 -2 -4 -3 -2 -3 -4 -3 5 -1 -2 -3 -3 -2 -2 -2 -3 -2 2 5 -1 3 0 0 -3 1
        1 -2 -1 -3 -3 5 -1 -1 -2 -3 -2 0 -2 -2 0 2 2 -1 6 -2 -2 -2 -4 -2 -4 -3 -3 -2 0 1 -3 0 8 -1
        -2 -2 -1 -4 -1 0 -2 -2 -2 -3 -1 -2 -3 9 1 -1 1 0 -1 0 0 0 -1 -2 -3 -1 -2 -2 -1 4 0 -1 0 -1
        -1 -1 -1 -2 -2 -1 -1 -1 -1 -1 -1 2 5 -2 -2 -4 -4 -5 -2 -3 -2 -3 -2 -2 -2 -2 1 -3 -4 -3 15 -2
        -1 -2 -2 -3 -1 -2 -3 2 0 0 -1 0 3 -3 -2 -1 3 8 0 -2 -3 -3 -1 -3 -3 -3 -3 3 1 -2 1 0 -3 -1 0
        -3 -1 5
    """,
    "BLOSUM62": """
        4 -1 5 -2 0 6 -2 -2 1 6 0 -3 -3 -3 9 -1 1 0 0 -3 5 -1 0 0 2 -4 2 5 0 -2 0 -1 -3 -2 -2 6 -2 0
        1 -1 -3 0 0 -2 8 -1 -3 -3 -3 -1 -3 -3 -4 -3 4 -1 -2 -3 -4 -1 -2 -3 -4 -3 2 4 -1 2 0 -1 -3 1
        1 -2 -1 -3 -2 5 -1 -1 -2 -3 -1 0 -2 -3 -2 1 2 -1 5 -2 -3 -3 -3 -2 -3 -3 -3 -1 0 0 -3 0 6 -1
        -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4 7 1 -1 1 0 -1 0 0 0 -1 -2 -2 0 -1 -2 -1 4 0 -1 0 -1
        -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1 1 5 -3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1 1 -4 -3 -2 11 -2
        -2 -2 -3 -2 -1 -2 -3 2 -1 -1 -2 -1 3 -3 -2 -2 2 7 0 -3 -3 -3 -1 -2 -2 -3 -3 3 1 -2 1 -1 -2
        -2 0 -3 -1 4
    """,
    "BLOSUM80": """
        7 -3 9 -3 -1 9 -3 -3 2 10 -1 -6 -5 -7 13 -2 1 0 -1 -5 9 -2 -1 -1 2 -7 3 8 0 -4 -1 -3 -6 -4
        -4 9 -3 0 1 -2 -7 1 0 -4 12 -3 -5 -6 -7 -2 -5 -6 -7 -6 7 -3 -4 -6 -7 -3 -4 -6 -7 -5 2 6 -1 3
        0 -2 -6 2 1 -3 -1 -5 -4 8 -2 -3 -4 -6 -3 -1 -4 -5 -4 2 3 -3 9 -4 -5 -6 -6 -4 -5 -6 -6 -2 -1
        0 -5 0 10 -1 -3 -4 -3 -6 -3 -2 -5 -4 -5 -5 -2 -4 -6 12 2 -2 1 -1 -2 -1 -1 -1 -2 -4 -4 -1 -3
        -4 -2 7 0 -2 0 -2 -2 -1 -2 -3 -3 -2 -3 -1 -1 -4 -3 2 8 -5 -5 -7 -8 -5 -4 -6 -6 -4 -5 -4 -6
        -3 0 -7 -6 -5 16 -4 -4 -4 -6 -5 -3 -5 -6 3 -3 -2 -4 -3 4 -6 -3 -3 3 11 -1 -4 -5 -6 -2 -4 -4
        -6 -5 4 1 -4 1 -2 -4 -3 0 -5 -3 7
    """,
    "PAM70": """
        5 -4 8 -2 -3 6 -1 -6 3 6 -4 -5 -7 -9 9 -2 0 -1 0 -9 7 -1 -5 0 3 -9 2 6 0 -6 -1 -1 -6 -4 -2 6
        -4 0 1 -1 -5 2 -2 -6 8 -2 -3 -3 -5 -4 -5 -4 -6 -6 7 -4 -6 -5 -8 -10 -3 -6 -7 -4 1 6 -4 2 0
        -2 -9 -1 -2 -5 -3 -4 -5 6 -3 -2 -5 -7 -9 -2 -4 -6 -6 1 2 0 10 -6 -7 -6 -10 -8 -9 -9 -7 -4 0
        -1 -9 -2 8 0 -2 -3 -4 -5 -1 -3 -3 -2 -5 -5 -4 -5 -7 7 1 -1 1 -1 -1 -3 -2 0 -3 -4 -6 -2 -3 -4
        0 5 1 -4 0 -2 -5 -3 -3 -3 -4 -1 -4 -1 -2 -6 -2 2 6 -9 0 -6 -10 -11 -8 -11 -10 -5 -9 -4 -7 -8
        -2 -9 -3 -8 13 -5 -7 -3 -7 -2 -8 -6 -9 -1 -4 -4 -7 -7 4 -9 -5 -4 -3 9 -1 -5 -5 -5 -4 -4 -4
        -3 -4 3 0 -6 0 -5 -3 -3 -1 -10 -5 6
    """,
    "PAM250": """
        2 -2 6 0 0 2 0 -1 2 4 -2 -4 -4 -5 12 0 1 1 2 -5 4 0 -1 1 3 -5 2 4 1 -3 0 1 -3 -1 0 5 -1 2 2
        1 -3 3 1 -2 6 -1 -2 -2 -2 -2 -2 -2 -3 -2 5 -2 -3 -3 -4 -6 -2 -3 -4 -2 2 6 -1 3 1 0 -5 1 0 -2
        0 -2 -3 5 -1 0 -2 -3 -5 -1 -2 -3 -2 2 4 0 6 -3 -4 -3 -6 -4 -5 -5 -5 -2 1 2 -5 0 9 1 0 0 -1
        -3 0 -1 0 0 -2 -3 -1 -2 -5 6 1 0 1 0 0 -1 0 1 -1 -1 -3 0 -2 -3 1 2 1 -1 0 0 -2 -1 0 0 -1 0
        -2 0 -1 -3 0 1 3 -6 2 -4 -7 -8 -5 -7 -7 -3 -5 -2 -3 -4 0 -6 -2 -5 17 -3 -4 -2 -4 0 -4 -4 -5
        0 -1 -1 -4 -2 7 -5 -3 -3 0 10 0 -2 -2 -2 -2 -2 -2 -1 -2 4 2 -2 2 -1 -1 -1 0 -6 -2 4
    """,
}
MATRICES = tuple(_TRIANGLES)


def scores(matrix: str) -> np.ndarray:
    """Return the scores of a substitution matrix.

    Parameters
    ----------
    matrix : str
        One of `MATRICES`, in upper or lower case.

    Returns
    -------
    (20, 20) array
        Rows and columns in the order of `AMINO_ACIDS`.

    Examples
    --------
    >>> scores("BLOSUM62")[:2, :2].tolist()
    [[4.0, -1.0], [-1.0, 5.0]]
    """
    name = matrix.upper() if isinstance(matrix, str) else matrix
    if name not in MATRICES:
        raise DataError(f"{short(matrix)} is not a substitution matrix; choose {', '.join(MATRICES)}")
    square = np.zeros((20, 20))
    square[np.tril_indices(20)] = np.array(_TRIANGLES[name].split(), dtype=float)
    return square + np.tril(square, -1).T


def check_beta(beta: float) -> None:
    """Raise DataError where β is not a number from 0 to 2."""
    if not is_number(beta, 0, _LARGEST_BETA):
        raise DataError(f"beta={short(beta)}: give 0, or β of exp(β S), at most {_LARGEST_BETA:g}")


@lru_cache
def residue_vectors(matrix: str, beta: float = 0.0) -> dict[str, np.ndarray]:
    """Return a vector for every code of a residue, by a substitution matrix.

    Parameters
    ----------
    matrix : str
        One of `MATRICES`.
    beta : float, default=0.0
        0 for centred scores, or β of exp(β S).

    Returns
    -------
    dict of str to (20,) array
        The vectors by code, in upper case.

    Examples
    --------
    >>> vectors = residue_vectors("BLOSUM62")
    >>> float(vectors["I"] @ vectors["V"]) > 0 > float(vectors["I"] @ vectors["D"])
    True
    """
    values, centring = scores(matrix), np.eye(20) - 1 / 20
    values = np.exp(beta * values) if beta else centring @ values @ centring
    eigenvalues, basis = np.linalg.eigh(values)
    eigenvalues += max(0.0, -float(eigenvalues[0]))
    # the symmetric root: it does not depend on the basis that was found for equal eigenvalues
    root = (basis * np.sqrt(eigenvalues)) @ basis.T
    if not beta:
        root = centring @ root  # λI has moved the centre
    root /= np.sqrt((root**2).sum(axis=1).mean())
    return average_over_codes(root)


def average_over_codes(table: np.ndarray) -> dict[str, np.ndarray]:
    """Return the vector of every code: a row of the table, or the mean of some.

    Parameters
    ----------
    table : array of shape (20, n)
        A row per amino acid, in the order of `AMINO_ACIDS`.

    Returns
    -------
    dict of str to (n,) array
        The vectors by code.
    """
    vectors = dict(zip(AMINO_ACIDS, table, strict=True))
    vectors |= {code: np.mean([vectors[a] for a in of], axis=0) for code, of in _AMBIGUOUS.items()}
    return vectors | dict.fromkeys(_NONE, np.zeros(table.shape[1]))


def vector_of(residue: str, matrix: str, beta: float = 0.0) -> np.ndarray | None:
    """Return the vector of a residue in upper or lower case; None for other letters."""
    return residue_vectors(matrix, beta).get(residue.upper())
