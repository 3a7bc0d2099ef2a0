"""The model of a page follows the log: lessons, refits, snapshots and undos."""

from __future__ import annotations

import fuda
from fuda.page.store import Store
from fuda.page.teacher import Teacher
from page.conftest import ME, Page, add_file
from page_cases import predictions, rebuilt_predictions, same_predictions, wait_until


def test_the_model_is_the_same_after_a_restart(tmp_path, text, monkeypatch):
    monkeypatch.setattr("fuda.page.teacher._EVERY", 2)
    store = Store(tmp_path / "a.db", create=True)
    add_file(store, text, ["PER", "LOC"])
    with Page(store) as page:
        for number, spans in (
            (1, [(0, 1, "PER"), (3, 4, "LOC")]),
            (2, [(0, 1, "PER")]),
            (4, []),
            (5, [(0, 1, "LOC")]),
        ):
            page.accept(page.get(f"items/{number}")["item"], spans)
            page.taught()
        page.post("undo")
        page.post("items/3/skip", version=0)
        page.accept(page.get("items/1")["item"], [(0, 1, "LOC")])
        page.taught()
        teacher = page.api.teacher
        before = predictions(teacher, store)
    assert store.snapshot("crf") is not None
    store.close()
    again = Store(tmp_path / "a.db")
    rebuilt = Teacher(again)
    rebuilt.rebuilt()
    assert same_predictions(predictions(rebuilt, again), before)
    again.close()


def test_an_undo_is_forgotten_by_the_model(page):
    page.accept(page.get("items/1")["item"], [(0, 1, "PER")])
    page.taught()
    before = predictions(page.api.teacher, page.store)
    page.accept(page.get("items/4")["item"], [(0, 1, "LOC"), (2, 3, "LOC")])
    page.taught()
    assert not same_predictions(predictions(page.api.teacher, page.store), before)
    page.post("undo")
    page.taught()
    assert same_predictions(predictions(page.api.teacher, page.store), before)


def test_labels_of_files_teach_at_the_start(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("Ana B-PER\nsings O\n\nBo B-PER\nsings O\n\nThey _\nsing _\n")
    store = Store(tmp_path / "a.db", create=True)
    add_file(store, path)
    with Page(store) as page:
        page.taught()
        state = page.get("state")
        assert (state["done"], state["model"]["text"]) == (2, "taught by 2 sentences")
        assert page.get("items/1")["item"]["source"] == "file"
        assert page.post("next")["item"]["id"] == 3
        page.post("settings", order="disagreement")
        assert page.post("next")["item"]["id"] in (1, 2)
    store.close()


def test_many_lessons_are_learned_by_a_refit(tmp_path, text, monkeypatch):
    monkeypatch.setattr("fuda.page.teacher._ONE_BY_ONE", 1)
    store = Store(tmp_path / "a.db", create=True)
    add_file(store, text, ["PER", "LOC"])
    store.step("accept", 1, 0, ["B-PER", "O", "O", "B-LOC", "O"], ME)
    store.step("accept", 2, 0, ["B-PER", *["O"] * 8], ME)
    with Page(store) as page:
        wait_until(lambda: page.api.teacher.current.model is not None)
        assert not page.api.teacher.problem
        assert page.get("items/4")["item"]["spans"][0]["label"] == "PER"
    assert store.snapshot("crf").refitted
    store.close()


def test_nobody_waits_for_a_slow_lesson(page, monkeypatch):
    teacher, waited = page.api.teacher, []
    monkeypatch.setattr(teacher, "wait_for", lambda event, seconds: waited.append(seconds))
    for quick in (True, False):
        monkeypatch.setattr(teacher, "is_quick", lambda seconds, quick=quick: quick)
        page.accept(page.get("items/1")["item"], [(0, 1, "PER")])
        assert len(waited) == 1
    other = Teacher(page.store)
    assert other.is_quick(0.1)
    other._last_lesson = 1.0
    assert not other.is_quick(0.1)


def test_a_refit_replaces_what_was_learned_one_by_one(page, monkeypatch):
    monkeypatch.setattr("fuda.page.teacher._FIRST", 3)
    seen = []
    page.api.teacher.announce = seen.append
    for number, spans in ((1, [(0, 1, "PER")]), (2, [(0, 1, "PER")]), (4, [(0, 1, "PER"), (2, 3, "PER")])):
        page.accept(page.get(f"items/{number}")["item"], spans)
    wait_until(lambda: any(message["type"] == "model" for message in seen))
    assert [message["running"] for message in seen if message["type"] == "refit"][:2] == [True, False]
    better = next(message for message in seen if message["type"] == "model")
    assert better["text"] == "a better model is in use, taught by 3 sentences"
    assert page.store.last_refit("kernel") == page.store.last_event()
    page.accept(page.get("items/5")["item"], [])
    page.taught()
    assert same_predictions(predictions(page.api.teacher, page.store), rebuilt_predictions(page.store))


def test_a_crf_learns_at_once_and_is_refitted_from_warm_weights(page, monkeypatch):
    monkeypatch.setattr("fuda.page.teacher._FIRST", 3)
    page.accept(page.get("items/6")["item"], [])
    page.post("settings", learner="crf")
    page.accept(page.get("items/1")["item"], [(0, 1, "PER"), (3, 4, "LOC")])
    page.taught()
    assert type(page.api.teacher.current.model).__name__ == "CRF"
    assert page.get("items/4")["item"]["spans"][0]["label"] == "PER"
    warm = []
    fit = fuda.CRF.fit
    monkeypatch.setattr(
        fuda.CRF, "fit", lambda self, *data: (warm.append(self.warm_start), fit(self, *data))[1]
    )
    page.accept(page.get("items/2")["item"], [(0, 1, "PER")])
    wait_until(lambda: page.store.last_refit("crf"))
    page.taught()
    assert warm == [True]
    assert not page.api.teacher.problem
    assert page.get("items/4")["item"]["spans"][0]["label"] == "PER"
    assert page.post("why", id=4, start=0, end=1)["for"]


def test_a_lesson_that_cannot_be_learned_does_not_end_the_page(page, monkeypatch):
    monkeypatch.setattr("fuda.page.teacher.new_estimator", lambda *_: 1 / 0)
    page.accept(page.get("items/1")["item"], [(0, 1, "PER")])
    wait_until(lambda: page.api.teacher.problem)
    assert page.get("state")["model"]["text"] == "the model does not learn: division by zero"
    assert page.accept(page.get("items/2")["item"], [])["done"] == 2
