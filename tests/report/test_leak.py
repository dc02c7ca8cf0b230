from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nongauss.report.leak import exact_pairs, nearly_all, told_of_pairs
from report.test_rows import numbers


@pytest.fixture
def clinic():
    """Waiting times to the day, the dates of referral and appointment, and columns that have a part in it."""
    rng = np.random.default_rng(0)
    n = 200
    referred = pd.Timestamp("2024-01-02") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    wait = np.ceil(rng.gamma(2, 15, n)).astype(int)
    seen = rng.random(n) < 0.8
    frame = pd.DataFrame(
        {
            "referred": referred.strftime("%d/%m/%Y"),
            "appointment": (referred + pd.to_timedelta(wait, unit="D")).strftime("%d/%m/%Y"),
            "birth": pd.date_range("1950-01-01", periods=n, freq="50D"),
            "age": rng.normal(50, 10, n),
            "nearly": wait + rng.normal(0, 2, n),
        }
    )
    frame.loc[~seen, "appointment"] = None
    return frame, np.where(seen, wait, wait // 2)


def test_two_dates_whose_difference_is_the_target_are_named(clinic):
    found = exact_pairs(*clinic, dates_only=True)
    assert found == [("referred", "appointment", "sum or difference")]
    (said,) = told_of_pairs(found, "wait_days")
    assert said.startswith("Columns 'referred' and 'appointment' together give 'wait_days' away")
    assert "--ignore appointment" in said


def test_sums_products_and_ratios_are_found_and_noisy_ones_are_not():
    rng = np.random.default_rng(1)
    a, b, c = rng.gamma(5, 2, (3, 300))
    frame = pd.DataFrame({"a": a, "b": b, "c": c})
    assert exact_pairs(frame, a - 2 * b) == [("a", "b", "sum or difference")]
    assert exact_pairs(frame, (a / b).round(3)) == [("a", "b", "product or ratio")]
    assert exact_pairs(frame, a * c) == [("a", "c", "product or ratio")]
    assert exact_pairs(frame, a + b + 0.1 * rng.normal(size=300)) == []
    assert exact_pairs(frame, np.round(a / 5)) == []
    frame["again"] = a - 2 * b  # a column that does it alone makes no pairs
    assert exact_pairs(frame, a - 2 * b) == [("a", "b", "sum or difference")]


def test_a_look_is_worth_it_from_an_r2_of_98_on():
    y = np.random.default_rng(0).normal(size=500)
    constant = numbers(y, np.zeros(500))
    for noise, worth in ((0.1, True), (0.3, False)):
        assert nearly_all(numbers(y, y + noise * np.tile([1.0, -1.0], 250)), constant) is worth
