import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from nongauss.optimise.course import Run, Status
from nongauss.rectangle import fit as course
from nongauss.rectangle.config import RectangleRecipe, Stage
from nongauss.rectangle.data import RectangleRows
from nongauss.rectangle.fit import fit_soft, keep_clusters
from nongauss.rectangle.predict import by_soft_box
from rectangle.small import blobs, labels, rows

RECIPE = RectangleRecipe(4, "student_t", 5, 200, 1e-5, 0)


def four(n_rows: int = 200) -> tuple[RectangleRows, np.ndarray]:
    X, truth = blobs(n_rows)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    none = labels(n_rows=len(Z))
    return RectangleRows(Z, none, Z, none, np.ones(len(Z))), truth


def test_clear_boxes_are_found_and_the_trace_never_falls():
    data, truth = four()
    result, found = fit_soft(data, RECIPE, Run(), (), None)
    assert adjusted_rand_score(truth, found.share.argmax(axis=0)) == 1.0
    bound = [line["bound"] for line in result.trace]
    assert (np.diff(bound) >= -1e-9 * abs(bound[-1])).all()
    assert result.status is Status.CONVERGED


def test_a_sample_of_the_rows_finds_the_same(monkeypatch):
    data, truth = four(600)
    monkeypatch.setattr(course, "STAGES", (Stage(5.0, 10, 100, 0.4), Stage(10.0, 8, 150, 0.2)))
    found = fit_soft(data, RECIPE, Run(), (), None)[1]
    assert adjusted_rand_score(truth, found.share.argmax(axis=0)) > 0.99


def test_gaps_labels_and_weights_go_through():
    data = rows(80)
    found = fit_soft(data, RECIPE._replace(n_clusters=2, max_iter=5), Run(), (), None)[1]
    assert np.isfinite(found.share).all()
    assert found.share.sum(axis=0).max() < 1 + 1e-9


def test_rows_of_a_cluster_that_is_left_out_go_to_the_others():
    data, truth = four()
    found = fit_soft(data, RECIPE, Run(), (), None)[1]
    left = keep_clusters(data, found, np.array([0, 2, 3]), RectangleRecipe(4, "student_t", 2, 9, 0.0, 0))
    assert_array_equal(left.kept, found.kept[[0, 2, 3]])
    assert_allclose(left.share.sum(axis=0), 1.0)
    stayed = np.isin(found.share.argmax(axis=0), [0, 2, 3])
    assert adjusted_rand_score(truth[stayed], left.share[:, stayed].argmax(axis=0)) == 1.0


def test_soft_boxes_know_nothing_of_structure():
    data, truth = four()
    found = fit_soft(data, RECIPE, Run(), (), None)[1]
    assert adjusted_rand_score(truth, by_soft_box(data, found.params.boxes)) == 1.0


def test_a_callback_stops_it():
    recipe = RECIPE._replace(tol=0.0)
    result, _ = fit_soft(four()[0], recipe, Run((lambda progress: progress.iteration == 1,)), (), None)
    assert result.status is Status.STOPPED
    assert result.n_iter == 1
