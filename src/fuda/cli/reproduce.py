"""fuda reproduce: repeat the experiments of the papers and print them beside their results."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from math import isnan
from typing import Any

import click

from fuda.cli.options import printer
from fuda.errors import DataError
from fuda.runtime.interrupts import inner_training

Show = Callable[[Any], None]

_EXAMPLES = """\b
Examples:
  fuda reproduce markov-loss --data corpora/conll2002
  fuda reproduce markov-loss --data corpora/conll2002 --table 2
  fuda reproduce hm-svm --data corpora/conll2002
  fuda reproduce kernel-labeling --data corpora
  fuda reproduce all --data corpora --report docs/reproduction.md
  fuda reproduce biology --data corpora --table 2
  fuda reproduce biology --data corpora --report docs/biology.md --plots docs/_static
  fuda reproduce letters --data corpora --report docs/guide/letters.md
"""


def _markov_loss(data: str, table: int | None, show: Show, progress: Show) -> None:
    """Print the tables of the Markov-loss paper."""
    from fuda.reproduce import markov_loss

    corpus = markov_loss.load(data)
    if table in (None, 1):
        show(_losses_tuned(list(markov_loss.table_1(corpus, progress))))
        grid = ", ".join(map(str, markov_loss.L2_GRID))
        show(
            f"The L2 weight of each loss is tuned on testa, from {grid}. The grid and the spelling flags "
            "were chosen with testb in view.\n"
        )
    if table in (None, 2):
        show(_losses_by_size(list(markov_loss.table_2(corpus, progress))))
        show(
            "Without regularization, by conjugate gradient; the stopping rule was chosen with results "
            "in view (docs/reproduction.md)."
        )


def _hm_svm(data: str, table: int | None, show: Show, progress: Show) -> None:
    """Print the comparison of the hidden Markov SVM paper."""
    from fuda.reproduce import hm_svm, spanish

    corpus = spanish.first_sentences(data)
    show(_methods_compared(list(hm_svm.comparison(corpus, progress)), len(corpus)))
    show(
        "Means and standard deviations over five folds, in per cent. Label F1 is over labels other than O. "
        "Ranks are by token error; the paper's, in brackets, come from bars without numbers. Seconds are of "
        "processors."
    )


def _kernel_labeling(data: str, table: int | None, show: Show, progress: Show) -> None:
    """Print the tables of the kernel-labeling papers."""
    from fuda.reproduce import kernel_labeling

    for number, compare in enumerate(kernel_labeling.TABLES, 1):
        if table in (None, number):
            for comparison in compare(data, progress):
                show(_kernels_compared(comparison))
    show(
        "Means and standard deviations over folds, in per cent. Precision, recall and F1 are over labels "
        "other than O; in brackets the papers' results, in table 2 on another corpus, which is private. "
        "Seconds are of processors."
    )


def _biology(
    data: str, table: int | None, show: Callable[..., None], progress: Show, plots: str | None = None
) -> None:
    """Print tables of proteins and genes: secondary structure, phosphorylation, exons."""
    from fuda.reproduce.corpora import MissingCorpusError
    from fuda.reproduce.phosphorylation import KINASES, kinases_in

    numbers = itertools.chain((2, 3), itertools.count(5))
    tables: dict[int, Callable[..., None]] = {1: _structure_table, 4: _gene_table}
    for number, kinase in zip(numbers, kinases_in(data) or KINASES, strict=False):
        tables[number] = partial(_site_table, kinase=kinase, number=number)
    if table is not None and table not in tables:
        known = ", ".join(map(str, sorted(tables)))
        raise DataError(f"--table {table}: {data} has the tables {known}; choose one of them")
    missing = []
    for number in sorted(tables) if table is None else [table]:
        try:
            tables[number](data, show, progress, plots)
        except MissingCorpusError as error:
            missing.append(error)
            if table is not None or len(missing) == len(tables):
                raise
            show(f"Table {number} is left out. {error}\n")


def _structure_table(data: str, show: Callable[..., None], progress: Show, plots: str | None) -> None:
    """Print the table of secondary structure."""
    from fuda.reproduce import secondary_structure

    show(_structures(list(secondary_structure.comparison(secondary_structure.load(data), progress))), 1)
    show(
        "Means and standard deviations over seven folds by chain, in per cent. Features, ends and l2 "
        "were chosen on the first two folds: what counts is the column of folds 3 to 7. Seconds are of "
        "processors.\n"
    )


def _site_table(
    data: str, show: Callable[..., None], progress: Show, plots: str | None, *, kinase: str, number: int
) -> None:
    """Print the table of the sites of a kinase, and draw what was learned."""
    from fuda.reproduce import phosphorylation

    rows = list(phosphorylation.comparison(data, kinase, progress))
    show(_sites(rows, kinase, number), number)
    known = kinase in phosphorylation.KINASES
    published = "Published figures are on other proteins." if known else "No published figures are known."
    show(
        "In per cent, over the residues S, T and Y; by folds of the training proteins, and on the test "
        "proteins. l2, and γ and order of the kernel machine, are chosen on halves of what is learned "
        f"from, in every fold. {published} Seconds are of processors.\n"
    )
    if plots is not None:
        from fuda.reproduce.drawings import draw_sites

        progress(f"{kinase}: plots")
        draw_sites(rows, data, kinase, plots)


def _gene_table(data: str, show: Callable[..., None], progress: Show, plots: str | None) -> None:
    """Print the table of genes, and draw one."""
    from fuda.reproduce import genes

    comparison = list(genes.comparison(data, progress))
    show(_genes(comparison), 4)
    show(
        "Sensitivity and specificity in per cent, over eight folds by locus, of all loci together, and "
        "means over loci. Features and the search of weights were developed on the first three folds: "
        "what counts is the column of folds 4 to 8. Published figures are on other sequences. Seconds are "
        "of processors.\n"
    )
    if plots is not None:
        from fuda.reproduce.drawings import draw_gene

        draw_gene(comparison[-1], data, plots)


def _letters(data: str, table: int | None, show: Show, progress: Show) -> None:
    """Print the table of handwritten letters."""
    from fuda.reproduce import letters

    show(_letter_errors(list(letters.comparison(letters.load(data), progress))))
    show(
        "Letters that are wrong, in per cent, after learning from fold 0 (tested on the others), and from "
        "all but fold 1 (tested on that). All 55 words are in every fold. Features and parameters were "
        "chosen on words of fold 0, which both learn from. Seconds are of processors."
    )


EXPERIMENTS: dict[str, Callable[..., None]] = {
    "markov-loss": _markov_loss,
    "hm-svm": _hm_svm,
    "kernel-labeling": _kernel_labeling,
    "biology": _biology,
    "letters": _letters,
}
TABLES = {"markov-loss": 2, "hm-svm": 1, "kernel-labeling": 3, "letters": 1}  # biology: by kinase
_DRAWN = ("biology",)  # experiments that draw plots
_OF_PAPERS = ("markov-loss", "hm-svm", "kernel-labeling")  # experiments that `all` repeats, in one report
_REPORTED = ("all", "biology", "letters")  # commands that write a report
ALL = "all"
_WIDTH = 110  # characters per line of a table; narrower ones would cut names
# Columns that are printed, but are too many for the report.
_NOT_REPORTED = {"kernel-labeling": ("accuracy", "precision", "recall")}


@click.command(epilog=_EXAMPLES)
@click.argument("name", type=click.Choice([*EXPERIMENTS, ALL]), metavar="NAME")
@click.option("--data", required=True, metavar="DIR", help="The folder with the corpora of the paper.")
@click.option("--table", type=click.IntRange(1), help="Only this table.")
@click.option(
    "--report", metavar="FILE", help="A Markdown file whose tables are replaced (all, biology, letters)."
)
@click.option(
    "--plots",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="A folder into which plots are drawn (biology).",
)
def reproduce(name: str, data: str, table: int | None, report: str | None, plots: str | None) -> None:
    """Repeat the experiments of a paper, beside its results.

    \b
    markov-loss      CRFs with pointwise, Markov and sequential losses on the
                     Spanish corpus of CoNLL-2002 (esp.train, esp.testa,
                     esp.testb); two tables, some minutes each
    hm-svm           HMM, CRF, HM-perceptron and HM-SVM, cross-validated on the
                     first 300 sentences of esp.train
    kernel-labeling  marginalized kernels on sequences, trees and graphs; table 1
                     on those 300 sentences, table 2 on generated and Japanese
                     trees (ja_gsd_ne), table 3 on English graphs (ewt)
    biology          proteins: table 1 secondary structure (cb513), tables 2 and 3
                     phosphorylation sites of PKA and CK2 (phospho), table 4 genes
                     (gene_mouse), tables 5 and on further kinases, each by files
                     train_NAME.fasta and test_NAME.fasta in phospho; --plots DIR
                     also draws curves, motifs and a gene
    letters          handwritten letters (ocr_letters), from one fold and from nine
    all              all of the papers; --report FILE also writes the tables into
                     a Markdown file, each as soon as it is known
    """
    from rich.console import Console

    from fuda.reproduce.report import check_places

    if name == ALL and table is not None:
        raise click.UsageError("--table: all repeats every table; leave --table out, or name a paper")
    if name not in _REPORTED and report is not None:
        raise click.UsageError(f"--report: {name} writes no report; leave it out, or take {ALL}")
    if table is not None and table > TABLES.get(name, table):
        raise click.UsageError(f"--table {table}: {name} has {TABLES[name]}; choose a smaller number")
    if name not in _DRAWN and plots is not None:
        raise click.UsageError(f"--plots: {name} draws no plots; leave it out")
    names = _OF_PAPERS if name == ALL else (name,)
    if report is not None:
        check_places(report, names)
    shown = Console(stderr=True).status("") if sys.stderr.isatty() else nullcontext()
    started = time.perf_counter()

    def log(text: str) -> None:
        click.echo(f"{time.perf_counter() - started:6.0f} s  {text}", err=True)

    with inner_training(), shown as status:  # Ctrl-C ends the command, and not just one training
        progress = status.update if status else log
        for experiment in names:
            if status:  # else a file that is not there would be a second line
                status.update(experiment)
            show = _table_printer(report, experiment, table or 1)
            drawn = {"plots": plots} if experiment in _DRAWN else {}
            EXPERIMENTS[experiment](data, table, show, progress, **drawn)
    seconds = time.perf_counter() - started
    click.echo(f"Seeds are 0. {seconds / 60:.1f} minutes{_memory()}.")


def _memory() -> str:
    """How much memory the process had at most, where the system reports it."""
    try:
        import resource
    except ImportError:  # not on Windows
        return ""
    unit = 1 if sys.platform == "darwin" else 1024
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    return f", {gigabytes:.1f} GB of memory at most"


def _table_printer(report: str | None, experiment: str, first: int) -> Callable[..., None]:
    """A function that shows tables and writes them into the report, numbered from the first on."""
    from rich.table import Table

    from fuda.reproduce.report import markdown, replace_table

    numbers, show = itertools.count(first), printer(width=_WIDTH)

    def show_and_write(value: Any, number: int | None = None) -> None:
        show(value)
        if report is not None and isinstance(value, Table):
            text = markdown(value, without=_NOT_REPORTED.get(experiment, ()))
            replace_table(report, f"{experiment} {number or next(numbers)}", text)

    return show_and_write


def _losses_tuned(results: list) -> object:
    """Table 1 of the Markov-loss paper."""
    from fuda.reproduce.markov_loss import PAPER_TABLE_1

    columns = ("loss", "l2", "F1 testa", "precision", "recall", "F1 testb", "F1 in the paper")
    table = _table("Table 1: CoNLL-2002 Spanish, S3 features, testb", columns)
    for tuned, paper in zip(results, PAPER_TABLE_1, strict=True):
        figures = (tuned.testa, tuned.precision, tuned.recall, tuned.testb, paper)
        table.add_row(tuned.loss, f"{tuned.l2:g}", *(f"{figure:.2f}" for figure in figures))
    return table


def _losses_by_size(results: list) -> object:
    """Table 2 of the Markov-loss paper."""
    from fuda.reproduce.markov_loss import LOSSES, PAPER_TABLE_2

    title = "Table 2: first n sentences, no regularization, mean F1 of testa and testb (paper's)"
    table = _table(title, ("n", *LOSSES))
    for size, row in results:
        pairs = zip(row, PAPER_TABLE_2[size], strict=True)
        table.add_row(str(size), *(f"{ours:.2f} ({theirs:.2f})" for ours, theirs in pairs))
    return table


def _methods_compared(results: list, sentences: int) -> object:
    """The methods of the hidden Markov SVM paper, best first."""
    from fuda.reproduce.hm_svm import PAPER_ORDER

    columns = ("method", "token error", "label F1", "entity F1", "seconds", "rank (paper)")
    table = _table(f"First {sentences} sentences of CoNLL-2002 Spanish, S3 features, 5 folds", columns)
    ranking = sorted(results, key=lambda row: -row.accuracy.mean)
    for row in sorted(results, key=lambda row: PAPER_ORDER.index(row.method)):
        error = f"{100 - row.accuracy.mean:.2f} ± {row.accuracy.deviation:.2f}"
        rank = f"{ranking.index(row) + 1} ({PAPER_ORDER.index(row.method) + 1})"
        figures = str(row.label_f1), str(row.entity_f1), f"{row.seconds:.1f}"
        table.add_row(row.method, error, *figures, rank)
    return table


def _kernels_compared(comparison: Any) -> object:
    """A table of the kernel-labeling papers."""
    names = ("method", "accuracy", "precision", "recall", "label F1", "entity F1", "seconds")
    table = _table(comparison.title, names)
    for row in comparison.rows:
        scores = (row.accuracy, row.precision, row.recall, row.label_f1, row.entity_f1)
        figures = [f"{f.mean:.1f}±{f.deviation:.1f}" if f else "" for f in scores]
        paper = comparison.paper.get(row.method, ())
        for column, theirs in zip(range(4 - len(paper), 4), paper, strict=True):
            figures[column] += f"\n({theirs})"
        table.add_row(row.method, *figures, f"{row.seconds:.1f}")
    return table


def _structures(results: list) -> object:
    """The methods on secondary structure, and published ones."""
    from fuda.reproduce.secondary_structure import PUBLISHED, STATES

    names = ("method", "Q3", "folds 3–7", *(f"Q({state})" for state in STATES), "SOV", "seconds")
    table = _table("Table 1: secondary structure, CB513, single sequences, 7 folds", names)
    for row in results:
        states = [f"{row.by_state[state]:.1f}" for state in STATES]
        figures = str(row.q3), str(row.q3_unseen), *states, str(row.overlap)
        table.add_row(row.method, *figures, f"{row.seconds:.0f}")
    for method, q3 in PUBLISHED.items():
        table.add_row(method, f"{q3:.1f}", *[""] * 6)
    return table


def _sites(results: list, kinase: str, number: int) -> object:
    """The methods on the sites of a kinase, and published ones."""
    from fuda.reproduce.phosphorylation import PUBLISHED

    names = ("method", "ROC AUC", "PR AUC", "test ROC", "test PR", "found", "right", "F1", "seconds")
    folds = len(results[0].folds)
    table = _table(f"Table {number}: phosphorylation sites of {kinase}, {folds} folds by protein", names)
    for row in results:
        areas = ["" if isnan(area) else f"{area:.1f}" for area in (row.test_roc, row.test_precision)]
        test = *areas, f"{row.found}", f"{row.right}"
        figures = str(row.roc), str(row.precision), *test, f"{row.f1:.1f}"
        table.add_row(row.method, *figures, f"{row.seconds:.0f}")
    for method, by_kinase in PUBLISHED.items():
        if kinase in by_kinase:
            table.add_row(f"{method} (Song et al. 2017)", f"{100 * by_kinase[kinase]:.1f}", *[""] * 7)
    return table


def _genes(results: list) -> object:
    """The methods on genes, and published ones."""
    from fuda.reproduce.genes import PUBLISHED

    names = ("method", "bases", "exons", "folds 4–8", "mean bases", "AC", "mean exons", "genes", "seconds")
    table = _table("Table 4: exons of 48 mouse loci, sensitivity / specificity, 8 folds", names)
    for row in results:
        shares = [f"{a:.1f} / {b:.1f}" for a, b in (row.bases, row.exons, row.unseen, row.mean_bases)]
        mean = f"{row.mean_exons[0]:.1f} / {row.mean_exons[1]:.1f}"
        figures = f"{row.correlation:.1f}", mean, f"{row.genes}", f"{row.seconds:.0f}"
        table.add_row(row.method, *shares, *figures)
    for method, (bases, correlation, exons) in PUBLISHED.items():
        table.add_row(method, "", "", "", bases, f"{correlation}", exons, "", "")
    return table


def _letter_errors(results: list) -> object:
    """The methods on letters, and published ones."""
    from fuda.reproduce.letters import PUBLISHED

    names = ("method", "from one fold", "seconds", "from nine folds", "seconds")
    table = _table("Handwritten letters: wrong letters, in per cent", names)
    for row in results:
        one, nine = f"{row.one:.2f}", f"{row.nine:.2f}"
        table.add_row(row.method, one, f"{row.seconds_one:.0f}", nine, f"{row.seconds_nine:.0f}")
    for method, (one, nine) in PUBLISHED.items():
        table.add_row(method, one, "", nine, "")
    return table


def _table(title: str, columns: tuple[str, ...]) -> Any:
    """A table whose first column is text, which may wrap, the others numbers, which may not."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=i > 0)
    return table
