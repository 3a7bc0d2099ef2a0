"""Labels: strings that are not empty, or integers; None is a label not known."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.errors import DataError, described

Label = Any  # str or int; None where the label is not known


def plain_label(label: Any) -> Label:
    """A label as Python's own str, int or None; the error does not say where it stands.

    >>> plain_label(np.int64(3)), plain_label(np.str_("O")), plain_label(None)
    (3, 'O', None)
    """
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, str) and label:
        return str(label)
    if label is None or type(label) is int:
        return label
    raise DataError(
        f"its label is {described(label)}; labels are integers or strings that are not empty, and None where "
        "not known"
    )
