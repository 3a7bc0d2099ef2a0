"""Features of residues and bases, and k-mers around them.

====================  =====================================================================
``protein``           the residue and its physico-chemical classes
``physicochemical``   hydropathy, volume, charge and propensities to form secondary structure
``blosum62``          the vector of the residue in the geometry of BLOSUM62
``dna``               the base and its chemical classes
====================  =====================================================================

Features of `physicochemical` and `blosum62` are numbers, by which similar residues share what is
learned of them. Inner products of the latter are those of the kernel ``Substitution("BLOSUM62")``,
so that ``RBF`` and ``Polynomial`` on them are kernels of substitutions too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from fuda.checks import is_whole
from fuda.errors import DataError, short
from fuda.features.substitution import AMINO_ACIDS, average_over_codes, vector_of

RESIDUES = frozenset("ACDEFGHIKLMNPQRSTVWYBZJXUO*-.")
BASES = frozenset("ACGTUN")
# The feature sets that observations get by their alphabet, and the window that comes with each.
ALPHABETS = {"protein": 7, "dna": 6}
_FEWEST = 12  # data with at least so many different amino acids are taken for proteins


def alphabet_of(observations: Sequence[Any]) -> str | None:
    """Find out whether observations are letters of proteins or of nucleic acids.

    Parameters
    ----------
    observations : sequence
        The different observations of a corpus.

    Returns
    -------
    str or None
        "protein" for codes of residues in upper case, twelve amino acids or more; "dna" for codes
        of bases in any case, all four of them; else None.

    Examples
    --------
    >>> alphabet_of("MKVLASTRENDQGHW"), alphabet_of("acgtN"), alphabet_of(["Lima", "is"])
    ('protein', 'dna', None)
    """
    if not all(isinstance(x, str) and len(x) == 1 for x in observations):
        return None
    letters = set(observations)
    upper = {letter.upper() for letter in letters}
    if upper <= BASES and upper >= set("ACG") and upper & set("TU"):
        return "dna"
    return "protein" if letters <= RESIDUES and len(letters & set(AMINO_ACIDS)) >= _FEWEST else None


# Classes after Taylor (1986), "The classification of amino acid conservation",
# J. Theor. Biol. 119.
_RESIDUE_CLASSES = {
    "hydrophobic": "AVILMFWYCHKTG",
    "polar": "HKRDENQSTWYC",
    "small": "AVGCSTPDN",
    "tiny": "AGSC",
    "aliphatic": "VIL",
    "aromatic": "FWYH",
    "positive": "HKR",
    "negative": "DE",
    "charged": "HKRDE",
    "proline": "P",
    "hydroxyl": "STY",
    "amide": "NQ",
    "sulphur": "CM",
}
_BASE_CLASSES = {
    "purine": "AG",
    "pyrimidine": "CTU",
    "strong": "CG",
    "weak": "ATU",
    "amino": "AC",
    "keto": "GTU",
}


def protein(residue: str) -> list[str]:
    """Return the residue and its physico-chemical classes (Taylor, 1986).

    Parameters
    ----------
    residue : str
        The one-letter code of an amino acid.

    Returns
    -------
    list of str
        The features.

    Examples
    --------
    >>> protein("S")
    ['residue=S', 'polar', 'small', 'tiny', 'hydroxyl']
    """
    return _member_features("residue", residue, _RESIDUE_CLASSES)


def dna(base: str) -> list[str]:
    """Return the base and its chemical classes.

    Parameters
    ----------
    base : str
        A base; lower case (soft-masked) is treated as upper case.

    Returns
    -------
    list of str
        The features.

    Examples
    --------
    >>> dna("g")
    ['base=G', 'purine', 'strong', 'keto']
    """
    return _member_features("base", base, _BASE_CLASSES)


def _member_features(kind: str, symbol: str, classes: Mapping[str, str]) -> list[str]:
    """A symbol and the classes that it is a member of."""
    symbol = symbol.upper()
    return [f"{kind}={symbol}", *(name for name, members in classes.items() if symbol in [*members])]


# J. Kyte and R. F. Doolittle, J. Mol. Biol. 157 (1982) 105; volumes in
# Å³, A. A. Zamyatnin, Prog. Biophys. Mol. Biol. 24 (1972) 107; charges at pH 7; propensities of
# P. Y. Chou and G. D. Fasman, Adv. Enzymol. 47 (1978) 45.
PROPERTIES = ("hydropathy", "volume", "charge", "helix", "strand", "turn")
_VALUES = """
    A   1.8  88.6     0  1.42  0.83  0.66
    R  -4.5 173.4     1  0.98  0.93  0.95
    N  -3.5 114.1     0  0.67  0.89  1.56
    D  -3.5 111.1    -1  1.01  0.54  1.46
    C   2.5 108.5     0  0.70  1.19  1.19
    Q  -3.5 143.8     0  1.11  1.10  0.98
    E  -3.5 138.4    -1  1.51  0.37  0.74
    G  -0.4  60.1     0  0.57  0.75  1.56
    H  -3.2 153.2     0  1.00  0.87  0.95
    I   4.5 166.7     0  1.08  1.60  0.47
    L   3.8 166.7     0  1.21  1.30  0.59
    K  -3.9 168.6     1  1.16  0.74  1.01
    M   1.9 162.9     0  1.45  1.05  0.60
    F   2.8 189.9     0  1.13  1.38  0.60
    P  -1.6 112.7     0  0.57  0.55  1.52
    S  -0.8  89.0     0  0.77  0.75  1.43
    T  -0.7 116.1     0  0.83  1.19  0.96
    W  -0.9 227.8     0  1.08  1.37  0.96
    Y  -1.3 193.6     0  0.69  1.47  1.14
    V   4.2 140.0     0  1.06  1.70  0.50
"""


@lru_cache
def _properties() -> dict[str, np.ndarray]:
    """The properties of each code, of mean 0 and deviation 1 over the amino acids."""
    rows = {code: values for code, *values in map(str.split, _VALUES.strip().splitlines())}
    table = np.array([rows[code] for code in AMINO_ACIDS], dtype=float)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    return average_over_codes(table)


def properties_of(residue: str) -> np.ndarray:
    """Return the standardized `PROPERTIES` of a residue; 0, their mean, for other letters."""
    return _properties().get(residue.upper(), np.zeros(len(PROPERTIES)))


@lru_cache(1 << 10)
def physicochemical(residue: str) -> dict[str, float]:
    """Return hydropathy, volume, charge, and the propensities of helix, strand and turn.

    Each has mean 0 and standard deviation 1 over the twenty amino acids.

    Parameters
    ----------
    residue : str
        The one-letter code of an amino acid.

    Returns
    -------
    dict of str to float
        The features; empty for letters that are not a code.

    Examples
    --------
    >>> {name: round(value, 1) for name, value in physicochemical("E").items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'hydropathy': -1.0, 'volume': -0.1, 'charge': -2.2,
     'helix': 1.9, 'strand': -1.8, 'turn': -0.7}
    """
    return _by_name(PROPERTIES, _properties().get(residue.upper()))


@lru_cache(1 << 10)
def blosum62(residue: str) -> dict[str, float]:
    """Return the vector of a residue whose inner products are centred scores of BLOSUM62.

    Parameters
    ----------
    residue : str
        The one-letter code of an amino acid.

    Returns
    -------
    dict of str to float
        Twenty features, named by amino acids; empty for letters that are not a code.

    Examples
    --------
    >>> vector = blosum62("K")
    >>> max(vector, key=vector.get)
    'like=K'
    """
    return _by_name([f"like={a}" for a in AMINO_ACIDS], vector_of(residue, "BLOSUM62"))


def _by_name(names: Sequence[str], values: np.ndarray | None) -> dict[str, float]:
    """Numbers as features; none where there are no numbers."""
    return {} if values is None else dict(zip(names, values.tolist(), strict=True))


def kmers(residues: Sequence[str], k: int = 3, mismatches: int = 0) -> list[list[str]]:
    """Return the k-mer around each position, as features.

    With mismatches, features are the k-mer with up to that many positions open: the inner product
    of two is a mismatch kernel, which counts k-mers that differ in so many places too. A window
    over such observations makes them the spectrum of a stretch.

    Parameters
    ----------
    residues : sequence of str
        Residues or bases, as a text or a list.
    k : int, default=3
        The length; of an even number of positions one more follows than precedes.
    mismatches : int, default=0
        How many positions may differ, fewer than k.

    Returns
    -------
    list of list of str
        Observations, one per residue; ``_`` is past the end, ``?`` an open position.

    Examples
    --------
    >>> kmers("RRASV")
    [['_RR'], ['RRA'], ['RAS'], ['ASV'], ['SV_']]
    >>> kmers("RRASV", k=2, mismatches=1)[2]
    ['AS', '?S', 'A?']
    """
    if not is_whole(k, 1, 100) or not is_whole(mismatches, 0, k - 1):
        raise DataError(
            f"k={short(k)}, mismatches={short(mismatches)}: give a length from 1 to 100 and a smaller number"
        )
    before = (k - 1) // 2
    padded = "_" * before + "".join(residues) + "_" * (k - 1 - before)
    open_sets = [places for m in range(mismatches + 1) for places in combinations(range(k), m)]
    return [[_opened(padded[i : i + k], places) for places in open_sets] for i in range(len(residues))]


def _opened(word: str, places: tuple[int, ...]) -> str:
    """A k-mer with some positions open."""
    return "".join("?" if i in places else letter for i, letter in enumerate(word))
