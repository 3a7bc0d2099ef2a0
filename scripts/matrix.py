"""Run the tests on every supported version of Python, and print a table of the outcomes.

    python scripts/matrix.py [versions] [-- arguments of pytest]

such as ``python scripts/matrix.py 3.12 3.13 -- tests/data``; by default all versions and all tests.

Each version has a virtual environment of its own, ``.venv-3.12`` for example, made when it is missing.
Interpreters are found as ``python3.12`` on PATH or in pyenv's folder of versions. Exits with 1 unless every
version was found and passed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ["3.11", "3.12", "3.13"]


def main() -> int:
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    versions = arguments[:split] or VERSIONS
    rows = [(version, *outcome(version, arguments[split + 1 :] or ["-n", "2"])) for version in versions]
    for version, result, seconds in rows:
        print(f"{version:8}{result:48}{seconds:6.0f} s")
    return int(any(result != "passed" for _, result, _ in rows))


def outcome(version: str, pytest_arguments: list[str]) -> tuple[str, float]:
    """What happened on one version, and how many seconds it took."""
    start = time.monotonic()
    interpreter = find(version)
    if interpreter is None:
        return f"no python{version} on PATH or in pyenv", 0.0
    python = ROOT / f".venv-{version}" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", ".[test]"]
    steps = {
        "environment": [interpreter, "-m", "venv", python.parents[1]],
        "installation": install,
        "tests": [python, "-m", "pytest", *pytest_arguments],
    }
    for step, command in steps.items():
        print(f"Python {version}: {step}", flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            return f"{step} failed", time.monotonic() - start
    return "passed", time.monotonic() - start


def find(version: str) -> str | None:
    """The first interpreter that runs and has the version; a shim of pyenv may do neither."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for name in (f"python{version}", *pyenv.glob(f"versions/{version}.*/bin/python")):
        if interpreter := shutil.which(name):
            done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True)
            if done.stdout.strip() == version:
                return interpreter
    return None


if __name__ == "__main__":
    sys.exit(main())
