"""Epochs on the host beside the compiled ones, and what is predicted on the host beside the device."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from nongauss import TGGMRegressor
from nongauss.core.device import key_from_seed
from nongauss.core.errors import NongaussWarning
from nongauss.optimise import loop
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import NOBODY, Rule
from nongauss.tggm import exact_law, fit, on_host, predict
from nongauss.tggm.blocks import in_blocks
from nongauss.tggm.config import NetworkConfig, TrainingRecipe
from nongauss.tggm.data import NetworkRows, whole_table
from nongauss.tggm.params import NO_LEAST, first_state

CONFIG = NetworkConfig((5,), "ml", "moments", 1, None, None)
RECIPE = TrainingRecipe(2, 100, 0.01, 30, 100, 1e-4, 0.1)


def rows(n: int = 60, n_inputs: int = 3) -> NetworkRows:
    """A curve with noise in one of the columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_inputs)).astype(np.float32)
    y = np.sin(2.0 * X[:, :1]) + 0.3 * rng.exponential(size=(n, 1))
    return NetworkRows(X, ((y - y.mean()) / y.std()).astype(np.float32), rng.uniform(0.5, 2.0, n))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"n_heads": 3},
        {"posterior": "exact", "skip": True},
        {"noise_variance": 0.1},
        {"directions": (1, 0, -1)},
    ],
    ids=str,
)
def test_epochs_are_those_of_the_compiled_step(changes):
    """All rows in one batch, so that their order is one: parameters, scores and trace after eight epochs."""
    config, data = replace(CONFIG, **changes), rows()
    table = whole_table(data, RECIPE, are_labels=False)
    assert on_host.may_run(config, table)
    params = fit.started(0, config, RECIPE, data)
    least = -0.6 if config.posterior == "exact" else NO_LEAST  # above where the noise starts
    state = first_state(params, table.total, 8.0, RECIPE, config, table.counted, least)
    host = loop.run(on_host.HostEpochs(0, config, 100, table), state, NOBODY, Rule(8), name="epochs")
    step = compiled(fit.epoch_of(config, 100, table.n_rows), table.rows)
    device = loop.run(step, state, NOBODY, Rule(8), name="epochs", key=key_from_seed(0))
    assert host.status is device.status
    for mine, its in zip(jax.tree.leaves(host.state), jax.tree.leaves(device.state), strict=True):
        assert mine.dtype == its.dtype
        np.testing.assert_allclose(mine, its, rtol=2e-3, atol=2e-4)
    for name in ("bound", "held_out"):
        mine, its = ([row[name] for row in result.trace] for result in (host, device))
        np.testing.assert_allclose(mine, its, rtol=1e-4)


def test_an_epoch_leaves_the_state_before_it_as_it_was():
    data = rows()
    table = whole_table(data, RECIPE, are_labels=False)
    epochs = on_host.HostEpochs(0, CONFIG, 16, table)
    params = fit.started(0, CONFIG, RECIPE, data)
    state = epochs.begin(first_state(params, table.total, 8.0, RECIPE, CONFIG), None)
    before = [np.array(leaf) for leaf in jax.tree.leaves(state)]
    first, second = epochs.epoch(0, state), epochs.epoch(0, state)
    for kept, leaf in zip(before, jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(kept, leaf)
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("changes", [{}, {"skip": "linear"}], ids=str)
def test_what_is_predicted_on_the_host_is_that_of_the_device(changes):
    """The tables of the exact law at full and half skewness, and the units with the outputs' constants."""
    data = rows()
    settings = {"n_members": 1, "max_epochs": 5, "posterior": "exact", "splines": None, "random_state": 0}
    model = TGGMRegressor((5,), **settings, **changes)
    ensemble = model.fit(data.X, data.Y[:, 0]).ensemble_
    X = 3.0 * data.X.astype(np.float64)
    for share in (1.0, 0.5):
        kept = np.array([1.2, share])

        def compute(member, some, kept=kept):
            return exact_law._tabulated(member, some, "moments", kept)

        here, there = (in_blocks(compute, 128, ensemble.params, X, stays=stays) for stays in (True, False))
        for mine, its in zip(here, there, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-6, atol=1e-8)

    def units(member, some):
        return predict.hidden(member, some, "moments")

    here, there = (in_blocks(units, 512, ensemble.params, X, stays=stays) for stays in (True, False))
    for mine, its in zip(here, there, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-10)


@pytest.mark.parametrize("posterior", ["moments", "exact"])
def test_a_step_that_leads_out_of_the_numbers_ends_the_fit_at_the_last_good_state(posterior):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + np.abs(X[:, 1])
    model = TGGMRegressor((5,), n_members=1, random_state=0, posterior=posterior, max_epochs=3).partial_fit(
        X, y
    )
    absurd = np.where(np.arange(120) == 3, 1e20, y)
    with pytest.warns(NongaussWarning, match="the last finite state is kept"):
        model.partial_fit(X, absurd)
    assert np.isfinite(model.predict(X)).all()
