"""Draws in the format of the arviz package, with named dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nongauss.core.contracts import InputError
from nongauss.rank_factor.predict import Draw


def inference_data(
    draws: Sequence[Draw], chain: np.ndarray, columns: Sequence[str], factors: np.ndarray
) -> Any:
    """`arviz.InferenceData` of loadings and coefficients: chain, draw, then column and factor, or more.

    Raises InputError where arviz is not installed.
    """
    try:
        import arviz
    except ImportError as error:
        raise InputError(
            "to_arviz needs the package arviz; install it: pip install 'nongauss[arviz]'."
        ) from error
    variables, dims = by_chain(draws, chain)
    coordinates = {"column": list(columns), "factor": list(factors)}
    return arviz.from_dict(posterior=variables, coords=coordinates, dims=dims)


def by_chain(draws: Sequence[Draw], chain: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Arrays (chains, draws, ...), as many of each chain as the shortest has; names of the other axes."""
    numbers = np.unique(chain)
    length = min(int((chain == number).sum()) for number in numbers)
    index = [np.flatnonzero(chain == number)[:length] for number in numbers]

    def stacked(of: Any) -> np.ndarray:
        return np.array([[of(draws[i]) for i in part] for part in index])

    variables = {"loadings": stacked(lambda draw: draw.A)}
    dims = {"loadings": ["column", "factor"]}
    if draws[0].beta.size:
        variables["coefficients"] = stacked(lambda draw: draw.beta[..., :-1])
        variables["offsets"] = stacked(lambda draw: draw.beta[..., -1])
        dims |= {"coefficients": ["expert", "output", "factor"], "offsets": ["expert", "output"]}
    return variables, dims
