"""Which candidates get a local law of their residuals, and from which rows it is learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nongauss.auto.contenders import Contender, TrainingRows, candidate_of, flattery
from nongauss.auto.limits import Limits
from nongauss.auto.local_law import N_CHOSEN, fit_local
from nongauss.auto.search import Search

MOST_BASES = 2
"""Contenders by log density that get a local law: on five splits of energy the second's gained .03 nats a row
in the average, for a second of 15."""

MOST_GROWN = 50_000
"""Rows of which forests are grown: of protein's 41,157 they gain .36 nats a row against 12,000."""


def bases_of(contenders: Sequence[Contender], rows: TrainingRows) -> list[tuple[Contender, bool]]:
    """Contenders that get a local law, with whether its forest looks at them too.

    They are the `MOST_BASES` best by log density, the best by squared error, which is often one of them, and
    the constant one.
    """
    able = [c for c in contenders if c.is_in and c.candidate is not None and c.candidate.local]
    able = [c for c in able if np.isfinite(c.left_out.std).all() and (c.left_out.std > 0.0).all()]
    density = {c.name: float(rows.weight @ c.log_density) for c in able}  # type: ignore[operator]
    error = {c.name: float(rows.weight @ (c.left_out.mean - rows.y) ** 2) for c in able}
    best = sorted(able, key=lambda c: -density[c.name])[:MOST_BASES]
    best += sorted(able, key=lambda c: error[c.name])[:1]
    bases = {c.name: c for c in best}.values()
    constant = [c for c in contenders if c.is_in and candidate_of(c).is_constant]
    return [*((c, True) for c in bases), *((c, False) for c in constant)]


def add_local(
    made: Contender, base: Contender, rows: TrainingRows, search: Search, limits: Limits, **how: Any
) -> None:
    """Give a contender the local law of another's residuals; see `fit_local` for what else is said.

    It is judged by `rows`, and grown on more where there are more of which its base can leave each out.
    """
    candidate, left_out, grown = candidate_of(base), base.left_out, search.rows.first(MOST_GROWN)
    if len(rows) < len(grown) <= candidate.most_rows and not base.n_fitted:
        table = grown.table if base.change is None else base.change(grown.table)
        said = candidate.left_out(base.model, table, grown.target, grown.left_out, **grown.beside)
        left_out = limits.law(said)
    else:
        grown = rows
    known = grown.X, left_out, grown.y, grown.weight, search.seed
    found = fit_local(*known, n_judged=len(rows), **how)
    n_parameters = candidate.n_parameters(base.model) + N_CHOSEN
    made.local, made.left_out = found.local, found.left_out
    flattered = flattery(n_parameters, float(grown.weight.sum()))
    made.log_density = found.log_density + base.gain - flattered
