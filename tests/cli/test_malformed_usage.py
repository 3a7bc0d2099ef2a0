"""Malformed options, templates and models: exit code 2, one line, and no file changed."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from cli.command_cases import assert_refused
from model_file_cases import altered

# Options and values. {conll}, {conllu}, {fasta} and {jsonl} are valid files, {out} is an output.
TRAIN = "train {conll} -o {out}"
OPTIONS = [
    ("nonsense", "No such command 'nonsense'"),
    ("--nonsense", "No such option"),
    ("train", "Missing argument"),
    ("train {conll}", "Missing option '-o'"),
    ("train -o {out}", "Missing argument"),
    (TRAIN + " --learner svm", "'svm' is not one of 'crf', 'hmm'"),
    (TRAIN + " --nonsense", "No such option"),
    (TRAIN + " --set nonsense=1", "--set nonsense=…: crf has no such parameter; it has .*window"),
    (TRAIN + " --set smoothing=1", "crf has no such parameter"),
    (TRAIN + " --set c1=1", "crf has no such parameter; l1 is CRFsuite's c1"),
    (TRAIN + " --learner hmm --set loss=markov", "hmm has no such parameter; it has class_weight, decode"),
    (TRAIN + " --set window", "--set window: write --set NAME=VALUE"),
    (TRAIN + " --set =1", "write --set NAME=VALUE"),
    (TRAIN + " --set 1=1", "write --set NAME=VALUE"),
    (TRAIN + " --set window=1 --set window=2", "window is given twice"),
    (TRAIN + " --set window=-1", "window=-1: give the number of neighbours"),
    (TRAIN + " --set window=1000", "window=1000: give the number of neighbours"),
    (TRAIN + " --set window=two", "window='two': give the number of neighbours"),
    (TRAIN + " --set window=1.5", "window=1.5: give the number of neighbours"),
    (TRAIN + " --set window=", "window=''"),
    (TRAIN + " --set features=nope", "features='nope': no such feature set; give one of word"),
    (TRAIN + " --set features=1", "features=1: no such feature set"),
    (TRAIN + " --set order=-1", "order=-1: give a number from 0 to 1e"),
    (TRAIN + " --set order=x", "order='x'"),
    (TRAIN + " --set l2=-1", "l2=-1"),
    (TRAIN + " --set l2=1e999", "l2=inf"),
    (TRAIN + " --set l2=nan", "l2='nan'"),
    (TRAIN + " --set l2=true", "l2=True"),
    (TRAIN + " --set l1=-0.5", "l1=-0.5"),
    (TRAIN + " --set l1=1 --set solver=cg", "l1=1 with solver='cg'"),
    (TRAIN + " --set tol=-1", "tol=-1"),
    (TRAIN + " --set loss=foo", "loss='foo'.*sequential"),
    (TRAIN + " --set loss=5", "loss=5"),
    (TRAIN + " --set solver=newton", "solver='newton': choose lbfgs"),
    (TRAIN + " --set max_iter=0", "max_iter=0: give a whole number of at least 1"),
    (TRAIN + " --set max_iter=many", "max_iter='many'"),
    (TRAIN + " --set decode=greedy", "decode='greedy': choose viterbi or posterior"),
    (TRAIN + " --set scheme=FOO", "no tagging scheme 'FOO'; the schemes are"),
    (TRAIN + " --learner hmm --set smoothing=0", "smoothing=0: give a number above 0"),
    (TRAIN + " --learner hmm --set smoothing=-1", "smoothing=-1"),
    (TRAIN + " --learner hmm --set smoothing=x", "smoothing='x'"),
    (TRAIN + " --learner hmm --set decode=1", "decode=1: choose"),
    (TRAIN + " --format xml", "format 'xml' is not known; choose one of conll"),
    (TRAIN + " --format conllu", "conll:1: 1 columns where 10"),
    (TRAIN + " --label 9", r"conll: label=9: count columns from 1 to 3"),
    (TRAIN + " --label 0", "label=0"),
    (TRAIN + " --label -2", "label=-2"),
    (TRAIN + " --label MISC", "label='MISC': count columns"),
    (TRAIN + " --label 1 --columns 1", "column 1 is both observed and the label"),
    (TRAIN + " --columns 0", "columns=0: count columns from 1 to 3"),
    (TRAIN + " --columns 4", "columns=4"),
    (TRAIN + " --columns x", "columns='x'"),
    (TRAIN + " --columns 1,x", "columns='x'"),
    (TRAIN + " --columns 1,,2", "columns=''"),
    (TRAIN + " --columns 1,3", "column 3 is both observed and the label"),
    (TRAIN + " --graph tree", "reading conll takes no option 'graph'; it takes"),
    (TRAIN + " --graph forest", "'forest' is not one of"),
    (TRAIN + " --option junk", "--option junk: write --option NAME=VALUE"),
    (TRAIN + " --option junk=1", "reading conll takes no option 'junk'; it takes: separator"),
    (TRAIN + " --option separator=||", "separator='||': give"),
    (TRAIN + " --option separator=5", "separator=5: give"),
    (TRAIN + " --option width=x", "width='x': give the number of columns"),
    (TRAIN + " --option label=1", "--option label=…: write --label instead"),
    (TRAIN + " --option format=conll", "--option format=…: write --format instead"),
    (TRAIN + " --template {missing}", "missing: cannot be read: No such file"),
    (TRAIN + " --template {conll}", "conll:1: 'Ana NP B-PER': a line begins with U"),
    (TRAIN + " --template {blank}", "blank: no feature line; write lines such as U00"),
    (TRAIN + " --template {template} --set features=word", "--template and --set features"),
    (TRAIN + " --columns 1 --template {template}", "template:1: uses column 1 .*correct the line"),
    (
        "train {conllu} -o {out} --template {template}",
        "conllu: structure 0 is a tree, but a template needs a sequence",
    ),
    ("train {conllu} -o {out} --label NE", "label='NE': choose one of FORM"),
    ("train {conllu} -o {out} --label 4", "label=4: choose one of FORM"),
    ("train {conllu} -o {out} --label MISC", "label='MISC': choose one of"),
    ("train {conllu} -o {out} --columns HEAD", "columns='HEAD': choose one of"),
    ("train {conllu} -o {out} --columns FORM,FORM", "FORM is named twice"),
    ("train {conllu} -o {out} --columns 1", "columns=1: choose one of"),
    ("train {conllu} -o {out} --option cyclic=maybe", "cyclic='maybe': choose one of error, skip"),
    ("train {conllu} -o {out} --option absent=5", "absent=5: give the label"),
    ("train {fasta} -o {out} --label 2", "reading fasta takes no option 'label'; it takes: labels"),
    ("train {fasta} -o {out} --option labels=some", "labels='some': choose one of auto"),
    ("train {fasta} -o {out} --option labels=lines", "fasta:3: 2 labels for 6 residues; give one"),
    ("train {fasta} -o {out} --option mark=A", "mark='A': give one character that is not a residue"),
    ("train {fasta} -o {out} --option sites=5", "sites=5: give the residues"),
    ("train {fasta} -o {out} --option sites=S --option labels=lines", "needs labels='marks'"),
    ("train {jsonl} -o {out} --columns 1", "reading jsonl takes no option 'columns'; it takes: label"),
    ("train {missing} -o {out}", "the extension '' does not belong to a format; .*--format"),
    ("train {missing}.conll -o {out}", "missing.conll: cannot be read: No such file"),
    ("train {folder} -o {out} --format conll", "folder: cannot be read: Is a directory"),
    ("train {conll} {missing}.conll -o {out}", "missing.conll: cannot be read"),
    (
        "train {conll} {jsonl} -o {out}",
        "structure 0 of .*jsonl, node 0: a string, where structure 0 of .*conll",
    ),
    ("train {conll} -o {missing}/m.fuda", "m.fuda: there is no folder .*missing; make it first"),
    ("train {conll} -o {folder}", "folder: is a folder; name a file"),
    ("train {conll} -o {conll}", "conll: is used twice by the same command and would be lost"),
    ("train {conll} -o {template} --template {template}", "template: is used twice by the same command"),
    ("train {conll} -o -", "-o -: a model is not written to standard output; name a file"),
    ("train {conll} -o {conll}/m.fuda", "m.fuda: there is no folder"),
    ("train {conll} -o {out} --set features={{[]:1}}", "features='{\\[\\]:1}': no such feature set"),
    (
        "train {conll} -o {out} --learner crf --set loss={{}}",
        "loss={}: choose sequential, pointwise or markov",
    ),
    ("tag {model} {conll} --cluster tls://127.0.0.1:1", "cluster=tls.*no scheduler answers there"),
    ("tag", "Missing argument 'MODEL'"),
    ("tag {model} {conll} {missing}.conll", "missing.conll: cannot be read"),
    ("tag {model} {conll} {conll} -o {folder}", "good.conll: two files of that name would be written"),
    ("tag {model} {conll} -o {folder} --as nope", "format 'nope' is not known"),
    ("tag {model} {conll} --as inline --nbest 2", "--nbest: inline cannot contain it; choose"),
    ("tag {model} {conll} --as doccano --marginals", "--marginals: doccano cannot contain them; choose"),
    ("tag {model} {conll} --nbest 0", "0 is not in the range"),
    ("tag {model} {conll} --text --format conll", "--text and --format conll: give one of them"),
    ("tag {model} {conll} --text --known", "raw text has no labels to keep; leave"),
    ("tag {model} {conll} --text --columns 1", "reading text takes no option 'columns'"),
    ("tag {model} {conll} --text", "structure 0, node 0 is .*but the model was fitted on"),
    ("tag {model} {missing}.conll", "missing.conll: cannot be read"),
    ("tag {model} {missing}", "missing: cannot be read: No such file"),
    ("tag {model} {conll} -o {missing}/x.conll", "x.conll: there is no folder"),
    ("tag {model} {conll} -o {model}", "is used twice by the same command and would be lost"),
    ("tag {model} {conll} -o {out}", "the extension '.fuda' does not belong to a format"),
    ("tag {model} {conll} --format nope", "format 'nope' is not known"),
    ("tag {model} {conll} --columns 1", "structure 0, node 0 is .*but the model was fitted on"),
    (
        "tag {model} {conllu}",
        "conllu: the model was not trained on such files; name the field of the labels",
    ),
    ("evaluate {model} {conllu}", "conllu: the model was not trained on such files; name"),
    ("tag {model} {conllu} --label UPOS", "structure 0 is a tree, but this HMM was fitted on sequences"),
    ("tag {model} {fasta}", "structure 0, node 0 is"),
    ("evaluate {model}", "Missing argument 'FILE..."),
    ("evaluate {model} {conll} --scheme FOO", "no tagging scheme 'FOO'; the schemes are IOB1"),
    ("evaluate {model} {conll} --label none", "conll: has no labels to compare with"),
    ("evaluate {model} {conll} --label 2 --columns 1", "structure 0, node 0 is"),
    ("evaluate {model} {missing}.conll --json", "missing.conll: cannot be read"),
    ("evaluate {conll} {model}", "conll: not a usable model file"),
    ("inspect", "Missing argument 'MODEL'"),
    ("inspect {missing}", "missing: cannot be read: No such file.*check the path"),
    ("inspect {folder}", "is a folder, not a model file; name the file"),
    ("inspect {conll}", "conll: not a usable model file"),
    ("inspect {model} --top 0", "0 is not in the range"),
    ("inspect {model} --top x", "'x' is not a valid integer"),
    ("convert {conll}", "Missing argument 'OUT'"),
    ("convert {conll} {out}", "the extension '.fuda' does not belong to a format; .* --to for what convert"),
    ("convert {conll} {out} --to xml", "format 'xml' is not known"),
    ("convert {conll} {folder} --to jsonl", "is a folder; name a file"),
    ("convert {conll} {missing}/x.jsonl", "x.jsonl: there is no folder .*make it"),
    (
        "convert {conll} {out} --to jsonl --write junk=1",
        "writing jsonl takes no option 'junk'; it takes: none",
    ),
    ("convert {conll} {out} --to jsonl --write junk", "--write junk: write --write NAME=VALUE"),
    ("convert {conllu} {out} --to conll --write flatten=no", "flatten='no': choose one of True, False"),
    ("convert {conll} {out} --to conllu --write columns=5", "columns=5: name at least one column"),
    ("convert {conll} {out} --to conll --write separator=", "separator='': give"),
    ("demo now", "unexpected extra argument"),
    ("reproduce nothing --data {folder}", "'nothing' is not"),
    ("reproduce markov-loss --data {folder}", "folder: has no file esp.train; --data names"),
    ("reproduce markov-loss", "Missing option '--data'"),
]


@pytest.mark.parametrize(("line", "words"), OPTIONS)
def test_bad_options_and_values(run, tmp_path, places, line, words):
    arguments = [part.format(**places) for part in line.split()]
    assert_refused(run, tmp_path, arguments, words)


TEMPLATES = [
    ("U00:%x[0]\nB\n", 1, "is not supported"),
    ("U00:%x[0,0]\nX01:%x[0,0]\nB\n", 2, "a line begins with U"),
    ("U00:%x[0,a]\nB\n", 1, "is not supported"),
    ("U00:%x[500,0]\nB\n", 1, "give a row from"),
    ("U00:%y[0,0]\nB\n", 1, "is not supported"),
    ("U00:%t[0,0]\nB\n", 1, r"write %x\[row,col\], %t"),
    ('U00:%x[0,0,"a"]\nB\n', 1, r"write %x\[row,col\], %t"),
    ('U00:%t[0,0,"*"]\nB\n', 1, "repeats nothing"),
    ("U00:%x[0,0]\n", 2, "ends without a line B.*add a line B"),
    ("U00:%x[0,0]\nU00:%x[1,0]\nB\n", 2, "has the text of line 1"),
    ("U00:%x[0,7]\nB\n", 1, "uses column 7"),
    ("U00:%x[0,0]\nB01:%x[0,0]\n", None, "B01.*HMM has no features of label pairs"),
]


@pytest.mark.parametrize(("text", "line", "words"), TEMPLATES)
def test_bad_templates(run, tmp_path, places, text, line, words):
    places["template"].write_text(text)
    arguments = [
        "train",
        places["conll"],
        "-o",
        places["out"],
        "--template",
        places["template"],
        "--learner",
        "hmm",
    ]
    where = "" if line is None else f"template:{line}: "
    assert_refused(run, tmp_path, arguments, f"{where}.*{words}")


def changed(change):
    """A model file altered by `change(meta, members)` and sealed again."""
    return lambda data, path: altered(path, path.with_name("altered"), change).read_bytes()


def setting(key, value):
    return changed(lambda meta, members: meta.update({key: value}))


MODELS = [
    ("empty", lambda data, path: b"", "not a usable model file: .*save the model again"),
    ("text", lambda data, path: b"hello\n", "not a usable model file"),
    ("cut", lambda data, path: data[: len(data) // 2], "not a usable model file"),
    ("cut by one", lambda data, path: data[:-1], "not a usable model file"),
    ("one byte more", lambda data, path: data + b"x", "not a usable model file"),
    (
        "one bit",
        lambda data, path: data[:300] + bytes([data[300] ^ 1]) + data[301:],
        "not a usable model file",
    ),
    ("gzip", lambda data, path: gzip.compress(data), "not a usable model file"),
    ("json", lambda data, path: json.dumps({"format": "fuda-model"}).encode(), "not a usable model file"),
    ("newer format", setting("format_version", 99), "format version 99, .*install a newer fuda"),
    ("newer class", setting("class_version", 99), "contains version 99 of HMM; .*install a newer fuda"),
    ("foreign class", setting("class", "os.system"), "contains a 'os.system', which is not a model of fuda"),
    ("no labels", setting("labels", []), "'labels' is missing or has the wrong type"),
    ("unknown parameter", setting("parameters", {"x": 1}), "HMM has no parameter 'x'"),
    ("bad parameter", setting("parameters", {"window": -1}), "window=-1"),
    ("foreign shape", setting("shape", "ring"), "'shape' is missing or has the wrong type"),
    (
        "member gone",
        changed(lambda meta, members: members.pop("arrays/start.npy")),
        "does not match its members",
    ),
]


@pytest.mark.parametrize(("what", "damage", "words"), MODELS, ids=[what for what, *_ in MODELS])
def test_bad_models(run, tmp_path, places, what, damage, words):
    path = tmp_path / "bad.fuda"
    path.write_bytes(places["model"].read_bytes())
    path.write_bytes(damage(path.read_bytes(), path))
    place = f"^fuda: {re.escape(str(path))}: .*{words}"
    for command in (["tag", path, places["conll"]], ["evaluate", path, places["conll"]]):
        assert_refused(run, tmp_path, command, place)


@pytest.mark.parametrize(
    "reading", [{"format": ["x"]}, {"format": "conll", "width": "x"}, {"format": "conll", "a": 1}]
)
def test_models_with_false_options_of_reading(run, tmp_path, places, reading):
    path = tmp_path / "bad.fuda"
    path.write_bytes(setting("reading", reading)(b"", places["model"]))
    assert_refused(run, tmp_path, ["tag", path], "^fuda: ", stdin=b"a NN O\n")
