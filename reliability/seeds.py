"""Inputs that fuzzing begins with."""

from __future__ import annotations

import json
from pathlib import Path

from reliability.mutations import put_together
from reliability.targets import COMMANDS, READING, models

FINDS = Path(__file__).parents[1] / "tests" / "fixtures" / "fuzz"

_ROWS = (
    "1\tAna\tana\tN\tX\tCase=Nom\t2\tnsubj\t2:nsubj\tNE=U-PER\n2\tva\tir\tV\t_\t_\t0\troot\t0:root|1:x\t_\n\n"
)
_MULTIWORD = "1-2\tx" + "\t_" * 8 + "\n"
_LINES = '{"observations": ["a", "b"], "heads": [1, -1], "labels": ["N", null]}\n'
_MIXED = '[{"features": {"a": 1.5}}, ["x"], {"set": ["a"]}, [1.0, 2.0], {"columns": ["a", "b"]}]'
_DELTA, _RBF = {"type": "Delta"}, {"type": "RBF", "gamma": 0.5}
_KERNELS = [
    {"type": "Polynomial", "degree": 2, "offset": 1.0, "scale": 1.0},
    {"type": "Normalized", "kernel": {"type": "Sum", "left": _DELTA, "right": _RBF}},
    {"type": "Precomputed", "gram_matrix": [[1.0, 0.5], [0.5, 1.0]]},
    {"type": "Product", "left": {"type": "Constant", "value": 2.0}, "right": {"type": "Linear"}},
]
TEXTS: dict[str, list[str]] = {
    "conll": ["Ana NP B-PER\nva VB O\n\nBo NP B-PER\n", "# c\nAna\tN\n-DOCSTART-\tO\n\n", "a|b|c\n"],
    "conllu": ["# text = x\n" + _ROWS, _MULTIWORD + _ROWS.rstrip() + "\n2.1\tx" + "\t_" * 8 + "\n"],
    "fasta": [">p one\nRRS#VT\n>q\nACDE\n", ">p\nRRSV\nOOXO\n", ">p\nRS*V\n"],
    "jsonl": [
        _LINES,
        '{"observations": [1, 2], "edges": [[0, 1]]}\n',
        f'{{"observations": {_MIXED}, "comments": ["c"]}}\n',
    ],
    "text": ["Dr. Ana (Lima) paid 1,000 €.\n\n e\u0301 \u200b東京 👍🏽\n"],
    "inline": ["[Ana Díaz](PER) in \\[x\\] [Li](LOC)ma\\n.\n\nx\n"],
    "doccano": [
        '{"id": 1, "text": "Ana Díaz!", "label": [[0, 8, "PER"]]}\n',
        '{"text": "Bo", "entities": [{"id": 7, "label": "X", "start_offset": 0, "end_offset": 1}]}\n',
    ],
    "prodigy": [
        '{"text": "a bc", "tokens": [{"start": 0, "end": 1}, {"start": 2, "end": 4}], '
        '"spans": [{"start": 2, "end": 4, "label": "X"}], "answer": "accept"}\n'
    ],
    "csv": ['sent,s,w,tag\n1,2,Ana,B-PER\n,2,"a, ""b",\n3,4,x,O\n', "s;w;tag\n1;a;b\n"],
    "conllx": [_ROWS, _ROWS.replace("2\tva", "1\tva")],
    "conllup": ["# global.columns = ID FORM UPOS HEAD DEPS NE\n1\ta\tX\t0\t0:r|1:x\tY\n\n"],
    "brat": [
        "Ana Díaz paid.\n\nBo left\r\n\0T1\tPER 0 8\tAna Díaz\nR1\tLives Arg1:T1 Arg2:T2\n"
        "T2\tPER 16 18\tBo\nT3\tX 0 3;4 8\tAna Díaz\n#1\tNote T1\tx\n"
    ],
    "crfsuite": ["X\tw=a\tf:0.5\nY\tw\\:b\n\n@weight:2\nX\ta\n"],
    "graphml": [
        '<graphml><key id="a" for="node" attr.name="observation" attr.type="string"/>'
        '<key id="b" for="node" attr.name="label" attr.type="string"/><graph edgedefault="directed">'
        '<node id="1"><data key="a">x</data><data key="b">Y</data></node><node id="2"><data key="a">z'
        '</data></node><edge source="1" target="2"/></graph></graphml>'
    ],
    "template": [
        'U00:%x[-1,0]\nU1:%x[0,1]/%m[0,0,"^\\u?\\l*$"] # c\n*2:%t[1,0,"\\d"]\nB\n',
        "B01:%X[-2,0]",
    ],
    "kernel": list(map(json.dumps, _KERNELS)),
    "command": [
        "Ana PER\nva O\n",
        _LINES,
        _ROWS,
        "--label 1 --columns 2\0Ana PER\n",
        "--help",
        "--option cyclic=skip\0" + _ROWS,
        ">p\nRS#V\n",
        "--set smoothing=0.5\0a b\n",
        "Ana va.\n",
        '{"text": "Ana va", "label": [[0, 3, "PER"]]}\n',
    ],
}


def seeds(target: str) -> list[bytes]:
    """Inputs to begin with: ordinary ones, and all finds."""
    finds = [path.read_bytes() for path in sorted((FINDS / target).glob("*"))]
    return [*finds, *_ordinary(target).get(target, [bytes([i]) for i in range(64)])]


def _ordinary(target: str) -> dict[str, list[bytes]]:
    """By target: each text after every byte that chooses options."""
    options = {name: len(choices) for name, choices in READING.items()} | {
        "command": len(COMMANDS),
        "kernel": 2,
        "brat": 3,
    }
    inputs = {
        name: [bytes([i]) + text.encode() for i in range(options.get(name, 1)) for text in texts]
        for name, texts in TEXTS.items()
    }
    inputs["file"] = [bytes([i]) + inputs[name][0][1:] for i, name in enumerate(READING)]
    inputs["graph"] = [b"\x03abc" + bytes(13) + b"\0\1\1\2", b"\x05aBcde" + bytes(11) + b"\0\1\0\2\1\3"]
    metas = [content.meta for content, _ in models()] if target == "model-meta" else []
    inputs["model-meta"] = [bytes([i]) + json.dumps(meta).encode() for i, meta in enumerate(metas)]
    inputs["model-bytes"] = [b"\0" + put_together(models()[0][0])[:-71]] if target == "model-bytes" else []
    return inputs
