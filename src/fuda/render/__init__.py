"""Structures, labels and tables as HTML, SVG and text."""
