"""Proteins with planted sites: an S is a site if R, R is three and two residues before it."""

from __future__ import annotations

import numpy as np


def proteins_with_sites(count: int, seed: int, length: int = 60) -> str:
    """FASTA with marks."""
    random = np.random.RandomState(seed)
    text = ""
    for number in range(count):
        residues = random.choice(list("ACDEFGHIKLMNPQSTVWY"), length)
        for start in (10, 35):
            at = start + random.randint(10)
            residues[at - 3 : at + 1] = list("RRAS")
        marked = "".join(
            f"{residue}#" if residue == "S" and "".join(residues[max(0, t - 3) : t - 1]) == "RR" else residue
            for t, residue in enumerate(residues)
        )
        text += f">protein {number}\n{marked}\n"
    return text
