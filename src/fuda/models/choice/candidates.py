"""The table of the candidates of `fuda.Auto`, by the kind of data.

A row is a name, a learner and its parameters. The first row of a kind is the default, which takes
part until the end. The others follow in the order of their expected scores, since time may not
suffice for all. `QUICK` has parameters with which slow learners are compared, and how many times
longer a fit takes without them.

========  =============================================================================
kind      observations
========  =============================================================================
text      words and other tokens, with or without further columns
protein   residues: single letters, the codes of amino acids
dna       bases: single letters A, C, G, T, U, N in upper or lower case
features  dicts, lists or sets of features, numbers, and the features of a user's function
vector    dense vectors
========  =============================================================================
"""

from __future__ import annotations

from typing import Any

from fuda.data.corpus import Corpus
from fuda.features.residues import BASES, RESIDUES
from fuda.features.structure import pairs_template
from fuda.kernels import RBF, Polynomial
from fuda.registry import model_class
from fuda.selection.search import Candidate

_LINEAR, _SQUARE = Polynomial(1).normalized(), Polynomial(2).normalized()

# Single residues contain little information: with small kernels and C, margins are violated, and
# training ends soon.
_SOFT = {"kernel": Polynomial(2, scale=0.1), "C": 0.05, "rescale": True, "tol": 0.05}
# For the marginalized kernel, whose k_x follows from features and shape.
_TEXT = {"features": "text"}
Row = tuple[str, str, dict[str, Any]]
TABLE: dict[str, list[Row]] = {
    "text": [
        ("crf l2=0.3", "CRF", {"l2": 0.3}),
        ("hm-svm", "HMSVM", {"tol": 0.01}),
        ("semi-crf", "SemiCRF", {}),
        ("crf word classes", "CRF", {"l2": 0.3}),
        ("crf window=2", "CRF", {"window": 2, "l2": 0.3}),
        ("crf l2=1", "CRF", {"l2": 1.0}),
        ("hm-perceptron", "HMPerceptron", {}),
        ("crf l2=0.1", "CRF", {"l2": 0.1}),
        ("marginalized text", "MarginalizedPerceptron", _TEXT),
        ("marginalized spelling", "MarginalizedPerceptron", {"features": "spelling"}),
        ("crf pointwise l2=0.3", "CRF", {"loss": "pointwise", "l2": 0.3}),
        ("crf l2=3", "CRF", {"l2": 3.0}),
        ("crf spelling", "CRF", {"features": "spelling"}),
        ("marginalized prior", "MarginalizedPerceptron", _TEXT | {"prior": "crf"}),
    ],
    "protein": [
        ("crf window=7", "CRF", {"features": "protein", "window": 7}),
        ("crf pairs l2=100", "CRF", {"features": pairs_template(), "l2": 100.0}),
        ("crf window=3", "CRF", {"features": "protein", "window": 3}),
        ("crf pointwise window=7", "CRF", {"features": "protein", "window": 7, "loss": "pointwise"}),
        ("crf window=7 l2=10", "CRF", {"features": "protein", "window": 7, "l2": 10.0}),
        ("crf window=12 l2=3", "CRF", {"features": "protein", "window": 12, "l2": 3.0}),
        ("hm-perceptron window=7", "HMPerceptron", {"features": "protein", "window": 7}),
        ("hm-svm degree 2", "HMSVM", {"features": "word", "window": 6} | _SOFT),
        ("marginalized", "MarginalizedPerceptron", {"features": "protein"}),
    ],
    "dna": [
        ("crf window=6", "CRF", {"features": "dna", "window": 6}),
        ("crf window=3", "CRF", {"features": "dna", "window": 3}),
        ("crf pointwise window=6", "CRF", {"features": "dna", "window": 6, "loss": "pointwise"}),
        ("crf window=12", "CRF", {"features": "dna", "window": 12}),
        ("hm-perceptron window=6", "HMPerceptron", {"features": "dna", "window": 6}),
        ("hm-svm degree 2", "HMSVM", {"features": "dna", "window": 3, "kernel": Polynomial(2)}),
        ("marginalized", "MarginalizedPerceptron", {"features": "dna"}),
    ],
    "features": [
        ("crf", "CRF", {}),
        ("crf l2=0.3", "CRF", {"l2": 0.3}),
        ("hm-svm", "HMSVM", {"tol": 0.01}),
        ("marginalized degree 1", "MarginalizedPerceptron", {"kernel": _LINEAR}),
        ("hm-perceptron", "HMPerceptron", {}),
        ("crf pointwise", "CRF", {"loss": "pointwise"}),
        ("crf l2=0.1", "CRF", {"l2": 0.1}),
        ("crf l2=3", "CRF", {"l2": 3.0}),
        ("marginalized", "MarginalizedPerceptron", {}),
        ("crf window=1", "CRF", {"window": 1}),
        ("hm-svm degree 2", "HMSVM", {"kernel": Polynomial(2)}),
    ],
    "vector": [
        ("crf", "CRF", {}),
        ("crf window=0", "CRF", {"window": 0}),
        ("marginalized", "MarginalizedPerceptron", {}),
        ("crf l2=0.1", "CRF", {"l2": 0.1}),
        ("hm-perceptron degree 2", "HMPerceptron", {"kernel": _SQUARE, "window": 0}),
        ("hm-svm degree 3", "HMSVM", {"kernel": Polynomial(3).normalized(), "window": 0}),
        ("marginalized rbf", "MarginalizedPerceptron", {"kernel": RBF(0.1)}),
        ("crf l2=10", "CRF", {"l2": 10.0}),
    ],
}

# The names of candidates that are combined with others only if that is proved to be better: scores
# of perceptrons are not probabilities, and weights of a few features learned from one text are
# less accurate on other texts than on folds of the same text.
ON_PROOF = ("hm-perceptron", "marginalized spelling", "marginalized prior")

# The names of candidates that are good together on most text: with few sentences the best of them
# is so by chance, and a combination of three is better than the best one. The data decide between
# the teams: candidates with different mistakes are worth more in combination, if a wide window and
# classes of words help at all.
TEAMS = (("crf l2=0.3", "hm-svm", "semi-crf"), ("crf window=2", "hm-svm", "crf word classes"))

# The name of the candidate that learns classes and vectors of words from the text itself.
WITH_CLASSES = "crf word classes"

# By learner: its parameters during the comparison, and how many times longer it takes without.
QUICK: dict[str, tuple[dict[str, Any], float]] = {"MarginalizedPerceptron": ({"orders": 2}, 2.0)}


def kind_of(corpus: Corpus) -> str:
    """The kind of the observations of a corpus, a key of `TABLE`.

    Parameters
    ----------
    corpus : Corpus
        The structures.

    Returns
    -------
    str
        The kind.
    """
    if corpus.kind.name not in ("text", "columns"):
        return "vector" if corpus.kind.name == "vector" else "features"
    if corpus.kind.name == "columns" or not all(len(x) == 1 for x in corpus.observations):
        return "text"
    letters = set(corpus.observations)
    if {letter.upper() for letter in letters} <= BASES:
        return "dna"
    return "protein" if letters <= RESIDUES else "text"


def candidates_for(corpus: Corpus, features: Any = None) -> list[Candidate]:
    """The candidates for a corpus.

    Parameters
    ----------
    corpus : Corpus
        The structures; only learners that take their shape are listed.
    features : Template, callable or str, optional
        Features to use in place of those of the table.

    Returns
    -------
    list of Candidate
        The default first.
    """
    candidates = []
    for name, learner, row_parameters in TABLE["features" if features is not None else kind_of(corpus)]:
        cls, learns_words = model_class(learner), name == WITH_CLASSES
        if corpus.shape not in cls._shapes or (learns_words and corpus.vectors is not None):
            continue
        parameters = dict(row_parameters) if features is None else row_parameters | {"features": features}
        if parameters.get("prior") == "crf":
            if corpus.shape == "dag":
                continue
            parameters["prior"] = model_class("CRF")()
        quick = QUICK.get(learner, ({}, 1.0))
        joins = not name.startswith(ON_PROOF)
        teams = tuple(k for k, team in enumerate(TEAMS) if features is None and name in team)
        candidates.append(Candidate(name, cls(**parameters), *quick, joins, learns_words, teams))
    return candidates
