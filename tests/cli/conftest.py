"""The command run in this process, models it has trained, and files to run it on."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from cli.command_cases import TEXTS, Outcome, Run
from fuda.cli import main


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run ``fuda ARGUMENTS`` through `main`, as the command does."""

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["fuda", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        output = capsysbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return Outcome(ended.value.code, output.out, output.err.decode())

    return run


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An HMM trained on a file of every format, and a CRF on columns, by ``fuda train``."""
    folder = tmp_path_factory.mktemp("trained")
    made = {}
    for name, learner in [*((name, "hmm") for name in TEXTS), ("conll", "crf")]:
        (folder / f"small.{name}").write_text(TEXTS[name])
        made[learner if learner == "crf" else name] = model = folder / f"{name}-{learner}.fuda"
        arguments = ["train", str(folder / f"small.{name}"), "-o", str(model), "--learner", learner]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["fuda", *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code == 0
    return made


@pytest.fixture
def places(tmp_path: Path, models: dict[str, Path]) -> dict[str, Path]:
    """Valid files of every format, a template, a blank file, a folder, a model, unused paths."""
    paths = {name: tmp_path / f"good.{name}" for name in TEXTS}
    for name, path in paths.items():
        path.write_text(TEXTS[name])
    paths["template"] = tmp_path / "template"
    paths["template"].write_text("U00:%x[0,0]/%x[0,1]\nB\n")
    paths["blank"] = tmp_path / "blank"
    paths["blank"].write_text("\n# nothing\n")
    paths["folder"] = tmp_path / "folder"
    paths["folder"].mkdir()
    paths["model"] = tmp_path / "model.fuda"
    paths["model"].write_bytes(models["conll"].read_bytes())
    return paths | {"missing": tmp_path / "missing", "out": tmp_path / "out.fuda"}
