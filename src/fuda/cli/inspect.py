"""fuda inspect: what a model file says of itself, without reading its arrays."""

from __future__ import annotations

import json
from typing import Any

import click

_EXAMPLES = """\b
Examples:
  fuda inspect spanish.fuda
  fuda inspect spanish.fuda --json
"""


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.option("--json", "as_json", is_flag=True, help="Print the metadata as JSON.")
def inspect(model_path: str, as_json: bool) -> None:
    """Show what MODEL is: its kind, parameters, labels and size. Only its metadata is read."""
    from fuda.model_file import read_meta

    meta = read_meta(model_path)
    if as_json:
        click.echo(json.dumps(meta, indent=2, ensure_ascii=False))
        return
    for name, value in _lines(meta):
        click.echo(f"{name:<12}{value}")


def _lines(meta: dict[str, Any]) -> list[tuple[str, str]]:
    parameters = [f"{name}={_shown(value)}" for name, value in meta["parameters"].items()]
    members = meta["members"]
    labels = ", ".join(map(str, meta["labels"][:20])) + (", …" if len(meta["labels"]) > 20 else "")
    lines = [
        ("model", f"{meta['class']} (version {meta['class_version']}), written by fuda {meta['fuda']}"),
        ("labels", f"{len(meta['labels'])}: {labels}"),
        ("shape", f"{meta['shape']}s"),
        ("parameters", ", ".join(parameters)),
    ]
    if meta.get("reading"):
        lines.append(("reads", ", ".join(f"{name}={_shown(value)}" for name, value in meta["reading"].items())))
    lines.append(("size", f"{sum(listed['bytes'] for listed in members.values()):,} bytes"))
    for name, listed in members.items():
        if "shape" in listed:
            size = " × ".join(f"{n:,}" for n in listed["shape"])
            lines.append(("", f"{name.removeprefix('arrays/').removesuffix('.npy'):<16}{listed['dtype']}  {size}"))
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"<{', '.join(value)} {next(iter(value.values()))!r:.60}>"
    return str(value)
