import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor import predict
from nongauss.rank_factor.fit import drawn, summary
from nongauss.rank_factor.updates import sweep
from nongauss.rank_factor.vb_and_gibbs import Expect
from rank_factor.small import problem


def settled():
    state, rows, labels, config = problem(n_outputs=1)
    for _ in range(15):
        state, _ = sweep(state, rows, labels, config, Expect())
    return state, rows, labels, config


def test_rows_seen_as_new_have_about_the_factors_of_the_fit():
    state, rows, labels, config = settled()
    z = predict.factors(summary(state), rows, config, np.float64)
    for k in range(2):
        assert np.corrcoef(z.mean[:, k], state.z.mean[:, k])[0, 1] > 0.98
    f = predict.decisions(summary(state), z)
    assert (np.sign(f) == labels.y).mean() > 0.85


def test_factors_of_a_row_do_not_depend_on_the_rows_beside_it():
    state, rows, _, config = settled()
    for draw in (summary(state), drawn(state)):
        whole = predict.factors(draw, rows, config, np.float64)
        part = predict.factors(draw, rows.take(slice(7, 9)), config, np.float64)
        assert_allclose(part.mean, whole.mean[7:9], atol=1e-12)
