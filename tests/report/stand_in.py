"""A small regressor with the public face that the report reads: Gaussian predictions around a ridge fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import BayesianRidge


class NormalRows:
    """Independent normals, one a row."""

    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def cdf(self, y):
        return norm.cdf(y, self.mean, self.std)

    def log_prob(self, y):
        return norm.logpdf(y, self.mean, self.std)

    def interval(self, coverage=0.9):
        half = norm.ppf(0.5 + coverage / 2) * self.std
        return np.stack([self.mean - half, self.mean + half], axis=1)


class StandIn(RegressorMixin, BaseEstimator):
    def __init__(self, n_sweeps=10, callbacks=None, random_state=None):
        self.n_sweeps = n_sweeps
        self.callbacks = callbacks
        self.random_state = random_state

    def fit(self, X, y):
        self.ridge_ = BayesianRidge(compute_score=True).fit(X, y)
        scores = self.ridge_.scores_
        self.n_iter_ = len(scores)
        self.n_features_in_ = self.ridge_.n_features_in_
        self.trace_ = pd.DataFrame(
            {"iteration": np.arange(1, len(scores) + 1), "bound": scores, "seconds": 0.1}
        )
        self.converged_, self.stop_reason_ = True, "Converged: no <gain> beyond `tol`."
        return self

    def predict(self, X):
        return self.ridge_.predict(X)

    def predict_distribution(self, X):
        return NormalRows(*self.ridge_.predict(X, return_std=True))

    def predict_interval(self, X, coverage=0.9):
        return self.predict_distribution(X).interval(coverage)


class Broken(StandIn):
    def fit(self, X, y):
        raise RuntimeError("no\nluck")


def small_data(n=120, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -2.0, 0.5] + 3 + 0.3 * rng.normal(size=n)
