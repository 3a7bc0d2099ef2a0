"""The embedded corpus, read once for all tests that do not change it."""

from __future__ import annotations

from functools import cache

from fuda.datasets import load_product_usage

usage = cache(load_product_usage)
