"""Model files: what is saved comes back, damage is found, and writing is all or nothing."""

from __future__ import annotations

import contextlib
import functools
import io
import math
import os
import stat
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuda
from fuda import HMM, HMSVM, DataError, ModelFileError, Template, Tree, load, registry
from fuda.files import atomic_file
from fuda.kernels import Precomputed
from fuda.storage import model_file
from model_file_cases import altered, peak, refused

X = [["Ana", "lives", "in", "Lima"], ["Bo", "sleeps"]]
Y = [["PER", "O", "O", "LOC"], ["PER", "O"]]
EMISSION = "arrays/emission_0.npy"


def bracket(word):
    return [f"[{word}]"]


# What is saved comes back.

MODELS = {
    "words": lambda: HMM().fit(X, Y),
    "window": lambda: HMM(features="text", window=2, smoothing=0.5, decode="posterior").fit(X, Y),
    "numpy parameters": lambda: HMM(smoothing=np.float64(0.25), window=np.int64(1)).fit(X, Y),
    "paper set": lambda: HMM(features="S3").fit(X, Y),
    "integer labels": lambda: HMM().fit(X, [[3, 1, 1, -2], [3, 1]]),
    "columns": lambda: HMM().fit([[("a", "N"), ("b", "V")]], [["1", "2"]]),
    "vectors": lambda: HMM(window=1).fit([[[1.0, 0.0], [0.0, 2.0]]], [["1", "2"]]),
    "feature dicts": lambda: HMM().fit([[{"f": 2.0, "g": "x"}, {"h": True}]], [["1", "2"]]),
    "ids": lambda: HMM().fit([[1, 2, 3]], [["1", "2", "1"]]),
    "trees": lambda: HMM(window=1).fit([Tree(["a", "b", "c"], [-1, 0, 0])], [["1", "2", "2"]]),
    "template": lambda: HMM(features=Template("U0:%x[0,0]\nU1:%x[-1,0]\nB", "my template")).fit(X, Y),
    "long template": lambda: HMM(
        features=Template("\n".join([*(f"U{i}:%x[{i % 9 - 4},0]" for i in range(400)), "B"]))
    ).fit(X, Y),
    "function": lambda: HMM(features=bracket).fit(X, Y),
    "odd names": lambda: HMM().fit([["\ud800", "\x00", "é", ""]], [["\ud800", '"', "\\", "é"]]),
    "no features": lambda: HMM(features=lambda _: []).fit(X, Y),
    "one label": lambda: HMM().fit([["a"]], [["A"]]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_round_trip_is_the_same_to_the_byte(name, tmp_path):
    model = MODELS[name]()
    first, second = tmp_path / "a.fuda", tmp_path / "b.fuda"
    model.reading_ = {"format": "conll", "columns": [1, 2]}
    model.save(first)
    other = load(first, features=model.features if callable(model.features) else None)
    other.save(second)
    assert first.read_bytes() == second.read_bytes()
    assert type(other) is type(model)
    assert other.classes_.tolist() == model.classes_.tolist()
    assert other.shape_ == model.shape_
    assert other.reading_ == model.reading_
    assert {k: v for k, v in other.get_params().items() if k != "features"} == {
        k: v for k, v in model.get_params().items() if k != "features"
    }
    structures = X if other.encoder_.observations.name == "text" else None
    if structures and other.shape_ == "sequence":
        assert other.predict(structures).tolist() == model.predict(structures).tolist()
        for a, b in zip(other.predict_marginals(X), model.predict_marginals(X), strict=True):
            assert np.array_equal(a, b)


@given(
    st.lists(st.lists(st.text(max_size=4), min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=3, unique=True),
    st.integers(0, 2),
)
def test_any_words_and_labels_come_back(tmp_path_factory, lists, labels, window):
    folder = tmp_path_factory.mktemp("any")
    y = [[labels[(i + t) % len(labels)] for t in range(len(x))] for i, x in enumerate(lists)]
    model = HMM(window=window).fit(lists, y)
    model.save(folder / "a")
    other = load(folder / "a")
    other.save(folder / "b")
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()
    assert other.predict(lists).tolist() == model.predict(lists).tolist()


def test_equal_models_give_equal_bytes(tmp_path):
    for name in ("a", "b"):
        HMM(window=1).fit(X, Y).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_loaded_arrays_can_be_written_to(model_path):
    transitions = load(model_path).transitions_
    transitions[0, 0] = 0.25
    assert transitions[0, 0] == 0.25


def test_the_zip_is_an_ordinary_one(model_path):
    with zipfile.ZipFile(model_path) as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert np.load(io.BytesIO(archive.read(EMISSION)), allow_pickle=False).shape[1] == 3


def test_metadata_is_read_alone(tmp_path):
    path = tmp_path / "large.fuda"
    HMM().fit([[str(i) for i in range(20_000)]], [["A", "B"] * 10_000]).save(path)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        meta_end = archive.getinfo("vocabularies.json").header_offset + 100
        for info in archive.infolist()[1:]:
            if info.file_size > 1000:
                at = info.header_offset + 500
                data[at : at + 100] = bytes(100)
    assert meta_end < 5000
    assert len(data) > 300_000
    path.write_bytes(data)  # all but the metadata is damaged, and inspecting does not notice
    assert peak(lambda: model_file.read_meta(path)) < 100_000
    assert model_file.read_meta(path)["labels"] == ["A", "B"]
    refused(path, "checksum")


def test_what_metadata_says(model_path):
    meta = model_file.read_meta(model_path)
    assert meta["class"] == "HMM"
    assert meta["class_version"] == 1
    assert meta["format_version"] == model_file.FORMAT_VERSION
    assert meta["fuda"] == fuda.__version__
    assert meta["labels"] == ["LOC", "O", "PER"]
    assert meta["shape"] == "sequence"
    assert meta["observations"] == {"kind": "text", "size": 0}
    assert meta["parameters"] == {"decode": "viterbi", "features": "word", "smoothing": 0.1, "window": 1}
    assert set(meta["members"][EMISSION]) == {"bytes", "dtype", "shape"}


# Damage.


@pytest.mark.slow
def test_every_single_byte_matters(model_path, tmp_path):
    """Each byte flipped in turn is an error, even in a field that unzip ignores."""
    data, path = model_path.read_bytes(), tmp_path / "damaged.fuda"
    random = np.random.default_rng(0)
    meta = model_file.read_meta(model_path)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        refused(path)
        with contextlib.suppress(ModelFileError):
            assert model_file.read_meta(path) == meta


def test_three_hundred_random_corruptions(model_path, tmp_path):
    data, path = model_path.read_bytes(), tmp_path / "damaged.fuda"
    random = np.random.default_rng(1)
    for _ in range(300):
        start, end = sorted(random.integers(0, len(data) + 1, size=2).tolist())
        end = min(end, start + int(random.integers(1, 400)))
        kind = random.integers(5)
        if kind == 0:
            damaged = data[:start]
        elif kind == 1:
            damaged = data[:start] + data[end + 1 :]
        elif kind == 2:
            damaged = data[:start] + random.bytes(int(random.integers(1, 50))) + data[start:]
        elif kind == 3:
            damaged = data[:start] + bytes(max(1, end - start)) + data[max(end, start + 1) :]
        else:
            damaged = data[:start] + random.bytes(max(1, end - start)) + data[max(end, start + 1) :]
        if damaged != data:
            path.write_bytes(damaged)
            refused(path)


def test_bytes_before_or_after_are_refused(model_path, tmp_path):
    data, path = model_path.read_bytes(), tmp_path / "longer.fuda"
    for longer in (data + b"x", b"x" + data, data + data, b"#!/bin/sh\n" + data, data + bytes(70_000)):
        path.write_bytes(longer)
        refused(path)


# Writing.


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model.fuda"
    HMM().fit(X, Y).save(path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "chmod", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, lambda *_: full(_))
            with pytest.raises(DataError, match="cannot be written: No space left"):
                HMM(window=1).fit(X, Y).save(path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["model.fuda"]


def test_a_save_without_enough_memory(tmp_path, monkeypatch):
    """zipfile closes its files after a MemoryError, fails, and would hide it."""

    class Full(io.BytesIO):
        def write(self, data):
            if self.tell() > 500:
                self.close()
                raise MemoryError
            return super().write(data)

    model = HMM().fit(X, Y)
    with monkeypatch.context() as patch:
        patch.setattr("fuda.storage.container.io.BytesIO", Full)
        with pytest.raises(MemoryError):
            model.save(tmp_path / "model.fuda")
    assert os.listdir(tmp_path) == []
    model.save(tmp_path / "model.fuda")


@pytest.mark.parametrize(
    ("place", "error", "words"),
    [
        (
            "container.SealedFile.check_seal",
            OSError(5, "Input/output error"),
            "cannot be read: Input/output error",
        ),
        ("container.SealedFile.arrays", MemoryError(), "not enough memory to read it"),
        ("models._deserialize", MemoryError(), "not enough memory to load it"),
    ],
    ids=["disk", "reading", "restoring"],
)
def test_reading_that_fails_names_the_file_and_the_cause(place, error, words, model_path, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(f"fuda.storage.{place}", fail)
    with pytest.raises(ModelFileError, match=rf"small\.fuda: {words}; "):
        load(model_path)


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.fuda"
    HMM().fit(X, Y).save(path)
    before = path.read_bytes()

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        HMM(window=1).fit(X, Y).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.fuda"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask_and_the_file_replaced(umask, mode, tmp_path):
    path = tmp_path / "model.fuda"
    model = HMM().fit(X, Y)
    old = os.umask(umask)
    try:
        model.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.chmod(0o640)
        model.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(old)


def test_saving_leaves_the_umask_of_the_process_alone(tmp_path, monkeypatch):
    """All threads share the umask: one that sets it, if only to read it, races with others."""

    def refuse(mask):
        raise AssertionError("the umask was set")

    monkeypatch.setattr(os, "umask", refuse)
    for _ in range(2):
        HMM().fit(X, Y).save(tmp_path / "model.fuda")
    assert load(tmp_path / "model.fuda").predict(X).tolist() == Y


def test_a_private_file_is_private_while_it_is_replaced(tmp_path):
    path = tmp_path / "model.fuda"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with atomic_file(path) as stream:
        stream.write(b"new")
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {0o600}
    assert path.read_bytes() == b"new"


def test_places_that_cannot_be_written(tmp_path):
    model = HMM().fit(X, Y)
    with pytest.raises(DataError, match=r"is a folder; name a file"):
        model.save(tmp_path)
    with pytest.raises(DataError, match="cannot be written: No such file or directory"):
        model.save(tmp_path / "no" / "model.fuda")
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "model.fuda"
    with pytest.raises(DataError, match=r"parameter decode=.* cannot be stored"):
        HMM().fit(X, Y).set_params(decode=["viterbi"]).save(path)
    with pytest.raises(DataError, match="parameter decode=nan cannot be stored"):
        HMM().fit(X, Y).set_params(decode=float("nan")).save(path)
    labels = [f"{i}" * 30_000 for i in range(50)]
    with pytest.raises(DataError, match=r"labels and parameters take .* bytes"):
        HMM().fit([["a"] * 50], [labels]).save(path)
    with pytest.raises(TypeError, match="dtype object"):
        model_file.save(path, {}, [[]], {"a": np.array([None])})
    assert os.listdir(tmp_path) == []


def test_parameters_set_after_fit_are_not_saved(tmp_path):
    HMM().fit(X, Y).save(tmp_path / "a.fuda")
    template = Template("U:%x[0,0]\nB")
    for changed in ({"features": "text"}, {"window": 1}, {"features": template}, {"smoothing": math.nan}):
        HMM().fit(X, Y).set_params(**changed).save(tmp_path / "b.fuda")
        assert (tmp_path / "a.fuda").read_bytes() == (tmp_path / "b.fuda").read_bytes()


def test_a_function_is_never_stored_only_named(tmp_path):
    path = tmp_path / "model.fuda"
    HMM(features=bracket).fit(X, Y).save(path)
    assert model_file.read_meta(path)["parameters"]["features"] == {"function": f"{__name__}.bracket"}
    refused(path, "bracket", "fuda.load(path, features=function)")
    assert load(path, features=bracket).predict(X).tolist() == Y
    with pytest.raises(DataError, match="features='word': give the function"):
        load(path, features="word")


def test_a_function_for_a_model_that_has_none_is_refused(model_path):
    with pytest.raises(DataError, match="its features are 'word'"):
        load(model_path, features=bracket)


def test_a_class_of_ones_own_is_not_saved(tmp_path):
    class Mine(HMM):
        pass

    with pytest.raises(DataError, match=r"Mine is not a model of fuda, .* pickle it"):
        Mine().fit(X, Y).save(tmp_path / "model.fuda")
    assert os.listdir(tmp_path) == []


def test_registered_classes_are_models():
    for name, model in registry.MODELS.items():
        cls = model_file.stored_class(name, model.version)
        assert cls.__name__ == name


def test_large_gram_matrices_are_stored_as_arrays(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(300, 4))
    gram = vectors @ vectors.T
    structures, labels = [[0, 1], [2, 299]], [["A", "B"]] * 2
    kernel = 0.5 * Precomputed(gram) + Precomputed(gram + np.eye(300)).normalized()
    model = HMSVM(kernel=kernel, window=0).fit(structures, labels)
    model.save(tmp_path / "m.fuda")
    meta = model_file.read_meta(tmp_path / "m.fuda")
    assert meta["members"]["arrays/matrix0.npy"]["shape"] == [300, 300]
    stored = load(tmp_path / "m.fuda")
    assert stored.kernel == kernel
    assert stored.predict(structures).tolist() == model.predict(structures).tolist()
    path = altered(
        tmp_path / "m.fuda",
        tmp_path / "bad.fuda",
        lambda meta, members: meta["parameters"]["kernel"]["kernel"]["left"]["right"].update(
            gram_matrix={"array": "matrix7"}
        ),
    )
    refused(path, "its matrix 'matrix7' is missing")


@pytest.mark.parametrize(
    "kernel",
    [
        {"type": "RBF", "gamma": 10**400},
        {"type": "Precomputed", "gram_matrix": [[10**400]]},
        {"type": "Precomputed", "gram_matrix": {"array": ["x"]}},
        {"type": "Normalized", "kernel": [1]},
        functools.reduce(
            lambda k, _: {"type": "Sum", "left": k, "right": {"type": "Linear"}},
            range(430),
            {"type": "Linear"},
        ),
    ],
    ids=["number", "matrix", "name", "operand", "depth"],
)
def test_kernels_that_are_not_usable_are_refused(kernel, tmp_path):
    HMSVM().fit(X, Y).save(tmp_path / "m.fuda")
    path = altered(
        tmp_path / "m.fuda",
        tmp_path / "bad.fuda",
        lambda meta, members: meta["parameters"].update(kernel={"kernel": kernel}),
    )
    refused(path, "not a usable model file")


def test_whatever_goes_wrong_in_a_model_names_the_file(tmp_path, monkeypatch):
    HMM().fit(X, Y).save(tmp_path / "m.fuda")

    def fails(*_):
        raise OverflowError("too large")

    monkeypatch.setattr(HMM, "_restore", fails)
    refused(tmp_path / "m.fuda", "not a usable model file (OverflowError: 'too large'); save the model again")
