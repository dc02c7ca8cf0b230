"""What a model is worth, in words, from tests on held-out rows, and what to try next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from nongauss.report.advice import advice_of
from nongauss.report.evidence import (
    ALPHA,
    Coverage,
    Dependence,
    Difference,
    above_median,
    class_shares,
    confidence,
    difference,
    in_nats,
    interval_coverage,
)
from nongauss.report.metrics import format_figure, in_digits
from nongauss.report.scoring import LabelScores, NumberScores, Scores
from nongauss.tables.column import label_of

BETTER, NO_BETTER, WORSE, UNKNOWN = "better", "no better", "worse", "unknown"
_CLEAR_BAND = 0.2  # width of a chance band below which "calibrated" can be said without a reserve
_MOST_CLASSES = 20
_JUMP = 1e-6  # probability of a single value that is mass
_FEW_VALUES = 1 / 3  # different values a row, below which a target repeats its values


@dataclass(frozen=True)
class Verdict:
    """What a model is worth on rows that it has not seen.

    `worth` is against the model that looks at no column: "better", "no better", "worse", or "unknown" where
    no rows were held out. `calibrated` is None where that is not known. `sentences` say it in words, the
    first alone suffices; `advice` is what to try. The rest are the numbers: `differences` from baselines,
    `coverage` of the 50, 80 and 90 % intervals (of classes: of the most probable one), `n_rows` held out.
    """

    worth: str = UNKNOWN
    calibrated: bool | None = None
    sentences: Sequence[str] = ()
    advice: Sequence[str] = ()
    differences: Sequence[Difference] = ()
    coverage: Sequence[Coverage] = ()
    n_rows: int = 0

    @property
    def lines(self) -> list[str]:
        """All of it, a line each."""
        return [*self.sentences, *(f"To try: {text}" for text in self.advice)]

    def record(self) -> dict[str, Any]:
        """The verdict with the types of JSON."""
        out = asdict(self)
        for number, item in enumerate(self.differences):
            out["differences"][number] |= {"p_value": item.p_value, "decision": item.sign}
        return out


@dataclass(frozen=True)
class Setting:
    """What a verdict has to know beside the scores.

    `target`: its name. `constant`: the baseline that looks at no column. `n_fitted` rows and `n_columns` that
    models were fitted to; `n_kept` of the columns are looked at, None for all. `leaks`: columns that alone
    give the target away. `other_models`: names to try. `lowest`: the smallest target that was seen.
    `warnings`: sentences that the verdict must not be read without. `judges`: what the rows are called that
    judge. `kind`: what the target was taken for, "" where that is not known. `all_weighed`: all models and
    likelihoods of that kind were compared. `group_hints`: columns that may name groups of rows.
    """

    target: str
    constant: str
    n_fitted: int
    n_columns: int
    n_kept: int | None = None
    dependence: Dependence = field(default_factory=Dependence)
    leaks: Sequence[str] = ()
    other_models: Sequence[str] = ()
    lowest: float = -math.inf
    warnings: Sequence[str] = ()
    judges: str = "held-out rows"
    kind: str = ""
    all_weighed: bool = False
    group_hints: Sequence[str] = ()

    @property
    def margin(self) -> float:
        """Nats a row that count as nothing: N^(-4/5), to which a law of N values is known without columns."""
        return float(max(self.n_fitted, 1) ** -0.8)


def no_verdict(why: str) -> Verdict:
    """The verdict on a model of which nothing is known."""
    advice = "evaluate it on a file with known targets (--test FILE), or hold rows out (--test-size 0.2)."
    return Verdict(sentences=[f"The model has not been evaluated: {why}"], advice=[advice])


def verdict(model: Scores, rivals: Mapping[str, Scores], setting: Setting) -> Verdict:
    """The verdict on a model from its scores and those of baselines on the same rows, in the same order."""
    if setting.constant not in rivals:
        return no_verdict(f"the {setting.constant} could not be fitted beside it.")
    if setting.dependence.count(len(model.log_score)) < 2:
        return no_verdict("a single row, or one group of rows, tells too little.")
    differences = [
        _difference(model, scores, name, setting)
        for name, scores in rivals.items()
        if name != setting.constant
    ]
    against = _against_constant(model, rivals[setting.constant], setting)
    worth = {1: BETTER, -1: WORSE, 0: NO_BETTER}[_decision(against)]
    sentences = [_headline(worth, against, model, rivals[setting.constant], setting)]
    found = _others_that_find(rivals, setting) if worth != BETTER else []
    sentences += [_beside(item) for item in differences]
    in_units = _in_units(model, rivals, setting)
    sentences += [*_said_in_units(in_units, model), *_on_repeats(differences, in_units, model)]
    coverage, calibrated, said = _calibration(model, setting.dependence)
    sentences += [*said, *_on_columns(setting), *setting.warnings]
    advice = advice_of(worth == NO_BETTER, against, differences, found, calibrated, model, setting)
    return Verdict(
        worth,
        calibrated,
        sentences,
        advice,
        [*against, *differences, *in_units],
        coverage,
        len(model.log_score),
    )


def _in_units(model: Scores, rivals: Mapping[str, Scores], setting: Setting) -> list[Difference]:
    """CRPS and interval score beside those of all rivals, in units of the target, less being better."""
    if not isinstance(model, NumberScores):
        return []
    out = []
    for measure, values in _IN_UNITS.items():
        for name, rival in rivals.items():
            own, other = values(model), values(rival)
            if own is None or other is None:
                continue
            known = np.isfinite(own) & np.isfinite(other)
            if known.any():
                of = setting.dependence.some(known)
                gain = difference(-own[known], -other[known], of, baseline=name, measure=measure)
                out.append(gain)
    return out


_IN_UNITS: dict[str, Any] = {"CRPS": lambda s: s.crps, "interval score": lambda s: s.interval_score}
"""Scores that are in units of the target, of which less is better."""


def _said_in_units(differences: Sequence[Difference], model: Scores) -> list[str]:
    """A sentence on the CRPS: what it is, and by how much it is lower or higher than each rival's."""
    own = [item for item in differences if item.measure == "CRPS"]
    if not own or not isinstance(model, NumberScores):
        return []
    beside = ", ".join(
        f"{in_digits(abs(item.mean), 2)} ± {in_digits(item.se, 2)} "
        f"{'below' if item.mean >= 0 else 'above'} that of the {item.baseline}"
        for item in own
    )
    value = format_figure("crps", float(np.nanmean(model.crps)))  # type: ignore[arg-type]
    return [f"In units of the target: mean CRPS {value}, {beside} (lower is better)."]


def _on_repeats(
    differences: Sequence[Difference], in_units: Sequence[Difference], model: Scores
) -> list[str]:
    """A caution where a density is better by the log score alone, for a target that repeats its values.

    A density that is narrow at each of the values that occur is high wherever a row falls, and says no better
    which of them comes.
    """
    if not isinstance(model, NumberScores) or (model.mass > _JUMP).any():
        return []
    y = model.y if model.exact is None else model.y[model.exact]
    n_values = len(np.unique(y))
    no_better = {item.baseline for item in in_units if item.measure == "CRPS" and item.sign <= 0}
    names = [item.baseline for item in differences if item.sign > 0 and item.baseline in no_better]
    if not names or n_values > _FEW_VALUES * len(y):
        return []
    return [
        f"The target has only {n_values} different values in these {len(y)} rows. A density that is high at "
        "such values gains log score without telling which of them comes; the CRPS is not better than that "
        f"of the {' and of the '.join(names)}."
    ]


def _difference(model: Scores, other: Scores, name: str, setting: Setting) -> Difference:
    how: dict[str, Any] = {"baseline": name, "margin": setting.margin}
    return difference(model.log_score, other.log_score, setting.dependence, **how)


def _against_constant(model: Scores, constant: Scores, setting: Setting) -> tuple[Difference, Difference]:
    """By log score and by error, each at half the level: two tests find no more in noise than one."""
    how: dict[str, Any] = {"baseline": setting.constant, "alpha": ALPHA / 2}
    error = "wrong labels" if isinstance(model, LabelScores) else "squared error"
    return (
        difference(model.log_score, constant.log_score, setting.dependence, margin=setting.margin, **how),
        difference(-model.error, -constant.error, setting.dependence, measure=error, **how),
    )


def _decision(against: tuple[Difference, Difference]) -> int:
    """1 if either is better and the log score no worse; -1 if the log score is worse; else 0."""
    score, error = against
    if score.sign < 0:
        return -1
    return 1 if score.sign > 0 or error.sign > 0 else 0


def _more_probability(gain: float) -> str:
    """A gain in nats as a person reads it: e^gain times the probability."""
    times = math.exp(min(abs(gain), 50.0))
    if times < 2.0:
        return f"{100 * (times - 1):.0f} % {'more' if gain > 0 else 'less'} probability"
    return f"{times:.3g} times {'the' if gain > 0 else 'less'} probability"


def _figures(model: Scores, constant: Scores) -> str:
    """The plain figure of both: RMSE, or accuracy."""
    ours, theirs = float(np.mean(model.error)), float(np.mean(constant.error))
    if isinstance(model, LabelScores):
        return (
            f"accuracy {format_figure('accuracy', 1 - ours)} against {format_figure('accuracy', 1 - theirs)}"
        )
    if model.exact is not None and not model.exact.any():
        return "every target is a limit, so there is no error to tell"
    if model.exact is not None:
        ours, theirs = (float(np.mean(scores.error[model.exact])) for scores in (model, constant))
    return f"RMSE {format_figure('rmse', math.sqrt(ours))} against {format_figure('rmse', math.sqrt(theirs))}"


def _headline(
    worth: str, against: tuple[Difference, Difference], model: Scores, constant: Scores, setting: Setting
) -> str:
    score, error = against
    plain, rows = _figures(model, constant), f"on {len(model.log_score)} {setting.judges}"
    name = setting.constant
    if worth == BETTER and score.sign > 0:
        reading = f"{_more_probability(score.mean)} for the observed values"
        text = f"Better than the {name}: {in_nats(score)} {rows} ({reading}; {plain})."
        if isinstance(model, NumberScores) and error.sign <= 0:
            text += (
                " The gain is in the predictive distribution as a whole; the squared errors of the predicted "
                "means alone do not differ significantly."
            )
        return text
    if worth == BETTER:
        error_only = f"in its error ({plain}) {rows}, but not in its log score"
        return f"Better than the {name} {error_only}: {in_nats(score)}."
    if worth == WORSE:
        return f"Worse than the {name}: {in_nats(score)} {rows} ({plain}). Do not use it as it is."
    if score.mean > score.se:
        return (
            f"Not significantly better than the {name}: {in_nats(score)} {rows} ({plain}). With so few rows "
            f"a gain below {score.reach:.2g} nats a row cannot be told from none; hold out more rows."
        )
    return (
        f"No better than the {name}, as far as {rows[3:]} can tell: {in_nats(score)} ({plain}). What the "
        f"columns say about {setting.target!r} is not beyond chance on these rows: a gain above "
        f"{score.reach:.2g} nats a row would have been detected, a smaller one may have been missed."
    )


def _on_columns(setting: Setting) -> list[str]:
    """A sentence on the columns of a wide table, of which only those associated with the target are used."""
    if setting.n_kept is None:
        return []
    few = "none is" if setting.n_kept == 0 else f"{setting.n_kept} {'is' if setting.n_kept == 1 else 'are'}"
    return [
        f"Of the {setting.n_columns:,} columns (for only {setting.n_fitted:,} rows), {few} significantly "
        f"associated with {setting.target!r}; the model uses no others. Effects that show only in several "
        "columns together are not found in this way."
    ]


def _beside(item: Difference) -> str:
    """A sentence on a baseline that looks at the columns."""
    if item.impossible:
        return f"Worse than {item.baseline}: {in_nats(item)}."
    word = {1: "Better than", -1: "Worse than", 0: "No different from"}[item.sign]
    if item.sign == 0 and replace(item, margin=0.0).sign != 0:
        word = "Hardly different from"
    return f"{word} {item.baseline}: {in_nats(item)}."


def _others_that_find(rivals: Mapping[str, Scores], setting: Setting) -> list[Difference]:
    """Baselines that look at the columns and are better than the one that does not."""
    constant = rivals[setting.constant]
    found = []
    for name, scores in rivals.items():
        if name != setting.constant:
            item = _difference(scores, constant, name, setting)
            found += [item] if item.sign > 0 else []
    return found


def _calibration(model: Scores, dependence: Dependence) -> tuple[list[Coverage], bool | None, list[str]]:
    """The coverage, whether it is what it should be, and sentences that say so."""
    if isinstance(model, LabelScores):
        return _label_calibration(model, dependence)
    coverage = interval_coverage(model.pit, dependence)
    shown = " / ".join(f"{100 * c.level:.0f}" for c in coverage)
    held = " / ".join(f"{100 * c.held:.0f}" for c in coverage)
    band = " / ".join(_band(c) for c in coverage)
    fact = f"{shown} % intervals held {held} % (chance band {band})"
    if (model.mass > _JUMP).all():
        fact += "; whole numbers at the ends of an interval count in part"
    signs = {c.sign for c in coverage} - {0}
    lean = above_median(model.pit, dependence)
    said = []
    if not signs:
        clear = coverage[-1].high - coverage[-1].low < _CLEAR_BAND
        said.append(f"Calibrated{'' if clear else ', as far as so few rows can tell'}: {fact}.")
    else:
        word = {frozenset({-1}): "too narrow", frozenset({1}): "too wide"}.get(
            frozenset(signs), "of the wrong shape"
        )
        said.append(f"Intervals are {word}: {fact}.")
    if lean.sign:
        word = "low" if lean.sign > 0 else "high"
        said.append(
            f"Predictions tend to be too {word}: {100 * lean.held:.0f} % of the values were above the "
            f"predicted median (chance band {_band(lean)})."
        )
    return coverage, not signs and not lean.sign, said


def _band(c: Coverage) -> str:
    return f"{100 * c.low:.0f}–{100 * c.high:.0f}"


def _label_calibration(
    model: LabelScores, dependence: Dependence
) -> tuple[list[Coverage], bool | None, list[str]]:
    places = model.places
    top = confidence(model.probabilities, places, dependence)
    fact = (
        f"the most probable class had a probability of {100 * top.level:.0f} % on average and was right in "
        f"{100 * top.held:.0f} % of the rows (chance band {_band(top)})"
    )
    word = {0: "Calibrated", -1: "Overconfident", 1: "Underconfident"}[top.sign]
    said = [f"{word}: {fact}."]
    off = []
    if model.probabilities.shape[1] <= _MOST_CLASSES:
        shares = class_shares(model.probabilities, places, dependence)
        off = [(label, c) for label, c in zip(model.classes, shares, strict=True) if c.sign]
    for label, c in off[:2]:
        said.append(
            f"Class {label_of(label)!r} had a probability of {100 * c.level:.0f} % on average and occurred "
            f"in {100 * c.held:.0f} % of the rows (chance band {_band(c)})."
        )
    return [top], top.sign == 0 and not off, said
