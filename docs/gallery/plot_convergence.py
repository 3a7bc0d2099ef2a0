"""
Convergence
===========

A callback gets what is measured after every iteration. Here it fills a list for each of the
solvers of the CRF.
"""

from fuda import CRF, HMSVM, Sequence
from fuda.datasets import load_product_usage
from fuda.plots import convergence

data = load_product_usage()
X, y = (part[:150] for part in data.train)
X = [Sequence(tree) for tree in X]

runs = {"lbfgs": [], "cg": [], "sgd": []}
for solver, found in runs.items():
    CRF(solver=solver, max_iter=40, tol=0.0, callback=found.append).fit(X, y)
ax = convergence(runs)

# %%
# Models remember their last training, until they are saved. The HM-SVM stops when its duality gap
# is small enough, here 1 %.
ax = convergence(HMSVM(tol=0.01).fit(X, y), quantity="gap")
