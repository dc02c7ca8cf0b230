"""Targets of numbers: counts, shares, grades, codes, amounts, and what in the values and the name says so."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

from nongauss.tables.column import ColumnKind, TargetKind
from nongauss.tables.words import is_named

FloatArray = NDArray[np.float64]

MOST_LABELS = 50  # a target of more labels is rather text, amounts or dates that were not read as such
MOST_GRADES = 11  # grades go from 0 to 10 at most, unless declared
MOST_STEPS = 13  # and half steps from 0 to 6
MOST_CODES, LARGEST_CODE = 10, 20.0  # so few whole numbers, so near to 0, may be codes or grades
CLEAR_SKEW = 1.0  # skewness from which positive numbers call for a positive likelihood
WIDE = 0.3  # standard deviation as a share of the mean; below it positive numbers are as good as any
_ROWS_A_CODE, _ROWS_A_GRADE = 5, 2
_FREQUENT = 5  # rows on both sides of a number that is never seen, by which it is skipped rather than rare
_LARGEST_WHOLE = 2.0**53  # beyond, a float64 does not tell whole numbers apart
_FEWEST_ZEROS, _MASS_AT_ZERO = 3, 0.02
_FEWEST_SHARES = 10  # different numbers in [0, 1] that tell shares by their range
_NEAR_END = 3.0  # whole per cents so near to an end that others may be rounded to it
_SHARE_SPREAD = 0.1  # numbers in [0, 1] of a smaller range are rather measurements
_EVIDENT = 0.05
_APART = 0.06  # nats a row by which counts may differ from the nearest law of counts
_FEW_LEVELS, _EXPECTED = 12, 5.0  # levels that are compared one by one; zeros that would be missed
_SLACK = 0.02  # nats a row by which a Gaussian may be nearer to numbers that are still counts
_SMALL, _SEEN = 5, 0.05  # small counts are seen if at least this share of the rows is at most so many
_MOST_ROWS, _MOST_COLUMNS, _SHUFFLES = 2_000, 50, 500

CLASS_WORDS = (
    *("class", "type", "label", "species", "category", "digit", "cluster", "code", "kind", "genre"),
    *("variety", "cultivar", "segment", "breed", "brand", "gender", "sex", "region", "colour", "color"),
)
GRADE_WORDS = (
    *("rating", "score", "star", "grade", "level", "quality", "stage", "rank", "satisfaction", "severity"),
    *("agreement", "likert", "opinion", "importance", "difficulty", "priority", "mark", "degree", "tier"),
    *("condition", "review", "evaluation", "risk", "pain", "stress", "health", "happiness", "overall"),
)
SHARE_WORDS = ("share", "fraction", "proportion", "ratio", "rate", "probability", "prob", "occupancy")
PERCENT_WORDS = ("percent", "percentage", "pct", "%")

PERCENT_NOTE = (
    "The fit takes percent as shares from 0 to 1; figures and tables of predictions are in percent."
)

REAL_TOO = (ColumnKind.REAL, "It holds numbers.")
LABEL_TOO = (ColumnKind.LABEL, "It holds labels if the size and the order of its numbers do not matter.")
GRADE_TOO = (ColumnKind.GRADE, "It holds grades if its numbers are steps from low to high.")
COUNT_TOO = (ColumnKind.COUNT, "It holds counts if it says how often something happened.")


def numbers_kind(values: FloatArray, name: str, *, unit: str = "", inputs: Any = None) -> TargetKind:
    """What numbers (N,) without gaps are, two different ones at least.

    `unit`: what stood behind them, such as "%"; what has another unit is no share. `inputs`: a decoded table
    of the other columns.
    """
    levels, times = np.unique(values, return_counts=True)
    freq = times.astype(np.float64)
    whole = bool((levels == np.round(levels)).all()) and bool(np.abs(levels).max() < _LARGEST_WHOLE)
    if len(levels) == 2 and (whole or freq.min() >= 2):
        near = (COUNT_TOO, REAL_TOO) if levels[0] == 0 and levels[1] == 1 else (REAL_TOO,)
        what = f"It holds two different {'whole ' * whole}numbers ({levels[0]:g} and {levels[1]:g})."
        return TargetKind(ColumnKind.BINARY, what, near)
    if _is_percent(levels, name, unit):
        return _share(levels, freq, 100.0)
    if whole:
        return _whole(values, levels, freq, name, inputs)
    steps = _steps(levels, len(values), name)
    if steps:
        return _grades(levels, steps, (REAL_TOO, LABEL_TOO))
    in_unit = not unit and levels[0] >= 0 and levels[-1] <= 1
    spread = len(levels) >= _FEWEST_SHARES and levels[-1] - levels[0] >= _SHARE_SPREAD
    if in_unit and (spread or is_named(name, SHARE_WORDS)):
        return _share(levels, freq, 1.0)
    return _amount(values, levels, freq)


def _is_percent(levels: FloatArray, name: str, unit: str) -> bool:
    """Are these percent of something: from 0 to 100, and said to be so by their unit or name?"""
    if levels[0] < 0 or levels[-1] > 100 or levels[-1] <= 1:
        return False
    return unit == "%" or bool(is_named(name, PERCENT_WORDS))


def _share(levels: FloatArray, freq: FloatArray, scale: float) -> TargetKind:
    """Shares of a whole, which is 1 or 100; how many are exactly nothing or all of it."""
    of = "percent from 0 to 100" if scale == 100.0 else "numbers from 0 to 1"
    at = [int(freq[levels == end].sum()) for end in (0.0, scale)]
    exact = [f"{count:,} are exactly {end:g}" for count, end in zip(at, (0.0, scale), strict=True) if count]
    reason = f"It holds {of}" + (f", of which {' and '.join(exact)}." if exact else ", all between.")
    notes: tuple[str, ...] = (PERCENT_NOTE,) if scale == 100.0 else ()
    percent = levels / scale * 100.0
    whole = bool(np.allclose(percent, np.round(percent), rtol=0.0, atol=1e-6))
    if whole and not exact and (percent[0] <= _NEAR_END or percent[-1] >= 100.0 - _NEAR_END):
        low, high, top = (f"{end:g}" for end in (levels[0], levels[-1], scale))
        notes += (
            f"The target holds whole percent, from {low} to {high}: 0 and {top} may still come by rounding, "
            "and laws of shares between them give these no probability; --set likelihood=zero_one_beta does.",
        )
    return TargetKind(ColumnKind.SHARE, reason, (REAL_TOO,), notes, scale=scale)


def _whole(values: FloatArray, levels: FloatArray, freq: FloatArray, name: str, inputs: Any) -> TargetKind:
    """Whole numbers: codes, grades, counts, or amounts that were rounded."""
    n, k, low, high = len(values), len(levels), levels[0], levels[-1]
    shown = f"{k} different whole numbers from {low:g} to {high:g}"
    word = is_named(name, CLASS_WORDS)
    if word and k <= MOST_LABELS and 5 * k <= n:
        near = (GRADE_TOO,) if k <= MOST_GRADES else ()
        return TargetKind(ColumnKind.LABEL, f"It holds {shown}, codes as its name ({word}) says.", near)
    word = is_named(name, GRADE_WORDS)
    if word and k <= MOST_GRADES and n >= _ROWS_A_GRADE * k and abs(low) <= 10:
        return _grades(
            levels,
            f"It holds {shown}, which are steps according to its name ({word}).",
            (LABEL_TOO, REAL_TOO),
        )
    why_not = "reach below 0" if low < 0 else "look like steps" if word else looks_like_counts(levels, freq)
    if not why_not and k <= MOST_CODES and n >= _ROWS_A_CODE * k and _skips_numbers(levels, freq):
        return _codes(values, levels, freq, inputs)
    if not why_not:
        reason = (
            f"It holds whole numbers from {low:g} to {high:g}, including small ones, with a "
            "distribution typical of counts."
        )
        codes = (LABEL_TOO,) if k <= MOST_CODES else ()
        return TargetKind(ColumnKind.COUNT, reason, (REAL_TOO, *codes))
    if k <= MOST_CODES and n >= _ROWS_A_CODE * k and low >= -LARGEST_CODE / 2 and high <= LARGEST_CODE:
        return _codes(values, levels, freq, inputs)
    found = _amount(values, levels, freq)
    if low < 0:
        return found
    reason = f"{found.reason[:-1]}. They are whole, but not treated as counts, because they {why_not}."
    return TargetKind(found.kind, reason, (*found.near, COUNT_TOO))


def _skips_numbers(levels: FloatArray, freq: FloatArray) -> bool:
    """Is a whole number never seen between two that are frequent, as no law of counts would have it?

    Numbers in equal steps (0, 5, 10) are rounded amounts rather than codes.
    """
    steps = np.diff(levels)
    beside = np.minimum(freq[:-1], freq[1:])
    return bool(((steps > 1) & (beside >= _FREQUENT)).any() and steps.min() != steps.max())


def _codes(values: FloatArray, levels: FloatArray, freq: FloatArray, inputs: Any) -> TargetKind:
    """A few whole numbers near 0: labels, unless their order is evident."""
    k, low, high = len(levels), levels[0], levels[-1]
    shown = f"It holds {k} different whole numbers from {low:g} to {high:g}"
    numbers = (COUNT_TOO, REAL_TOO) if low >= 0 else (REAL_TOO,)
    if high - low != k - 1:
        return TargetKind(
            ColumnKind.LABEL, f"{shown} with gaps between, as codes have.", (GRADE_TOO, *numbers)
        )
    if rises_and_falls(freq):
        why = f"{shown}, which are frequent in the middle and rare at both ends, as steps are."
        return _grades(levels, why, (*numbers, LABEL_TOO))
    if inputs is not None and k >= 5:
        codes = np.searchsorted(levels, values)
        if order_chance(codes, levels, input_matrix(inputs)) < _EVIDENT:
            why = f"{shown}, and their order is that in which they go with the other columns."
            return _grades(levels, why, (*numbers, LABEL_TOO))
    return TargetKind(ColumnKind.LABEL, f"{shown}, codes for all that can be seen.", (GRADE_TOO, *numbers))


def _steps(levels: FloatArray, n: int, name: str) -> str:
    """Why numbers with fractions are steps (3.5 stars), "" where they are not."""
    if len(levels) > MOST_STEPS or n < _ROWS_A_GRADE * len(levels) or np.abs(levels).max() > 10:
        return ""
    step = float(np.diff(levels).min())
    places = (levels - levels[0]) / step
    if np.abs(places - np.round(places)).max() > 1e-6:
        return ""
    shown = (
        f"It holds {len(levels)} different numbers from {levels[0]:g} to {levels[-1]:g} in steps of {step:g}"
    )
    word = is_named(name, GRADE_WORDS)
    if word:
        return f"{shown}, grades as its name ({word}) says."
    is_full = len(levels) >= 0.8 * (places[-1] + 1)
    return f"{shown}." if step == 0.5 and is_full and n >= _ROWS_A_CODE * len(levels) else ""


def _grades(levels: FloatArray, reason: str, near: tuple[tuple[ColumnKind, str], ...]) -> TargetKind:
    shown = tuple(f"{level:g}" for level in levels)
    return TargetKind(ColumnKind.GRADE, reason, near, levels=shown, order="numbers by size")


def _amount(values: FloatArray, levels: FloatArray, freq: FloatArray) -> TargetKind:
    """Real numbers: any, positive ones with a long tail, or positive ones and zeros."""
    low, high = levels[0], levels[-1]
    zeros = int(freq[levels == 0].sum())
    if low == 0 and zeros >= max(_FEWEST_ZEROS, _MASS_AT_ZERO * len(values)):
        share = 100.0 * zeros / len(values)
        reason = f"It holds 0 in {zeros:,} rows ({share:.0f} %), else positive numbers up to {high:.4g}."
        return TargetKind(ColumnKind.ZEROS, reason, (REAL_TOO,))
    if low > 0:
        skew, wide = skewness(values), is_wide(values)
        if skew > CLEAR_SKEW and wide:
            reason = f"It holds positive numbers with a long tail to the right (skewness {skew:.1f})."
            return TargetKind(ColumnKind.POSITIVE, reason, (REAL_TOO,))
        positive = (ColumnKind.POSITIVE, "It holds positive numbers, which cannot fall below 0.")
        near = (positive,) if wide else ()
        return TargetKind(ColumnKind.REAL, f"It holds numbers from {low:.4g} to {high:.4g}.", near)
    return TargetKind(ColumnKind.REAL, f"It holds numbers from {low:.4g} to {high:.4g}.")


def skewness(values: FloatArray) -> float:
    """The third moment of standardised values, 0 of equal ones."""
    size = float(np.abs(values).max())
    z = values / size if size > 0 else values
    z = z - z.mean()
    spread = float(np.sqrt((z * z).mean()))
    return float(((z / spread) ** 3).mean()) if spread > 0 else 0.0


def is_wide(values: FloatArray) -> bool:
    """Is the spread of positive numbers so large beside their mean that a Gaussian would reach below 0?"""
    scale = float(values.max())
    z = values / scale
    return float(z.std()) >= WIDE * float(z.mean())


def looks_like_counts(levels: FloatArray, freq: FloatArray) -> str:
    """ "" where whole numbers >= 0 are spread like counts, else why not, as the end of a sentence.

    `levels` (K,) occur `freq` (K,) times. Counts have a variance that is not below their mean (a Poisson
    variable whose rate varies has a larger one), small ones among them, and a negative binomial or Poisson
    law near to them: log-likelihoods of the laws with their mean and variance are compared.
    """
    n = float(freq.sum())
    mean = float(freq @ levels) / n
    variance = float(freq @ (levels - mean) ** 2) / n
    if variance < mean * (1.0 - 3.0 * math.sqrt(2.0 / n) if n > 18 else 0.0) or variance < 0.6 * mean:
        return f"vary less than counts do (variance {variance:.3g}, mean {mean:.3g})"
    small = (levels <= _SMALL) & (levels > 0)
    if float(freq[levels <= _SMALL].sum()) < _SEEN * n or not small.any():
        return f"are seldom {_SMALL} or less, as counts often are"
    above = levels > 0
    if float(freq[small].sum()) < _SEEN * float(freq[above].sum()):
        return f"are, 0 left out, seldom {_SMALL} or less, as counts often are"
    share = freq / n
    law = float(share @ _count_log_prob(levels, mean, variance))
    sd = math.sqrt(variance)
    normal = np.log(np.maximum(ndtr((levels + 0.5 - mean) / sd) - ndtr((levels - 0.5 - mean) / sd), 1e-300))
    if law < float(share @ normal) - _SLACK:
        return "are distributed like measurements, not like counts"
    if levels[0] > 0 and n * math.exp(float(_count_log_prob(np.zeros(1), mean, variance)[0])) > _EXPECTED:
        return "hold no 0, although counts this small would"
    if levels[-1] - levels[0] == len(levels) - 1 and len(levels) <= _FEW_LEVELS:
        apart = float(share @ np.log(share)) - law
        if levels[0] == 0 and share[0] > 1 / 3 and len(levels) >= 5:
            apart = min(apart, (1 - share[0]) * _apart_above_zero(levels[1:], freq[1:]))
        if apart > _APART + len(levels) / (2 * n):
            return "do not have a distribution typical of counts"
    return ""


def _apart_above_zero(levels: FloatArray, freq: FloatArray) -> float:
    """Nats a row between the counts above 0 and the nearest law of such counts.

    Poisson given that it is above 0, whose rate has rate / (1 - e^-rate) = mean, or negative binomial by
    moments.
    """
    share = freq / freq.sum()
    mean = float(share @ levels)
    variance = float(share @ (levels - mean) ** 2)
    rate = mean
    for _ in range(50):
        rate = mean * -math.expm1(-rate)
    laws = []
    for m, v in ((rate, rate), (mean, variance)):
        if m > 0:
            zero = float(_count_log_prob(np.zeros(1), m, v)[0])
            laws.append(float(share @ _count_log_prob(levels, m, v)) - math.log(-math.expm1(zero)))
    return float(share @ np.log(share)) - max(laws)


def _count_log_prob(k: FloatArray, mean: float, variance: float) -> FloatArray:
    """Log probability of counts k under the negative binomial with this mean and variance, else Poisson."""
    if variance <= mean * 1.001:
        poisson: FloatArray = k * math.log(mean) - mean - gammaln(k + 1)
        return poisson
    r = mean * mean / (variance - mean)
    p = r / (r + mean)
    out: FloatArray = gammaln(k + r) - gammaln(r) - gammaln(k + 1) + r * math.log(p) + k * math.log1p(-p)
    return out


def rises_and_falls(freq: FloatArray) -> bool:
    """Do frequencies (K,) rise to one inner peak and fall? Six labels in any order do so in 4 % of cases.

    Of the K! orders of different frequencies 2^(K-1) - 2 have one peak that is not at an end.
    """
    k = len(freq)
    if (2.0 ** (k - 1) - 2) / math.factorial(min(k, 100)) > 0.05:
        return False
    peak = int(np.argmax(freq))
    steps = np.diff(freq)
    return 0 < peak < k - 1 and bool((steps[:peak] > 0).all() and (steps[peak:] < 0).all())


def order_chance(codes: NDArray[np.intp], levels: FloatArray, inputs: FloatArray) -> float:
    """How often numbers dealt to K labels at random go with the inputs as closely as their own do.

    `codes` (N,) are into `levels` (K,), `inputs` (N, D) are standardised. Closeness is the share of the
    variance of f[codes] that ridge regression explains, f'Sf / f'Tf with S = D'HD and T = D'D of the centred
    indicators D (N, K). Of five labels each number has its place by chance in 2 of 120 cases.
    """
    rows = slice(None, None, max(1, len(codes) // _MOST_ROWS))
    x, c = inputs[rows, :_MOST_COLUMNS], codes[rows]
    x = x - x.mean(axis=0)
    indicator = np.eye(len(levels))[c]
    indicator -= indicator.mean(axis=0)
    cross = x.T @ indicator
    gram = x.T @ x + 0.01 * len(c) * np.eye(x.shape[1])
    explained, total = cross.T @ np.linalg.solve(gram, cross), indicator.T @ indicator
    orders = _orders(len(levels))
    f = np.vstack([levels, levels[orders]])
    closeness = ((f @ explained) * f).sum(axis=1) / np.maximum(((f @ total) * f).sum(axis=1), 1e-300)
    return float((closeness[1:] >= closeness[0] * (1 - 1e-9)).mean())


def _orders(k: int) -> NDArray[np.intp]:
    """All orders of k things, or `_SHUFFLES` at random of more than five."""
    if k <= 5:
        return np.array(list(itertools.permutations(range(k))), dtype=np.intp)
    rng = np.random.default_rng(0)
    return np.array([rng.permutation(k) for _ in range(_SHUFFLES)], dtype=np.intp)


def input_matrix(inputs: Any) -> FloatArray:
    """A decoded table (see `InputTable`) as a standardised matrix: numbers, and 0/1 columns for labels."""
    parts = []
    for place in range(min(inputs.shape[1], 2 * _MOST_COLUMNS)):
        column = inputs.column(place)
        if column.values is not None:
            parts.append(column.values[:, None])
        elif 1 < len(column.levels) <= 20:
            parts.append(np.eye(len(column.levels) + 1)[column.codes][:, :-1])
    if not parts:
        return np.zeros((len(inputs), 0))
    x = np.hstack(parts)
    with np.errstate(invalid="ignore"):
        centre = np.nanmean(np.where(np.isnan(x).all(axis=0), 0.0, x), axis=0)
        x = np.where(np.isnan(x), centre, x) - centre
        sd = x.std(axis=0)
    scaled: FloatArray = x[:, sd > 0] / sd[sd > 0]
    return scaled
