"""The state of a labeler with the marginalized kernel in model files.

The structures of the support and of the memory of corrections, with priors, and for all of their
nodes α and, where there is a memory, its coefficients; the margins of clear cases, where
`prune` chose some. Files up to version 2 have one margin in place of those of stages and labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fuda.checks import check_arrays, is_number
from fuda.errors import DataError
from fuda.kernels import check_kernel
from fuda.marginalized.calibration import Calibration
from fuda.marginalized.kernel import MIXING
from fuda.marginalized.priors import Prior
from fuda.marginalized.problem import Examples
from fuda.marginalized.pruning_stages import NEVER, REACHES
from fuda.marginalized.support import Support, supports
from fuda.models import priors
from fuda.models.base import Labeler
from fuda.models.machines.checks import check_fits
from fuda.models.priors import PriorSource
from fuda.storage import structures as stored_structures

Model = Any  # a `fuda.models.marginalized.MarginalizedLabeler`, which imports this module
Array = np.ndarray
_OF_STRUCTURES = ("offsets", "types", "edges")


def arrays_of(model: Model) -> dict[str, Array]:
    """Return the arrays of a model file by name."""
    fitted, support, memory = model._calibration, model._support, model._memory
    arrays = stored_structures.pack(model.support_structures_)[1]
    arrays |= {"mixing": np.array([model.mixing_])}
    if model.margins_ is not None:
        arrays["margins"] = model.margins_
    whole = "joint" if fitted.by_labelings else "whole"
    arrays |= {"point": fitted.point, whole: fitted.labeling_coefficients, "pairs": fitted.pairs}

    def stacked(rows: list[Array], ndim: int = 2) -> Array:
        return np.concatenate([np.empty((0, *[len(model.classes_)] * (ndim - 1))), *rows])

    alphas = [[part.alpha for part in parts] for parts in (support, memory)]
    zeros = [[np.zeros_like(alpha) for alpha in part] for part in alphas]
    arrays["alpha"] = stacked([*alphas[0], *zeros[1]])
    if memory:
        arrays["memory"] = stacked([*zeros[0], *alphas[1]])
    if model.prior_source_.source != priors.UNIFORM:
        for name in ("nodes", "before", "after"):
            rows = [getattr(part.examples.prior, name) for part in (*support, *memory)]
            if name == "nodes" or model.prior_source_.form == "chain":
                arrays[f"prior_{name}"] = stacked(rows, 2 if name == "nodes" else 3)
    return arrays


def restore(model: Model, arrays: dict[str, Array], texts: list[str], prior: Labeler | None) -> None:
    """Restore a model from what its file contains; raises DataError where that is not usable."""
    structures = stored_structures.unpack(texts, arrays, model.shape_)
    source: Any = prior
    if source is None:
        source = model.prior if isinstance(model.prior, str) else priors.GIVEN
    if prior is not None and model.shape_ not in prior._shapes:
        raise DataError(f"its prior, a {type(prior).__name__}, does not label {model.shape_}s")
    _check(model, arrays, source)
    model.mixing_ = float(arrays["mixing"][0])
    priors.check_prior(source, model.prior_form)
    model.prior_source_ = PriorSource(source, model.prior_form, model.classes_.tolist())
    model._resolve_parameters()
    whole = _whole(arrays)
    model._calibration = Calibration(arrays["point"], arrays[whole], arrays["pairs"], whole == "joint")
    model._support, model._memory = [], []
    model.margins_ = _margins(arrays, len(model.classes_))
    if not structures:
        return
    encoded = model.encoder_.encode(structures)
    check_fits(model, encoded.corpus)
    if source == priors.UNIFORM:
        of_structures = model.prior_source_.prior_of(encoded.corpus)
    else:
        of_structures = Prior(*(arrays.get(f"prior_{name}") for name in ("nodes", "before", "after")))  # type: ignore[arg-type]
        of_structures.check()
    examples = Examples.of(encoded, of_structures)
    check_kernel(model.kernel_, examples.points, encoded.corpus.place_of_type)
    if "memory" in arrays:
        model._support, model._memory = (supports(examples, arrays[name]) for name in ("alpha", "memory"))
    else:
        model._support = [Support(examples, arrays["alpha"])]


def _whole(arrays: dict[str, Array]) -> str:
    """The name of the coefficients of labelings: "joint" if the prior scores whole labelings."""
    return "joint" if "joint" in arrays else "whole"


def _margin_shapes(label_count: int) -> dict[str, tuple[int, ...]]:
    """The shapes of arrays of margins, of which a file has one at most."""
    return {"margin": (1,), "margins": (len(REACHES) - 1, label_count)}


def _margins(arrays: dict[str, Array], label_count: int) -> Array | None:
    """The margins of clear cases.

    With the one margin of earlier versions, nodes up to two away from a narrow one were not clear,
    and now only those next to it: so that as few are clear as before, margins are larger.
    """
    if "margin" in arrays:
        return np.full((len(REACHES) - 1, label_count), (1.0 + arrays["margin"][0]) / 2)
    return arrays.get("margins")


def _check(model: Model, arrays: dict[str, Array], source: Any) -> None:
    """Check the shapes of the arrays, and the numbers that are not coefficients."""
    N, L = int(arrays["offsets"][-1]), len(model.classes_)
    shapes: dict[str, tuple[int, ...]] = {"alpha": (N, L), "mixing": (1,)}
    shapes |= {"point": (2,), _whole(arrays): (3,), "pairs": (L, L)}
    if "memory" in arrays:
        shapes["memory"] = (N, L)
    shapes |= {name: shape for name, shape in _margin_shapes(L).items() if name in arrays}
    if source != priors.UNIFORM:
        shapes["prior_nodes"] = (N, L)
        if model.prior_form == "chain":
            shapes |= {"prior_before": (N, L, L), "prior_after": (N, L, L)}
    check_arrays({name: array for name, array in arrays.items() if name not in _OF_STRUCTURES}, shapes)
    mixing = float(arrays["mixing"][0])
    if not is_number(mixing, *MIXING):
        raise DataError(f"its mixing is {mixing}, not from {MIXING[0]} to {MIXING[1]}")
    for name in _margin_shapes(L).keys() & arrays.keys():
        if (arrays[name] < 0).any() or (arrays[name] > NEVER).any():
            raise DataError(f"its {name} are not from 0 to {NEVER:g}")
    if (arrays["point"] < 0).any() or (arrays[_whole(arrays)] < 0).any():
        raise DataError("its calibration has negative numbers")
