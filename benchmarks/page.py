"""The page under load: a store of 100,000 sentences, 2,000 of them labelled.

Measured are the time from the start of `fuda label` until the page has its first sentence, the
time from an accept to the next sentence, and the memory of the process. Sentences are those of a
labelled file, repeated; a simulated person gives the labels of the file.

    python benchmarks/page.py shared/data/conll2002/esp.train
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from fuda.formats import read
from fuda.formats.spans import segments

LIMIT = 120.0  # seconds until the page must be there


def write_pool(source: Path, target: Path, size: int, labelled: int) -> list[list[str]]:
    """Write the sentences of a file, repeated, with labels for the first; return all labels."""
    X, y = read(source)
    words = [list(x.observations) for x in X]
    gold = [y[i % len(y)] for i in range(size)]
    with target.open("w") as out:
        for i in range(size):
            labels = gold[i] if i < labelled else ["_"] * len(gold[i])
            out.writelines(
                f"{w if isinstance(w, str) else w[0]}\t{t}\n"
                for w, t in zip(words[i % len(words)], labels, strict=True)
            )
            out.write("\n")
    return gold


class Process:
    """A running `fuda label`."""

    def __init__(self, *arguments: str) -> None:
        self.began = time.perf_counter()
        command = [sys.executable, "-m", "fuda", "label", *arguments, "--no-browser"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        address = re.search(r"http://\S+", self.process.stdout.readline())
        assert address, "the command has ended"
        self.address = address[0].split("/?")[0]
        self.client = httpx.Client(base_url=self.address, headers={"Origin": self.address}, timeout=LIMIT)
        self.client.get(address[0])

    def post(self, path: str, **content: Any) -> Any:
        answer = self.client.post(f"/api/{path}", json={"tab": "benchmark", **content})
        answer.raise_for_status()
        return answer.json()

    def megabytes(self, field: str) -> float:
        """The memory of the process: VmHWM is the largest so far, VmRSS that of now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def seconds(self) -> float:
        """The processor time of the process."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def end(self) -> None:
        self.process.send_signal(2)
        self.process.wait(30)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--labelled", type=int, default=2_000)
    parser.add_argument("--accepts", type=int, default=200)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between answers")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds at most for a first model")
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        pool, store = folder / "pool.conll", folder / "pool.db"
        gold = write_pool(args.source, pool, args.size, args.labelled)
        arguments = [str(pool), "--store", str(store)]
        if not store.exists():
            first = Process(*arguments)
            print(f"import of {args.size:,} sentences: {time.perf_counter() - first.began:.1f} s", flush=True)
            wait_for_model(first, args.settle)
            first.end()
        page = Process(*arguments)
        item = page.post("next")["item"]
        ready = time.perf_counter() - page.began
        print(f"page ready: {ready:.2f} s ({page.seconds():.2f} s of processor time)", flush=True)
        wait_for_model(page, args.settle)
        times, taught = [], []
        for _ in range(args.accepts):
            spans = [{"start": a, "end": b, "label": kind} for kind, a, b in segments(gold[item["id"] - 1])]
            began = time.perf_counter()
            answer = page.post(f"items/{item['id']}/accept", version=item["version"], spans=spans)
            times.append(time.perf_counter() - began)
            taught.append(answer["taught"]["milliseconds"])
            item = answer["next"]
            time.sleep(args.pause)
        half, most = np.percentile(times, [50, 95])
        print(f"load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print(f"accept to next: median {1000 * half:.0f} ms, 95th percentile {1000 * most:.0f} ms")
        print(f"waited for teaching: median {np.median(taught):.0f} ms")
        print(f"memory: {page.megabytes('VmRSS'):.0f} MB now, {page.megabytes('VmHWM'):.0f} MB at most")
        page.end()


def wait_for_model(page: Process, seconds: float) -> None:
    """Wait until a model is in use and no refit is under way."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        state = page.client.get("/api/state").json()
        if not state["refitting"] and state["model"]["text"].startswith("taught"):
            break
        time.sleep(0.5)
    print(
        f"model: {state['model']['text']}, {time.perf_counter() - page.began:.0f} s after the start",
        flush=True,
    )


if __name__ == "__main__":
    main()
