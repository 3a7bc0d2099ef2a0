"""
Confusion
=========

Which labels are taken for which? Rows are true labels, columns predicted ones; the colour is the
share of the true label, the number in a cell how many nodes there are. The first letter of a label
is what the customer does (D uses, P wants, R rejects), the second what was labelled (product,
vendor, number, reason).
"""

from fuda import CRF, Sequence
from fuda.datasets import load_product_usage
from fuda.metrics import evaluate
from fuda.plots import confusion

data = load_product_usage()
(X, y), (X_test, y_test) = data.train, data.test
X, X_test = ([Sequence(tree) for tree in part] for part in (X, X_test))

report = evaluate(y_test, CRF().fit(X, y).predict(X_test))

# %%
# As a sequence model the CRF knows well what a word is, since blocks stand out by the second
# letter, but not what the customer does with it.
ax = confusion(report, outside=False)
