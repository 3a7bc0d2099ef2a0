"""Files that are foreign or inconsistent: one clear error each, and little memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fuda import HMM, Dag, HMPerceptron, MarginalizedPerceptron, ModelFileError, SemiCRF, Tree, load
from fuda.storage import model_file
from model_file_cases import altered, craft, peak, refused
from reliability.mutations import put_together, take_apart

X = [["Ana", "lives", "in", "Lima"], ["Bo", "sleeps"]]
Y = [["PER", "O", "O", "LOC"], ["PER", "O"]]
FIXTURES = Path(__file__).parent.parent / "fixtures"
EMISSION = "arrays/emission_0.npy"


def npy(array: np.ndarray, **header) -> bytes:
    stream = io.BytesIO()
    if header:
        np.lib.format.write_array_header_1_0(
            stream,
            {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape, **header},
        )
        return stream.getvalue() + array.tobytes()
    np.save(stream, array)
    return stream.getvalue()


# What is not a model file.


def test_paths_that_are_none(tmp_path):
    refused(tmp_path, "is a folder", "name the file")
    refused(tmp_path / "absent", "cannot be read: No such file")
    (tmp_path / "empty").touch()
    refused(tmp_path / "empty", "not a fuda model, or it is cut off")
    os.mkfifo(tmp_path / "pipe")
    for endless in ("/dev/zero", tmp_path / "pipe"):
        refused(endless, "is a pipe or a device, not a model file; name the file")
    with pytest.raises(ModelFileError, match="cannot be read: embedded null"):
        load(str(tmp_path / "a\0b"))


def a_zip_of(name: str, data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, data)
    return stream.getvalue()


FOREIGN = {
    "empty": b"",
    "one byte": b"P",
    "text": b"U00:%x[0,0]\nB\n" * 100,
    "gzip": gzip.compress(b"{}" * 1000),
    "pickle": pickle.dumps(HMM()),
    "empty zip": b"PK\x05\x06" + bytes(18),
    "end of a zip": b"PK\x05\x06" + b"\xff" * 18,
    "zip of text": a_zip_of("a.txt", b"hello"),
    "npz": a_zip_of("a.npy", b"\x93NUMPY"),
    "zip of a meta.json": a_zip_of("meta.json", b"{}"),
    "document": a_zip_of("word/document.xml", b"<x/>" * 100),
    "zeros": bytes(100_000),
    "zip64 of absurd size": b"PK\x06\x06"
    + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, 1 << 62, 0)
    + struct.pack("<4sIQI", b"PK\x06\x07", 0, 0, 1)
    + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(FOREIGN[name])
    refused(path, "not a usable model file", "fetch the file again")
    refused(path, by=model_file.read_meta)
    assert peak(lambda: refused(path)) < 1 << 20


# Metadata that lies, all else being in order.


def set_to(*keys, value):
    def change(meta, members):
        inner = meta
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return change


def without(*keys):
    def change(meta, members):
        inner = meta
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]

    return change


def parameter(**parameters):
    return lambda meta, members: meta["parameters"].update(parameters)


def listed(**changes):
    return lambda meta, members: meta["members"][EMISSION].update({"forged": True, **changes})


def vocabularies(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return lambda meta, members: members.update({"vocabularies.json": data})


def array(data: bytes, **described):
    def change(meta, members):
        members[EMISSION] = data
        meta["members"][EMISSION].update(described)

    return change


def huge_vector(meta, members):
    """A vector of 2^47 numbers, whose names alone would fill all memory."""
    meta["observations"] = {"kind": "vector", "size": 1 << 47}
    members["vocabularies.json"] = b"[[]]"


def renamed(name: str):
    def change(meta, members):
        members[name] = members.pop(EMISSION)
        meta["members"][name] = meta["members"].pop(EMISSION)

    return change


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('code in a model file ran')",)


GOOD = np.zeros((8, 3))
MARKS = ["<-1>", "<+1>"]
LIES = {
    "another format": (set_to("format", value="other"), "not a fuda model"),
    "no format": (without("format"), "not a fuda model"),
    "newer format": (set_to("format_version", value=2), "format version 2", "install a newer fuda"),
    "format version 0": (set_to("format_version", value=0), "no format version"),
    "format version true": (set_to("format_version", value=True), "no format version"),
    "format version text": (set_to("format_version", value="1"), "no format version"),
    "format version huge": (set_to("format_version", value=10**30), "no format version"),
    "no format version": (without("format_version"), "no format version"),
    "version a number": (set_to("fuda", value=5), "'fuda' is missing"),
    "newer class": (set_to("class_version", value=2), "version 2 of HMM", "install a newer fuda"),
    "class version 0": (set_to("class_version", value=0), "version 0 of HMM"),
    "class version text": (set_to("class_version", value="1"), "'class_version'"),
    "unknown class": (set_to("class", value="GRU"), "'GRU', which is not a model of fuda"),
    "os.system": (set_to("class", value="os.system"), "'os.system', which is not a model"),
    "eval": (set_to("class", value="builtins.eval"), "not a model of fuda"),
    "base class": (set_to("class", value="Labeler"), "not a model of fuda"),
    "dunder": (set_to("class", value="__class__"), "not a model of fuda"),
    "endless class": (set_to("class", value="A" * 100_000), "not a model of fuda"),
    "class a list": (set_to("class", value=["HMM"]), "'class'"),
    "class a dict": (set_to("class", value={"HMM": 1}), "'class'"),
    "no class": (without("class"), "'class'"),
    "no labels": (set_to("labels", value=[]), "'labels'"),
    "labels text": (set_to("labels", value="ABC"), "'labels'"),
    "labels mixed": (set_to("labels", value=["a", 1, "b"]), "'labels'"),
    "labels twice": (set_to("labels", value=["a", "a", "b"]), "'labels'"),
    "label empty": (set_to("labels", value=["a", "", "b"]), "'labels'"),
    "labels floats": (set_to("labels", value=[1.5, 2.5, 3.5]), "'labels'"),
    "labels booleans": (set_to("labels", value=[True, False]), "'labels'"),
    "labels lists": (set_to("labels", value=[["a"], ["b"], ["c"]]), "'labels'"),
    "too few labels": (set_to("labels", value=["a", "b"]), "array 'emission_0' is float64 of shape"),
    "too many labels": (set_to("labels", value=["a", "b", "c", "d"]), "does not fit"),
    "shape": (set_to("shape", value="graph"), "'shape'"),
    "shape a list": (set_to("shape", value=["tree"]), "'shape'"),
    "shape not taken": (set_to("shape", value="dag"), "HMM does not label dags"),
    "no parameters": (without("parameters"), "'parameters'"),
    "parameters a list": (set_to("parameters", value=[]), "'parameters'"),
    "unknown parameter": (parameter(colour="red"), "HMM has no parameter 'colour'"),
    "dunder parameter": (parameter(__class__="x"), "HMM has no parameter '__class__'"),
    "smoothing text": (parameter(smoothing="x"), "smoothing='x'"),
    "smoothing none": (parameter(smoothing=None), "smoothing=None"),
    "smoothing below 0": (parameter(smoothing=-1), "smoothing=-1"),
    "smoothing a list": (parameter(smoothing=[1]), "parameter 'smoothing' has the wrong type"),
    "smoothing a dict": (parameter(smoothing={"function": "os.system"}), "parameter 'smoothing'"),
    "decode": (parameter(decode="magic"), "decode='magic'"),
    "decode none": (parameter(decode=None), "decode=None"),
    "window below 0": (parameter(window=-1), "window=-1"),
    "window huge": (parameter(window=10**9), "window=1000000000"),
    "window text": (parameter(window="1"), "window='1'"),
    "window true": (parameter(window=True), "window=True"),
    "window other": (parameter(window=2), "does not contain its boundary marks"),
    "window smaller": (parameter(window=0), "array 'emission_1' is not needed"),
    "window less": (parameter(window=0), "array 'emission_1'"),
    "features unknown": (parameter(features="nope"), "features='nope'"),
    "features a number": (parameter(features=5), "features=5"),
    "features a list": (parameter(features=["word"]), "parameter 'features' has the wrong type"),
    "features a function": (
        parameter(features={"function": "os.system"}),
        "does not contain the feature function 'os.system'",
        "features=function",
    ),
    "features an empty dict": (parameter(features={}), "features=function"),
    "features a bad template": (parameter(features={"template": "Q", "name": "t"}), "t:1: 'Q'"),
    "features a numbered template": (parameter(features={"template": 5}), "features=function"),
    "features another template": (
        parameter(features={"template": "U:%x[0,0]\nU1:%x[0,0]\nB", "name": "t"}),
        "one vocabulary per line",
    ),
    "no observations": (without("observations"), "'observations'"),
    "observations text": (set_to("observations", value="text"), "'observations'"),
    "observations of no kind": (
        set_to("observations", "kind", value="sound"),
        "an unknown kind, ('sound', 0)",
    ),
    "observations of a list": (set_to("observations", "kind", value=["text"]), "an unknown kind"),
    "observations of no size": (set_to("observations", "size", value=-1), "'observations'"),
    "observations of a size": (set_to("observations", "size", value=3), "an unknown kind, ('text', 3)"),
    "observations vectors": (
        set_to("observations", value={"kind": "vector", "size": 3}),
        "empty for vectors",
    ),
    "observations columns": (set_to("observations", value={"kind": "columns", "size": 0}), "an unknown kind"),
    "huge vectors": (huge_vector, "does not fit"),
    "no reading": (without("reading"), "'reading'"),
    "reading a list": (set_to("reading", value=[]), "'reading'"),
    "no members": (without("members"), "'members'"),
    "members a list": (set_to("members", value=[]), "'members'"),
    "member not listed": (without("members", EMISSION), "list of members does not match"),
    "member not there": (lambda meta, members: members.pop(EMISSION), "list of members does not match"),
    "member listed as a list": (set_to("members", EMISSION, value=[]), "the size of member"),
    "no vocabularies": (
        lambda meta, members: (members.pop("vocabularies.json"), meta["members"].pop("vocabularies.json")),
        "list of members does not match",
    ),
    "size": (listed(bytes=1), "the size of member 'arrays/emission_0.npy' is not the one listed"),
    "size text": (listed(bytes="368"), "the size of member"),
    "dtype object": (array(npy(GOOD), dtype="object"), "dtype 'object'"),
    "dtype complex": (array(npy(GOOD), dtype="complex64"), "dtype 'complex64'"),
    "dtype a list": (array(npy(GOOD), dtype=["float64"]), "dtype ['float64']"),
    "dtype none": (array(npy(GOOD), dtype=None), "dtype None"),
    "dtype long": (array(npy(GOOD), dtype="x" * 10_000), "dtype 'xxx"),
    "shape text": (array(npy(GOOD), shape="10"), "shape '10'"),
    "shape negative": (array(npy(GOOD), shape=[-8, -3]), "shape [-8, -3]"),
    "shape floats": (array(npy(GOOD), shape=[8.0, 3]), "shape [8.0, 3]"),
    "shape booleans": (array(npy(GOOD), shape=[True, True]), "shape [True, True]"),
    "shape huge": (array(npy(GOOD), shape=[10**12, 3]), "shape [1000000000000, 3]"),
    "shape past 64 bits": (array(npy(GOOD), shape=[2**47, 2**47, 2**47]), "shape ["),
    "shape past all": (array(npy(GOOD), shape=[10**400]), "shape [1000"),
    "many dimensions": (array(npy(GOOD), shape=[1] * 1000), "shape [1, 1"),
    "shape zero and huge": (
        array(npy(np.zeros((0, 3)), shape=(0, 2**47, 2**47)), shape=[0, 2**47, 2**47]),
        "has the shape (0,",
    ),
    "header says more": (array(npy(GOOD, shape=(10**9, 3))), "not the array listed"),
    "header of another shape": (array(npy(GOOD.T)), "not the array listed"),
    "header of another dtype": (array(npy(GOOD.astype(np.int64))), "not the array listed"),
    "big endian": (array(npy(GOOD.astype(">f8"))), "not the array listed"),
    "fortran order": (array(npy(np.asfortranarray(GOOD + 1))), "not the array listed"),
    "pickled objects": (
        array(npy(np.zeros(0), descr="|O", shape=(1,)) + pickle.dumps(Evil())),
        "member 'arrays/emission_0.npy'",
    ),
    "header unclosed": (
        array(b"\x93NUMPY\x01\x00\x40\x00" + b"{'descr': (" + b" " * 53 + bytes(240)),
        "emission_0",
    ),
    "header of code": (array(npy(GOOD, descr="__import__('os').system('x')")), "not the array"),
    "header too long": (array(b"\x93NUMPY\x01\x00\xff\xff" + bytes(300)), "emission_0"),
    "npy of version 2": (array(npy(GOOD).replace(b"NUMPY\x01", b"NUMPY\x02", 1)), "not the array"),
    "no npy": (array(bytes(400)), "not the array"),
    "data cut off": (array(npy(GOOD)[:-8]), "emission_0"),
    "data too long": (array(npy(GOOD) + bytes(8)), "not have the length of its shape"),
    "nan": (array(npy(GOOD * np.nan)), "contains NaN"),
    "infinite": (array(npy(GOOD + np.inf)), "has numbers beyond ±1e+100"),
    "too large": (array(npy(GOOD - 1.1e100)), "has numbers beyond ±1e+100"),
    "wrong shape throughout": (array(npy(np.zeros((3, 8))), shape=[3, 8]), "does not fit"),
    "wrong dtype throughout": (array(npy(GOOD.astype(np.int64)), dtype="int64"), "is int64 of shape"),
    "singles throughout": (array(npy(GOOD.astype(np.float32)), dtype="float32"), "is float32"),
    "another array": (renamed("arrays/emission_7.npy"), "array 'emission_0' is missing"),
    "name outside": (renamed("../emission_0.npy"), "that no model has"),
    "name absolute": (renamed("/etc/passwd"), "member '/etc/passwd' that no model has"),
    "name inside out": (renamed("arrays/../emission_0.npy"), "that no model has"),
    "name of a drive": (renamed("C:\\emission_0.npy"), "that no model has"),
    "name of a folder": (renamed("arrays/"), "that no model has"),
    "name in capitals": (renamed("arrays/EMISSION.npy"), "that no model has"),
    "name endless": (renamed("arrays/" + "a" * 60_000 + ".npy"), "that no model has"),
    "name with a line end": (renamed("arrays/emission_0.npy\n"), "that no model has"),
    "vocabularies a dict": (vocabularies({}), "not lists of distinct names"),
    "vocabularies a number": (vocabularies(5), "not lists of distinct names"),
    "vocabularies of text": (vocabularies(["abc"]), "not lists of distinct names"),
    "vocabularies of numbers": (vocabularies([[1, 2]]), "not lists of distinct names"),
    "vocabularies of lists": (vocabularies([[["a"]]]), "not lists of distinct names"),
    "vocabulary twice": (vocabularies([["a", "a"]]), "not lists of distinct names"),
    "vocabulary too long": (vocabularies([[f"w{i}" for i in range(100_000)] + MARKS]), "does not fit"),
    "vocabulary too short": (vocabularies([MARKS]), "does not fit"),
    "vocabulary without marks": (vocabularies([["a"]]), "does not contain its boundary marks"),
    "two vocabularies": (vocabularies([["a"], ["b"]]), "one vocabulary"),
    "no vocabulary": (vocabularies([]), "one vocabulary"),
    "vocabularies no json": (vocabularies(b"[["), "vocabularies.json is not readable"),
    "vocabularies no text": (vocabularies(b'[["\xff\xfe"]]'), "vocabularies.json is not readable"),
    "vocabularies deep": (vocabularies(b"[" * 200_000), "vocabularies.json is not readable"),
    "vocabularies deep and closed": (vocabularies(b"[" * 99_999 + b"]" * 99_999), "not readable"),
    "vocabularies nan": (vocabularies(b"[[NaN]]"), "vocabularies.json is not readable"),
}


@pytest.mark.parametrize("name", LIES)
def test_lies(name, model_path, tmp_path):
    change, *words = LIES[name]
    path = altered(model_path, tmp_path / "forged.fuda", change)
    refused(path, *words)
    size = path.stat().st_size
    assert peak(lambda: refused(path)) < (1 << 20) + 30 * size


def test_the_same_with_true_sizes_loads(model_path, tmp_path):
    path = altered(model_path, tmp_path / "true.fuda", lambda meta, members: None)
    assert load(path).predict(X).tolist() == Y
    assert load(altered(model_path, path, array(npy(GOOD)))).predict(X).shape == (2,)


# Numbers and parts of marginalized models that no fit gives.

NUMBERS = {
    "mixing": [0.0, -1.0, 1e-200, 1e200],
    "point": [-1.0, 1.7e308],
    "whole": [-1.0, 1.7e308],
    "pairs": [-1.7e308, 1.7e308],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in NUMBERS for value in NUMBERS[name]])
def test_numbers_of_a_marginalized_model(name, value, tmp_path):
    def change(meta, members):
        member = f"arrays/{name}.npy"
        numbers = np.load(io.BytesIO(members[member]))
        numbers.flat[-1] = value
        members[member] = npy(numbers)

    words = (
        "its calibration has negative numbers" if value == -1.0 else f"the array {name!r} has numbers beyond"
    )
    words = f"its mixing is {value}" if name == "mixing" and value != 1e200 else words
    refused(altered(FIXTURES / "marginalizedperceptron-1.fuda", tmp_path / "bad.fuda", change), words)


def test_a_reranker_whose_kernel_passes_all_numbers(tmp_path):
    def change(meta, members):
        members["arrays/mixing.npy"] = npy(np.array([1e74]))

    words = "passes 1e308"
    refused(altered(FIXTURES / "reranker-1.fuda", tmp_path / "bad.fuda", change), words)


def test_a_prior_of_a_class_without_posteriors(tmp_path):
    model = load(FIXTURES / "marginalizedperceptron-prior-1.fuda")
    other = load(FIXTURES / "marginalizedsvm-1.fuda")
    model.prior_source_ = replace(model.prior_source_, source=other)
    model.save(tmp_path / "prior.fuda")
    refused(tmp_path / "prior.fuda", "prior=MarginalizedSVM(", "an HMM, MEMM or CRF")


METAS = {
    "empty": b"",
    "no json": b"{",
    "a list": b"[]",
    "a number": b"5",
    "null": b"null",
    "nan": b'{"format": NaN}',
    "infinity": b'{"format": "fuda-model", "format_version": Infinity}',
    "deep": b"[" * 500_000,
    "deep dicts": b'{"a":' * 100_000,
    "long number": b'{"format": "fuda-model", "format_version": ' + b"9" * 10_000 + b"}",
    "not utf-8": b'{"format": "\xff"}',
    "too large": b" " * (1 << 20) + b"{}",
    "many lists": b"[" + b"[]," * 340_000 + b"[]]",
}


@pytest.mark.parametrize("name", METAS)
def test_metadata_that_cannot_be_read(name, tmp_path):
    path = craft(tmp_path / "meta.fuda", [("meta.json", METAS[name]), ("vocabularies.json", b"[[]]")])
    refused(path, "larger than 1 MiB" if name == "too large" else "model")
    refused(path, by=model_file.read_meta)
    assert peak(lambda: refused(path)) < 40 << 20


@pytest.mark.parametrize("steps", [2.0**63, 2.0**60, -1.0, 0.5])
@pytest.mark.parametrize("average", [True, "voted"])
def test_steps_of_a_perceptron_that_are_not_a_count(steps, average, tmp_path):
    HMPerceptron(average=average).fit(X, Y).save(tmp_path / "model.fuda")

    def change(meta, members):
        members["arrays/steps.npy"] = npy(np.array([steps]))

    bad = altered(tmp_path / "model.fuda", tmp_path / "bad.fuda", change)
    refused(bad, "number of steps is", "not a count")


def test_parameters_that_do_not_fit_the_structures(tmp_path):
    """What `fit` refuses, `load` refuses too, before the model is asked for anything."""
    template = {"template": "U:%x[0,0]\nB", "name": "t"}
    dag, words, dicts = Dag(["a", "b"], [(0, 1)]), ["a", "b"], [{"a": 1.0}, {"b": 1.0}]
    cases = [
        (MarginalizedPerceptron(orders=1), dag, {"decode": "viterbi"}, "decode='viterbi'"),
        (MarginalizedPerceptron(orders=1), words, {"features": template}, "neighbours"),
        (HMM(), dicts, {"features": template}, "columns of text"),
    ]
    for model, x, changed, words_of_message in cases:
        model.fit([x, x], [["A", "B"], ["A", "B"]]).save(tmp_path / "good.fuda")

        def change(meta, members, changed=changed):
            meta["parameters"] |= changed

        refused(altered(tmp_path / "good.fuda", tmp_path / "bad.fuda", change), words_of_message)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], "its parts are not described"),
        ({"prior": 3}, "its parts are not described"),
        ({"prior": {"class": "CRF"}}, "in its part 'prior'"),
    ],
)
def test_parts_that_are_not_described(model_path, tmp_path, parts, words):
    path = altered(model_path, tmp_path / "parts.fuda", lambda meta, members: meta.update(parts=parts))
    refused(path, words, by=model_file.read_meta)
    refused(path, "parts are not described" if "parts" in words else "its part 'prior'")


@pytest.mark.parametrize("name", ["hmsvm-1", "marginalizedperceptron-1", "memm-1"])
def test_features_that_are_missing_are_not_guessed(name, tmp_path):
    def change(meta, members):
        del meta["parameters"]["features"]

    bad = altered(FIXTURES / f"{name}.fuda", tmp_path / "bad.fuda", change)
    refused(bad, "its parameters have features=None, which is not a value")


def test_a_prior_that_labels_other_structures_is_refused(tmp_path):
    trees = [Tree(x, [-1, *range(len(x) - 1)]) for x in X]
    part = SemiCRF(features="word").fit(X, Y)
    MarginalizedPerceptron(prior=HMM(), orders=1).fit(trees, Y).save(tmp_path / "m")
    whole, other = take_apart((tmp_path / "m").read_bytes()), tmp_path / "other"
    part.save(other)
    inner = take_apart(other.read_bytes())
    names = inner.texts["vocabularies.json"]
    of_files = {"members", "format", "format_version", "fuda", "reading"}
    whole.meta["parts"]["prior"] = {k: v for k, v in inner.meta.items() if k not in of_files} | {
        "vocabularies": len(names)
    }
    arrays = {k: v for k, v in whole.arrays.items() if not k.startswith("prior__")}
    arrays |= {f"prior__{k}": v for k, v in inner.arrays.items()}
    count = len(whole.texts["vocabularies.json"]) - len(HMM().fit(trees, Y).encoder_.vocabularies())
    texts = {"vocabularies.json": [*whole.texts["vocabularies.json"][:count], *names]}
    (tmp_path / "bad").write_bytes(put_together(whole._replace(texts=texts, arrays=arrays)))
    refused(tmp_path / "bad", "its prior, a SemiCRF, does not label trees")
