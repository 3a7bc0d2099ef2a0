"""Word classes and word vectors: learned from text without labels, or read from files."""

from __future__ import annotations

from fuda.vectors.learning import learn
from fuda.vectors.table import Vectors

__all__ = ["Vectors", "learn"]
