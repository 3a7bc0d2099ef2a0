"""fuda inspect: show the metadata of a model file, and its largest weights."""

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
_TOP = "List the N features of largest weight per label, and the most and least likely transitions."
_KINDS = {"features": "top_features", "features of label pairs": "top_pair_features"}
_MARGIN = 12


@click.command(epilog=_EXAMPLES)
@click.argument("model_path", metavar="MODEL")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help=_TOP)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def inspect(model_path: str, top: int | None, as_json: bool) -> None:
    """Show the class, parameters, labels and size of MODEL.

    Weights are read only if --top is given.
    """
    from fuda.storage.model_file import read_meta

    meta = read_meta(model_path)
    if chosen := _chosen(model_path, meta):
        meta["chosen"] = chosen
    weights = {} if top is None else _largest(model_path, top)
    if as_json:
        click.echo(json.dumps(meta | weights, indent=2, ensure_ascii=False))
        return
    wrap = textwrap.TextWrapper(100, "", " " * _MARGIN, break_long_words=False, break_on_hyphens=False).fill
    for name, value in _lines(meta):
        click.echo(wrap(f"{name:<{_MARGIN}}{value}"))
    _show_weights(weights)
    for name, part in weights.get("within", {}).items():
        click.echo(f"\n{name}: {meta['parts'][name]['class']}")
        _show_weights(part)


def _show_weights(weights: dict[str, Any]) -> None:
    """Print weights kind by kind."""
    for kind, key in _KINDS.items():
        if key in weights:
            click.echo(f"\n{kind}")
        for label, rows in weights.get(key, {}).items():
            click.echo(f"\n{label}")
            for feature, weight in rows:
                click.echo(f"{weight:>+{_MARGIN}.4f}  {feature}")
    for name, rows in weights.get("transitions", {}).items():
        click.echo(f"\ntransitions, {name.replace('_', ' ')}")
        for above, label, weight in rows:
            click.echo(f"{weight:>+{_MARGIN}.4f}  {above} → {label}")


def _chosen(path: str, meta: dict[str, Any]) -> dict[str, float]:
    """Parameters that were left open, and the numbers that `fit` chose by the data.

    Those of the models within it are put into their parameters.
    """
    from fuda.storage.model_file import read

    parts = {"": meta} | {f"{name}__": part for name, part in meta.get("parts", {}).items()}
    of_all = {
        prefix: [
            name
            for name, value in part["parameters"].items()
            if value is None and meta["members"].get(f"arrays/{prefix}{name}.npy", {}).get("shape") == [1]
        ]
        for prefix, part in parts.items()
    }
    arrays = read(path)[2] if any(of_all.values()) else {}
    chosen = {
        prefix: {name: float(arrays[prefix + name][0]) for name in names} for prefix, names in of_all.items()
    }
    own_values = chosen.pop("")
    for prefix, values in chosen.items():
        parts[prefix]["parameters"] |= values
    return own_values


def _largest(path: str, count: int) -> dict[str, Any]:
    """The largest weights of a model file and of the models within it, by kind."""
    import fuda
    from fuda.models.auto import Auto

    model = fuda.load(path)
    # The weights of an Auto are those of its members.
    by_kind = {} if isinstance(model, Auto) else _weights(model, count)
    parts = {name: _weights(part, count) for name, part in model._parts().items()}
    if parts := {name: weights for name, weights in parts.items() if weights}:
        by_kind["within"] = parts
    if not by_kind:
        kind = type(model).__name__
        raise DataError(
            f"{path}: --top lists the weights of features and transitions, and {kind} has none; leave it "
            "out, or use fuda explain"
        )
    return by_kind


def _weights(model: Any, count: int) -> dict[str, Any]:
    """The largest weights of features by label, of those with label pairs, and of transitions."""
    from fuda.models.explained import diagnosis
    from fuda.models.explained.named_weights import largest

    by_kind: dict[str, Any] = {}
    tables = diagnosis.feature_weights(model), diagnosis.pair_weights(model)
    for key, table in zip(_KINDS.values(), tables, strict=True):
        if table is not None:
            by_kind[key] = largest(*table, diagnosis.weighted(model), count)
    transitions = diagnosis.transition_weights(model)
    if transitions is not None:
        by_kind["transitions"] = _ends(*transitions, diagnosis.weighted(model), count)
    return by_kind


def _ends(names: list[str], weights: Any, classes: Any, count: int) -> dict[str, list[Any]]:
    """The most and the least likely transitions; no transition is both."""
    import numpy as np

    order = np.argsort(-weights, axis=None, kind="stable")
    half = min(count, len(order) // 2)
    ends = {"most_likely": order[:count], "least_likely": order[len(order) - half :][::-1]}
    size = len(classes)
    return {
        name: [(names[k // size], classes[k % size], float(weights.flat[k])) for k in several.tolist()]
        for name, several in ends.items()
    }


def _lines(meta: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the metadata as names and values to print."""
    members = meta["members"]
    labels = ", ".join(map(str, meta["labels"][:20])) + (", …" if len(meta["labels"]) > 20 else "")
    yield "model", f"{meta['class']} (version {meta['class_version']}), written by fuda {meta['fuda']}"
    yield "labels", f"{len(meta['labels'])}: {labels}"
    yield "shape", f"{meta['shape']}s"
    chosen = meta.get("chosen", {})
    yield "parameters", _assignments({k: value for k, value in meta["parameters"].items() if k not in chosen})
    if chosen:
        yield "by the data", _assignments(chosen)
    for name, part in meta.get("parts", {}).items():
        yield "contains", f"{name}: {part['class']}, {_assignments(part['parameters'])}"
    if meta["reading"]:
        yield "reads", _assignments(meta["reading"])
    yield "size", f"{sum(listed['bytes'] for listed in members.values()):,} bytes"
    arrays = {
        name.removeprefix("arrays/").removesuffix(".npy"): listed
        for name, listed in members.items()
        if "shape" in listed
    }
    width = max(map(len, arrays), default=0)
    for name, listed in arrays.items():
        size = " × ".join(f"{n:,}" for n in listed["shape"])
        yield "", f"{name:<{width}}  {listed['dtype']}  {size}"


def _assignments(values: dict[str, Any]) -> str:
    """Parameters as name=value pairs."""
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    """A parameter as text: templates and functions by name, kernels and models in full.

    >>> _shown({"kernel": {"type": "Normalized", "kernel": {"type": "Polynomial", "degree": 2}}})
    'Normalized(kernel=Polynomial(degree=2))'
    """
    if isinstance(value, dict) and ("type" in value or "labeler" in value):
        inner = value.get("parameters", {k: v for k, v in value.items() if k != "type"})
        return f"{value.get('type', value.get('labeler'))}({_assignments(inner)})"
    if isinstance(value, dict) and "kernel" in value:
        return _shown(value["kernel"])
    if isinstance(value, dict) and "vectors" in value:
        return " + ".join(filter(None, [value["base"], f"<vectors{value['vectors']}>"]))
    if isinstance(value, dict) and "labelers" in value:
        return f"<{', '.join(value['labelers'])}>"
    if isinstance(value, dict) and "array" in value:
        return f"<{value['array']}>"
    if isinstance(value, float):
        return f"{value:.4g}" if len(str(value)) > 10 else str(value)
    if isinstance(value, dict):
        return f"{next(iter(value), '')} {value.get('name') or value.get('function')}"
    return str(value)
