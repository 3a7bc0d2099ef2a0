"""Features of secondary structure: residues, pairs of them, and how amphipathic a run of them is.

A helix that is half buried has hydrophobic residues on one side, every 3.6 residues, a strand
every second one. The *hydrophobic moment* (D. Eisenberg, R. M. Weiss, T. C. Terwilliger,
Nature 299 (1982) 371) of the w residues to each side of t measures it, with h the hydropathies
less their mean:

    μ_t(angle) = |Σ_{|d| ≤ w} h_{t+d} exp(i angle d)| / number of residues,

with 100° for helices and 170° for strands. It is not a sum over single residues, so a window of
residues cannot express it, and pairs of residues only in part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuda.features.residues import PROPERTIES, properties_of
from fuda.features.templates import Template

_MOMENTS = (
    (5, 100),
    (4, 170),
    (8, 100),
    (3, 100),
    (3, 170),
)  # for each moment: residues to each side, and the angle
_MEANS = ("hydropathy", "helix", "strand", "turn")
_SIDE = 3  # the number of residues to each side in means
_WIDTHS = (0.1, 0.25)  # the widths of the classes of moments and of means
_LARGEST = (7, 6)  # the largest class of moments and of means


def structure_columns(residues: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the observations of a protein for `structure_template`.

    Parameters
    ----------
    residues : sequence of str
        The residues of a chain, as a text or a list.

    Returns
    -------
    list of tuple of str
        For each residue itself, the classes of five hydrophobic moments, and those of the mean
        hydropathy and propensities of helix, strand and turn.

    Examples
    --------
    >>> structure_columns("MKVLA")[0]
    ('M', '5', '4', '5', '7', '5', '2', '3', '1', '-4')
    """
    table = np.array([properties_of(residue) for residue in residues]).reshape(-1, len(PROPERTIES))
    hydropathy = table[:, PROPERTIES.index("hydropathy")]
    moments = np.array([_moment(hydropathy, side, angle) for side, angle in _MOMENTS]).T
    means = np.array([_window_mean(table[:, PROPERTIES.index(name)], _SIDE) for name in _MEANS]).T
    classes = [
        np.clip(np.floor(values / width), -largest, largest).astype(int)
        for values, width, largest in zip((moments, means), _WIDTHS, _LARGEST, strict=True)
    ]
    rows = np.hstack(classes).tolist()
    return [(a, *map(str, row)) for a, row in zip(residues, rows, strict=True)]


def structure_template(window: int = 8, pairs: int = 5, distance: int = 4) -> Template:
    """Return the template of features for secondary structure.

    Parameters
    ----------
    window : int, default=8
        Residues to each side that are seen one by one.
    pairs : int, default=5
        Residues to each side that are seen in pairs.
    distance : int, default=4
        How far apart the residues of a pair are at most.

    Returns
    -------
    Template
        Over the columns of `structure_columns`. It has many rare features, which ask for a large
        weight of ‖w‖², such as ``CRF(l2=100)``.

    Examples
    --------
    >>> from fuda import CRF
    >>> X, y = [structure_columns("MKVLA")], [["C", "H", "H", "H", "C"]]
    >>> CRF(features=structure_template(), l2=1.0).fit(X, y).predict(X)[0]
    ['C', 'H', 'H', 'H', 'C']
    """
    context = [_cell(0, column) for column in range(1, 1 + len(_MOMENTS) + len(_MEANS))]
    return _template([*_singles_and_pairs(window, pairs, distance), *context])


def pairs_template(window: int = 8, pairs: int = 5, distance: int = 4) -> Template:
    """Return the template of residues and pairs of residues, for chains as they are.

    Parameters
    ----------
    window : int, default=8
        Residues to each side that are seen one by one.
    pairs : int, default=5
        Residues to each side that are seen in pairs.
    distance : int, default=4
        How far apart the residues of a pair are at most.

    Returns
    -------
    Template
        What `structure_template` sees of residues. It asks for a large weight of ‖w‖² too.

    Examples
    --------
    >>> from fuda import CRF
    >>> model = CRF(features=pairs_template(), l2=100.0)
    """
    return _template(_singles_and_pairs(window, pairs, distance))


def _singles_and_pairs(window: int, pairs: int, distance: int) -> list[str]:
    """The lines of residues and of pairs of residues."""
    offsets = range(-pairs, pairs + 1)
    near = [(a, b) for a in offsets for b in offsets if 0 < b - a <= distance]
    singles = [_cell(offset) for offset in range(-window, window + 1)]
    return [*singles, *(f"{_cell(a)}/{_cell(b)}" for a, b in near)]


def _template(lines: Sequence[str]) -> Template:
    """The template of some lines, and of label pairs."""
    return Template("\n".join(f"U{i:03d}:{line}" for i, line in enumerate(lines)) + "\nB\n")


def _cell(offset: int, column: int = 0) -> str:
    """A cell of a template."""
    return f"%x[{offset},{column}]"


def _moment(values: np.ndarray, side: int, angle: float) -> np.ndarray:
    """The hydrophobic moment around each residue."""
    inside = _windows(np.ones(len(values)), side)
    counts = inside.sum(axis=1, keepdims=True)
    seen = _windows(values, side)
    centred = (seen - seen.sum(axis=1, keepdims=True) / counts) * inside
    turns = np.deg2rad(angle) * np.arange(-side, side + 1)
    return np.hypot(centred @ np.cos(turns), centred @ np.sin(turns)) / counts[:, 0]


def _window_mean(values: np.ndarray, side: int) -> np.ndarray:
    """The mean around each residue."""
    return _windows(values, side).sum(axis=1) / _windows(np.ones(len(values)), side).sum(axis=1)


def _windows(values: np.ndarray, side: int) -> np.ndarray:
    """The values around each residue, 0 past the ends."""
    return np.lib.stride_tricks.sliding_window_view(np.pad(values, side), 2 * side + 1)
