"""What to try next, from the tests on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nongauss.report.evidence import Difference, in_nats
from nongauss.report.scoring import NumberScores, Scores
from nongauss.tables.words import typed

if TYPE_CHECKING:
    from nongauss.report.verdict import Setting

_MANY_BELOW = 0.05  # share of rows whose intervals reach below 0
_NEVER_BELOW_0 = ("positive", "positive with zeros", "count", "share", "censored time")


def advice_of(
    is_no_better: bool,
    against: tuple[Difference, Difference],
    differences: Sequence[Difference],
    found: Sequence[Difference],
    calibrated: bool | None,
    model: Scores,
    setting: Setting,
) -> list[str]:
    """Sentences on what to try next, the most telling first."""
    out = []
    if setting.leaks:
        names = ", ".join(repr(name) for name in setting.leaks[:3])
        out.append(
            f"check {names}: by itself it almost determines {setting.target!r}; if it is known only after "
            "the target, leave it out (--ignore) and fit again."
        )
    ahead = sorted((item for item in differences if item.sign < 0), key=lambda item: item.mean)
    if found:
        names = " and ".join(f"{item.baseline} ({in_nats(item)})" for item in found)
        out.append(f"the columns are informative: {names} did better than the {setting.constant}.")
    if (found or ahead) and setting.other_models:
        names = " or ".join(setting.other_models)
        kind = setting.other_models[0]
        out.append(f"another model, such as {kind} (--model {names}; nongauss compare compares them all).")
    if ahead:
        out.append(
            f"use {ahead[0].baseline} instead, which predicted these rows better ({in_nats(ahead[0])}; "
            "see nongauss.report.baselines), unless you need to interpret this model."
        )
    if isinstance(model, NumberScores):
        out += _advice_on_law(model, calibrated, setting)
    if is_no_better and not found:
        out.append(_more_rows(against[0], setting))
    return out


def _advice_on_law(model: NumberScores, calibrated: bool | None, setting: Setting) -> list[str]:
    """Advice where the predictive distribution does not fit the numbers; nothing that was done already."""
    out = []
    below = setting.lowest >= 0 and float((model.lower < 0).mean()) > _MANY_BELOW
    if below and setting.kind not in _NEVER_BELOW_0:
        kind = "positive" if setting.lowest > 0 else "count, or positive with zeros"
        out.append(
            f"{setting.target!r} is never below 0 but the intervals are; declare its kind (--kind {kind})."
        )
    elif calibrated is False:
        kind = f", if {setting.kind!r} is not what it is" if setting.kind else ""
        likelihood = "" if setting.all_weighed else ", or another likelihood (--set likelihood=NAME)"
        out.append(f"another kind of target (--kind){kind}{likelihood}.")
    if calibrated is False and setting.dependence.groups is None:
        if setting.group_hints:
            name = setting.group_hints[0]
            out.append(
                f"hold rows with the same {name!r} out together, if they belong together "
                f"(--group {typed(name)})."
            )
        else:
            out.append("if rows form groups or are in time order, say so (--group COLUMN, --split last).")
    return out


def _more_rows(score: Difference, setting: Setting) -> str:
    """Advice where the model is no better than the constant."""
    if setting.n_columns > setting.n_fitted:
        return (
            f"fewer columns, or more rows: among {setting.n_columns:,} columns for {setting.n_fitted:,} rows "
            "only strong relations can be told from chance; name the columns that you have reason to "
            "believe in (--use A,B)."
        )
    if score.se > 0 and 0 < score.mean < score.reach:
        times = (score.reach / score.mean) ** 2
        if times < 20:
            return f"more rows: with about {times:.1f} times as many, a gain of this size would be detected."
    return f"more rows, or columns that are more closely related to {setting.target!r}."
