"""The page in a real browser: drags, clicks, keys, two tabs, restarts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import pytest

from fuda import load, read
from fuda.active.doubts import Doubt
from fuda.page.teacher import Teacher
from page_cases import (
    PATIENCE,
    Served,
    drag,
    marks,
    sentence,
    serving,
    wait_for_sentence,
    wait_for_the_next,
    wait_until,
)

Open = Callable[..., Any]


def test_dragged_spans_are_accepted_taught_and_undone(served: Served, opened: Open) -> None:
    page = opened(served)
    wait_for_sentence(page, "Anna Lind")
    assert "proposed" not in page.locator(".meta").inner_text()  # there is no model yet
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
    routes: list[Any] = []
    page.route("**/accept", lambda route: routes.append(route))
    wait_for_sentence(page, "Anna")
    wait_for_the_next(page)
    page.keyboard.press("Enter")
    page.wait_for_selector("#sentence .word >> text=Bert")
    assert served.answers() == {}
    routes[0].continue_()
    wait_until(served.answers)


def test_why_opens_a_sentence_and_a_correction_there_counts_here(served: Served, opened: Open) -> None:
    served.teach()
    page = opened(served)
    page.goto(f"{served.address}#label/5")
    wait_for_sentence(page, "Dora")
    page.wait_for_selector("#sentence .mark")
    page.locator("#sentence button.chip").first.click()
    page.wait_for_selector(".why .evidence")
    assert page.locator(".why .share").count() > 0
    assert page.locator(".why .lit").count() > 0
    assert page.locator(".why .asked").inner_text() == "Dora Falk"
    page.locator("button.evidence-line").first.click()
    page.wait_for_selector(".corrector .word.chosen")
    page.locator(".corrector .pick", has_text="ORG").click()
    page.get_by_role("button", name="Save the correction").click()
    page.wait_for_selector(".why-news >> text=Corrected")
    assert sum("B-ORG" in labels for labels in served.answers().values()) == 2
    page.keyboard.press("Escape")
    page.wait_for_selector(".why", state="hidden")


def test_labels_can_be_invented_on_the_way(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "news.txt"
    file.write_text("Anna Lind lives in Oslo.\nBert Ek sings.\n", encoding="utf-8")
    for served in serving(tmp_path, file, ""):
        page = opened(served)
        wait_for_sentence(page, "Anna")
        drag(page, 0, 1)
        page.get_by_placeholder("First label").fill("Person")
        page.keyboard.press("Enter")
        page.wait_for_selector("#sentence .mark[data-label=Person]")
        page.keyboard.press("Enter")
        wait_until(served.answers)
        assert list(served.answers().values()) == [["B-Person", "I-Person", "O", "O", "O", "O"]]


def wait_for_count(page: Any, count: int) -> None:
    """Wait until so many sentences are listed; the header has a number of sentences too."""
    page.wait_for_selector(f".list-view > [role=status] >> text=/^{count} sentences?$/")


def test_sentences_are_searched_filtered_and_opened(served: Served, opened: Open) -> None:
    served.teach()
    page = opened(served)
    page.get_by_role("link", name="Sentences").click()
    wait_for_count(page, 8)
    page.locator(".segments label", has_text="done").click()
    wait_for_count(page, 3)
    page.select_option("#list-label", "ORG")
    wait_for_count(page, 1)
    page.select_option("#list-label", "")
    wait_for_count(page, 3)
    page.get_by_placeholder("Search words").fill("rome")
    wait_for_count(page, 1)
    page.locator(".row-link").click()
    wait_for_sentence(page, "Carla")
    assert marks(page) == ["Carla Dahl/PER", "Oslo/LOC", "Rome/LOC"]


def test_settings_and_labels(served: Served, opened: Open) -> None:
    served.teach()
    page = opened(served)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("New label").fill("Event")
    page.keyboard.press("Enter")
    page.wait_for_selector(".label-set >> text=Event")
    page.locator("dialog input[name=order]").first.check()
    wait_until(lambda: served.store.about("order") == "useful")
    page.locator("dialog input[name=features][value=word]").check()
    wait_until(lambda: served.api.teacher.current.model.features == "word")
    page.wait_for_selector("text=A better model is in use, taught by 3 sentences.")
    page.locator("dialog input[name=learner][value=kernel]").check()
    wait_until(lambda: type(served.api.teacher.current.model).__name__ == "MarginalizedPerceptron")
    page.keyboard.press("Escape")
    page.wait_for_selector(".pick >> text=Event")


def test_what_is_downloaded_reads_back(served: Served, opened: Open, tmp_path: Path) -> None:
    served.teach()
    page = opened(served)
    paths = {}
    for name in ("Model", "CoNLL", "JSON Lines", "CoNLL-U"):
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as download:
            page.locator("#export-menu a", has=page.get_by_text(name, exact=True)).click()
        paths[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(paths[name])
        page.wait_for_selector("#export-menu", state="hidden")
    answers = list(served.answers().values())
    assert [list(y) for y in read(paths["CoNLL"]).y] == answers
    assert [list(y) for y in read(paths["JSON Lines"]).y] == answers
    assert [
        list(y) for y in read(paths["CoNLL-U"], label="MISC:NE", graph="sequence", absent="O").y
    ] == answers
    first = json.loads(paths["JSON Lines"].read_text(encoding="utf-8").splitlines()[0])
    assert first["text"][first["spans"][1]["start"] : first["spans"][1]["end"]] == "Oslo"
    words = ["Anna", "Lind", "lives", "in", "Oslo", "."]
    assert list(load(paths["Model"]).predict([words])[0]) == answers[0]


def test_doubtful_labels_are_changed_kept_and_explained(
    served: Served, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fixed_doubts(X: Any, y: Any, scheme: str, progress: Any) -> list[Doubt]:
        progress(0.5)
        late = Doubt(2, 4, 5, ["B-LOC"], ["B-ORG"], 0.4, [4], "Oslo", [("B-LOC", 1)])
        features = [("[0] w=Volvo", 0.9), ("[0] s1=o", 0.5), ("[-1] w=for", 0.2)]
        first = Doubt(1, 4, 5, ["B-ORG"], ["B-PER"], 1.4, [4], "Volvo", [("O", 1)], features)
        return [first, late]

    monkeypatch.setattr("fuda.active.doubts.doubts", fixed_doubts)
    served.teach()
    page = opened(served)
    page.get_by_role("link", name="Doubts").click()
    page.get_by_role("button", name="Look for doubtful labels").click()
    page.wait_for_selector("text=at least 5 labelled sentences")
    page.get_by_role("link", name="Label", exact=True).click()
    for beginning in ("The train", "Dora"):
        wait_for_sentence(page, beginning)
        page.keyboard.press("Enter")
    wait_for_sentence(page, "Erik")
    page.get_by_role("link", name="Doubts").click()
    page.get_by_role("button", name="Look for doubtful labels").click()
    evidence = "“Volvo” elsewhere: no span 1 ×. Evidence for begin of PER: the word is “Volvo”, ends in “o”"
    page.wait_for_selector(f".doubt >> text={evidence}; the word before is “for”")
    assert "2 labels are contradicted" in page.locator(".doubts-view").inner_text()
    assert page.locator(".doubt").first.locator("dd").all_text_contents() == [
        "Bert EkPER works for VolvoORG in ParisLOC.",
        "Bert EkPER works for VolvoPER in ParisLOC.",
    ]
    page.locator(".doubt").first.evaluate("row => row.classList.add('seen')")
    answer = page.evaluate("fetch('/api/doubts?offset=0&limit=1').then(answer => answer.json())")
    # A late message, when the rows may be in use already.
    served.announce({"type": "doubts", "progress": 1.0, "search": answer["search"]})
    served.announce({"type": "problem", "text": "the late message has come"})
    page.wait_for_selector("text=The late message has come")
    page.evaluate("fetch('/api/doubts?offset=0&limit=1').then(answer => answer.json())")
    assert page.locator(".doubt.seen").count() == 1
    page.get_by_role("button", name="Change it").first.click()
    page.wait_for_selector(".doubt.decided >> text=changed")
    assert served.answers()["Bert Ek works for Volvo in Paris ."][4] == "B-PER"
    page.get_by_role("link", name="Why?").last.click()
    wait_for_sentence(page, "Carla")
    page.wait_for_selector(".why h2 >> text=Why")


def test_progress_is_drawn_and_written_out(served: Served, opened: Open) -> None:
    served.teach()
    page = opened(served)
    page.get_by_role("link", name="Progress").click()
    page.wait_for_selector(".counts")
    assert "LOC 4" in page.locator(".counts").get_attribute("aria-label")
    assert "3" in page.locator(".facts").text_content()


@pytest.mark.parametrize(("choice", "label"), [("Keep mine", "B-ORG"), ("Keep theirs", "B-PER")])
def test_two_tabs_that_change_one_sentence_see_both_versions(
    choice: str, label: str, served: Served, opened: Open
) -> None:
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
    for _ in range(3):
        two.keyboard.press("Escape")  # one of the two has to be chosen
    two.get_by_role("button", name=choice).click()
    two.wait_for_selector("dialog", state="detached")
    wait_until(lambda: label in next(iter(served.answers().values())))
    assert len(served.answers()) == 1
    two.goto(f"{served.address}#label/1")  # no draft is left of what was given up
    wait_for_sentence(two, "Anna")
    two.wait_for_selector(".meta .pill.done")
    assert marks(two) == [f"Anna Lind/{label[2:]}"]
    assert "changed by you" not in two.locator(".meta").inner_text()


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
    served.api.announce(
        {"type": "model", "version": 9, "text": "a better model is in use, taught by 9 sentences"}
    )
    one.wait_for_selector("text=A better model is in use, taught by 9 sentences.")


def test_what_was_announced_before_the_page_listened_is_shown(served: Served, opened: Open) -> None:
    one = opened(served, at="#label/1")
    routes: list[Any] = []
    one.context.route("**/api/events", lambda route: routes.append(route))
    two = opened(served, context=one.context, at="#label/1")
    wait_for_sentence(two, "Anna")
    drag(one, 0, 1)
    one.keyboard.press("1")
    one.keyboard.press("Enter")
    wait_until(served.answers)
    assert marks(two) == []
    routes[0].continue_()
    two.wait_for_selector("#sentence .mark[data-label=PER]")
    two.wait_for_selector("#model >> text=1 of 8")


def test_nothing_is_lost_while_the_server_is_away(served: Served, opened: Open) -> None:
    page = opened(served)
    wait_for_sentence(page, "Anna")
    wait_for_the_next(page)
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


def test_nothing_is_lost_while_the_store_cannot_be_written_to(served: Served, opened: Open) -> None:
    page = opened(served)
    wait_for_sentence(page, "Anna")
    wait_for_the_next(page)
    served.store._writer.execute("PRAGMA query_only = ON")
    drag(page, 0, 1)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.wait_for_selector("#connection >> text=store.db: cannot be written")
    page.wait_for_selector("#connection >> text=One answer is kept")
    served.store._writer.execute("PRAGMA query_only = OFF")
    page.wait_for_selector("#connection", state="hidden")
    wait_until(served.answers)
    assert served.answers() == {"Anna Lind lives in Oslo .": ["B-PER", "I-PER", "O", "O", "O", "O"]}


def test_the_page_says_that_the_model_is_being_prepared(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = Event()
    monkeypatch.setattr(Teacher, "_warm_up", lambda self: compiled.wait(PATIENCE))
    file = tmp_path / "news.txt"
    file.write_text("Anna Lind lives in Oslo.\n" * 3, encoding="utf-8")  # any of them may come next
    for served in serving(tmp_path, file, "PER"):
        page = opened(served)
        wait_for_sentence(page, "Anna")
        page.wait_for_selector("#model >> text=preparing the model")
        drag(page, 0, 1)
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        page.wait_for_selector(".meta >> text=answers are kept, and learned when the model is ready")
        assert marks(page) == []
        compiled.set()
        page.wait_for_selector("#model >> text=taught by 1 sentence")
        page.wait_for_selector("#sentence .mark[data-label=PER]")
        assert marks(page) == ["Anna Lind/PER"]


def test_a_lesson_that_takes_a_minute_is_drawn_in_when_it_has_been_learned(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned, teach = Event(), Teacher._after_lesson

    def slowly(self: Teacher, model: object, number: int) -> object:
        if self.store.lesson(number).structures:  # there are events without
            learned.wait(PATIENCE)
        return teach(self, model, number)

    monkeypatch.setattr(Teacher, "_after_lesson", slowly)
    file = tmp_path / "news.txt"
    file.write_text("Anna Lind lives in Oslo.\n" * 3, encoding="utf-8")
    for served in serving(tmp_path, file, "PER"):
        page = opened(served)
        wait_for_sentence(page, "Anna")
        page.wait_for_selector("#model >> text=no sentence taught yet")  # prepared
        page.clock.install()
        drag(page, 0, 1)
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        page.wait_for_selector("#model >> text=taught by 1 sentence")
        for _ in range(9):
            page.clock.run_for(10_000)
            sleep(0.1)  # for an answer of the server
        assert marks(page) == []
        learned.set()
        for _ in range(100):
            page.clock.run_for(10_000)
            sleep(0.1)
            if marks(page):
                break
        assert marks(page) == ["Anna Lind/PER"]


def test_one_word_of_a_span_is_chosen_by_a_drag_or_a_second_click(served: Served, opened: Open) -> None:
    page = opened(served)
    wait_for_sentence(page, "Anna")
    drag(page, 0, 1)
    page.keyboard.press("1")
    words = page.locator("#sentence .word")
    words.nth(1).click()  # the span that is chosen already: now the word
    page.keyboard.press("2")
    assert marks(page) == ["Lind/LOC"]
    page.keyboard.press("z")
    words.nth(3).click()
    words.nth(1).click()  # the span
    page.keyboard.press("3")
    assert marks(page) == ["Anna Lind/ORG"]
    words.nth(3).click()
    drag(page, 0, 0)
    page.keyboard.press("1")
    assert marks(page) == ["Anna/PER"]
