"""Entities in Spanish, biomedical, English and Japanese text, for benchmarks of labelling."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from common import DATA
from fuda import read
from fuda.schemes import encode, entities

ROOT = DATA.parent
FILES = {
    "esp": {"train": "conll2002/esp.train", "dev": "conll2002/esp.testa", "test": "conll2002/esp.testb"},
    "ncbi_disease": {
        "train": "ncbi_disease/train.tsv",
        "dev": "ncbi_disease/devel.tsv",
        "test": "ncbi_disease/test.tsv",
    },
    "ewt": {"train": "ewt/train.ner.iob2.gz", "test": "ewt/dev.ner.iob2.gz"},
    "ja_gsd_ne": {"train": "ja_gsd_ne/train.conllu.gz", "test": "ja_gsd_ne/dev.conllu.gz"},
}
# The columns of words and labels.
COLUMNS = {"esp": (0, -1), "ncbi_disease": (0, -1), "ewt": (1, 2)}


def sentences(corpus: str, part: str = "train") -> tuple[list[list[str]], list[list[str]]]:
    """Words and IOB2 labels of a part of a corpus."""
    path = ROOT / FILES[corpus][part]
    if not path.exists():
        sys.exit(
            f"{path} is missing; set FUDA_DATA to the folder that holds {Path(FILES[corpus][part]).parent}"
        )
    if corpus == "ja_gsd_ne":
        data = read(path, label="MISC:NE", absent="O", graph="sequence")
        labels = [encode(entities(bilou, "BILOU"), len(bilou), "IOB2") for bilou in data.y]
        return [[str(word[0] if isinstance(word, tuple) else word) for word in x] for x in data.X], labels
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    word, label = COLUMNS[corpus]
    X, y = [], []
    for block in text.split("\n\n"):
        rows = [line.split() for line in block.splitlines() if line.strip() and not line.startswith("# ")]
        if rows:
            X.append([row[word] for row in rows])
            y.append(_well_formed([row[label] for row in rows]))
    return X, y


def _well_formed(labels: list[str]) -> list[str]:
    """Labels without the types OTH and O, which the English corpus lacks in its test part."""
    spans = [(kind, start, end) for kind, start, end in entities(labels) if kind not in ("OTH", "O")]
    return encode(spans, len(labels), "IOB2")
