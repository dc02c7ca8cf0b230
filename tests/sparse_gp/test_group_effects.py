import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from nongauss import SparseGPClassifier, SparseGPRegressor, load, save
from nongauss.core.errors import InputError
from nongauss.sparse_gp import draws

GROUPS, ROWS = 12, 120


def schools(seed=0, sd=1.5):
    """Rows of a mixed model with a line and an effect of each school: table, y, effects."""
    rng = np.random.default_rng(seed)
    school = rng.integers(0, GROUPS, ROWS)
    effect = rng.normal(0, sd, GROUPS)
    x = rng.uniform(-2, 2, ROWS)
    y = 10 + 2 * x + effect[school] + rng.normal(0, 0.5, ROWS)
    return pd.DataFrame({"x": x, "school": school}), y, effect


def fitted(table, y, **settings):
    return SparseGPRegressor(group="school", random_state=0, **{"kernel": "linear", **settings}).fit(table, y)


def test_effects_are_those_of_the_mixed_model_with_the_same_variances():
    table, y, _ = schools()
    model = fitted(table, y, n_scales=1)
    scale = y.std()
    z, x = (y - y.mean()) / scale, (table["x"] - table["x"].mean()) / table["x"].std(ddof=0)
    names = model.group_effects_.index
    Z = (table["school"].astype(str).to_numpy()[:, None] == names.to_numpy()).astype(float)
    s2 = model.kernel_params_["group variance"]
    slope = model.kernel_params_["linear variance"] / model.kernel_params_["linear lengthscale x"] ** 2
    noise = model.likelihood_params_["noise_variance"] / scale**2
    V = slope * np.outer(x, x) + s2 * Z @ Z.T + noise * np.eye(ROWS)
    mean = s2 * Z.T @ np.linalg.solve(V, z - model.posterior_.offset[0])
    cov = s2 * np.eye(len(names)) - s2**2 * Z.T @ np.linalg.solve(V, Z)
    assert_allclose(np.abs(model.group_effects_["effect"]), np.abs(scale * mean), rtol=1e-3, atol=1e-4)
    assert_allclose(model.group_effects_["sd"], scale * np.sqrt(np.diag(cov)), rtol=1e-3)


def test_effects_are_near_the_truth_and_have_its_sign():
    table, y, effect = schools()
    found = fitted(table, y).group_effects_
    truth = effect[found.index.astype(int)]
    shift = np.average(found["effect"] - truth)
    assert np.abs(found["effect"] - truth - shift).max() < 4 * found["sd"].max()
    assert np.corrcoef(found["effect"], truth)[0, 1] > 0.98


def test_a_group_not_seen_has_an_effect_from_the_prior():
    table, y, _ = schools()
    model = fitted(table, y, n_scales=1)
    new = pd.DataFrame({"x": [0.0, 0.0, 0.0], "school": [3, 999, None]})
    with pytest.warns(UserWarning, match="did not occur in training"):
        law = model.predict_distribution(new)
    variance = model.kernel_params_["group variance"] * y.var() + model.likelihood_params_["noise_variance"]
    assert_allclose(law.std[1:] ** 2, variance, rtol=0.05)
    assert law.std[0] < 0.5 * law.std[1]
    assert_allclose(law.mean[1], law.mean[2])


def test_numbers_and_texts_are_the_same_groups():
    table, y, _ = schools()
    numbers = fitted(table, y)
    texts = fitted(table.assign(school="s" + table["school"].astype(str)), y)
    assert_allclose(
        numbers.predict(table), texts.predict(table.assign(school="s" + table["school"].astype(str)))
    )


def test_the_other_columns_know_nothing_of_groups():
    table, y, _ = schools()
    model = fitted(table, y, kernel="matern52")
    assert list(model.lengthscales_) == ["x"]


def test_effects_of_classes_and_after_a_file(tmp_path):
    table, y, _ = schools()
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [9, 11])]
    model = SparseGPClassifier(group="school", n_inducing=20, random_state=0).fit(table, labels)
    assert set(model.group_effects_["function"]) == {"low", "mid", "top"}
    save(model, tmp_path / "model.nongauss")
    again = load(tmp_path / "model.nongauss")
    pd.testing.assert_frame_equal(again.group_effects_, model.group_effects_)
    assert_allclose(again.predict_proba(table[:5]), model.predict_proba(table[:5]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group": "town"}, "no column 'town'"),
        ({"group": 9}, "no column number 9"),
        ({"kernel": "categorical"}, "hold numbers"),
    ],
)
def test_groups_that_cannot_be(settings, message):
    table, y, _ = schools()
    model = SparseGPRegressor(**settings)
    with pytest.raises(InputError, match=message):
        model.fit(table, y)


def test_one_group_has_no_effect():
    table, y, _ = schools()
    model = SparseGPRegressor(group="country")
    with pytest.warns(UserWarning, match="only one value"), pytest.raises(InputError, match="one group only"):
        model.fit(table.assign(country="one"), y)


def test_rows_without_a_group_agree_with_none():
    table, y, _ = schools()
    gone = np.arange(ROWS) % 10 == 0
    table["school"] = ("s" + table["school"].astype(str)).mask(gone)
    found = fitted(table, y, n_scales=1)
    assert not any("missing" in str(name) for name in found.group_effects_.index)
    known = fitted(table[~gone], y[~gone], n_scales=1)
    assert_allclose(found.group_effects_["effect"], known.group_effects_["effect"], atol=0.15)


def test_labels_that_are_numbers_are_labels_to_a_kernel_that_names_them():
    table, y, _ = schools()
    named = SparseGPRegressor(kernel="linear(x) + group(school)", n_scales=1, random_state=0).fit(table, y)
    assert_allclose(named.predict(table), fitted(table, y, n_scales=1).predict(table), rtol=1e-6)


def strange_rows():
    """Rows of two groups that no fit has seen, and of none: table, and the number of each row's group."""
    school = ["new", "new", "other", "new", None, None]
    table = pd.DataFrame({"x": [0.0, 0.0, 0.0, 0.5, 0.0, 0.0], "school": school})
    return table, np.array([0, 0, 1, 0, 2, 3])


@pytest.mark.filterwarnings("ignore:Labels that did not occur")
@pytest.mark.parametrize("most", [1000, 4])
def test_groups_not_seen_have_an_effect_each_that_their_rows_share(monkeypatch, most):
    monkeypatch.setattr(draws, "MOST_JOINT", most)
    table, y, _ = schools()
    table["school"] = "s" + table["school"].astype(str)
    model = fitted(table, y, n_scales=1, hyper_parameters="best")
    new, group = strange_rows()
    got = np.corrcoef(model.posterior_draws(new, 4000, 0))
    assert_allclose(got, group[:, None] == group, atol=0.08)
    spread = model.posterior_draws(new, 4000, 0).std(axis=1)
    variance = model.kernel_params_["group variance"] * y.var()
    assert_allclose(spread**2, variance, rtol=0.1)  # the line is known to a few hundredths


@pytest.mark.filterwarnings("ignore:Labels that did not occur")
def test_a_group_not_seen_is_neither_of_two():
    rng = np.random.default_rng(0)
    school, x = rng.integers(0, 2, 100), rng.uniform(-2, 2, 100)
    y = 2 * x + np.array([-2.0, 2.0])[school] + rng.normal(0, 0.5, 100)
    model = fitted(pd.DataFrame({"x": x, "school": np.array(["a", "b"])[school]}), y, n_scales=1)
    new, group = strange_rows()
    law = model.predict_distribution(new)
    variance = model.kernel_params_["group variance"] * y.var() + model.likelihood_params_["noise_variance"]
    assert_allclose(law.std**2, variance, rtol=0.05)
    assert_allclose(np.corrcoef(model.posterior_draws(new, 4000, 0)), group[:, None] == group, atol=0.08)
