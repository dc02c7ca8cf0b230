"""Effects of groups of rows, such as schools, patients or shops: the random intercepts of mixed models.

f(x, g) = h(x) + b_g with h a Gaussian process over the other columns and b_g ~ N(0, s^2) independent (Gelman
and Hill 2006, ch. 12, with h in the place of the line). To the kernel this is one more term, `GroupEffect`; a
group that was not seen has b ~ N(0, s^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.sparse_gp.kernels import FloatArray, GroupEffect, Kernel, Space, Sum
from nongauss.sparse_gp.params import basis
from nongauss.sparse_gp.predict import GPPosterior
from nongauss.tables.column import listed
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import read_input
from nongauss.tables.kinds.label import MOST_LEVELS
from nongauss.tables.source import Part


def with_labels(part: Part, columns: Sequence[str | int], estimator_name: str) -> Part:
    """A part of a table with columns, by name or number, whose numbers are labels. Raises InputError."""
    table = read_input(part.X, estimator_name)
    for column in columns:
        table = table.as_labels(column)
    return part._replace(X=table)


def group_code(encoder: TableEncoder, group: str | int) -> ColumnCode:
    """How the column of groups is encoded. Raises InputError where it is left out."""
    place = place_of(encoder, group)
    code = next(code for code, own in zip(encoder.columns, encoder.places, strict=True) if own == place)
    if code.role == "labels":
        return code
    why = "it holds one group only" if code.role == "constant" else f"it has more than {MOST_LEVELS} groups"
    why = "it has no cell" if code.role == "empty" else why
    raise InputError(f"group={group!r} cannot have effects, as {why}; fit without group.")


def names_of(encoder: TableEncoder) -> tuple[str, ...]:
    """The names of all input columns."""
    return encoder.feature_names or tuple(f"x{i}" for i in range(encoder.n_features))


def place_of(encoder: TableEncoder, column: str | int) -> int:
    """The number of an input column that is given by its name or number. Raises InputError without one."""
    names = names_of(encoder)
    if column in names:
        return names.index(column)
    if isinstance(column, str) or not -len(names) <= column < len(names):
        raise InputError(f"group={column!r} is not among the table's {listed(names)}.")
    return range(len(names))[column]


def check_label_columns(kernel: Kernel, encoder: TableEncoder) -> None:
    """Raises InputError where a kernel of labels looks at all columns and some are numbers."""
    numbers = [str(code.name) for code in encoder.columns if code.role == "numeric"]
    if numbers and kernel.labels_everywhere:
        raise InputError(
            f"The kernel compares labels of all columns, and {listed(numbers)} hold numbers; name those that "
            "are labels, as in 'matern52 + categorical(school)'."
        )


def with_group(kernel: Kernel, space: Space, group: str) -> Kernel:
    """A kernel of the other columns, and the effects of groups beside it."""
    others = tuple(name for name in space.names if name != group)
    return Sum((kernel.restricted(others),)) + GroupEffect((group,))


def effect_variance(kernel: Any, theta: FloatArray, space: Space) -> float:
    """s^2 of the effects in a kernel, 0 of one without."""
    pieces = kernel.pieces(theta, space) if isinstance(kernel, Sum) else []
    return sum(part.variance(own, space) for part, own in pieces if isinstance(part, GroupEffect))


def strangers(encoder: TableEncoder, group: str | int, new: Any) -> NDArray[np.intp]:
    """The number of each new row's group if the fit has not seen it, else -1: (N,).

    Rows that lack a group have one each: nothing says that two are of the same.
    """
    place, code = place_of(encoder, group), group_code(encoder, group)
    kept = range(encoder.n_features) if encoder.kept is None else encoder.kept
    column = encoder.rows_kept(new).column(list(kept).index(place)).as_labels()
    seen = code.read(column, [], []).codes
    assert column.codes is not None
    assert seen is not None
    lacks = column.codes < 0
    own = np.where(lacks, len(column.levels) + np.arange(len(lacks)), column.codes)
    return np.where(seen < 0, own, -1)


def effects(
    posteriors: Sequence[GPPosterior], shares: FloatArray, code: ColumnCode, scale: float
) -> pd.DataFrame:
    """Mean and standard deviation of b_g for each level g, over posteriors with these shares (C,).

    b_g given u is k_b(g, Z) K^-1 u, of which q(u) = N(m, S) gives k_b' alpha and s^2 - k_b' W k_b. `scale`:
    what a unit of the first f is worth, below 0 where the target falls as f rises. With several functions
    there is a row for each of these and each level.
    """
    first = posteriors[0]
    rows = _one_row_a_level(first.space, code)
    mean, square = np.zeros((2, len(code.levels), len(first.offset)))
    for posterior, share in zip(posteriors, shares, strict=True):
        own_mean, own_variance = _moments(posterior, rows)
        mean += share * own_mean
        square += share * (own_variance + own_mean**2)
    sd = np.sqrt(np.maximum(square - mean**2, 0.0))
    unit = np.where(np.arange(len(first.offset)) == 0, scale, 1.0)  # further functions have logarithms
    tables = [
        pd.DataFrame({"effect": unit[l] * mean[:, l], "sd": abs(unit[l]) * sd[:, l]}, index=list(code.levels))
        for l in range(len(unit))
    ]
    if len(tables) == 1:
        return tables[0]
    names = [name.strip() or "f" for name in first.likelihood.latent_names]
    for table, name in zip(tables, names, strict=True):
        table.insert(0, "function", name)
    return pd.concat(tables)


def _one_row_a_level(space: Space, code: ColumnCode) -> FloatArray:
    """An encoded row for each level, zero in all other columns."""
    rows = np.zeros((len(code.levels), len(space.group)))
    mine = [at for at, own in enumerate(space.group) if space.names[own] == code.name]
    shown = code.levels[1:] if code.is_pair else code.levels
    for at, level in zip(mine, shown, strict=False):
        rows[code.levels.index(level), at] = 1.0
    return rows


def _moments(posterior: GPPosterior, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the effects under one posterior: (G, L) each."""
    L, n_components = len(posterior.offset), len(posterior.alpha)
    mean, square = np.zeros((2, len(rows), L))
    for l in range(L):
        kernel: Any = posterior.kernels[posterior.kernel_of[l]]
        theta = posterior.thetas[posterior.kernel_of[l]]
        part, own = next(p for p in kernel.pieces(theta, posterior.space) if isinstance(p[0], GroupEffect))
        at = basis(part, own, posterior.space, posterior.Z, rows)
        for c in range(n_components):
            each = at.K.T @ posterior.alpha[c, l]
            left = at.diagonal - np.einsum("mn,mn->n", at.K, posterior.W[c, l] @ at.K)
            mean[:, l] += each / n_components
            square[:, l] += (np.maximum(left, 0.0) + each**2) / n_components
    return mean, square - mean**2
