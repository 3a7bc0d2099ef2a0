"""
Weights of features and transitions
===================================

What is evidence for a label, and what against it? ``[0]`` is a feature of the node itself,
``[-1]`` of the node before it, in a tree above it, ``[+1]`` of the node after or below it.
"""

from fuda import CRF
from fuda.datasets import load_product_usage
from fuda.plots import feature_weights, transition_weights

data = load_product_usage()
model = CRF().fit(*data.train)
ax = feature_weights(model, "R-p", n=16)

# %%
# Label pairs, here of a node and its parent in the tree: a product below a product, both rejected,
# is likely.
ax = transition_weights(model)
