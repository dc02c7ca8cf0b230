"""Candidates of one kind of target give laws of one nature, so that any of them can be mixed."""

from __future__ import annotations

import numpy as np
import pytest

from nongauss.auto.candidates import (
    COUNT,
    DENSITIES,
    POSITIVE,
    REAL,
    REGISTRY,
    UNIT,
    UNIT_WITH_ENDS,
    ZEROS,
)
from nongauss.predictive.combined import mixture
from nongauss.predictive.mixture import standard_normal
from nongauss.sparse_gp.likelihoods import REGRESSION

TARGETS = {
    REAL: [-1.5, 0.2, 2.0],
    POSITIVE: [0.5, 1.0, 4.0],
    UNIT: [0.2, 0.5, 0.7],
    ZEROS: [0.0, 1.0, 3.0],
    UNIT_WITH_ENDS: [0.0, 0.4, 1.0],
    COUNT: [0.0, 1.0, 5.0],
}


def law_of(candidate, y):
    """A law of such a candidate for the rows of y, from its likelihood alone; a plain density for others."""
    model = candidate.build(0, len(y))
    name = getattr(model, "likelihood", None)
    if not isinstance(name, str):
        return standard_normal(len(y))
    likelihood, weight = REGRESSION[name](), np.ones(len(y))
    likelihood = likelihood.adapted(y, weight, 1.0)
    offset, psi = likelihood.start(y, weight)
    mean = np.tile(offset, (1, len(y), 1))
    return likelihood.predictive(mean, np.full_like(mean, 0.1), psi)


@pytest.mark.parametrize("kind", TARGETS)
def test_all_candidates_of_a_kind_can_be_mixed(kind):
    y = np.array(TARGETS[kind])
    laws = [law_of(candidate, y) for candidate in REGISTRY.values() if kind in candidate.kinds]
    assert {law.is_discrete for law in laws} == {kind == COUNT}
    assert len({law.atoms for law in laws}) == 1
    assert bool(laws[0].atoms) == (kind in (ZEROS, UNIT_WITH_ENDS))
    whole = mixture(laws, np.full(len(laws), 1.0 / len(laws)))
    assert np.isfinite(whole.log_prob(y)).all()
    assert kind not in DENSITIES or not whole.is_discrete
