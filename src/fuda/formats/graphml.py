"""GraphML, read and written by networkx: observation and label are attributes of nodes.

Edges lead from parent to child. A file may contain several graphs. networkx is imported on first
use; install it with the extra ``fuda[graph]``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from fuda.checks import is_whole
from fuda.data.structures import Structure
from fuda.errors import DataError, place, short
from fuda.formats.dataset import Dataset, Record
from fuda.formats.graph import from_networkx, networkx_module, to_networkx

_NOT_IN_XML = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff\ud800-\udfff]")


def read(
    text: str,
    name: str,
    label: str = "label",
    columns: str | Sequence[str] = "observation",
    graph: str = "dag",
    cyclic: str = "error",
) -> Dataset:
    """Read graphs.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str
        The name of the file, for messages.
    label : str
        The attribute of the label. A node without it has an unknown label.
    columns : str
        The attribute of the observation.
    graph : {"dag", "tree", "sequence"}
        The shape of the structures; graphs of another shape are refused.
    cyclic : {"error", "break"}
        Refuse graphs with cycles, or leave out the edges that close one.

    Returns
    -------
    Dataset
        One record per graph.
    """
    networkx = networkx_module()
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DataError(f"{name}: GraphML has no document type; remove the lines with <!DOCTYPE and <!ENTITY")
    observation = columns if isinstance(columns, str) else ",".join(map(str, columns))
    refused = networkx.NetworkXException
    reader = networkx.readwrite.graphml.GraphMLReader()
    try:
        graphs = list(reader(string=text))
    except (SyntaxError, ValueError, LookupError, TypeError, AttributeError, refused) as error:
        # What the parser of XML and networkx raise for files that are not GraphML.
        raise DataError(f"{name}: not GraphML: {short(str(error))}; write a graphml element") from None
    if not graphs:
        raise DataError(f"{name}: no graphs; write a graph element with nodes and edges")
    try:
        return from_networkx(graphs, observation, label, graph, cyclic)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def write(records: Sequence[Record]) -> str:
    """Write a graph per record, with the attributes ``observation`` and ``label``.

    Parameters
    ----------
    records : list of Record
        Structures whose observations are strings or integers.

    Returns
    -------
    str
        The content of the file.
    """
    networkx = networkx_module()
    writer = networkx.readwrite.graphml.GraphMLWriter(encoding="utf-8", prettyprint=True)
    for index, record in enumerate(records):
        _check(index, record.structure, record.labels or [])
        converted = to_networkx(record.structure, record.labels)
        converted.graph.clear()
        writer.add_graph_element(converted)
    stream = io.BytesIO()
    writer.dump(stream)
    return stream.getvalue().decode() + "\n"


def _check(index: int, structure: Structure, labels: Sequence[Any]) -> None:
    """Refuse values that would not be read back from XML."""
    for kind, values in (("observation", structure.observations), ("label", labels)):
        for node, value in enumerate(values):
            if value is None and kind == "label":
                continue
            fits = is_whole(value, 1 - (1 << 63), (1 << 63) - 1)
            if not fits and (not isinstance(value, str) or not value or _NOT_IN_XML.search(value)):
                message = f"the {kind} {short(value)} is neither an integer nor a text that XML can contain"
                raise DataError(f"{place(index, node)}: {message}; write jsonl")
