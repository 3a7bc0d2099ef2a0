"""The learning curve during labelling, and the expected gain of labelling more structures.

m_i of the N_i labels of the i-th labelled structure were predicted wrong just before it was
learned. The share of wrong predictions falls as a power of the number of structures, as most
learning curves do:

    E[m_i] = N_i e(i),    log e(i) = a − b log i.

This holds for a section of the curve only, since some mistakes never disappear: a and b maximize
the likelihood of the later two thirds of the structures, with Poisson-distributed m_i. Errors
cluster, so the variances of a and b are not those of the Poisson distribution, but are estimated
from the residuals: the sandwich estimate H⁻¹ (Σ g_i g_iᵀ) H⁻¹, with g_i the gradient of structure
i, divided by one minus its leverage. The gain of k more structures is e(n) − e(n+k); its band has
the quantiles over (a, b) drawn from the normal distribution with these variances. More structures
are assumed not to make predictions worse: a negative gain is set to 0.

For entities, J is the share of right predictions among the entities that the model predicted or a
person labelled, so that it can be treated like a share of labels; F1 = 2 J / (1 + J) is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray

# With fewer structures or mistakes, nothing is estimated.
_FEWEST, _FEWEST_WRONG = 20, 5
# The share of the first structures that are left out.
_LEFT_OUT = 1 / 3
# The share of draws beyond each end of a band of 90 %, and the normal quantile of that share.
_SIDE, _Z = 0.05, 1.6449
# The number of draws of (a, b).
_DRAWS = 2_000
# The largest number of Newton steps.
_STEPS = 50
# If the upper end of the band is below this, the text says that hardly anything will change.
_LITTLE = 0.005


class Point(NamedTuple):
    """The share of labels predicted right, or F1, around the n-th structure, with a band of 90 %.

    Parameters
    ----------
    n : int
        The number of structures labelled by then.
    accuracy, low, high : float
        The share, or F1, and its band.

    Examples
    --------
    >>> learning_curve([8], [10])[0].accuracy
    0.8
    """

    n: int
    accuracy: float
    low: float
    high: float


class Outlook(NamedTuple):
    """What labelling more structures will bring.

    Parameters
    ----------
    next : int
        How many more.
    gain, low, high : float
        The expected increase of the share of labels predicted right, or of F1, with a band of
        90 %.
    text : str
        The same in words.

    Examples
    --------
    >>> right = [10 - round(10 / n**0.5) for n in range(1, 101)]
    >>> found = outlook(right, [10] * 100)
    >>> found.next, round(found.gain, 3)
    (50, 0.021)
    """

    next: int
    gain: float
    low: float
    high: float
    text: str


def learning_curve(
    right: Sequence[int], total: Sequence[int], window: int = 25, *, f1: bool = False
) -> list[Point]:
    """Return how the share of labels that were predicted right, or F1 over entities, developed.

    Parameters
    ----------
    right, total : sequence of int
        For each structure in the order of labelling: how many of its labels the model had
        predicted right before it was taught them, and how many labels it has.
    window : int, default=25
        A point sums over so many structures, up to its own.
    f1 : bool, default=False
        Whether F1 is wanted; `total` then counts the entities that were predicted, taught or
        both, and `right` those that were both.

    Returns
    -------
    list of Point
        One per structure that has labels.

    Examples
    --------
    >>> [point.accuracy for point in learning_curve([1, 4, 5], [5, 5, 5], window=2)]
    [0.2, 0.5, 0.9]
    """
    sums = np.cumsum(np.array([[0, 0], *zip(right, total, strict=True)], dtype=np.float64), axis=0)
    points = []
    for n in range(1, len(sums)):
        window_right, window_total = sums[n] - sums[max(0, n - window)]
        if total[n - 1] > 0:
            share, (low, high) = window_right / window_total, _wilson(window_right, window_total)
            values = [_f1(value) if f1 else float(value) for value in (share, low, high)]
            points.append(Point(n, values[0], min(values), max(values)))
    return points


def outlook(
    right: Sequence[int], total: Sequence[int], ahead: int = 50, *, f1: bool = False
) -> Outlook | None:
    """Estimate what labelling more structures will bring.

    Parameters
    ----------
    right, total : sequence of int
        As of `learning_curve`.
    ahead : int, default=50
        How many more structures.
    f1 : bool, default=False
        As of `learning_curve`.

    Returns
    -------
    Outlook or None
        None if there are fewer than 20 structures, or hardly any mistakes.

    Examples
    --------
    >>> right = [10 - round(10 / n**0.5) for n in range(1, 101)]
    >>> found = outlook(right, [10] * 100)
    >>> found.low < found.gain < found.high
    True
    >>> found.text
    'the next 50 should bring 2.1 more right labels in 100 (1.8 to 2.3)'
    """
    sizes = np.array(total, dtype=np.float64)
    wrong = sizes - np.array(right, dtype=np.float64)
    if len(sizes) < _FEWEST:
        return None
    n, first = len(sizes), int(len(sizes) * _LEFT_OUT)
    sizes, wrong, logs = sizes[first:], wrong[first:], np.log(np.arange(first + 1.0, n + 1))
    if wrong.sum() < _FEWEST_WRONG:
        return None
    middle = logs.mean()  # centred at it, a and b are nearly independent
    design = np.column_stack([np.ones(len(logs)), logs - middle])
    fitted = _fitted(design, wrong, sizes)
    mean = sizes * np.exp(design @ fitted)
    inverse = np.linalg.inv(design.T @ (design * mean[:, None]))
    leverage = mean * np.einsum("ij,jk,ik->i", design, inverse, design)
    gradients = design * ((wrong - mean) / (1 - leverage))[:, None]
    covariance = inverse @ (gradients.T @ gradients) @ inverse
    draws = np.random.RandomState(0).multivariate_normal(fitted, covariance, _DRAWS)
    now_and_later = np.array([[1.0, math.log(n) - middle], [1.0, math.log(n + ahead) - middle]])

    def gains(parameters: Array) -> Array:
        right_then = 1 - np.minimum(1.0, np.exp(parameters @ now_and_later.T))
        now, later = (_f1(right_then) if f1 else right_then).T
        return np.maximum(0.0, later - now)

    low, high = np.quantile(gains(draws), [_SIDE, 1 - _SIDE]).tolist()
    gain = float(gains(fitted[None])[0])
    what = "points of F1" if f1 else "right labels in 100"
    return Outlook(ahead, gain, low, high, _in_words(ahead, gain, low, high, what))


def _fitted(design: Array, wrong: Array, sizes: Array) -> Array:
    """The parameters of largest likelihood, by Newton's method with halved steps where needed."""
    parameters = np.array([math.log(wrong.sum() / sizes.sum()), 0.0])

    def likelihood(candidate: Array) -> float:
        logs = design @ candidate
        return float(wrong @ logs - sizes @ np.exp(logs))

    for _ in range(_STEPS):
        mean = sizes * np.exp(design @ parameters)
        gradient = design.T @ (wrong - mean)
        step = np.linalg.solve(design.T @ (design * mean[:, None]), gradient)
        while likelihood(parameters + step) < likelihood(parameters) and np.abs(step).max() > 1e-9:
            step = step / 2
        parameters = parameters + step
        if np.abs(step).max() < 1e-9:
            break
    return parameters


def _wilson(right: float, total: float) -> tuple[float, float]:
    """The Wilson interval of a share."""
    share, z2 = right / total, _Z**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = _Z / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def _f1(share: Any) -> Any:
    """F1, from the share of the entities of either side that both sides have."""
    return 2 * share / (1 + share)


def _in_words(ahead: int, gain: float, low: float, high: float, what: str) -> str:
    if high < _LITTLE:
        return f"the next {ahead} will hardly change anything"
    return f"the next {ahead} should bring {100 * gain:.1f} more {what} ({100 * low:.1f} to {100 * high:.1f})"
