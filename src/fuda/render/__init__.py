"""Structures, labels, explanations and reports as HTML, SVG and text for terminals.

``Display`` shows structures with labels; explanations and evaluation reports show themselves in a
notebook. ``page`` makes a page of any of them that loads nothing and runs nothing.
"""

from __future__ import annotations

from fuda.render.display import Display
from fuda.render.style import page

__all__ = ["Display", "page"]
