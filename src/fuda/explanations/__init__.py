"""Explanations of predictions: why a node has its label, and not the best other one.

Every model labels a structure by what maximizes some score. A node is explained by the difference
between the best score and the best one with another label at that node, taken apart into
contributions that add up to it; `fuda.explanations.decisions` has the mathematics.
"""

from __future__ import annotations

from fuda.explanations.base import Contribution, Explanation, Verdict, Voice

__all__ = ["Contribution", "Explanation", "Verdict", "Voice"]
