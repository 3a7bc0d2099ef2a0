"""What is said of one observation: named feature sets, and templates as CRF++ and Wapiti write them."""

from fuda.features.sets import (
    FEATURE_SETS,
    PAPER_SETS,
    dna,
    protein,
    spelling,
    text,
    word,
)
from fuda.features.templates import Template

__all__ = ["FEATURE_SETS", "PAPER_SETS", "Template", "dna", "protein", "spelling", "text", "word"]
