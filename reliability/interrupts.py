"""SIGINT and SIGTERM at random moments of `fit`, `partial_fit` and ``fuda train`` of all learners.

After `fit` a model is fitted, and predicts, saves and loads, or is not fitted or as it was before.
After `partial_fit` it is as before or has learned everything, byte for byte. After ``fuda train`` the
output is the old file or a whole model, the exit code is 130 or 143, one line says what happened,
and a second signal ends the command at once.

    python -m reliability.interrupts [--runs N] [--seed S]
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import fuda
from fuda.cli import main as command
from fuda.cli.signals import Signals
from fuda.registry import MODELS
from reliability.running import run
from reliability.trainings import LEARNERS, data_for, sentences

STRUCTURES = 30
GOING_ON = [name for name, model in LEARNERS.items() if hasattr(model, "partial_fit")]
COMMANDS = [model.command for model in MODELS.values()]
SIGNALS = (signal.SIGINT, signal.SIGTERM)
OLD = b"an old model"


class Broken(Exception):
    """A promise that was not kept."""


def check(kept: bool, what: str) -> None:
    """Raise Broken where a promise was not kept."""
    if not kept:
        raise Broken(what)


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
    """The file of a model."""
    model.save(path)
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
        self.before = stored(self.fitted, self.path)
        if name in GOING_ON:
            for _ in range(2):
                model = fuda.load(self._saved())
                began = time.perf_counter()
                model.partial_fit(*self.more)
                self.partial_seconds = time.perf_counter() - began
            self.after = stored(model, self.path)

    def _saved(self) -> Path:
        self.path.write_bytes(self.before)
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


class Command:
    """``fuda train`` of a learner, in a child that is forked with everything imported and compiled."""

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
        """Run the command, and something meanwhile: how it ended, and the time from its beginning."""
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
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)

        def entered(signals: Signals) -> Signals:
            enter(signals)
            os.write(tell, b"!")
            return signals

        try:
            os.dup2(os.open(self.errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115, until the process ends
            Signals.__enter__ = entered  # type: ignore[method-assign]
            sys.argv = ["fuda", "train", str(self.file), "-o", str(self.out), "--learner", self.name]
            command()
        except SystemExit as ended:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            code = int(ended.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def run(self, chance: random.Random) -> str:
        """Interrupt the command, sometimes twice: how it ended."""
        number, twice = chance.choice(SIGNALS), chance.random() < 0.2
        moment, wait = chance.uniform(0, 1.05) * self.seconds, chance.uniform(0, 0.02)

        def send(child: int) -> None:
            time.sleep(moment)
            os.kill(child, number)
            if twice:
                time.sleep(wait)
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
            check(seconds < moment + wait + 2, f"it took {seconds - moment:.1f} s to end")
            return "ended at once"
        check(code == 128 + number, f"exit code {code}: {lines}")
        check(len(about) == 1, f"not one line about it: {lines}")
        check(is_new != ("no file was written" in about[0]), f"the file and the line differ: {lines}")
        return "saved" if is_new else "old file"


def campaign(runs: int, seed: int, folder: Path) -> tuple[list[str], str]:
    """Interrupt so many times: what broke, and the figures."""
    chance, began = random.Random(seed), time.perf_counter()
    broken, outcomes, cases = [], Counter[str](), {}
    kinds = [("fit", LEARNERS), ("partial_fit", GOING_ON), ("fit", LEARNERS), ("command", COMMANDS)]
    for number in range(runs):
        kind, names = kinds[number % len(kinds)]
        name, own = chance.choice(list(names)), random.Random(f"{seed} {number}")
        make = Command if kind == "command" else Case
        if (make, name) not in cases:
            place = folder / f"{make.__name__} {name}"
            place.mkdir()
            cases[make, name] = make(name, place)
        case = cases[make, name]
        work = {"fit": "fit", "partial_fit": "learn_more", "command": "run"}[kind]
        try:
            outcome = getattr(case, work)(own)
        except Broken as error:
            broken.append(f"{kind} of {name}, run {number}, seed {seed}: {error}")
            outcome = "broken"
        outcomes[f"{kind} {outcome}"] += 1
        print(f"{number + 1} of {runs}, {kind} of {name}: {outcome}", file=sys.stderr, flush=True)
    found = ", ".join(f"{count} {what}" for what, count in sorted(outcomes.items()))
    seconds = time.perf_counter() - began
    return broken, f"interrupts: {runs} signals, {len(broken)} broken ({found}), seed {seed}, {seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(run(__doc__, 300, campaign))
