"""All that a fitted model can be asked of rows, by name: laws that are laws, shares that sum to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LEVELS = (0.01, 0.05, 0.5, 0.95, 0.99)
PLAIN = ("predict", "transform", "novelty", "impute")
LOGARITHMS = ("predict_log_proba", "score_samples")


def questions(model: Any, rows: Any, y: Any) -> dict[str, Callable[[], Any]]:
    """Each answers with numbers of which all should be finite; y (N,) are targets of the rows."""
    plain = {name: lambda name=name: getattr(model, name)(rows) for name in PLAIN}
    logarithms = {name: lambda name=name: _above(getattr(model, name)(rows)) for name in LOGARITHMS}
    asked = {
        **plain,
        **logarithms,
        "decision_function": lambda: _above(-np.abs(model.decision_function(rows))),  # log odds: either end
        "predict_proba": lambda: _shares(model.predict_proba(rows)),
        "predict_interval": lambda: _rising(
            np.moveaxis(np.asarray(model.predict_interval(rows, 0.9)), -1, 0)
        ),
        "log_density": lambda: _above(model.log_density(rows, y)),
        "sample_y": lambda: model.sample_y(rows, 2, random_state=0),
        "sample_missing": lambda: model.sample_missing(rows, 1)[0],
        "impute_distribution": lambda: _told(model.impute_distribution(rows).to_frame()),
    }
    found = {name: ask for name, ask in asked.items() if hasattr(model, name)}
    return {**found, **_of_law(model, rows, y)} if hasattr(model, "predict_distribution") else found


def _of_law(model: Any, rows: Any, y: Any) -> dict[str, Callable[[], Any]]:
    def law() -> Any:
        return model.predict_distribution(rows)

    return {
        "mean": lambda: law().mean,
        "variance": lambda: law().variance,
        "quantiles": lambda: _rising([law().quantile(level) for level in LEVELS]),
        "cdf": lambda: _between(law().cdf(y)),
        "log_prob": lambda: _above(law().log_prob(y)),
        "crps": lambda: law().crps(y),
        "draws": lambda: law().sample(2, random_state=0),
    }


def _above(values: Any) -> np.ndarray:
    """Logarithms, of which minus infinity is one."""
    out = np.asarray(values, dtype=np.float64)
    return np.where(np.isneginf(out), 0.0, out)


def _between(values: Any) -> np.ndarray:
    out = np.asarray(values)
    assert not ((out < -1e-9) | (out > 1.0 + 1e-9)).any(), f"no probabilities: {out}"
    return out


def _shares(values: Any) -> np.ndarray:
    out = _between(values)
    assert not (np.abs(out.sum(axis=1) - 1.0) > 1e-6).any(), f"they sum to {out.sum(axis=1)}"
    return out


def _rising(values: Any) -> np.ndarray:
    out = np.asarray(values, dtype=np.float64)
    falls = out[1:] < out[:-1] - 1e-9 * np.abs(out[:-1])
    assert not falls.any(), f"quantiles fall: {out[:, falls.any(axis=0)]}"
    return out


def _told(frame: Any) -> np.ndarray:
    numbers = frame.select_dtypes("number")
    return np.where(frame[numbers.columns].isna(), 0.0, numbers)
