"""Models of CRF++ and Wapiti as text, against scores that are added up one by one."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from fuda import ModelFileError, Template, load
from fuda.compat import crfpp, wapiti
from fuda.compat import load as load_foreign

LABELS = ["O", "B-É", "I"]
WORDS = ["Ana", "ana", "ÉL", "x", "_B-1", "_x-1"]
PATTERNS = {
    "crfpp": ["U00:%x[0,0]", "U01:%x[-1,0]/%x[1,1]", "U02:%x[-5,0]", "B", "B01:%x[0,1]"],
    "wapiti": [
        *("u:0=%x[0,0]", "u:1=%X[-1,0]/%x[1,1]", "u:2=%x[-5,0]", "b", "*3:%x[0,1]"),
        *('u:4=%t[1,0,"^\\u"]', 'u:5=%M[0,0,"^.."]', "*"),
    ],
}


def cell(sentence, t, column, program):
    """A column of token t, or the mark past an end."""
    if 0 <= t < len(sentence):
        return sentence[t][column]
    steps = t if t < 0 else t - len(sentence) + 1
    if program == "crfpp":
        return f"_B{steps:+d}"
    return f"_x{steps:+d}" if abs(steps) <= 4 else f"_x{'-+'[steps > 0]}#"


def expand(pattern, sentence, t, program):
    """The text of a pattern at token t."""

    def value(match):
        letter, row, column, _ = match.groups()
        text = cell(sentence, t + int(row), int(column), program)
        if letter in "tT":
            return "true" if re.search("^[A-Z]", text) else "false"  # ^\u of the one %t above
        if letter in "mM":
            text = text[:2] if len(text) > 1 else ""  # ^.. of the one %m above
        return "".join(c.lower() if c.isascii() else c for c in text) if letter.isupper() else text

    return re.sub(r'%([xXtTmM])\[(-?\d+),(\d+)(?:,"([^"]*)")?\]', value, pattern)


class Written:
    """A random model: weights of texts, and the files that hold them."""

    def __init__(self, program, seed):
        self.program, self.patterns = program, PATTERNS[program]
        rng = np.random.default_rng(seed)
        self.random_word = lambda: (WORDS[rng.integers(len(WORDS))], "pq"[rng.integers(2)])
        self.sentences = [[self.random_word() for _ in range(n)] for n in (1, 2, 4, 7)]
        texts = {
            expand(pattern, sentence, t, program)
            for sentence in self.sentences[:3]
            for t in range(len(sentence))
            for pattern in self.patterns
        }
        L = len(LABELS)
        sizes = {"u": L, "b": L * L, "*": L + L * L}
        self.weights = {text: rng.normal(size=sizes[text[0].lower()]) for text in sorted(texts)}

    def score(self, sentence, labels):
        total, L = 0.0, len(LABELS)
        for t, label in enumerate(labels):
            for pattern in self.patterns:
                values = self.weights.get(expand(pattern, sentence, t, self.program))
                if values is None:
                    continue
                if pattern[0] in "uU*":
                    total += values[label]
                if pattern[0] in "bB*" and t > 0:
                    total += values[len(values) - L * L + labels[t - 1] * L + label]
        return total

    def marginals(self, sentence):
        labelings = list(itertools.product(range(len(LABELS)), repeat=len(sentence)))
        scores = np.array([self.score(sentence, labels) for labels in labelings])
        p = np.exp(scores - scores.max())
        p /= p.sum()
        probabilities = np.zeros((len(sentence), len(LABELS)))
        for labels, share in zip(labelings, p, strict=True):
            probabilities[np.arange(len(labels)), labels] += share
        return probabilities, [LABELS[k] for k in labelings[int(np.argmax(scores))]]

    def text(self):
        starts = np.cumsum([0, *map(len, self.weights.values())])
        flat = np.concatenate(list(self.weights.values()))
        if self.program == "crfpp":
            header = ["version: 100", "cost-factor: 0.5", f"maxid: {len(flat)}", "xsize: 2"]
            features = [f"{start} {text}" for start, text in zip(starts, self.weights, strict=False)]
            numbers = [f"{2 * weight:.17f}" for weight in flat]  # the factor is 0.5
            return "\n\n".join("\n".join(part) for part in (header, LABELS, self.patterns, features, numbers))
        lines = [f"#mdl#2#{len(flat)}", f"#rdr#{len(self.patterns)}/2/0", *map(netstring, self.patterns)]
        lines += [f"#qrk#{len(LABELS)}", *map(netstring, LABELS)]
        lines += [f"#qrk#{len(self.weights)}", *map(netstring, self.weights)]
        lines += [f"{k}={float(weight).hex()}" for k, weight in enumerate(flat)]
        return "\n".join(lines) + "\n"

    def dump(self):
        lines, L = [], len(LABELS)
        for text, values in self.weights.items():
            if text[0] in "u*":
                lines += [f"{text}\t#\t{LABELS[y]}\t{values[y]:.17f}" for y in range(L)]
            for y, z in itertools.product(range(L), repeat=2) if text[0] in "b*" else ():
                lines.append(
                    f"{text}\t{LABELS[y]}\t{LABELS[z]}\t{values[len(values) - L * L + y * L + z]:.17f}"
                )
            lines.append("")
        return "\n".join(lines)


def netstring(text):
    return f"{len(text.encode())}:{text},"


def assert_agrees(model, written):
    order = [list(model.classes_).index(label) for label in LABELS]
    for sentence, labels, actual in zip(
        written.sentences,
        model.predict(written.sentences),
        model.predict_marginals(written.sentences),
        strict=True,
    ):
        expected, best = written.marginals(sentence)
        np.testing.assert_allclose(actual[:, order], expected, atol=1e-12)
        assert labels == best


@pytest.mark.parametrize("program", PATTERNS)
@pytest.mark.parametrize("seed", range(3))
def test_predictions_are_those_of_the_weights(tmp_path, program, seed):
    written = Written(program, seed)
    path = tmp_path / "model"
    path.write_text(written.text(), encoding="utf-8")
    model = load_foreign(path)
    assert list(model.classes_) == LABELS
    assert_agrees(model, written)
    model.save(tmp_path / "model.fuda")
    assert_agrees(load(tmp_path / "model.fuda"), written)


def test_dumps_of_wapiti_need_patterns(tmp_path):
    written = Written("wapiti", 7)
    path = tmp_path / "dump.txt"
    path.write_text(written.dump(), encoding="utf-8")
    with pytest.raises(ModelFileError, match="needs template="):
        load_foreign(path)
    with pytest.raises(ModelFileError, match="give them by template="):
        wapiti.read(path)
    patterns = "\n".join(pattern[0].upper() + pattern[1:] for pattern in written.patterns)
    assert_agrees(load_foreign(path, Template(patterns, "patterns", wapiti=True)), written)


def test_models_without_pairs_have_transitions_of_zero(tmp_path):
    path = tmp_path / "model"
    path.write_text("version: 100\nmaxid: 2\nxsize: 1\n\nA\nB\n\nU:%x[0,0]\n\n0 U:a\n\n1\n-1\n")
    model = load_foreign(path)
    assert not model.transitions_.any()
    assert model.predict([["a", "b"]])[0] == ["A", "A"]
    path.write_bytes(b"#mdl#2#1\n#rdr#1/1/0\n9:u:%x[0,0],\n#qrk#2\n1:A,\n1:B,\n#qrk#1\n3:u:a,\n1=0x1p+0\n")
    assert load_foreign(path).predict([["a", "b"]])[0] == ["B", "A"]


DAMAGES = {
    "crfpp": [
        (r"maxid: \d+", "maxid: 3"),
        (r"xsize: 2", "xsize: 0"),
        (r"xsize: 2", "xsize: two"),
        (r"xsize: 2", "xsize: inf"),
        (r"cost-factor: 0.5", "cost-factor: inf"),
        (r"cost-factor: 0.5", "cost-factor: 1e308"),
        (r"\n0 ", "\n-1 "),
        (r"\n0 ", "\n99999 "),
        (r" B\n", " C\n"),
        (r"I\n", "O\n"),
        (r"\n\nO\n", "\n\n\nO\n"),
        (r"U00:%x\[0,0\]", "U00:%y[0,0]"),
        (r"0\.\d+\n", "nan\n"),
        (r"0\.\d+\n", "1e999\n"),
    ],
    "wapiti": [
        (r"#mdl#2", "#mdl#1"),
        (r"#mdl#2#\d+", "#mdl#2#99999999999999"),
        (r"#rdr#8", "#rdr#0"),
        (r"#rdr#8", "#rdr#" + "9" * 5000),
        (r"#rdr#8", "#rdr#9"),
        (r"#qrk#3", "#qrk#4000000000"),
        (r"\n1:O,", "\n1:I,"),
        (r"\n1:O,", "\n9999999999:O,"),
        (r"\n1:O,", "\n0:,"),
        (r"\n0=", "\n999999="),
        (r"=0x1\.", "=0y1."),
        (r"=-?0x\S+", "=inf"),
        (r"=-?0x\S+", "=0x1p+99999"),
        (r":u:0=%x", ":u:0=%y"),
    ],
}


@pytest.mark.parametrize(("program", "damage"), [(name, d) for name, all_ in DAMAGES.items() for d in all_])
def test_damaged_models_are_refused(tmp_path, program, damage):
    path = tmp_path / "model"
    text = Written(program, 0).text()
    damaged = re.sub(damage[0], damage[1].replace("\\", "\\\\"), text, count=1)
    assert damaged != text
    path.write_text(damaged, encoding="utf-8")
    with pytest.raises(ModelFileError, match=re.escape(str(path))):
        load_foreign(path)


@pytest.mark.parametrize("program", PATTERNS)
def test_random_damage_is_an_error_or_a_model(tmp_path, program):
    path, rng = tmp_path / "model", np.random.default_rng(1)
    data = Written(program, 0).text().encode()
    refused = 0
    for _ in range(150):
        changed = bytearray(data)
        for at in rng.integers(len(data), size=3):
            changed[at] = rng.integers(256)
        cut = len(data) if rng.random() < 0.7 else int(rng.integers(len(data)))
        path.write_bytes(changed[:cut])
        try:
            {"crfpp": crfpp, "wapiti": wapiti}[program].read(path)
        except ModelFileError:
            refused += 1
    assert refused > 30


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "model"
    path.write_text("hello")
    with pytest.raises(ModelFileError, match="neither a model of CRFsuite, nor of CRF"):
        load_foreign(path)
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_foreign(tmp_path / "none")
