"""What people wait for every day: import, help, reading, encoding, evaluation; best of several."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

from common import DATA
from fuda import metrics, read
from fuda.data.window_encoding import WindowEncoder


def _best(function: Callable[[], object], rounds: int = 5) -> str:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return f"{min(times):.2f} s"


def _memory(structures: list) -> str:
    """What encoding takes, against the characters of the words and a separator each."""
    text = sum(len(word) + 1 for structure in structures for word in structure)
    tracemalloc.start()
    encoded = WindowEncoder("S3", 1).fit(structures)
    current, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del encoded
    return f"{current / text:.1f} times the text; {peak / text:.1f} at its highest"


def rows() -> list[tuple[str, str]]:
    """Rows of the table."""

    def python(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    train, testb = read(DATA / "esp.train", columns=1), read(DATA / "esp.testb", columns=1)
    gold = testb.y or []
    return [
        ("an empty Python", _best(python("-c", ""))),
        ("import fuda", _best(python("-c", "import fuda"))),
        ("fuda --help", _best(python("-m", "fuda", "--help"))),
        ("read esp.train, 264,715 tokens", _best(lambda: read(DATA / "esp.train"))),
        ("encode it with S3", _best(lambda: WindowEncoder("S3", 1).fit(train.X))),
        ("memory of that encoding", _memory(train.X)),
        ("encode it with text, window 1", _best(lambda: WindowEncoder("text", 1).fit(train.X))),
        ("evaluate testb, 51,533 tokens", _best(lambda: metrics.evaluate(gold, gold))),
    ]


if __name__ == "__main__":
    for name, figure in rows():
        print(f"{name:<40}{figure}")
