import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from harmonium.small import table
from nongauss import HarmoniumClassifier
from nongauss.core.errors import NongaussWarning
from nongauss.harmonium import predict
from nongauss.harmonium.chain_graph import DUPLICATE


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X[:900], y[:900], test_size=300, random_state=0)
    return HarmoniumClassifier(40, random_state=0).fit(parts[0], parts[2]), parts


def test_handwritten_digits_are_told_apart_with_honest_probabilities(digits):
    model, (_, X, _, y) = digits
    assert model.score(X, y) > 0.93
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert log_loss(y, P) < 0.35
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))


def test_classes_have_features_of_their_own(digits):
    model, (X, _, y, _) = digits
    H = model.transform(X)
    assert_allclose(model.class_means_[3], H[y == 3].mean(axis=0), atol=1e-5)
    assert_allclose(model.class_spreads_[3], H[y == 3].std(axis=0), atol=1e-5)
    assert np.ptp(model.class_means_, axis=0).mean() > 0.3


def test_two_classes_and_an_infinite_number_of_features():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, 20:]
    parts = train_test_split(X, y, test_size=200, random_state=0)
    model = HarmoniumClassifier(random_state=0).fit(parts[0], parts[2])
    assert model.score(parts[1], parts[3]) > 0.93
    f = model.decision_function(parts[1])
    assert_array_equal(model.classes_[(f > 0).astype(int)], model.predict(parts[1]))
    assert model.n_active_ == len(model.components_) == model.component_status_.count("active")


def test_labels_can_be_text():
    X, Z = table(2, 200, "binary", n_columns=30)
    y = np.where(Z[:, 0] > 0, "yes", "no")
    model = HarmoniumClassifier(6, random_state=0).fit(X, y)
    assert set(model.predict(X)) <= {"yes", "no"}
    assert model.score(X, y) > 0.8


def test_units_do_not_all_learn_what_tells_few_classes_apart():
    X, y = load_wine(return_X_y=True)
    model = HarmoniumClassifier(15, random_state=0).fit(X, y)
    assert model.n_active_ == 15
    assert np.abs(np.corrcoef(model.transform(X).T) - np.eye(15)).max() < 0.95
    assert model.score(X, y) > 0.97


@pytest.mark.gate
def test_rows_without_one_of_the_views_are_still_told_apart(monkeypatch):
    """Better than by a classifier that never had to do without one and takes cells for their means."""
    X, y = load_digits(return_X_y=True)
    views, order = {"top": slice(0, 32), "bottom": slice(32, 64)}, np.random.default_rng(0).permutation(900)
    train, test = order[:500], order[500:]
    gone = X[test].copy()
    gone[:200, :32], gone[200:, 32:] = np.nan, np.nan
    scores = []
    for share in (0.5, 0.0):
        monkeypatch.setattr("nongauss.harmonium.contrastive_divergence.HIDDEN", share)
        model = HarmoniumClassifier(30, views=views, max_epochs=80, random_state=0).fit(X[train], y[train])
        scores.append((model.score(gone, y[test]), model.score(X[test], y[test])))
    filler = model.machine_.filler
    model.machine_ = model.machine_._replace(
        filler=filler._replace(loadings=np.zeros((len(filler.means), 0)))
    )
    assert scores[0][0] > model.score(gone, y[test]) + 0.05
    assert scores[0][1] > 0.9


@pytest.mark.gate
def test_units_that_the_labels_made_alike_are_told_also_where_their_number_was_found(monkeypatch):
    X, y = load_wine(return_X_y=True)
    n_found = HarmoniumClassifier(random_state=0).fit(X, y).n_active_
    assert 3 <= n_found < 13
    monkeypatch.setattr(predict, "ALIKE", 0.0)
    quick = HarmoniumClassifier(max_epochs=9, callbacks=[lambda progress: True], random_state=0)
    with pytest.warns(NongaussWarning, match="Stopped on request"):
        quick.fit(X, y)
    assert len(quick.components_) == n_found  # the number is not a matter of epochs
    assert quick.n_active_ == 1
    assert quick.component_status_[1:n_found] == (DUPLICATE,) * (n_found - 1)


def test_the_papers_infinite_form_has_all_its_units_and_their_sticks():
    X, Z = table(2, 200, "binary", n_columns=20)
    model = HarmoniumClassifier(reading="global", truncation=9, max_epochs=30, random_state=0).fit(X, Z[:, 0])
    assert model.components_.shape == (9, 20)
    assert model.machine_.prior.gamma.shape == (9, 2)
    assert model.score(X, Z[:, 0]) > Z[:, 0].mean() + 0.1
