"""Run the tests on every supported set of versions, and print a table of the outcomes.

    python scripts/matrix.py [sets] [-- arguments of pytest]

such as ``python scripts/matrix.py 3.11-oldest 3.13 -- tests/data``; by default all sets
and all tests.

``3.12`` is Python 3.12 with the newest releases that pyproject.toml allows, ``3.11-oldest`` is
Python 3.11 with the oldest: of ``numpy>=2.0`` the releases 2.0.*. Each set has a virtual
environment of its own, ``.venv-3.12`` for example, made when it is missing and brought up to date
each time. Interpreters are found as ``python3.12`` on PATH or in pyenv's folder of versions. Exits
with 1 unless every interpreter was found and every set passed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETS = ["3.11-oldest", "3.11", "3.12", "3.13"]
SHOWN = ("numpy", "scipy", "scikit-learn", "numba")


def main() -> int:
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    sets = arguments[:split] or SETS
    rows = [(name, *outcome(name, arguments[split + 1 :] or ["-n", "2"])) for name in sets]
    for name, result, seconds in rows:
        print(f"{name:14}{result:24}{seconds:6.0f} s   {installed(environment(name))}")
    return int(any(result != "passed" for _, result, _ in rows))


def outcome(name: str, pytest_arguments: list[str]) -> tuple[str, float]:
    """What happened with one set, and how many seconds it took."""
    start = time.monotonic()
    version, _, variant = name.partition("-")
    interpreter = find(version)
    if interpreter is None:
        return f"no python{version} found", 0.0
    python = environment(name) / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    steps = {
        "environment": [interpreter, "-m", "venv", environment(name)],
        "installation": [*install, "-e", ".[test]", *(oldest() if variant == "oldest" else [])],
        "tests": [python, "-m", "pytest", *pytest_arguments],
    }
    for step, command in steps.items():
        print(f"{name}: {step}", flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            return f"{step} failed", time.monotonic() - start
    return "passed", time.monotonic() - start


def oldest() -> list[str]:
    """The oldest releases that the dependencies allow: ``numpy==2.0.*`` for ``numpy>=2.0``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.sub(r">=([\d.]+)$", r"==\1.*", requirement) for requirement in project["dependencies"]]


def environment(name: str) -> Path:
    """The folder of the virtual environment of a set."""
    return ROOT / f".venv-{name}"


def installed(folder: Path) -> str:
    """The versions of the numerical packages in a virtual environment."""
    paths = [str(path) for path in folder.glob("lib/python*/site-packages")]
    versions = {package.metadata["Name"]: package.version for package in distributions(path=paths)}
    return ", ".join(f"{name} {versions[name]}" for name in SHOWN if name in versions)


def find(version: str) -> str | None:
    """The first interpreter that runs and has the version; a shim of pyenv may do neither."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for name in (f"python{version}", *pyenv.glob(f"versions/{version}.*/bin/python")):
        if interpreter := shutil.which(name):
            process = subprocess.run([interpreter, "-c", code], capture_output=True, text=True)
            if process.stdout.strip() == version:
                return interpreter
    return None


if __name__ == "__main__":
    sys.exit(main())
