"""
The marginalized kernel of two structures
=========================================

How similar is each node of one structure to each node of another? The marginalized kernel counts
all runs of words (in trees: subtrees) around the two nodes that match. Here words match by
spelling, so that *Umbrano* and *Velotra* are similar by themselves, and more so as their
neighbours match too: diagonals stand out.
"""

from fuda.kernels import Polynomial
from fuda.plots import kernel_heatmap

a = ["the", "school", "ordered", "Umbrano", "routers", "in", "August"]
b = ["a", "bank", "has", "ordered", "Velotra", "cameras", "in", "January"]
ax = kernel_heatmap(a, b, kernel=Polynomial(2).normalized(), features="spelling", mixing=1.0)

# %%
# With a small c a node counts by itself, and context for little.
ax = kernel_heatmap(a, b, kernel=Polynomial(2).normalized(), features="spelling", mixing=0.3)
