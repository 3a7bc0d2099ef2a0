"""Outputs that fail: all of it is written or the exit code says no, and no work is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cli.command_cases import TEXTS
from fuda import HMPerceptron
from fuda.errors import DataError
from fuda.storage import checkpoint, container

resource = pytest.importorskip("resource")
FUDA = [sys.executable, "-m", "fuda"]
FULL = 1000
BAD_OUTPUT = "fuda: <stdout>: cannot be read or written: Bad file descriptor\n"
# The signal of a file that grows too large is ignored: one write is short, and the next one fails.
BEHIND_A_LIMIT = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({FULL}, {FULL}))
from fuda.cli import main
main()
"""


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [["tag", "{model}", "{long}"], ["convert", "{long}", "-"], ["evaluate", "{model}", "{long}", "--json"]],
    ids=["tag", "convert", "evaluate"],
)
def test_standard_output_that_fills_up(run, tmp_path, arguments, unbuffered):
    """The first write is short; it is an error and never a success with half the output."""
    text = "".join(f"w{i} NP B-{i}\n" for i in range(60)) + "\n"
    (tmp_path / "long.conll").write_text(text + TEXTS["conll"] * 12)
    named = {"model": tmp_path / "many.fuda", "long": tmp_path / "long.conll"}
    assert run("train", named["long"], "-o", named["model"], "--learner", "hmm").code == 0
    line = [sys.executable, "-c", BEHIND_A_LIMIT, *(argument.format(**named) for argument in arguments)]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered, "NUMBA_DISABLE_JIT": "1"}
    with open(tmp_path / "out", "wb") as out:
        result = subprocess.run(line, stdout=out, stderr=subprocess.PIPE, env=environment, check=False)
    assert result.stderr == b"fuda: <stdout>: cannot be read or written: File too large\n"
    assert result.returncode == 2
    assert (tmp_path / "out").stat().st_size == FULL


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_does_not_depend_on_buffering(places, models, unbuffered):
    line = [*FUDA, "inspect", str(models["crf"])]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    result = subprocess.run(line, capture_output=True, env=environment, check=True)
    assert result.stdout == subprocess.run(line, capture_output=True, check=True).stdout


def train_with_checkpoint(run, places, tmp_path):
    state = tmp_path / "state"
    return state, run("train", places["conll"], "-o", places["out"], "--checkpoint", state)


def fail(*_):
    raise OSError(28, os.strerror(28))


def test_the_checkpoint_outlasts_a_failed_save(run, places, models, tmp_path, monkeypatch):
    """Nothing is lost: the next run ends in the model that the first would have written."""
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    write = container.write

    def full_for_models(path, kind, *rest):
        with monkeypatch.context() as patch:
            if kind.noun == "model":
                patch.setattr(os, "fsync", fail)
            write(path, kind, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(container, "write", full_for_models)
        state, result = train_with_checkpoint(run, places, tmp_path)
    assert result.code == 2
    assert result.err == f"fuda: {places['out']}: cannot be written: No space left on device\n"
    assert state.exists()
    assert not places["out"].exists()
    state, result = train_with_checkpoint(run, places, tmp_path)
    assert result.code == 0
    assert not state.exists()
    model, expected = (sealed_file_arrays(path) for path in (places["out"], models["crf"]))
    assert (model["weights"] == expected["weights"]).all()


def sealed_file_arrays(path):
    from fuda.storage import model_file

    return model_file.read(path)[2]


def test_training_goes_on_where_the_checkpoint_cannot_be_written(run, places, models, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    write = container.write

    def full_for_checkpoints(path, kind, *rest):
        with monkeypatch.context() as patch:
            if kind.noun == "checkpoint":
                patch.setattr(os, "replace", fail)
            write(path, kind, *rest)

    monkeypatch.setattr(container, "write", full_for_checkpoints)
    state, result = train_with_checkpoint(run, places, tmp_path)
    assert result.code == 0
    assert result.err.splitlines()[0] == (
        f"fuda: checkpoint {state}: cannot be written: No space left on device; training continues, but "
        "cannot be resumed from here"
    )
    assert len(result.err.splitlines()) == 3
    assert not state.exists()
    model, expected = (sealed_file_arrays(path) for path in (places["out"], models["crf"]))
    assert (model["weights"] == expected["weights"]).all()


def test_the_checkpoint_of_an_interrupted_fit_stays(run, places, tmp_path, monkeypatch):
    from fuda.progress import Iterations

    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)

    def interrupt(self, number, words):
        if number == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Iterations, "show", interrupt)
        state, _ = train_with_checkpoint(run, places, tmp_path)
    assert state.exists()
    _, result = train_with_checkpoint(run, places, tmp_path)
    assert result.code == 0
    assert not state.exists()


def test_a_finished_checkpoint_that_cannot_be_removed(run, places, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "remove_finished", fail)
    state, result = train_with_checkpoint(run, places, tmp_path)
    assert result.code == 0
    assert places["out"].exists()
    assert f"{state}: the finished checkpoint cannot be removed: No space left on device" in result.err


def test_a_damaged_checkpoint_is_named_with_the_remedy(run, places, tmp_path):
    (tmp_path / "state").write_bytes(b"something else")
    state, result = train_with_checkpoint(run, places, tmp_path)
    assert result.code == 2
    assert f"{state}: not a usable checkpoint file: " in result.err
    assert "; delete it or pass another path" in result.err
    assert state.read_bytes() == b"something else"


@pytest.mark.parametrize("line", ["train {conll} -o {out} --template {template}", "tag {model} {conll}"])
def test_running_out_of_memory_is_reported_in_one_line(run, places, monkeypatch, line):
    from fuda import HMM

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(HMM, "predict", fail)
    monkeypatch.setattr("fuda.features.templates.read_text", fail)
    result = run(*line.format(**places).split())
    assert result.code == 2
    assert result.out == b""
    assert result.err == (
        "fuda: there is not enough memory; give fewer data or features, or use a larger machine\n"
    )
    assert not places["out"].exists()


# Standard streams that are closed.

CLOSED = {
    "tag: input": (
        "tag {model} - <&-",
        2,
        "fuda: <stdin>: cannot be read: Bad file descriptor; check the path\n",
    ),
    "tag: output": ("tag {model} {conll} >&-", 2, BAD_OUTPUT),
    "tag: errors": ("tag {model} {conll} 2>&- >/dev/null", 0, ""),
    "tag: a mistake without a place": ("tag {model} {missing} 2>&-", 2, ""),
    "tag: all": ("tag {model} {conll} <&- >&- 2>&-", 2, ""),
    "tag: to a file": ("tag {model} {conll} -o {folder}/tagged.conll <&- >&- 2>&-", 0, ""),
    "inspect: output": ("inspect {model} >&-", 2, BAD_OUTPUT),
    "evaluate: output": ("evaluate {model} {conll} >&-", 2, BAD_OUTPUT),
    "help: output": ("--help >&-", 2, BAD_OUTPUT),
    "train: all": ("train {conll} -o {out} --learner hmm <&- >&- 2>&-", 0, ""),
}


WRITTEN_TO = ["tag: output", "tag: all", "inspect: output", "evaluate: output", "help: output"]


@pytest.mark.parametrize(
    ("name", "unbuffered"), [*((n, "") for n in CLOSED), *((n, "1") for n in WRITTEN_TO)]
)
def test_standard_streams_that_are_closed(name, unbuffered, places):
    line, code, words = CLOSED[name]
    command = f"{sys.executable} -m fuda {line.format(**places)}"
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered, "NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, env=environment, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (code, "", words)
    if name == "tag: to a file":
        assert (places["folder"] / "tagged.conll").read_text().startswith("Ana NP ")


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_standard_streams_that_a_program_does_not_have(stream, places, monkeypatch):
    import fuda

    data = fuda.read(places["conll"])
    monkeypatch.setattr(sys, stream, None)
    with pytest.raises((OSError, DataError), match="Bad file descriptor"):
        fuda.read("-") if stream == "stdin" else fuda.write(data, "-")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full on this system")
def test_messages_that_cannot_be_written_cost_no_work(places, tmp_path):
    """As where standard error is a log on a full disk."""
    out, environment = tmp_path / "model", os.environ | {"NUMBA_DISABLE_JIT": "1"}
    line = [*FUDA, "train", str(places["conll"]), "-o", str(out), "--set", "max_iter=1"]
    with open("/dev/full", "wb") as full:  # it warns that it has not converged
        assert subprocess.run(line, stderr=full, env=environment, check=False).returncode == 0
        assert out.stat().st_size
        wrong = [*FUDA, "tag", str(tmp_path / "none"), str(places["conll"])]
        assert subprocess.run(wrong, stderr=full, check=False).returncode == 2


def test_training_goes_on_where_progress_cannot_be_shown(monkeypatch, capsys):
    with open(os.devnull) as not_to_be_written:
        for stream in (not_to_be_written, None):
            monkeypatch.setattr(sys, "stderr", stream)
            HMPerceptron(epochs=1, verbose=True).fit([["a", "b"]], [["A", "B"]]).predict([["a"]])
    assert capsys.readouterr().out == ""


def test_help_for_a_pipe_that_is_closed():
    reader, gone = os.pipe()
    os.close(reader)
    with open(gone, "wb", buffering=0) as pipe:
        result = subprocess.run([*FUDA, "--help"], stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
