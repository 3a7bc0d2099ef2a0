"""fuda label: a page on which a person labels files while a model learns."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from fuda.cli import options
from fuda.errors import DataError
from fuda.progress import stage

if TYPE_CHECKING:
    from fuda.page.store import Store

_EXAMPLES = """\b
Examples:
  fuda label news.txt --labels PER,LOC,ORG
  fuda label news.txt
  fuda label trees.conllu --label none --labels NOUN,VERB
  fuda label --store news.txt.db

Without --store, the store is a file beside the first FILE: news.txt.db. Started again on the same
store, the page goes on where it was. Export labels with `fuda export`.
"""
_LABELS = "The labels to choose from; more can be added on the page."
_MODEL = "A model that labels to begin with, and learns on."
_STORE = "The file that keeps everything; by default FILE.db."
_PORT = "The port; by default any that is free."
_HOST = "Listen on this address, for other computers; needs --password."
_PASSWORD = "What other computers must give; also by the environment variable FUDA_PASSWORD."
_MMAP_THRESHOLD, _LARGE = -3, 1_000_000  # M_MMAP_THRESHOLD of malloc.h, and its new value in bytes
_LOCAL = ("127.0.0.1", "localhost", "::1")
_NODES = "Label every word by itself, as with parts of speech, and not spans of words."


@click.command(epilog=_EXAMPLES)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--labels", metavar="LIST", help=_LABELS)
@click.option("--nodes", is_flag=True, help=_NODES)
@click.option("--model", "model_path", metavar="MODEL", help=_MODEL)
@click.option("--store", "store_path", metavar="FILE.db", help=_STORE)
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help=_PORT)
@click.option("--no-browser", is_flag=True, help="Do not open the page in a browser.")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help=_HOST)
@click.option("--password", envvar="FUDA_PASSWORD", metavar="TEXT", help=_PASSWORD)
@options.reading_options
def label(
    files: tuple[str, ...],
    store_path: str | None,
    port: int | None,
    no_browser: bool,
    host: str,
    password: str | None,
    **how: Any,
) -> None:
    """Label FILEs on a page in the browser, while a model learns.

    It learns from every sentence that is accepted. FILE is anything that can be read, raw text
    included, with or without labels. Ctrl-C ends the page; everything that was accepted is in the
    store.
    """
    _check_host(host, password)
    if not files and store_path is None:
        raise DataError("name a FILE to label, or a --store to go on with")
    path = store_path or f"{files[0]}.db"
    _frugal()
    with stage("starting"):
        server, Store = _server()
    is_new = not os.path.exists(path)
    if is_new and not files:
        raise DataError(f"{path}: there is no such store; name a FILE to label")
    store = Store(path, create=True)
    try:
        try:
            fill(store, files, **how)
        except BaseException:
            if is_new:
                store.remove()
            raise
        listener = server.listening(host, port, store.about("port"))
        store.set_about("port", listener.getsockname()[1])
        try:
            ready = partial(_ready, host=host, path=path, no_browser=no_browser)
            server.serve(store, listener, host, password, ready)
        except KeyboardInterrupt:
            click.echo(f"\nfuda: ended; everything is in {path}", err=True)
    finally:
        store.close()


def _server() -> tuple[Any, Any]:
    """The modules of the page, whose libraries are an extra."""
    try:
        from fuda.page import server
    except ModuleNotFoundError as error:
        problem = f"the page needs {error.name}, which is not installed"
        raise DataError(f"{problem}; install it with: pip install 'fuda[page]'") from None
    from fuda.page.store import Store

    return server, Store


def _frugal() -> None:
    """Let freed large arrays go back to the system: a long process takes a third less memory.

    By itself, glibc keeps what is freed in ever larger pieces.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)


def _check_host(host: str, password: str | None) -> None:
    if host in _LOCAL:
        return
    if not password:
        problem = f"--host {host}: other computers could read and change the data"
        raise DataError(f"{problem}; give a --password that they must know, or leave --host out")
    click.echo(
        f"fuda: --host {host}: everybody who can reach this computer and knows the password can read the "
        "data and change the labels. Nothing is encrypted: where others may listen, use an SSH tunnel",
        err=True,
    )


def _ready(address: str, host: str, path: str, no_browser: bool) -> None:
    """Say where the page is, and open it."""
    click.echo(f"fuda: label at {address}")
    sys.stdout.flush()
    if host not in _LOCAL:
        from fuda.page.safety import outward

        port = urlsplit(address).port
        click.echo(f"fuda: on other computers, with the password: http://{outward(host)}:{port}/", err=True)
    click.echo(f"fuda: the store is {path}; Ctrl-C ends the page", err=True)
    if not no_browser:
        import webbrowser

        webbrowser.open(address)


def fill(
    store: Store,
    files: tuple[str, ...],
    labels: str | None,
    nodes: bool,
    model_path: str | None,
    **how: Any,
) -> None:
    """Add files, labels and a model to a store; what it has already is not added again."""
    from fuda.page import importing

    keywords = options.reading_keywords(**how)
    with store.transaction():
        for path in files:
            digest = importing.digest_of_file(path, keywords)
            if importing.knows(store, digest):
                continue
            format, suggested = importing.format_for(path, keywords.get("format"))
            reading = suggested | keywords | {"format": format.name}
            data = options.read(path, reading)
            reading |= format.options_to_store(data)
            importing.add(store, path, data, digest, reading, nodes)
        if labels is not None:
            importing.add_kinds(store, filter(None, (name.strip() for name in labels.split(","))))
        if model_path is not None:
            importing.add_model(store, model_path)
