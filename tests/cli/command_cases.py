"""Small files of every format, outcomes of the command, and how it must refuse bad input."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """What a run of the command left behind."""

    code: int
    out: bytes
    err: str


Run = Callable[..., Outcome]
# What to do, or what would be right.
REMEDY = re.compile(
    r"\b(add|check|choose|convert|correct|count|fetch|fill|give|install|keep|leave|make|move|name|number|pass|put"
    r"|quote|read|remove|renumber|replace|reword|save|say|separate|use|write|begins|takes?|needs|names"
    r"|known are|go from|it has|such as|whole numbers|is neither|the (keys|schemes) are|labels are)\b"
)

WORD = "\t".join(["{}", "{}", "_", "{}", "_", "_", "{}", "dep", "{}:dep", "{}"])


def conllu_row(number: int, form: str, upos: str, head: int, misc: str = "_") -> str:
    return WORD.format(number, form, upos, head, head, misc) + "\n"


TREE_TEXT = "".join(
    (
        "# sent_id = 1\n",
        conllu_row(1, "Ana", "PROPN", 2, "NE=B-PER|Gloss=x"),
        conllu_row(2, "vive", "VERB", 0, "SpaceAfter=No"),
        conllu_row(3, "Lima", "PROPN", 2, "NE=B-LOC"),
        "\n# sent_id = 2\n",
        conllu_row(1, "Bo", "PROPN", 2, "NE=B-PER"),
        conllu_row(2, "duerme", "VERB", 0),
        "\n",
    )
)
TEXTS = {
    "conll": "Ana NP B-PER\nvive VB O\nen  IN O\nLima NP B-LOC\n\n# id = 2\nBo NP B-PER\nduerme VB O\n\n",
    "conllu": TREE_TEXT,
    "fasta": ">p one\nMKAASV\nLA\n>q\nRRS#V\n",
    "jsonl": '{"observations": ["Ana", "vive"], "labels": ["N", "V"]}\n'
    '{"observations": ["Bo", "duerme"], "labels": ["N", "V"], "comments": ["one"]}\n',
}


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def assert_refused(run: Run, folder: Path, arguments: list[object], words: str, stdin: bytes = b"") -> None:
    """Exit code 2, one clear line (or click's usage lines), no output, no file made or changed."""
    before = snapshot(folder)
    result = run(*arguments, stdin=stdin)
    assert result.code == 2, result
    assert result.out == b""
    assert "Traceback" not in result.err
    lines = result.err.splitlines()
    if lines[0].startswith("Usage: "):
        assert lines[-1].startswith("Error: ")
    else:
        assert len(lines) == 1, result.err
        assert lines[0].startswith("fuda: ")
        assert len(lines[0]) < 600
        assert REMEDY.search(lines[0]), f"no remedy: {lines[0]}"
    assert re.search(words, lines[-1]), result.err
    assert snapshot(folder) == before
