"""The joint law of a row's features given its seen cells, to draw from: sums over sets, or independent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.enumeration import feature_sets
from nongauss.harmonium.predict import Machine


class FeatureLaw(NamedTuple):
    """Of each row the mean of its features, (N, K), and their joint law.

    That is the chance of each of the S sets, `shares` (N, S), where they are summed; else features are
    independent, on with probability `mean`, or, if they have sizes, normal with the standard deviations
    `spread` (N, K).
    """

    mean: Float[np.ndarray, "N K"]
    shares: Float[np.ndarray, "N S"] | None = None
    spread: Float[np.ndarray, "N K"] | None = None

    def variance(self, slope: Float[np.ndarray, " K"]) -> Float[np.ndarray, " N"]:
        """Variance of the sum of the features times `slope` in each row."""
        if self.shares is not None:
            value = feature_sets(self.mean.shape[1]) @ slope
            summed: Float[np.ndarray, " N"] = self.shares @ value**2 - (self.shares @ value) ** 2
            return summed.clip(min=0.0)
        each = self.mean * (1.0 - self.mean) if self.spread is None else self.spread**2
        independent: Float[np.ndarray, " N"] = each.clip(min=0.0) @ slope**2
        return independent

    def draw(self, places: Float[np.ndarray, "N K"]) -> Float[np.ndarray, "N K"]:
        """Features at these places, between 0 and 1, of their laws; of sets the first place counts."""
        if self.shares is not None:
            up_to = np.cumsum(self.shares, axis=1)
            sets = (up_to < places[:, :1] * up_to[:, -1:]).sum(axis=1)
            drawn: Float[np.ndarray, "N K"] = feature_sets(self.mean.shape[1])[sets]
            return drawn
        if self.spread is None:
            return (places < self.mean).astype(np.float64)
        sized: Float[np.ndarray, "N K"] = self.mean + self.spread * ndtri(places)
        return sized


def law_of_features(machine: Machine, rows: VisibleRows) -> FeatureLaw:
    """The law of the features of encoded rows, given their seen cells."""
    if machine.is_summed:
        shares = machine.set_shares(rows)
        return FeatureLaw(shares @ feature_sets(machine.params.n_components), shares)
    mean = machine.hidden(rows.X, rows.missing)
    return FeatureLaw(mean, None, np.ones_like(mean) if machine.units == "real" else None)
