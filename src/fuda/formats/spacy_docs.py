"""Docs of spaCy: tokens are nodes, entities or tags are labels, offsets are kept.

spaCy is imported on first use; install it with the extra ``fuda[spacy]``. Read a DocBin from a
file with ``DocBin().from_disk(path)``; write one with
``DocBin(docs=to_spacy(data)).to_disk(path)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fuda.checks import check_choice
from fuda.data import structures
from fuda.data.structures import Structure, Tree
from fuda.data.text import Text
from fuda.errors import DataError, described, place
from fuda.formats.dataset import Dataset, Label, Record, labels_to_write, text_to_write
from fuda.formats.spans import segments

if TYPE_CHECKING:
    import spacy.tokens

LABELS = ("ents", "pos", "tag", None)


def from_spacy(
    docs: Iterable[spacy.tokens.Doc] | spacy.tokens.DocBin,
    label: str | None = "ents",
    graph: str = "sequence",
) -> Dataset:
    """Convert Docs; tokens of white space are not nodes.

    Parameters
    ----------
    docs : iterable of Doc, or DocBin
        The documents.
    label : {"ents", "pos", "tag", None}
        The labels: entities in IOB2, coarse or fine parts of speech, or none. Where spaCy knows of
        no entity or tag, the label is unknown.
    graph : {"sequence", "tree"}
        The shape of the structures: the order of the tokens, or the dependency trees.

    Returns
    -------
    Dataset
        One record per Doc.

    Examples
    --------
    >>> import spacy  # doctest: +SKIP
    >>> doc = spacy.blank("en")("Ana sings")  # doctest: +SKIP
    >>> from_spacy([doc]).X  # doctest: +SKIP
    [Sequence(['Ana', 'sings'], 2 nodes)]
    """
    library = _spacy()
    check_choice("label", label, LABELS)
    check_choice("graph", graph, ("sequence", "tree"))
    sources: Any = docs
    if isinstance(sources, library.tokens.DocBin):
        sources = sources.get_docs(library.blank("xx").vocab)
    if isinstance(sources, library.tokens.Doc):
        raise DataError("a list of Docs is expected, but a single one was given; pass [doc]")
    records = []
    for index, doc in enumerate(sources):
        if not isinstance(doc, library.tokens.Doc):
            raise DataError(f"{place(index)}: a Doc of spaCy is expected, not {described(doc)}; give Docs")
        tokens = [token for token in doc if not token.is_space]
        if not tokens:
            raise DataError(f"{place(index)}: a Doc without tokens; leave it out")
        labels = None if label is None else [_label(token, label) for token in tokens]
        text = Text(doc.text, [(token.idx, token.idx + len(token)) for token in tokens])
        records.append(Record(_structure(index, tokens, graph), labels, text=text))
    if all(value is None for record in records for value in record.labels or []):
        for record in records:
            record.labels = None
    return Dataset(records)


def to_spacy(data: Dataset, vocab: Any = None, label: str = "ents") -> list[spacy.tokens.Doc]:
    """Convert sequences to Docs with their texts.

    Parameters
    ----------
    data : Dataset
        The structures; words of those without a text are joined by spaces.
    vocab : spacy.vocab.Vocab, optional
        That of a pipeline; by default an empty one.
    label : {"ents", "pos", "tag"}
        Where the labels go: to entities (as `fuda.formats.spans` finds them), ``pos_``
        or ``tag_``.

    Returns
    -------
    list of Doc
        One per structure. Trees have their heads.

    Examples
    --------
    >>> data = Dataset([Record(structures.Sequence(["Ana", "sings"]), ["B-PER", "O"])])
    >>> [(entity.text, entity.label_) for entity in to_spacy(data)[0].ents]  # doctest: +SKIP
    [('Ana', 'PER')]
    """
    library = _spacy()
    check_choice("label", label, LABELS[:-1])
    vocab = library.blank("xx").vocab if vocab is None else vocab
    docs = []
    for index, record in enumerate(data.records):
        text, labels = text_to_write(index, record), labels_to_write(index, record)
        words, spaces, numbers = _words(text)
        attributes: dict[str, Any] = {}
        if isinstance(record.structure, Tree):
            heads = record.structure.heads.tolist()
            attributes["heads"] = list(range(len(words)))
            attributes["deps"] = ["dep"] * len(words)
            for node, head in enumerate(heads):
                attributes["heads"][numbers[node]] = numbers[head if head >= 0 else node]
                attributes["deps"][numbers[node]] = "dep" if head >= 0 else "ROOT"
        if labels is not None and label != "ents":
            attributes[f"{label}"] = [""] * len(words)
            for node, value in enumerate(labels):
                attributes[label][numbers[node]] = value or ""
        try:
            doc = library.tokens.Doc(vocab, words=words, spaces=spaces, **attributes)
        except ValueError as error:  # a part of speech that spaCy does not know
            raise DataError(f"{place(index)}: spaCy refuses it: {error}") from None
        if labels is not None and label == "ents":
            _set_entities(library, doc, labels, numbers)
        docs.append(doc)
    return docs


def _label(token: Any, label: str) -> Label:
    """The label of a token."""
    if label == "ents":
        kind = f"-{token.ent_type_}" if token.ent_type_ else ""
        return {"": None, "O": "O"}.get(token.ent_iob_, f"{token.ent_iob_}{kind}")
    return (token.pos_ if label == "pos" else token.tag_) or None


def _structure(index: int, tokens: list[Any], graph: str) -> Structure:
    """The structure of tokens."""
    words = [token.text for token in tokens]
    if graph == "sequence":
        return structures.Sequence(words)
    if not tokens[0].doc.has_annotation("DEP"):
        raise DataError(f"{place(index)}: the Doc has no dependencies; parse it, or give graph='sequence'")
    numbers = {token.i: node for node, token in enumerate(tokens)}
    heads = [-1 if token.head.i == token.i else numbers.get(token.head.i, -1) for token in tokens]
    return Tree(words, heads)


def _words(text: Text) -> tuple[list[str], list[bool], list[int]]:
    """The words of a Doc, whether a space follows each, and the word number of each node."""
    words: list[str] = []
    spaces: list[bool] = []
    numbers = []
    position = 0
    for start, end in [*text.offsets, (len(text.content), len(text.content))]:
        gap = text.content[position:start]
        if gap.startswith(" ") and words:
            spaces[-1], gap = True, gap[1:]
        if gap:
            words.append(gap)
            spaces.append(False)
        if start < end:
            numbers.append(len(words))
            words.append(text.content[start:end])
            spaces.append(False)
        position = end
    return words, spaces, numbers


def _set_entities(library: Any, doc: Any, labels: list[Label], numbers: list[int]) -> None:
    """Set the entities of a Doc, and which tokens have unknown labels."""
    entities = [
        library.tokens.Span(doc, numbers[first], numbers[last - 1] + 1, label=kind)
        for kind, first, last in segments(labels)
    ]
    missing = [doc[numbers[node] : numbers[node] + 1] for node, label in enumerate(labels) if label is None]
    doc.set_ents(entities, missing=missing, default="outside")


def _spacy() -> Any:
    """The package spacy."""
    try:
        import spacy
    except ModuleNotFoundError:
        raise DataError("spaCy is not installed; install it with: pip install 'fuda[spacy]'") from None
    return spacy
