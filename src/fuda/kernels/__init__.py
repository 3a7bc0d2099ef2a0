"""Kernels between observations (or labels), their algebra, and the points that they compare."""

from fuda.kernels.algebra import (
    KERNELS,
    RBF,
    Constant,
    Delta,
    Function,
    Kernel,
    Linear,
    Normalized,
    Polynomial,
    Precomputed,
    Product,
    Sum,
    as_kernel,
    check_kernel,
    from_json,
)

__all__ = [
    "KERNELS",
    "RBF",
    "Constant",
    "Delta",
    "Function",
    "Kernel",
    "Linear",
    "Normalized",
    "Polynomial",
    "Precomputed",
    "Product",
    "Sum",
    "as_kernel",
    "check_kernel",
    "from_json",
]
