"""fuda tag on streams: the same bytes in pieces of any size, early, and in bounded memory."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import select
import subprocess
import sys

import pytest

from cli.command_cases import TEXTS
from fuda import files

FUDA = [sys.executable, "-m", "fuda"]
STREAMED = ("conll", "conllu", "jsonl")  # fasta is labelled as a whole
VARIANTS = {
    "plain": lambda text: text,
    "byte order mark": lambda text: "\ufeff" + text,
    "windows": lambda text: text.replace("\n", "\r\n"),
    "no final newline": lambda text: text.rstrip("\n"),
    "blank lines": lambda text: "\n\n" + text.replace("\n\n", "\n\n\n \n") + "\n\n",
    "trailing comments": lambda text: text + "# one\n# two\n",
    "carriage return at the end": lambda text: text.rstrip("\n") + "\r",
    "odd line breaks": lambda text: text.replace("Ana", "A\u2028na\x85").replace("MKA", "mka"),
}


class Trickle(io.BytesIO):
    """A stream that has only a few bytes at a time, as pipes and sockets do."""

    step = 1

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self.step if size is None or size < 0 else min(size, self.step))


@pytest.fixture
def trickle(run, monkeypatch):
    """Run the command on standard input that comes in pieces."""

    def trickle(*arguments, stdin: bytes, step: int):
        monkeypatch.setattr(Trickle, "step", step)
        with monkeypatch.context() as patch:
            patch.setattr(io, "BytesIO", Trickle)
            return run(*arguments, stdin=stdin)

    return trickle


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", TEXTS)
def test_pieces_give_the_bytes_of_the_whole(run, trickle, models, name, variant):
    """Errors included: then what was complete before comes out in any case."""
    data = VARIANTS[variant](TEXTS[name] * 3).encode()
    whole = run("tag", models[name], stdin=data)
    assert whole.code == (2 if (name, variant) in REFUSED else 0), whole.err
    for step in (1, 7, 100):
        assert trickle("tag", models[name], stdin=data, step=step) == whole
    assert trickle("tag", models[name], stdin=gzip.compress(data), step=5) == whole
    two_members = gzip.compress(data[:50]) + gzip.compress(data[50:]) + bytes(3)
    assert trickle("tag", models[name], stdin=two_members, step=5) == whole


REFUSED = {("jsonl", "trailing comments"), ("fasta", "trailing comments")}


@pytest.mark.parametrize("target", ["jsonl", "conll", "conllu", "fasta"])
def test_pieces_in_another_format(run, trickle, models, tmp_path, target):
    data = "".join(f"{residue} {label}\n\n" for residue, label in zip("MKAS", "HHEE", strict=True)).encode()
    (tmp_path / "a.conll").write_bytes(data)
    model, whole, pieces = (tmp_path / name for name in ("m.fuda", f"whole.{target}", f"pieces.{target}"))
    assert run("train", tmp_path / "a.conll", "-o", model, "--learner", "hmm").code == 0
    assert run("tag", model, tmp_path / "a.conll", "-o", whole).code == 0
    assert trickle("tag", model, "-", "-o", pieces, stdin=data, step=3).code == 0
    assert pieces.read_bytes() == whole.read_bytes()
    assert len(whole.read_bytes()) >= 20


def test_answers_come_while_the_input_is_open(models):
    sentence = TEXTS["conll"].partition("\n\n")[0].encode() + b"\n\n"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*FUDA, "tag", str(models["conll"])], bufsize=0, **pipes) as process:
        for _ in range(3):
            process.stdin.write(sentence + sentence[:-3])
            process.stdin.write(sentence[-3:] + sentence[:5])  # the next one begins
            output = b""
            while len(output) < 2 * len(sentence):
                assert select.select([process.stdout], [], [], 60)[0], "no answer"
                output += os.read(process.stdout.fileno(), 4096)
            assert len(output) == 2 * len(sentence)
            process.stdin.write(sentence[5:])
            assert len(os.read(process.stdout.fileno(), 4096)) == len(sentence)
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


BROKEN = {
    "conll": (b"x y z a b\n", "9000: 5 columns where 3"),
    "conllu": (b"1\n", "9001: 1 columns where 10"),
    "jsonl": (b"{\n", "2001: not JSON"),
}


@pytest.mark.parametrize("name", STREAMED)
def test_what_was_complete_before_an_error_comes_out(run, models, tmp_path, name):
    good = (TEXTS[name] * 1000).encode()
    broken, where = BROKEN[name]
    if name == "conll":
        good = good.removesuffix(b"\n")  # the error is within the last sentence
    path = tmp_path / f"bad.{name}"
    path.write_bytes(good + broken)
    result = run("tag", models[name], path)
    assert result.code == 2
    assert result.err.startswith(f"fuda: {path}:{where}")
    assert result.err.count("\n") == 1
    complete = 1999 if name == "conll" else 2000
    assert result.out == run("tag", models[name], stdin=good).out[: len(result.out)]
    assert result.out.count(b"\n" if name == "jsonl" else b"\n\n") == complete
    assert run("tag", models[name], path, "-o", tmp_path / f"out.{name}").code == 2
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_structures_are_counted_over_all_pieces(run, trickle, models):
    tree = '{"observations": ["a", "b"], "heads": [-1, 0], "labels": ["N", "V"]}\n'
    result = trickle("tag", models["jsonl"], stdin=(TEXTS["jsonl"] * 4 + tree).encode(), step=9)
    assert result.code == 2
    assert result.err.startswith("fuda: <stdin>: structure 8 is a tree, but this HMM was fitted on sequences")
    assert result.out.count(b"\n") == 8


def test_the_bound_on_bytes_is_one_on_records(run, models, monkeypatch):
    monkeypatch.setenv("FUDA_MAX_BYTES", "300")
    good = TEXTS["conll"] * 100
    assert run("tag", models["conll"], stdin=good.encode()).code == 0
    assert run("tag", models["conll"], stdin=gzip.compress(good.encode())).code == 0
    result = run("tag", models["conll"], stdin=(good + "a b c\n" * 200).encode())
    assert result.code == 2
    assert "<stdin>: holds more than 300 bytes in a record after line " in result.err
    assert result.out.startswith(b"Ana NP ")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(models):
    """Seven times the input takes the same memory."""
    pytest.importorskip("resource")
    peaks = []
    code = (
        "import resource, sys\nfrom fuda.cli import main\n"
        f"sys.argv = ['fuda', 'tag', {str(models['conll'])!r}]\n"
        "try:\n    main()\nfinally:\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    for times in (1_500, 10_000):
        text = TEXTS["conll"].encode() * times
        result = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
        assert result.stdout.count(b"\n") == text.count(b"\n")
        peaks.append(int(result.stderr) * (1 if sys.platform == "darwin" else 1024))
    assert peaks[1] - peaks[0] < 16 << 20


def test_a_reader_that_goes_away_while_input_comes(models):
    source, feed = os.pipe()
    command = [*FUDA, "tag", str(models["conll"])]
    with subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.close(source)
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            while os.write(feed, TEXTS["conll"].encode() * 100):
                pass
        os.close(feed)
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


@pytest.mark.parametrize("extension", [".x", "", ".conll2003"])
def test_the_format_of_the_model_where_the_extension_says_nothing(run, models, places, tmp_path, extension):
    for name in TEXTS:
        path = tmp_path / f"text{extension}"
        path.write_text(TEXTS[name])
        assert run("tag", models[name], path) == run("tag", models[name], places[name])
        assert run("evaluate", models[name], path) == run("evaluate", models[name], places[name])


def test_a_sentence_on_one_line_is_refused(run, tmp_path):
    """Whatever columns the model observes: it is not one token of six columns."""
    (tmp_path / "a.conll").write_text("Ana NP B-PER\nvive VB O\n\n")
    model = tmp_path / "m.fuda"
    for columns in ([], ["--columns", "1"]):
        train = ["train", tmp_path / "a.conll", "-o", model, "--learner", "hmm", *columns]
        assert run(*train).code == 0
        result = run("tag", model, stdin=b"Jan Jansen woont in Amsterdam .\n")
        assert (result.code, result.out) == (2, b"")
        assert result.err.startswith("fuda: <stdin>:1: 6 columns where 3 are expected with labels and 2")
        assert "read raw text with format='text' (--format text, tag --text)" in result.err


def test_lines_are_read_as_needed(tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"line\n" * 500_000)
    paused = []
    lines = iter(files.Lines(path, lambda: paused.append(True)))
    assert next(lines) == "line"
    assert paused == []  # a file has more to read
    assert sum(1 for _ in lines) == 499_999
    assert len(paused) == 4
