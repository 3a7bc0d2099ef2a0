"""Structures and what models compute with: labels, observations, packed corpora and their encodings."""
