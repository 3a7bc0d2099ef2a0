"""
Calibration
===========

Are labels that a model calls 90 % certain right nine times in ten? Points above the diagonal are
right more often than the model says, points below less often. Their size is the number of nodes.
The HMM multiplies features as if they were independent, and so is too sure.
"""

from fuda import CRF, HMM, MEMM, Sequence
from fuda.datasets import load_product_usage
from fuda.plots import calibration

data = load_product_usage()
(X, y), (X_test, y_test) = data.train, data.test
X, X_test = ([Sequence(tree) for tree in part] for part in (X, X_test))

ax = None
for model in (CRF(), MEMM(), HMM(features="text")):
    ax = calibration(model.fit(X, y), X_test, y_test, ax=ax)
