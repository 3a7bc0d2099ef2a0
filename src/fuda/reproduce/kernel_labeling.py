"""The experiments of the kernel-labeling papers (Kashima & Tsuboi 2004), and one more.

*Table 1.* The first 300 sentences of the Spanish corpus, word and spelling (S2), a polynomial
kernel of degree 2. HM-perceptron with a window of three words against the sequence kernel with
c = 1 and a uniform prior; one paper uses three folds, the other five. Further rows: our own
settings (normalized kernel, largest c, mean of α), the large-margin machine, a CRF over words,
affixes and spelling of three words, and our settings with this CRF as prior, where the kernel uses
the `text` features.

*Table 2.* Labels that depend on the structure of a sentence: HM-perceptron, sequence kernel and
tree kernel, c = 0.8, three folds. The papers' 184 Japanese sales logs are private. Three corpora
replace them: the generated corpus of product usage, which has the same labels, and the first 184
and 1,000 trees of the Japanese GSD treebank with named entities. Observations are form, lemma and
part of speech.

*Table 3.* The papers define a path kernel for DAGs without an experiment. Here it is applied to
enhanced dependency graphs of English web text, against tree and sequence kernel on the same
sentences, with named entities as labels.

All folds are of consecutive sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fuda.errors import DataError
from fuda.features.sets import spelling
from fuda.files import Lines, read_text
from fuda.formats import format_of, read
from fuda.formats.dataset import Dataset, Record
from fuda.reproduce.cross_validation import Row, cross_validated
from fuda.reproduce.spanish import first_sentences

Progress = Callable[[str], None]

HM, SEQUENCE, TREE, PATHS = "HM-perceptron, window 3", "sequence kernel", "tree kernel", "path kernel"
PAPER_TABLE_1 = {HM: (80.2, 23.8, 17.9, 18.6), SEQUENCE: (88.7, 49.0, 23.1, 30.5)}
PAPER_TABLE_2 = {HM: (28.9,), SEQUENCE: (37.5,), TREE: (38.9,)}  # F1 of labels alone
JAPANESE_SIZES = (184, 1000)
ENGLISH_SIZE = 1000
_COLUMNS = ("FORM", "LEMMA", "UPOS")
_OUTSIDE = {"B-O": "O", "B-OTH": "O", "I-OTH": "O"}


class Comparison(NamedTuple):
    """Methods on one corpus.

    Attributes
    ----------
    title : str
        The title of the table.
    rows : list of Row
        The scores, by method.
    paper : dict of tuple
        The papers' results by method: accuracy, precision, recall and F1 of labels, or only F1.
    """

    title: str
    rows: list[Row]
    paper: Mapping[str, tuple[float, ...]]


def table_1(folder: str | Path, progress: Progress) -> Iterator[Comparison]:
    """Cross-validate the methods of table 1.

    Parameters
    ----------
    folder : str or Path
        The folder of the corpora.
    progress : callable
        Called with a line of text after each fold.

    Yields
    ------
    Comparison
        The scores on a corpus.
    """
    data = first_sentences(folder)
    for count in (5, 3):
        rows = [
            cross_validated(name, model, data, count, progress) for name, model in entity_methods().items()
        ]
        yield Comparison(f"Table 1: first {len(data)} Spanish sentences, {count} folds", rows, PAPER_TABLE_1)


def table_2(folder: str | Path, progress: Progress) -> Iterator[Comparison]:
    """Cross-validate the kernels on corpora of trees.

    Parameters
    ----------
    folder : str or Path
        The folder of the corpora.
    progress : callable
        Called with a line of text after each fold.

    Yields
    ------
    Comparison
        The scores on a corpus.
    """
    from fuda.datasets import load_product_usage

    trees = _read(Path(folder) / "ja_gsd_ne" / "train.conllu.gz", label="MISC:NE", columns=_COLUMNS)
    corpora = {"product usage": load_product_usage().records}
    corpora |= {f"first {size:,} Japanese trees": trees.records[:size] for size in JAPANESE_SIZES}
    for name, records in corpora.items():
        data = Dataset(records)
        shapes = {HM: as_sequences(data), SEQUENCE: as_sequences(data), TREE: data}
        yield Comparison(f"Table 2: {name}, 3 folds", _compared(shapes, progress), PAPER_TABLE_2)


def table_3(folder: str | Path, progress: Progress) -> Iterator[Comparison]:
    """Cross-validate the kernels on graphs.

    Parameters
    ----------
    folder : str or Path
        The folder of the corpora.
    progress : callable
        Called with a line of text after each fold.

    Yields
    ------
    Comparison
        The scores on a corpus.
    """
    trees, graphs = english(folder)
    shapes = {HM: as_sequences(trees), SEQUENCE: as_sequences(trees), TREE: trees, PATHS: graphs}
    title = f"Table 3: entities in {len(trees):,} English sentences with enhanced graphs, 3 folds"
    yield Comparison(title, _compared(shapes, progress), {})


TABLES = (table_1, table_2, table_3)


def entity_methods() -> dict[str, Any]:
    """The models of table 1 by the name of the method.

    Returns
    -------
    dict of Labeler
        Unfitted models.
    """
    from fuda.kernels import Polynomial
    from fuda.models.crf import CRF
    from fuda.models.hm_perceptron import HMPerceptron
    from fuda.models.marginalized_perceptron import MarginalizedPerceptron
    from fuda.models.marginalized_svm import MarginalizedSVM

    crf = CRF(features=word_and_affixes, scheme="IOB2")
    ours: dict[str, Any] = {"features": "spelling", "decode": "viterbi", "scheme": "IOB2"}
    with_prior = ours | {"kernel": Polynomial(2, offset=10.0).normalized(), "features": "text", "prior": crf}
    papers: dict[str, Any] = {"kernel": Polynomial(2), "average": False}
    return {
        HM: HMPerceptron(features="S3", **papers),
        SEQUENCE: MarginalizedPerceptron(mixing=1.0, features="S2", calibrate=False, **papers),
        "ours, posterior": MarginalizedPerceptron(features="spelling", decode="posterior", calibrate=False),
        "ours, legal Viterbi": MarginalizedPerceptron(**ours),
        "ours, large margin, legal Viterbi": MarginalizedSVM(**ours),
        "CRF alone": crf,
        "ours, CRF's marginals as prior": MarginalizedPerceptron(**with_prior),
        "ours, CRF's chain as prior": MarginalizedPerceptron(prior_form="chain", orders=1, **with_prior),
    }


def word_and_affixes(word: str) -> list[str]:
    """The features of a word in the CRF of table 1: word, spelling and affixes.

    Parameters
    ----------
    word : str
        A word.

    Returns
    -------
    list of str
        The names of its features.
    """
    return [*spelling(word), *(f"p{n}={word[:n]}" for n in (2, 3)), *(f"s{n}={word[-n:]}" for n in (2, 3))]


def _compared(shapes: dict[str, Dataset], progress: Progress) -> list[Row]:
    """Cross-validate HM-perceptron, and the kernel of each shape with c = 0.8."""
    from fuda.kernels import Polynomial
    from fuda.models.hm_perceptron import HMPerceptron
    from fuda.models.marginalized_perceptron import MarginalizedPerceptron

    rows = []
    for method, data in shapes.items():
        papers: dict[str, Any] = {
            "mixing": 0.8,
            "orders": 1,
            "parts": {TREE: "subtrees", PATHS: "paths"}.get(method),
        }
        model: Any = MarginalizedPerceptron(Polynomial(2), features="spelling", calibrate=False, **papers)
        if method == HM:
            model = HMPerceptron(kernel=Polynomial(2), features="spelling", window=1)
        rows.append(cross_validated(method, model, data, 3, progress))
    return rows


def as_sequences(data: Dataset) -> Dataset:
    """Convert structures to sequences of their nodes, in order.

    Parameters
    ----------
    data : Dataset
        Trees or DAGs.

    Returns
    -------
    Dataset
        The same records with sequences.
    """
    from fuda.data.structures import Sequence

    return Dataset([replace(r, structure=Sequence(r.structure.observations)) for r in data.records])


def english(folder: str | Path) -> tuple[Dataset, Dataset]:
    """Read English web text with entity labels, as trees and as enhanced graphs without cycles.

    Sentences whose words differ between the treebank and the file of entities are left out. Empty
    nodes of graphs have no label (None).

    Parameters
    ----------
    folder : str or Path
        The folder of the corpora.

    Returns
    -------
    trees, graphs : Dataset
        The same sentences in both shapes.
    """
    path = _existing(Path(folder) / "ewt" / "train.conllu.gz")
    shapes: list[dict[str, Any]] = [{}, {"graph": "dag", "cyclic": "skip"}]
    all_trees, graphs = (
        format_of(path).read_lines(Lines(path), {"label": None, "columns": _COLUMNS} | shape, [])
        for shape in shapes
    )
    entities = _entities(path.with_name("train.ner.iob2.gz"))
    pairs: list[tuple[Record, Record]] = []
    while len(pairs) < ENGLISH_SIZE and (graph := next(graphs, None)):
        tree = next(tree for tree in all_trees if _sentence_id(tree) == _sentence_id(graph))
        words = [x[0] for x in tree.structure.observations]
        forms, labels = entities.get(_sentence_id(graph), ([], []))
        if words == forms:
            word_labels = iter(labels)
            nodes = [graph.rows.lines[lines[0]].partition("\t")[0] for lines in graph.rows.nodes]
            graph_labels = [None if "." in node else next(word_labels) for node in nodes]
            pairs.append((replace(tree, labels=labels), replace(graph, labels=graph_labels)))
    return Dataset([tree for tree, _ in pairs]), Dataset([graph for _, graph in pairs])


def _entities(path: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Forms and labels of each sentence, by its id; rows have three or five columns."""
    sentences: dict[str, tuple[list[str], list[str]]] = {}
    forms: list[str] = []
    labels: list[str] = []
    for line in read_text(_existing(path)).splitlines():
        if line.startswith("# sent_id = "):
            forms, labels = sentences[line.removeprefix("# sent_id = ")] = ([], [])
        elif line and not line.startswith("#"):
            _, form, label = line.split("\t")[:3]
            forms.append(form)
            labels.append(_OUTSIDE.get(label, label))
    return sentences


def _sentence_id(record: Record) -> str:
    """The identifier in the comments of a record."""
    prefix = "# sent_id = "
    return next(line.removeprefix(prefix) for line in record.comments if line.startswith(prefix))


def _read(path: Path, **options: Any) -> Dataset:
    """Read a file that must exist."""
    return read(_existing(path), **options)


def _existing(path: Path) -> Path:
    """The path, after checking that the file exists."""
    if not path.exists():
        raise DataError(
            f"{path}: no such file; --data names the folder that has conll2002/esp.train, "
            "ja_gsd_ne/train.conllu.gz, and train.conllu.gz and train.ner.iob2.gz in ewt"
        )
    return path
