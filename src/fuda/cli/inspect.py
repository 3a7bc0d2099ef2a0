"""fuda inspect: show the metadata of a model file, and the features of largest weight."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from fuda.errors import DataError

_EXAMPLES = """\b
Examples:
  fuda inspect spanish.fuda
  fuda inspect spanish.fuda --top 5
  fuda inspect spanish.fuda --json
"""
_TOP = "List the N features of largest weight per label."
_MARGIN = 12


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help=_TOP)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def inspect(model_path: str, top: int | None, as_json: bool) -> None:
    """Show the class, parameters, labels and size of MODEL.

    Only metadata is read, unless --top is given.
    """
    from fuda.storage.model_file import read_meta

    meta = read_meta(model_path)
    features = {} if top is None else _top_features(model_path, top)
    if as_json:
        shown = meta if top is None else meta | {"top_features": features}
        click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    wrap = textwrap.TextWrapper(100, "", " " * _MARGIN, break_long_words=False, break_on_hyphens=False).fill
    for name, value in _lines(meta):
        click.echo(wrap(f"{name:<{_MARGIN}}{value}"))
    for label, weights in features.items():
        click.echo(f"\n{label}")
        for feature, weight in weights:
            click.echo(f"{weight:>+{_MARGIN}.4f}  {feature}")


def _top_features(path: str, count: int) -> dict[Any, list[tuple[str, float]]]:
    """The features of largest weight of a model file, by label."""
    import fuda

    model = fuda.load(path)
    if not hasattr(model, "top_features"):
        kind = type(model).__name__
        raise DataError(f"{path}: --top lists the weights of features, and an {kind} has none; leave it out")
    return dict(model.top_features(count))


def _lines(meta: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the metadata as names and values to print."""
    members = meta["members"]
    labels = ", ".join(map(str, meta["labels"][:20])) + (", …" if len(meta["labels"]) > 20 else "")
    yield "model", f"{meta['class']} (version {meta['class_version']}), written by fuda {meta['fuda']}"
    yield "labels", f"{len(meta['labels'])}: {labels}"
    yield "shape", f"{meta['shape']}s"
    yield "parameters", _assigned(meta["parameters"])
    if meta["reading"]:
        yield "reads", _assigned(meta["reading"])
    yield "size", f"{sum(listed['bytes'] for listed in members.values()):,} bytes"
    for name, listed in members.items():
        if "shape" in listed:
            size = " × ".join(f"{n:,}" for n in listed["shape"])
            yield "", f"{name.removeprefix('arrays/').removesuffix('.npy'):<16}{listed['dtype']}  {size}"


def _assigned(values: dict[str, Any]) -> str:
    """Parameters as name=value pairs."""
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    """A parameter as text: templates and functions by name, kernels and models in full.

    >>> _shown({"kernel": {"type": "Normalized", "kernel": {"type": "Polynomial", "degree": 2}}})
    'Normalized(kernel=Polynomial(degree=2))'
    """
    if isinstance(value, dict) and ("type" in value or "labeler" in value):
        inner = value.get("parameters", {k: v for k, v in value.items() if k != "type"})
        return f"{value.get('type', value.get('labeler'))}({_assigned(inner)})"
    if isinstance(value, dict) and "kernel" in value:
        return _shown(value["kernel"])
    if isinstance(value, dict) and "array" in value:
        return f"<{value['array']}>"
    if isinstance(value, dict):
        return f"{next(iter(value), '')} {value.get('name') or value.get('function')}"
    return str(value)
