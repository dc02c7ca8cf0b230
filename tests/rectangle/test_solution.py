import numpy as np
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.datasets import load_iris

from nongauss.rectangle.columns import Cells, merge, view
from nongauss.rectangle.fit import Recipe
from nongauss.rectangle.priors import Prior
from nongauss.rectangle.rules import Rules
from nongauss.rectangle.solution import Task, Wording, conditional_likelihood, joint_posterior, solve
from nongauss.rectangle.structure import log_density
from nongauss.tables.encoder import TableEncoder


def iris() -> Task:
    X = load_iris().data
    there, cells = view(X, TableEncoder.fit(X), (0, 1, 2, 3), np.ones(150), "standard", "model")
    merged = merge(there, cells, there, cells, np.ones(150))
    first = Cells(cells.numbers[merged.first], cells.labels.take(merged.first))
    return Task(merged.rows, first, there, Prior((), (), Rules((), ())), True)


def test_the_posterior_is_rules_times_structure():
    task = iris()
    solution = solve(task, Recipe(3, "student_t", 4, 50, 1e-5, 0), Wording("auto", 0.01))
    joint = joint_posterior(solution.rules, solution.structure, task.cells, task.rows, "student_t")
    proba = solution.rules.proba(solution.rules.margins(task.cells))
    log_p = log_density(task.rows, solution.structure, "student_t")[0][0].T
    assert_allclose(joint, np.log(proba) + log_p)
    total = logsumexp(joint, axis=1) @ task.rows.weight
    assert_allclose(conditional_likelihood(solution, task, "student_t"), total)
    agree = joint.argmax(axis=1) == solution.share.argmax(axis=0)
    assert agree.mean() > 0.97
