"""Why laws were chosen, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nongauss.auto.contenders import Contender, mean_and_error
from nongauss.auto.search import Search
from nongauss.predictive.distribution import FloatArray

_SHOWN = 5e-4
"""Nats a row below which a difference is shown as none."""


def mean_of(contender: Contender, weight: FloatArray) -> float:
    """Mean log density of the judged rows."""
    assert contender.log_density is not None
    return mean_and_error(contender.log_density, weight[: len(contender.log_density)])[0]


def _with_shares(chosen: Sequence[Contender]) -> str:
    """The names of laws that are averaged, with their shares."""
    return f"the average of {', '.join(f'{c.name!r} ({c.share:.2f})' for c in chosen)}"


def why(contenders: Sequence[Contender], search: Search) -> str:
    """A sentence: which laws were chosen, and how far they are ahead of the best that is not among them."""
    inside = [c for c in contenders if c.log_density is not None]
    chosen = sorted((c for c in inside if c.share > 0.0), key=lambda c: -c.share)
    weight = search.rows.weight[: len(chosen[0].log_density)]  # type: ignore[arg-type]
    with np.errstate(divide="ignore"):
        terms = np.stack([c.log_density + np.log(c.share) for c in chosen])
    mixed = np.logaddexp.reduce(terms, axis=0)
    value, _ = mean_and_error(mixed, weight)
    names = f"{chosen[0].name!r} alone" if len(chosen) == 1 else _with_shares(chosen)
    others = [c for c in inside if c.share == 0.0]
    following = max(others, key=lambda c: mean_of(c, weight)) if others else None
    ahead, error = (0.0, 0.0)
    if following is not None:
        ahead, error = mean_and_error(mixed - following.log_density, weight)
    is_best = ahead > -_SHOWN
    out = f"{len(inside)} of {len(contenders)} candidates were compared on left-out rows; "
    out += f"{names} {'predicts best' if is_best else 'is used'} ({value:.3f} nats a row)."
    few = next((c for c in chosen if c.n_fitted), None)
    if few is not None:
        judged = "which" if few.n_fitted == len(weight) else f"{len(weight)} of which"
        out += f" {few.name!r} was fitted to {few.n_fitted} rows, on {judged} all were compared."
    if following is not None:
        place = "behind" if is_best else "ahead, within chance" if -ahead < 2.0 * error else "ahead"
        out += (
            f" The best of the others, {following.name!r}, is {abs(ahead):.3f} (error {error:.3f}) {place}."
        )
    is_short = search.clock.stopped or search.clock.has_cut
    if is_short or any("time" in c.why_out for c in contenders):
        out += " There was not enough time for all."
    elif search.clock.budget is not None:
        out += f" The time budget of {search.clock.budget:g} s was enough for all that were worth a fit."
    return out
