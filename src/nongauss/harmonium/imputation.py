"""What a harmonium says of missing cells: its features, read out for each column in its own units.

The expected counts of a harmonium share a total that a table need not have, and its real columns end nowhere;
so a cell is not taken from the visible layer. Of training rows some cells are hidden, the features that the
others tell are found, and each column is learned from these: the normal score of an ordered column by ridge
regression, few values or labels by a logistic one. What features do not tell is then the column's own
distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray
from scipy.special import ndtri, softmax

from nongauss.core.records import persistable
from nongauss.harmonium.data import HarmoniumTable, encode, unlabelled
from nongauss.harmonium.exponential_families import Array
from nongauss.harmonium.feature_law import FeatureLaw, law_of_features
from nongauss.harmonium.predict import Machine
from nongauss.harmonium.visible_units import UnitCoder
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.learn_margins import learn_margins
from nongauss.tables.margins import LabelCells, Margin, OrderedCells, RowNoise, row_hashes
from nongauss.tables.rows import content_hash, rounded

FloatArray = NDArray[np.float64]

MOST_MARGIN_ROWS, MOST_ROWS = 20_000, 1000
"""Rows by which the columns' distributions, and what the features say of them, are known."""
N_ROUNDS, HIDDEN = 5, 0.2
"""Times that cells of these rows are hidden, and the share of them in each."""
FEW_VALUES = 10
"""An ordered column of at most so many values is read out value by value."""
MOST_DIRECTIONS = 100
"""Columns are read out of the features' so many main directions: else 500 features took minutes to read."""
N_DRAWS = 20
"""Draws of the features of a row."""
OWN_SALT = 15_485
"""What is added to the seed for what cells have of their own, so that first draws are those of fewer."""
MOST_SHARED = 0.9
"""Most of what is left of a column that the uncertainty of the features may be."""


@persistable("harmonium.Readout")
class Readout(NamedTuple):
    """What the features h (K,) say of a column: weights (K + 1, L), the last a level.

    Of a normal score L is 1, `sd` its spread about the prediction, and `shared` the part of the deviation of
    drawn features from their means that it keeps; of values or labels L logits, `sd` 0.
    """

    weights: Float64[np.ndarray, "K L"]
    sd: float
    shared: float


@persistable("harmonium.CellReader")
class CellReader(NamedTuple):
    """How cells are read out of features: what reads columns, their distributions, what features say."""

    encoder: TableEncoder
    margins: tuple[Margin, ...]
    readouts: tuple[Readout, ...]


def learn_reader(table: HarmoniumTable, machine: Machine, seed: int) -> CellReader | None:
    """How cells are read out of the features of a fit; None of a table that is sparse or in parts."""
    if table.part is None or table.encoder is None:
        return None
    name = "Harmonium"
    X, missing = encode(table.coder, table.part.X, name)
    gaps = np.zeros(X.shape, dtype=np.bool_) if missing is None else missing
    hashes = content_hash(rounded(X), rounded(gaps))
    counted = table.part.weight > 0
    order = np.argsort(np.where(counted, hashes, np.uint64(2**64 - 1)), kind="stable")[: int(counted.sum())]
    columns = table.encoder.raw(table.part.X, name, warn=False)
    of_margins = order[:MOST_MARGIN_ROWS]
    margins, cells = learn_margins(
        table.encoder, [column.take(of_margins) for column in columns], table.part.weight[of_margins]
    )
    rows = order[:MOST_ROWS]
    readouts = _learn(machine, table, margins, X[rows], gaps[rows], cells[: len(rows)], seed)
    return CellReader(table.encoder, margins, readouts)


def _learn(
    machine: Machine,
    table: HarmoniumTable,
    margins: tuple[Margin, ...],
    X: Array,
    gaps: NDArray[np.bool_],
    cells: FloatArray,
    seed: int,
) -> tuple[Readout, ...]:
    """The readout of each column, from cells (N, J) that were hidden from encoded rows X (N, D)."""
    rng = np.random.default_rng(seed)
    owner = _owners(table.coder, margins)
    hidden = [rng.random(cells.shape) < HIDDEN for _ in range(N_ROUNDS)]
    laws = [_law_given_others(machine, X, gaps, owner, gone) for gone in hidden]
    basis = _directions(np.concatenate([law.mean for law in laws]))
    known = ~np.isnan(cells)
    return tuple(
        _readout(margin, basis, laws, [gone[:, j] & known[:, j] for gone in hidden], cells[:, j])
        for j, margin in enumerate(margins)
    )


def _law_given_others(
    machine: Machine, X: Array, gaps: NDArray[np.bool_], owner: NDArray[np.intp], hidden: NDArray[np.bool_]
) -> FeatureLaw:
    """The law of the features of encoded rows X (N, D) without what is `hidden` (N, J) beside their gaps."""
    is_hidden = hidden[:, owner] if hidden.shape[1] else gaps
    unseen = gaps | (is_hidden & (owner >= 0))
    return law_of_features(machine, unlabelled(np.where(unseen, np.float32(0), X), unseen))


def _directions(features: FloatArray) -> FloatArray:
    """The main directions of features (n, K) as columns (K, R): all of them as they are where K is small."""
    K = features.shape[1]
    if K <= MOST_DIRECTIONS:
        return np.eye(K)
    basis: FloatArray = np.linalg.eigh(np.cov(features.T))[1][:, -MOST_DIRECTIONS:]
    return basis


def _owners(coder: UnitCoder, margins: tuple[Margin, ...]) -> NDArray[np.intp]:
    """The margin of each unit's input column, -1 where it has none: (D,)."""
    of_place = {coder.table.places[margin.flat]: j for j, margin in enumerate(margins)}
    return np.array([of_place.get(owner, -1) for owner in coder.owners.tolist()], dtype=np.intp)


def _readout(
    margin: Margin,
    basis: FloatArray,
    laws: list[FeatureLaw],
    chosen: list[NDArray[np.bool_]],
    cells: FloatArray,
) -> Readout:
    """What features say of cells (N,), those `chosen` in each round, by their parts along `basis` (K, R).

    `laws`: of the features of all N rows in each round, in which these cells were hidden.
    """
    features = np.concatenate([law.mean[own] for law, own in zip(laws, chosen, strict=True)])
    cells = np.concatenate([cells[own] for own in chosen])
    if _by_value(margin):
        return _logits(margin, basis, features, cells)
    low, high = margin.span(cells)
    score = ndtri(np.clip(0.5 * (low + high), 1e-6, 1.0 - 1e-6))
    from sklearn.linear_model import RidgeCV

    if len(score) < 3 or not features.shape[1]:
        return Readout(np.zeros((features.shape[1] + 1, 1)), 1.0, 0.0)
    parts = features @ basis
    model = RidgeCV(np.logspace(-1, 4, 6)).fit(parts, score)
    left, slope = score - model.predict(parts), basis @ model.coef_
    variance = _left_variance(left, parts, float(model.alpha_))
    each = [law.variance(slope)[own] for law, own in zip(laws, chosen, strict=True)]
    told = float(np.concatenate(each).mean())
    shared = min(1.0, MOST_SHARED * variance / told) if told > 0 else 0.0
    weights = np.append(slope, model.intercept_)[:, None]
    return Readout(weights, float(np.sqrt(max(variance - shared * told, 1e-6))), float(np.sqrt(shared)))


def _left_variance(left: FloatArray, parts: FloatArray, penalty: float) -> float:
    """Mean square error of new cells by a ridge regression on `parts` (n, R) that leaves `left` (n,).

    Its p degrees of freedom are missing in the error of its own cells, and add as much to that of others:
    |left|^2 / (n - p) (1 + p / n) (Hastie, Tibshirani and Friedman 2009, sections 3.4 and 7.4).
    """
    n = len(left)
    squares = np.linalg.svd(parts - parts.mean(axis=0), compute_uv=False) ** 2
    p = min(1.0 + float((squares / (squares + penalty)).sum()), 0.5 * n)
    return float(left @ left) / (n - p) * (1.0 + p / n)


def _by_value(margin: Margin) -> bool:
    """Is a column read out value by value?"""
    return margin.is_label or (margin.is_whole and margin.n_values <= FEW_VALUES)


def _logits(margin: Margin, basis: FloatArray, features: FloatArray, cells: FloatArray) -> Readout:
    """Logits of the values of a column by logistic regression; of too few cells the shares alone."""
    from sklearn.linear_model import LogisticRegression

    n_values, n_features = len(margin.edge) // 2, features.shape[1]
    value = np.searchsorted(margin.edge[::2], cells)
    weights = np.zeros((n_features + 1, n_values))
    weights[-1] = np.log(np.maximum(margin.shares(), 1e-9))
    counts = np.bincount(value, minlength=n_values)
    if (counts > 1).sum() < 2 or not n_features:
        return Readout(weights, 0.0, 1.0)
    model = LogisticRegression(C=1.0, max_iter=300).fit(features @ basis, value)
    own = model.classes_
    coefficients, level = model.coef_ @ basis.T, model.intercept_
    if len(own) == 2:
        coefficients, level = np.vstack([0 * coefficients, coefficients]), np.append(0.0, level)
    level = level - np.log(np.exp(level - level.max()).sum()) - level.max()
    weights[:-1, own], weights[-1, own] = coefficients.T, level
    return Readout(weights, 0.0, 1.0)


def complete(
    reader: CellReader,
    machine: Machine,
    encoded: tuple[Array, NDArray[np.bool_]],
    missing: NDArray[np.bool_],
    seed: int,
    n: int | None,
) -> list[OrderedCells | LabelCells]:
    """What the `missing` cells (N, J) may be, given encoded rows (N, D) and which of their units are missing.

    n joint draws; None: as many as usual, for laws alone. Features are drawn from their law given the seen
    cells, so that cells of a row that hang on one feature are drawn together.
    """
    hashes = row_hashes(*encoded)
    own_noise = RowNoise(hashes, seed + OWN_SALT)
    places = _places(RowNoise(hashes, seed), machine.params.n_components, n)
    own = [own_noise.uniform(len(reader.margins)) for _ in places]
    mean, draws = np.empty(places.shape[1:]), np.empty_like(places)
    for at, rows in machine.blocks(*encoded):
        law = law_of_features(machine, rows)
        mean[at] = law.mean
        for drawn, place in zip(draws, places, strict=True):
            drawn[at] = law.draw(place[at])
    return [
        _cells(margin, readout, np.flatnonzero(missing[:, j]), mean, draws, [each[:, j] for each in own])
        for j, (margin, readout) in enumerate(zip(reader.margins, reader.readouts, strict=True))
    ]


def _places(noise: RowNoise, n_features: int, n: int | None) -> FloatArray:
    """Places (S, N, K) of S draws of the features in their laws; n is None: spread evenly over each law.

    Of S independent draws a feature of probability .45 is on in S / 4 or S / 2, and a law that has a mode for
    each would have its median in either, by chance (McKay, Beckman and Conover 1979: Latin hypercubes).
    """
    places = np.stack([noise.uniform(n_features) for _ in range(N_DRAWS if n is None else n)])
    return places if n is not None else (places.argsort(axis=0).argsort(axis=0) + 0.5) / N_DRAWS


def _cells(
    margin: Margin,
    readout: Readout,
    rows: NDArray[np.intp],
    mean: FloatArray,
    draws: FloatArray,
    own: list[FloatArray],
) -> OrderedCells | LabelCells:
    """What drawn features say of the missing cells of one column, drawn at places `own` (N,) of laws."""
    W, level = readout.weights[:-1], readout.weights[-1]
    uniform = np.stack(own)[:, rows]
    expected = mean[rows] @ W + level
    drawn = [expected + readout.shared * ((z - mean)[rows] @ W) for z in draws]
    if _by_value(margin):
        each = [softmax(logits, axis=1) for logits in drawn]
        up_to = [np.cumsum(p, axis=1) for p in each]
        chosen = [
            np.minimum((c < u[:, None]).sum(axis=1), c.shape[1] - 1)
            for c, u in zip(up_to, uniform, strict=True)
        ]
        return LabelCells(rows, softmax(expected, axis=1), np.array(chosen, dtype=np.intp))
    scores = np.array([part[:, 0] for part in drawn]).reshape(len(draws), len(rows))
    cells = scores + readout.sd * ndtri(uniform)
    return OrderedCells(rows, scores, np.full_like(scores, readout.sd), cells)
