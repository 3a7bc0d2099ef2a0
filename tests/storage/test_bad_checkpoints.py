"""Checkpoints that are damaged, foreign or hostile: a clear error, or finite weights."""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile

import numpy as np
import pytest

from fuda import CRF, HMM, HMSVM, HMPerceptron, ModelFileError, SemiCRF
from fuda.storage import checkpoint as module
from fuda.storage import container, model_file
from model_file_cases import altered, parts

X = [["Ana", "lives", "in", "Lima"], ["Lima", "is", "big"], ["Bo", "and", "Ana", "sing"]] * 3
Y = [["A", "B", "B", "A"], ["A", "B", "C"], ["C", "B", "A", "B"]] * 3
ARRAYS = ["x", "history", "s", "y", "sy", "yy"]


def fit(path):
    return CRF(features="word", tol=1e-7, checkpoint=path).fit(X, Y)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The checkpoint of a fit that was stopped after twelve iterations: all ten pairs exist."""
    path = tmp_path_factory.mktemp("good") / "state"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CRF(features="word", tol=1e-7, max_iter=12, checkpoint=path).fit(X, Y)
    return path


def refused(path, *words):
    before = path.read_bytes()
    with pytest.raises(ModelFileError) as caught:
        fit(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: not a usable checkpoint file: ")
    assert message.endswith("; delete it or pass another path")
    assert "\n" not in message
    for word in words:
        assert word in message
    assert path.read_bytes() == before


def stored(members, name):
    return np.load(io.BytesIO(members[f"arrays/s0_{name}.npy"]))


def replace(meta, members, name, array):
    """Replace an array, and say so in the list of members."""
    stream = io.BytesIO()
    np.save(stream, array)
    members[f"arrays/s0_{name}.npy"] = stream.getvalue()
    meta["members"][f"arrays/s0_{name}.npy"] = {"dtype": str(array.dtype), "shape": list(array.shape)}


def test_the_good_one(good, tmp_path):
    path = altered(good, tmp_path / "state", lambda meta, members: None)
    meta, members = parts(good)
    values = {"stopped": False, "iterations": 12, "count": 12}
    assert meta["stages"] == [{"name": "", "ended": True, "values": values}]
    assert set(members) == {f"arrays/s0_{name}.npy" for name in ARRAYS}
    whole = CRF(features="word", tol=1e-7).fit(X, Y)
    np.testing.assert_array_equal(fit(path).weights_, whole.weights_)


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, x=np.zeros(3))
    return stream.getvalue()


def an_archive() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.json", json.dumps({"format": "fuda-checkpoint"}))
    return stream.getvalue()


FOREIGN = {
    "empty": b"",
    "text": b"Ana B-PER\n",
    "start of a zip": b"PK\x03\x04",
    "pickle": pickle.dumps({"x": 1}),
    "npz": npz(),
    "compressed": an_archive(),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name, tmp_path):
    path = tmp_path / "state"
    path.write_bytes(FOREIGN[name])
    refused(path)


def test_a_model_is_not_a_checkpoint_nor_a_checkpoint_a_model(good, tmp_path):
    path = tmp_path / "model"
    HMM().fit(X, Y).save(path)
    refused(path, "member 'vocabularies.json' that no checkpoint has")
    with pytest.raises(ModelFileError, match="not a usable model file"):
        model_file.read(good)


def test_an_older_format(good, tmp_path):
    path = altered(good, tmp_path / "state", lambda meta, members: meta.update(format_version=2))
    with pytest.raises(ModelFileError, match=r"written by fuda '.*', whose states were others; delete it"):
        fit(path)


def test_a_newer_format(good, tmp_path):
    path = altered(good, tmp_path / "state", lambda meta, members: meta.update(format_version=4))
    with pytest.raises(ModelFileError, match=r"format version 4, .*: install a newer fuda"):
        fit(path)


def test_cut_off_padded_or_any_byte_changed(good, tmp_path):
    path, data = tmp_path / "state", good.read_bytes()
    random = np.random.default_rng(0)
    for damaged in [data[: int(n)] for n in random.integers(len(data), size=20)] + [data + b"\0", data * 2]:
        path.write_bytes(damaged)
        refused(path)
    for place in random.integers(len(data), size=60):
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            fit(path)


# From here on the checksum is right.


def values(meta):
    return meta["stages"][0]["values"]


META = {
    "no stages": (lambda meta: meta.pop("stages"), "'stages' is missing"),
    "stages by name": (lambda meta: meta.update(stages={}), "'stages' is missing or"),
    "a stage by number": (lambda meta: meta["stages"].append(3), "one of its stages is not described"),
    "a stage without a name": (lambda meta: meta["stages"][0].pop("name"), "'name' is missing"),
    "ended by a number": (lambda meta: meta["stages"][0].update(ended=1), "'ended' is missing or"),
    "the same stage twice": (lambda meta: meta["stages"].append(meta["stages"][0]), "have one name"),
    "arrays of no stage": (lambda meta: meta["stages"].clear(), "is not needed"),
    "stopped by text": (lambda meta: values(meta).update(stopped="no"), "whether a callback ended it"),
    "no fingerprint": (lambda meta: meta.pop("fingerprint"), "'fingerprint' is missing"),
    "a fingerprint of another kind": (lambda meta: meta.update(fingerprint=3), "'fingerprint' is missing or"),
    "finished by a number": (lambda meta: meta.update(finished=1), "'finished' is missing or"),
    "values in a list": (lambda meta: meta["stages"][0].update(values=[12]), "'values' is missing or"),
    "no count": (lambda meta: values(meta).pop("count"), "it counts None pairs"),
    "a negative count": (lambda meta: values(meta).update(count=-1), "it counts -1 pairs"),
    "a fraction": (lambda meta: values(meta).update(count=1.5), "it counts 1.5 pairs"),
    "text": (lambda meta: values(meta).update(count="1"), "it counts '1' pairs"),
    "true": (lambda meta: values(meta).update(count=True), "it counts True pairs"),
    "more pairs than iterations": (lambda meta: values(meta).update(count=13), "after 12 iterations"),
    "endless": (lambda meta: values(meta).update(count=10**30), "after 12 iterations"),
}


@pytest.mark.parametrize("name", META)
def test_metadata(name, good, tmp_path):
    change, words = META[name]
    refused(altered(good, tmp_path / "state", lambda meta, members: change(meta)), words)


def test_another_fingerprint(good, tmp_path):
    path = altered(good, tmp_path / "state", lambda meta, members: meta.update(fingerprint="0" * 64))
    with pytest.raises(ValueError, match=r"the checkpoint of another fit.*; delete it or pass another path"):
        fit(path)


def with_value(value):
    def change(array):
        array = array.copy()
        array.flat[-1] = value
        return array

    return change


CHANGES = {
    "shorter": lambda a: a[..., :-1],
    "longer": lambda a: np.concatenate([a, a[..., -1:]], axis=-1),
    "much longer": lambda a: np.concatenate([a] * 50, axis=-1),
    "empty": lambda a: a[..., :0],
    "one dimension more": lambda a: a[..., None],
    "a number": lambda a: a.flat[0] + np.zeros((), a.dtype),
    "turned": lambda a: a.reshape(-1, 1),
    "another dtype": lambda a: a.astype(np.float32 if a.dtype == np.float64 else np.float64),
    "integers": lambda a: a.astype(np.int64),
    "bytes": lambda a: a.astype(np.uint8),
    "infinite": with_value(np.inf),
    "NaN": with_value(np.nan),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("change", CHANGES)
def test_arrays_that_do_not_fit(change, name, good, tmp_path):
    def changed(meta, members):
        replace(meta, members, name, CHANGES[change](stored(members, name)))

    refused(altered(good, tmp_path / "state", changed), name)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_missing_or_too_many(name, good, tmp_path):
    def remove(meta, members):
        del members[f"arrays/s0_{name}.npy"], meta["members"][f"arrays/s0_{name}.npy"]

    def add(meta, members):
        replace(meta, members, f"{name}_2", stored(members, name))

    refused(altered(good, tmp_path / "state", remove), f"its array '{name}' is missing")
    refused(altered(good, tmp_path / "state", add), f"its array '{name}_2' is not needed")


def test_fewer_rows_of_pairs_or_iterations_out_of_order(good, tmp_path):
    for name in ("s", "y", "sy", "yy"):

        def fewer(meta, members, name=name):
            replace(meta, members, name, stored(members, name)[:-1])

        refused(altered(good, tmp_path / "state", fewer), f"its array '{name}'")

    def reversed_history(meta, members):
        replace(meta, members, "history", stored(members, "history")[::-1])

    refused(altered(good, tmp_path / "state", reversed_history), "does not count iterations")


@pytest.mark.parametrize("value", ["0", "-1", "1e-300", "1e30", "-1e300", "random"])
@pytest.mark.parametrize("name", ARRAYS)
def test_other_numbers_under_a_valid_checksum(name, value, good, tmp_path):
    """What nobody can tell from a checkpoint leads to finite weights, if not to the same."""
    random = np.random.default_rng(0)

    def changed(meta, members):
        array = stored(members, name)
        largest = float(np.finfo(array.dtype).max)
        other = random.normal(size=array.shape) if value == "random" else np.full(array.shape, float(value))
        other = np.clip(other, -largest, largest).astype(array.dtype)
        if name == "history":
            other[:, 0] = array[:, 0]
        replace(meta, members, name, other)

    path = altered(good, tmp_path / "state", changed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = fit(path)
        except ModelFileError:
            return
    assert np.isfinite(model.weights_).all()
    assert np.isfinite(model.predict_marginals(X[:1])[0]).all()


def test_a_checkpoint_is_a_sealed_file(good):
    with container.opened(good, module._CHECKPOINT) as file:
        file.check_seal()
        assert set(file.arrays()) == {f"s0_{name}" for name in ARRAYS}


@pytest.mark.parametrize(
    ("model", "name"),
    [(HMPerceptron(epochs=2), "short"), (SemiCRF(max_iter=2), "x"), (HMSVM(max_iter=2), "numbers")],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_numbers_that_no_training_reaches_end_in_no_model(model, name, tmp_path):
    path = tmp_path / "state"
    model.set_params(checkpoint=path).fit(X, Y)

    def changed(meta, members):
        replace(meta, members, name, np.full_like(stored(members, name), 1e300))

    altered(path, path, changed)
    with pytest.raises(ModelFileError, match=r"not a usable checkpoint file: .*; delete it or pass another"):
        model.fit(X, Y)
    assert not hasattr(model, "classes_")
