"""Features of one observation: named sets, templates in the format of CRF++ and Wapiti, votes."""

from fuda.features.residues import blosum62, dna, kmers, physicochemical, protein
from fuda.features.sets import FEATURE_SETS, PAPER_SETS, extract, spelling, text, word
from fuda.features.structure import pairs_template, structure_columns, structure_template
from fuda.features.templates import Template
from fuda.features.votes import text_and_votes, text_votes

__all__ = [
    "FEATURE_SETS", "PAPER_SETS", "Template", "blosum62", "dna", "extract", "kmers", "pairs_template",
    "physicochemical", "protein", "spelling", "structure_columns", "structure_template", "text",
    "text_and_votes", "text_votes", "word",
]  # fmt: skip
