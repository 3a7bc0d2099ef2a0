"""Features of one observation: named sets, and templates in the format of CRF++ and Wapiti."""

from fuda.features.sets import FEATURE_SETS, PAPER_SETS, dna, extract, protein, spelling, text, word
from fuda.features.templates import Template

__all__ = ["FEATURE_SETS", "PAPER_SETS", "Template", "dna", "extract", "protein", "spelling", "text", "word"]
