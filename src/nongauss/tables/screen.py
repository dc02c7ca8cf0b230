"""Which columns of a table with more columns than rows go with the target; a fit looks at no others.

Each input column is tested alone, on the rows of the fit: an F test of the ranks of its cells against the
ranks of the target, or between its classes. Those are kept whose tests hold at a false discovery rate
(Benjamini and Hochberg, J. Royal Stat. Soc. B 57, 1995), the clearest few. What these explain is taken out,
the others are tested again, and so on until none holds, or N / log N are kept of N rows (Fan and Lv, J. Royal
Stat. Soc. B 70, 2008, section 4). Ranks see any monotone relation and no outlier; a column that says
something of the target only together with others is not found.

Where very many columns each say a little, those that stand out say less than all do. So rows are left out in
turn, and where ridge regressions predict them better from all columns, all are kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.column import listed
from nongauss.tables.learn import Learned
from nongauss.tables.source import Encode, Source, sample

FloatArray = NDArray[np.float64]

KeepColumns = Literal["auto", "all"] | Sequence[str]
"""Which columns a fit looks at: "auto", of a wide table those that go with the target; "all"; or, of a wide
table, those that are named and beside them those that go with it."""

FEWEST_COLUMNS = 200
"""Columns up to which all are looked at, however few the rows are."""

FALSE_SHARE = 0.1
"""Expected share of the kept columns that have nothing to do with the target."""


ROUNDS = 4
"""Rounds of tests in which the most columns are kept; in each the same number is added."""

N_FOLDS, MOST_FOLDED = 5, 600
"""Parts of the rows that are left out in turn, and the most rows of all parts."""


SAID = " for fewer rows: the fit uses"
"""Part of the warning that columns are left out, by which it is told from others."""


def is_wide(n_rows: int, n_columns: int) -> bool:
    """Are there so many columns that only those are looked at that go with the target?"""
    return n_columns > max(FEWEST_COLUMNS, n_rows)


def screened(
    learned: Learned, source: Source, encode: Encode, keep: KeepColumns, labels: bool = False
) -> Learned:
    """What was learned of a table, without the columns of a wide one that do not go with the target.

    `encode` gives the rows of `source` with their targets as numbers (N, P), class numbers where they are
    `labels`. Warns where columns are left out. Raises InputError for a name in `keep` that is no column.
    """
    names = _input_names(learned)
    always = _places(keep, names)
    n_rows = learned.counted.rows
    if (isinstance(keep, str) and keep == "all") or not is_wide(n_rows, len(names)):
        return learned
    rows = sample(source.map(encode), None).rows
    owner = _owners(learned)
    targets = designs(rows.Y, rows.weight, labels=labels)
    if all_say_more(targets, rows.X, rows.weight, owner):
        warnings.warn(
            f"X has {len(names):,} columns for fewer rows: all of them together predict left-out rows "
            "better than the significant ones do, so the fit uses all.",
            NongaussWarning,
            stacklevel=5,
        )
        return learned
    kept = sorted({*columns_that_go_with(targets, rows.X, rows.weight, owner), *always})
    warnings.warn(
        f"X has {len(names):,} columns{SAID} only those significantly associated with "
        "the target (kept_columns_). keep_columns='all' uses all, a list of names uses these, too.",
        NongaussWarning,
        stacklevel=5,
    )
    return replace(learned, kept=frozenset(kept))


def most_kept(n_rows: int) -> int:
    """Most columns that are kept of a wide table: N / log N."""
    return max(1, int(n_rows / np.log(max(n_rows, 3))))


def columns_that_go_with(
    targets: Sequence[FloatArray], X: NDArray[np.floating], weight: FloatArray, owner: NDArray[np.intp]
) -> list[int]:
    """The numbers of the input columns that go with the target beyond chance, the clearest first.

    X (N, D) encoded cells, `owner` (D,) the input column of each; weight (N,), of which 2 is the row twice.
    `targets`: see `designs`.
    """
    if not X.shape[1]:
        return []
    ranks = np.stack([mid_ranks(cells, weight) for cells in X.T], axis=1)
    kept: list[int] = []
    most = most_kept(len(weight))
    at_once = 1 + most // ROUNDS
    while len(kept) < most:
        is_kept = np.isin(owner, kept)
        p_values = column_p_values(targets, ranks, weight, owner, given=ranks[:, is_kept])
        p_values[kept] = 1.0
        found = discoveries(p_values)[:at_once]
        if not found:
            break
        kept += found
    return kept


def all_say_more(
    targets: Sequence[FloatArray], X: NDArray[np.floating], weight: FloatArray, owner: NDArray[np.intp]
) -> bool:
    """Are rows left out predicted better by ridge regression on all columns than on those that are kept?

    Better beyond two standard errors of the mean gain of a row; the arguments as of `columns_that_go_with`.
    """
    cells, weight = X[:MOST_FOLDED].astype(np.float64), weight[:MOST_FOLDED]
    Y = np.hstack([target[:MOST_FOLDED] for target in targets])
    part = np.arange(len(cells)) % N_FOLDS
    gain = np.zeros(len(cells))
    for fold in range(min(N_FOLDS, len(cells))):
        train, test = part != fold, part == fold
        known = [target[:MOST_FOLDED][train] for target in targets]
        kept = np.isin(owner, columns_that_go_with(known, cells[train], weight[train], owner))
        of_kept, of_all = (_ridge_errors(own, Y, weight, train, test) for own in (cells[:, kept], cells))
        gain[test] = of_kept - of_all
    mean = np.average(gain, weights=weight)
    error = np.sqrt(np.average((gain - mean) ** 2, weights=weight) / max(weight.sum() - 1.0, 1.0))
    return bool(mean > 2.0 * error)


def _ridge_errors(
    X: FloatArray, Y: FloatArray, weight: FloatArray, train: NDArray[np.bool_], test: NDArray[np.bool_]
) -> FloatArray:
    """Squared errors (N,) of the rows of `test` by a ridge regression of Y (N, Q) on X fitted to `train`."""
    from sklearn.linear_model import RidgeCV

    mean = np.average(Y[train], axis=0, weights=weight[train])
    if X.shape[1]:
        ridge = RidgeCV(np.logspace(-1, 7, 17)).fit(X[train], Y[train], sample_weight=weight[train])
        predicted = ridge.predict(X[test]).reshape(-1, Y.shape[1])
    else:
        predicted = mean
    out: FloatArray = ((Y[test] - predicted) ** 2).sum(axis=1)
    return out


def discoveries(p_values: FloatArray) -> list[int]:
    """The places of the tests that hold at the false discovery rate, the clearest first."""
    from scipy.stats import false_discovery_control  # only where it is needed: it takes long to load

    if not len(p_values):
        return []
    holds = np.flatnonzero(false_discovery_control(p_values, method="bh") <= FALSE_SHARE)
    clearest: list[int] = holds[np.argsort(p_values[holds], kind="stable")].tolist()
    return clearest


def designs(Y: NDArray[np.floating], weight: FloatArray, *, labels: bool) -> list[FloatArray]:
    """What columns are tested against, of each target of Y (N, P): its ranks (N, 1), or of the number of
    each row's class, where they are `labels`, a 0/1 column for each class (N, C).
    """
    if labels:
        return [(target[:, None] == np.unique(target)).astype(np.float64) for target in Y.T]
    return [mid_ranks(target, weight)[:, None] for target in Y.T]


def column_p_values(
    targets: Sequence[FloatArray],
    ranks: FloatArray,
    weight: FloatArray,
    owner: NDArray[np.intp],
    given: FloatArray,
) -> FloatArray:
    """The p-value of each input column: the least of its encoded columns and targets, times their number.

    `given` (N, K) are explained away; 1 where a column says nothing.
    """
    n_columns = int(owner.max(initial=-1)) + 1
    p_values = np.stack([f_test(ranks, target, weight, given) for target in targets]).min(axis=0)
    least = np.ones(n_columns)
    np.minimum.at(least, owner, p_values)
    tests = np.maximum(np.bincount(owner, minlength=n_columns), 1) * len(targets)
    out: FloatArray = np.minimum(1.0, least * tests)
    return out


def f_test(cells: FloatArray, design: FloatArray, weight: FloatArray, given: FloatArray) -> FloatArray:
    """p-values (D,) of what `design` (N, Q) says of each column of `cells` (N, D) beyond `given` (N, K).

    F = (R^2 / q) / ((1 - R^2) / (n - 1 - k - q)): R^2 is the share of what `given`, of rank k, leaves
    of the cells that is explained by what it leaves of the design, of rank q; n is the total weight.
    """
    root, n = np.sqrt(weight)[:, None], float(weight.sum())
    cells, design, given = (
        root * (a - np.average(a, axis=0, weights=weight)) for a in (cells, design, given)
    )
    known = _basis(given, given)
    whole = (cells**2).sum(axis=0)
    cells, left_of_design = (a - known @ (known.T @ a) for a in (cells, design))
    basis = _basis(left_of_design, design)
    q, total = basis.shape[1], (cells**2).sum(axis=0)
    total[total <= 1e-9 * whole] = 0.0  # rounding errors of what is explained to the end
    left = n - 1.0 - known.shape[1] - q
    if q == 0 or left <= 0:
        return np.ones(cells.shape[1])
    explained = ((basis.T @ cells) ** 2).sum(axis=0)
    share = np.divide(explained, total, out=np.zeros_like(total), where=total > 0)
    share = np.minimum(share, 1.0 - 1e-15)
    out: FloatArray = fdtrc(q, left, share / q / ((1.0 - share) / left))
    return out


def _basis(columns: FloatArray, scale: FloatArray) -> FloatArray:
    """An orthonormal basis (N, q) of the span of centred columns, as far as these are not next to 0.

    `scale`: columns whose size says what is next to 0.
    """
    vectors, singular, _ = np.linalg.svd(columns, full_matrices=False)
    out: FloatArray = vectors[:, singular > 1e-7 * np.linalg.norm(scale)]
    return out


def mid_ranks(cells: NDArray[np.floating], weight: FloatArray) -> FloatArray:
    """The weight below each cell (N,) and half of that of its equals."""
    _, which = np.unique(cells, return_inverse=True)
    mass = np.bincount(which, weights=weight)
    middle: FloatArray = (np.cumsum(mass) - 0.5 * mass)[which]
    return middle


def _input_names(learned: Learned) -> list[str]:
    """The names of the input columns: those of a frame, x0, x1, ... of an array."""
    return [column.name for column in learned.summary.inputs]


def _owners(learned: Learned) -> NDArray[np.intp]:
    """The number of the input column of each encoded column, (D,)."""
    encoder = learned.encoder
    widths = [len(code.encoded_names) for code in encoder.columns]
    return np.repeat(np.asarray(encoder.places, dtype=np.intp), widths)


def _places(keep: KeepColumns, names: Sequence[str]) -> list[int]:
    """The numbers of the columns that are kept by name. Raises InputError for one that is not there."""
    if isinstance(keep, str):
        return []
    place = {name: number for number, name in enumerate(names)}
    absent = [str(name) for name in keep if str(name) not in place]
    if absent:
        raise InputError(f"keep_columns names {listed(absent)}, which X does not have; correct the names.")
    return [place[str(name)] for name in keep]
