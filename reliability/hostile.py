"""Hostile model files: sealed files with 10,000 changes per learner.

Each must be refused with a ModelFileError, or load as a model whose answers valid parameters could
give, within ten seconds and a gigabyte.

    python -m reliability.hostile [--runs N] [--seed S] [--jobs N] [--only NAME [--case NUMBER]]
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import fuda
from fuda import DataError, ModelFileError
from reliability.cases import Case, cases, further_states
from reliability.mutations import Content, mutated, put_together, take_apart
from reliability.running import Findings, options, run_units, summary

SECONDS, STALL, MEMORY = 10.0, 200.0, 1 << 30
_PATIENCE = (SECONDS, 150.0, SECONDS)  # for one file, tried again where it was slow
_SLOW = 4  # exit code
_PIECE = 250  # changes that one unit of work tries
_MOST_SHOWN = 5  # of the broken ones of a unit
# A model that cannot do what is asked, or was fitted on other structures than the questions.
_OTHER_QUESTION = re.compile(
    "(order|average|calibrate|kernel|scheme)=|.*(was fitted on|of the scheme|needs a seq)"
)


class Broken(Exception):
    """An answer that no valid parameters give."""


class TooSlow(BaseException):
    """Raised by the alarm."""


def refused_question(error: DataError) -> bool:
    """Whether a model refuses a question that a valid one may refuse."""
    return _OTHER_QUESTION.match(str(error)) is not None


def answers(model: Any, structures: list[Any]) -> list[Any]:
    """All that a user may ask of a model; Broken where an answer is not well formed."""
    names, answered = set(model.classes_), []
    for x, labels in zip(structures, model.predict(structures), strict=True):
        if len(labels) != len(x) or not set(labels) <= names:
            raise Broken(f"labels {list(labels)[:5]}")
        answered.append(list(labels))
    for ask in (_marginals, _nbest, _scores, _explanations, _weights):
        try:
            answered.append(ask(model, structures))
        except DataError as error:
            if not refused_question(error):
                raise
            answered.append(str(error))
    return answered


def _marginals(model: Any, structures: list[Any]) -> Any:
    if not hasattr(model, "predict_marginals"):
        return None
    marginals = list(model.predict_marginals(structures))
    for x, m in zip(structures, marginals, strict=True):
        fits = m.shape == (len(x), len(model.classes_)) and np.isfinite(m).all()
        if (
            not fits
            or (m < 0).any()
            or (m > 1 + 1e-9).any()
            or not np.allclose(m.sum(axis=1), 1.0, atol=1e-6)
        ):
            raise Broken(f"marginals {m.tolist()[:2]}")
    return [np.round(m, 9).tolist() for m in marginals]


def _nbest(model: Any, structures: list[Any]) -> Any:
    if not hasattr(model, "predict_nbest"):
        return None
    ranked = [list(listed) for listed in model.predict_nbest(structures, 3)]
    for x, listed in zip(structures, ranked, strict=True):
        scores = [score for _, score in listed]
        labelings = {tuple(labels) for labels, _ in listed}
        known = all(len(labels) == len(x) and set(labels) <= set(model.classes_) for labels, _ in listed)
        if not listed or not known or len(labelings) != len(listed):
            raise Broken(f"n-best {listed}")
        if not np.isfinite(scores).all() or max(scores) > 0 or scores != sorted(scores, reverse=True):
            raise Broken(f"n-best scores {scores}")
    return [[(list(labels), score) for labels, score in listed] for listed in ranked]


def _scores(model: Any, structures: list[Any]) -> Any:
    if not hasattr(model, "decision_scores"):
        return None
    scores = list(model.decision_scores(structures))
    if not all(np.isfinite(s).all() for s in scores):
        raise Broken("a decision score is not finite")
    return [s.tolist() for s in scores]


def _explanations(model: Any, structures: list[Any]) -> Any:
    if not hasattr(model, "explain"):
        return None
    explanation = model.explain(structures[0], len(structures[0]) - 1)
    verdicts = [verdict for verdict in (explanation.chosen, explanation.rival) if verdict is not None]
    numbers = [number for verdict in verdicts for number in (verdict.score, verdict.others)]
    numbers += [voice.share for verdict in verdicts for voice in verdict.voices]
    if not all(map(math.isfinite, numbers)):
        raise Broken(f"explanation {numbers}")
    return str(explanation)


def _weights(model: Any, structures: list[Any]) -> Any:
    """What else a model shows: weights by name, support."""
    repr(model)
    if hasattr(model, "show_support") and model.support_:
        model.show_support(model.support_[0].structure)
    if not hasattr(model, "top_features"):
        return None
    weights = {} if getattr(model, "kernel", None) is not None else model.top_features(3)
    if not all(math.isfinite(weight) for listed in weights.values() for _, weight in listed):
        raise Broken(f"weights {weights}")
    return str(weights)


def outcome(path: Path, structures: list[Any], expected: Any, seconds: float = SECONDS) -> tuple[str, str]:
    """What comes of a file: a word, which must not begin with "broken", and why."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            model = fuda.load(path)
            answered = answers(model, structures)
            again = path.with_suffix(".again")
            model.save(again)
            if repr(answers(fuda.load(again), structures)) != repr(answered):
                return "broken: differs after saving", ""
            return ("same" if repr(answered) == repr(expected) else "other answer"), ""
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except ModelFileError as error:
        if "\n" in str(error) or "MemoryError" in str(error):
            return "broken: message", ascii(str(error))
        return ("refused" if "usable model file (" not in str(error) else "refused (other)"), str(error)
    except DataError as error:
        return ("other question" if refused_question(error) else "broken: DataError after load"), str(error)
    except Broken as error:
        return "broken: answer", str(error)
    except TooSlow:
        return "broken: too slow", ""
    except Exception as error:  # the campaign reports whatever else is raised
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/fuda/" in frame.filename]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        return f"broken: {type(error).__name__}", f"{where} {error}"


def _ring(*_: Any) -> None:
    raise TooSlow


def _chance(seed: int, name: str, number: int) -> Random:
    """The source of the random choices of one change."""
    return Random(f"{seed}/{name}/{number}")


def _work(
    pipe: int,
    numbers: range,
    seed: int,
    name: str,
    contents: dict[str, Content],
    case: Case,
    seconds: float,
) -> None:
    """Try changes in turn and write the outcomes to the pipe; exit with 4 after a slow one."""
    signal.signal(signal.SIGALRM, _ring)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2 * MEMORY, used + 2 * MEMORY))
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        path = Path(folder) / "hostile.fuda"
        path.write_bytes(put_together(contents[name]))
        expected = answers(fuda.load(path), case.questions)
        for number in numbers:
            data, changes = mutated(_chance(seed, name, number), contents[name], list(contents.values()))
            os.write(pipe, (json.dumps(["begin", number, changes[:200]]) + "\n").encode())
            path.write_bytes(data)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            word, why = outcome(path, case.questions, expected, seconds)
            if word == "broken: too slow":
                os._exit(_SLOW)
            seconds = SECONDS
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            if grown << 10 > MEMORY:
                word, why = "broken: memory", f"{grown >> 10} MiB; {word} {why}"
            os.write(pipe, (json.dumps(["end", number, word, ascii(why)[:300]]) + "\n").encode())
    os._exit(0)


def _lines(read_end: int, pid: int) -> Iterator[list[Any]]:
    """The messages of a worker; one that stalls is killed."""
    buffer = b""
    while True:
        ready, _, _ = select.select([read_end], [], [], STALL)
        if not ready:
            os.kill(pid, signal.SIGKILL)
            continue
        chunk = os.read(read_end, 1 << 16)
        if not chunk:
            return
        *lines, buffer = (buffer + chunk).split(b"\n")
        yield from map(json.loads, lines)


def work(unit: tuple[str, range, Path], seed: int, folder: Path) -> Findings:
    """Try some changes of one model's file in forked workers, and report what is broken.

    What is too slow once may have been compiled, so it is tried again with more time,
    and once more.
    """
    name, numbers, files = unit
    case = all_cases()[name]
    contents = {path.stem: take_apart(path.read_bytes()) for path in sorted(files.glob("*.fuda"))}
    counts, broken = Counter[str](), list[str]()
    answers(fuda.load(files / f"{name}.fuda"), case.questions)  # compiles

    def report(number: int, word: str, more: str) -> None:
        counts[word] += 1
        if word.startswith("broken") and len(broken) < _MOST_SHOWN:
            broken.append(f"--only {name}$ --seed {seed} --case {number}: {word} {more}")

    first, seconds = numbers.start, [SECONDS]
    while first < numbers.stop:
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            try:
                _work(write_end, range(first, numbers.stop), seed, name, contents, case, seconds[-1])
            finally:
                traceback.print_exc()
                os._exit(3)
        os.close(write_end)
        changes = ""
        for kind, number, word, *why in _lines(read_end, pid):
            if kind == "begin":
                changes = word
                continue
            first, seconds = number + 1, [SECONDS]
            report(number, word, f"[{changes}] {why[0]}")
        os.close(read_end)
        _, status = os.waitpid(pid, 0)
        if os.waitstatus_to_exitcode(status) == _SLOW and len(seconds) < len(_PATIENCE):
            seconds.append(_PATIENCE[len(seconds)])
        elif status and first < numbers.stop:
            report(first, f"broken: ended with {os.waitstatus_to_exitcode(status)}", f"[{changes}]")
            first, seconds = first + 1, [SECONDS]
    print(f"{name}, {numbers}: {dict(sorted(counts.items()))}", file=sys.stderr, flush=True)
    return Findings(broken, counts + Counter({"files": len(numbers)}))


def all_cases() -> dict[str, Case]:
    """All cases, whose names begin with the class of the model."""
    return cases() | further_states()


def units(names: list[str], runs: int, files: Path) -> list[tuple[str, range, Path]]:
    """So many changes per learner, over all its cases, in pieces."""
    ranges, learners = [], Counter(name.split("-")[0] for name in all_cases())
    for name in names:
        each = math.ceil(runs / learners[name.split("-")[0]])
        ranges += [(name, range(first, min(first + _PIECE, each)), files) for first in range(0, each, _PIECE)]
    return ranges


def main() -> int:
    """Run the campaign over all learners."""
    parser = options(__doc__, 10_000)
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose names begin so")
    parser.add_argument("--case", type=int, help="try this one number, in this process")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    faulthandler.enable()
    began, chosen = time.time(), [name for name in all_cases() if re.match(args.only, name)]
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        for name, case in all_cases().items():
            case.fitted().save(files / f"{name}.fuda")
        if args.case is not None:
            contents = {path.stem: take_apart(path.read_bytes()) for path in sorted(files.glob("*.fuda"))}
            data, description = mutated(
                _chance(args.seed, chosen[0], args.case), contents[chosen[0]], list(contents.values())
            )
            print(description)
            (files / "hostile.fuda").write_bytes(data)
            print(answers(fuda.load(files / "hostile.fuda"), all_cases()[chosen[0]].questions))
            return 0
        findings = run_units(units(chosen, args.runs, files), work, args)
    learners = {name.split("-")[0] for name in chosen}
    took = f"{len(learners)} learners, {len(chosen)} cases, seed {args.seed}, {time.time() - began:.0f} s"
    print(f"hostile: {summary(findings)}, {took}")
    return int(bool(findings.broken))


if __name__ == "__main__":
    sys.exit(main())
