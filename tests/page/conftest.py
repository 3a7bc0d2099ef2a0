"""A small store, the page of it without a network, and pages in a browser."""

from __future__ import annotations

import warnings

import pytest

from fuda.formats import read
from fuda.page import importing
from fuda.page.safety import Sessions, hosts_for
from fuda.page.server import make_app
from fuda.page.store import Step, Store
from page_cases import CHROMIUM, LABELS, PATIENCE, serving
from page_cases import TEXT as NEWS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions ask for another name of the same client
    from starlette.testclient import TestClient

TEXT = """Ana lives in Lima.
Bo sleeps in Rome and works for Acme Ltd.
Dr. Smith paid 1,000 € to Ana.
Ana met Bo in Paris.
Rome is not Lima.
Nobody came.
"""
ME = Step("me", "tab")


def add_file(store, path, labels=(), nodes=False, **options):
    """Add a file to a store as the command does."""
    format, detected = importing.format_for(str(path), options.pop("format", None))
    reading = detected | options
    data = read(path, format.name, **format.from_command(reading))
    reading |= {"format": format.name} | format.options_to_store(data)
    added = importing.add(
        store, str(path), data, importing.digest_of_file(str(path), options), reading, nodes
    )
    importing.add_kinds(store, labels)
    return added


def full(store, is_full=True):
    """Let the disk of a store be full, or have space again."""
    store._writer.execute(f"PRAGMA max_page_count = {1 if is_full else 1 << 30}")


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "news.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def store(tmp_path, text):
    news = Store(tmp_path / "news.db", create=True)
    add_file(news, text, ["PER", "LOC"])
    news.set_about("learner", "kernel")
    yield news
    news.close()


class Page:
    """The page of a store as a browser sees it."""

    def __init__(self, store, password=None, client=True):
        self.store = store
        self.sessions = Sessions(store, 8000, password)
        hosts = hosts_for("127.0.0.1", 8000, password)
        self.app, self.feed, self.api = make_app(store, self.sessions, hosts)
        self.client = TestClient(
            self.app, base_url="http://127.0.0.1:8000", headers={"Origin": "http://127.0.0.1:8000"}
        )

    def __enter__(self):
        self.client.__enter__()
        answer = self.client.get("/", params={"token": self.sessions.token}, follow_redirects=False)
        assert answer.status_code == 303
        return self

    def __exit__(self, *error):
        self.client.__exit__(*error)

    def get(self, path, **asked):
        answer = self.client.get(f"/api/{path}", params=asked)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path, status=200, tab="tab", **content):
        answer = self.client.post(f"/api/{path}", json={"tab": tab, **content})
        assert answer.status_code == status, answer.text
        return answer.json()

    def accept(self, item, spans=(), status=200, tab="tab", **more):
        listed = [{"start": start, "end": end, "label": label} for start, end, label in spans]
        path = f"items/{item['id']}/accept"
        return self.post(path, status, tab, version=item["version"], spans=listed, **more)

    def taught(self):
        """Wait until the model has learned all that was logged."""
        assert self.api.teacher.wait_for(self.store.last_event(), PATIENCE)


@pytest.fixture
def page(store):
    with Page(store) as running:
        yield running


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def served(tmp_path):
    """Eight sentences without labels, in the order of the file."""
    file = tmp_path / "news.txt"
    file.write_text(NEWS, encoding="utf-8")
    yield from serving(tmp_path, file, LABELS)


@pytest.fixture
def opened(browser):
    """Opens pages; at the end none of them may have complained."""
    complaints, contexts = [], []

    def open_page(served, context=None, at="", **options):
        if context is None:
            context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
            context.set_default_timeout(1000 * PATIENCE)
            contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.goto(served.entrance)
        if at:
            page.goto(served.address + at)
        page.wait_for_selector("main > *")
        return page

    yield open_page
    for context in contexts:
        context.close()
    # Tests that make refusals and lost connections check them; the browser notes them too.
    assert [c for c in complaints if "Failed to load resource" not in c and "net::ERR" not in c] == []
