"""
The effect of c
===============

The mixing constant c weighs each node of a match: with a small one only the node itself counts,
with a large one long matches outweigh everything else. The dotted line is the c that
``mixing=None`` chooses.
"""

from fuda import MarginalizedPerceptron
from fuda.datasets import load_product_usage
from fuda.metrics import label_f1_scorer
from fuda.plots import mixing_effect

data = load_product_usage()
X, y = (part[:300] for part in data.train)


def f1(model):
    """F1 on each of two halves, after training on the other."""
    found = []
    for k in range(2):
        model.fit(X[1 - k :: 2], y[1 - k :: 2])
        found.append(100 * label_f1_scorer(model, X[k::2], y[k::2]))
    return found


once = {"calibrate": False, "orders": 1}
scores = {c: f1(MarginalizedPerceptron(mixing=c, **once)) for c in (0.3, 0.6, 1.0, 1.7, 3.0, 5.0)}
chosen = MarginalizedPerceptron(**once).fit(X[:50], y[:50]).mixing_
ax = mixing_effect(scores, chosen=chosen, ylabel="F1 of labels other than O")
