"""Functions from nodes to label scores in the space of a kernel, by expansion or by explicit features."""
