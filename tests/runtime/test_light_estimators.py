"""Without scikit-learn: parameters, copies and texts of models are those that it gives."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import copy, re, sys
from fuda.runtime import light_estimators
light_estimators.in_use = sys.argv[1] == "light"
from fuda.runtime.estimators import check_is_fitted, check_random_state, clone
from fuda import CRF, HMM, HMPerceptron, MarginalizedPerceptron, Reranker, Template
from fuda.kernels import Polynomial
import numpy as np

X, y = [["a", "b"], ["b"]], [["1", "2"], ["2"]]
drawn = np.random.RandomState(3)
for model in [CRF(), CRF(l2=0.5, features=Template("U:%x[0,0]\\nB")), HMPerceptron(Polynomial(3), order=2),
              MarginalizedPerceptron(prior=CRF(l1=0.1)), Reranker(base=HMM(smoothing=2.0)),
              HMPerceptron(random_state=drawn)]:
    other = clone(model)
    print(*(re.sub("0x.*", "", repr(m)) for m in (model, other)), sorted(model.get_params(deep=False)))
    print([getattr(other, name) is value for name, value in sorted(model.get_params(deep=False).items())])
    assert not hasattr(other, "classes_")
fitted = HMM().fit(X, y)
print(clone(fitted).get_params(), hasattr(clone(fitted), "classes_"), copy.copy(fitted).predict(X))
print(check_random_state(5).rand(), check_random_state(drawn) is drawn)
try:
    HMM().predict(X)
except Exception as error:
    print(type(error).__name__, error)
print("sklearn.base" in sys.modules)
"""


def printed(kind: str) -> list[str]:
    line = [sys.executable, "-c", CODE, kind]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_same_as_with_scikit_learn():
    assert printed("light")[:-1] == printed("whole")[:-1]
