"""FASTA by the command, with no option: what a model is, and what it finds in other proteins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import fuda
from fuda.cli import group
from planted import proteins_with_sites


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(group, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_sites_are_found_without_an_option(tmp_path):
    for name, seed in (("train", 0), ("test", 1)):
        (tmp_path / f"{name}.fasta").write_text(proteins_with_sites(25, seed))
    run("train", tmp_path / "train.fasta", "-o", tmp_path / "m.fuda")
    model = fuda.load(tmp_path / "m.fuda")
    assert model.encoder_.settings == ("protein", 7)
    report = run("evaluate", tmp_path / "m.fuda", tmp_path / "test.fasta")
    precision, recall = map(float, re.findall(r"site: precision: +([\d.]+)%; recall: +([\d.]+)%", report)[0])
    assert precision > 90
    assert recall > 90
    tagged = run("tag", tmp_path / "m.fuda", tmp_path / "test.fasta")
    assert tagged.count("#") == pytest.approx(50, abs=3)


def test_options_are_kept(tmp_path):
    (tmp_path / "train.fasta").write_text(proteins_with_sites(10, seed=0))
    settings = ["--set", "features=word", "--set", "window=2", "--set", "decode=viterbi"]
    run("train", tmp_path / "train.fasta", "-o", tmp_path / "m.fuda", *settings)
    model = fuda.load(tmp_path / "m.fuda")
    assert (model.features, model.window, model.decode) == ("word", 2, "viterbi")
