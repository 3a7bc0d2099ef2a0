"""Models that learn from text without labels too: features, files, refits, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import fuda
from fuda import (
    CRF,
    HMM,
    HMSVM,
    MEMM,
    Auto,
    DataError,
    HMPerceptron,
    MarginalizedPerceptron,
    Reranker,
    Template,
    Tree,
    Vectors,
)
from fuda.kernels import RBF, Polynomial
from fuda.storage import model_file
from fuda.vectors import learn
from model_file_cases import altered, parts, refused

TOWNS, NAMES = ["Lima", "Oslo", "Bonn", "Rome"], ["Ana", "Eva", "Bo", "Tim"]
X = [["Ana", "lives", "in", "Lima"], ["Bo", "was", "in", "Oslo", "again"]]
Y = [["PER", "O", "O", "LOC"], ["PER", "O", "O", "LOC", "O"]]
U = [[name, verb, "in", town] for name in NAMES for town in TOWNS for verb in ("lives", "was")]
NEW = [["in", "Rome", "Tim", "was"]]

MODELS = [
    CRF(),
    MEMM(),
    HMPerceptron(epochs=5),
    HMPerceptron(kernel=Polynomial(2), epochs=5),
    HMSVM(),
    HMSVM(kernel=RBF(0.2), features="spelling"),
    MarginalizedPerceptron(epochs=3),
    MarginalizedPerceptron(epochs=3, prior=CRF()),
    CRF(features="S3"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_every_learner_takes_it_and_its_file_has_all_it_needs(model, tmp_path):
    model = clone(model).fit(X, Y, unlabelled=U)
    names = [
        name
        for channel in range(len(model.encoder_.channel_names()))
        for name in model.encoder_.feature_names(channel)
    ]
    assert {"vector0", "class4=" + learn(X, U).word_class("Lima")[:4]} <= set(names)
    model.save(tmp_path / "m")
    loaded = fuda.load(tmp_path / "m")
    assert isinstance(loaded.features, Vectors)
    assert loaded.predict(NEW)[0] == model.predict(NEW)[0]
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    assert (
        fuda.load(tmp_path / "m").fit(X, Y).predict(NEW)[0] == loaded.predict(NEW)[0]
    )  # by the same vectors


def test_words_without_labels_get_those_of_words_alike():
    model, new = CRF(features="word", window=0), [["Rome"], ["Tim"]]
    alone = model.fit(X, Y).predict(new)
    assert alone[0] == alone[1]
    assert model.fit(X, Y, unlabelled=U).predict(new).tolist() == [["LOC"], ["PER"]]


def test_it_is_the_same_as_to_learn_first():
    fits = [
        CRF().fit(X, Y, unlabelled=U),
        CRF().fit(X, Y, unlabelled=learn(X, U)),
        CRF(features=learn(X, U)).fit(X, Y),
    ]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.weights_, fits[0].weights_)
    assert fits[0].features is None  # `fit` does not change parameters


def test_the_sets_of_the_papers_keep_their_window():
    model = CRF(features="S1").fit(X, Y, unlabelled=U)
    assert model.encoder_.channel_names() == ["0"]
    assert model.encoder_.features.base == "word"


def test_joints_stay():
    assert "-1lower&0lower" in CRF().fit(X, Y, unlabelled=U).encoder_.channel_names()


def test_other_shapes_and_columns_of_the_same_words():
    trees = [Tree(x, [-1, *range(len(x) - 1)]) for x in X]
    assert CRF(features="word").fit(trees, Y, unlabelled=U).predict(trees)[0] == Y[0]
    columns = [[(word, "X") for word in x] for x in X]
    model = CRF(features="word").fit(columns, Y, unlabelled=U)
    assert model.predict([[(word, "X") for word in NEW[0]]])[0] == ["O", "LOC", "PER", "O"]


def test_explanations_name_classes_and_vectors():
    model = CRF(features="word").fit(X, Y, unlabelled=U)
    named = str(model.explain(NEW[0], 1))
    assert "class" in named or "vector" in named


def test_validation_and_further_fits():
    model = HMPerceptron(epochs=5).fit(X, Y, unlabelled=U, X_val=X, y_val=Y)
    assert model.partial_fit([["Zoe", "sleeps"]], [["PER", "O"]]).predict([["Zoe", "sleeps"]])[0] == [
        "PER",
        "O",
    ]


@pytest.mark.parametrize(
    ("model", "data", "unlabelled", "message"),
    [
        (HMM(), X, U, "HMM counts features"),
        (CRF(features=len), X, U, "choose features='text'"),
        (CRF(features=Template("U:%x[0,0]\nB\n")), X, U, "choose features='text'"),
        (CRF(), [[{"a": 1.0}], [{"b": 1.0}]], U, "are those of words"),
        (CRF(), X, [[3]], "unlabelled text: structure 0, node 0 is 3"),
        (CRF(), X, "text", "unlabelled text: "),
        (CRF(), X, [], "unlabelled text: there are no words in it; give sentences, or leave unlabelled out"),
        (CRF(), X, [[], []], "unlabelled text: there are no words in it"),
    ],
)
def test_what_has_no_words_is_refused(model, data, unlabelled, message):
    y = [["a"] * len(x) for x in data]
    with pytest.raises(DataError, match=message):
        model.fit(data, y, unlabelled=unlabelled)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m"
    CRF().fit(X, Y, unlabelled=U).save(path)
    return path


def without_texts(meta, members):
    meta["table_texts"] = 0


def too_many_texts(meta, members):
    meta["table_texts"] = 10**9


def another_number(meta, members):
    meta["parameters"]["features"]["vectors"] = 7


def another_base(meta, members):
    meta["parameters"]["features"]["base"] = "nonsense"


def classes_beyond(meta, members):
    name = "arrays/vectors0_classes.npy"
    members[name] = members[name][:-4] + np.array([1000], dtype="<i4").tobytes()


def not_finite(meta, members):
    name = "arrays/vectors0.npy"
    members[name] = members[name][:-4] + np.array([np.nan], dtype="<f4").tobytes()


def bits_that_are_none(meta, members):
    members["vocabularies.json"] = members["vocabularies.json"].replace(b'"000', b'"x00')


CHANGES = [without_texts, too_many_texts, another_number, another_base, classes_beyond, not_finite]


@pytest.mark.parametrize("change", [*CHANGES, bits_that_are_none])
def test_files_whose_vectors_are_inconsistent_are_refused(stored, tmp_path, change):
    refused(altered(stored, tmp_path / "bad", change), "not a usable model file")


def test_the_table_is_stored_once(tmp_path):
    table = learn(X, U)
    model = MarginalizedPerceptron(features=table.extending("spelling"), prior=CRF(features=table), epochs=2)
    model.fit(X * 2, Y * 2).save(tmp_path / "m")
    tables = [name for name in parts(tmp_path / "m")[1] if name.startswith("arrays/vectors")]
    assert tables == ["arrays/vectors0.npy", "arrays/vectors0_classes.npy"]
    assert model_file.read_meta(tmp_path / "m")["parameters"]["features"] == {
        "vectors": 0,
        "base": "spelling",
    }
    assert fuda.load(tmp_path / "m").predict(NEW)[0] == model.predict(NEW)[0]


@pytest.mark.slow  # processes of their own, which import everything
def test_nothing_depends_on_threads_or_hash_seeds():
    program = (
        "import hashlib, random\n"
        "from fuda.vectors import learn\n"
        "r = random.Random(0)\n"
        "words = [f'w{int(r.paretovariate(0.7)) % 3000}' for _ in range(8000)]\n"
        "v = learn([words[i:i + 20] for i in range(0, 8000, 20)])\n"
        "print(hashlib.sha256(v.matrix.tobytes() + repr((v.words, v.classes)).encode()).hexdigest())\n"
    )
    outputs = set()
    for seed, threads in (("1", "1"), ("2", "4")):
        chosen = {"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        ended = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | chosen,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(ended.stdout)
    assert len(outputs) == 1


def test_auto_gives_it_to_its_candidates(tmp_path):
    candidates = {"crf": CRF(features="word"), "hmm": HMM(), "own": CRF(features=fuda.features.spelling)}
    model = Auto(budget=5, candidates=candidates, combine=False).fit(X * 3, Y * 3, unlabelled=U)
    assert {row["name"] for row in model.report_.rows} == set(candidates)
    by_default = Auto(budget=5, candidates={"crf": CRF()}).fit(X, Y, unlabelled=U)
    assert isinstance(by_default.best_.encoder_.features, Vectors)
    alone = Auto(budget=5, candidates={"crf": CRF(features="word")}).fit(X, Y, unlabelled=U)
    assert isinstance(alone.best_.encoder_.features, Vectors)
    alone.save(tmp_path / "m")
    assert fuda.load(tmp_path / "m").predict(NEW)[0] == alone.predict(NEW)[0] == ["O", "LOC", "PER", "O"]


@pytest.mark.parametrize(
    "model", [MarginalizedPerceptron(epochs=2, prior=HMM(), decode="viterbi"), Reranker(HMM(), folds=2, n=3)]
)
def test_a_prior_or_base_that_counts_goes_without(model, tmp_path):
    model = clone(model).fit(X * 3, Y * 3, unlabelled=U)
    assert isinstance(model.encoder_.features, Vectors)
    (inner,) = model._parts().values()
    assert not isinstance(inner.encoder_.features, Vectors)
    model.save(tmp_path / "m")
    assert fuda.load(tmp_path / "m").predict(NEW)[0] == model.predict(NEW)[0]
