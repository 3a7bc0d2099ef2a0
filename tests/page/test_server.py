"""What the page can ask for."""

from __future__ import annotations

import json
import socket

import pytest

import fuda
from fuda.page.learners import feature_sets_of
from fuda.page.server import listening
from fuda.page.store import Step, Store
from page.conftest import Page, add_file
from page_cases import PATIENCE, predictions, rebuilt_predictions, same_predictions, wait_until


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_answers_do_not_wait_for_what_the_browser_acknowledges(host):
    """asyncio turns Nagle's algorithm off for sockets that name their protocol."""
    try:
        listener = listening(host, None, None)
    except fuda.DataError as error:
        pytest.skip(f"no such address here: {error}")
    with listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_label_teach_and_go_on(page):
    state = page.get("state")
    assert (state["labels"], state["unit"], state["shape"]) == (["PER", "LOC"], "spans", "sequence")
    assert (state["total"], state["done"], state["outside"]) == (6, 0, "O")
    item = page.post("next")["item"]
    assert (item["status"], item["spans"], item["source"]) == ("new", [], "model")
    ana = page.get("items/1", tab="tab")["item"]
    assert ana["words"] == ["Ana", "lives", "in", "Lima", "."]
    assert ana["spaces"] == [True, True, True, False, True]
    answer = page.accept(ana, [(0, 1, "PER"), (3, 4, "LOC")])
    assert answer["item"]["spans"][0] == {"start": 0, "end": 1, "label": "PER", "probability": 1.0}
    assert (answer["done"], answer["undo"], answer["taught"]["changed"]) == (1, 1, 2)
    assert answer["next"]["id"] not in (1, item["id"]), "one that no tab has"
    page.taught()
    assert page.get("state")["model"]["text"] == "taught by 1 sentence"
    shown = page.get("items/4", tab="tab")["item"]  # Ana met Bo in Paris.
    assert {k: shown["spans"][0][k] for k in ("start", "end", "label")} == {
        "start": 0,
        "end": 1,
        "label": "PER",
    }
    assert 0 < shown["spans"][0]["probability"] < 1


def test_skip_undo_and_lists(page):
    first, second = page.get("items/1")["item"], page.get("items/2")["item"]
    page.post("items/1/skip", version=first["version"])
    page.accept(second, [(0, 1, "PER")])
    assert page.get("items", status="skipped")["items"][0]["id"] == 1
    assert [item["id"] for item in page.get("items", label="PER")["items"]] == [2]
    assert page.get("items", label="LOC")["total"] == 0
    assert [item["id"] for item in page.get("items", search="lima")["items"]] == [1, 5]
    assert page.get("items", search="100%")["total"] == 0
    assert page.get("items", limit=2, offset=4)["items"][0]["id"] == 5
    undone = page.post("undo")
    assert (undone["item"]["id"], undone["item"]["status"], undone["undo"]) == (2, "new", 1)
    assert page.post("undo")["item"]["id"] == 1
    assert page.post("undo") == {"item": None, "undo": 0, "done": 0, "skipped": 0}


def test_next_never_hands_out_one_twice(page):
    ids = [page.post("next", tab=tab)["item"]["id"] for tab in ("a", "b", "a", "b", "a", "b")]
    assert sorted(ids) == [1, 2, 3, 4, 5, 6]
    assert page.post("next", tab="a")["item"]["id"] in (ids[0], ids[2], ids[4]), "then what it has already"


def test_in_file_order(page):
    page.post("settings", order="file")
    ids = [page.post("next")["item"]["id"] for _ in range(3)]
    assert ids == [1, 2, 3]
    assert page.post("settings", 400, order="by size")["error"].startswith("order 'by size' is not known")


def test_learner_and_features_are_changed(page):
    state = page.get("state")
    assert (state["features"], [entry["name"] for entry in state["feature_sets"]]) == (
        "auto",
        ["auto", "text", "spelling", "word"],
    )
    page.accept(page.get("items/1")["item"], [(0, 1, "PER")])
    page.taught()
    assert page.api.teacher.current.model.features == "text"
    page.post("settings", features="word", learner="crf")
    wait_until(lambda: type(page.api.teacher.current.model).__name__ == "CRF")
    assert page.api.teacher.current.model.features == "word"
    assert (page.get("state")["features"], page.get("state")["learner"]) == ("word", "crf")
    page.accept(page.get("items/2")["item"], [(0, 1, "PER")])
    page.taught()
    assert same_predictions(predictions(page.api.teacher, page.store), rebuilt_predictions(page.store))
    page.post("settings", 400, features="protein")


@pytest.mark.parametrize(
    ("observations", "has_given_model", "names"),
    [
        (["M", "K"], False, ["auto", "protein", "dna", "word"]),
        ([("Ana", "NP")], False, ["auto", "text", "spelling", "word"]),
        ([[0.5, 1.0]], False, []),
        ([{"f": 1.0}], False, []),
        (["Ana"], True, []),
    ],
)
def test_feature_sets_are_those_for_such_data(observations, has_given_model, names):
    assert list(feature_sets_of(fuda.Sequence(observations), has_given_model)) == names


def test_the_later_of_two_edits_is_refused_with_both(page):
    item = page.get("items/1", tab="a")["item"]
    page.accept(item, [(0, 1, "PER")], tab="a")
    refused = page.accept(item, [(0, 1, "LOC")], 409, tab="b")
    assert refused["yours"]["spans"][0]["label"] == "LOC"
    assert refused["theirs"]["spans"][0]["label"] == "PER"
    assert page.get("items/1")["item"]["spans"][0]["label"] == "PER"
    page.accept(refused["theirs"], [(0, 1, "LOC")], tab="b")
    assert page.get("items/1")["item"]["spans"][0]["label"] == "LOC"


def test_people_undo_their_own_steps(store):
    with Page(store) as page:
        item = page.get("items/1")["item"]
        page.accept(item, [(0, 1, "PER")])
        page.client.cookies.clear()
        page.client.get("/", params={"token": page.sessions.token})
        assert page.post("undo", tab="another")["item"] is None, "the first person is here"
    with Page(store) as page:
        assert page.post("undo")["item"]["id"] == 1, "now nobody is"


def test_labels_are_added(page):
    assert page.post("labels", add="ORG")["labels"] == ["PER", "LOC", "ORG"]
    item = page.get("items/2")["item"]
    page.accept(item, [(7, 9, "ORG")])
    assert page.get("items/2")["item"]["spans"][0]["label"] == "ORG"
    for wrong in ("", "two words", 3, "x" * 101, "_"):
        page.post("labels", 400, add=wrong)


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 9, "PER")],
        [(2, 2, "PER")],
        [(0, 1, "NEW")],
        [(0, 2, "PER"), (1, 3, "LOC")],
        [("0", 1, "PER")],
        [(0, True, "PER")],
        [(0, 1, None)],
    ],
)
def test_wrong_spans_are_refused(page, spans):
    item = page.get("items/1")["item"]
    assert page.accept(item, spans, 400)["error"]
    assert page.get("items/1")["item"]["version"] == 0


@pytest.mark.parametrize(
    "content",
    [
        *("[]", "{", '"x"', '{"tab": 3}', "[" * 5000, '{"tab": "' + "x" * 100 + '"}'),
        *(r'{"tab": "\ud800"}', '{"version": NaN}', '{"version": 1e400}'),
    ],
)
def test_wrong_requests_are_refused(page, content):
    answer = page.client.post("/api/next", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, "error" in answer.json()) == (400, True)
    assert page.client.post("/api/next", content="{}").status_code == 400, "not declared as JSON"
    assert page.client.get("/api/items?offset=-1").status_code == 400
    assert page.client.get("/api/items/7").status_code == 400
    assert page.client.get(f"/api/items/{10**30}").status_code == 400
    assert page.client.get("/api/nothing").status_code == 404


def test_why_names_the_sentence_that_is_evidence(page):
    page.post("why", 400, id=1, start=0, end=1)
    page.accept(page.get("items/1")["item"], [(0, 1, "PER"), (3, 4, "LOC")])
    page.taught()
    answer = page.post("why", id=4, start=0, end=1)
    assert (answer["chosen"], answer["rival"] is not None) == ("PER", True)
    voice = answer["for"][0]
    assert (voice["item"], voice["words"][voice["node"]], voice["label"]) == (1, "Ana", "PER")
    assert voice["node"] in voice["matched"]
    assert voice["share"] == 1.0 or answer["against"]
    total = sum(v["value"] for v in answer["for"] + answer["against"]) + answer["rest"]
    assert total == pytest.approx(answer["difference"])
    assert "B-" not in json.dumps(answer)
    page.post("why", 400, id=4, start=0, end=99)


def test_why_of_features_has_a_sentence_that_has_them(page):
    page.post("settings", learner="crf")
    page.accept(page.get("items/6")["item"], [])
    page.accept(page.get("items/1")["item"], [(0, 1, "PER"), (3, 4, "LOC")])
    page.taught()
    answer = page.post("why", id=4, start=0, end=1)
    entry = next(voice for voice in answer["for"] if voice["matched"] == [0])
    assert (entry["item"], entry["node"], entry["matched"], entry["label"]) == (1, 0, [0], "PER")
    assert entry["words"][0] == "Ana"
    assert entry["text"].startswith("the word is “Ana”, ")
    features = [tuple(voice["matched"]) for voice in answer["for"] if voice["kind"] == "feature"]
    assert len(set(features)) == len(features), "a word and its endings are one voice"
    total = sum(v["value"] for v in answer["for"] + answer["against"]) + answer["rest"]
    assert total == pytest.approx(answer["difference"])
    assert all(voice["item"] in (None, 1, 6) for voice in answer["for"] + answer["against"])
    assert answer["text"].startswith("“Ana” is begin of PER rather than begin of LOC: ahead by ")


def test_a_correction_changes_what_was_explained(page):
    page.accept(page.get("items/1")["item"], [(0, 1, "PER")])
    page.taught()
    before = page.post("why", id=4, start=0, end=1)
    item = page.get("items/1")["item"]
    page.accept(item, [(0, 1, "LOC")])
    page.taught()
    assert page.post("why", id=4, start=0, end=1) != before


def test_a_sentence_that_is_corrected_is_no_longer_evidence_for_its_old_label(page):
    page.accept(page.get("items/1")["item"], [(0, 1, "PER")])
    page.taught()
    assert page.get("items/4")["item"]["spans"][0]["label"] == "PER"  # Ana met Bo in Paris.
    page.accept(page.get("items/1")["item"], [(0, 1, "LOC")])
    page.taught()
    assert page.get("items/4")["item"]["spans"][0]["label"] == "LOC"
    answer = page.post("why", id=4, start=0, end=1)
    assert not [voice for voice in answer["against"] if (voice["item"], voice["label"]) == (1, "PER")]
    assert same_predictions(predictions(page.api.teacher, page.store), rebuilt_predictions(page.store))


def test_exports(page, tmp_path):
    assert page.client.get("/api/export?format=conll").status_code == 400
    page.accept(page.get("items/1")["item"], [(0, 1, "PER")])
    page.taught()
    answer = page.client.get("/api/export?format=jsonl")
    assert answer.json()["spans"] == [{"start": 0, "end": 3, "label": "PER"}]
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''news.txt.jsonl"
    assert page.client.get("/api/export?format=conll").text.startswith("Ana\tB-PER\n")
    (tmp_path / "m.fuda").write_bytes(page.client.get("/api/export?format=model").content)
    model = fuda.load(tmp_path / "m.fuda")
    assert model.predict([["Ana", "sings"]])[0][0] == "B-PER"
    assert model.reading_["format"] == "text"
    assert page.client.get("/api/export?format=../../etc/passwd").status_code == 400


def test_the_next_sentence_is_chosen_before_it_is_asked_for(page, monkeypatch):
    pool = page.api.pool
    wait_until(lambda: pool._expected is not None)
    pool.stop(10)
    order, number = pool._expected
    monkeypatch.setattr(pool, "_chosen", lambda order, leave_out: 0)
    assert (order, page.post("next")["item"]["id"]) == ("useful", number)
    assert pool.next(set()) == 0, "each is handed out once"
    for changed in (("file", 3), ("useful", number)):  # another order; one that a tab has
        pool._expected = changed
        assert pool.next({number}) == 0


def test_progress(page):
    assert page.get("progress")["points"] == []
    for number, spans in ((1, [(0, 1, "PER")]), (2, [(0, 1, "PER"), (3, 4, "LOC")]), (4, [(0, 1, "PER")])):
        page.accept(page.get(f"items/{number}")["item"], spans)
        page.taught()
    progress = page.get("progress")
    assert [point["n"] for point in progress["points"]] == [1, 2], "the first was not predicted"
    details = [more for *_, more in page.store.steps()]
    assert details[0] == {}
    hits, either = (sum(more[name] for more in details[1:]) for name in ("hits", "spans"))
    assert progress["measure"] == "f1"
    assert progress["points"][-1]["accuracy"] == pytest.approx(2 * hits / (hits + either))
    assert progress["corrected"] == sum(more["corrected"] for more in details[1:]) / 2
    assert progress["words"] == sum(m["right"] for m in details[1:]) / sum(m["words"] for m in details[1:])
    assert all(p["low"] <= p["accuracy"] <= p["high"] for p in progress["points"])
    assert progress["labels"] == [{"label": "PER", "count": 3}, {"label": "LOC", "count": 1}]
    assert progress["per_minute"] > 0
    assert progress["outlook"] is None
    page.post("undo")
    assert page.get("progress")["labels"][0]["count"] == 2


def test_nodes_of_trees(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"observations": ["Ana", "sings"], "heads": [1, -1], "labels": ["N", "V"]}\n'
        '{"observations": ["Bo", "sings"], "heads": [1, -1]}\n'
    )
    store = Store(tmp_path / "a.db", create=True)
    add_file(store, path)
    with Page(store) as page:
        page.taught()
        state = page.get("state")
        assert (state["shape"], state["unit"], state["labels"]) == ("tree", "nodes", ["N", "V"])
        assert state["outside"] is None
        item = page.get("items/2")["item"]
        assert (item["heads"], len(item["labels"])) == ([[1], []], 2)
        page.post("items/2/accept", version=0, labels=["N", "V"])
        page.post("items/2/accept", 400, version=1, labels=["N"])
        assert [label["label"] for label in page.get("items/2")["item"]["labels"]] == ["N", "V"]
    store.close()


def test_labels_of_files_read_without_go_to_a_field_of_their_own(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text("1\tAna\t_\tPROPN\t_\t_\t2\tnsubj\t_\t_\n2\tsings\t_\tVERB\t_\t_\t0\troot\t_\tA=b\n\n")
    store = Store(tmp_path / "a.db", create=True)
    add_file(store, path, ["N", "V"], label=None)
    with Page(store) as page:
        page.post("items/1/accept", version=0, labels=["N", "V"])
        page.taught()
        text = page.client.get("/api/export?format=conllu").text
        assert [line.split("\t")[3::6] for line in text.split("\n")[:2]] == [
            ["PROPN", "Label=N"],
            ["VERB", "A=b|Label=V"],
        ]
        (tmp_path / "m.fuda").write_bytes(page.client.get("/api/export?format=model").content)
        assert fuda.load(tmp_path / "m.fuda").reading_["label"] == "MISC:Label"
    store.close()


def test_doubts_are_found_and_go_when_corrected(tmp_path):
    path = tmp_path / "a.conll"
    sentences = ["in O\nLima B-LOC\n", "in O\nCusco B-LOC\n", "to O\nLima B-LOC\n"] * 5
    path.write_text("\n".join([*sentences, "to O\nCusco O\n"]))
    store = Store(tmp_path / "a.db", create=True)
    add_file(store, path)
    with Page(store) as page:
        assert page.get("doubts") == {
            "ready": False,
            "progress": 0.0,
            "search": 0,
            "total": 0,
            "likely": 0,
            "doubts": [],
        }
        page.post("doubts")
        page.api.review._thread.join(PATIENCE)
        listed = page.get("doubts")
        assert (listed["ready"], listed["progress"]) == (True, 1.0)
        first = listed["doubts"][0]
        assert (first["id"], first["start"], first["given"], first["suggested"]) == (16, 1, "O", "LOC")
        assert "B-" not in json.dumps(listed)
        page.accept(page.get("items/16")["item"], [(1, 2, "LOC")])
        assert all(doubt["id"] != 16 for doubt in page.get("doubts")["doubts"])
    store.close()


def test_few_labels_cannot_judge_each_other(page):
    assert "at least 5 labelled sentences" in page.post("doubts", 400)["error"]


def test_messages_reach_all_tabs(page):
    seen = []
    page.api.announce = seen.append
    page.accept(page.get("items/1")["item"], [], tab="me")
    assert seen == [{"type": "items", "ids": [1], "tab": "me"}]


def test_an_answer_that_cannot_be_kept_is_refused_for_now(page):
    """The page has it and sends it again; nothing is acknowledged that is not on the disk."""
    content = {"tab": "tab", "version": page.get("items/1")["item"]["version"], "spans": []}
    page.store._writer.execute("PRAGMA query_only = ON")
    answer = page.client.post("/api/items/1/accept", json=content)
    assert answer.status_code == 503
    assert "news.db: cannot be written: " in answer.json()["error"]
    page.store._writer.execute("PRAGMA query_only = OFF")
    assert page.get("state")["done"] == 0
    assert page.client.post("/api/items/1/accept", json=content).json()["done"] == 1


def test_a_step_of_nobody_known(store):
    with Page(store) as page:
        assert page.api.state(Step("x", ""))["undo"] == 0
