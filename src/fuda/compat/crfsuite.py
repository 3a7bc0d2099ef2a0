"""CRFsuite's model files: binary, little-endian, 32-bit offsets.

========  ==========================================================================
header    ``lCRF``, size, ``FOMC``, version 100, numbers of features, labels and
          attributes, offsets of the five chunks that follow
``FEAT``  features: type (0 state, 1 transition), source, target, weight
``CQDB``  twice, labels and attributes: 256 hash tables from text to number, and an
          array from number to text
``LFRF``  for each label the features from it
``AFRF``  for each attribute its features
========  ==========================================================================

`read` goes by the features and by the arrays from number to text; the hash tables and references,
which repeat them, are for CRFsuite.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.compat.models import check_names, check_size, finite, make_crf, read_model
from fuda.errors import DataError, ModelFileError
from fuda.files import atomic_file
from fuda.models.crf import CRF
from fuda.runtime.compiled import compiled

MAGIC = b"lCRF"
_HEADER = struct.Struct("<4sI4s9I")
_CQDB = struct.Struct("<4s5I")
_CQDB_DATA = _CQDB.size + 256 * 8
_BYTE_ORDER = 0x62445371
_FEATURE = np.dtype([("type", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
_U4 = np.dtype("<u4")


def read(path: str | Path) -> CRF:
    """Read a model file of CRFsuite.

    Observations of the model are collections of CRFsuite's attributes: lists of names, or dicts
    from names to values (`fuda.compat.sklearn_crfsuite.attributes` makes these of
    python-crfsuite's items). Labels are in the file's order.

    Parameters
    ----------
    path : str or Path
        The file, which may be gzipped.

    Returns
    -------
    CRF
        A fitted model.

    Raises
    ------
    ModelFileError
        If it is not a model file of CRFsuite, or is damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> X, y = [[["w=Ana"], ["w=sings"]]], [["PER", "O"]]
    >>> model = CRF(window=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     write(model, f"{folder}/names.crfsuite")
    ...     same = read(f"{folder}/names.crfsuite")
    >>> same.predict([[["w=Ana"]]])[0]
    ['PER']
    """
    data = read_model(path)
    try:
        labels, attributes, weights = _parse(data)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: not a usable CRFsuite model: {error}; write it again") from None
    return make_crf(path, labels, [attributes], weights)


def _parse(data: bytes) -> tuple[list[str], list[str], np.ndarray]:
    """Labels, attributes and weights of a file."""
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise ModelFileError("it does not begin with the header of one")
    header = _HEADER.unpack_from(data)
    label_count, attribute_count, at_features, at_labels, at_attributes = header[5:10]
    if header[2] != b"FOMC" or header[3] != 100:
        raise ModelFileError(f"type {header[2]!r}, version {header[3]}, where b'FOMC', 100 is known")
    labels = check_names(_texts(data, at_labels, label_count, "labels"), "label")
    attributes = check_names(_texts(data, at_attributes, attribute_count, "attributes"), "attribute")
    check_size(len(data), label_count, attribute_count)
    count = int(_array(data, at_features, 3, _U4, "features")[2])  # 0 in CRFsuite's header
    features = _array(data, at_features + 12, count, _FEATURE, "features")
    weights = np.zeros((attribute_count + label_count, label_count))
    row = np.where(
        features["type"] == 1, features["source"].astype(np.int64) + attribute_count, features["source"]
    )
    bounds = np.where(features["type"] == 1, attribute_count + label_count, attribute_count)
    if (features["type"] > 1).any() or (row >= bounds).any() or (features["target"] >= label_count).any():
        raise ModelFileError("a feature refers to a label or attribute that is not there")
    with np.errstate(over="ignore"):
        np.add.at(weights, (row, features["target"]), features["weight"])
    return labels, attributes, finite(weights).ravel()


def _array(data: bytes, start: int, count: int, dtype: np.dtype, what: str) -> np.ndarray:
    """An array within the file."""
    if start + count * dtype.itemsize > len(data):
        raise ModelFileError(f"its {what} reach beyond its end")
    return np.frombuffer(data, dtype, count, start)


def _texts(data: bytes, start: int, count: int, what: str) -> list[str]:
    """The texts of a CQDB chunk, by number."""
    if start + _CQDB_DATA > len(data):
        raise ModelFileError(f"its {what} reach beyond its end")
    chunk, _, _, byte_order, size, at_offsets = _CQDB.unpack_from(data, start)
    if chunk != b"CQDB" or byte_order != _BYTE_ORDER or size != count:
        raise ModelFileError(f"its {what} are not a list of {count:,}")
    texts: list[str] = []
    total = 0
    for offset in _array(data, start + at_offsets, count, _U4, what).tolist():
        number, length = _array(data, start + offset, 2, _U4, what).tolist()
        total += length
        if number != len(texts) or not length or total > len(data):  # texts do not overlap
            raise ModelFileError(f"its {what} are not numbered")
        raw = _array(data, start + offset + 8, length, np.dtype("u1"), what).tobytes()
        try:
            texts.append(raw[:-1].decode())
        except UnicodeDecodeError:
            raise ModelFileError(f"one of its {what} is not UTF-8, {raw[:40]!r}") from None
    return texts


def write(model: CRF, path: str | Path) -> None:
    """Write a CRF as a model file of CRFsuite, without the weights that are 0.

    Parameters
    ----------
    model : CRF
        A fitted model on sequences, of a single channel (``window=0``) and without features of
        label pairs. Labels are strings.
    path : str or Path
        The file; an existing one is replaced.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> model = CRF(window=0).fit([[["w=Ana"], ["w=sings"]]], [["PER", "O"]])
    >>> with TemporaryDirectory() as folder:
    ...     write(model, f"{folder}/names.crfsuite")
    """
    with atomic_file(path) as stream:
        stream.write(dump(model))


def dump(model: CRF) -> bytes:
    """Return the content of the file that `write` writes.

    Parameters
    ----------
    model : CRF
        A fitted model as `write` takes it.

    Returns
    -------
    bytes
        The content.

    Examples
    --------
    >>> model = CRF(window=0).fit([[["w=Ana"], ["w=sings"]]], [["PER", "O"]])
    >>> dump(model)[:4]
    b'lCRF'
    """
    names = model.encoder_.channel_names()
    if (
        len(names) > 1
        or model.encoder_.edge_channel_names()
        or model.has_pairs_
        or model.shape_ != "sequence"
    ):
        raise DataError("CRFsuite has features of a node and its label only; fit with window=0 on sequences")
    labels, attributes = model.classes_.tolist(), model.encoder_.feature_names(0)
    L = len(labels)
    state = model.weights_[: -L * L].reshape(-1, L)
    attribute_rows = np.flatnonzero(state.any(axis=1))
    parts = [sp.csr_matrix(state[attribute_rows]), sp.csr_matrix(model.transitions_)]
    features = np.zeros(sum(part.nnz for part in parts), _FEATURE)
    features["type"] = np.repeat([0, 1], [part.nnz for part in parts])
    features["source"] = np.concatenate(
        [np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)) for part in parts]
    )
    features["target"] = np.concatenate([part.indices for part in parts])
    features["weight"] = np.concatenate([part.data for part in parts])
    chunks = [b"FEAT" + _u4(12 + features.nbytes, len(features)) + features.tobytes()]
    chunks += [_quark(labels), _quark([attributes[k] for k in attribute_rows])]
    starts = np.cumsum([_HEADER.size, *map(len, chunks)]).tolist()
    chunks[-1] += bytes(-starts[-1] % 4)
    starts[-1] += -starts[-1] % 4
    states, transitions = parts
    chunks.append(_references(b"LFRF", transitions.indptr, states.nnz, 2, starts[-1]))
    starts.append(starts[-1] + len(chunks[-1]))
    chunks.append(_references(b"AFRF", states.indptr, 0, 0, starts[-1]))
    size = starts[-1] + len(chunks[-1])
    head = _HEADER.pack(MAGIC, size, b"FOMC", 100, 0, L, len(attribute_rows), *starts)
    return b"".join([head, *chunks])


def _u4(*numbers: int) -> bytes:
    return np.array(numbers, _U4).tobytes()


def _references(chunk: bytes, indptr: np.ndarray, first: int, unused: int, start: int) -> bytes:
    """A chunk of references to the features of each row, whose numbers are consecutive."""
    counts = np.diff(indptr)
    at_rows = start + 12 + 4 * (len(counts) + unused) + 4 * np.cumsum([0, *(1 + counts[:-1])])[: len(counts)]
    rows = np.insert(first + np.arange(indptr[-1]), indptr[:-1], counts)
    body = _u4(*at_rows, *[0] * unused) + rows.astype(_U4).tobytes()
    return chunk + _u4(12 + len(body), len(counts) + unused) + body


def _quark(texts: list[Any]) -> bytes:
    """A CQDB chunk of texts."""
    if not all(isinstance(text, str) for text in texts):
        raise DataError("CRFsuite's labels are strings; fit with str labels")
    raw = [text.encode() + b"\0" for text in texts]
    records = [_u4(number, len(text)) + text for number, text in enumerate(raw)]
    offsets = np.cumsum([_CQDB_DATA, *map(len, records)])
    hashes = np.empty(len(raw), dtype=np.int64)
    _hash(np.frombuffer(b"".join(raw), np.uint8), np.cumsum([0, *map(len, raw)]), hashes)
    tables, at, references = [], int(offsets[-1]), []
    for table in _buckets(hashes, offsets):
        references += [at if len(table) else 0, len(table)]
        tables.append(table.tobytes())
        at += table.nbytes
    size = at + 4 * len(raw)
    head = _CQDB.pack(b"CQDB", size, 0, _BYTE_ORDER, len(raw), at if raw else 0)
    return b"".join([head, _u4(*references), *records, *tables, offsets[:-1].astype(_U4).tobytes()])


def _buckets(hashes: np.ndarray, offsets: np.ndarray) -> Iterable[np.ndarray]:
    """The 256 hash tables: pairs of hash and offset, by open addressing, half full."""
    for number in range(256):
        members = np.flatnonzero(hashes % 256 == number)
        table = np.zeros((2 * len(members), 2), _U4)
        for member in members:
            at = (hashes[member] >> 8) % len(table)
            while table[at, 1]:
                at = (at + 1) % len(table)
            table[at] = hashes[member], offsets[member]
        yield table


@compiled
def _rotated(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (32 - bits))) & 0xFFFFFFFF


@compiled
def _hash(data: np.ndarray, bounds: np.ndarray, hashes: np.ndarray) -> None:
    """Bob Jenkins' lookup3 ("hashlittle" with start value 0) of data[bounds[i]:bounds[i+1]]."""
    mask = 0xFFFFFFFF
    for i in range(len(hashes)):
        start, remaining = bounds[i], bounds[i + 1] - bounds[i]
        a = b = c = (0xDEADBEEF + remaining) & mask
        while True:
            words = np.zeros(3, dtype=np.int64)
            for j in range(min(remaining, 12)):
                words[j // 4] |= np.int64(data[start + j]) << (8 * (j % 4))
            a, b, c = (a + words[0]) & mask, (b + words[1]) & mask, (c + words[2]) & mask
            if remaining <= 12:
                break
            a = ((a - c) & mask) ^ _rotated(c, 4)
            c = (c + b) & mask
            b = ((b - a) & mask) ^ _rotated(a, 6)
            a = (a + c) & mask
            c = ((c - b) & mask) ^ _rotated(b, 8)
            b = (b + a) & mask
            a = ((a - c) & mask) ^ _rotated(c, 16)
            c = (c + b) & mask
            b = ((b - a) & mask) ^ _rotated(a, 19)
            a = (a + c) & mask
            c = ((c - b) & mask) ^ _rotated(b, 4)
            b = (b + a) & mask
            start, remaining = start + 12, remaining - 12
        c = ((c ^ b) - _rotated(b, 14)) & mask
        a = ((a ^ c) - _rotated(c, 11)) & mask
        b = ((b ^ a) - _rotated(a, 25)) & mask
        c = ((c ^ b) - _rotated(b, 16)) & mask
        a = ((a ^ c) - _rotated(c, 4)) & mask
        b = ((b ^ a) - _rotated(a, 14)) & mask
        hashes[i] = ((c ^ b) - _rotated(b, 24)) & mask
