"""networkx graphs: observation and label are node attributes, edges lead from parent to child.

networkx is imported on first use; install it with the extra ``fuda[graph]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fuda.checks import check_choice
from fuda.data import structures
from fuda.data.structures import Dag, Structure, Tree
from fuda.errors import DataError, place, short
from fuda.formats.cycles import without_cycles
from fuda.formats.dataset import Dataset, Label, Record, labels_to_write

if TYPE_CHECKING:
    import networkx

SHAPES = ("dag", "tree", "sequence")


def from_networkx(
    graphs: Iterable[networkx.DiGraph],
    observation: str = "observation",
    label: str = "label",
    shape: str = "dag",
    cyclic: str = "error",
) -> Dataset:
    """Convert networkx graphs; node t is the t-th node of the graph.

    Parameters
    ----------
    graphs : iterable of networkx.DiGraph
        Edges lead from parent to child.
    observation : str
        The node attribute of the observation.
    label : str
        The node attribute of the label. A node without it has an unknown label (None); if no node
        of any graph has it, there are no labels.
    shape : {"dag", "tree", "sequence"}
        The shape of the structures; graphs of another shape are refused.
    cyclic : {"error", "break"}
        Refuse graphs with cycles, or leave out the edges that close one on a walk from nodes
        without parents (`fuda.formats.cycles`); the notes count them.

    Returns
    -------
    Dataset
        One record per graph.

    Examples
    --------
    >>> import networkx
    >>> graph = networkx.DiGraph([("sleeps", "Ana")])
    >>> networkx.set_node_attributes(graph, {"sleeps": "sleeps", "Ana": "Ana"}, "observation")
    >>> from_networkx([graph], shape="tree").X
    [Tree(['sleeps', 'Ana'], 2 nodes)]
    """
    nx = networkx_module()
    check_choice("shape", shape, SHAPES)
    check_choice("cyclic", cyclic, ("error", "break"))
    if isinstance(graphs, nx.Graph):
        raise DataError("a list of graphs is expected, but a single one was given; pass [graph]")
    records = []
    left_out = 0
    for index, graph in enumerate(graphs):
        if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
            problem = f"a {type(graph).__name__} where a networkx DiGraph is expected"
            raise DataError(f"{place(index)}: {problem}: build one, with edges from parent to child")
        observations, labels = [], []
        for node, (name, attributes) in enumerate(graph.nodes(data=True)):
            if observation not in attributes:
                problem = f"the graph's node {short(name)} has no attribute {observation!r}"
                remedy = "set it, or name another with observation="
                raise DataError(f"{place(index, node)}: {problem}; {remedy}")
            observations.append(attributes[observation])
            labels.append(attributes.get(label))
        numbers = {name: node for node, name in enumerate(graph.nodes)}
        edges = [(numbers[parent], numbers[child]) for parent, child in graph.edges]
        if cyclic == "break":
            kept_edges = without_cycles(len(numbers), edges)
            left_out += len(edges) - len(kept_edges)
            edges = kept_edges
        try:
            records.append(Record(_structure(shape, observations, edges), labels))
        except DataError as error:
            raise DataError(f"{place(index)}: {error}") from None
    if all(value is None for record in records for value in record.labels or []):
        for record in records:
            record.labels = None
    return Dataset(records, [f"{left_out} edges left out: they close a cycle"] if left_out else [])


def to_networkx(structure: Structure, labels: Sequence[Label] | None = None) -> networkx.DiGraph:
    """Convert a structure to a DiGraph over the nodes 0..T−1.

    Parameters
    ----------
    structure : Structure
        A sequence, tree or DAG.
    labels : list of labels, optional
        One label per node, None where it is not known.

    Returns
    -------
    networkx.DiGraph
        With the node attributes ``observation`` and, where known, ``label``.

    Examples
    --------
    >>> graph = to_networkx(structures.Sequence(["Ana", "sleeps"]), ["N", "V"])
    >>> list(graph.edges), graph.nodes[1]
    ([(0, 1)], {'observation': 'sleeps', 'label': 'V'})
    """
    values = labels_to_write(0, Record(structure, None if labels is None else list(labels)))
    graph = networkx_module().DiGraph()
    for node, observation in enumerate(structure.observations):
        label = None if values is None else values[node]
        graph.add_node(node, observation=observation, **({} if label is None else {"label": label}))
    graph.add_edges_from(structure.edges.tolist())
    return graph


def networkx_module() -> ModuleType:
    """The module networkx."""
    try:
        import networkx
    except ModuleNotFoundError:
        raise DataError("networkx is not installed; install it with: pip install 'fuda[graph]'") from None
    return networkx


def _structure(shape: str, observations: list[Any], edges: list[tuple[int, int]]) -> Structure:
    """The structure of that shape."""
    if shape == "dag":
        return Dag(observations, edges)
    if shape == "tree":
        heads = [-1] * len(observations)
        for parent, child in edges:
            if heads[child] >= 0:
                problem = "more than one parent, so it is not a tree"
                raise DataError(f"{place(node=child)}: {problem}; read it with shape='dag'")
            heads[child] = parent
        return Tree(observations, heads)
    sequence = structures.Sequence(observations)
    if sequence.edges.tolist() != sorted(map(list, edges)):
        problem = "the edges do not lead from each node to the next, so it is not a sequence"
        raise DataError(f"{problem}; read it with shape='dag'")
    return sequence
