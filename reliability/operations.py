"""Operations that faults are injected into: what is done, and what must hold after a fault."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.base import clone

import fuda
from fuda.cli import main
from fuda.cli.label import fill
from fuda.page.store import Store
from fuda.storage import checkpoint
from reliability.cases import WORDS, Case, cases

Error = BaseException | None
# Iterations make the same calls again, so that a few have them all.
FEW = {"max_iter": 3, "base__max_iter": 3, "prior__max_iter": 3, "epochs": 2, "folds": 2}
REPEATED = 24  # times that small data are repeated: enough for arrays that count as large


class Operation(NamedTuple):
    """Something that may fail: what is done within a folder, and what must hold afterwards.

    `check` gets the error, or None if there was none. An operation that uses no files can only run
    out of memory.
    """

    run: Callable[[], object]
    check: Callable[[Error], None]
    prepare: Callable[[], object] = lambda: None
    uses_files: bool = True


Operations = Iterator[tuple[str, Operation]]


def groups(folder: Path) -> dict[str, Callable[[], Operations]]:
    """Operations of the command and of every learner, by name, made when asked for."""
    commands = {f"fuda {name}": partial(command_operations, name, folder) for name in LINES}
    return commands | {
        name: partial(learner_operations, name, case, folder) for name, case in cases().items()
    }


def learner_operations(name: str, case: Case, folder: Path) -> Operations:
    """All operations of a learner."""
    model = clone(case.model)
    model.set_params(**{key: FEW[key] for key in model.get_params() if key in FEW})
    case = case._replace(model=model, structures=case.structures * REPEATED, labels=case.labels * REPEATED)
    yield from file_operations(name, case, folder)
    yield from training_operations(name, case, folder)
    if "checkpoint" in case.model.get_params():
        yield from checkpoint_operations(name, case, folder)


def empty(folder: Path) -> None:
    """Make a folder, or empty it; it may be a disk of its own."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def model_bytes(model: Any, folder: Path) -> bytes:
    """The file of a model; its answers where the file also says how long training took."""
    path = folder / "again.fuda"
    model.save(path)
    content = path.read_bytes()
    path.unlink()
    if isinstance(model, fuda.Auto):
        return repr([marginals.tolist() for marginals in model.predict_marginals(WORDS)]).encode()
    return content


def file_operations(name: str, case: Case, folder: Path) -> Operations:
    """Save to a new file and over an old one, and load."""
    empty(folder)
    path = folder / "model.fuda"
    fitted = clone(case.model).fit(case.structures, case.labels)
    answers, content = fitted.predict(case.questions).tolist(), model_bytes(fitted, folder)
    fitted.save(path)
    file = path.read_bytes()

    def check_saved(error: Error) -> None:
        on_disk = path.read_bytes() if path.exists() else None
        is_old = error and on_disk in (None, b"old")
        assert on_disk == file or is_old, "neither the old file nor the new one"
        assert fitted.predict(case.questions).tolist() == answers
        assert model_bytes(fitted, folder) == content

    def check_loaded(error: Error) -> None:
        assert path.read_bytes() == file
        assert fuda.load(path).predict(case.questions).tolist() == answers

    yield f"{name} save", Operation(lambda: fitted.save(path), check_saved)
    yield (
        f"{name} save over",
        Operation(lambda: fitted.save(path), check_saved, lambda: path.write_bytes(b"old")),
    )
    yield f"{name} load", Operation(lambda: fuda.load(path), check_loaded, lambda: path.write_bytes(file))


def training_operations(name: str, case: Case, folder: Path) -> Operations:
    """Fit, predict with a model that was just loaded, and continue to fit it."""
    empty(folder)
    X, y, questions, path = case.structures, case.labels, case.questions, folder / "model.fuda"
    fitted, new = clone(case.model).fit(X, y), clone(case.model)
    fitted.save(path)
    content, answers, loaded = (
        model_bytes(fitted, folder),
        fitted.predict(questions).tolist(),
        fuda.load(path),
    )
    continues = hasattr(loaded, "partial_fit")
    continued = model_bytes(fuda.load(path).partial_fit(X, y), folder) if continues else b""

    def check_fitted(error: Error) -> None:
        if error is None or hasattr(new, "classes_"):
            assert model_bytes(new, folder) == content, "half fitted"
        assert model_bytes(new.fit(X, y), folder) == content

    def check_predicted(error: Error) -> None:
        assert loaded.predict(questions).tolist() == answers
        assert model_bytes(loaded, folder) == content

    def check_continued(error: Error) -> None:
        resaved = model_bytes(loaded, folder)
        assert resaved == continued or (error and resaved == content), "half changed"
        if resaved == content:
            assert loaded.predict(questions).tolist() == answers
            assert model_bytes(loaded.partial_fit(X, y), folder) == continued

    yield f"{name} fit", Operation(lambda: new.fit(X, y), check_fitted, uses_files=False)
    yield f"{name} predict", Operation(lambda: loaded.predict(questions), check_predicted, uses_files=False)
    if continues:
        go_on = Operation(lambda: loaded.partial_fit(X, y), check_continued, uses_files=False)
        yield f"{name} partial_fit", go_on


def checkpoint_operations(name: str, case: Case, folder: Path) -> Operations:
    """A fit with a checkpoint after every iteration ends in the same model, with a warning."""
    empty(folder)
    path = folder / "state"
    new = clone(case.model).set_params(checkpoint=str(path))

    def fit() -> None:
        checkpoint.SECONDS_BETWEEN = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            new.fit(case.structures, case.labels)

    fit()
    content = model_bytes(new, folder)

    def check(error: Error) -> None:
        if error is None:
            assert model_bytes(new, folder) == content
        fit()  # from whatever the checkpoint holds
        assert model_bytes(new, folder) == content

    yield f"{name} checkpoint", Operation(fit, check)


TEXT = "Ana NP B-PER\nvive VB O\nen IN O\nLima NP B-LOC\n\nBo NP B-PER\nduerme VB O\n\n" * REPEATED
READING = {"format_name": None, "label": None, "columns": None, "graph": None, "options": ()}
TEMPLATE = "U00:%x[0,0]/%x[0,1]\nU01:%x[-1,0]\nB\n"
LINES = {
    "train": "train {0}/data.conll -o {0}/out",
    "train with checkpoint": "train {0}/data.conll -o {0}/out --template {0}/template "
    "--set checkpoint={0}/state",
    "tag -o": "tag {0}/model.fuda {0}/data.conll -o {0}/out.conll",
    "tag": "tag {0}/model.fuda {0}/data.conll",
    "convert": "convert {0}/data.conll {0}/out.jsonl",
    "convert to standard output": "convert {0}/data.conll - --to jsonl",
    "export": "export {0}/store.db -o {0}/out.jsonl",
    "export of a model": "export {0}/store.db -o {0}/out.fuda",
}


def command_operations(name: str, folder: Path) -> Operations:
    """A command that writes to a new file and over an old one, or to standard output."""
    arguments = LINES[name].format(folder).split()
    yield f"fuda {name}", _command(arguments, folder, None)
    if "/out" in LINES[name]:
        yield f"fuda {name}, over an old file", _command(arguments, folder, b"old")


def _command(arguments: list[str], folder: Path, old: bytes | None) -> Operation:
    """A command that writes to standard output or to a file, which may exist."""
    written = [Path(argument) for argument in arguments if "/out" in argument]
    target = written[0] if written else folder / "stdout"
    errors = folder.with_suffix(".err")

    def prepare() -> None:
        for handle, path in ((1, folder / "stdout"), (2, errors)):
            os.dup2(opened := os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), handle)
            os.close(opened)
        (folder / "data.conll").write_text(TEXT)
        (folder / "template").write_text(TEMPLATE)
        X, y = [["Ana", "vive"], ["Bo"]], [["B-PER", "O"], ["B-PER"]]
        fuda.HMM().fit([[(word, "NP") for word in words] for words in X], y).save(folder / "model.fuda")
        if arguments[0] == "export":
            make_store(folder)
        if old is not None:
            target.write_bytes(old)

    def run() -> None:
        sys.argv = ["fuda", *arguments]
        main()

    with _own_streams():
        empty(folder)
        prepare()
        with suppress(SystemExit):
            run()
        sys.stdout.flush()
        expected = target.read_bytes()

    def check(error: Error) -> None:
        sys.stdout.flush()  # nothing is left for the end of the process, when it could not be reported
        lines = errors.read_text().splitlines()
        assert isinstance(error, SystemExit), error
        content = target.read_bytes() if target.exists() else None
        if error.code == 0:
            assert content == expected, "the exit code is 0, but the output is not complete"
            return
        assert error.code == 2, f"exit code {error.code}: {lines}"
        assert len([line for line in lines if not line.startswith("fuda: checkpoint ")]) == 1, lines
        assert lines[-1].startswith("fuda: "), lines
        assert not written or content in (old, expected), "neither the old file nor the new one"

    return Operation(run, check, prepare)


def make_store(folder: Path) -> None:
    """Make a store of a page, with the labels of a file."""
    with closing(Store(folder / "store.db", create=True)) as store:
        fill(store, (str(folder / "data.conll"),), None, False, None, **READING)


@contextmanager
def _own_streams() -> Iterator[None]:
    """Restore the standard streams after the block."""
    sys.stdout.flush()
    streams = [os.dup(1), os.dup(2)]
    try:
        yield
    finally:
        for handle, copy in enumerate(streams, 1):
            os.dup2(copy, handle)
            os.close(copy)
