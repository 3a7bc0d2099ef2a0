"""Kill −9 at random moments of fits of all learners: resumed, they end in the same model file.

A fit is killed again and again, each time at a random moment, and each run continues from the
checkpoint of the one before, until one ends. The model file that it replaces is the old or the new
one at all times, and the new one is the file of a fit that was never killed.

    python -m reliability.kills [--runs N] [--seed S] [--jobs N]
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

from sklearn.base import clone

from fuda.storage import checkpoint
from reliability.running import Findings, run
from reliability.trainings import LEARNERS, RESUMABLE, data_for

OLD = b"an old model"
STRUCTURES = 40


def fit_and_save(name: str, state: Path | None, out: Path) -> None:
    """Fit a learner, from a checkpoint that is written after every iteration, and save it."""
    checkpoint.SECONDS_BETWEEN = 0.0
    X, Y = data_for(name, STRUCTURES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(LEARNERS[name]).set_params(checkpoint=state).fit(X, Y)
    model.save(out)


def in_a_process(name: str, state: Path, out: Path, seconds: float | None) -> tuple[int, float]:
    """Do that in a child, killed after some seconds: how it ended, and the time that it took."""
    began = time.perf_counter()
    child = os.fork()  # with everything imported and compiled
    if not child:
        code = 1
        try:
            fit_and_save(name, state, out)
            code = 0
        finally:
            os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), time.perf_counter() - began


class Chain:
    """The runs of one fit, from the first one to the one that is not killed before its end."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.state, self.out = name, folder / "state", folder / "model.fuda"
        fit_and_save(name, None, self.out)
        self.expected = self.out.read_bytes()
        code, self.seconds = in_a_process(name, self.state, self.out, None)
        assert code == 0, f"{name}: a fit with a checkpoint failed"
        assert self.out.read_bytes() == self.expected, f"{name}: a checkpoint changes the model"
        self.restart()

    def restart(self) -> None:
        """Forget what has been done."""
        self.state.unlink(missing_ok=True)
        self.out.write_bytes(OLD)

    def run(self, moment: float) -> tuple[str | None, bool]:
        """Run once, killed after a share of a fit's time: what is wrong; whether it was killed."""
        code, _ = in_a_process(self.name, self.state, self.out, moment * self.seconds)
        content = self.out.read_bytes()
        if content not in (OLD, self.expected):
            return "the model file is neither the old nor the new one", True
        if code == -signal.SIGKILL:
            return None, True
        if code:
            return f"a resumed fit ended with {code}", False
        problem = None if content == self.expected else "a resumed fit ended in another model"
        self.restart()
        return problem, False


def units(runs: int, seed: int) -> list[tuple[str, int]]:
    """How often the fit of each learner is killed, at least."""
    names = random.Random(seed).sample(RESUMABLE, len(RESUMABLE))
    return [(name, len(range(number, runs, len(names)))) for number, name in enumerate(names[:runs])]


def work(unit: tuple[str, int], seed: int, folder: Path) -> Findings:
    """Kill the fit of one learner so many times, and then let it end."""
    name, runs = unit
    chance, broken = random.Random(f"{seed} {name}"), []
    counts = Counter({"learners": 1})
    chain, number = Chain(name, folder), 0
    while counts["kills"] < runs or number:
        moment = chance.uniform(0, 1)
        problem, killed = chain.run(moment)
        counts["kills"] += killed
        if problem:
            broken.append(f"{name}, run {number} at {moment:.3f} of a fit, seed {seed}: {problem}")
            chain.restart()
        counts["fits resumed to identical bytes"] += bool(number) and not killed and not problem
        number = number + 1 if killed and not problem else 0
    temporary = list(folder.glob(".*"))
    counts["temporary files left by kills"] += len(temporary)
    print(f"{name}: {counts['kills']} kills", file=sys.stderr, flush=True)
    return Findings(broken, counts)


if __name__ == "__main__":
    sys.exit(run(__doc__, 200, units, work))
