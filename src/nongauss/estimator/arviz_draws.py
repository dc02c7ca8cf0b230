"""Draws in the format of the arviz package, with named dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nongauss.core.errors import InputError

N_SAMPLED = 500
"""Draws from the normals of a fit that has no draws of its own."""


def inference_data(
    variables: Mapping[str, np.ndarray], coordinates: Mapping[str, Any], dims: Mapping[str, list[str]]
) -> Any:
    """`arviz.InferenceData` of arrays (chain, draw, ...) by name. InputError where arviz is not installed.

    `coordinates`: labels by axis; `dims`: the names of the axes of each array after chain and draw.
    """
    try:
        import arviz
    except ImportError as error:
        raise InputError(
            "to_arviz needs the package arviz; install it: pip install 'nongauss[arviz]'."
        ) from error
    labels = {axis: list(names) for axis, names in coordinates.items()}
    return arviz.from_dict(posterior=dict(variables), coords=labels, dims=dict(dims))
