"""Whether one model is better than another by more than chance.

**Paired approximate randomization** is the test that is reported. If two models were equally good,
it would be chance which of their two labelings of a structure came from which. So the labelings of
every structure change places with probability ½, many times, and p is the share of times in which
the difference of scores is at least as large as the observed one [1]_. No assumption is made about
the distribution of scores, F1 included.

**The bootstrap** is used in searches: the standard error of a difference of scores is its standard
deviation over samples of the structures, drawn with replacement.

References
----------
.. [1] A. Yeh. More accurate tests for the statistical significance of result differences.
   COLING 2000.
"""

from __future__ import annotations

import numpy as np

from fuda.selection.goals import Goal, mean_f1

ROUNDS = 9_999
# The largest number of entries of a matrix of exchanges.
_MOST_ENTRIES = 4_000_000


def randomization_test(first: np.ndarray, second: np.ndarray, rounds: int = ROUNDS, seed: int = 0) -> float:
    """Test whether two models have different scores on the same structures.

    Parameters
    ----------
    first, second : ndarray of shape (n_structures, n_classes, 3)
        The counts of both models, by `Goal.counts`.
    rounds : int, default=9999
        How often labelings change places.
    seed : int, default=0
        The seed of the exchanges.

    Returns
    -------
    float
        p, two-sided: (1 + number of differences at least as large) / (1 + rounds).

    Examples
    --------
    >>> right, wrong = np.array([[[1, 1, 1]]] * 20), np.array([[[0, 1, 1]]] * 20)
    >>> randomization_test(right, wrong)
    0.0001
    >>> randomization_test(right, right)
    1.0
    """
    random = np.random.RandomState(seed)
    count, shape = len(first), first.shape[1:]
    change = (second - first).reshape(count, -1).astype(float)
    sums = first.sum(axis=0, dtype=float), second.sum(axis=0, dtype=float)
    observed = abs(mean_f1(sums[0]) - mean_f1(sums[1]))
    reached, left = 0, rounds
    while left:
        size = min(left, max(1, _MOST_ENTRIES // count))
        moved = (random.randint(0, 2, (size, count)) @ change).reshape(size, *shape)
        differences = np.abs(mean_f1(sums[0] + moved) - mean_f1(sums[1] - moved))
        reached += int((differences >= observed - 1e-12).sum())
        left -= size
    return (1 + reached) / (1 + rounds)


def behind(goal: Goal, best: np.ndarray, other: np.ndarray, errors: float = 2.0, rounds: int = 200) -> bool:
    """Whether a candidate's score is lower by more than some standard errors of the difference.

    Parameters
    ----------
    goal : Goal
        The objective.
    best, other : ndarray of shape (n_structures, n_classes, 3)
        Their counts on the same structures.
    errors : float, default=2.0
        How many standard errors.
    rounds : int, default=200
        Bootstrap samples of structures from which the standard error is estimated.

    Returns
    -------
    bool
        Whether it is.
    """
    difference = goal.score(best) - goal.score(other)
    return bool(difference > errors * standard_error(goal, best, other, rounds))


def standard_error(goal: Goal, one: np.ndarray, other: np.ndarray, rounds: int) -> float:
    """The standard error of the difference of two scores on the same structures (bootstrap).

    Parameters
    ----------
    goal : Goal
        The objective.
    one, other : ndarray of shape (n_structures, n_classes, 3)
        The counts.
    rounds : int
        The number of bootstrap samples of structures.

    Returns
    -------
    float
        The standard deviation of the difference over the samples.
    """
    draws = np.random.RandomState(0).multinomial(len(one), np.full(len(one), 1 / len(one)), rounds)
    flat = [counts.reshape(len(counts), -1) for counts in (one, other)]
    scores = [np.array([goal.score((draw @ part).reshape(1, -1, 3)) for draw in draws]) for part in flat]
    return float((scores[0] - scores[1]).std())
