"""Parameters that a model lacks but people type out of habit, and what to write instead."""

from __future__ import annotations

_OF_CRFSUITE = {
    "algorithm": "choose solver= of CRF (lbfgs, cg, sgd), or update= of HMPerceptron for ap, pa and arow",
    "c1": "l1 is CRFsuite's c1",
    "c2": "l2 is CRFsuite's c2",
    "max_iterations": "max_iter is the number of iterations, and epochs that of a perceptron",
    "epsilon": "tol decides when training ends",
    "delta": "tol decides when training ends",
    "all_possible_states": "all pairs of feature and label have weights",
    "all_possible_transitions": "all pairs of labels have weights",
    "model_filename": "save writes a model, and fuda.load reads it",
}
_OF_SCIKIT_LEARN = {
    "class_weight": "it learns from structures as a whole, which sample_weight weighs; labels have weights "
    "in CRF(loss='pointwise' or 'markov'), MEMM, HMM, HMSVM(rescale=True) and the marginalized models"
}
FOREIGN_PARAMETERS = _OF_SCIKIT_LEARN | {
    name: f"{hint}; fuda.compat.sklearn_crfsuite.CRF takes the parameters of sklearn-crfsuite"
    for name, hint in _OF_CRFSUITE.items()
}
