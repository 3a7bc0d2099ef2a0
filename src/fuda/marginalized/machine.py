"""The kernel machine: scores of target nodes by the coefficients α of source nodes.

    S(t,σ) = Σ_{τ,ρ} α_τ(ρ) K(τ,t,ρ,σ) = P(σ|t) Q(t,σ),   Q(t,σ) = Σ_τ κ(τ,t) γ_τ(σ),

with γ_τ(σ) = Σ_ρ α_τ(ρ) P(ρ|τ) k_y(ρ,σ) under a product prior. Under a chain prior k_y is the identity,
κ(τ,t,σ) has a label, and γ_τ(σ) = α_τ(σ) P(σ|τ).

A push is only written down. What is pending for a block of targets is worked off when scores of the block are
asked for, all at once: so whoever visits structures in order, and pushes after each, has the scores of the
papers' online order, but nearly all work is done in long stretches by many threads over neighbouring blocks.
There is no matrix over pairs of nodes, and structures that are never pushed cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuda.data.encoding import Encoded
from fuda.data.window_encoding import WindowEncoder
from fuda.kernels import Kernel
from fuda.kernels.points import Numbering, Points, points
from fuda.marginalized import push as pushing
from fuda.marginalized import tables
from fuda.marginalized.codes import Codes
from fuda.marginalized.links import Links, links
from fuda.marginalized.priors import Prior
from fuda.marginalized.push import Pushes, Sources, Targets, Task, Values
from fuda.marginalized.push_graphs import edges, graphs
from fuda.marginalized.push_runs import runs
from fuda.marginalized.push_trees import families, trees
from fuda.marginalized.recursions import chain_prior, pair
from fuda.marginalized.scaled import ZERO, Array, Table, plain_table, scaled_table
from fuda.parallel import blocks, run

_BLOCK = 1024  # nodes of a block: its rows should stay in a core's own cache
_GROUP = 16  # neighbouring blocks that are brought up to date together
_MANY = 64  # pending pushes that are worth it
_OFTEN = 600  # of so many source nodes, more than one has a frequent type
_TABLE = 1 << 25  # entries of a table of kernel values that is made for a group


@dataclass(frozen=True)
class Side:
    """A packed corpus with a prior over its labels."""

    encoded: Encoded
    numbering: Numbering
    prior: Prior

    @property
    def offsets(self) -> Array:
        return self.encoded.corpus.offsets

    @cached_property
    def sizes(self) -> Array:
        return np.diff(self.offsets)

    def nodes(self, structure: int) -> slice:
        return slice(int(self.offsets[structure]), int(self.offsets[structure + 1]))

    @cached_property
    def points(self) -> Points:
        return points(self.encoded, self.numbering)

    @cached_property
    def links(self) -> Links:
        return links(self.encoded.corpus)

    @cached_property
    def steps(self) -> tuple[Array, Array]:
        """The transitions of a chain prior, before and after."""
        assert self.prior.before is not None
        assert self.prior.after is not None
        return self.prior.before, self.prior.after

    def part(self, encoder: WindowEncoder, structures: Array) -> Side:
        """Some of the structures, by their numbers."""
        corpus, nodes = self.encoded.corpus, self.nodes_of(structures)
        encoded = encoder.encode([corpus.structures[i] for i in structures])
        return Side(encoded, Numbering(encoded.corpus), self.prior.part(nodes))

    def widened(self, feature_count: int) -> Side:
        """The same, with columns for features that have joined the vocabulary since; no number is copied."""
        table, *others = self.encoded.tables
        old: Any = table.matrix
        if isinstance(old, np.ndarray):
            return self
        matrix = sp.csr_matrix((old.data, old.indices, old.indptr), shape=(old.shape[0], feature_count))
        side = replace(self, encoded=replace(self.encoded, tables=[replace(table, matrix=matrix), *others]))
        vars(side)["points"] = replace(self.points, features=matrix)  # observations keep their numbers
        return side

    def nodes_of(self, structures: Array) -> Array:
        """The nodes of some structures, one structure after another."""
        return np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in structures])

    def largest(self, kernel: Kernel, label_gram: Array) -> tuple[float, float]:
        """The largest k_x(τ,τ), and the largest k(τ,τ) = k_x Σ P(ρ|τ) P(σ|τ) k_y(ρ,σ) of its nodes.

        Both bound the kernel of any two nodes. Under a chain prior transitions may be certain, and k is k_x.
        """
        diagonal = kernel.diagonal(self.points)
        if self.prior.before is not None:
            return float(diagonal.max()), float(diagonal.max())
        own = np.einsum("tr,rs,ts->t", self.prior.nodes, label_gram, self.prior.nodes, optimize=True)
        return float(diagonal.max()), float((diagonal[self.encoded.corpus.types] * own).max())


class Machine:
    """Pushes from the structures of `sources`, scores of those of `targets` (the same object in training).

    `mixing` is c. `label_gram` (L, L) is k_y.
    """

    def __init__(
        self,
        kernel: Kernel,
        label_gram: Array,
        mixing: float,
        gap: float,
        sources: Side,
        targets: Side,
        n_jobs: int | None = None,
    ) -> None:
        self.sources, self.targets, self.label_gram = sources, targets, label_gram
        self._gap, self._n_jobs, self._mixing = gap, n_jobs, mixing
        self._shape = pair.SHAPES[sources.encoded.corpus.shape]
        self._is_chain = sources.prior.before is not None
        self._labels = len(label_gram)
        self._is_identity = np.array_equal(label_gram, np.eye(self._labels))
        self._code(kernel)
        self._lay_out(np.arange(len(targets.sizes)))
        self._mass = 0.0 if self._is_chain else _constant_mass(sources.prior, targets.prior, label_gram)
        self.is_scaled = not self._plain_is_safe(kernel)
        self._scores: Table = self._zeros(self._labels, self._places)
        self._log = _Log(self._labels)

    def visit_in(self, order: Array) -> None:
        """Say in which order scores of target structures will be asked for; they are fast in this order."""
        self._bring_all_up()
        before = tables.taken(self._scores, (slice(None), self._node_places))
        self._lay_out(order)
        self._done[:] = self._log.count
        self._scores = self._zeros(self._labels, self._places)
        tables.put(self._scores, (slice(None), self._node_places), before)

    def push(self, structure: int, alpha: Array) -> None:
        """Let the coefficients of a source structure grow by alpha (nodes, L)."""
        nodes = self.sources.nodes(structure)
        gamma = self.gamma(alpha, nodes)
        at = np.flatnonzero(gamma.any(axis=1))
        self._log.add(np.array([nodes.start, nodes.stop]), nodes.start + at, gamma[at])

    def push_all(self, alpha: Array) -> None:
        """Let the coefficients of all source nodes grow by alpha (N, L)."""
        at = np.flatnonzero(alpha.any(axis=1))
        self._log.add(self.sources.offsets, at, self.gamma(alpha[at], at))

    def gamma(self, alpha: Array, nodes: slice | Array) -> Array:
        """γ (nodes, L) of coefficients of these source nodes."""
        return self._with_labels(alpha * self.sources.prior.nodes[nodes])

    def scores(self, structure: int) -> Table:
        """S (nodes, L) of a target structure after all pushes so far; scaled if `is_scaled`."""
        block = self._block_of[structure]
        pending = self._log.count - self._done[block]
        if pending >= _MANY:
            first = block - block % _GROUP
            self._bring_up(range(first, min(first + _GROUP, len(self._blocks))))
        elif pending:
            self._bring_up(range(block, block + 1))
        return self._read(self._places_of(structure), self.targets.nodes(structure))

    def all_scores(self) -> Table:
        """S (N, L) of all target nodes, as `scores`."""
        self._bring_all_up()
        return self._read(self._node_places, slice(None))

    def kappa(self, source: int, target: int, apart: tuple[int, int] | None = None) -> Table:
        """κ(τ,t) of two structures, (T_source, T_target); under a chain prior (T_source, T_target, L).

        With `apart` of those matches alone in which these two nodes do not meet.
        """
        weight, mass = self.matrices(source, target)
        if apart is not None:
            weight[apart] = 0.0
        a, b = self.sources.nodes(source), self.targets.nodes(target)
        if self._is_chain:
            kappa, work = self._chain_room(*weight.shape)
            steps = self.sources.steps, self.targets.steps
            chain_prior.fill_diagonal(
                steps[0], a.start, a.stop, steps[1], b.start, b.stop, weight, kappa, work
            )
            return kappa
        kappa, work = self._pair_room(*weight.shape)
        here, there = self.sources.links, self.targets.links
        pair.fill(
            self._shape, here, a.start, a.stop, there, b.start, b.stop, weight, mass, self._gap, kappa, work
        )
        return kappa

    def matrices(self, source: int, target: int) -> tuple[Array, Array]:
        """weight = c² k_x and mass of two structures, (T_source, T_target) each; mass is 1 for chains."""
        a, size = self.sources.nodes(source), int(self.targets.sizes[target])
        place, room = self._place[target], (a.stop - a.start, size)
        weight, mass = np.empty(room), np.ones(room)
        columns = self._target.codes[place : place + size]
        values = self._values(self._source.codes[a], columns)
        task = Task(self._target, self._source, values, self._log.pushes())
        pushing.fill_weight(a.start, a.stop, place, size, task, weight)
        if not self._is_chain:
            pushing.fill_mass(a.start, a.stop, place, size, task, mass)
        return weight, mass

    def _with_labels(self, values: Array) -> Array:
        """Σ_ρ values(·,ρ) k_y(ρ,·)."""
        return values if self._is_identity else values @ self.label_gram

    def _lay_out(self, order: Array) -> None:
        """Places of target structures in an order, an empty one before each and at the end; blocks."""
        sizes = self.targets.sizes[order]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        self._place = np.empty(len(order), dtype=np.int64)
        self._place[order] = offsets[:-1] + np.arange(len(order)) + 1
        self._places = int(offsets[-1]) + len(order) + 1
        self._order = order
        self._blocks = blocks(offsets, _BLOCK)
        self._block_of = np.empty(len(order), dtype=np.int64)
        for block, (first, last) in enumerate(self._blocks):
            self._block_of[order[first:last]] = block
        self._done = np.zeros(len(self._blocks), dtype=np.int64)
        self._node_places = np.arange(self.targets.offsets[-1]) + np.repeat(
            self._place - self.targets.offsets[:-1], self.targets.sizes
        )
        self._layouts: dict[int, Any] = {}
        types, codes = self.targets.encoded.corpus.types, self._codes
        places = np.full(self._places, codes.counts[1], dtype=np.int32)
        twins = np.full(self._places, pushing.NONE, dtype=np.int32)
        share = np.zeros((self._labels, self._places))
        places[self._node_places] = codes.targets[types]
        twins[self._node_places] = codes.target_twins[types]
        share[:, self._node_places] = self.targets.prior.nodes.T
        self._target = Targets(places, twins, share)

    def _code(self, kernel: Kernel) -> None:
        """Codes and twins of all nodes, the most frequent source codes first."""
        of_source = self.sources.encoded.corpus.types
        frequent = np.flatnonzero(np.bincount(of_source) * _OFTEN > len(of_source))
        given = kernel, self.sources.points, self.targets.points, frequent
        codes = self._codes = Codes(*given, self._n_jobs)
        self._source = Sources(
            codes.sources[of_source].astype(np.int32),
            codes.source_twins[of_source].astype(np.int32),
            self._mixing**2 * codes.own[of_source],
            np.ascontiguousarray(self._with_labels(self.sources.prior.nodes)),
        )
        self._whole_values: Values | None = None
        if codes.is_whole:
            self._whole_values = self._values(self._source.codes, codes.targets)

    def _values(self, source_codes: Array, target_codes: Array) -> Values:
        """The kernel's values for these codes of sources and targets."""
        if self._whole_values is not None:
            return self._whole_values
        row_count, column_count = self._codes.counts
        often = np.bincount(source_codes, minlength=row_count)
        rows = np.argsort(-often, kind="stable")[: np.count_nonzero(often)]
        columns = np.unique(target_codes)
        columns = columns[columns < column_count]
        table = np.zeros((len(rows), len(columns) + 1))
        table[:, :-1] = self._codes.table(rows, columns)
        table *= self._mixing**2
        row_of, column_of = np.zeros(row_count, dtype=np.int32), np.zeros(column_count + 1, dtype=np.int32)
        row_of[rows], column_of[columns] = np.arange(len(rows)), np.arange(len(columns))
        column_of[-1] = len(columns)
        return Values(table, row_of, column_of)

    def _bring_up(self, group: range) -> None:
        """Work off what is pending for these blocks."""
        waiting = [block for block in group if self._done[block] < self._log.count]
        pushes = self._log.pushes()
        while waiting:
            values, taken = self._whole_values, len(waiting)
            if values is None:
                values, taken = self._values_for(waiting, pushes)
            task = Task(self._target, self._source, values, pushes)
            run(partial(self._work_off, task), waiting[:taken], self._n_jobs)
            self._done[waiting[:taken]] = self._log.count
            waiting = waiting[taken:]

    def _bring_all_up(self) -> None:
        for first in range(0, len(self._blocks), _GROUP):
            self._bring_up(range(first, min(first + _GROUP, len(self._blocks))))

    def _values_for(self, group: list[int], pushes: Pushes) -> tuple[Values, int]:
        """The kernel's values for what is pending for the first blocks of a group, and how many blocks."""
        first = int(self._done[group].min())
        ranges = zip(pushes.begins[first:].tolist(), pushes.ends[first:].tolist(), strict=True)
        codes = np.concatenate([self._source.codes[a:b] for a, b in ranges])
        rows = len(np.unique(codes))
        taken, columns = 0, np.empty(0, dtype=np.int32)
        for block in group:
            wider = np.union1d(columns, self._target.codes[slice(*self._span(block))])
            if taken and rows * len(wider) > _TABLE:
                break
            taken, columns = taken + 1, wider
        return self._values(codes, columns), taken

    def _span(self, block: int) -> tuple[int, int]:
        """The places of a block, from the empty one before it to the empty one after it."""
        first, last = self._order[self._blocks[block][0]], self._order[self._blocks[block][1] - 1]
        return int(self._place[first]) - 1, int(self._place[last] + self.targets.sizes[last]) + 1

    def _work_off(self, task: Task, block: int) -> None:
        """Add all that is pending for a block to its scores."""
        first, last = int(self._done[block]), self._log.count
        self._spread(task, block, first, last)

    def _spread(self, task: Task, block: int, first: int, last: int) -> None:
        """Add pushes first..last to the scores of a block."""
        if first == last:
            return
        if self._shape == 0 and self._gap == 0.0 and not self._is_chain and not self.is_scaled:
            runs(*self._span(block), task, first, last, self._mass, self._scores)
            return
        if self._shape and not self.is_scaled:
            make, add = (families, trees) if self._shape == pair.SHAPES["tree"] else (edges, graphs)
            layout = self._layout(block, make)
            add(layout, self.sources.links, task, first, last, self._mass, self._scores)
            return
        members, pushes = self._members(block), task.pushes
        offsets = self.targets.offsets
        structures = self._place[members], offsets[members], offsets[members + 1]
        room = int((pushes.ends - pushes.begins)[first:last].max()), int(self.targets.sizes[members].max())
        if self._is_chain:
            steps, chain_room = (self.sources.steps, self.targets.steps), self._chain_room(*room)
            pushing.chains(structures, steps, task, first, last, (np.empty(room), *chain_room), self._scores)
            return
        links, pair_room = (self.sources.links, self.targets.links), self._pair_room(*room)
        given = np.empty(room), np.empty(room), *pair_room
        pushing.pairs(self._shape, self._gap, structures, links, task, first, last, given, self._scores)

    def _layout(self, block: int, make: Callable[..., Any]) -> Any:
        """How the nodes of a block lie, made once."""
        if block not in self._layouts:
            nodes = self.targets.nodes_of(self._members(block))
            self._layouts[block] = make(self.targets.links, nodes, self._node_places)
        return self._layouts[block]

    def _members(self, block: int) -> Array:
        return self._order[slice(*self._blocks[block])]

    def _read(self, places: Any, nodes: slice) -> Table:
        part = tables.taken(self._scores, (slice(None), places))
        return tables.product(tables.each(np.transpose, part), self.targets.prior.nodes[nodes])

    def _places_of(self, structure: int) -> slice:
        place = int(self._place[structure])
        return slice(place, place + int(self.targets.sizes[structure]))

    def _plain_is_safe(self, kernel: Kernel) -> bool:
        square = self._mixing**2
        bounds = np.array([side.largest(kernel, self.label_gram) for side in (self.sources, self.targets)])
        weight, product = square * np.sqrt(bounds.prod(axis=0))
        longest = int(self.sources.sizes.max()), int(self.targets.sizes.max())
        return bool(pair.plain_is_safe(self._shape, *longest, self._gap, weight, product))

    def _pair_room(self, size_a: int, size_b: int) -> tuple[Table, Any]:
        if self.is_scaled:
            return scaled_table(size_a, size_b), pair.scaled_work(size_a, size_b)
        return plain_table(size_a, size_b), pair.plain_work(size_a, size_b)

    def _chain_room(self, size_a: int, size_b: int) -> tuple[Table, Table]:
        new = scaled_table if self.is_scaled else plain_table
        return new(size_a, size_b, self._labels), new(size_b, self._labels)

    def _zeros(self, *shape: int) -> Table:
        if self.is_scaled:
            return np.zeros(shape), np.full(shape, ZERO)
        return np.zeros(shape)


class _Log:
    """All pushes so far, in arrays that grow."""

    def __init__(self, label_count: int) -> None:
        self.count = self._rows = 0
        self._spans = np.zeros((64, 3), dtype=np.int64)  # begin, end, and the first marked row
        self._marked = np.zeros(64, dtype=np.int64)
        self._gamma = np.zeros((64, label_count))

    def add(self, offsets: Array, marked: Array, gamma: Array) -> None:
        """A push of each structure that has marked nodes; structures lie one after another at `offsets`."""
        owners, counts = np.unique(np.searchsorted(offsets, marked, side="right") - 1, return_counts=True)
        count, rows = self.count + len(owners), self._rows + len(marked)
        self._spans = _with_room(self._spans, count + 1)
        self._marked, self._gamma = _with_room(self._marked, rows), _with_room(self._gamma, rows)
        self._spans[self.count : count, :2] = np.column_stack([offsets[owners], offsets[owners + 1]])
        self._spans[self.count : count + 1, 2] = self._rows + np.concatenate([[0], np.cumsum(counts)])
        self._marked[self._rows : rows] = marked
        self._gamma[self._rows : rows] = gamma
        self.count, self._rows = count, rows

    def pushes(self) -> Pushes:
        begins, ends, firsts = np.ascontiguousarray(self._spans[: self.count + 1].T)
        return Pushes(begins[:-1], ends[:-1], firsts, self._marked, self._gamma)


def _with_room(array: Array, size: int) -> Array:
    if size <= len(array):
        return array
    return np.concatenate([array, np.zeros((max(size, len(array)), *array.shape[1:]), dtype=array.dtype)])


def _constant_mass(sources: Prior, targets: Prior, label_gram: Array) -> float:
    """mass(τ,t) where it is the same for all nodes, else 0."""
    for prior in (sources, targets):
        if (prior.nodes != prior.nodes[0]).any():
            return 0.0
    return float(sources.nodes[0] @ label_gram @ targets.nodes[0])
