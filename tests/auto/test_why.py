from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from nongauss.auto.clock import SearchTime
from nongauss.auto.contenders import Contender
from nongauss.auto.why import why


def said(chosen, other, **clock):
    """What is said where a law with these log densities was chosen before another, after so much time."""
    contenders = [
        Contender("gp weibull", log_density=np.array(chosen), share=1.0),
        Contender("gp gamma", log_density=np.array(other)),
    ]
    rows = SimpleNamespace(weight=np.ones(len(chosen)))
    return why(contenders, SimpleNamespace(rows=rows, clock=SearchTime(**{"budget": None, **clock})))


def test_the_best_is_called_the_best():
    text = said([-1.0, -2.0], [-1.5, -2.5])
    assert "'gp weibull' alone predicts best (-1.500 nats a row)" in text
    assert "'gp gamma', is 0.500 (error 0.000) behind." in text


def test_a_law_that_is_not_ahead_is_not_called_the_best():
    text = said([-1.0, -2.0], [-1.0, -1.996])
    assert "best (" not in text
    assert "'gp weibull' alone is used (-1.500 nats a row)" in text
    assert "'gp gamma', is 0.002 (error 0.001) ahead" in text
    assert "-0.0" not in text


def test_a_budget_that_was_enough_is_told_from_one_that_cut_a_fit_short():
    both = [-1.0, -2.0], [-1.5, -2.5]
    assert "time" not in said(*both)
    assert said(*both, budget=60.0).endswith(
        "The time budget of 60 s was enough for all that were worth a fit."
    )
    assert said(*both, budget=60.0, has_cut=True).endswith("There was not enough time for all.")
