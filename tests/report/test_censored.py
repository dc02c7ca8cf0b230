"""Targets of which some are only limits: the usual model, and scores by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import lognorm, norm

from nongauss.report.censored import CensoredRegressor, _terms
from nongauss.report.judgement import JudgedRows, judge, told_of_limits
from nongauss.report.pictures import report_figures
from nongauss.report.scoring import score


def survival(n=800, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 2))
    time = np.exp(1 + 0.8 * X[:, 0] + 0.5 * rng.normal(size=n))
    end = rng.exponential(6.0, size=n)
    return X, np.minimum(time, end), (time > end).astype(int), time


def test_the_law_behind_censored_times_is_found():
    X, y, censoring, _ = survival()
    assert 0.2 < censoring.mean() < 0.6
    model = CensoredRegressor().fit(X, y, censoring=censoring)
    slope = model.weights_[1:] / X.std(axis=0)  # the columns were standardised
    np.testing.assert_allclose(slope, [0.8, 0.0], atol=0.06)
    assert model.sd_ == pytest.approx(0.5, rel=0.1)
    law = model.predict_distribution(X)
    fresh_X, _, _, time = survival(4000, 1)
    truth = lognorm.logpdf(time, 0.5, scale=np.exp(1 + 0.8 * fresh_X[:, 0])).mean()
    assert model.predict_distribution(fresh_X).log_prob(time).mean() == pytest.approx(truth, abs=0.02)
    assert law.mean.mean() > y.mean()  # times are longer than they were seen


@pytest.mark.parametrize("side", ["exact", "right", "left", "between"])
def test_derivatives_are_those_of_the_likelihood(side):
    z = np.array([-2.0, 0.3, 1.4, 9.0])
    low = np.full(4, -np.inf) if side == "left" else z
    high = {"exact": z, "right": np.full(4, np.inf), "left": z, "between": z + 0.7}[side]

    def value(theta):
        return _terms(theta[:4], float(np.exp(theta[4])), low, high)[0].sum()

    def slope(theta):
        _, by_m, by_s = _terms(theta[:4], float(np.exp(theta[4])), low, high)
        return np.append(by_m, by_s.sum())

    at = np.array([0.1, -0.4, 0.5, 1.0, 0.2])
    assert check_grad(value, slope, at) < 1e-5
    s = np.exp(0.2)
    by_hand = {
        "exact": norm.logpdf(z, at[:4], s),
        "right": norm.logsf(z, at[:4], s),
        "left": norm.logcdf(z, at[:4], s),
        "between": np.log(norm.cdf(z + 0.7, at[:4], s) - norm.cdf(z, at[:4], s)),
    }[side]
    np.testing.assert_allclose(_terms(at[:4], s, low, high)[0], by_hand, rtol=1e-6)


def test_rows_with_limits_are_scored_by_the_probability_between_them():
    X, y, censoring, time = survival()
    model = CensoredRegressor().fit(X, y, censoring=censoring)
    law = model.predict_distribution(X)
    found = score(model, X, y, {"censoring": censoring})
    right = censoring == 1
    np.testing.assert_allclose(found.log_score[right], np.log(1 - law.cdf(y))[right], rtol=1e-6)
    np.testing.assert_allclose(found.log_score[~right], law.log_prob(y)[~right])
    assert (found.pit[right] >= law.cdf(y)[right]).all()
    assert found.error[right & (law.mean > y)].max() == 0
    figures = found.figures()
    assert figures["rmse"] == pytest.approx(np.sqrt(np.mean((law.mean - y)[~right] ** 2)))
    assert figures["log_density"] == pytest.approx(found.log_score.mean())
    between = score(model, X, y, {"y_upper": y + 1.0})
    np.testing.assert_allclose(between.log_score, np.log(law.cdf(y + 1) - law.cdf(y)), rtol=1e-5, atol=1e-5)
    assert time.shape == y.shape


def test_the_usual_models_know_of_censoring():
    X, y, censoring, _ = survival(400)
    parts = [JudgedRows(X[r], y[r], {"censoring": censoring[r]}) for r in (slice(0, 250), slice(250, 400))]
    found = judge(CensoredRegressor(), *parts)
    assert list(found.rivals) == ["mean of the target", "ridge regression"]
    np.testing.assert_allclose(found.rivals["ridge regression"].log_score, found.scores.log_score)
    assert found.scores.log_score.mean() > found.rivals["mean of the target"].log_score.mean() + 0.1


def test_it_is_said_what_limits_count_as():
    X, y, censoring, _ = survival(400)
    parts = [JudgedRows(X[r], y[r], {"censoring": censoring[r]}) for r in (slice(0, 250), slice(250, 400))]
    found = judge(CensoredRegressor(), *parts)
    n_limits = int(censoring[250:].sum())
    (said,) = told_of_limits(found.scores)
    assert said.startswith(f"Of the 150 held-out rows, {n_limits} have only a limit for a target.")
    assert f"are of the {150 - n_limits} known targets" in said
    inside = np.abs(2 * found.scores.pit - 1) <= 0.9
    assert found.scores.figures()["coverage_90"] == pytest.approx(inside.mean())


def test_rows_with_limits_are_not_drawn_as_observations():
    X, y, censoring, _ = survival(200)
    scores = score(CensoredRegressor().fit(X, y, censoring=censoring), X, y, {"censoring": censoring})
    first = report_figures(CensoredRegressor(), scores=scores)[0]
    n_limits = int(censoring.sum())
    assert f"Not drawn: {n_limits} rows of which only a limit is known." in first.caption
    assert (
        sum(len(points.get_offsets()) for points in first.figure.axes[0].collections[-1:]) == 200 - n_limits
    )
