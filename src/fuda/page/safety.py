"""Who may use a page: token or password, sessions, and the origin and size of requests.

The address that is opened has a random token, which is exchanged for a cookie. The store has only
a digest of the cookie, so that open pages go on after a restart and a copy of the store opens
nothing. Requests for another host are refused (a name that an attacker lets point to this
computer), and so are those that pages of other origins send.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any

from fuda.page.store import Store

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

LARGEST_BODY = 1 << 20
ANY_ADDRESS = ("0.0.0.0", "::")
_TOO_LARGE = f"the request has more than {LARGEST_BODY:,} bytes"
_SESSION = 30 * 24 * 3600.0  # a session lasts so many seconds
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Sessions:
    """The browsers that may use a page.

    Parameters
    ----------
    store : Store
        Keeps digests of their cookies.
    port : int
        The port, a part of the name of the cookie: browsers send cookies to all ports.
    password : str or None
        With which other computers may come.
    """

    def __init__(self, store: Store, port: int, password: str | None = None) -> None:
        self.token, self.password = secrets.token_urlsafe(32), password
        self.cookie = f"fuda_{port}"
        self._store, self._known = store, set[str]()

    def has_token(self, token: str) -> bool:
        """Return whether a token is that of the address."""
        return secrets.compare_digest(token.encode(), self.token.encode())

    def has_password(self, password: str) -> bool:
        """Return whether a password is the right one."""
        return self.password is not None and secrets.compare_digest(password.encode(), self.password.encode())

    def open_session(self) -> str:
        """Return the value of the cookie of a new session."""
        value = secrets.token_urlsafe(32)
        with self._store.transaction() as writer:
            writer.execute("DELETE FROM sessions WHERE until < ?", (time.time(),))
            row = _digest(value), time.time() + _SESSION
            writer.execute("INSERT INTO sessions VALUES (?, ?)", row)
        return value

    def who(self, scope: Scope) -> str | None:
        """Return the name of the session of a request; None if it has none."""
        value = self._cookie_of(scope)
        if value is None:
            return None
        digest = _digest(value)
        if digest not in self._known:
            row = self._store.session(digest)
            if row is None or row < time.time():
                return None
            self._known.add(digest)
        return digest[:16]

    def _cookie_of(self, scope: Scope) -> str | None:
        try:
            jar = SimpleCookie(header(scope, "cookie"))
        except CookieError:
            return None
        return jar[self.cookie].value if self.cookie in jar else None


class Guard:
    """The application, for requests that may reach it.

    Parameters
    ----------
    app : callable
        The application.
    sessions : Sessions
        Who may use it.
    hosts : callable
        Whether a Host is one of this page.
    """

    def __init__(self, app: Any, sessions: Sessions, hosts: Callable[[str], bool]) -> None:
        self.app, self.sessions, self.hosts = app, sessions, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # there are no web sockets

        async def guarded_send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                other_headers = [
                    (k, v) for k, v in message.get("headers", []) if k.decode().lower() not in _HEADERS
                ]
                own_headers = [(k.encode(), v.encode()) for k, v in _HEADERS.items()]
                message = {**message, "headers": [*other_headers, *own_headers]}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await _send_error(guarded_send, *refusal)
            return
        scope.setdefault("state", {})["who"] = self.sessions.who(scope)
        if scope["path"].startswith("/api/") and scope["state"]["who"] is None:
            sentence = "this browser is not known here; open the address that `fuda label` printed"
            await _send_error(guarded_send, 401, sentence)
            return
        await self.app(scope, _bounded(receive), guarded_send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is refused, if it is."""
        host, origin = header(scope, "host"), header(scope, "origin")
        if not self.hosts(host):
            return 403, "this page has another address; open the one that `fuda label` printed"
        if (origin or scope["method"] not in ("GET", "HEAD")) and origin != f"http://{host}":
            return 403, "a page of another origin may not ask this one"
        length = header(scope, "content-length")
        if length and (not length.isdigit() or int(length) > LARGEST_BODY):
            return 413, _TOO_LARGE
        return None


class TooLargeError(Exception):
    """A body without a length that turns out to be too large."""

    def __str__(self) -> str:
        return _TOO_LARGE


def _bounded(receive: Receive) -> Receive:
    """Receive a body up to the largest size."""
    received = 0

    async def bounded() -> dict[str, Any]:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > LARGEST_BODY:
            raise TooLargeError
        return message

    return bounded


def hosts_for(host: str, port: int, password: str | None) -> Callable[[str], bool]:
    """Return the test of Host for a page that listens on an address.

    Parameters
    ----------
    host : str
        The address.
    port : int
        The port.
    password : str or None
        Without one, only this computer is served.

    Returns
    -------
    callable
        Whether a Host may be asked for.
    """
    names = {"127.0.0.1", "localhost", "[::1]"}
    if password is not None:
        names |= {host, f"[{host}]", socket.gethostname(), socket.getfqdn()}
    accepted = {f"{name}:{port}".lower() for name in names} | (names if port == 80 else set())

    def is_own(requested: str) -> bool:
        if requested.lower() in accepted:
            return True
        if password is None or host not in ANY_ADDRESS:
            return False
        address, _, own_port = requested.rpartition(":")
        return own_port == str(port) and _is_address(address.strip("[]"))

    return is_own


def outward(host: str) -> str:
    """Return the address by which other computers reach this one, as in a URL.

    Parameters
    ----------
    host : str
        The address that a page listens on; for all addresses, that of the way out is chosen.

    Returns
    -------
    str
        The address, or the name of this computer where it has no way out.

    Examples
    --------
    >>> outward("192.168.0.7"), outward("fe80::1")
    ('192.168.0.7', '[fe80::1]')
    """
    if host in ANY_ADDRESS:
        family, elsewhere = (socket.AF_INET6, "2001:db8::1") if ":" in host else (socket.AF_INET, "192.0.2.1")
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((elsewhere, 9))  # chooses a way; nothing is sent
                host = probe.getsockname()[0]
            except OSError:
                return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def header(scope: Scope, name: str) -> str:
    """Return a header of a request; empty if it was not sent."""
    values = [value for key, value in scope["headers"] if key == name.encode()]
    return values[0].decode("latin-1") if values else ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


async def _send_error(send: Send, status: int, sentence: str) -> None:
    """Answer with an error."""
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error": sentence}).encode()})
