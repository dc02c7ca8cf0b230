import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.prob import gig

CASES = json.loads((Path(__file__).parents[1] / "reference" / "gig.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda c: "_".join(c[:3]))
def test_moments_and_integral_against_fifty_digits(case):
    p, a, b, mean, inverse, mass = map(float, case)
    got = gig.moments(p, np.array([a]), np.array([b]))
    assert_allclose(np.ravel(got), [mean, inverse], rtol=2e-12)
    assert_allclose(gig.log_integral(p, np.array([a]), np.array([b])), mass, rtol=1e-11, atol=1e-11)


def test_orders_whose_bessel_functions_overflow_stay_finite():
    tiny = np.array([1e-160, 1e-200])
    for p in (-3.0, 0.0, 3.0):
        mean, inverse = gig.moments(p, np.ones(2), tiny)
        assert np.isfinite(mean).all()
        assert (inverse > 0).all()
