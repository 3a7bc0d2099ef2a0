"""fuda tag: label files with a model."""

from __future__ import annotations

import gc
import inspect
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fuda.cli import options
from fuda.errors import DataError, place
from fuda.progress import stage
from fuda.runtime.cluster import Shared, connected

if TYPE_CHECKING:
    from fuda.formats import Format, Record

_EXAMPLES = """\b
Examples:
  fuda tag spanish.fuda news.conll > tagged.conll
  fuda tag spanish.fuda monday.conll tuesday.conll -o tagged/
  cat news.conll.gz | fuda tag spanish.fuda --nbest 3 --as jsonl
  echo "Ana vive en Lima." | fuda tag spanish.fuda --text
"""
_OUTPUT = (
    "The file to write, in the format of its extension, or a folder, for a file of the same name per FILE; "
    "by default standard output, in the format of FILE."
)
_AS = "The format to write, whatever the name of the output."
_WRITE = "An option of the format to write: --write label=MISC:NE."
_TEXT = (
    "FILE is raw text, a sentence or paragraph per line. The output is the text with inline marks, or in "
    "another format the tokens or spans with their character offsets."
)
_KNOWN = "Keep the labels that FILE has, and choose the others (_, null) given these."
_NBEST = "The N best labelings with their log-probabilities: under keys, or one after another with comments."
_MARGINALS = "The probabilities of labels: of all under a key, of that chosen in a further column."
_CLUSTER = "Label on the workers of a Dask cluster with its scheduler at ADDRESS, piece by piece."
_OR = ", or train another learner (all but reranker do it)"
_CAPABLE_FORMATS = "--as jsonl or --as conll"
_RESULT_KEYS = ("nbest", "marginals")  # keys that an earlier run has written; they are replaced


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.argument("paths", nargs=-1, metavar="[FILE]...")
@click.option("-o", "--output", default="-", metavar="PATH", help=_OUTPUT)
@click.option("--as", "target_name", metavar="NAME", help=_AS)
@click.option("--write", "writing", metavar="NAME=VALUE", multiple=True, help=_WRITE)
@click.option("--text", is_flag=True, help=_TEXT)
@click.option("--known", is_flag=True, help=_KNOWN)
@click.option("--nbest", type=click.IntRange(1), metavar="N", help=_NBEST)
@click.option("--marginals", is_flag=True, help=_MARGINALS)
@click.option("--cluster", metavar="ADDRESS", help=_CLUSTER)
@options.reading_options
def tag(
    model_path: str,
    paths: tuple[str, ...],
    output: str,
    target_name: str | None,
    writing: tuple[str, ...],
    text: bool,
    cluster: str | None,
    **how: Any,
) -> None:
    """Label the structures of every FILE as they come.

    - is standard input, the default. Output follows as soon as structures are complete.

    Only labels change: those in FILE are replaced, and a label column is added to a file without
    one. A file of the format that MODEL was trained on is read like the training files, and so is
    one whose extension belongs to no format.
    """
    import fuda
    from fuda import formats

    requested = {name: how.pop(name) for name in ("known", "nbest", "marginals")}
    if text:
        if how["format_name"] is not None:
            raise DataError(f"--text and --format {how['format_name']}: give one of them")
        if requested["known"]:
            raise DataError("--known: raw text has no labels to keep; leave one of --known and --text out")
        how["format_name"] = "text"
    paths = paths or ("-",)
    for path in paths:
        if path != "-" and not os.path.exists(path):  # before any of them is labelled
            raise DataError(f"{path}: cannot be read: No such file or directory; check the path")
    folder = output != "-" and os.path.isdir(output)
    format_name = target_name or (None if text else how["format_name"])
    target = None if format_name is None else formats.format_of(output, format_name)
    if not folder and output != "-":
        options.check_output(output, model_path)
        target = formats.format_of(output, format_name, "inline" if text else None)
    model = fuda.load(model_path)
    labeller = _Labeller(model, **requested)
    gc.freeze()  # garbage collections, which new records set off, need not visit the model
    sources = []
    for path in paths:
        read_with = options.as_trained(path, model, options.reading_keywords(**how), labelled=False)
        written = target or (formats.FORMATS["inline"] if text else read_with[0])
        if format_name is None and not folder and output != "-" and not text:
            # One of several formats with this extension.
            written = formats.format_of(output, None, read_with[0].name)
        labeller.check_capacity(written)
        write_with = written.from_command(options.assignments(writing, "--write"))
        written.check_options("writing", write_with)
        sources.append(_Source(path, *read_with, written, write_with))
    by_output = {output: sources}
    if folder:
        by_output = {path: [source] for path, source in _beneath(output, sources).items()}
        for path in by_output:  # a file named by -o itself may be labelled in place, one in a folder not
            options.check_output(path, model_path, *(source for source in paths if source != "-"))
    with nullcontext(labeller) if cluster is None else _on_cluster(cluster, labeller) as labels:
        for path, parts in by_output.items():
            _label(labels, parts, path)


@dataclass(frozen=True)
class _Source:
    """A file to label, how it is read, and the format in which it is written."""

    path: str
    format: Format
    keywords: dict[str, Any]
    target: Format
    write_with: dict[str, Any]


def _beneath(folder: str, sources: Sequence[_Source]) -> dict[str, _Source]:
    """The output file in a folder for each source: the same name, with the target's extension."""
    output_paths: dict[str, _Source] = {}
    for source in sources:
        name = "stdin" if source.path == "-" else os.path.basename(source.path)
        suffix = ".gz" if name.endswith(".gz") else ""
        stem, extension = os.path.splitext(name.removesuffix(suffix))
        if (source.format.name, source.target.name) == ("text", "inline"):
            extension = extension or ".txt"
        elif source.target is not source.format or not extension:
            extension = (source.target.extensions or (extension,))[0]
        path = os.path.join(folder, stem + extension + suffix)
        if path in output_paths:
            raise DataError(f"{path}: two files of that name would be written; label them in two runs")
        output_paths[path] = source
    return output_paths


def _label(labeller: _Labeller | _ClusterLabeller, sources: Sequence[_Source], output: str) -> None:
    """Label files, one after another, into one output."""
    from fuda import files

    notes: list[str] = []
    target = sources[0].target
    # On one terminal a spinner and the output would be mixed up.
    quiet = output == "-" and sys.stdout.isatty()
    with (
        nullcontext(str) if quiet else stage("labelling (the first run compiles, for some seconds)") as show,
        files.text_output(output) as write,
    ):
        batches = _Batches(labeller, sources[0], write, output)
        for source in sources:
            batches.begin(source.path)
            lines = files.Lines(source.path, batches.flush if target.appends else None)
            try:
                for record in source.format.read_lines(lines, source.keywords, notes):
                    batches.add(record)
            except DataError:
                batches.finish()  # what was complete before the error
                raise
            if target.appends:
                batches.flush()
        batches.finish()
        show(batches.summary())
    for note in notes:
        click.echo(f"fuda: {note}", err=True)


class _Labeller:
    """A model, and what is asked of it beside labels."""

    ahead = 0  # pieces that may wait for their labels

    def __init__(self, model: Any, known: bool, nbest: int | None, marginals: bool) -> None:
        self.model, self.known, self.nbest, self.marginals = model, known, nbest, marginals
        name = type(model).__name__
        if known and "known" not in inspect.signature(getattr(model, "best_", model).predict).parameters:
            raise DataError(f"{name} cannot label nodes given the labels of others; leave --known out{_OR}")
        if nbest and not hasattr(model, "predict_nbest"):
            raise DataError(f"{name} has no n-best labelings; leave --nbest out{_OR}")
        if marginals and not hasattr(model, "predict_marginals"):
            raise DataError(f"{name} has no probabilities of labels; leave --marginals out")

    def check_capacity(self, target: Format) -> None:
        """Refuse a format that cannot contain what is requested."""
        if self.nbest and not {"keys", "comments"} & set(target.holds):
            raise DataError(f"--nbest: {target.name} cannot contain it; choose {_CAPABLE_FORMATS}")
        if self.marginals and "marginals" not in target.holds:
            raise DataError(f"--marginals: {target.name} cannot contain them; choose {_CAPABLE_FORMATS}")

    def begin(self, records: list[Record], keys: bool) -> Callable[[], list[Record]]:
        """Begin to label records: a function that returns what `label_records` does."""
        return partial(self.label_records, records, keys)

    def label_records(self, records: list[Record], keys: bool) -> list[Record]:
        """Return records with predicted labels; further labelings under keys or as records."""
        X = [record.structure for record in records]
        constraints: dict[str, Any] = {}
        if self.known:
            constraints["known"] = [record.labels or [None] * len(record.structure) for record in records]
        copies = [self._without_results(record) for record in records]
        if self.marginals:
            classes = list(self.model.classes_)
            for record, table in zip(copies, self.model.predict_marginals(X, **constraints), strict=True):
                pairs = (zip(classes, row, strict=True) for row in table.tolist())
                record.marginals = [{label: p for label, p in node if p >= 5e-7} for node in pairs]
        if not self.nbest:
            for record, labels in zip(copies, self.model.predict(X, **constraints), strict=True):
                record.labels = list(labels)
            return copies
        listed = self.model.predict_nbest(X, self.nbest, **constraints)
        labelled_records = []
        for index, (record, candidates) in enumerate(zip(copies, listed, strict=True)):
            if not candidates:
                raise DataError(f"{place(index)}: no labeling is allowed; give other labels or no scheme")
            labelled_records += _under_keys(record, candidates) if keys else _one_by_one(record, candidates)
        return labelled_records

    @staticmethod
    def _without_results(record: Record) -> Record:
        """A copy without the n-best lists and marginals of an earlier run."""
        more = {key: value for key, value in record.more.items() if key not in _RESULT_KEYS}
        return replace(record, more=more)


class _ClusterLabeller:
    """A labeller whose work the workers of a cluster do, some pieces ahead of the output."""

    def __init__(self, client: Any, labeller: _Labeller) -> None:
        labeller.model.n_jobs = 1  # a worker labels a piece per thread
        self._shared = Shared(client, labeller)
        self.ahead = 2 * max(1, self._shared.threads)

    def begin(self, records: list[Record], keys: bool) -> Callable[[], list[Record]]:
        """See `_Labeller`."""
        return partial(self._shared.result, self._shared.submit(_Labeller.label_records, records, keys))


@contextmanager
def _on_cluster(address: str, labeller: _Labeller) -> Iterator[_ClusterLabeller]:
    """Within the block, the workers of a cluster do the work of a labeller."""
    with connected(address) as client:
        yield _ClusterLabeller(client, labeller)


def _under_keys(record: Record, candidates: Sequence[tuple[list[Any], float]]) -> list[Record]:
    """The record with the best labels, and all labelings under the key nbest."""
    listed = [{"labels": list(labels), "log_probability": round(logp, 6)} for labels, logp in candidates]
    return [replace(record, labels=list(candidates[0][0]), more=record.more | {"nbest": listed})]


def _one_by_one(record: Record, candidates: Sequence[tuple[list[Any], float]]) -> list[Record]:
    """A record for each labeling, with its rank and log-probability as comments."""
    ranked_records = []
    for rank, (labels, logp) in enumerate(candidates, 1):
        comments = [f"# rank = {rank}", f"# log_probability = {logp:.6f}"]
        ranked_records.append(replace(record, labels=list(labels), comments=[*record.comments, *comments]))
    return ranked_records


class _Batches:
    """Records that wait to be labelled and written, and what was written before them."""

    def __init__(
        self,
        labeller: _Labeller | _ClusterLabeller,
        source: _Source,
        write: Callable[[str], None],
        output: str,
    ) -> None:
        self.labeller, self.write, self.output = labeller, write, output
        self.target, self.write_with = source.target, source.write_with
        self.waiting: list[tuple[str, list[Record]]] = []  # by file
        self.pending: deque[tuple[list[tuple[str, list[Record]]], int, Callable[[], list[Record]]]] = deque()
        self.first: Record | None = None
        self.structures = self.nodes = self.before = 0

    def begin(self, path: str) -> None:
        """Records of this file follow; structures are counted within it."""
        self.waiting.append((path, []))
        self.before = self.structures

    def add(self, record: Record) -> None:
        """A record of the file that was begun last."""
        self.waiting[-1][1].append(record)

    def flush(self) -> None:
        """Label the records that wait, and write those whose labels need not be waited for."""
        waiting, self.waiting = [part for part in self.waiting if part[1]], [(self.waiting[-1][0], [])]
        if waiting:
            records = [record for _, part in waiting for record in part]
            labelled = self.labeller.begin(records, "keys" in self.target.holds)
            self.pending.append((waiting, self.structures - self.before, labelled))
            self.structures += len(records)
            self.nodes += sum(len(record.structure) for record in records)
        while len(self.pending) > self.labeller.ahead:
            self._write(*self.pending.popleft())

    def finish(self) -> None:
        """Label and write all records."""
        self.flush()
        while self.pending:
            self._write(*self.pending.popleft())

    def _write(
        self, parts: list[tuple[str, list[Record]]], before: int, labels: Callable[[], list[Record]]
    ) -> None:
        """Write records with their labels; `before` are the structures of the file before them."""
        from fuda.formats import Dataset

        with options.errors_name_file(
            [path for path, _ in parts], [Dataset(records) for _, records in parts], before
        ):
            labelled = labels()
            more = {"after": self.first} if self.target.appends else {}
            text = self.target.write(labelled, **self.write_with, **more)
            if self.output != "-":
                self.target.write_beside(labelled, self.output)
        self.write(text)
        self.first = self.first or labelled[0]

    def summary(self) -> str:
        """What was written, in words."""
        shape = "" if self.first is None else self.first.structure.shape
        return f"{options.counted(self.structures, shape)}, {options.counted(self.nodes, 'node')}"
