"""What both estimators do with tables: views, gaps, reconstructions, names, reports."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from harmonium.small import table
from nongauss import Harmonium, HarmoniumClassifier
from nongauss.core.errors import InputError, NongaussWarning


@pytest.fixture(scope="module")
def two_views():
    """Real and binary columns that share three features; the fit, the table, and who has which."""
    real, Z = table(3, 400, "real", seed=1, n_columns=15)
    binary = (
        np.random.default_rng(2).random((400, 12)) < np.where(np.repeat(Z, 4, axis=1), 0.9, 0.1)
    ).astype(float)
    X = np.hstack([real, binary])
    model = Harmonium(views={"real": slice(0, 15), "words": slice(15, 27)}, random_state=0).fit(X)
    return model, X, Z


@pytest.mark.gate
def test_views_share_features_and_one_predicts_the_other(two_views):
    model, X, Z = two_views
    assert model.n_active_ == 3
    words = model.predict_view(X, "words")
    assert words.shape == (400, 12)
    assert np.mean((words > 0.5) == np.repeat(Z, 4, axis=1)) > 0.9
    gone = X.copy()
    gone[:, 15:] = np.nan
    assert_allclose(model.predict_view(gone, "words"), words)
    with pytest.raises(InputError, match="'real', 'words'"):
        model.predict_view(X, "sound")


@pytest.mark.gate
def test_single_gaps_hardly_move_the_features(two_views):
    model, X, _ = two_views
    full = model.transform(X)
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    assert np.mean((model.transform(gaps) > 0.5) == (full > 0.5)) > 0.95
    again = Harmonium(views=model.views, random_state=0).fit(gaps)
    assert again.n_active_ == 3


@pytest.mark.gate
def test_reconstructions_explain_the_table(two_views):
    model, X, _ = two_views
    back = model.inverse_transform(model.transform(X))
    left = ((X - back) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    assert left < 0.7
    with pytest.raises(InputError, match="shape"):
        model.inverse_transform(np.zeros((2, 9)))


def test_readable_results_have_the_names_of_the_columns():
    Z = np.random.default_rng(0).random((300, 2)) < 0.4
    X = np.random.default_rng(1).random((300, 8)) < np.where(np.repeat(Z, 4, axis=1), 0.9, 0.1)
    frame = pd.DataFrame(X, columns=[*"abcd", *"wxyz"])
    model = Harmonium(random_state=0).fit(frame)
    tops = [{name.split("=")[0] for name in top} for top in model.top_features(4)]
    assert sorted(map(sorted, tops)) == [list("abcd"), list("wxyz")]
    assert model.get_feature_names_out().tolist() == ["harmonium0", "harmonium1"]
    rows = model.top_rows(frame, 5)
    assert rows.shape == (2, 5)
    assert model.component_status_.count("active") == 2
    assert len(model.component_status_) == 10
    assert np.isfinite(model.score_samples(frame)).all()


def test_sparse_rows_give_what_dense_rows_give():
    X, _ = table(3, 200, "binary")
    model = Harmonium(4, max_epochs=3, random_state=0).fit(sp.csr_matrix(X))
    assert_allclose(model.transform(sp.coo_matrix(X)), model.transform(X), rtol=1e-5)


def test_a_saturated_fit_is_reported_with_the_remedy(monkeypatch):
    monkeypatch.setattr("nongauss.harmonium.contrastive_divergence.MOST_RIDGE", 0.0)  # it may not grow
    X = np.repeat(np.eye(4), 40, axis=0)
    with pytest.warns(NongaussWarning, match="outside"):
        Harmonium(2, max_epochs=400, random_state=0).fit(np.repeat(X, 5, axis=1))


def test_14_real_columns_are_not_taken_for_probabilities():
    X = load_iris().data
    model = Harmonium(4, random_state=0).fit(X)
    assert [block.kind for block in model._coder.layout] == ["real"]
    assert model.n_active_ == 4
    assert (model.transform(X).std(axis=0) > 0.05).all()
    with pytest.raises(InputError, match=r"7\.9"):
        Harmonium(4, views={"all": (slice(0, 4), "binary")}).fit(X)


@pytest.mark.filterwarnings("ignore:No feature is in use")
@pytest.mark.gate
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_14_thin_and_empty_rows_and_constant_columns_are_legal(make):
    rng = np.random.default_rng(0)
    X = (rng.random((300, 40)) < 0.002).astype(float)
    X[:, 3] = 1.0
    assert (X[:, np.arange(40) != 3].sum(axis=1) == 0).sum() > 200
    for model in (Harmonium(5, max_epochs=3, random_state=0), Harmonium(max_epochs=3, random_state=0)):
        assert np.isfinite(model.fit_transform(make(X))).all()
    assert_array_equal(Harmonium(2, random_state=0).fit_transform(np.ones((5, 2))).shape, (5, 2))


def test_features_come_as_a_frame_where_one_is_asked_for():
    X, y = load_iris(return_X_y=True, as_frame=True)
    for make in (Harmonium, HarmoniumClassifier):
        model = make(2, max_epochs=2, random_state=0).set_output(transform="pandas").fit(X, y)
        assert list(model.transform(X).columns) == list(model.get_feature_names_out())
        assert model.top_rows(X, 3).shape == (2, 3)
    assert model.predict(X).shape == (150,)
