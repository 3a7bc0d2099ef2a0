"""Explanations of predictions: why a node has its label, and not the best other one.

Every model chooses the labels that maximize some score. A node is explained by the difference
between the best score and the best score with another label at that node. It is decomposed into
contributions that add up to it; `fuda.explanations.decisions` has the mathematics.
"""

from __future__ import annotations

from fuda.explanations.base import Contribution, Explanation, Verdict, Voice

__all__ = ["Contribution", "Explanation", "Verdict", "Voice"]
