"""CRFsuite's model files: read and written byte for byte, and refused where they are damaged."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from fuda import CRF, DataError, ModelFileError, Tree, load
from fuda.compat import crfsuite
from fuda.compat import load as load_foreign

REASON = "python-crfsuite is not installed; it is in the extra 'test'"


def random_data(seed, labels=("O", "B", "É")):
    rng = np.random.default_rng(seed)
    names = [f"a{k}:é" for k in range(int(rng.integers(1, 60)))]

    def item():
        chosen = rng.choice(names, size=min(len(names), int(rng.integers(6))), replace=False)
        return {str(name): float(rng.choice([0.5, 1.0, 2.0])) for name in chosen}

    X = [[item() for _ in range(int(rng.integers(1, 8)))] for _ in range(20)]
    return X, [[str(rng.choice(labels)) for _ in x] for x in X]


@pytest.mark.parametrize("seed", range(6))
def test_models_of_crfsuite(tmp_path, seed):
    pycrfsuite = pytest.importorskip("pycrfsuite", reason=REASON)
    X, y = random_data(seed)
    trainer = pycrfsuite.Trainer(verbose=False, params={"c2": 0.1, "c1": 0.3 * (seed % 2)})
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    path = tmp_path / "model.crfsuite"
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    model = load_foreign(path)
    assert list(model.classes_) == tagger.labels()
    for x, predicted, marginals in zip(X, model.predict(X), model.predict_marginals(X), strict=True):
        assert predicted == tagger.tag(x)
        expected = [[tagger.marginal(label, t) for label in tagger.labels()] for t in range(len(x))]
        np.testing.assert_allclose(marginals, expected, atol=1e-12)
    assert crfsuite.dump(model) == path.read_bytes()


def test_crfsuite_reads_what_is_written(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite", reason=REASON)
    X, y = random_data(1)
    model = CRF(window=0, l2=0.05).fit(X, y)
    path = tmp_path / "model.crfsuite"
    crfsuite.write(model, path)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    assert [tagger.tag(x) for x in X] == model.predict(X).tolist()


@pytest.fixture
def written(tmp_path):
    """A model in a file of CRFsuite, and the model."""
    X, y = random_data(3)
    model = CRF(window=0, l1=0.5, l2=0.01).fit(X, y)
    path = tmp_path / "model.crfsuite"
    crfsuite.write(model, path)
    return path, model, X


def test_what_is_written_is_read_back(written, tmp_path):
    path, model, X = written
    loaded = crfsuite.read(path)
    np.testing.assert_allclose(
        np.concatenate(loaded.predict_marginals(X)), np.concatenate(model.predict_marginals(X))
    )
    assert len(loaded.weights_) < len(model.weights_)  # without attributes whose weights are all 0
    assert crfsuite.dump(loaded) == path.read_bytes()
    loaded.save(tmp_path / "model.fuda")
    assert load(tmp_path / "model.fuda").predict(X).tolist() == model.predict(X).tolist()


def test_the_hash_is_lookup3():
    texts = [b"Four score and seven years ago", b"abc", b"exactly 12 b"]
    hashes = np.empty(len(texts), dtype=np.int64)
    bounds = np.cumsum([0, *map(len, texts)])
    crfsuite._hash(np.frombuffer(b"".join(texts), np.uint8), bounds, hashes)
    assert hashes[0] == 0x17770551  # the value that its author gives
    assert ((hashes >= 0) & (hashes < 1 << 32)).all()


def write_at(at, form, *values):
    """Overwrite numbers in a file."""

    def change(data):
        struct.pack_into(form, data, at if at >= 0 else at + len(data), *values)
        return data

    return change


DAMAGES = {
    "empty": lambda data: data[:0],
    "no header": lambda data: data[:47],
    "other magic": write_at(0, "4s", b"LCRF"),
    "other type": write_at(8, "4s", b"SOMC"),
    "other version": write_at(12, "<I", 200),
    "labels without end": write_at(20, "<I", 1 << 31),
    "no labels": write_at(20, "<I", 0),
    "attributes without end": write_at(24, "<I", (1 << 32) - 1),
    "features beyond the end": write_at(28, "<I", 1 << 31),
    "labels beyond the end": write_at(32, "<I", (1 << 32) - 1),
    "attributes in the features": write_at(36, "<I", 48),
    "many features": write_at(48 + 8, "<I", 1 << 30),
    "another kind of feature": write_at(60, "<I", 7),
    "no such attribute": write_at(64, "<I", 1 << 30),
    "no such label": write_at(68, "<I", 3),
    "not a number": write_at(72, "<d", float("nan")),
    "half": lambda data: data[: len(data) // 2],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_models_are_refused(written, damage):
    path = written[0]
    path.write_bytes(DAMAGES[damage](bytearray(path.read_bytes())))
    with pytest.raises(ModelFileError, match=f"{path}: not a usable CRFsuite model"):
        crfsuite.read(path)


def test_random_damage_is_an_error_or_a_model(written):
    path, _, X = written
    data, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(300):
        changed = bytearray(data)
        for at in rng.integers(len(data), size=int(rng.integers(1, 8))):
            changed[at] = rng.integers(256)
        path.write_bytes(changed)
        try:
            crfsuite.read(path).predict(X[:1])
        except ModelFileError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(("count", "weights"), [(20_000, "800,000,000"), (4_000, "32,000,000")])
def test_many_labels_and_attributes_in_a_small_file_take_no_memory(count, weights, tmp_path):
    names = [f"n{k}" for k in range(count)]
    labels, attributes = crfsuite._quark(names), crfsuite._quark(names)
    features = b"FEAT" + crfsuite._u4(12, 0)
    starts = np.cumsum([48, len(features), len(labels), len(attributes)]).tolist()
    header = crfsuite._HEADER.pack(b"lCRF", 0, b"FOMC", 100, 0, count, count, *starts, 0)
    path = tmp_path / "model"
    path.write_bytes(b"".join([header, features, labels, attributes]))
    with pytest.raises(ModelFileError, match=f"room for {weights} weights"):
        crfsuite.read(path)


def test_models_that_crfsuite_cannot_hold_are_refused(tmp_path):
    X, y = [["a", "b"]], [["A", "B"]]
    for model in (
        CRF(window=1).fit(X, y),
        CRF(window=0, pair_features=True).fit(X, y),
        CRF(window=0).fit([Tree(["a", "b"], [1, -1])], y),
    ):
        with pytest.raises(DataError, match="fit with window=0 on sequences"):
            crfsuite.write(model, tmp_path / "model")
    with pytest.raises(DataError, match="labels are strings"):
        crfsuite.write(CRF(window=0).fit(X, [[1, 2]]), tmp_path / "model")
    assert not (tmp_path / "model").exists()
