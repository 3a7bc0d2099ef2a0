"""The command as a shell sees it: help, start-up, exit codes, pipes, interrupts, terminals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.command_cases import TEXTS
from fuda.cli import Commands, group

HEAVY = ("numba", "sklearn", "scipy", "numpy", "rich")
FUDA = [sys.executable, "-m", "fuda"]


def shell(*arguments: object, **options):
    return subprocess.run(
        [*FUDA, *map(str, arguments)], capture_output=True, timeout=60, check=False, **options
    )


@pytest.mark.parametrize("name", [None, *group.commands])
def test_help_has_an_example(run, name):
    for flag in ("-h", "--help"):
        result = run(*([name] if name else []), flag)
        assert (result.code, result.err) == (0, "")
        text = result.out.decode()
        assert "Examples:" in text
        assert f"    fuda {name or 'train'}" in text


def test_the_list_of_commands_is_whole_lines(run):
    text = run("--help").out.decode()
    assert "..." not in text.split("Commands:")[1]
    assert [
        line.split()[0]
        for line in text.split("Commands:")[1].split("Examples")[0].splitlines()
        if line.strip()
    ] == [*group.commands]
    assert isinstance(group, Commands)


def test_examples_of_help_are_commands(run):
    """Every example names options that its command has."""
    for name, command in group.commands.items():
        known = {flag for parameter in command.params for flag in parameter.opts}
        for line in (command.epilog or "").splitlines():
            for word in line.partition(f"fuda {name}")[2].partition("|")[0].split():
                assert not word.startswith("-") or word in known or word == "-"


def test_no_arguments_show_the_help(run):
    result = run()
    assert result.code == 2
    assert result.err.startswith("Usage: fuda [OPTIONS] COMMAND")


def test_version(run):
    from fuda import __version__

    assert run("--version").out.decode() == f"fuda, version {__version__}\n"


@pytest.mark.parametrize(
    "line", ["import fuda", "import fuda.cli", *(f"HELP {name}" for name in group.commands)]
)
def test_light_imports(line):
    code = line
    if line.startswith("HELP"):
        code = f"""
import sys
from fuda.cli import main
sys.argv = {["fuda", line.split()[1], "--help"]}
try:
    main()
except SystemExit:
    pass
"""
    code += f"\nimport sys; print('LOADED', [m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "LOADED []"


def test_commands_import_no_statistics():
    """scikit-learn would, which takes half of its time; who asks for them gets them."""
    code = (
        "import sys\n"
        "from fuda.cli import main\n"
        "sys.argv = ['fuda', '--version']\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code\n"
        "import sklearn.base\n"
        "assert 'scipy.stats._stats_py' not in sys.modules\n"
        "import scipy.stats, scipy.stats.distributions as found\n"
        "assert scipy.stats.norm is found.norm and scipy.stats.norm.cdf(0) == 0.5\n"
        "assert sys.modules['scipy.stats'].__file__ and scipy.stats.norm is found.norm\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_learning_and_labelling_import_no_scikit_learn(models, places, tmp_path):
    """It would take as long as all the rest of labelling a sentence."""
    model, data = str(models["conll"]), str(places["conll"])
    code = (
        "import sys, scipy.sparse\n"
        "heavy = {'sklearn', 'joblib', 'scipy.linalg'} - set(sys.modules)\n"  # scipy 1.13 has the last
        "from fuda.cli import main\n"
        f"for line in [['train', {data!r}, '-o', {str(tmp_path / 'm')!r}, '--learner', 'hmm'],\n"
        f"             ['tag', {model!r}, {data!r}], ['evaluate', {model!r}, {data!r}],\n"
        f"             ['explain', {model!r}, {data!r}], ['inspect', {model!r}]]:\n"
        "    sys.argv = ['fuda', *line]\n"
        "    try: main()\n"
        "    except SystemExit as ended: assert not ended.code\n"
        "    assert not heavy & set(sys.modules), line\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"})


def test_the_console_script_and_the_module_are_the_same_command():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"fuda": "fuda.__main__:main"}
    assert shell("--version").stdout == b"fuda, version 0.1.0\n"


def test_exit_codes_in_a_shell(models, places):
    assert shell("inspect", models["conll"]).returncode == 0
    result = shell("inspect", places["missing"])
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"fuda: ")
    assert result.stderr.count(b"\n") == 1


def test_a_reader_that_goes_away(tmp_path):
    """`fuda convert … | head -1`: no message, exit code 0."""
    path = tmp_path / "long.conll"
    path.write_text(TEXTS["conll"] * 2_000)  # more than a pipe holds
    process = subprocess.Popen(
        [*FUDA, "convert", str(path), "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"Ana NP B-PER\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["inspect", "{model}"], ["convert", "{conll}", "-"]])
def test_standard_output_that_is_full(places, arguments):
    line = [*FUDA, *(argument.format(**places) for argument in arguments)]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 2
    assert result.stderr == b"fuda: <stdout>: cannot be read or written: No space left on device\n"


MORE_THAN_A_PIPE_HOLDS = b"Ana B-PER\n\n" * 100_000


def hears_interrupts():
    """Also where the tests run in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_before_there_is_anything_to_save(number, models, places):
    """Ctrl-C while standard input is awaited."""
    arguments = [*FUDA, "train", "-", "-o", str(places["out"]), "--format", "conll"]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}

    with subprocess.Popen(arguments, **pipes, preexec_fn=hears_interrupts) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(MORE_THAN_A_PIPE_HOLDS)  # so that it is being read afterwards
        process.send_signal(number)
        message = process.stderr.read()
    assert message == b"fuda: interrupted; no file was written or changed\n"
    assert process.returncode == 128 + number
    assert not places["out"].exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_in_the_training_of_a_crf_saves_the_best_so_far(
    number, run, places, monkeypatch, default_signals
):
    from fuda.progress import Iterations

    def interrupt(self, progress):
        if progress.iteration == 2:
            signal.raise_signal(number)

    monkeypatch.setattr(Iterations, "__call__", interrupt)
    result = run("train", places["conll"], "-o", places["out"])
    assert result.code == 128 + number
    assert result.err.startswith(
        "fuda: the CRF has not converged: it was interrupted; the weights are the best"
    )
    assert len(result.err.splitlines()) == 3
    assert run("evaluate", places["out"], places["conll"]).code == 0


TWICE = """
import signal, time
from fuda.progress import Iterations
def interrupt(self, progress):
    if progress.iteration == 2:
        signal.raise_signal(signal.SIGINT)
Iterations.__call__ = interrupt
from fuda.models.crf import CRF
def save(self, path):
    signal.raise_signal(signal.SIGTERM)
    time.sleep(60)
CRF.save = save
from fuda.cli import main
main()
"""


INSIDE_EXEC = """
import signal
from fuda.cli import main, options
def read(*_):
    exec("signal.raise_signal(signal.SIGTERM)")
options.read = read
main()
"""


def test_the_exit_code_of_a_signal_that_comes_inside_an_exec(places, tmp_path):
    """Imports run code by exec; ``python -m`` would end by SIGINT after an interrupt there."""
    (tmp_path / "inside.py").write_text(INSIDE_EXEC)
    line = [sys.executable, "-m", "inside", "train", str(places["conll"]), "-o", str(places["out"])]
    result = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 128 + signal.SIGTERM
    assert result.stderr == "fuda: interrupted; no file was written or changed\n"


def test_a_second_signal_ends_the_command_at_once(places):
    """Even in the middle of what must not be interrupted, with no more words."""
    line = [sys.executable, "-c", TWICE, "train", str(places["conll"]), "-o", str(places["out"])]
    result = subprocess.run(line, capture_output=True, text=True, check=False, preexec_fn=hears_interrupts)
    assert result.returncode == -signal.SIGTERM  # 143 for a shell
    assert result.stderr.startswith("fuda: the CRF has not converged: it was interrupted")
    assert len(result.stderr.splitlines()) == 1
    assert not places["out"].exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_of_the_save_waits_for_it(number, run, places, monkeypatch, default_signals):
    from fuda import CRF

    def interrupted(self, path, save=CRF.save):
        signal.raise_signal(number)
        save(self, path)

    monkeypatch.setattr(CRF, "save", interrupted)
    result = run("train", places["conll"], "-o", places["out"])
    assert result.code == 128 + number
    labels, written, *rest = result.err.splitlines()
    assert labels == "labels: O 3, B-PER 2, B-LOC 1"
    assert written.startswith(f"{places['out']}: CRF, ")
    assert rest == [f"fuda: interrupted; written: {places['out']}"]
    assert run("evaluate", places["out"], places["conll"]).code == 0


def test_an_interrupt_says_what_was_written_by_then(run, places, monkeypatch, default_signals):
    def interrupt(*_):
        return signal.raise_signal(signal.SIGINT) if places["out"].exists() else ""

    monkeypatch.setattr("fuda.cli.options.describe", interrupt)
    result = run("train", places["conll"], "-o", places["out"], "--learner", "hmm")
    assert result.code == 130
    assert result.err.splitlines()[1:] == [f"fuda: interrupted; written: {places['out']}"]
    module = sys.modules["fuda.cli.train"]  # the attribute of the package is the command
    monkeypatch.setattr(module, "fit", lambda *_: signal.raise_signal(signal.SIGINT))
    result = run("train", places["conll"], "-o", places["out"])
    assert (result.code, result.err) == (130, "fuda: interrupted; no file was written or changed\n")


def test_a_checkpoint_is_not_one_of_the_other_files(run, places, tmp_path):
    for path in (places["out"], places["conll"]):
        result = run("train", places["conll"], "-o", places["out"], "--checkpoint", path)
        assert (result.code, "is used twice by the same command" in result.err) == (2, True)
    state = tmp_path / "state"
    result = run("train", places["conll"], "-o", places["out"], "--checkpoint", state, "--learner", "hmm")
    assert (result.code, "--checkpoint: hmm has no state of training" in result.err) == (2, True)
    line = ["train", places["conll"], "-o", places["out"], "--checkpoint", state, "--set", "checkpoint=x"]
    assert "both give the same; give one" in run(*line).err
    assert not state.exists()


def test_signals_that_are_ignored_stay_so(run, places, default_signals):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run("inspect", places["model"]).code == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_interrupt_in_the_demo_ends_it(run, monkeypatch):
    from fuda.progress import Iterations

    def interrupt(self, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(Iterations, "__call__", interrupt)
    result = run("demo")
    assert (result.code, result.err) == (130, "fuda: interrupted; no file was written or changed\n")


def on_a_terminal(*arguments: object) -> tuple[bytes, str]:
    """Standard output of a run, and what it draws on the terminal that is its standard error."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen([*FUDA, *map(str, arguments)], stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        assert process.stdout is not None
        out, drawn = process.stdout.read(), b""
    with contextlib.suppress(OSError):  # Linux says by an error that the other end is closed
        while chunk := os.read(ours, 4096):
            drawn += chunk
    os.close(ours)
    assert process.returncode == 0, drawn
    return out, drawn.decode()


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_and_never_on_standard_output(run, models, places):
    plain = run("tag", models["conll"], places["conll"])
    out, drawn = on_a_terminal("tag", models["conll"], places["conll"])
    assert (plain.out, plain.err) == (out, "")
    assert "6 nodes" in drawn


@pytest.mark.slow
def test_a_model_does_not_depend_on_the_terminal(models, places):
    out, drawn = on_a_terminal("train", places["conll"], "-o", places["out"])
    assert out == b""
    assert "CRF, sequential" in drawn
    assert places["out"].read_bytes() == models["crf"].read_bytes()


def test_names_of_files_with_odd_characters(run, models, places, tmp_path):
    path = tmp_path / "a [b] é\u2028 \n.conll"
    path.write_text(TEXTS["conll"])
    assert run("evaluate", models["conll"], path).code == 0
    path.unlink()
    result = run("evaluate", models["conll"], path)
    assert result.err.count("\n") == 1
    assert "a [b] é\\u2028 \\n.conll: cannot be read" in result.err


def test_output_in_an_encoding_that_lacks_a_label(run, tmp_path):
    path, model = tmp_path / "a.conll", tmp_path / "m.fuda"
    path.write_text("x 名\n")
    assert run("train", path, "-o", model, "--learner", "hmm").code == 0
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    result = shell("inspect", model, env=environment)
    assert result.returncode == 0
    assert b"\\u540d" in result.stdout
    report = json.loads(run("evaluate", model, path, "--json").out)
    assert report["confusion"]["labels"] == ["名"]


def test_existing_output_is_replaced_whole_and_failure_leaves_it(run, places, models, tmp_path):
    target = tmp_path / "tagged.conll"
    target.write_text("old\n")
    (tmp_path / "bad.conll").write_text("a b c\nd\n")
    assert run("tag", models["conll"], tmp_path / "bad.conll", "-o", target).code == 2
    assert target.read_text() == "old\n"
    assert run("tag", models["conll"], places["conll"], "-o", target).code == 0
    assert target.read_bytes() == run("tag", models["conll"], places["conll"]).out
    assert run("tag", models["conll"], target, "-o", target).code == 0  # in place
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["train", "--help"]])
def test_help_into_a_full_disk(arguments, unbuffered):
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "fuda", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    assert result.returncode == 2
    assert result.stderr == b"fuda: <stdout>: cannot be read or written: No space left on device\n"


MOMENTS = """
import atexit, signal, sys
from fuda import __main__, cli
def send(*_):
    signal.raise_signal(signal.SIGTERM)
{0}
__main__.main()
"""


@pytest.mark.parametrize(
    ("when", "ended"),
    [
        ("cli._replace_closed_streams = send", (143, "fuda: interrupted\n")),
        ("cli.Signals.__enter__ = send", (143, "fuda: interrupted\n")),
        ("cli.Signals.__exit__ = send", (143, "fuda: interrupted; no file was written or changed\n")),
        (
            "cli._without_short_writes = lambda out: setattr(out, 'flush', send) or out",
            (143, "fuda: interrupted\n"),
        ),
        (
            "cli._without_short_writes = lambda out: atexit.register(send) and out",
            (143, "fuda: interrupted\n"),
        ),
        ("atexit.register(send)", (0, "")),
    ],
)
def test_a_signal_before_and_after_the_command_runs(when, ended, places):
    """It is one line and the exit code of a signal; when Python ends, nothing any more."""
    line = [sys.executable, "-c", MOMENTS.format(when), "convert", str(places["conll"]), "-", "--to", "jsonl"]
    result = subprocess.run(line, capture_output=True, text=True, check=False, preexec_fn=hears_interrupts)
    assert (result.returncode, result.stderr) == ended


AFTERWARDS = """
import signal
from fuda.__main__ import main
from fuda.progress import Iterations
from fuda.cli.signals import Signals
def interrupt(self, progress):
    if progress.iteration == 2:
        signal.raise_signal(signal.SIGINT)
def leave(self, *_, leave=Signals.__exit__):
    leave(self)
    signal.raise_signal(signal.SIGTERM)
Iterations.__call__, Signals.__exit__ = interrupt, leave
main()
"""


def test_a_second_signal_after_the_model_was_saved_ends_the_command(places):
    line = [sys.executable, "-c", AFTERWARDS, "train", str(places["conll"]), "-o", str(places["out"])]
    result = subprocess.run(line, capture_output=True, text=True, check=False, preexec_fn=hears_interrupts)
    assert result.returncode == -signal.SIGTERM
    assert "it was interrupted" in result.stderr
    assert places["out"].exists()
