"""The page in a real browser: hostile words, trees, fingers, and narrow and dark screens."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from page_cases import Served, marks, open_view, serving, wait_for_sentence, wait_until

TREES = """1\tdogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tchase\tchase\tVERB\t_\t_\t0\troot\t_\t_
3\tblack\tblack\tADJ\t_\t_\t4\tamod\t_\t_
4\tcats\tcat\tNOUN\t_\t_\t2\tobj\t_\t_

1\tcats\tcat\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\t_\t_\t0\troot\t_\t_

"""
Open = Callable[..., Any]


@pytest.mark.parametrize("unit", ["spans", "nodes"])
def test_hostile_words_labels_and_names_are_text(unit: str, opened: Open, tmp_path: Path) -> None:
    evil = "<img/src=x/onerror=window.hit=1>"
    file = tmp_path / "<img src=x onerror=window.hit=1>.conll"
    tag = f"B-{evil}" if unit == "spans" else evil
    file.write_text(f"{evil}\t{tag}\n</span>\tO\n\n{evil}\tO\nword\tO\n\n", encoding="utf-8")
    for server in serving(tmp_path, file, "<b>bold</b>"):
        page = opened(server, viewport={"width": 360, "height": 740})
        for view in ("label", "sentences", "progress", "doubts"):
            open_view(page, server, view)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.goto(f"{server.address}#label/1")
        wait_for_sentence(page, evil)
        assert evil in page.locator(".sentence .chip").first.text_content()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("w")
        page.wait_for_selector(".why h2")
        assert "<b>bold</b>" in page.locator(".palette").text_content()
        assert "onerror" in page.locator("#title").text_content()
        assert page.evaluate("window.hit") is None
        assert page.locator("img").count() == 1  # the sign of the page
        assert page.locator("b b, bdi b").count() == 0


def test_trees_are_drawn_and_labelled(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "trees.conllu"
    file.write_text(TREES, encoding="utf-8")
    for server in serving(tmp_path, file, "NOUN,VERB,ADJ", label="none"):
        page = opened(server)
        wait_for_sentence(page, "dogs chase")
        assert page.locator("#sentence svg .arc:not(.root)").count() == 3
        page.locator("#sentence .word").nth(0).click()
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Every word needs a label")
        page.keyboard.press("2")
        page.keyboard.press("ArrowDown")  # to the first dependent: dogs
        page.keyboard.press("ArrowUp")  # and back to its head
        assert page.locator("#sentence .word.at").text_content() == "chase"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("3")
        page.keyboard.press("ArrowRight")
        page.locator(".pick", has_text="NOUN").click()
        page.keyboard.press("Enter")
        wait_until(server.answers)
        assert list(server.answers().values()) == [["NOUN", "VERB", "ADJ", "NOUN"]]
        wait_for_sentence(page, "cats sleep")
        page.wait_for_selector("#sentence .chip")  # compiled code is loaded before


def test_graphs_are_drawn_and_labelled(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "graphs.jsonl"
    edges = [(1, 0), (3, 0), (2, 1), (2, 3), (1, 4), (3, 4)]
    words = ("Ana buys and eats bread", "Bo bakes and sells bread")
    records = [json.dumps({"tokens": text.split(), "edges": edges}) for text in words]
    file.write_text("\n".join(records), encoding="utf-8")
    for server in serving(tmp_path, file, "WHO,DOES,AND,WHAT"):
        page = opened(server)
        wait_for_sentence(page, "Ana buys")
        ends = "all => all.map(arc => [arc.dataset.head, arc.dataset.child].join(' to ')).sort()"
        arcs = page.locator("#sentence svg .arc:not(.root)").evaluate_all(ends)
        assert arcs == ["1 to 0", "1 to 4", "2 to 1", "2 to 3", "3 to 0", "3 to 4"]
        for node, key in enumerate("12324"):
            page.locator("#sentence .word").nth(node).click()
            page.keyboard.press(key)
        assert page.locator("#sentence .arc.near").evaluate_all(ends) == ["1 to 4", "3 to 4"]
        page.keyboard.press("Enter")
        wait_until(server.answers)
        assert list(server.answers().values()) == [["WHO", "DOES", "AND", "DOES", "WHAT"]]
        wait_for_sentence(page, "Bo bakes")
        page.wait_for_selector("#sentence .chip")  # compiled code is loaded before
        page.locator("#sentence .chip[data-label=WHO]").click()
        page.wait_for_selector(".why .evidence")
        page.locator("button.evidence-line").first.click()
        page.wait_for_selector(".corrector svg .word")
        assert page.locator(".corrector .arc").count() == 7  # with that of the root


def test_labels_of_a_file_come_again_where_the_model_disagrees(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "given.conll"
    file.write_text(
        "in O\nLima B-LOC\n\nin O\nCusco B-LOC\n\nto O\nLima O\n\nto O\nCusco B-LOC\n", encoding="utf-8"
    )
    for server in serving(tmp_path, file, ""):
        page = opened(server)
        page.wait_for_selector("text=No sentence is left")
        page.get_by_role("button", name="Settings").click()
        page.locator("dialog input[name=order][value=disagreement]").check()
        page.wait_for_selector("#sentence .word", state="attached")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        page.wait_for_selector(".meta >> text=Labels from the file")
        page.keyboard.press("Enter")
        wait_until(partial(server.store.count, "source = 'person'"))


def test_a_finger_labels_on_a_narrow_page(served: Served, opened: Open) -> None:
    phone = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
    page = opened(served, **phone)
    wait_for_sentence(page, "Anna")
    words = page.locator("#sentence .word")
    a, b = words.nth(0).bounding_box(), words.nth(1).bounding_box()
    touch = page.context.new_cdp_session(page)
    y = a["y"] + a["height"] / 2
    for kind, x in (("Start", a["x"] + 5), ("Move", a["x"] + 25), ("Move", b["x"] + 15), ("End", None)):
        points = [] if x is None else [{"x": x, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    page.locator(".pick", has_text="PER").tap()
    wait_until(lambda: marks(page) == ["Anna Lind/PER"])
    words.nth(4).tap()
    page.locator(".pick", has_text="LOC").tap()
    wait_until(lambda: marks(page) == ["Anna Lind/PER", "Oslo/LOC"])
    page.get_by_role("button", name="Undo").tap()
    words.nth(2).tap()
    words.nth(4).tap()  # from the first to the second
    page.locator(".pick", has_text="ORG").tap()
    wait_until(lambda: marks(page) == ["Anna Lind/PER", "lives in Oslo/ORG"])
    words.nth(4).tap()  # within the span that is chosen: its last word
    page.locator(".pick", has_text="LOC").tap()
    wait_until(lambda: marks(page) == ["Anna Lind/PER", "Oslo/LOC"])
    page.get_by_role("button", name="Accept").tap()
    wait_until(served.answers)
    assert list(served.answers().values()) == [["B-PER", "I-PER", "O", "O", "B-LOC", "O"]]
    for view in ("label", "sentences", "doubts", "progress"):
        open_view(page, served, view)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


VIEWS = ("why", "sentences", "doubts", "progress", "keys", "settings")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing(width: int, scheme: str, served: Served, opened: Open) -> None:
    axes = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    axe = axes.Axe()
    screen = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "reduced_motion": "reduce"}
    served.teach()
    page = opened(served, **screen)
    violated = []
    for view in VIEWS:
        page.goto(f"{served.address}#{view if view in ('sentences', 'doubts', 'progress') else 'label/3'}")
        look_at(page, view)
        # Scripts of the page's own origin alone may run; axe comes by the debugger, which may too.
        part = "dialog" if view in ("keys", "settings") else None
        violations = axe.run(page, context=part).response["violations"]
        violated += [(view, v["id"], v["nodes"][0]["html"]) for v in violations]
        page.keyboard.press("Escape")
    assert violated == []


def look_at(page: Any, view: str) -> None:
    """Open what a view has to show."""
    if view == "why":
        wait_for_sentence(page, "Carla")
        page.locator("#sentence button.chip").first.click()
        page.locator("button.evidence-line").first.click()
        page.wait_for_selector(".corrector")
    elif view in ("keys", "settings"):
        page.locator(f"#{view}").click()
        page.wait_for_selector("dialog")
    else:
        page.wait_for_selector(".row-link" if view == "sentences" else "main h2")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_labels_have_contrast_in_all_colours(scheme: str, served: Served, opened: Open) -> None:
    page = opened(served, color_scheme=scheme)
    script = """() => Array.from({length: 12}, (_, i) => {
      const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
      const rgb = (colour) => {
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
      };
      const chip = document.createElement('span');
      chip.className = `chip k k${i}`;
      document.body.append(chip);
      const {color, backgroundColor} = getComputedStyle(chip);
      return [rgb(color), rgb(backgroundColor)];
    })"""
    pairs = page.evaluate(script)
    assert len({tuple(back) for _, back in pairs}) == 12
    assert min(contrast(text, back) for text, back in pairs) >= 4.5


def contrast(a: list[int], b: list[int]) -> float:
    """The contrast of two colours by the definition of WCAG 2."""

    def luminance(colour: list[int]) -> float:
        parts = (c / 255 for c in colour)
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)
