"""What c does: label F1, and the length of matches, as c grows.

Draws docs/models/mixing.png (extra ``plots``).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from common import load
from fuda import MarginalizedPerceptron
from fuda.data.structures import Sequence
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import Polynomial
from fuda.kernels.points import points
from fuda.metrics import label_scores

SENTENCES, FOLDS, SAMPLE = 300, 5, 60
MIXING = np.array([0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 2.4, 2.7, 3.0, 3.5, 4.2, 5.0, 6.0, 8.0])
SIZES = ((1, 1), (2, 3), (4, 10), (11, 10_000))
DRAWN_TO = Path(__file__).resolve().parents[1] / "docs" / "models" / "mixing.png"


def f1(mixing: float) -> float:
    """Mean label F1 over folds of the first sentences, uniform prior, one order."""
    X, y = (part[:SENTENCES] for part in load("esp.train"))
    scores = []
    for fold in np.array_split(np.arange(SENTENCES), FOLDS):
        rest = np.setdiff1d(np.arange(SENTENCES), fold)
        model = MarginalizedPerceptron(mixing=mixing, calibrate=False)
        model.fit([X[i] for i in rest], [y[i] for i in rest])
        scores.append(label_scores([y[i] for i in fold], model.predict([X[i] for i in fold])).micro.f1)
    return 100 * float(np.mean(scores))


def shares(mixing: float, labels: int = 9) -> list[float]:
    """Of matches between different sentences, by weight: how much has so many nodes (SIZES)."""
    X = load("esp.train")[0][:SAMPLE]
    encoded = WindowEncoder("spelling", 0).fit([Sequence(x) for x in X])
    values = mixing**2 / labels * Polynomial(2).normalized().gram(points(encoded), points(encoded))
    types = encoded.corpus.split(encoded.corpus.types)
    totals = np.zeros(max(map(len, X)) + 1)
    for i, a in enumerate(types):
        for b in types[:i]:
            # products along diagonals of `size` cells, by their last cell
            runs, size = values[np.ix_(a, b)], 1
            while runs.size and runs.max() > 0:
                totals[size] += size * runs.sum()  # a run of n nodes has n points
                runs = runs[:-1, :-1] * values[np.ix_(a, b)][size:, size:]
                size += 1
    return [float(totals[first : last + 1].sum() / totals.sum()) for first, last in SIZES]


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), constrained_layout=True)
    left.plot(MIXING, [f1(c) for c in MIXING.tolist()], "o-", color="#1f4e79", markersize=4)
    left.set(xlabel="mixing c", ylabel="label F1", title="300 Spanish sentences, five folds")
    parts = np.array([shares(c) for c in MIXING.tolist()]).T
    names = ["1 node", "2–3 nodes", "4–10 nodes", "more"]
    colors = ["#dbe7f3", "#9dbfdd", "#4f81b0", "#1f4e79"]
    right.stackplot(MIXING, 100 * parts, labels=names, colors=colors)
    right.set(
        xlabel="mixing c", ylabel="% of all matches", title="What matches weigh, by their size", ylim=(0, 100)
    )
    right.legend(loc="lower left", fontsize=8)
    for axis in (left, right):
        axis.axvline(3.0, color="black", linestyle=":", linewidth=1)
        axis.set_xlim(MIXING[0], MIXING[-1])
    left.annotate("mixing=None", (3.05, left.get_ylim()[0]), fontsize=8, va="bottom")
    figure.savefig(DRAWN_TO, dpi=110)


if __name__ == "__main__":
    draw()
