"""networkx graphs: node attributes hold the observation and the label, edges run from parent to child.

networkx is loaded on first use; it comes with the extra ``fuda[graph]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fuda.checks import check_choice
from fuda.data import structures
from fuda.data.structures import Dag, Structure, Tree
from fuda.errors import DataError, place, short
from fuda.formats.dataset import Dataset, Label, Record, labels_to_write

if TYPE_CHECKING:
    import networkx

SHAPES = ("dag", "tree", "sequence")


def from_networkx(
    graphs: Iterable[networkx.DiGraph],
    observation: str = "observation",
    label: str = "label",
    shape: str = "dag",
) -> Dataset:
    """A record a graph; node t is the t-th node of the graph.

    `observation` and `label` name node attributes. A node without the second has no known label; if no node
    of any graph has it, there are no labels. `shape` "tree" or "sequence" makes trees or sequences of graphs
    that are such.
    """
    nx = _networkx()
    check_choice("shape", shape, SHAPES)
    if isinstance(graphs, nx.Graph):
        raise DataError("a list of graphs is expected, but a single one was given; pass [graph]")
    records = []
    for index, graph in enumerate(graphs):
        if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
            raise DataError(
                f"{place(index)}: a {type(graph).__name__} where a networkx DiGraph is expected: edges run "
                "from parent to child, once; build one with networkx.DiGraph"
            )
        observations, labels = [], []
        for node, (name, attributes) in enumerate(graph.nodes(data=True)):
            if observation not in attributes:
                raise DataError(
                    f"{place(index, node)}: the graph's node {short(name)} has no attribute "
                    f"{observation!r}; set it, or name another with observation="
                )
            observations.append(attributes[observation])
            labels.append(attributes.get(label))
        numbers = {name: node for node, name in enumerate(graph.nodes)}
        edges = [(numbers[parent], numbers[child]) for parent, child in graph.edges]
        try:
            records.append(Record(_shaped(shape, observations, edges), labels))
        except DataError as error:
            raise DataError(f"{place(index)}: {error}") from None
    if all(value is None for record in records for value in record.labels or []):
        for record in records:
            record.labels = None
    return Dataset(records)


def to_networkx(structure: Structure, labels: Sequence[Label] | None = None) -> networkx.DiGraph:
    """A DiGraph over 0..T−1 with the node attributes ``observation`` and, where known, ``label``.

    >>> graph = to_networkx(structures.Sequence(["Ana", "sleeps"]), ["N", "V"])
    >>> list(graph.edges), graph.nodes[1]
    ([(0, 1)], {'observation': 'sleeps', 'label': 'V'})
    """
    values = labels_to_write(0, Record(structure, None if labels is None else list(labels)))
    graph = _networkx().DiGraph()
    for node, observation in enumerate(structure.observations):
        graph.add_node(node, observation=observation)
        if values is not None and values[node] is not None:
            graph.nodes[node]["label"] = values[node]
    graph.add_edges_from(structure.edges.tolist())
    return graph


def _networkx() -> ModuleType:
    try:
        import networkx
    except ModuleNotFoundError:
        raise DataError("networkx is not installed; install it with: pip install 'fuda[graph]'") from None
    return networkx


def _shaped(shape: str, observations: list[Any], edges: list[tuple[int, int]]) -> Structure:
    if shape == "dag":
        return Dag(observations, edges)
    if shape == "tree":
        heads = [-1] * len(observations)
        for parent, child in edges:
            if heads[child] >= 0:
                raise DataError(
                    f"{place(node=child)}: more than one parent, so it is no tree; read it with shape='dag'"
                )
            heads[child] = parent
        return Tree(observations, heads)
    sequence = structures.Sequence(observations)
    if sequence.edges.tolist() != sorted(map(list, edges)):
        raise DataError(
            "the edges do not run from each node to the next, so it is no sequence; read it with shape='dag'"
        )
    return sequence
