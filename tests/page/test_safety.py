"""Who gets in, from where, with how much; and hostile data."""

from __future__ import annotations

import json

import pytest

from fuda.page.safety import LARGEST_BODY, hosts_for
from fuda.page.store import Store
from page.conftest import Page, add_file

OWN = "http://127.0.0.1:8000"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.fixture
def stranger(store):
    """A page, and a browser that has not been let in."""
    page = Page(store)
    page.client.__enter__()
    yield page
    page.client.__exit__(None, None, None)


def test_only_the_token_opens(stranger):
    client = stranger.client
    for path in ("state", "items", "items/1", "events", "export?format=jsonl", "nothing"):
        answer = client.get(f"/api/{path}")
        assert (answer.status_code, list(answer.json())) == (401, ["error"])
    assert client.post("/api/undo", json={"tab": "a"}).status_code == 401
    for token in ("", "x", stranger.sessions.token[:-1], stranger.sessions.token + "x", "ü"):
        assert client.get("/", params={"token": token}).status_code == 403
        assert "set-cookie" not in client.get("/", params={"token": token}).headers
    answer = client.get("/", params={"token": stranger.sessions.token}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/api/state").status_code == 200


def test_a_cookie_holds_after_a_restart_and_the_store_has_only_its_digest(store):
    with Page(store) as page:
        cookies = dict(page.client.cookies)
    again = Page(store)
    with again.client as client:
        assert client.get("/api/state").status_code == 401
        client.cookies.update(cookies)
        assert client.get("/api/state").status_code == 200
        client.cookies.set(again.sessions.cookie, "another")
    assert next(iter(cookies.values())).encode() not in store.path.read_bytes()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", "10.0.0.1:8000", ""]
)
def test_another_host_is_refused(page, host):
    for path in ("/", "/api/state", "/static/login.html"):
        assert page.client.get(path, headers={"Host": host}).status_code == 403
    assert page.client.get("/api/state", headers={"Host": "localhost:8000", "Origin": ""}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:8001", "https://127.0.0.1:8000", ""]
)
def test_another_origin_is_refused(page, origin):
    answer = page.client.post("/api/undo", json={"tab": "a"}, headers={"Origin": origin})
    assert answer.status_code == 403
    if origin:
        assert page.client.get("/api/state", headers={"Origin": origin}).status_code == 403


def test_headers_of_every_answer(page):
    for path in ("/", "/api/state", "/static/login.html", "/nothing", "/api/items/99"):
        headers = page.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"


def test_large_bodies_are_refused(page):
    large = b'{"tab": "' + b"x" * LARGEST_BODY + b'"}'
    kind = {"content-type": "application/json"}
    assert page.client.post("/api/next", content=large, headers=kind).status_code == 413
    pieces = (large[i : i + 65536] for i in range(0, len(large), 65536))  # without a length
    assert page.client.post("/api/next", content=pieces, headers=kind).status_code == 413
    assert (
        page.client.post("/api/next", content=b"{}", headers=kind | {"content-length": "x"}).status_code
        == 413
    )


@pytest.mark.parametrize(
    "path", ["/static/../store.py", "/static/%2e%2e/store.py", "/static/..%2fstore.py", "/static//etc/passwd"]
)
def test_no_path_leads_out(page, path):
    assert page.client.get(path).status_code == 404
    assert page.client.get("/static/").status_code == 404


def test_a_password_lets_in(store):
    page = Page(store, password="open sesame ü")
    with page.client as client:
        assert "password" in client.get("/").text
        wrong = client.post("/login", data={"password": "wrong"})
        assert "This is not the password." in wrong.text
        assert 'name="password"' in wrong.text
        assert (wrong.status_code, client.get("/api/state").status_code) == (403, 401)
        assert client.post("/login", data={}).status_code == 403
        right = client.post("/login", data={"password": "open sesame ü"}, follow_redirects=False)
        assert right.status_code == 303
        assert client.get("/api/state").status_code == 200
    assert not Page(store).sessions.has_password("")


def test_hosts_of_a_page_for_others():
    is_own = hosts_for("0.0.0.0", 80, "secret")
    assert is_own("192.168.0.7:80")
    assert is_own("[fe80::1]:80")
    assert not is_own("evil.example:80")
    assert not is_own("192.168.0.7:81")
    assert not hosts_for("0.0.0.0", 80, None)("192.168.0.7:80")
    assert hosts_for("192.168.0.7", 81, "secret")("192.168.0.7:81")
    assert not hosts_for("192.168.0.7", 81, "secret")("192.168.0.8:81")


def test_hostile_words_labels_and_names_are_plain_values(tmp_path):
    path = tmp_path / (HOSTILE.replace("/", "∕") + "\n.jsonl")
    observations = [HOSTILE, "\u202eabc", "a\u2028b", "'; DROP TABLE items; --"]
    path.write_text(json.dumps({"observations": observations}) + "\n" + json.dumps({"observations": ["b"]}))
    store = Store(tmp_path / "a.db", create=True)
    label = HOSTILE.replace(" ", "")
    add_file(store, path, [label])
    with Page(store) as page:
        item = page.get("items/1")["item"]
        assert item["words"] == observations
        page.accept(item, [(0, 1, label)])
        page.taught()
        shown = page.get("items/1")["item"]
        assert shown["spans"][0]["label"] == label
        assert page.get("items", search="DROP TABLE")["total"] == 1
        assert page.get("items", label="' OR 1=1 --")["total"] == 0
        assert page.get("items", status="' OR 1=1 --")["total"] == 0
        assert page.post("why", id=1, start=0, end=1)["chosen"] == label
        answer = page.client.get("/api/export?format=jsonl")
        assert "<" not in answer.headers["content-disposition"]
        assert "\n" not in answer.headers["content-disposition"]
        for path in ("state", "items", "items/1"):
            assert page.client.get(f"/api/{path}").headers["content-type"] == "application/json"
    assert store.counts()["done"] == 1
    store.close()
