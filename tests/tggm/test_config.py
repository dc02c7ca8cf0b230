"""What a user chooses becomes what the mathematics wants, or is refused."""

from __future__ import annotations

import numpy as np
import pytest

from nongauss import TGGMClassifier, TGGMRegressor
from nongauss.core.device import replace
from nongauss.core.errors import InputError
from nongauss.tggm.params import optimiser, start
from tggm.small import RECIPE

AUTO = replace(RECIPE, batch_size=None, max_epochs=None)


def test_batches_are_a_fiftieth_of_the_rows():
    sizes = [AUTO.rows_a_batch(n) for n in (1, 20, 100, 1600, 5000, 10**6)]
    assert sizes == [1, 20, 32, 32, 100, 256]
    assert [replace(AUTO, batch_size=asked).rows_a_batch(100) for asked in (7, 1000)] == [7, 100]


def test_small_tables_are_trained_longer_than_large_ones():
    epochs = [AUTO.n_epochs(n) for n in (100, 2000, 5000, 60_000, 10**6)]
    assert epochs == [1000, 240, 205, 18, 15]
    assert RECIPE.n_epochs(100) == 3


@pytest.mark.parametrize("sizes", [(), (5, 0), (0,), (2.5,), ("a",)])
def test_layers_of_whole_units_are_asked_for(sizes):
    with pytest.raises(InputError, match="a whole number of units for each hidden layer"):
        TGGMClassifier(sizes)._settings()


def test_settings_become_what_the_mathematics_wants():
    config, recipe = TGGMClassifier(7, hidden_variance=0.3)._settings()
    assert config.layers == (7,)
    assert (config.hidden_variance, config.noise_variance) == (0.3, 1.0)
    assert recipe.max_epochs is None
    assert recipe.batch_size is None


def test_the_preset_is_what_the_paper_says():
    config, recipe = TGGMRegressor(preset="paper")._settings()
    assert (config.hidden_variance, config.noise_variance, config.n_sweeps) == (0.5, 0.5, 10)
    assert (config.posterior, config.n_heads, recipe.n_members) == ("mean_field", 1, 1)
    assert [recipe.rows_a_batch(n) for n in (455, 45_000)] == [50, 100]
    assert recipe.validation_fraction == 0.0
    assert TGGMRegressor(preset="paper", method="bp")._settings()[0].hidden_variance == 0.01
    config, recipe = TGGMClassifier((200, 200), preset="paper")._settings()
    assert (config.noise_variance, config.n_sweeps, recipe.rows_a_batch(60_000)) == (1.0, 30, 500)


def test_what_the_preset_sets_cannot_be_set_beside_it():
    with pytest.raises(InputError, match="preset='paper' sets n_members, but n_members=3 was given"):
        TGGMRegressor(preset="paper", n_members=3)._settings()


def test_the_preset_starts_from_small_weights_and_moves_by_plain_rmsprop():
    config, _ = TGGMRegressor((400,), preset="paper")._settings()
    params = start(np.random.default_rng(0), config, 1, 30, np.random.default_rng(1).normal(size=(5, 1)))
    for weights in (params.W0, params.b0, params.W1):
        assert weights.std() == pytest.approx(0.1, rel=0.15)
    slope = np.full((1, 3), 2.0, np.float32)
    rule = optimiser(config)
    moves, _ = rule.update(slope, rule.init(slope))
    np.testing.assert_allclose(moves, 1.0 / np.sqrt(1.0 - 0.95), rtol=1e-3)  # g / sqrt(.05 g^2)
