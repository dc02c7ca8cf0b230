import numpy as np
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.datasets import load_iris

from nongauss.optimise.course import Run
from nongauss.rectangle.config import RectangleRecipe
from nongauss.rectangle.fit import fit
from nongauss.rectangle.objective import log_density
from nongauss.rectangle.predict import soft_posterior
from rectangle.small import task_of


def test_the_posterior_is_rules_times_structure():
    task = task_of(load_iris().data)
    assert task.views_overlap
    recipe = RectangleRecipe(3, "student_t", 4, 50, 1e-5, 0)
    result, fitted = fit(task, recipe, Run())
    joint = fitted.log_joint(task.cells, task.rows)
    proba = fitted.proba(task.cells)
    log_p = log_density(task.rows, fitted.structure, "student_t")[0][0].T
    assert_allclose(joint, np.log(proba) + log_p)
    total = logsumexp(joint, axis=1) @ task.rows.weight
    assert_allclose(fitted.log_conditional(task.cells, task.rows), total)
    share = soft_posterior(task.rows, result.state, "student_t")
    agree = joint.argmax(axis=1) == share.argmax(axis=0)
    assert agree.mean() > 0.97
