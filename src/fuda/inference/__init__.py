"""Exact inference on chains and trees, for all models that score pairs of labels along edges.

A ``Graph`` describes the structures of a corpus; every function takes it with scores (N, L) and
transitions (L, L) or (N, L, L), laid out as described in ``fuda.inference.graph``.
"""

from __future__ import annotations

from fuda.data.graph import Graph
from fuda.inference.max_product import viterbi
from fuda.inference.nbest import nbest
from fuda.inference.sum_product import expectations, log_partition, marginals

__all__ = ["Graph", "expectations", "log_partition", "marginals", "nbest", "viterbi"]
