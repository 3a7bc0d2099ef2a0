"""All benchmarks: other programs and fuda in turn.

Needs the corpora (FUDA_DATA) and the extra ``bench``.
"""

from __future__ import annotations

import argparse
import importlib

CONTENDERS = {
    "python-crfsuite": "python_crfsuite",
    "sklearn-crfsuite": "sklearn_crfsuite",
    "tutorial": "tutorial",
    "chaine": "chaine",
    "perceptron": "perceptron",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        help="the benchmarks to run; all by default",
        default=[
            *CONTENDERS,
            "scaling",
            "limits",
            "everyday",
            "latency",
            "hm_svm",
            "marginalized",
            "corrections",
        ],
    )
    for name in parser.parse_args().names:
        print(f"\n## {name}\n")
        print("| | |\n|---|---|")
        module = importlib.import_module(CONTENDERS.get(name, name))
        for quantity, figure in module.compare() if name in CONTENDERS else module.rows():
            print(f"| {quantity} | {figure} |", flush=True)


if __name__ == "__main__":
    main()
