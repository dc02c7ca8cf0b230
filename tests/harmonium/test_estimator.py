import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from harmonium.small import table
from nongauss import Harmonium, HarmoniumClassifier
from nongauss.core.errors import InputError
from nongauss.harmonium.exponential_families import saturated_share


@pytest.mark.gate
@pytest.mark.parametrize(("kind", "n_features"), [("real", 5), ("binary", 4)])
def test_the_number_of_features_follows_the_data_at_one_default(kind, n_features):
    X, Z = table(n_features, 1000, kind)
    model = Harmonium(random_state=0).fit(X)
    assert model.n_active_ == n_features
    alike = np.abs(np.corrcoef(model.transform(X).T, Z.T)[:n_features, n_features:])
    assert (alike.max(axis=0) > 0.8).all()
    assert model.converged_


def test_the_papers_sticks_alone_switch_nothing_off():
    X, _ = table(3, 600, "binary", n_columns=30)
    model = Harmonium(truncation=15, reading="global", max_epochs=30, random_state=0).fit(X)
    assert model.n_active_ > 10
    assert model.machine_.prior.gamma.shape == (15, 2)


def test_tables_too_wide_for_the_chain_are_read_globally(monkeypatch):
    monkeypatch.setattr("nongauss.harmonium.fit.MOST_CELLS", 600)
    X, _ = table(3, 100, "binary", n_columns=30)
    model = Harmonium(truncation=5, max_epochs=4, random_state=0).fit(X)
    assert model.machine_.reading == "global"
    assert model.machine_.prior.gamma.shape == (5, 2)


@pytest.mark.gate
def test_a_finite_number_is_kept_in_both_readings():
    X, _ = table(3, 300, "binary", n_columns=20)
    for reading in ("global", "chain"):
        model = Harmonium(6, reading=reading, max_epochs=10, random_state=0).fit(X)
        assert model.components_.shape == (6, 20)
        assert model.transform(X).shape == (300, 6)
        assert model.machine_.reading == reading


def test_real_units_have_sizes():
    X, _ = table(2, 300, "binary", n_columns=20)
    model = Harmonium(4, units="real", random_state=0).fit(X)
    assert np.abs(model.transform(X)).max() > 1.05
    assert model.component_status_ == ("active",) * 4
    with pytest.raises(InputError, match="binary units only"):
        Harmonium(units="real", reading="chain").fit(X)


@pytest.mark.gate
def test_features_of_more_data_have_a_higher_likelihood_than_noise():
    X, _ = table(3, 500, "binary", n_columns=40)
    model = Harmonium(random_state=0).fit(X[:400])
    independent = X[:400].mean(axis=0)
    baseline = (X[400:] * np.log(independent) + (1 - X[400:]) * np.log1p(-independent)).sum(axis=1)
    assert model.score_samples(X[400:]).mean() > baseline.mean() + 0.5
    assert_array_equal(model.score_samples(X[:5]), model.score_samples(X[:5]))


def test_y_is_ignored():
    X, _ = table(2, 100, "binary", n_columns=10)
    a = Harmonium(3, max_epochs=2, random_state=0).fit(X).transform(X)
    assert_allclose(Harmonium(3, max_epochs=2, random_state=0).fit(X, np.arange(100)).transform(X), a)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("load", "n_units"), [(load_iris, 4), (load_wine, 30), (load_breast_cancer, 30), (load_digits, 30)]
)
def test_units_of_bundled_sets_neither_saturate_nor_say_the_same(load, n_units):
    X, y = (part[:600] for part in load(return_X_y=True))
    for model in (Harmonium(n_units, random_state=0), HarmoniumClassifier(n_units, random_state=0)):
        H = model.fit(X, y).transform(X)
        assert np.abs(np.corrcoef(H.T) - np.eye(n_units)).max() < 0.95
        assert saturated_share(H, np.ones(len(H))) < 0.5
