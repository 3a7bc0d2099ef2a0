"""Minimizers of smooth functions, which report objective, gradient, iterations and time."""

from __future__ import annotations

from fuda.optimize.adagrad import AdaGrad
from fuda.optimize.cg import ConjugateGradient
from fuda.optimize.lbfgs import Lbfgs
from fuda.optimize.result import Result

__all__ = ["AdaGrad", "ConjugateGradient", "Lbfgs", "Result"]
