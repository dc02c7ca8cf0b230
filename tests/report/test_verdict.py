"""The verdict on models of known worth."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from nongauss.report import judgement
from nongauss.report.baselines import MEAN, baselines
from nongauss.report.evidence import Dependence
from nongauss.report.judgement import JudgedRows, Judgement, judge, pooled
from nongauss.report.scoring import LabelScores, NumberScores
from nongauss.report.text import to_json
from nongauss.report.verdict import Setting, no_verdict, verdict
from report.stand_in import StandIn
from test_metrics import gaussian_crps


def normal_scores(y, mean, sd):
    lower, upper = mean - 1.645 * sd, mean + 1.645 * sd
    zero = np.zeros(len(y))
    return NumberScores(y, mean, norm.logpdf(y, mean, sd), lower, upper, norm.cdf(y, mean, sd), zero)


def setting(**kwargs):
    usual = {"target": "price", "constant": "mean of the target", "n_fitted": 300, "n_columns": 4}
    return Setting(**{**usual, **kwargs})


def simulated(seed, signal, n=120, sd=1.0):
    """Scores of a model that knows the signal, with a spread that may be wrong, and of the constant law."""
    rng = np.random.default_rng(seed)
    f = signal * rng.normal(size=n)
    y = f + rng.normal(size=n)
    whole = np.sqrt(1 + signal**2)
    return normal_scores(y, f, sd), {"mean of the target": normal_scores(y, np.zeros(n), whole)}


def test_signal_is_better_by_what_it_is_worth():
    found = verdict(*simulated(0, signal=1.0, n=4000), setting())
    assert (found.worth, found.calibrated) == ("better", True)
    gain = found.differences[0]
    assert abs(gain.mean - 0.5 * np.log(2)) < 3 * gain.se  # log sqrt(1 + signal^2)
    assert found.sentences[0].startswith("Better than the mean of the target: +0.3")
    assert "more probability for the observed values" in found.sentences[0]
    assert "RMSE 1" in found.sentences[0]
    assert found.sentences[-1].startswith("Calibrated: 50 / 80 / 90 % intervals held")
    assert found.advice == []


@pytest.mark.gate
def test_pure_noise_is_no_better_in_95_of_100_tables(monkeypatch):
    mean = {MEAN: baselines()[MEAN]}
    monkeypatch.setattr(judgement, "usual_models", lambda *_: (mean, MEAN))
    worths = Counter()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        whole = JudgedRows(rng.normal(size=(100, 4)), rng.normal(size=100))
        parts = np.array_split(rng.permutation(100), 2)
        folds = []
        for part in parts:
            fold = judge(StandIn(), whole.take(np.setdiff1d(np.arange(100), part)), whole.take(part))
            folds.append(fold)
        found = pooled(folds)
        dependence = Dependence(several=True)
        said = verdict(found.scores, found.rivals, setting(n_fitted=50, dependence=dependence))
        worths[said.worth] += 1
    assert worths["no better"] >= 95, worths


def test_what_no_better_says():
    said = verdict(*simulated(1, signal=0.0), setting())
    assert said.worth == "no better"
    assert said.sentences[0].startswith("No better than the mean of the target")
    assert "as far as" in said.sentences[0]
    assert "What the columns say about 'price' is not beyond chance on these rows" in said.sentences[0]
    assert "a smaller one may have been missed" in said.sentences[0]
    assert "more closely related to 'price'" in said.advice[0]
    wide = verdict(*simulated(1, signal=0.0), setting(n_columns=5000))
    assert "5,000 columns for 300 rows" in wide.advice[0]
    assert "--use A,B" in wide.advice[0]
    for n_kept, words in ((0, "none is"), (1, "1 is"), (12, "12 are")):
        wide = verdict(*simulated(1, signal=1.0), setting(n_columns=5000, n_kept=n_kept))
        said = f"Of the 5,000 columns (for only 300 rows), {words} significantly associated with 'price'"
        assert any(sentence.startswith(said) for sentence in wide.sentences)
    model, rivals = simulated(2, signal=1.0)
    noise, _ = simulated(3, signal=0.0)
    rivals["ridge regression"] = model
    blind = NumberScores(**{**vars(rivals["mean of the target"]), "pit": noise.pit})
    said = verdict(blind, rivals, setting(other_models=["tggm"]))
    assert said.worth == "no better"
    assert "Worse than ridge regression" in said.sentences[1]
    assert "ridge regression (+0." in said.advice[0]
    assert "--model tggm" in said.advice[1]
    assert said.advice[2].startswith("use ridge regression instead, which predicted these rows better (-0.")


def test_scores_in_units_of_the_target_stand_beside_those_of_every_rival():
    model, rivals = simulated(0, signal=1.0, n=400)
    law = {
        name: replace(scores, crps=gaussian_crps(scores.y, scores.mean, sd))
        for name, scores, sd in (("", model, 1.0), (MEAN, rivals[MEAN], np.sqrt(2.0)))
    }
    said = verdict(law[""], {MEAN: law[MEAN]}, setting())
    crps, interval = said.differences[-2:]
    gain = law[MEAN].crps - law[""].crps
    assert (crps.measure, interval.measure) == ("CRPS", "interval score")
    assert crps.mean == pytest.approx(gain.mean())
    assert crps.se == pytest.approx(gain.std(ddof=1) / np.sqrt(400))
    assert crps.sign == interval.sign == 1
    width = 2 * 1.645 * (np.sqrt(2.0) - 1.0)
    assert interval.mean == pytest.approx(width, abs=5 * interval.se)
    (sentence,) = [text for text in said.sentences if "CRPS" in text]
    assert sentence.startswith(f"In units of the target: mean CRPS {law[''].crps.mean():.4g}, ")
    assert "below that of the mean of the target (lower is better)" in sentence


def test_a_gain_within_chance_is_not_called_nothing():
    said = verdict(*simulated(3, signal=0.5, n=40), setting())
    gain = said.differences[0]
    assert said.worth == "no better"
    assert gain.mean > gain.se
    assert said.sentences[0].startswith("Not significantly better than the mean of the target: +0.")
    assert "found nothing" not in said.sentences[0]


@pytest.mark.parametrize(("sd", "word"), [(0.6, "too narrow"), (1.7, "too wide")])
def test_a_wrong_spread_is_said(sd, word):
    said = verdict(*simulated(0, signal=1.0, n=300, sd=sd), setting())
    assert said.calibrated is False
    assert f"Intervals are {word}: 50 / 80 / 90 % intervals held" in " ".join(said.sentences)
    assert "chance band" in " ".join(said.sentences)
    assert any("--group COLUMN" in text for text in said.advice)


def test_a_model_that_is_worse_or_gives_no_chance_is_called_so():
    model, rivals = simulated(0, signal=0.0, sd=0.3)
    assert verdict(model, rivals, setting()).worth == "worse"
    model.log_score[5] = -np.inf
    said = verdict(model, rivals, setting())
    assert said.worth == "worse"
    assert "zero probability to 1 of the observed values" in said.sentences[0]


def test_a_mean_that_is_off_and_intervals_below_zero_are_said():
    rng = np.random.default_rng(0)
    y = rng.gamma(1.0, size=400)
    model = normal_scores(y, np.full(400, 2.0), np.full(400, 1.5))
    said = verdict(model, {"mean of the target": model}, setting(lowest=0.01))
    assert "Predictions tend to be too high" in " ".join(said.sentences)
    assert any("--kind positive" in text for text in said.advice)


def label_scores(seed, skill, power=1.0, n=300):
    rng = np.random.default_rng(seed)
    logits = skill * rng.normal(size=n)
    p = 1 / (1 + np.exp(-logits))
    y = (rng.random(n) < p).astype(int)
    q = 1 / (1 + np.exp(-power * logits))
    both = np.stack([1 - q, q], axis=1)
    half = np.full((n, 2), 0.5)
    classes = np.array([0, 1])
    return LabelScores(y, both.argmax(axis=1), both, classes), LabelScores(y, np.zeros(n, int), half, classes)


def test_labels_have_a_verdict_too():
    model, shares = label_scores(0, skill=1.5)
    how = setting(constant="class shares")
    said = verdict(model, {"class shares": shares}, how)
    assert (said.worth, said.calibrated) == ("better", True)
    assert "accuracy" in said.sentences[0]
    sure, shares = label_scores(1, skill=1.0, power=3.0)
    said = verdict(sure, {"class shares": shares}, how)
    assert said.calibrated is False
    assert any("Overconfident" in text for text in said.sentences)
    none, shares = label_scores(2, skill=0.0)
    assert verdict(none, {"class shares": shares}, how).worth == "no better"


def test_record_is_json_and_nothing_known_says_how_to_know():
    said = verdict(*simulated(0, signal=1.0), setting(leaks=["price_after"]))
    record = said.record()
    assert to_json(record)
    assert record["differences"][0]["decision"] == 1
    assert record["coverage"][2]["level"] == 0.9
    assert "'price_after'" in record["advice"][0]
    nothing = no_verdict("No rows were held out.")
    assert (nothing.worth, nothing.calibrated) == ("unknown", None)
    assert "--test FILE" in nothing.lines[-1]
    assert isinstance(judge(StandIn(), *[JudgedRows(np.ones((9, 1)), np.arange(9.0))] * 2), Judgement)


@pytest.mark.parametrize(("slope", "worth"), [(1.0, "better"), (0.0, "no better")])
def test_claims_with_nine_zeros_in_ten_are_judged_by_what_is_known_of_them(slope, worth):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 3))
    chance = 1 / (1 + np.exp(2.4 - slope * X[:, 0]))
    y = np.where(rng.random(1500) < chance, np.exp(6 + slope * X[:, 1] + rng.normal(size=1500)), 0.0)
    assert 0.82 < np.mean(y == 0) < 0.95
    model = baselines(atoms=(0.0,))["ridge regression"]
    found = judge(model, JudgedRows(X[:1000], y[:1000]), JudgedRows(X[1000:], y[1000:]))
    said = verdict(found.scores, found.rivals, setting(n_fitted=1000, constant=found.constant, lowest=0.0))
    assert (said.worth, said.calibrated) == (worth, True)
    assert said.sentences[1].startswith("No different from ridge regression")  # itself
    assert not any("below 0" in text for text in said.advice)


def test_three_columns_of_thousands_that_were_not_found_are_said_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2000))
    y = X[:, [5, 700, 1500]] @ [2.0, -1.5, 1.0] + rng.normal(size=300)

    def said_of(columns, n_columns):
        whole = JudgedRows(X[:, columns], y)
        model = baselines()["ridge regression"]
        found = judge(model, whole.take(np.arange(200)), whole.take(np.arange(200, 300)))
        return verdict(found.scores, found.rivals, setting(n_fitted=200, n_columns=n_columns))

    blind = said_of(slice(None), 2000)
    assert blind.worth == "no better"
    assert "2,000 columns for 200 rows" in blind.advice[0]
    assert said_of([5, 700, 1500], 3).worth == "better"


def test_no_advice_to_do_what_was_done():
    model, rivals = simulated(0, signal=1.0, n=4000, sd=0.4)
    how = {"lowest": 0.0, "n_fitted": 4000}
    loose = verdict(model, rivals, setting(**how))
    assert any("--kind count, or positive with zeros" in text for text in loose.advice)
    how |= {"kind": "count", "all_weighed": True, "group_hints": ["plot"]}
    told = verdict(model, rivals, setting(**how))
    assert not any("never below 0" in text or "likelihood" in text for text in told.advice)
    assert "another kind of target (--kind), if 'count' is not what it is." in told.advice
    assert any("if they belong together (--group plot)" in text for text in told.advice)


def test_a_density_that_is_narrow_at_repeated_values_is_cautioned_of():
    rng = np.random.default_rng(0)
    n, sd = 300, 3.0
    mean = rng.normal(10.0, 3.0, n)
    whole = np.round(mean + sd * rng.normal(size=n))

    def of(y, spiky=False):
        crps = gaussian_crps(y, mean, sd)
        scores = replace(normal_scores(y, mean, np.full(n, sd)), crps=crps)
        return replace(scores, log_score=scores.log_score + 1.4) if spiky else scores

    constant = normal_scores(whole, np.full(n, 10.0), np.full(n, 4.2))
    constant = replace(constant, crps=gaussian_crps(whole, np.full(n, 10.0), 4.2))
    rivals = {"mean of the target": constant, "ridge regression": of(whole)}
    said = " ".join(verdict(of(whole, spiky=True), rivals, setting()).sentences)
    assert f"only {len(np.unique(whole))} different values" in said
    assert "the CRPS is not better than that of the ridge regression" in said
    assert "different values" not in " ".join(verdict(of(whole), rivals, setting()).sentences)
    smooth = mean + sd * rng.normal(size=n)
    rivals = {"mean of the target": constant, "ridge regression": of(smooth)}
    assert "different values" not in " ".join(verdict(of(smooth, spiky=True), rivals, setting()).sentences)


def test_a_single_row_or_group_and_a_constant_that_failed_give_no_verdict():
    model, rivals = simulated(0, signal=1.0, n=40)
    for found in (
        verdict(model, {}, setting()),
        verdict(model, rivals, setting(dependence=Dependence(np.zeros(40)))),
        verdict(*simulated(0, signal=1.0, n=1), setting()),
    ):
        assert found.sentences[0].startswith("The model has not been evaluated: ")
        assert (len(found.differences), len(found.sentences)) == (0, 1)
