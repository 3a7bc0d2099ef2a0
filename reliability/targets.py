"""What is fuzzed: functions of bytes that return if all promises are kept, and raise otherwise.

The first byte chooses options, the rest is the input. `tests/reliability` replays the finds.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import fuda
from fuda import DataError, Template, formats
from fuda.data.encoders import make_encoder
from fuda.data.structures import Sequence
from fuda.formats.graph import from_networkx, to_networkx
from fuda.kernels import from_json
from reliability.cases import LABELS, WORDS, cases
from reliability.hostile import Broken, answers, refused_question
from reliability.mutations import Content, mutated, put_together, sealed, take_apart

READING: dict[str, list[dict[str, Any]]] = {
    "conll": [
        {}, {"separator": " "}, {"separator": "\t"}, {"columns": 1}, {"columns": [2, 1]}, {"label": None},
        {"label": 1}, {"width": 2}, {"width": 3, "columns": 1}, {"label": -2, "separator": "|"},
        {"columns": 1, "label": 2, "ragged": True},
    ],
    "conllu": [
        {}, {"label": None}, {"label": "MISC:NE"}, {"graph": "dag"}, {"graph": "sequence"},
        {"graph": "dag", "cyclic": "skip"}, {"graph": "dag", "cyclic": "break"}, {"label": "FEATS:Case"},
        {"columns": "FORM,FEATS:Case", "absent": None},
        {"columns": ["LEMMA", "XPOS"], "graph": "sequence"}, {"label": "DEPREL", "columns": "MISC:NE"},
    ],
    "fasta": [
        {}, {"labels": "lines"}, {"labels": "marks"}, {"labels": "none"}, {"mark": "*"}, {"sites": "STY"},
        {"labels": "marks", "mark": "@"},
    ],
    "jsonl": [{}, {"label": "pos"}, {"label": None}],
    "text": [{}, {"tokenizer": "blanks"}],
    "inline": [{}, {"scheme": "BILOU", "tokenizer": "blanks"}],
    "doccano": [{}, {"tokenizer": "blanks"}],
    "prodigy": [{}, {"scheme": "IOBES"}],
    "csv": [{}, {"label": None}, {"sentence": "s", "columns": "w", "label": 2}],
    "conllx": [{}, {"graph": "dag", "cyclic": "break"}, {"graph": "sequence", "label": "FEATS:Case"}],
    "conllup": [{}, {"graph": "dag", "cyclic": "break"}, {"graph": "sequence", "label": "NE"}],
    "crfsuite": [{}],
    "graphml": [{}, {"graph": "tree"}, {"cyclic": "break"}],
}  # fmt: skip


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """DataError is an answer, if its message is one line."""
    try:
        yield
    except DataError as error:
        if "\n" in str(error).rstrip("\n") or not str(error):
            raise Broken(f"message {str(error)!r}") from error


def _reader(name: str) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        choices = READING[name]
        options, text = choices[data[0] % len(choices)], data[1:].decode("utf-8", "replace")
        with refusals():
            dataset = formats.FORMATS[name].read(text, "x", **options)
            written = formats.FORMATS[name].write(dataset.records)
            try:
                again = formats.FORMATS[name].read(written, "x", **options)
            except DataError as error:
                raise Broken(f"written as {written!r}, but not read: {error}") from error
            if again.X != dataset.X or again.y != dataset.y:
                raise Broken(
                    f"{dataset.X} {dataset.y} was written as {written!r} and read as {again.X} {again.y}"
                )

    return target


def brat(data: bytes) -> None:
    """A text up to the first null byte, then its annotations: two files."""
    text, _, annotations = data[1:].partition(b"\0")
    options = [{}, {"scheme": None}, {"tokenizer": "blanks"}][data[0] % 3]
    path = _folder() / "x.ann"
    path.with_suffix(".txt").write_bytes(text)
    path.write_bytes(annotations)
    with refusals():
        read = formats.read(path, **options)
        written = formats.FORMATS["brat"].write(read.records)
        path.write_text(written, encoding="utf-8", newline="")
        try:
            again = formats.read(path, **options)
        except DataError as error:
            raise Broken(f"written as {written!r}, but not read: {error}") from error
        if again.X != read.X or again.y != read.y:
            raise Broken(f"{read.X} {read.y} was written as {written!r} and read as {again.X} {again.y}")


def file(data: bytes) -> None:
    """Any bytes as a file of any format, gzipped or not."""
    name = list(READING)[data[0] % len(READING)]
    path = _folder() / "file"
    path.write_bytes(data[1:])
    with refusals():
        formats.read(path, format=name)


def graph(data: bytes) -> None:
    """Graphs of up to 256 nodes; observations, labels and edges from bytes."""
    import networkx

    drawn_graph = networkx.DiGraph()
    for node, byte in enumerate(data[1 : 1 + data[0] % 16]):
        attributes: dict[str, Any] = {"observation": [chr(byte), byte, (chr(byte), "x"), None][byte % 4]}
        drawn_graph.add_node(node, **attributes, **({"label": byte % 3} if byte & 64 else {}))
    drawn_graph.add_edges_from((a % 16, b % 16) for a, b in zip(data[17::2], data[18::2], strict=False))
    shape = ("dag", "tree", "sequence")[data[0] % 3]
    with refusals():
        read = from_networkx([drawn_graph], shape=shape)
        again = from_networkx([to_networkx(read.X[0], read.y and read.y[0])], shape=shape)
        if read.X != again.X or read.y != again.y:
            raise Broken(f"{read} came back as {again}")


def template(data: bytes) -> None:
    """A template, and the features of two sentences by it."""
    with refusals():
        parsed = Template(data[1:].decode("utf-8", "replace"), "t")
        again = Template(parsed.text, "t")
        if again.lines != parsed.lines and len(again.lines) != len(parsed.lines):
            raise Broken("the text of a template gives another template")
        encoder = make_encoder(parsed, 0)
        encoder.fit([Sequence([(word, word[::-1]) for word in words]) for words in WORDS])
        again = make_encoder(parsed, 0)
        again.restore(encoder.vocabularies(), encoder.observations)


def kernel(data: bytes) -> None:
    """The description of a kernel in a file."""
    with refusals():
        try:
            value = json.loads(data[1:].decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return
        parsed = from_json(value)
        if repr(from_json(json.loads(json.dumps(parsed.to_json())))) != repr(parsed):
            raise Broken(f"{parsed!r} is stored as {parsed.to_json()}")
        model = fuda.HMSVM(kernel=parsed, max_iter=2, n_jobs=1)
        words: list[Any] = [[len(word) for word in words] for words in WORDS] if data[0] % 2 else WORDS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers(model.fit(words, LABELS), words)


@cache
def _folder() -> Path:
    """A folder in memory for the files of this process."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="fuda-fuzz-", dir=memory))


@cache
def models() -> list[tuple[Content, list[Any]]]:
    """The content of a file of every case, and the questions to ask the model."""
    contents = []
    for case in cases().values():
        path = _folder() / "model.fuda"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case.model.fit(case.structures, case.labels).save(path)
        contents.append((take_apart(path.read_bytes()), case.questions))
    return contents


def _asked(data: bytes, questions: list[Any]) -> None:
    """Load a file and ask its model."""
    path = _folder() / "asked.fuda"
    path.write_bytes(data)
    with refusals():
        model = fuda.load(path)
        try:
            answers(model, questions)
        except DataError as error:
            if not refused_question(error):
                raise Broken(f"loaded, and refuses to answer: {error}") from error


def model_bytes(data: bytes) -> None:
    """Any bytes as a model file, as they are or with a seal."""
    _asked(data[1:] if data[0] % 2 else sealed(data[1:]), models()[0][1])


def model_meta(data: bytes) -> None:
    """The metadata of a model file, whose arrays and vocabularies are in order."""
    content, questions = models()[data[0] % len(models())]
    try:
        meta = json.loads(data[1:].decode("utf-8", "surrogatepass"))
        file = put_together(content._replace(meta=meta))
    except (ValueError, RecursionError):  # what is not JSON is tried as bytes
        return
    _asked(file, questions)


def model_changed(data: bytes) -> None:
    """A model file with changes that the bytes choose."""
    content, questions = models()[data[0] % len(models())]
    _asked(mutated(Random(data), content, [other for other, _ in models()])[0], questions)


@cache
def checkpoints() -> list[tuple[Any, Any, Content]]:
    """A model per case whose training has a checkpoint, and the checkpoint."""
    contents = []
    for name, case in cases().items():
        model = case.model
        if "checkpoint" not in model.get_params(deep=False):
            continue
        path = _folder() / f"{name}.checkpoint"
        limits = {k: 3 for k in ("max_iter", "epochs", "orders") if k in model.get_params(deep=False)}
        model.set_params(checkpoint=path, **limits)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(DataError):  # a solver without checkpoints
                model.fit(case.structures, case.labels)
                contents.append((model, case, take_apart(path.read_bytes())))
    return contents


def checkpoint(data: bytes) -> None:
    """A fit that goes on from a checkpoint with changes that the bytes choose."""
    model, case, content = checkpoints()[data[0] % len(checkpoints())]
    changed, _ = mutated(Random(data), content, [])
    Path(model.checkpoint).write_bytes(changed)
    with refusals(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers(model.fit(case.structures, case.labels), case.questions)


COMMANDS = [
    "convert {file} {out} --format conll --to jsonl", "convert {file} {out} --format jsonl --to conllu",
    "convert {file} - --format conllu --to fasta", "convert {file} - --format fasta --to jsonl {words}",
    "convert {file} {out} --to conll {words}", "tag {model} {file} --format conll",
    "tag {model} {file} {words}", "tag {model} {file} --text", "tag {model} {file} --text --as jsonl",
    "tag {model} {file} --format doccano --nbest 2", "tag {model} {file} {file} --format jsonl --marginals",
    "tag {file} {file}", "evaluate {model} {file} --format conll", "evaluate {model} {file} --json {words}",
    "inspect {file}", "inspect {model} {words}", "inspect {file} --top 3 --json", "{words}", "train {words}",
    "train {file} -o {out} --format conll --learner hmm {words}",
    "train {file} -o {out} --format jsonl --learner hmm",
    "train {file} -o {out} --format conll --learner hm-perceptron --set epochs=1",
    "train {file} -o {out} --format conll --learner hmm --template {template}",
]  # fmt: skip


def command(data: bytes) -> None:
    """The command, in this process: words of its line up to the first null byte, then a file."""
    line, folder = COMMANDS[data[0] % len(COMMANDS)], _folder()
    words, _, content = data[1:].partition(b"\0") if "{words}" in line else (b"", b"", data[1:])
    (folder / "in").write_bytes(content)
    if not (folder / "model").exists():
        fuda.HMM().fit(WORDS, LABELS).save(folder / "model")
        fuda.files.write_text(folder / "template", "U:%x[0,0]\nB")
    places = {name: str(folder / name) for name in ("model", "out", "template")} | {
        "file": str(folder / "in")
    }
    argv = [part.format(**places) for part in line.split() if part != "{words}"]
    argv += [word for word in words.decode("utf-8", "replace").split(" ") if word]
    if b"/" in words or argv[:1] in (["demo"], ["reproduce"]):  # other folders; what takes long
        return
    code, errors = _run(argv)
    lines = [text for text in errors.splitlines() if not text.startswith(("Usage:", "Try ", "\0")) and text]
    if code not in (0, 2) or "Traceback" in errors or (code == 2 and not lines):
        raise Broken(f"fuda {argv}: exit code {code}, {errors!r}")
    if code == 2 and len([text for text in lines if text.startswith("fuda: ")]) > 1 + errors.count(
        "left out"
    ):
        raise Broken(f"fuda {argv}: several lines, {errors!r}")


def _run(argv: list[str]) -> tuple[int, str]:
    """The exit code and the standard error of the command."""
    from fuda.cli import group

    out, errors, into = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace"), io.StringIO(), sys.stdin
    here = contextlib.chdir(_folder())
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), here, warnings.catch_warnings():
        sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
        try:
            group(argv, prog_name="fuda")
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.stdin = into
    return code, errors.getvalue()


TARGETS: dict[str, Callable[[bytes], None]] = {
    **{name: _reader(name) for name in READING},
    "brat": brat,
    "file": file,
    "graph": graph,
    "template": template,
    "kernel": kernel,
    "model-bytes": model_bytes,
    "model-meta": model_meta,
    "model-changed": model_changed,
    "checkpoint": checkpoint,
    "command": command,
}


def run(target: str, data: bytes) -> None:
    """Run a target; no input is too short."""
    with np.errstate(all="ignore"):
        TARGETS[target](data or b"\0")
