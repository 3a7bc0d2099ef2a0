"""
Motifs around sites
===================

Which residues around a site are evidence for it? Sites of these generated proteins are serines
with two arginines before them, as the kinase PKA prefers them, and one residue at a time is
replaced: letters above the line are evidence for a site, those below against it.
"""

import numpy as np

from fuda import CRF
from fuda.plots import motif

random = np.random.RandomState(0)
X = [random.choice(list("ACDEFGHIKLMNPQRSTVWY"), 80) for _ in range(40)]
for x in X:
    for at in (12, 33, 60):
        x[at - 3 : at + 1] = list("RRAS")
X = [x.tolist() for x in X]
y = [
    ["site" if "".join(x[max(0, t - 3) : t - 1]) == "RR" and x[t] == "S" else "O" for t in range(80)]
    for x in X
]
model = CRF(window=5).fit(X, y)
ax = motif(model, X, y, "site", window=5, most=10)
