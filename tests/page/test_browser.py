"""The page in a real browser: drags, clicks, keys, two tabs, restarts, hostile data, narrow and dark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from page_cases import CHROMIUM, Served, wait_until

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
if CHROMIUM is None:
    pytest.skip("no Chromium is installed (apt-get install chromium)", allow_module_level=True)

TEXT = """Anna Lind lives in Oslo.
Bert Ek works for Volvo in Paris.
Carla Dahl came from Oslo to Rome.
The train to Bergen was late.
Dora Falk sings in Paris and in Rome.
Erik Lind buys bread.
Volvo builds cars in Bergen.
Frida Ek moved to Oslo.
"""
LABELS = "PER,LOC,ORG"
TREES = """1\tdogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tchase\tchase\tVERB\t_\t_\t0\troot\t_\t_
3\tblack\tblack\tADJ\t_\t_\t4\tamod\t_\t_
4\tcats\tcat\tNOUN\t_\t_\t2\tobj\t_\t_

1\tcats\tcat\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\t_\t_\t0\troot\t_\t_

"""
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Eight sentences without labels, in the order of the file."""
    file = tmp_path / "news.txt"
    file.write_text(TEXT, encoding="utf-8")
    yield from serving(tmp_path, file, LABELS)


def serving(folder: Path, file: Path, labels: str, label: str | None = None) -> Iterator[Served]:
    server = Served(folder / "store.db", [file], labels, label)
    server.store.set_about("order", "file")
    yield server
    server.stop()


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Opens pages; at the end none of them may have complained."""
    complaints: list[str] = []
    contexts = []

    def open_page(served: Served, context: Any = None, at: str = "", **options: Any) -> Any:
        if context is None:
            context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
            context.set_default_timeout(15_000)
            contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
        page.goto(served.entrance)
        if at:
            page.goto(served.address + at)
            page.reload()
        page.wait_for_selector("main > *")
        return page

    yield open_page
    for context in contexts:
        context.close()
    # Refusals and lost connections are told by the tests that make them; the browser notes them too.
    assert [c for c in complaints if "Failed to load resource" not in c and "net::ERR" not in c] == []


def sentence(page: Any) -> str:
    return " ".join(page.locator("#sentence .word").all_text_contents())


def wait_for_sentence(page: Any, beginning: str) -> None:
    words = "[...document.querySelectorAll('#sentence .word')].map(w => w.textContent).join(' ')"
    page.wait_for_function(f"b => {words}.startsWith(b)", arg=beginning)
    page.wait_for_selector("#sentence:not([aria-busy])")  # what the model has learned is drawn in


def marks(page: Any) -> list[str]:
    script = """all => all.map(m => [...m.querySelectorAll('.word')].map(w => w.textContent).join(' ')
      + '/' + m.dataset.label)"""
    return page.locator("#sentence .mark").evaluate_all(script)


def drag(page: Any, first: int, last: int) -> None:
    script = "(all, ends) => ends.map(i => all[i].getBoundingClientRect().toJSON())"
    a, b = page.locator("#sentence .word").evaluate_all(script, [first, last])
    page.mouse.move(a["x"] + 3, a["y"] + a["height"] / 2)
    page.mouse.down()
    page.mouse.move(b["x"] + 3, b["y"] + b["height"] / 2)
    page.mouse.move(b["x"] + b["width"] - 3, b["y"] + b["height"] / 2)
    page.mouse.up()


def label(page: Any, *spans: tuple[int, int, str]) -> None:
    """Give exactly these spans, by drags and digits, and accept."""
    for first, last, digit in spans:
        drag(page, first, last)
        page.keyboard.press(digit)
    page.keyboard.press("Enter")


def teach(page: Any, served: Served) -> None:
    """Label the first three sentences, and wait until they are learned."""
    wait_for_sentence(page, "Anna")
    label(page, (0, 1, "1"), (4, 4, "2"))
    wait_for_sentence(page, "Bert")
    label(page, (0, 1, "1"), (4, 4, "3"), (6, 6, "2"))
    wait_for_sentence(page, "Carla")
    label(page, (0, 1, "1"), (4, 4, "2"), (6, 6, "2"))
    wait_for_sentence(page, "The train")
    wait_until(lambda: served.desk.teacher.current.model is not None)


def test_dragged_spans_are_accepted_taught_and_undone(served: Served, opened: Open) -> None:
    page = opened(served)
    wait_for_sentence(page, "Anna Lind")
    drag(page, 0, 1)
    page.keyboard.press("1")
    assert marks(page) == ["Anna Lind/PER"]
    drag(page, 4, 4)
    page.locator(".pick", has_text="ORG").click()
    assert marks(page) == ["Anna Lind/PER", "Oslo/ORG"]
    page.keyboard.press("2")  # the span is still chosen: another label replaces the first
    assert marks(page) == ["Anna Lind/PER", "Oslo/LOC"]
    page.keyboard.press("Backspace")
    assert marks(page) == ["Anna Lind/PER"]
    page.keyboard.press("z")
    assert marks(page) == ["Anna Lind/PER", "Oslo/LOC"]
    page.keyboard.press("Enter")
    wait_for_sentence(page, "Bert")
    wait_until(served.answers)
    assert served.answers() == {"Anna Lind lives in Oslo .": ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]}
    page.keyboard.press("s")
    wait_for_sentence(page, "Carla")
    page.wait_for_selector(".recent >> text=skipped")
    page.keyboard.press("z")
    wait_for_sentence(page, "Bert")
    page.keyboard.press("z")
    wait_for_sentence(page, "Anna")
    assert served.answers() == {}
    page.keyboard.press("z")
    page.wait_for_selector("text=There is nothing to undo.")


def test_arrows_choose_words_and_letters_work(served: Served, opened: Open) -> None:
    page = opened(served)
    wait_for_sentence(page, "Anna")
    for key in ("ArrowRight", "Shift+ArrowRight", "1"):
        page.keyboard.press(key)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("2")
    assert marks(page) == ["Anna Lind/PER", "Oslo/LOC"]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Delete")
    assert marks(page) == ["Oslo/LOC"]
    page.keyboard.press("?")
    page.wait_for_selector("dialog >> text=take the label away")
    page.keyboard.press("Enter")  # belongs to the dialog
    page.wait_for_selector("dialog", state="detached")
    assert sentence(page).startswith("Anna")
    page.keyboard.press("l")
    page.keyboard.type("Food")
    page.keyboard.press("Enter")
    page.wait_for_selector(".pick >> text=Food")
    assert marks(page) == ["Anna Lind/Food", "Oslo/LOC"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("4")
    assert marks(page) == ["Anna Lind/Food", "lives/Food", "Oslo/LOC"]


def test_the_next_sentence_does_not_wait_for_the_server(served: Served, opened: Open) -> None:
    page = opened(served)
    held: list[Any] = []
    page.route("**/accept", lambda route: held.append(route))
    wait_for_sentence(page, "Anna")
    page.wait_for_timeout(200)  # the next one is fetched ahead
    page.keyboard.press("Enter")
    page.wait_for_selector("#sentence .word >> text=Bert")
    assert served.answers() == {}
    held[0].continue_()
    wait_until(served.answers)


def test_why_opens_a_sentence_and_a_correction_there_counts_here(served: Served, opened: Open) -> None:
    page = opened(served)
    teach(page, served)
    page.goto(f"{served.address}#label/5")
    wait_for_sentence(page, "Dora")
    page.wait_for_selector("#sentence .mark")
    page.locator("#sentence button.chip").first.click()
    page.wait_for_selector(".why .voice")
    assert page.locator(".why .share").count() > 0
    assert page.locator(".why .lit").count() > 0
    page.locator("button.voice-line").first.click()
    page.wait_for_selector(".corrector .word.chosen")
    page.locator(".corrector .pick", has_text="ORG").click()
    page.get_by_role("button", name="Save the correction").click()
    page.wait_for_selector(".why-news >> text=Corrected")
    assert sum("B-ORG" in labels for labels in served.answers().values()) == 2
    page.keyboard.press("Escape")
    page.wait_for_selector(".why", state="hidden")


def test_sentences_are_searched_filtered_and_opened(served: Served, opened: Open) -> None:
    page = opened(served)
    teach(page, served)
    page.get_by_role("link", name="Sentences").click()
    page.wait_for_selector("text=8 sentences")
    page.locator(".segments label", has_text="done").click()
    page.wait_for_selector("text=3 sentences")
    page.select_option("#list-label", "ORG")
    page.wait_for_selector("text=1 sentence")
    page.select_option("#list-label", "")
    page.get_by_placeholder("Search words").fill("rome")
    page.wait_for_selector("text=1 sentence")
    page.locator(".row-link").click()
    wait_for_sentence(page, "Carla")
    assert marks(page) == ["Carla Dahl/PER", "Oslo/LOC", "Rome/LOC"]


def test_settings_labels_and_export(served: Served, opened: Open, tmp_path: Path) -> None:
    page = opened(served)
    teach(page, served)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("New label").fill("Event")
    page.keyboard.press("Enter")
    page.wait_for_selector(".label-set >> text=Event")
    page.locator("dialog input[name=order]").first.check()
    wait_until(lambda: served.store.about("order") == "useful")
    page.keyboard.press("Escape")
    page.wait_for_selector(".pick >> text=Event")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON Lines").click()
    download.value.save_as(tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert any("Anna Lind lives in Oslo." in json.dumps(json.loads(line)) for line in lines)


def test_two_tabs_that_change_one_sentence_see_both_versions(served: Served, opened: Open) -> None:
    one = opened(served, at="#label/1")
    wait_for_sentence(one, "Anna")
    two = opened(served, context=one.context, at="#label/1")
    wait_for_sentence(two, "Anna")
    drag(two, 0, 1)
    two.keyboard.press("3")
    one.bring_to_front()
    drag(one, 0, 1)
    one.keyboard.press("1")
    one.keyboard.press("Enter")
    wait_until(served.answers)
    two.bring_to_front()
    two.wait_for_selector("text=This sentence was just changed elsewhere")
    two.keyboard.press("Enter")
    two.wait_for_selector("dialog >> text=Two versions of one sentence")
    texts = two.locator(".version-text").all_text_contents()
    assert "ORG" in texts[0]
    assert "PER" in texts[1]
    two.keyboard.press("Escape")  # which of the two holds has to be said
    two.get_by_role("button", name="Keep mine").click()
    wait_until(lambda: "B-ORG" in next(iter(served.answers().values())))
    assert len(served.answers()) == 1


def test_an_open_page_shows_at_once_what_another_tab_did(served: Served, opened: Open) -> None:
    one = opened(served, at="#label/1")
    wait_for_sentence(one, "Anna")
    two = opened(served, context=one.context, at="#label/1")
    wait_for_sentence(two, "Anna")
    drag(two, 0, 1)
    two.keyboard.press("1")
    two.keyboard.press("Enter")
    one.wait_for_selector("#sentence .mark[data-label=PER]")
    assert marks(one) == ["Anna Lind/PER"]
    assert one.locator(".meta .pill.done").count() == 1
    served.desk.announce({"type": "refit", "running": True})
    one.wait_for_selector("#model >> text=refitting")
    served.desk.announce({"type": "model", "version": 9, "text": "taught by 9 sentences"})
    one.wait_for_selector("text=A better model is in use: taught by 9 sentences.")


def test_nothing_is_lost_while_the_server_is_away(served: Served, opened: Open) -> None:
    page = opened(served)
    wait_for_sentence(page, "Anna")
    page.wait_for_timeout(300)  # the next one is fetched ahead
    served.stop()
    drag(page, 0, 1)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.wait_for_selector("#sentence .word >> text=Bert")
    page.wait_for_selector("#connection:not([hidden])")
    drag(page, 0, 1)
    page.keyboard.press("1")
    page.wait_for_selector("#connection >> text=One answer is kept")
    served.start()
    page.wait_for_selector("#connection", state="hidden")
    wait_until(served.answers)
    assert served.answers() == {"Anna Lind lives in Oslo .": ["B-PER", "I-PER", "O", "O", "O", "O"]}
    assert marks(page) == ["Bert Ek/PER"]
    page.reload()  # what was begun is there after a reload too
    page.goto(f"{served.address}#label/2")
    wait_for_sentence(page, "Bert")
    assert marks(page) == ["Bert Ek/PER"]
    page.keyboard.press("z")  # the draft
    page.keyboard.press("z")  # the answer, which was given before the restart
    wait_for_sentence(page, "Anna")
    assert served.answers() == {}


@pytest.mark.parametrize("unit", ["spans", "nodes"])
def test_hostile_words_labels_and_names_are_text(unit: str, opened: Open, tmp_path: Path) -> None:
    evil = "<img/src=x/onerror=window.hit=1>"
    file = tmp_path / "<img src=x onerror=window.hit=1>.conll"
    tag = f"B-{evil}" if unit == "spans" else evil
    file.write_text(f"{evil}\t{tag}\n</span>\tO\n\n{evil}\tO\nword\tO\n\n", encoding="utf-8")
    for server in serving(tmp_path, file, "<b>bold</b>"):
        page = opened(server)
        for view in ("label", "sentences", "progress", "doubts"):
            page.goto(f"{server.address}#{view}")
            page.wait_for_timeout(150)
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
        page.wait_for_selector("#sentence .chip")


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
    page.get_by_role("button", name="Accept").tap()
    wait_until(served.answers)
    assert list(served.answers().values()) == [["B-PER", "I-PER", "O", "O", "B-LOC", "O"]]
    for view in ("label", "sentences", "doubts", "progress"):
        page.goto(f"{served.address}#{view}")
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


VIEWS = ("why", "sentences", "doubts", "progress", "keys", "settings")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing(width: int, scheme: str, served: Served, opened: Open) -> None:
    axes = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    axe = axes.Axe()
    screen = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "reduced_motion": "reduce"}
    page = opened(served, **screen)
    teach(page, served)
    found = []
    for view in VIEWS:
        page.goto(f"{served.address}#{view if view in ('sentences', 'doubts', 'progress') else 'label/3'}")
        look_at(page, view)
        # Scripts of the page's own origin alone may run; axe comes by the debugger, which may too.
        part = "dialog" if view in ("keys", "settings") else None
        violations = axe.run(page, context=part).response["violations"]
        found += [(view, v["id"], v["nodes"][0]["html"]) for v in violations]
        page.keyboard.press("Escape")
    assert found == []


def look_at(page: Any, view: str) -> None:
    """Open what a view has to show."""
    if view == "why":
        wait_for_sentence(page, "Carla")
        page.locator("#sentence button.chip").first.click()
        page.locator("button.voice-line").first.click()
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
