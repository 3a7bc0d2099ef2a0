"""Kernels between observations (or labels), their algebra, and the points that they compare."""

from fuda.kernels.algebra import Constant, Function, Kernel, Normalized, Product, Sum
from fuda.kernels.checked import KERNELS, as_kernel, check_kernel, from_json
from fuda.kernels.expressions import parse_kernel
from fuda.kernels.forms import PolynomialForm, Sees
from fuda.kernels.observations import RBF, Delta, Linear, Polynomial, Precomputed
from fuda.kernels.substitution import Substitution

__all__ = [
    "KERNELS", "RBF", "Constant", "Delta", "Function", "Kernel", "Linear", "Normalized", "Polynomial",
    "PolynomialForm", "Precomputed", "Product", "Sees", "Substitution", "Sum", "as_kernel",
    "check_kernel", "from_json", "parse_kernel",
]  # fmt: skip
