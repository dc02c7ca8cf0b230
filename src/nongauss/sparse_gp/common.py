"""What the estimators of the family share: parameters, from encoded rows to a posterior, readable results."""

from __future__ import annotations

import numbers
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.estimator.base import TableEstimator
from nongauss.estimator.parameters import Interval, StrOptions, check_parameters
from nongauss.optimise.checkpoint import ended, opened
from nongauss.optimise.result import FitResult, Status
from nongauss.sparse_gp import fit as recipe_of
from nongauss.sparse_gp.fit import Recipe
from nongauss.sparse_gp.kernels.algebra import Kernel, Space, Sum
from nongauss.sparse_gp.kernels.text import parse
from nongauss.sparse_gp.likelihoods import Likelihood
from nongauss.sparse_gp.params import Model, Rows
from nongauss.sparse_gp.predict import Posterior
from nongauss.sparse_gp.stacking import Member, fit_members, is_exact, weights_of
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.inputs import Inputs
from nongauss.tables.parquet import Encoded
from nongauss.tables.parted import Encode, ReadTarget, sample
from nongauss.tables.rows import canonical_rows
from nongauss.tables.source import Source

FloatArray = NDArray[np.float64]

CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [str, Kernel],
    "n_scales": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
    "n_inducing": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
    "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
    "tol": [Interval(numbers.Real, 0, None, closed="left")],
    "callbacks": ["array-like", None],
    "checkpoint": [str, os.PathLike, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}

MANY, FEW = 500, 100
"""Inducing inputs by default: with Gaussian noise, and with other likelihoods."""


FINE, COARSE = 4, 2
"""Terms of the sum that is averaged with one function: where every row is an inducing input, and else. Four
predict rows left out of training better than two or three, at a price."""


class SparseGP(TableEstimator):
    """Base of the sparse Gaussian processes: a subclass reads its target and has these parameters."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    kernel: Any
    n_scales: Any
    n_inducing: Any
    max_iter: int
    tol: float
    checkpoint: str | os.PathLike[str] | None
    random_state: Any
    posteriors_: tuple[Posterior, ...]
    weights_: FloatArray

    def _check(self) -> None:
        check_parameters(self)
        if isinstance(self.kernel, str):
            parse(self.kernel)

    def _fit(
        self, inputs: Inputs, y: FloatArray, shift: FloatArray, likelihood: Likelihood, seed: int
    ) -> FitResult:
        """Fit to encoded rows and keep what came of it; the caller adds its own and then records the result.

        In that order a warning that is an error leaves a whole model.
        """
        encoded, _ = with_a_column(inputs.encoded, space_of(inputs.encoder))
        merged = canonical_rows(encoded, np.stack([y, shift], axis=1), inputs.weight)
        own, moved = merged.Y.astype(np.float64).T
        rows = Rows(merged.X.astype(np.float64), own, merged.weight, moved)
        return self._learn(inputs.encoder, rows, None, likelihood, seed)

    def _fit_parts(
        self, source: Source, encoder: TableEncoder, read: ReadTarget, likelihood: Likelihood, seed: int
    ) -> FitResult:
        """The same for a table in parts: all but q is learned from rows that fit in memory."""
        if self._n_components() > 1 and not likelihood.conjugate:
            raise InputError(
                "posterior='mixture' takes tables in memory; give posterior='gaussian', or fewer rows."
            )
        if not encoder.encoded_names:
            raise InputError("No column of the table tells rows apart; give one with more than one value.")
        most = recipe_of.most_rows(self._most_inducing(likelihood))
        encoded = source.map(Encode(encoder, read, type(self).__name__, n_targets=2))
        first = sample(encoded, most)
        everywhere = None if first.are_all else encoded.map(as_rows)
        del encoded  # so that workers keep one form of the rows
        rows = Rows(*(array.astype(np.float64) for array in as_rows(first.rows)))
        return self._learn(encoder, rows, everywhere, likelihood, seed, first.checksum)

    def _learn(
        self,
        encoder: TableEncoder,
        rows: Rows,
        everywhere: Source | None,
        likelihood: Likelihood,
        seed: int,
        checksum: int = 0,
    ) -> FitResult:
        """Fit to canonical rows, the first of those `everywhere` if these are more; `checksum` is of all."""
        space = with_a_column(rows.X[:0], space_of(encoder))[1]
        n_inducing = self._n_inducing(rows, likelihood)
        kernels = self._kernels(likelihood, n_inducing >= len(rows.y))
        kernels[0].labels(space)  # a column that is not there is an error now
        known = recipe_of.sample(rows, self._most_inducing(likelihood))
        models, psi = models_of(kernels, space, likelihood, known)
        arrays, told = tuple(rows), (self._settings_that_matter(), encoder, likelihood, checksum)
        seed, checkpoint = opened(self.checkpoint, seed, self.random_state, arrays, *told)
        recipe = Recipe(n_inducing, int(self.max_iter), float(self.tol), seed, self._n_components())
        watching = self._watching(checkpoint)
        members = fit_members(models, rows, psi, recipe, everywhere=everywhere, **watching)
        weights = weights_of(members, rows)
        order = np.argsort(-weights, kind="stable")
        members = [members[c] for c in order]
        self._keep_encoder(encoder)
        self.posteriors_, self.weights_ = tuple(member.posterior for member in members), weights[order]
        self._keep_readable(members[0], rows)
        statuses = [member.result.status for member in members]
        worst = min(statuses, key=lambda status: (status is not Status.STOPPED, status.converged))
        ended(checkpoint, worst)
        return replace(members[0].result, status=worst)

    def _keep_readable(self, main: Member, rows: Rows) -> None:
        """What the model with the greatest share says of itself."""
        posterior = main.posterior
        self.is_exact_ = is_exact(main, rows)
        self.holds_training_rows_ = shares_a_row(posterior.Z, rows.X)
        self.kernel_params_, self.lengthscales_ = readable_kernels(main.model, posterior.thetas)
        self.bound_ = main.bound

    @property
    def posterior_(self) -> Posterior:
        """The posterior with the greatest share: the only one, but for averages (`posteriors_`)."""
        return self.posteriors_[0]

    def _encode(self, X: Any) -> FloatArray:
        return with_a_column(super()._encode(X), space_of(self._encoder))[0]

    def _n_components(self) -> int:
        """Number of Gaussians in q."""
        return 1

    def _kernels(self, likelihood: Likelihood, every_row: bool) -> list[Kernel]:
        """The kernel of each model that is fitted. `every_row`: is each an inducing input?"""
        kernel = parse(self.kernel) if isinstance(self.kernel, str) else self.kernel
        if self.n_scales != "auto":
            return [Sum((kernel,) * self.n_scales) if self.n_scales > 1 else kernel]
        if not likelihood.conjugate or isinstance(kernel, Sum):
            return [kernel]
        return [kernel, Sum((kernel,) * (FINE if every_row else COARSE))]

    def _n_inducing(self, rows: Rows, likelihood: Likelihood) -> int:
        if self.n_inducing == "auto" and likelihood.conjugate and len(rows.y) <= recipe_of.MOST_EXACT:
            return len(rows.y)
        return self._most_inducing(likelihood)

    def _most_inducing(self, likelihood: Likelihood) -> int:
        """Inducing inputs where there are many rows."""
        if self.n_inducing != "auto":
            return int(self.n_inducing)
        return MANY if likelihood.conjugate else FEW


def models_of(
    kernels: Sequence[Kernel], space: Space, likelihood: Likelihood, known: Rows
) -> tuple[list[Model], FloatArray]:
    """The model with each kernel, and the likelihood's parameters psi to start from, by some rows."""
    offset, psi = likelihood.start(known.y, known.weight)
    if known.shift.any():
        offset = offset + np.log(known.weight.sum() / (known.weight @ np.exp(known.shift)))
    L = likelihood.n_latent
    kernel_of = tuple(range(L)) if likelihood.own_kernels else (0,) * L
    shared = [(kernel,) * (1 + max(kernel_of)) for kernel in kernels]
    return [Model(each, kernel_of, space, likelihood, offset) for each in shared], psi


def as_rows(part: Encoded) -> Rows:
    """Encoded rows, whose targets are y and the shift of the latent mean, as the mathematics takes them."""
    X: Any = part.X  # float32 here; what computes on them has them in float64, block by block
    y, shift = part.Y.T
    return Rows(X, y, part.weight, shift)


def space_of(encoder: Any) -> Space:
    """Which input column each encoded column came from, and the names of those that are used."""
    used = [code for code in encoder.columns if code.encoded_names]
    group = tuple(number for number, code in enumerate(used) for _ in code.encoded_names)
    return Space(tuple(str(code.name) for code in used), group)


def with_a_column(encoded: FloatArray, space: Space) -> tuple[FloatArray, Space]:
    """The same, with a column of zeros where there is none: a table that says nothing is legal."""
    if encoded.shape[1]:
        return encoded, space
    return np.zeros((len(encoded), 1)), Space(("nothing",), (0,))


def shares_a_row(Z: FloatArray, X: FloatArray) -> bool:
    """Is a row of Z (M, D) also one of X (N, D), to the last bit?"""
    known = {row.tobytes() for row in Z}
    return any(row.tobytes() in known for row in X)


def readable_kernels(
    model: Model, thetas: tuple[FloatArray, ...]
) -> tuple[dict[str, float], dict[str, float]]:
    """Kernel parameters by name, and the length-scale of each column."""
    params: dict[str, float] = {}
    for number, (kernel, theta) in enumerate(zip(model.kernels, thetas, strict=True)):
        prefix = "noise " if number else ""
        labels = kernel.labels(model.space)
        params |= {prefix + label: float(np.exp(t)) for label, t in zip(labels, theta, strict=True)}
    return params, model.kernels[0].lengthscales(thetas[0], model.space)
