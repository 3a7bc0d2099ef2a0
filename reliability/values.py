"""Values that do not belong where a change puts them, for `reliability.mutations`."""

from __future__ import annotations

from typing import Any

import numpy as np

POLYNOMIAL = {"type": "Polynomial", "degree": 2, "offset": 1.0, "scale": 1.0}

JSON: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 7, 63, 2**31, 2**40, 2**47, 2**48, 2**63, 2**64, 10**30, 10**400,
    -(2**63), 0.5, -0.5, -0.0, 5e-324, 1e-320, 1e-100, 1e100, 1e300, 1.7e308, "", " ", "x", "O", "PER",
    "IOB2", "BILOU", "viterbi", "posterior", "pointwise", "uniform", "given", "chain", "marginals", "voted",
    "word", "text", "spelling", "S3", "vector", "columns", "id", "features", "sequence", "tree", "dag",
    [], {}, [[]], [1, 2], ["a", "b"], [["a"]], "A" * 100_000, "\0", "\ud800", "\n", "__class__", {"": 1},
    {"array": "matrix0"}, {"array": "alpha"}, {"array": ["alpha"]}, {"array": "offsets"}, {"kernel": None},
    {"kernel": POLYNOMIAL}, {"kernel": {"type": "Linear"}}, {"kernel": {"type": "Delta"}},
    {"kernel": {"type": "Constant", "value": 10**400}}, {"kernel": {"type": "Constant", "value": 1e308}},
    {"kernel": {"type": "Constant", "value": -1.0}}, {"kernel": {"type": "Constant", "value": 0}},
    {"kernel": {"type": "Polynomial", "degree": 20, "offset": 1e300, "scale": 1e300}},
    {"kernel": {"type": "Polynomial", "degree": 20, "offset": 1e12, "scale": 1e12}},
    {"kernel": {"type": "Polynomial", "degree": 10**9, "offset": 1.0, "scale": 1.0}},
    {"kernel": {"type": "Polynomial", "degree": 2, "offset": 5e-324, "scale": 5e-324}},
    {"kernel": {"type": "RBF", "gamma": 1e300}}, {"kernel": {"type": "RBF", "gamma": 5e-324}},
    {"kernel": {"type": "RBF", "gamma": "1"}}, {"kernel": {"type": "RBF"}}, {"kernel": {"type": ["Linear"]}},
    {"kernel": {"type": "Precomputed", "gram_matrix": [[1.0]]}},
    {"kernel": {"type": "Precomputed", "gram_matrix": [[10**400]]}},
    {"kernel": {"type": "Precomputed", "gram_matrix": [["1", "2"], ["2", "1"]]}},
    {"kernel": {"type": "Precomputed", "gram_matrix": [[1.0], [1.0, 2.0]]}},
    {"kernel": {"type": "Precomputed", "gram_matrix": [[1e308] * 7] * 7}},
    {"kernel": {"type": "Precomputed", "gram_matrix": [[-1.0] * 7] * 7}},
    {"kernel": {"type": "Precomputed", "gram_matrix": [[0.0] * 7] * 7}},
    {"kernel": {"type": "Function", "function": "os.system"}}, {"kernel": {"type": "Kernel"}},
    {"kernel": {"type": "Product", "left": POLYNOMIAL, "right": {"type": "Delta"}}},
    {"labeler": "CRF", "parameters": {}}, {"labeler": "HMM", "parameters": {}}, {"labeler": "CRF"},
    {"labeler": "Reranker", "parameters": {}}, {"labeler": "MarginalizedSVM", "parameters": {}},
    {"labeler": "HMPerceptron", "parameters": {"order": 2}}, {"labeler": "os.system", "parameters": {}},
    {"function": "os.system"}, {"template": "U:%x[0,0]\nB", "name": "t"}, {"template": 5, "name": "t"},
    {"template": "U:%x[0,5]\nB", "name": "t"}, {"template": "B:%x[0,0]/%m[-9,0,\".*\"]", "name": ""},
    {"template": "U0:%x[-100,0]\nU1:%x[100,0]/%x[0,0]\nB", "name": "t"}, {"template": "", "name": "t"},
]  # fmt: skip

SPECIFIC: dict[str, list[Any]] = {
    "order": [0, 1, 2, 3, 5, 30, 63, 64, 1000, 10**9, 2**62],
    "n": [1, 2, 10**6, 10**9, 2**40, 2**62, 10**30],
    "window": [0, 1, 2, 3, 99, 100, 101],
    "n_jobs": [1, 2, -1, -5, 16, 10**6, 2**40, -(2**70)],
    "mixing": [1e-150, 1e150, 1e-300, 0.5, 3, 1e-9, 1e9],
    "gap": [0, 0.5, 1, 1.5, -0.0, 5e-324],
    "C": [1e-100, 1e12, 5e-324, 0],
    "base_weight": [0, 1e12, 1e13, -1],
    "decode": ["viterbi", "posterior", "pointwise"],
    "scheme": ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU", "biluo"],
    "class": ["CRF", "HMM", "MEMM", "SemiCRF", "HMPerceptron", "HMSVM", "Reranker", "MarginalizedSVM"],
    "class_version": [0, 1, 2, 10**6],
    "shape": ["sequence", "tree", "dag"],
    "kind": ["text", "columns", "features", "id", "vector"],
    "size": [0, 1, 2, 3, 2**31, 2**47],
    "vocabularies": [0, 1, 2, 3, 9, 10],
    "texts": [0, 1, 2, 3],
    "labels": [["a"], ["a", "a"], ["a", 1], [1, 2, 3], [2**70, 1, 0], ["O", "PER", "LOC", "X"],
               ["x\n", "\ud800", "é"]],
    "label_kernel": [{"kernel": {"type": "Precomputed", "gram_matrix": [[1e300] * 3] * 3}}],
}  # fmt: skip

TEXTS = [
    '{"vector": "abc"}', '{"vector": {"a": 1}}', '{"vector": [1, [2]]}', '{"vector": [1e999]}',
    '{"vector": []}',
    '{"vector": [[1,2],[3,4]]}', '{"vector": null}', '{"vector": [null]}', '{"vector": [1, 2, 3]}',
    '{"vector": [1e308, 1e308, 1e308]}', '{"vector": [5e-324, 0, -0.0]}', '{"vector": [' + "1" * 4000 + "]}",
    '{"columns": 5}', '{"columns": []}', '{"columns": [[]]}', '{"columns": "ab"}', '{"columns": [1, 2]}',
    '{"columns": [1.5, null]}', '{"features": 5}', '{"features": null}', '{"features": {"a": [1]}}',
    '{"features": {"a": {"b": {"c": []}}}}', '{"features": {"a": 1e999}}', '{"features": {"a": 1e308}}',
    '{"features": {"length": -1e12}}', '{"features": ["a"]}', "null", "true", "1.5", "NaN", "Infinity", "-1",
    "7", "1" * 400, "1" * 5000, "[]", "[1,2,3]", '["a","b"]', "[[[]]]", "[" * 900 + "]" * 900, "[" * 100_000,
    "{}", '""', '"' + "A" * 100_000 + '"', '"\\ud800"', '"Ana"', "x", "", "[1e308, 1e308, 1e308]", "[null]",
    '{"features": ' + '{"a":' * 480 + "1" + "}" * 480 + "}", '{"set": ["a", "a"]}', "1e999", "-0",
]  # fmt: skip

INTEGERS = [-1, -2, -(2**31), -(2**63), 2**31, 2**31 - 1, 2**62, 2**63 - 1, 0, 1, 2, 3, 100, 10**6]
FLOATS = [
    np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 1e200, -1e200, 5e-324, 0.0, -0.0, 1e-300, -1.0, 1e16, 2.0**63,
    1e100, -1e100, 1e12, 750.0, -750.0, 0.5,
]  # fmt: skip
RAW_META = [
    b'"labels":["a","b"],', b'"class":"HMM",', b'"x":' + b"[" * 2000 + b"]" * 2000 + b",", b'"x":1e999,',
    b'"x":NaN,', b'"x":' + b"9" * 5000 + b",", b'"x":"\\ud800",', b'"x":"\xff",', b'"mem\\u0062ers":{},',
]  # fmt: skip
RAW_VOCABULARIES = [
    b"[" * 100_000, b"[[]]", b"null", b'[["a","a"]]', b"[[1]]", b"\xff", b"", b"{}",
    b'[["\\ud800"],["\xed\xa0\x80"]]',
    b'[["' + b"a" * 1_000_000 + b'"]]',
]  # fmt: skip
