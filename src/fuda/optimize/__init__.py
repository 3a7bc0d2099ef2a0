"""Minimizers of smooth functions, which report objective, gradient, iterations and time."""

from __future__ import annotations

from fuda.optimize.adagrad import adagrad
from fuda.optimize.cg import conjugate_gradient
from fuda.optimize.lbfgs import Lbfgs
from fuda.optimize.result import Result

__all__ = ["Lbfgs", "Result", "adagrad", "conjugate_gradient"]
