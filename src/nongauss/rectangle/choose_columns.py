"""Which columns tell the clusters: a column that does not pay its price in nats is left out.

In a column of noise all clusters are alike. Given the other columns or by itself it says nothing of them, but
the covariances of a fit have room for it, so that eight such columns hide three clear clusters. Whether a set
S of columns is better than another is asked of all columns at once: those outside S follow S in the same way
in all clusters (Raftery and Dean, JASA 2006), so their part of the likelihood is that of one cluster, and

    score(S) = log p(y_S | K clusters) - log p(y_S | one) - price of the parameters that K clusters have more

may be compared. Sets are sought from all columns downwards, the column that tells least first. A column stays
that tells by itself or given those of the best set: where two say the same, both do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.special import softmax

from nongauss.rectangle.config import STAGES, RectangleRecipe
from nongauss.rectangle.data import ColumnView, FloatArray, IntArray, RectangleRows
from nongauss.rectangle.fit import ClusterTask, drawn, first_starts
from nongauss.rectangle.null_tables import normal_scores
from nongauss.rectangle.objective import log_density
from nongauss.rectangle.params import ClusterStructure
from nongauss.rectangle.updates import mixture, starting_shares, structure_around, update_structure

BoolArray = NDArray[np.bool_]

MOST_ROWS = 1000
"""Most rows that columns are judged by."""

STARTS, ONCE, SHORT, LONG = 3, 1, 10, 40
"""Starts of each set of columns; EM iterations of those of the fit, of those of a set, and of the best."""

AT_ONCE = 0.2
"""Share of the columns left that goes at once, one at least."""

PATIENCE = 2
"""Sets in a row without a better score after which no smaller ones are tried, if all columns left tell."""


class ColumnSet(NamedTuple):
    """Some structure columns of numbers and their score in nats; their clusters: probabilities (K, N), laws.

    `gain` (n,): nats that each of these columns gains, given the others, above its price.
    """

    columns: IntArray
    score: float
    share: FloatArray
    structure: ClusterStructure
    gain: FloatArray


def telling_columns(task: ClusterTask, recipe: RectangleRecipe) -> ClusterTask:
    """The task with the columns of numbers alone that tell the clusters, as many as are asked for.

    They are sought only if not every column tells by itself in the likeliest partition that the fit would
    start from, so the starts are made here. Columns of stated rules stay, and rule columns outside the
    structure.
    """
    rows, K = task.rows, recipe.n_clusters
    if recipe.preset or K == 1 or rows.Y.shape[1] < 2:
        return task
    first, starts = drawn(rows, recipe.seed, STAGES[0].most_rows), first_starts(rows, recipe)
    share = _likeliest(first, starts, recipe.kind, ONCE)[0]
    if (marginal_gain(first.Y, first.weight, share[0]) > 0).all():
        return task._replace(starts=np.concatenate([share, starts]))
    tells, best = _tells(drawn(rows, recipe.seed, MOST_ROWS), recipe)
    if tells.any() and not tells.all():
        task = _of_columns(task, tells)
        starts = first_starts(task.rows, recipe)
    log_p = log_density(with_columns(first, best.columns), best.structure, recipe.kind)[0]
    return task._replace(starts=np.concatenate([softmax(log_p, axis=1), starts]))


def _likeliest(
    rows: RectangleRows, share: Float[np.ndarray, "S K N"], kind: str, n_steps: int
) -> tuple[Float[np.ndarray, "1 K N"], float]:
    """The likeliest of some partitions after a few EM iterations of all, bettered, and its log likelihood."""
    share, value = mixture(rows, share, kind, n_steps)
    best = int(value.argmax())
    share, value = mixture(rows, share[best : best + 1], kind, LONG)
    return share, float(value[0])


def _telling(rows: RectangleRows, found: ColumnSet) -> BoolArray:
    """Which of all columns tell the clusters of a set, by themselves or given the set's others, (P,)."""
    tells = marginal_gain(rows.Y, rows.weight, found.share) > 0
    tells[found.columns[found.gain > 0]] = True
    return tells


def _tells(rows: RectangleRows, recipe: RectangleRecipe) -> tuple[BoolArray, ColumnSet]:
    """Which columns tell the clusters of the best set, (P,), and that set.

    It is sought among all columns, then among those that tell while that gains.
    """
    tells, best = np.ones(rows.Y.shape[1], dtype=np.bool_), None
    while True:
        found = best_set(rows, np.flatnonzero(tells), recipe, None if best is None else best.share)
        if best is not None and found.score <= best.score:
            return tells, best
        sought, best, tells = tells, found, _telling(rows, found)
        if (tells == sought).all() or not tells.any():
            return tells, best


def best_set(
    rows: RectangleRows, columns: IntArray, recipe: RectangleRecipe, share: FloatArray | None = None
) -> ColumnSet:
    """The set with the best score among these columns, all but those that tell least, and so on.

    What a column tells is first the greater of what it tells by itself and given the others, then the latter
    alone: noise beside columns of which each says the same is seen by the former, groups in a small
    direction of many columns by the latter. `share` (K, N): a partition to begin with, too.
    """
    every = _judged(rows, columns, share, recipe)
    paths = [_best_on_path(rows, every, recipe, by_itself) for by_itself in (True, False)]
    return max(paths, key=lambda found: found.score)


def _best_on_path(
    rows: RectangleRows, every: ColumnSet, recipe: RectangleRecipe, by_itself: bool
) -> ColumnSet:
    """The best of the sets that come about from the one of all where the columns that tell least go first."""
    best, here, late = every, every, 0
    while True:
        columns = here.columns
        told = np.maximum(here.gain, marginal_gain(rows.Y[:, columns], rows.weight, here.share))
        if len(columns) == 1 or (late >= PATIENCE and (told > 0).all()):
            return best
        n_out = max(1, int(AT_ONCE * len(columns)))
        least = np.argsort(told if by_itself else here.gain, kind="stable")
        here = _judged(rows, np.sort(columns[least[n_out:]]), here.share, recipe)
        best, late = (here, 0) if here.score > best.score else (best, late + 1)


def _judged(
    rows: RectangleRows, columns: IntArray, before: FloatArray | None, recipe: RectangleRecipe
) -> ColumnSet:
    """A set of columns with its best partition, sought anew and from that of the set before (K, N)."""
    part = with_columns(rows, columns)
    kind, K, N = recipe.kind, recipe.n_clusters, float(rows.weight.sum())
    share = starting_shares(part, K, STARTS, recipe.seed)
    if before is not None:
        share = np.concatenate([share, before[None]])
    share, value = _likeliest(part, share, kind, SHORT)
    one, alone = mixture(part, np.ones((1, 1, len(rows))), kind, SHORT)
    price = n_price(len(columns), kind, N)
    score = value - float(alone[0]) - (K - 1) * (price + 0.5 * np.log(N))
    # log p(y_j | other columns): 1 / (S^-1)_jj is the variance that they leave
    structure = _structure_of(part, share, kind)
    left, before_split = _left(structure), _left(_structure_of(part, one, kind))
    size = share[0] @ rows.weight
    gain = 0.5 * (N * np.log(before_split[0]) - size @ np.log(left))
    gain -= (K - 1) * (price - n_price(len(columns) - 1, kind, N))
    return ColumnSet(columns, score, share[0], structure, gain)


def n_price(n_columns: int, kind: str, total: float) -> float:
    """Nats for the parameters of a cluster: half the log of N for each mean, one for each covariance.

    A covariance pays for its error, no more (Akaike 1973), as a piece's does where groups are sought.
    """
    spread = {"diagonal": n_columns, "shared": 0}.get(kind, n_columns * (n_columns + 1) // 2)
    return 0.5 * float(np.log(total)) * n_columns + spread


def _structure_of(rows: RectangleRows, share: Float[np.ndarray, "1 K N"], kind: str) -> ClusterStructure:
    """The laws of a partition's clusters."""
    structure = structure_around(rows, share, kind)
    t_weight = log_density(rows, structure, kind)[1]
    return update_structure(rows, share * rows.weight, t_weight, structure, kind)


def _left(structure: ClusterStructure) -> Float[np.ndarray, "K P"]:
    """The variance of each column in each cluster that the other columns leave."""
    left: FloatArray = 1.0 / np.diagonal(np.linalg.inv(structure.scatter[0]), axis1=-2, axis2=-1)
    return left


def marginal_gain(
    columns: Float[np.ndarray, "N P"], weight: Float[np.ndarray, " N"], share: Float[np.ndarray, "K N"]
) -> Float[np.ndarray, " P"]:
    """Nats that each column by itself gains, through its normal scores, above the price of its parameters.

    Each cluster has the law of all rows, or one of its own if that pays for a mean and a variance. What equal
    values hide of the normal law counts as variance within them.
    """
    # sum_k max(0, n_k/2 (s_k + h - log(v_k + h) - 1) - log N), s_k the mean square of cluster k, h = 1 - v
    scores = normal_scores(columns, weight)
    out = np.empty(scores.shape[1])
    for j, z in enumerate(scores.T):
        seen = ~np.isnan(z)
        w, z = share[:, seen] * weight[seen], z[seen]
        n = np.maximum(w.sum(axis=1), 1e-12)
        mean, square = w @ z / n, w @ z**2 / n
        hidden = max(1e-6, 1.0 - float(n @ square / n.sum()))
        own = np.log(np.maximum(square - mean**2, 0.0) + hidden)
        each = 0.5 * n * (square + hidden - own - 1.0) - np.log(n.sum())
        out[j] = np.maximum(each, 0.0).sum()
    return out


def with_columns(rows: RectangleRows, columns: IntArray) -> RectangleRows:
    """The rows with some of the structure columns of numbers."""
    return RectangleRows(
        rows.X, rows.X_labels, rows.Y[:, columns], rows.Y_labels, rows.weight, rows.grain[:, columns]
    )


def _of_columns(task: ClusterTask, tells: BoolArray) -> ClusterTask:
    """The task without the structure columns that do not tell; rules lose the same columns."""
    rule, look = task.views
    quiet = {look.places[i] for i, tell in zip(look.numeric, tells, strict=True) if not tell}
    keep = np.array([rule.places[i] not in quiet for i in rule.numeric], dtype=np.bool_)
    if task.stated.names or not (keep.any() or rule.labels):
        keep[:] = True
    views = task.views._replace(rule=_view_of(rule, keep), structure=_view_of(look, tells))
    rows = task.rows
    new = RectangleRows(
        rows.X[:, keep], rows.X_labels, rows.Y[:, tells], rows.Y_labels, rows.weight, rows.grain[:, tells]
    )
    cells = task.cells._replace(numbers=task.cells.numbers[:, keep])
    return task._replace(rows=new, cells=cells, views=views)


def _view_of(view: ColumnView, keep: BoolArray) -> ColumnView:
    """The view with some of its columns of numbers."""

    def kept(items: tuple) -> tuple:  # type: ignore[type-arg]
        return tuple(item for item, keeps in zip(items, keep, strict=True) if keeps)

    grains, atoms = (kept(part) if part else () for part in (view.grains, view.atoms))
    return view._replace(numeric=kept(view.numeric), scales=kept(view.scales), grains=grains, atoms=atoms)
