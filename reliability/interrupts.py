"""SIGINT and SIGTERM at random moments of `fit`, `partial_fit` and ``fuda train`` of all learners.

The command is run in forked processes, in which training takes most of the time, and in new ones,
from the first import of the package to the end of Python.

After `fit` a model is fitted, and predicts, saves and loads, or is not fitted or as it was before.
After `partial_fit` it is as before or has learned everything, byte for byte. After ``fuda train``
the output is the old file or a whole model, the exit code is 130 or 143, one line says what
happened, and a second signal ends the command at once.

    python -m reliability.interrupts [--runs N] [--seed S] [--jobs N]
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import fuda
from fuda.cli import main as command
from fuda.cli.signals import Signals
from fuda.registry import MODELS
from fuda.runtime.interrupts import _ignore_signals, end_process
from reliability.running import Findings, run
from reliability.trainings import LEARNERS, data_for, sentences

STRUCTURES = 30
GOING_ON = [name for name, model in LEARNERS.items() if hasattr(model, "partial_fit")]
COMMANDS = [model.command for model in MODELS.values()]
SIGNALS = (signal.SIGINT, signal.SIGTERM)
OLD = b"an old model"
ENDS = 20.0  # seconds, on a busy machine


class Broken(Exception):
    """A promise that was not kept."""


def check(is_kept: bool, problem: str) -> None:
    """Raise Broken where a promise was not kept."""
    if not is_kept:
        raise Broken(problem)


def interrupted(work: Callable[[], object], seconds: float, number: int) -> bool:
    """Do some work with a signal after some seconds: whether KeyboardInterrupt was raised."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(number, before)
    return False


def stored(model: Any, path: Path) -> bytes:
    """The file of a model; what is inside where the file also says how long training took."""
    model.save(path)
    if isinstance(model, fuda.Auto):
        return repr([list(m) for m in model.predict_marginals(sentences(9)[0])]).encode()
    return path.read_bytes()


class Case:
    """A learner, what it does without interrupts, and how long that takes."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.path = name, folder / "model.fuda"
        self.X, self.Y = data_for(name, STRUCTURES)
        self.more = data_for(name, STRUCTURES, seed=1)
        self.new = clone(LEARNERS[name])
        clone(self.new).fit(self.X, self.Y)  # compiles
        began = time.perf_counter()
        self.fitted = clone(self.new).fit(self.X, self.Y)
        self.seconds = time.perf_counter() - began
        self.before, self.file = stored(self.fitted, self.path), self.path.read_bytes()
        if name in GOING_ON:
            for _ in range(2):
                model = fuda.load(self._saved())
                began = time.perf_counter()
                model.partial_fit(*self.more)
                self.partial_seconds = time.perf_counter() - began
            self.after = stored(model, self.path)

    def _saved(self) -> Path:
        self.path.write_bytes(self.file)
        return self.path

    def fit(self, chance: random.Random) -> str:
        """Interrupt a fit of a new or a fitted model: how it ended."""
        model = fuda.load(self._saved()) if chance.random() < 0.5 else clone(self.new)
        was_fitted = hasattr(model, "classes_")
        moment, number = chance.uniform(0, 1.1) * self.seconds, chance.choice(SIGNALS)
        raised = interrupted(lambda: model.fit(self.X, self.Y), moment, number)
        if not hasattr(model, "classes_"):
            check(raised, "a fit ended without a model and without an exception")
            check(vars(model).keys() - {"_last"} == vars(self.new).keys(), "something is left of a fit")
            try:
                model.predict(self.X)
            except NotFittedError:
                return "not fitted"
            raise Broken("a model that is not fitted predicts")
        content, predicted = stored(model, self.path), model.predict(self.X).tolist()
        check(fuda.load(self.path).predict(self.X).tolist() == predicted, "the file predicts otherwise")
        if raised:  # at the very beginning, or after the last step
            check(content == self.before, "an exception, and another model than before or after")
            return "as before" if was_fitted else "whole"
        return "whole" if content == self.before else "ended early"

    def learn_more(self, chance: random.Random) -> str:
        """Interrupt a partial fit: how it ended."""
        model = fuda.load(self._saved())
        moment, number = chance.uniform(0, 1.1) * self.partial_seconds, chance.choice(SIGNALS)
        raised = interrupted(lambda: model.partial_fit(*self.more), moment, number)
        content = stored(model, self.path)
        check(content in (self.before, self.after), "part of a partial fit was kept")
        check(raised or content == self.after, "no exception, and the model has not learned")
        return "more learned" if content == self.after else "as before"


# Options of learners that take minutes for labels without any order, which these are.
QUICK = {"marginalized-svm": ["--set", "epochs=3"]}


class Command:
    """``fuda train`` of a learner, in a forked child with everything imported and compiled."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.out, self.errors = name, folder / "model.fuda", folder / "stderr"
        self.file = folder / "train.conll"
        sequences = zip(*sentences(200), strict=True)
        text = ("".join(f"{word} {label}\n" for word, label in zip(x, y, strict=True)) for x, y in sequences)
        self.file.write_text("\n".join(text))
        for _ in range(2):
            self.code, self.seconds = self._run(lambda child: None)
        check(self.code == 0, f"fuda train failed: {self.errors.read_text()}")

    def _run(self, meanwhile: Callable[[int], None]) -> tuple[int, float]:
        """Run the command, and something meanwhile; return how it ended, and the time it took."""
        self.out.write_bytes(OLD)
        ready, tell = os.pipe()
        child = os.fork()
        if not child:
            self._child(tell)
        os.read(ready, 1)
        began = time.perf_counter()
        meanwhile(child)
        _, status = os.waitpid(child, 0)
        os.close(ready)
        os.close(tell)
        return os.waitstatus_to_exitcode(status), time.perf_counter() - began

    def _child(self, tell: int) -> None:
        """Run the command, and tell when signals are handled."""
        enter, code = Signals.__enter__, 1
        for number in SIGNALS:
            signal.signal(number, end_process)

        def entered(signals: Signals) -> Signals:
            enter(signals)
            os.write(tell, b"!")
            return signals

        try:
            os.dup2(os.open(self.errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115, until the process ends
            Signals.__enter__ = entered  # type: ignore[method-assign]
            sys.argv = ["fuda", "train", str(self.file), "-o", str(self.out), "--learner", self.name]
            sys.argv += QUICK.get(self.name, [])
            command()
        except SystemExit as ended:
            _ignore_signals()
            code = int(ended.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def run(self, chance: random.Random) -> str:
        """Interrupt the command, sometimes twice: how it ended."""
        number, twice = chance.choice(SIGNALS), chance.random() < 0.4
        moment, wait = chance.uniform(0, 1.05) * self.seconds, chance.choice([0.02, 0.3]) * chance.random()

        def send(child: int) -> None:
            time.sleep(moment)
            os.kill(child, number)
            if twice:
                time.sleep(wait)
                with suppress(ProcessLookupError):  # a new process was waited for by then
                    os.kill(child, number)

        code, seconds = self._run(send)
        lines = self.errors.read_text().splitlines()
        about = [line for line in lines if "interrupted" in line]
        check("Traceback" not in "".join(lines), f"a traceback: {lines}")
        is_new = self.out.read_bytes() != OLD
        if is_new:
            fuda.load(self.out)
        if code == 0:
            check(is_new and not about, f"success, and {lines}")
            return "too late"
        if twice and code == -number:
            check(seconds < moment + wait + ENDS, f"it took {seconds - moment:.1f} s to end")
            return "ended at once"
        check(code == 128 + number, f"exit code {code}: {lines}")
        check(len(about) == 1, f"not one line about it: {lines}")
        unsaid = about[0] == "fuda: interrupted"  # before and after the command runs
        check(unsaid or is_new != ("no file was written" in about[0]), f"file and line differ: {lines}")
        return "saved" if is_new else "old file"


class Process(Command):
    """``fuda train`` of a learner, in a new process."""

    def _run(self, meanwhile: Callable[[int], None]) -> tuple[int, float]:
        """Run the command, and something from the moment on that signals are handled."""
        self.out.write_bytes(OLD)
        line = [sys.executable, "-m", "fuda", "train", str(self.file), "-o", str(self.out)]
        with open(self.errors, "wb") as errors:
            line += ["--learner", self.name, *QUICK.get(self.name, [])]
            child = subprocess.Popen(line, stdout=errors, stderr=errors, preexec_fn=_hear_signals)
        while child.poll() is None and not _handles_signals(child.pid):
            time.sleep(0.001)
        began = time.perf_counter()
        meanwhile(child.pid)
        return child.wait(), time.perf_counter() - began


def _hear_signals() -> None:
    """Undo what the background of a shell does."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _handles_signals(pid: int) -> bool:
    """Whether a process of Python handles SIGTERM, which it does not of itself."""
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(caught and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


KINDS: list[tuple[str, Callable[..., Any], str, list[str]]] = [
    ("fit", Case, "fit", list(LEARNERS)),
    ("partial_fit", Case, "learn_more", GOING_ON),
    ("fit", Case, "fit", list(LEARNERS)),
    ("command", Command, "run", COMMANDS),
    ("process", Process, "run", COMMANDS),
]


def units(runs: int, seed: int) -> list[tuple[str, str, list[int]]]:
    """Kinds of work, learners, and the numbers of the runs of each."""
    numbers_of: dict[tuple[str, str], list[int]] = {}
    for number in range(runs):
        kind, _, _, names = KINDS[number % len(KINDS)]
        mixed = random.Random(f"{seed} {kind}").sample(names, len(names))
        turn = number // len(KINDS) * (2 if kind == "fit" else 1) + (number % len(KINDS) == 2)
        numbers_of.setdefault((kind, mixed[turn % len(names)]), []).append(number)
    return [(*key, numbers) for key, numbers in numbers_of.items()]


def work(unit: tuple[str, str, list[int]], seed: int, folder: Path) -> Findings:
    """Interrupt so many times."""
    kind, name, numbers = unit
    _, make, method, _ = next(row for row in KINDS if row[0] == kind)
    case, broken, counts = make(name, folder), [], Counter[str]()
    for number in numbers:
        counts["signals"] += 1
        try:
            outcome = getattr(case, method)(random.Random(f"{seed} {number}"))
        except Broken as error:
            broken.append(f"{kind} of {name}, run {number}, seed {seed}: {error}")
            outcome = "broken"
        counts[f"{kind} {outcome}"] += 1
        print(f"{number}, {kind} of {name}: {outcome}", file=sys.stderr, flush=True)
    return Findings(broken, counts)


if __name__ == "__main__":
    sys.exit(run(__doc__, 300, units, work))
