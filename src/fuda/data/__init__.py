"""Structures, labels, observations, packed corpora and their encodings."""
