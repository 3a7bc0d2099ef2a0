"""κ(τ,t) of two structures of any shape, in doubles or in scaled numbers.

    κ(τ,t) = weight(τ,t) · u(τ,t) · d(τ,t),    weight = c² k_x,
    mass(τ,t) = Σ_{ρσ} P(ρ|τ) P(σ|t) k_y(ρ,σ)

with u and d of the modules `sequence`, `tree` and `dag`, in which k = weight · mass; `lines` has
one more term. Under a product prior K(τ,t,ρ,σ) = P(ρ|τ) P(σ|t) k_y(ρ,σ) κ(τ,t).

**A bound on κ.** Let |k| ≤ b and |weight| ≤ w, and let the structures have m+1 ≤ n+1 nodes. For
any shape, a feature with its point at a given node is a set of other nodes, and only features of
the same size match. So

    |κ| ≤ w Σ_i C(m,i) C(n,i) b^i ≤ w min( (1+√b)^(m+n), (1+nb)^m ).

At most (m+1)² pairs of runs match, of up to m more nodes: |κ| ≤ w (m+1)² max(1,b)^m. A line is a
pair of nodes, so that |κ| ≤ w (m+1)² (n+1)² max(1,b)^m.
"""

from __future__ import annotations

import math

from fuda.data.graph import Span
from fuda.marginalized.numbers import Array, Cells, empty_cells
from fuda.marginalized.recursions import dag, lines, sequence, tree
from fuda.runtime.compiled import compiled

# The shape of features: runs, subtrees or paths by the shape of structures, or lines; with
# sides, 4 more.
SHAPES = {"sequence": 0, "tree": 1, "dag": 2}
SEQUENCE, TREE, DAG, LINES, SIDED = 0, 1, 2, 3, 4
_LARGEST_LOG = 600.0  # doubles end at e^709; the rest is a margin for sums


@compiled
def fill(
    shape: int, a: Span, b: Span, weight: Array, mass: Array, gap: float, kappa: Cells, work: Cells
) -> None:
    """Write κ of two structures into the corner of `kappa`.

    `weight`, `mass` and `kappa` are indexed from the structures' first nodes and may be larger;
    `shape` is the shape of features, and `gap` is used for sequences only. `kappa` and `work` are
    of the same kind of numbers.
    """
    sided = shape >= SIDED
    if shape == SEQUENCE:
        sequence.fill(a.end - a.begin, b.end - b.begin, weight, mass, gap, kappa, work)
    elif shape % SIDED == TREE:
        tree.fill(a, b, weight, mass, sided, kappa, work)
    elif shape % SIDED == DAG:
        dag.fill(a, b, weight, mass, sided, kappa, work)
    else:
        lines.fill(a, b, weight, mass, sided, kappa, work)


def workspace(is_scaled: bool, size_a: int, size_b: int) -> tuple[Cells, ...]:
    """Allocate the work arrays of `fill`, for structures of up to `size_a` and `size_b` nodes."""
    return tuple(empty_cells(is_scaled, size_a + 1, size_b + 1) for _ in range(4))


@compiled
def log_bound(shape: int, size_a: int, size_b: int, gap: float, weight: float, product: float) -> float:
    """Return a bound on log |κ| from the largest |weight| and the largest |weight · mass|."""
    if weight == 0.0:
        return -math.inf
    few, many = min(size_a, size_b) - 1, max(size_a, size_b) - 1
    if shape == SEQUENCE and gap == 0.0:
        growth = 2 * math.log(few + 1) + few * math.log(max(1.0, product))
    elif shape % SIDED == LINES:
        growth = 2 * math.log((few + 1.0) * (many + 1.0)) + few * math.log(max(1.0, product))
    else:
        growth = min((few + many) * math.log1p(math.sqrt(product)), few * math.log1p(many * product))
    return math.log(weight) + growth


@compiled
def plain_is_safe(shape: int, size_a: int, size_b: int, gap: float, weight: float, product: float) -> bool:
    """Return whether κ, K_U and K_D are certain not to overflow."""
    largest = log_bound(shape, size_a, size_b, gap, max(1.0, weight), product)
    return largest + math.log(max(1.0, product)) < _LARGEST_LOG
