"""Marginalized kernels: features of any size over observations and hidden labels together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuda.marginalized.kernel import marginalized_kernel

__all__ = ["marginalized_kernel"]


def __getattr__(name: str) -> Any:
    """Import `marginalized_kernel` on first use, since it imports numba."""
    if name not in __all__:
        raise AttributeError(f"module 'fuda.marginalized' has no attribute {name!r}")
    from fuda.marginalized import kernel

    return getattr(kernel, name)
