"""Small columns with what each is as a target: (name of the column, cells, word of the kind)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
)

rng = np.random.default_rng(0)
N = 300


def pick(values, share=None, n=N):
    return rng.choice(np.array(values, dtype=object), n, p=share)


def numbers(values, share=None, n=N):
    return rng.choice(np.asarray(values), n, p=share)


AGREE = ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]
BELL6 = [0.01, 0.04, 0.42, 0.4, 0.12, 0.01]
x = rng.normal(size=N)
zero_inflated = np.where(rng.random(N) < 0.9, 0.0, np.round(rng.gamma(2.0, 900.0, N), 2))

PUBLIC = [
    ("target", load_iris().target, "label"),
    ("species", load_iris().target_names[load_iris().target], "label"),
    ("cultivar", load_wine().target, "label"),
    ("y", load_wine().target, "label"),
    ("y", load_digits().target, "label"),
    ("digit", load_digits().target, "label"),
    ("target", load_digits().target, "label"),
    ("target", load_breast_cancer().target, "binary"),
    ("target", load_diabetes().target, "real"),
    ("petal length", load_iris().data[:, 2], "real"),
    ("proline", load_wine().data[:, 12], "real"),
    ("area", load_breast_cancer().data[:, 3], "positive"),
    ("area error", load_breast_cancer().data[:, 13], "positive"),
    ("Situps", np.tile(load_linnerud().data[:, 1], 5), "real"),
]

NUMBERS = [
    ("y", rng.normal(size=N), "real"),
    ("y", rng.lognormal(0, 1, N), "positive"),
    ("y", 1e6 + rng.lognormal(0, 1, N), "real"),
    ("temperature", np.round(rng.normal(15, 8, N), 1), "real"),
    ("price", np.round(rng.normal(24000, 2500, N)), "real"),
    ("price", np.round(rng.lognormal(10, 0.8, N)), "positive"),
    ("income", np.round(rng.lognormal(8, 1, N)), "positive"),
    ("year", np.round(1990 + 5 * x + 2 * rng.normal(size=N)), "real"),
    ("year", numbers([2015, 2016, 2017, 2018, 2019, 2020]), "real"),
    ("exam", np.clip(np.round(rng.normal(66, 14, N)), 0, 100), "real"),
    ("score", np.clip(np.round(rng.normal(66, 14, N)), 0, 100), "real"),
    ("balance", rng.integers(-500, 500, N), "real"),
    ("salary", 100_000 + rng.integers(0, 50_000, N), "real"),
    ("age", rng.integers(18, 90, N), "real"),
    ("rings", rng.poisson(30, N), "real"),
    ("strength", np.round(rng.gamma(4, 9, N), 2), "positive"),
]

COUNTS = [
    ("visits", rng.poisson(np.exp(0.7 + 0.5 * x)), "count"),
    ("y", rng.poisson(np.exp(0.7 + 0.5 * x)), "count"),
    ("claims", numbers([0, 1, 2, 3], [0.88, 0.09, 0.02, 0.01]), "count"),
    ("y", numbers([0, 1, 2, 3], [0.7, 0.2, 0.07, 0.03]), "count"),
    ("bikes", rng.negative_binomial(1.2, 1.2 / (1.2 + 25), N), "count"),
    ("bikes", 1 + rng.negative_binomial(1.2, 1.2 / (1.2 + 150), N), "positive"),
    ("y", rng.poisson(8, N), "count"),
    ("y", rng.poisson(8, N).astype(float), "count"),
    ("goals", rng.poisson(1.4, 90), "count"),
    ("y", rng.poisson(np.exp(1 + 1.2 * x)), "count"),
    ("y", np.where(rng.random(N) < 0.6, 0, rng.poisson(3, N)), "count"),
]

SHARES = [
    ("y", rng.beta(2, 5, N), "share"),
    ("fat share", np.clip(rng.normal(0.02, 0.005, N), 0.001, 1), "share"),
    ("y", np.where(rng.random(N) < 0.2, 0, rng.beta(2, 5, N)), "share"),
    ("occupancy", np.select([x < -1, x > 1], [0.0, 1.0], rng.beta(2, 2, N)), "share"),
    ("pct_poor", np.round(100 * rng.beta(2, 8, N), 1), "share"),
    ("moisture %", np.round(100 * rng.beta(5, 5, N)), "share"),
    ("decay", 0.95 + 0.05 * rng.random(N), "real"),
]

ZEROS = [
    ("claims paid", zero_inflated, "positive with zeros"),
    ("y", zero_inflated, "positive with zeros"),
    ("spending", np.round(zero_inflated), "positive with zeros"),
    (
        "rain",
        np.where(rng.random(N) < 0.4, 0.0, np.round(rng.gamma(0.8, 6, N) + 0.1, 1)),
        "positive with zeros",
    ),
]

GRADES = [
    ("quality", numbers([3, 4, 5, 6, 7, 8], BELL6), "grade"),
    ("y", numbers([3, 4, 5, 6, 7, 8], BELL6), "grade"),
    ("target", numbers([3, 4, 5, 6, 7, 8], BELL6), "grade"),
    ("rating", rng.integers(1, 6, N), "grade"),
    ("stars", numbers([1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0]), "grade"),
    ("y", numbers([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0]), "grade"),
    ("satisfaction", rng.integers(0, 11, N), "grade"),
    ("pain_level", rng.integers(0, 4, N), "grade"),
    ("answer", pick(AGREE), "grade"),
    ("y", pick(["Poor", "Fair", "Good", "Excellent"]), "grade"),
    ("y", pick(["low", "medium", "high"]), "grade"),
    ("size", pick(["S", "M", "L", "XL"]), "grade"),
    ("y", pick(["never", "rarely", "sometimes", "often", "always"]), "grade"),
    ("y", pick(["mild", "moderate", "severe"]), "grade"),
    ("y", pick(["no", "maybe", "yes"]), "grade"),
    ("education", pick(["Primary school", "High school", "Bachelor's", "Master's", "PhD"]), "grade"),
    ("y", pick(["unlikely", "likely", "very likely"]), "grade"),
    ("cut", pick(["Fair", "Good", "Very Good", "Premium", "Ideal"]), "grade"),
    ("age", pick(["<18", "18-25", "26-40", "41-65", "65+"]), "grade"),
    ("y", pick(["Stage I", "Stage II", "Stage III", "Stage IV"]), "grade"),
    ("grade", pick(["A", "B", "C", "D"]), "grade"),
]

LABELS = [
    ("y", pick(["a", "b", "c"]), "label"),
    ("y", pick(["A", "B", "C", "D"]), "label"),
    ("y", pick(["red", "green", "blue"]), "label"),
    ("type", numbers([1, 2, 3, 5, 6, 7]), "label"),
    ("y", numbers([1, 2, 3, 5, 6, 7]), "label"),
    ("y", rng.integers(1, 5, N), "label"),
    ("cluster", rng.integers(0, 20, N), "label"),
    ("code", numbers([101, 102, 205, 310]), "label"),
    ("class", numbers([1, 2, 3], [0.6, 0.3, 0.1]), "label"),
    ("town", pick([f"town {i}" for i in range(30)], n=600), "label"),
    ("y", [True, False, True] * 20, "binary"),
    ("y", [0, 1, 1, 0] * 9, "binary"),
    ("y", [-1.0, 1.0, -1.0] * 9, "binary"),
    ("y", pick(["yes", "no"]), "binary"),
]

OTHERS = [
    ("when", pd.Series(pd.date_range("2020-01-01", periods=N)), "date"),
    ("when", pd.Series(pd.date_range("2020-01-01", periods=N)).dt.strftime("%Y-%m-%d"), "date"),
    ("name", [f"person {i}" for i in range(N)], "text"),
    ("town", [f"town {i % 80}" for i in range(800)], "text"),
    ("note", [f"the patient came back after {i} days" for i in range(N)], "text"),
    ("y", [3, 3, 3], "constant"),
    ("y", ["a", "a"], "constant"),
]

ALL = [*PUBLIC, *NUMBERS, *COUNTS, *SHARES, *ZEROS, *GRADES, *LABELS, *OTHERS]
