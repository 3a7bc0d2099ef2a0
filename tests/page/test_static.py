"""The files of the page: nothing from elsewhere, no markup made of data, small modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fuda

STATIC = Path(fuda.__file__).parent / "page" / "static"
SCRIPTS = sorted((STATIC / "js").glob("*.js"))
PAGES = sorted(STATIC.glob("*.html"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_make_no_markup_of_text_and_are_small(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert not re.search(
        r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function)\b\s*[(=]", text
    )
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert text.count("\n") < 300


def test_every_module_that_is_imported_is_there_and_every_one_is_used() -> None:
    imported = {
        (script.parent / name).resolve()
        for script in SCRIPTS
        for name in re.findall(r'from "(\./[^"]+)"', script.read_text(encoding="utf-8"))
    }
    assert imported | {(STATIC / "js" / "main.js").resolve()} == {script.resolve() for script in SCRIPTS}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages_have_no_inline_script_or_style_and_load_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|//", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
    for path in re.findall(r'(?:src|href)="/static/([^"]+)"', text):
        assert (STATIC / path).is_file()


def test_the_style_loads_nothing() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in STATIC.glob("*.css"))
    assert "url(" not in text
    assert "@import" not in text
