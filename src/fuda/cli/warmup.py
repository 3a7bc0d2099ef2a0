"""fuda warmup: compile ahead, so that no later command or program waits for it."""

from __future__ import annotations

import time
import warnings
from typing import Any

import click

from fuda.cli import options
from fuda.cli.values import LEARNERS, parameter
from fuda.progress import stage
from fuda.registry import model_class

_EXAMPLES = """\b
Examples:
  fuda warmup
  fuda warmup crf marginalized
"""
_WORDS = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big", "and", "old"], ["Bo", "left", "Lima"]] * 2
_LABELS = [["PER", "O", "O", "LOC"], ["LOC", "O", "O", "O", "O"], ["PER", "O", "LOC"]] * 2
# Parameters under which a learner runs other compiled code.
_VARIANTS = {
    "crf": ["", "loss=pointwise", "l1=0.1", "pair_features=true", "solver=cg", "solver=sgd"],
    "memm": ["", "decode=posterior"],
    "hm-perceptron": [
        "",
        "order=2",
        "update=arow",
        "kernel=polynomial(2)",
        "kernel=rbf(0.1)",
        "average=voted",
    ],
    "hm-svm": ["", "kernel=rbf(0.1)", "slack=l2", "rescale=true"],
    "marginalized": [
        "",
        "decode=viterbi",
        "gap=0.5",
        "parts=lines",
        "parts=sided-paths",
        "prior=crf",
        "prior=crf prior_form=chain",
    ],
    "reranker": ["folds=2"],
}


@click.command(epilog=_EXAMPLES)
@click.argument("learners", nargs=-1, metavar="[LEARNER]...", type=click.Choice(list(LEARNERS)))
def warmup(learners: tuple[str, ...]) -> None:
    """Compile ahead what learners need; by default all of them.

    Code is compiled when it is first used and kept on disk for all later runs. In a container,
    run this when the image is made, with NUMBA_CACHE_DIR set to a folder of the image.
    """
    chosen, began = learners or tuple(LEARNERS), time.perf_counter()
    for learner in chosen:
        with stage(f"compiling {learner}"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence, on data this small
            for variant in _VARIANTS.get(learner, [""]):
                texts = dict(text.split("=", 1) for text in variant.split())
                run(learner, {name: parameter(name, text) for name, text in texts.items()})
    seconds = time.perf_counter() - began
    click.echo(f"compiled: {options.counted(len(chosen), 'learner')} in {seconds:.1f} s", err=True)


def run(learner: str, parameters: dict[str, Any]) -> None:
    """Fit and use a learner on small structures of every shape that it takes."""
    from fuda.data.structures import Dag, Tree

    cls = model_class(LEARNERS[learner])
    shapes: dict[str, list[Any]] = {
        "sequence": _WORDS,
        "tree": [Tree(x, [-1, *[0] * (len(x) - 1)]) for x in _WORDS],
        "dag": [Dag(x, [(0, t) for t in range(1, len(x))]) for x in _WORDS],
    }
    chains_only = parameters.keys() & {"gap", "prior_form"}
    trees_only = "parts" in parameters
    for shape, X in shapes.items():
        of_markov = shape == "dag" and parameters.keys() & {"decode", "prior"}
        if shape not in cls._shapes or (chains_only and shape != "sequence") or of_markov:
            continue
        if trees_only and shape != "tree":
            continue
        model = cls(**parameters).fit(X, _LABELS)
        model.predict(X)
        higher = parameters.get("order", 1) > 1
        if hasattr(model, "predict_marginals") and not higher:
            model.predict_marginals(X)
        if hasattr(model, "predict_nbest") and not higher:
            model.predict_nbest(X, 2)
        if hasattr(model, "partial_fit"):
            model.partial_fit(X[:1], _LABELS[:1])
