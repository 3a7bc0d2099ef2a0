"""Entity F1 with 100, 300, 1,000 and all training sentences: learners as they come, and rivals.

Every figure is of the test part of a corpus, whose training sentences are a random sample. Cells
that are in the file of results already are not computed again, so that a run can be continued.

    python benchmarks/accuracy.py --sizes 100,300 --seeds 3 --jobs 2 -o accuracy.jsonl
    python benchmarks/accuracy.py -o accuracy.jsonl --table --plot docs/_static
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CORPORA = ("esp", "ncbi_disease", "ewt", "ja_gsd_ne")
ALL = 1 << 40  # sentences
Sentences = list[list[str]]
Cell = tuple[str, int, int, str]


class Means(NamedTuple):
    """What a learner has: threads, and the seconds of `Auto`; None leaves them to it."""

    threads: int
    budget: float | None


def fuda_model(name: str) -> Callable[[Means], Any]:
    """A learner with its defaults, except for the number of threads."""

    def make(means: Means) -> Any:
        import fuda

        if name == "Auto":
            return fuda.Auto(budget=means.budget, n_jobs=means.threads)
        if name == "MarginalizedPerceptron, CRF as prior":
            prior = fuda.CRF(n_jobs=means.threads)
            return fuda.MarginalizedPerceptron(prior=prior, n_jobs=means.threads)
        return getattr(fuda, name)(n_jobs=means.threads)

    return make


class CRFsuite:
    """python-crfsuite with features and parameters of sklearn-crfsuite's tutorial, but no tags."""

    def fit(self, X: Sentences, y: Sentences) -> CRFsuite:
        import pycrfsuite

        from tutorial import items

        trainer = pycrfsuite.Trainer(verbose=False)
        for words, labels in zip(X, y, strict=True):
            trainer.append(items([(word, "") for word in words]), labels)
        trainer.set_params(
            {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "feature.possible_transitions": True}
        )
        self.path = f"/tmp/accuracy-{os.getpid()}.crfsuite"
        trainer.train(self.path)
        return self

    def predict(self, X: Sentences) -> Sentences:
        import pycrfsuite

        from tutorial import items

        tagger = pycrfsuite.Tagger()
        tagger.open(self.path)
        return [tagger.tag(items([(word, "") for word in words])) for words in X]


class Spacy:
    """spaCy's entity recognizer, from nothing: no vectors, 30 passes, dropout 0.2."""

    def fit(self, X: Sentences, y: Sentences) -> Spacy:
        import spacy
        from spacy.tokens import Doc
        from spacy.training import Example

        self.nlp = spacy.blank("xx")
        self.nlp.add_pipe("ner")
        vocab = self.nlp.vocab
        examples = [
            Example(Doc(vocab, words=words), Doc(vocab, words=words, ents=labels))
            for words, labels in zip(X, y, strict=True)
            if words
        ]
        self.nlp.initialize(lambda: examples)
        random = np.random.RandomState(0)
        for _ in range(30):
            random.shuffle(examples)
            for batch in spacy.util.minibatch(examples, 16):
                self.nlp.update(batch, drop=0.2)
        return self

    def predict(self, X: Sentences) -> Sentences:
        from spacy.tokens import Doc

        labels = []
        for words in X:
            doc = Doc(self.nlp.vocab, words=words)
            for _, step in self.nlp.pipeline:
                doc = step(doc)
            labels.append([f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc])
        return labels


LEARNERS: dict[str, Callable[[Means], Any]] = {
    **{
        name: fuda_model(name)
        for name in (
            "CRF",
            "MarginalizedPerceptron",
            "MarginalizedPerceptron, CRF as prior",
            "HMPerceptron",
            "HMSVM",
            "SemiCRF",
            "Auto",
        )
    },
    "python-crfsuite, tutorial": lambda _: CRFsuite(),
    "spaCy from nothing": lambda _: Spacy(),
}
RIVALS = ("python-crfsuite, tutorial", "spaCy from nothing")
# The longest first, so that no processor waits for the last one.
_ORDER = ["Auto", "MarginalizedPerceptron, CRF as prior", "HMSVM", "MarginalizedPerceptron"]


def measured(task: tuple[Cell, Means]) -> dict[str, Any]:
    """F1 and seconds of one cell."""
    (corpus, size, seed, learner), means = task
    from corpora import sentences
    from fuda.metrics import entity_scores

    warnings.simplefilter("ignore")
    (X, y), (X_test, y_test) = sentences(corpus), sentences(corpus, "test")
    sample = np.random.RandomState(seed).permutation(len(X))[:size]
    began, used = time.perf_counter(), time.process_time()
    model = LEARNERS[learner](means).fit([X[i] for i in sample], [y[i] for i in sample])
    took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - used}
    f1 = 100 * entity_scores(y_test, [list(labels) for labels in model.predict(X_test)]).micro.f1
    chosen = {"report": str(model.report_.chosen)} if learner == "Auto" else {}
    return {"corpus": corpus, "size": size, "seed": seed, "learner": learner, "f1": f1, **took, **chosen}


def cells(sizes: list[int], seeds: int, learners: list[str]) -> Iterator[Cell]:
    """What to measure, the longest first."""
    order = sorted(learners, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    for size in sorted(sizes, reverse=True):
        for learner in order:
            for corpus in CORPORA:
                for seed in range(seeds if size < ALL else 1):
                    yield corpus, size, seed, learner


def read_results(path: Path) -> dict[Cell, dict[str, Any]]:
    """The cells of a file of results."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(row["corpus"], row["size"], row["seed"], row["learner"]): row for row in rows}


def run(path: Path, cells: list[Cell], means: Means, jobs: int) -> None:
    """Measure cells that are missing, several at a time, and write each as it is known."""
    missing = [(cell, means) for cell in cells if cell not in read_results(path)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs) as pool, path.open("a") as out:
        for done, row in enumerate(pool.imap_unordered(measured, missing), start=1):
            print(json.dumps(row), file=out, flush=True)
            print(f"{done}/{len(missing)} {row['corpus']} {row['size']} {row['learner']} {row['f1']:.1f}")


def by_learner(results: dict[Cell, dict[str, Any]], key: str) -> dict[tuple[str, str, int], list[float]]:
    """The values of all samples by learner, corpus and size."""
    figures = defaultdict(list)
    for (corpus, size, _, learner), row in results.items():
        figures[learner, corpus, size].append(row[key])
    return figures


def table(results: dict[Cell, dict[str, Any]]) -> str:
    """Mean F1 by learner, corpus and size, with the spread over samples, as Markdown."""
    f1, cpu = by_learner(results, "f1"), defaultdict(list)
    for (_, size, _, learner), row in results.items():
        cpu[learner, size].append(row["cpu"])
    sizes = sorted({cell[1] for cell in results})
    lines = []
    for size in sizes:
        title = "all" if size == ALL else f"{size:,}"
        lines += [f"| {title} sentences | {' | '.join(CORPORA)} | mean | CPU s |", "|---" * 7 + "|"]
        for learner in LEARNERS:
            values = [f1[learner, corpus, size] for corpus in CORPORA]
            if not any(values):
                continue
            shown = [_shown(some) for some in values]
            mean = f"{statistics.mean(map(statistics.mean, values)):.1f}" if all(values) else "–"
            seconds = f"{statistics.mean(cpu[learner, size]):.0f}"
            lines.append(f"| {learner} | {' | '.join(shown)} | {mean} | {seconds} |")
        lines.append("")
    return "\n".join(lines)


def _shown(values: list[float]) -> str:
    """A mean with half of the range."""
    if not values:
        return "–"
    spread = f" ± {(max(values) - min(values)) / 2:.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def plot(results: dict[Cell, dict[str, Any]], folder: Path) -> None:
    """Learning curves, a panel for each corpus."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    f1 = dict(by_learner(results, "f1"))
    figure, panels = plt.subplots(1, len(CORPORA), figsize=(13, 3.6), layout="constrained")
    for panel, corpus in zip(panels, CORPORA, strict=True):
        sizes = sorted({cell[1] for cell in results if cell[0] == corpus and cell[1] < ALL})
        for number, learner in enumerate(LEARNERS):
            means = [statistics.mean(f1[learner, corpus, n]) for n in sizes if (learner, corpus, n) in f1]
            if not means:
                continue
            style = "--" if learner in RIVALS else "-"
            panel.plot(sizes[: len(means)], means, style, color=f"C{number}", marker="o", ms=3, label=learner)
        panel.set(title=corpus, xscale="log", xlabel="sentences", xticks=sizes)
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("entity F1")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(folder / "accuracy.png", dpi=150)


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="100,300", help="numbers of sentences, or all")
    parser.add_argument("--seeds", type=int, default=3, help="samples of each size")
    parser.add_argument("--learners", default=";".join(LEARNERS), help="names, with ; between them")
    parser.add_argument("--budget", type=float, help="seconds of Auto; its own choice unless given")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--threads", type=int, default=1, help="threads of each process")
    parser.add_argument("-o", "--output", type=Path, default=Path("accuracy.jsonl"), help="results")
    parser.add_argument("--table", action="store_true", help="print the table of the results")
    parser.add_argument("--plot", type=Path, help="a folder for the learning curves")
    args = parser.parse_args()
    if args.table or args.plot:
        results = read_results(args.output)
        print(table(results))
        if args.plot:
            plot(results, args.plot)
        return
    sizes = [ALL if size == "all" else int(size) for size in args.sizes.split(",")]
    chosen = list(cells(sizes, args.seeds, args.learners.split(";")))
    run(args.output, chosen, Means(args.threads, args.budget), args.jobs)


if __name__ == "__main__":
    main()
