"""Exact inference on chains and trees, shared by all models that score label pairs along edges.

``Graph`` holds the shape of a corpus; each function takes it with scores (N, L) and transitions (L, L) or
(N, L, L), laid out as ``fuda.inference.graph`` says.
"""

from __future__ import annotations

from fuda.data.graph import Graph
from fuda.inference.max_product import viterbi
from fuda.inference.nbest import nbest
from fuda.inference.sum_product import expectations, log_partition, marginals

__all__ = [
    "Graph",
    "expectations",
    "log_partition",
    "marginals",
    "nbest",
    "viterbi",
]
