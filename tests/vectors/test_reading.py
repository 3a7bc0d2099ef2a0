"""Word vector files of every kind, gzipped or not, with or without chosen words, and damaged."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuda import DataError, Vectors
from fuda.vectors.reading import read_table

WORDS = ["Lima", "casa", "niño", "la casa", "«"]
MATRIX = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)


def text_of(words, matrix, header: bool) -> bytes:
    lines = [f"{len(words)} {matrix.shape[1]}"] if header else []
    lines += [
        " ".join([word, *(repr(float(x)) for x in row)]) for word, row in zip(words, matrix, strict=True)
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def binary_of(words, matrix, feed: bytes = b"\n") -> bytes:
    rows = [
        word.encode() + b" " + row.astype("<f4").tobytes() + feed
        for word, row in zip(words, matrix, strict=True)
    ]
    return b"".join([f"{len(words)} {matrix.shape[1]}\n".encode(), *rows])


def spaceless(words):
    return [word.replace(" ", "_") for word in words]


KINDS = {
    "word2vec text": (WORDS, text_of(WORDS, MATRIX, header=True)),
    "fastText": (WORDS, text_of(WORDS, MATRIX, header=True).replace(b"\n", b" \n", 1)),
    "GloVe": (spaceless(WORDS), text_of(spaceless(WORDS), MATRIX, header=False)),
    "binary": (spaceless(WORDS), binary_of(spaceless(WORDS), MATRIX)),
    "binary without line feeds": (spaceless(WORDS), binary_of(spaceless(WORDS), MATRIX, b"")),
    "carriage returns": (WORDS, text_of(WORDS, MATRIX, header=True).replace(b"\n", b"\r\n")),
    "spaces at ends": (WORDS, text_of(WORDS, MATRIX, header=True).replace(b"\n", b" \n")),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read(tmp_path, kind, packed):
    words, content = KINDS[kind]
    path = tmp_path / "vectors"
    path.write_bytes(gzip.compress(content) if packed else content)
    read_words, matrix = read_table(path)
    assert read_words == words
    np.testing.assert_array_equal(matrix, MATRIX)
    read_words, matrix = read_table(path, {"niño", "Lima", "absent"})
    assert read_words == ["Lima", "niño"]
    np.testing.assert_array_equal(matrix, MATRIX[[0, 2]])


def test_words_bring_their_lower_cased_forms(tmp_path):
    path = tmp_path / "v.vec"
    path.write_bytes(text_of(["CASA", "casa", "x"], MATRIX[:3], header=True))
    assert Vectors.read(path, words=["Casa", "CASA"], base=None).words == ["CASA", "casa"]


def test_the_first_of_several_rows_counts(tmp_path):
    path = tmp_path / "v.vec"
    path.write_bytes(text_of(["a", "a"], MATRIX[:2], header=True))
    np.testing.assert_array_equal(Vectors.read(path).matrix, MATRIX[:1])


DAMAGED = {
    "a value is missing": (b"2 3\na 1 2 3\nb 1 2\n", ":3: has 2 values where 3 are expected"),
    "a value too many, not a number": (b"a 1 2 3\nb 1 2 x 4\n", ":2: 'x' is not a finite"),
    "not a number": (b"2 2\na 1 2\nb 1 x\n", ":3: 'x' is not a finite 32-bit number"),
    "not finite": (b"2 2\na 1 2\nb nan 1\n", ":3: 'nan' is not a finite"),
    "beyond 32 bits": (b"a 1 2\nb 1 1e99\n", ":2: '1e99' is not a finite"),
    "too few words": (b"3 2\na 1 2\nb 1 2\n", ":1: announces 3 words, but 2 follow"),
    "no values": (b"alone\n", ":1: has no values after the word 'alone'"),
    "vectors of no values": (b"3 0\na\n", ":1: announces vectors of 0 values"),
    "vectors too long": (b"1 9999999\na 1\n", ":1: announces vectors of 9,999,999 values"),
    "empty": (b"", ": has no vectors"),
    "header alone": (b"0 3\n", ": has no vectors"),
    "not UTF-8": (b"2 2\na 1 2\n\xff 1 2\n", ":3: not UTF-8"),
    "binary cut off": (binary_of(["a", "b"], MATRIX[:2])[:-5], ": ends or is damaged at word 2 of 2"),
    "binary without a space": (b"1 2\n" + bytes(20), ": ends or is damaged at word 1 of 1"),
    "binary not finite": (
        binary_of(["a"], np.full((1, 2), np.nan, dtype=np.float32)),
        ": word 1, 'a', has values",
    ),
    "gzip cut off": (gzip.compress(text_of(WORDS, MATRIX, header=True))[:-9], "damaged gzip data"),
}


@pytest.mark.parametrize("problem", DAMAGED)
def test_damaged_files_are_refused_with_the_place(tmp_path, problem):
    content, message = DAMAGED[problem]
    path = tmp_path / "v.vec"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}")
    assert message in str(caught.value)
    assert ";" in str(caught.value)  # what to do


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        Vectors.read(tmp_path / "absent.vec")
    with pytest.raises(DataError, match="cannot be read"):
        Vectors.read(tmp_path)


def test_none_of_the_words(tmp_path):
    path = tmp_path / "v.vec"
    path.write_bytes(text_of(WORDS, MATRIX, header=True))
    with pytest.raises(DataError, match="none of the 1 words that are needed"):
        Vectors.read(path, words=["absent"])


@given(st.binary(max_size=200))
def test_no_bytes_cause_another_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.vec"
    for prefix in (b"", b"2 2\n", b"1 1\na "):
        path.write_bytes(prefix + content)
        message, words, matrix = str(path), ["none"], np.zeros((1, 1))
        try:
            words, matrix = read_table(path)
        except DataError as error:
            message = str(error)
        assert message.startswith(str(path))
        assert len(words) == len(matrix) > 0
        assert np.isfinite(matrix).all()


NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1), min_size=1, unique=True
)


@given(NAMES, st.integers(8, 12), st.sampled_from(["text", "binary"]))
def test_what_is_written_is_read(tmp_path_factory, words, size, kind):
    matrix = np.random.default_rng(len(words)).standard_normal((len(words), size)).astype(np.float32)
    path = tmp_path_factory.getbasetemp() / "written.vec"
    path.write_bytes(text_of(words, matrix, True) if kind == "text" else binary_of(words, matrix))
    read_words, rows = read_table(path)
    assert read_words == words
    np.testing.assert_array_equal(rows, matrix)


def test_a_line_of_any_length_takes_little_memory(tmp_path):
    path = tmp_path / "long.vec"
    path.write_bytes(b"word" + b" 1" * 2_000_000 + b"\n")
    with pytest.raises(DataError, match=r"long\.vec:1: has more than 16,384 values"):
        Vectors.read(path)
