"""
Learning curves
===============

How much would more data help? The embedded corpus was made so that the deciding word is near in
the tree and often far away in the sentence, so that learners that see the tree gain more from more
of it. The CRF has features of parents and children, which decide here; the tree kernel matches
whole subtrees.
"""

from fuda import CRF, MarginalizedPerceptron, Sequence
from fuda.datasets import load_product_usage
from fuda.metrics import label_f1_scorer
from fuda.plots import learning_curves

data = load_product_usage()
(X, y), (X_test, y_test) = data.train, data.test
flat, flat_test = ([Sequence(tree) for tree in part] for part in (X, X_test))

learners = {
    "CRF, sequences": (CRF(), flat, flat_test),
    "CRF, trees": (CRF(), X, X_test),
    "tree kernel": (MarginalizedPerceptron(calibrate=False, orders=1), X, X_test),
}
curves = {}
for name, (model, known, new) in learners.items():
    curves[name] = {}
    for size in (20, 40, 80, 160):
        parts = [range(start, start + size) for start in (0, 160, 320)]  # three different parts
        curves[name][size] = [
            100 * label_f1_scorer(model.fit([known[i] for i in part], [y[i] for i in part]), new, y_test)
            for part in parts
        ]

# %%
# The band is a standard deviation over three parts of the training data.
ax = learning_curves(curves, ylabel="F1 of labels other than O")
