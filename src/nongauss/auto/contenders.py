"""Those that are weighed: the rows of a search, its contenders, who is within reach, and their shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nongauss.auto.candidate import Candidate
from nongauss.auto.inputs import Arcsinh
from nongauss.auto.stacking import mixed, posterior_share, stacked
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.frame import InputTable

REACH, SCREEN_KEEPS, SCREEN_KEEPS_OF_LARGE = 0.1, 3, 2
"""Nats a row behind the best, beyond two standard errors, from which a candidate is out of reach; and how
many are kept at most, also of tables of `LARGE` rows and more."""

REACH_OF_FAMILY = 0.6
"""Of a table of `LARGE` rows the best candidate of each other family is kept too, if it is so near in the
screen: a few hundred rows tell the laws of one family apart, but not which family gains most from more."""


LEAST_GAIN, FEW_ROWS = 2.0, 100.0
"""See `give_shares`."""

MOST_FOR_FEW = 1.5
"""How many times a nat a number that was chosen flatters by at most, where rows are few."""

SHARE_OF_OTHERS = 0.25
"""Share of the inputs that come more than once, from which with other targets, equal rows are no copies."""


@dataclass(frozen=True)
class TrainingRows:
    """Distinct rows in an order by their content: the table, its encoding X (N, D), and the targets.

    `y` (N,): numbers, or the number of each row's class; `target` (N,) what estimators are fitted to;
    `beside` arrays (N,) that they are given by name, such as `exposure`; `left_out` (N,) how much of a row's
    weight is left out where the row is judged, see `weight_left_out`.
    """

    table: InputTable
    X: FloatArray
    y: FloatArray
    target: Any
    weight: FloatArray
    left_out: FloatArray
    beside: Mapping[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def has_exposure(self) -> bool:
        """Are targets counts at exposures, at others of which their scores say nothing?"""
        return "exposure" in self.beside

    def first(self, n: int) -> TrainingRows:
        """The first n rows, a random sample since the order is that of a hash."""
        if n >= len(self):
            return self
        rows = np.arange(n)
        own = {name: values[:n] for name, values in self.beside.items()}
        return TrainingRows(
            self.table.take(rows),
            self.X[:n],
            self.y[:n],
            self.target[:n],
            self.weight[:n],
            self.left_out[:n],
            own,
        )


def weight_left_out(X: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """How much of the weight of each distinct row X (N, D), y (N,) is left out where it is judged: (N,).

    All of it, since equal rows are mostly one that was copied. But where columns have few values, rows with
    equal inputs have other targets too: then equal rows are as many observations, of which one is left out.
    Weights that are not whole numbers do not tell how many.
    """
    if weight.max() <= 1.0 or (weight != np.rint(weight)).any():
        return weight
    _, group = np.unique(X, axis=0, return_inverse=True)
    group = group.ravel()
    targets, total = np.bincount(group), np.bincount(group, weight)
    come_again = total > 1.0
    if not come_again.any() or (targets[come_again] > 1).mean() < SHARE_OF_OTHERS:
        return weight
    return np.minimum(weight, 1.0)


@dataclass
class Contender:
    """A candidate on its way: what was fitted, what it says of rows without them, or why it is out.

    `left_out`: its laws of the judged rows, or probabilities (N, C); `log_density` (N,) of these, less what
    its hyper-parameters flatter, and with the `gain` of the whole on the part of it that these are of.
    `local`: a local law on it; `base`: the name of the contender it stands on; `n_fitted`: the number of rows
    it was fitted to, where these are not all.
    """

    name: str
    candidate: Candidate | None = None
    model: Any = None
    change: Arcsinh | None = None
    left_out: Any = None
    log_density: FloatArray | None = None
    gain: float = 0.0
    seconds: float = 0.0
    why_out: str = ""
    local: Any = None
    base: str = ""
    share: float = 0.0
    n_fitted: int = 0

    @property
    def is_in(self) -> bool:
        """Was it fitted and judged?"""
        return self.log_density is not None


def candidate_of(contender: Contender) -> Candidate:
    """The candidate that a contender is of."""
    assert contender.candidate is not None
    return contender.candidate


def within_reach(
    rivals: list[Contender], trials: dict[str, Contender], weight: FloatArray, most: int = SCREEN_KEEPS
) -> list[Contender]:
    """The rivals near the best on the screen's rows, the best first; the others get the reason why not.

    Without any trial, for want of time, all of them.
    """
    if not trials:
        return [c for c in rivals if not c.why_out]
    values = {name: t.log_density for name, t in trials.items() if t.log_density is not None}
    means = means_of_trials(trials, weight)
    order = sorted((c for c in rivals if c.name in means), key=lambda c: -means[c.name])
    best = values[order[0].name]
    kept: list[Contender] = []
    seen: set[str] = set()
    for contender in order:
        behind, error = mean_and_error(best - values[contender.name], weight)
        alike = candidate_of(contender).alike
        if len(kept) < most and behind <= max(REACH, 2.0 * error) and alike not in seen:
            kept.append(contender)
            seen |= {alike} - {""}
        else:
            contender.why_out = f"{behind:.3g} nats a row behind {order[0].name!r} on {len(weight)} rows"
    return kept


def means_of_trials(trials: dict[str, Contender], weight: FloatArray) -> dict[str, float]:
    """The mean log density of each trial that was judged, by the candidate's name.

    weight (N,): of the rows that were judged, or of more.
    """
    return {
        name: float(np.average(trial.log_density, weights=weight[: len(trial.log_density)]))
        for name, trial in trials.items()
        if trial.log_density is not None
    }


def of_other_families(
    chosen: Sequence[Contender], rivals: Sequence[Contender], trials: dict[str, Contender], weight: FloatArray
) -> list[Contender]:
    """The best rival of each family that no chosen one is of, if the screen has it near enough."""
    means = means_of_trials(trials, weight)
    near = [c for c in rivals if c.name in means and means[c.name] > max(means.values()) - REACH_OF_FAMILY]
    return _best_of_each(near, chosen, means, lambda contender: candidate_of(contender).family)


def past_screen(
    chosen: Sequence[Contender], rivals: Sequence[Contender], trials: dict[str, Contender], weight: FloatArray
) -> list[Contender]:
    """The rivals that are fitted to all rows whatever the screen says of them.

    Of several that are one model of inputs seen in other ways the best; none where such a one is chosen.
    """
    means = means_of_trials(trials, weight)
    asked = [c for c in rivals if c.name in means and candidate_of(c).past_screen]
    return _best_of_each(asked, chosen, means, lambda contender: candidate_of(contender).alike)


def _best_of_each(
    able: Sequence[Contender],
    chosen: Sequence[Contender],
    means: Mapping[str, float],
    kind: Callable[[Contender], str],
) -> list[Contender]:
    """The able contender with the largest mean of each kind that no chosen one is of; they are in again."""
    seen = {kind(contender) for contender in chosen}
    found: list[Contender] = []
    for contender in sorted(able, key=lambda c: -means[c.name]):
        if kind(contender) not in seen:
            seen.add(kind(contender))
            contender.why_out = ""
            found.append(contender)
    return found


def rows_judged(contenders: Sequence[Contender], rows: TrainingRows) -> TrainingRows:
    """The rows by which contenders that are in were judged."""
    return rows.first(min(len(c.log_density) for c in contenders if c.log_density is not None))


def mean_and_error(values: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """The weighted mean of values (N,) and its standard error; infinite where a value is."""
    total = float(weight.sum())
    with np.errstate(invalid="ignore"):
        mean = float(weight @ values / total)
        spread = float(weight @ (values - mean) ** 2 / total) if np.isfinite(mean) else np.inf
    return mean, float(np.sqrt(spread / max(total, 1.0)))


def flattery(n_parameters: float, total: float) -> float:
    """Nats a row by which rows of so much weight in all flatter what was chosen by them.

    About one nat in all for each number that they chose (Akaike 1974), more where rows are few for these
    (Hurvich and Tsai 1989); but length-scales count for less than coefficients do, so not much more.
    """
    left = total - n_parameters - 1.0
    return n_parameters / total * (min(total / left, MOST_FOR_FEW) if left > 0.0 else MOST_FOR_FEW)


def give_shares(contenders: Sequence[Contender], weight: FloatArray) -> None:
    """Set the share of each contender that is in, and why the others of these have none.

    The law without columns predicts alone unless the mixture is ahead of it by `LEAST_GAIN` nats in all. Few
    rows do not tell so much: there the mixture has to be ahead at all, and the law without columns has the
    share in it, beside the best mixture of the others, that `posterior_share` expects, the less of it the
    nearer rows come to `FEW_ROWS`.
    """
    inside = [c for c in contenders if c.log_density is not None]
    densities = np.stack([c.log_density for c in inside if c.log_density is not None])
    weight = weight[: densities.shape[1]]
    plain = np.array([c.candidate is not None and c.candidate.is_constant and not c.base for c in inside])
    shares, least = stacked(densities, weight), LEAST_GAIN
    if plain.any() and not plain.all():
        if weight.sum() < FEW_ROWS:
            shares, least = _beside_plain(densities, plain, weight), 0.0
        if weight @ (mixed(densities, shares) - densities[plain.argmax()]) < least:
            shares = plain.astype(np.float64)
    for contender, share in zip(inside, shares, strict=True):
        contender.share = float(share)
        if not share:
            contender.why_out = "adds less than it costs to what the others predict"


def _beside_plain(densities: FloatArray, plain: NDArray[np.bool_], weight: FloatArray) -> FloatArray:
    """The shares of the best mixture of the others, and beside it that of the law that is `plain` (C,)."""
    shares = np.zeros(len(densities))
    shares[~plain] = stacked(densities[~plain], weight)
    told = posterior_share(mixed(densities, shares), densities[plain.argmax()], weight)
    kept = (1.0 - told) * (1.0 - weight.sum() / FEW_ROWS)
    out: FloatArray = (1.0 - kept) * shares + kept * plain
    return out
