"""sklearn-crfsuite's interface: ``import fuda.compat.sklearn_crfsuite as sklearn_crfsuite``.

`CRF`, `metrics` and `scorers` have the names, parameters and attributes of sklearn-crfsuite 0.5.
`attributes` names the attributes of items as python-crfsuite does.
"""

from __future__ import annotations

from fuda.compat.sklearn_crfsuite import metrics, scorers
from fuda.compat.sklearn_crfsuite.estimator import CRF
from fuda.compat.sklearn_crfsuite.items import attributes

__all__ = ["CRF", "attributes", "metrics", "scorers"]
