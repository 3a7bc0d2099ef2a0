"""The papers' experiments, run again and printed beside the papers' numbers: one module a paper."""
