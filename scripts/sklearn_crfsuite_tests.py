"""Run sklearn-crfsuite's own tests on `fuda.compat.sklearn_crfsuite`.

Fetches the source distribution by pip into a temporary folder, replaces the import in its tests by
that of the replacement, and runs pytest there. Exits with pytest's code, or with 2 where the
distribution cannot be fetched.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

RELEASE = "sklearn-crfsuite==0.5.0"
_IMPORT = re.compile(r"^from sklearn_crfsuite import", re.MULTILINE)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        if subprocess.run([*fetch, "--dest", folder, RELEASE], check=False).returncode:
            print(f"{RELEASE} cannot be fetched", file=sys.stderr)
            return 2
        (archive,) = place.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
        (tests,) = place.glob("*/tests")
        replaced = 0
        for path in tests.glob("*.py"):
            text, count = _IMPORT.subn("from fuda.compat.sklearn_crfsuite import", path.read_text("utf-8"))
            path.write_text(text, "utf-8")
            replaced += count
        print(f"{RELEASE}: {replaced} imports replaced", flush=True)
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", tests], cwd=tests, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
