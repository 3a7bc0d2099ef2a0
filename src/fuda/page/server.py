"""The server of a page: its routes, and how it is run."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from fuda.errors import DataError
from fuda.formats import FORMATS
from fuda.page import export
from fuda.page.api import Api, ConflictingEditError
from fuda.page.database import StoreError
from fuda.page.learners import to_bytes
from fuda.page.safety import ANY_ADDRESS, Guard, Sessions, TooLargeError, hosts_for, outward
from fuda.page.store import Step, Store

STATIC = Path(__file__).parent / "static"
_ALIVE = 15.0  # an idle stream of events sends a comment after so many seconds
_LONGEST_TAB = 64


class Feed:
    """Messages to all pages; `publish` may be called from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: set[asyncio.Queue[dict[str, Any] | None]] = set()

    def open(self) -> None:
        """Begin, within the loop of the server."""
        self._loop = asyncio.get_running_loop()

    def publish(self, message: dict[str, Any] | None) -> None:
        """Send a message to all pages; None ends their streams."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, message)

    def _deliver(self, message: dict[str, Any] | None) -> None:
        for reader in self._readers:
            reader.put_nowait(message)

    async def stream(self) -> AsyncIterator[str]:
        """Yield messages as server-sent events."""
        reader: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._readers.add(reader)
        try:
            yield ": here\n\n"
            while True:
                try:
                    message = await asyncio.wait_for(reader.get(), _ALIVE)
                except TimeoutError:
                    yield ": here\n\n"
                    continue
                if message is None:
                    return
                yield f"data: {json.dumps(message)}\n\n"
        finally:
            self._readers.discard(reader)


def make_app(store: Store, sessions: Sessions, hosts: Callable[[str], bool]) -> tuple[Any, Feed, Api]:
    """Return the application for a store, guarded.

    Parameters
    ----------
    store : Store
        The store.
    sessions : Sessions
        Who may use it.
    hosts : callable
        Whether a Host is one of this page.

    Returns
    -------
    app : callable
        The application.
    feed : Feed
        The messages to pages.
    api : Api
        What it works with.
    """
    feed = Feed()
    api = Api(store, feed.publish)

    @asynccontextmanager
    async def running(_: Any) -> AsyncIterator[None]:
        feed.open()
        api.start()
        yield
        await run_in_threadpool(api.stop)

    app = Starlette(
        routes=[*_pages(sessions), *_api_routes(api, feed)],
        lifespan=running,
        exception_handlers={
            DataError: lambda request, error: JSONResponse({"error": str(error)}, 400),
            StoreError: lambda request, error: JSONResponse({"error": str(error)}, 503),
            TooLargeError: lambda request, error: JSONResponse({"error": str(error)}, 413),
            ConflictingEditError: lambda request, error: JSONResponse(error.answer, 409),
            404: lambda request, error: JSONResponse({"error": "there is no such page"}, 404),
            405: lambda request, error: JSONResponse({"error": "this cannot be asked so"}, 405),
            500: lambda request, error: JSONResponse({"error": "the server failed; see its terminal"}, 500),
        },
    )
    return Guard(app, sessions, hosts), feed, api


def _pages(sessions: Sessions) -> list[Any]:
    """The routes of files, and how a browser gets in."""

    async def index(request: Request) -> Response:
        token = request.query_params.get("token")
        if token is not None:
            if not sessions.has_token(token):
                sentence = "the token is not the right one; open the address that `fuda label` printed last"
                return JSONResponse({"error": sentence}, 403)
            return await _admit(request, sessions)
        if sessions.password is not None and request.state.who is None:
            return FileResponse(STATIC / "login.html")
        return FileResponse(STATIC / "index.html")

    trying = asyncio.Lock()  # one password at a time, so that guessing is slow

    async def login(request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode(errors="replace"), max_num_fields=4))
        async with trying:
            if not sessions.has_password(form.get("password", "")):
                await asyncio.sleep(1.0)
                return HTMLResponse(_refusal_page(), 403)
        return await _admit(request, sessions)

    static = Mount("/static", StaticFiles(directory=STATIC))
    return [Route("/", index), Route("/login", login, methods=["POST"]), static]


def _refusal_page() -> str:
    """The form for the password, with the message that it was wrong."""
    form = (STATIC / "login.html").read_text(encoding="utf-8")
    return form.replace("<!-- refused -->", '<p class="refused" role="alert">This is not the password.</p>')


async def _admit(request: Request, sessions: Sessions) -> Response:
    """Let a browser in: to the page, with a cookie."""
    response = RedirectResponse("/", 303)
    if request.state.who is None:
        value = await run_in_threadpool(sessions.open_session)
        response.set_cookie(sessions.cookie, value, max_age=30 * 24 * 3600, httponly=True, samesite="strict")
    return response


def _api_routes(api: Api, feed: Feed) -> list[Route]:
    """The routes for JSON."""

    def get(path: str, handler: Callable[[Request, Step], Any]) -> Route:
        async def endpoint(request: Request) -> Response:
            by = Step(request.state.who, _tab(request.query_params.get("tab", "")))
            return JSONResponse(await run_in_threadpool(handler, request, by))

        return Route(path, endpoint)

    def post(path: str, handler: Callable[[Request, dict[str, Any], Step], Any]) -> Route:
        async def endpoint(request: Request) -> Response:
            content = await _content(request)
            by = Step(request.state.who, _tab(content.get("tab", "")))
            return JSONResponse(await run_in_threadpool(handler, request, content, by))

        return Route(path, endpoint, methods=["POST"])

    def listed(request: Request, by: Step) -> Any:
        query = request.query_params
        texts = (query.get(name, "") for name in ("status", "label", "search"))
        return api.items(_number(query, "offset", 0), _number(query, "limit", 50), *texts)

    def doubted(request: Request, by: Step) -> Any:
        query = request.query_params
        return api.review.listed(_number(query, "offset", 0), _number(query, "limit", 50))

    async def events(request: Request) -> Response:
        return StreamingResponse(feed.stream(), media_type="text/event-stream")

    async def exported(request: Request) -> Response:
        kind = request.query_params.get("format", "")
        if kind not in export.KINDS:
            raise DataError(f"format must be one of {', '.join(export.KINDS)}")
        content, name = await run_in_threadpool(_exported, api, kind)
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
        return Response(content, media_type="application/octet-stream", headers=headers)

    return [
        get("/api/state", lambda request, by: api.state(by) | {"tab": secrets.token_urlsafe(9)}),
        get("/api/items", listed),
        get("/api/items/{id:int}", lambda request, by: {"item": api.item(request.path_params["id"], by)}),
        Route("/api/events", events),
        post("/api/next", lambda request, content, by: {"item": _next(api, content, by)}),
        post(
            "/api/items/{id:int}/accept", lambda r, content, by: api.accept(r.path_params["id"], content, by)
        ),
        post("/api/items/{id:int}/skip", lambda r, content, by: api.skip(r.path_params["id"], content, by)),
        post("/api/undo", lambda request, content, by: api.undo(by)),
        post("/api/labels", lambda request, content, by: api.add_label(content.get("add"), by)),
        post("/api/why", lambda request, content, by: api.why(content)),
        get("/api/progress", lambda request, by: api.progress()),
        get("/api/doubts", doubted),
        post("/api/doubts", lambda request, content, by: api.review.start()),
        Route("/api/export", exported),
        post("/api/settings", lambda request, content, by: api.settings(content, by)),
    ]


def _exported(api: Api, kind: str) -> tuple[bytes, str]:
    """The content and the name of a file."""
    store = api.store
    if kind == "model":
        return to_bytes(export.model_of(store, api.teacher)), export.file_name(store, kind)
    return export.text_of(store, FORMATS[kind]).encode(), export.file_name(store, kind)


def _next(api: Api, content: dict[str, Any], by: Step) -> Any:
    after = content.get("after")
    return api.next(by, content.get("order"), after if type(after) is int else None)


def _tab(text: Any) -> str:
    if not isinstance(text, str) or len(text) > _LONGEST_TAB:
        raise DataError("the name of the tab is not valid; reload the page")
    return text


def _number(query: Any, name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise DataError(f"{name} must be a number; reload the page")
    return int(text)


async def _content(request: Request) -> dict[str, Any]:
    """The JSON object of a request."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise DataError("a request must be JSON; reload the page")
    try:
        content = json.loads(await request.body())
        # Infinite numbers and lone surrogates are read, but can be neither answered nor stored.
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise DataError("the request is not JSON; reload the page") from None
    if not isinstance(content, dict):
        raise DataError("the request is not an object; reload the page")
    return content


class _Server(uvicorn.Server):
    """Ends the streams of events when it is to end, which would otherwise keep it waiting."""

    feed: Feed

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.feed.publish(None)
        super().handle_exit(sig, frame)


def listening(host: str, port: int | None, preferred: int | None) -> socket.socket:
    """Return a socket that listens.

    Parameters
    ----------
    host : str
        The address.
    port : int or None
        The port that a person has named.
    preferred : int or None
        The port to have if it is free, where none was named.

    Returns
    -------
    socket
        The socket.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for choice in [port] if port is not None else [preferred or 0, 0]:
        # With the protocol named, asyncio sends small answers at once; else each takes 40 ms more.
        server_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server_socket.bind((host, choice))
            server_socket.listen(128)
            return server_socket
        except (OSError, OverflowError) as error:
            server_socket.close()
            problem = getattr(error, "strerror", None) or str(error)
    raise DataError(f"{host}, port {port}: cannot listen there ({problem}); name another --port or --host")


def serve(
    store: Store, listener: socket.socket, host: str, password: str | None, ready: Callable[[str], None]
) -> None:
    """Serve the page of a store until a signal comes.

    Parameters
    ----------
    store : Store
        The store.
    listener : socket
        Of `listening`.
    host : str
        The address it listens on.
    password : str or None
        For other computers.
    ready : callable
        Is called with the address to open.
    """
    port = listener.getsockname()[1]
    sessions = Sessions(store, port, password)
    app, feed, _ = make_app(store, sessions, hosts_for(host, port, password))
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        lifespan="on",
        ws="none",
    )
    server = _Server(config)
    server.feed = feed
    shown = "127.0.0.1" if host in ANY_ADDRESS else outward(host)
    ready(f"http://{shown}:{port}/?token={sessions.token}")
    server.run(sockets=[listener])
