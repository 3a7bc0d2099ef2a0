"""The encoder for the parameters `features` and `window` of a model."""

from __future__ import annotations

from typing import Any

from fuda.data.template_encoding import TemplateEncoder
from fuda.data.window_encoding import WindowEncoder
from fuda.features.templates import Template


def make_encoder(features: Any, window: int) -> WindowEncoder | TemplateEncoder:
    """Return an encoder for a template, or for a feature set or function and a window."""
    return TemplateEncoder(features) if isinstance(features, Template) else WindowEncoder(features, window)
