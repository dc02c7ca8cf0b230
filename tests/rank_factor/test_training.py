import numpy as np

from nongauss.optimise.result import Status
from nongauss.rank_factor import predict, training
from rank_factor.small import problem


def test_training_lowers_its_loss_and_completes_its_schedule():
    state, rows, labels, config = problem(n_outputs=1, n_experts=2)
    result, draw = training.train(state, rows, labels, config, 0, 60, 0.01, (), 0)
    bounds = [row["bound"] for row in result.trace]
    assert result.status is Status.COMPLETED
    assert np.mean(bounds[-5:]) > bounds[0]
    f = predict.decisions(draw, predict.factors(draw, rows, config, np.float64))
    assert (np.sign(f) == labels.y).mean() > 0.8
