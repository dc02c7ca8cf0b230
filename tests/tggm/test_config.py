"""What a user chooses becomes what the mathematics wants, or is refused."""

from __future__ import annotations

import pytest

from nongauss import TGGMClassifier
from nongauss.core.device import replace
from nongauss.core.errors import InputError
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
