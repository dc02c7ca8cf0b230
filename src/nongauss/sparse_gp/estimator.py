"""`SparseGPRegressor`, what a user calls for numbers. Wiring: tables to rows, moments to distributions."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.base import DistributionRegressorMixin
from nongauss.estimator.parameters import Interval, StrOptions
from nongauss.optimise.result import FitResult
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.mixture import averaged
from nongauss.sparse_gp.common import CONSTRAINTS, FloatArray, SparseGP
from nongauss.sparse_gp.likelihoods import REGRESSION, Custom, Likelihood, NegativeBinomial, Poisson
from nongauss.tables.inputs import read_inputs
from nongauss.tables.parquet import Part
from nongauss.tables.parted import by_parts, describe, is_parted, open_parts
from nongauss.tables.scaling import Moments
from nongauss.tables.target import TargetScaler, TargetSummary, validate_target


class SparseGPRegressor(DistributionRegressorMixin, RegressorMixin, SparseGP):
    r"""Nonlinear regression for real, heavy-tailed, positive or count targets: a sparse Gaussian process.

    A latent function f with a Gaussian-process prior stands behind the target, y ~ p(y | f(x)). M inducing
    values summarise it; their distribution q(u) maximises a lower bound of the evidence. There is no step
    size and no training loop: hyper-parameters and inducing inputs are found together by L-BFGS, q(u) by
    steps that cannot lower the bound. Columns and targets may have any units; missing cells and text columns
    are encoded inside, each input column with a length-scale of its own.

    Parameters
    ----------
    likelihood : str or callable, default "gaussian"
        "gaussian"; "heteroscedastic" (Gaussian, noise depends on the inputs); "laplace", "student_t" (heavy
        tails); "exponential", "gamma" (positive, mean e^f); "beta" (between 0 and 1, mean s(f)); "poisson",
        "negative_binomial" (counts, mean e^f). A function `log_prob(y, f)` of arrays that broadcast is a
        likelihood of your own; `support` says which values y can take.
    kernel : str or Kernel, default "matern52"
        Names joined by + and *, with columns in brackets: "matern52 + linear(age)". There are
        squared_exponential, matern12, matern32, matern52, rational_quadratic, periodic, linear, categorical,
        constant, white.
    n_scales : "auto" or int, default "auto"
        The latent function is a sum of this many independent functions, all with `kernel`, each with variance
        and length-scales of its own; they start apart, smooth to rough. "auto": with Gaussian noise, unless
        `kernel` is a sum already, the average of two models, with 1 and with 4 (with 1 and with 2 where not
        every row is an inducing input); else 1.
    n_inducing : "auto" or int, default "auto"
        Number M of inducing inputs; time grows as N M^2. "auto": with Gaussian noise and up to 1,000 distinct
        rows every row (the exact Gaussian process), else 500; 100 for other likelihoods.
    posterior : {"gaussian", "mixture"}, default "gaussian"
        Form of q(u). "mixture": `n_components` Gaussians, found after the hyper-parameters, for targets that
        f may explain in several ways, so that the posterior has several modes. Costs little; brings nothing
        where log p(y | f) is concave in f, and with Gaussian noise one Gaussian is exact.
    n_components : int, default 2
        Number of Gaussians of a mixture.
    expectation : {"auto", "closed_form", "quadrature", "monte_carlo"}, default "auto"
        How expectations of log p(y | f) are taken, where the likelihood leaves a choice.
    support : {"real", "positive", "unit", "count"}, default "real"
        Values of y, for a likelihood that is a function.
    max_iter : int, default 400
        Most L-BFGS iterations.
    tol : float, default 1e-3
        Stop when 20 iterations together gain less than this, nats a row.
    callbacks : list of callables, default None
        Each is given a `Progress` after each iteration; one that returns True stops the fit.
    checkpoint : path, default None
        A file written every second or so; if it is there at the start and is of the same fit, the fit goes on
        from it and ends as if it had not been interrupted. Removed at the end.
    random_state : int, RandomState, Generator or None, default None
        Seed of the inducing inputs' start.
    verbose : int, default 0

    Attributes
    ----------
    lengthscales_ : dict
        Length-scale of each column, in its standard deviations: how far until f changes. Of a sum of kernels,
        the one that a single kernel of the same variance and mean squared slope would have.
    kernel_params_, likelihood_params_ : dict
        All hyper-parameters by name; noise and scales in units of the target.
    bound_ : float
        Lower bound of the log evidence of the (scaled) target, nats.
    posterior_ : Posterior
        All that a prediction needs: inducing inputs, q(u), hyper-parameters.
    posteriors_ : tuple of Posterior, weights_ : ndarray (C,)
        The models whose predictions are averaged, the greatest share first, and their shares: those under
        which rows are predicted best from all others. What is readable is that of the first, `posterior_`.
    is_exact_ : bool
        Whether the model is the exact Gaussian process: Gaussian noise, every row an inducing input.
    holds_training_rows_ : bool
        Whether encoded rows are among the inducing inputs, and so in a saved model: where they are all rows,
        which stay where they are. Otherwise they move with the fit.
    n_iter_, converged_, stop_reason_, trace_ : how the fit went.

    Raises
    ------
    ValueError
        For parameters, tables or targets that cannot be used; one sentence with the remedy.

    References
    ----------
    Bui and Turner, On the paper: sparse non-conjugate Gaussian-process regression, 2014. Titsias, AISTATS
    2009. Khan and Lin, AISTATS 2017; Adam, Chang, Khan and Solin, NeurIPS 2021 (how q is found). Yao,
    Vehtari, Simpson and Gelman, Bayesian Analysis 13, 2018 (averages).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nongauss import SparseGPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseGPRegressor(likelihood="gamma", n_inducing=20, random_state=0).fit(X, y)
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "likelihood": [StrOptions(set(REGRESSION)), callable, Likelihood],
        "support": [StrOptions({"real", "positive", "unit", "count"})],
        "posterior": [StrOptions({"gaussian", "mixture"})],
        "n_components": [Interval(numbers.Integral, 1, None, closed="left")],
        "expectation": [StrOptions({"auto", "closed_form", "quadrature", "monte_carlo"})],
        **CONSTRAINTS,
    }

    def __init__(
        self,
        likelihood: str | Callable[[Any, Any], Any] | Likelihood = "gaussian",
        *,
        kernel: Any = "matern52",
        n_scales: str | int = "auto",
        n_inducing: str | int = "auto",
        posterior: str = "gaussian",
        n_components: int = 2,
        expectation: str = "auto",
        support: str = "real",
        max_iter: int = 400,
        tol: float = 1e-3,
        callbacks: Sequence[Callable[..., Any]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.likelihood = likelihood
        self.kernel = kernel
        self.n_scales = n_scales
        self.n_inducing = n_inducing
        self.posterior = posterior
        self.n_components = n_components
        self.expectation = expectation
        self.support = support
        self.max_iter = max_iter
        self.tol = tol
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> Self:
        """Fit to a table X (N, D) and targets y (N,), or a table in parts (see `docs/scale.md`).

        A row of weight 2 counts as the row twice, one of weight 0 is not there. `exposure` (N,), for counts:
        the time, area or number at risk behind each count; rates are per unit of it. Warns if the target is
        constant or the fit did not end well. Raises ValueError.
        """
        self._check()
        seed = self._key_seed(self.random_state)
        likelihood = self._likelihood()
        if is_parted(X):
            scaler, result = self._of_parts(X, y, sample_weight, exposure, likelihood, seed)
        else:
            scaler, result = self._of_table(X, y, sample_weight, exposure, likelihood, seed)
        self._scaler = scaler
        self.likelihood_params_ = self._readable_params()
        self._record_fit(result)
        return self

    def _of_table(
        self, X: Any, y: Any, sample_weight: Any, exposure: Any, likelihood: Likelihood, seed: int
    ) -> tuple[TargetScaler, FitResult]:
        name = type(self).__name__
        inputs = read_inputs(X, sample_weight, name)
        Y, _ = validate_target(y, len(inputs.encoded), name)
        if Y.shape[1] != 1:
            raise InputError(f"y has {Y.shape[1]} outputs, {name} takes one; fit one model for each.")
        shift = _log_exposure(exposure, len(Y), likelihood)
        likelihood.check(Y[:, 0])
        counted = inputs.weight > 0
        scaler = _scaler(
            Moments.of(Y[counted, 0], inputs.weight[counted]), TargetScaler.fit(Y, inputs.weight), likelihood
        )
        return scaler, self._fit(inputs, scaler.transform(Y)[:, 0], shift, likelihood, seed)

    def _of_parts(
        self, X: Any, y: Any, sample_weight: Any, exposure: Any, likelihood: Likelihood, seed: int
    ) -> tuple[TargetScaler, FitResult]:
        name = type(self).__name__
        if exposure is not None:
            raise InputError("exposure takes tables in memory; give rates, or a sample of the rows.")
        source = open_parts(X, y, sample_weight)
        summary, target = describe(source, name, OfTarget(likelihood, name))
        scaler = _scaler(target.outputs[0], target.scaler(), likelihood)
        read = ReadTarget(scaler, name)
        return scaler, self._fit_parts(source, summary.encoder(), read, likelihood, seed)

    @by_parts
    def predict(
        self, X: Any, return_std: bool = False, exposure: ArrayLike | None = None
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean of y for each row, original units: (N,). With `return_std`, also its standard deviation."""
        if not return_std and exposure is None:
            encoded = self._encode(X)
            if self.posterior_.likelihood.target == "standardised":
                means = [posterior.mean(encoded)[:, 0] for posterior in self.posteriors_]
                return self._scaler.inverse_mean((self.weights_ @ means)[:, None])[:, 0]
            return self._distribution(encoded, np.zeros(len(encoded))).mean
        distribution = self.predict_distribution(X, exposure)
        return (distribution.mean, distribution.std) if return_std else distribution.mean

    def predict_distribution(self, X: Any, exposure: ArrayLike | None = None) -> PredictiveDistribution:
        """The whole distribution of y for each row, discrete for counts. `exposure` as in `fit`."""
        encoded = self._encode(X)
        return self._distribution(encoded, _log_exposure(exposure, len(encoded), self.posterior_.likelihood))

    def _distribution(self, encoded: FloatArray, shift: FloatArray) -> PredictiveDistribution:
        centre, scale = float(self._scaler.centre[0]), float(self._scaler.scale[0])
        parts: list[Any] = []
        for posterior in self.posteriors_:
            mean, variance = posterior.moments(encoded)
            mean += shift[:, None]
            likelihood, psi = posterior.likelihood, posterior.psi
            parts.append(likelihood.predictive(mean, variance, psi, centre=centre, scale=scale))
        return parts[0] if len(parts) == 1 else averaged(parts, self.weights_)

    def _likelihood(self) -> Likelihood:
        if isinstance(self.likelihood, Likelihood):
            return self.likelihood
        if isinstance(self.likelihood, str):
            return REGRESSION[self.likelihood](expectation=self.expectation)
        return Custom(expectation=self.expectation, function=self.likelihood, support=self.support)

    def _n_components(self) -> int:
        return int(self.n_components) if self.posterior == "mixture" else 1

    def _readable_params(self) -> dict[str, float]:
        """The likelihood's parameters in units of the target."""
        posterior, scale = self.posterior_, abs(float(self._scaler.scale[0]))
        unit = {"noise_variance": scale**2, "scale": scale}
        return {
            name: float(np.exp(number)) * unit.get(name, 1.0)
            for name, number in zip(posterior.likelihood.param_names, posterior.psi, strict=True)
        }


@dataclass(frozen=True)
class OfTarget:
    """A part's target, checked and summed up."""

    likelihood: Likelihood
    name: str

    def __call__(self, part: Part, weight: FloatArray) -> TargetSummary:
        """Its summary. Raises InputError."""
        found = TargetSummary.of(part.y, weight, self.name)
        if len(found.outputs) != 1:
            raise InputError(
                f"y has {len(found.outputs)} outputs, {self.name} takes one; fit one model for each."
            )
        self.likelihood.check(validate_target(part.y, len(weight), self.name)[0][:, 0])
        return found


@dataclass(frozen=True)
class ReadTarget:
    """A part's target on the scale of the fit, (N, 2), beside the shift of the latent mean, which is 0."""

    scaler: TargetScaler
    name: str

    def __call__(self, y: Any, weight: FloatArray) -> FloatArray:
        """The scaled target. Raises InputError."""
        Y, _ = validate_target(y, len(weight), self.name)
        return np.hstack([self.scaler.transform(Y), np.zeros((len(Y), 1))])


def _scaler(moments: Moments, standard: TargetScaler, likelihood: Likelihood) -> TargetScaler:
    """What is done to the target before the mathematics sees it. Warns of a constant one."""
    if standard.constant[0]:
        warnings.warn(
            "The target is constant: that value is predicted everywhere, with a spread that the data "
            "cannot tell.",
            NongaussWarning,
            stacklevel=4,
        )
    if likelihood.target == "standardised":
        return standard
    mean = moments.unit * moments.mean
    unit = mean if likelihood.target == "scaled" and mean > 0 else 1.0
    return TargetScaler(np.zeros(1), np.array([unit]), standard.constant)


def _log_exposure(exposure: ArrayLike | None, n_rows: int, likelihood: Likelihood) -> FloatArray:
    """The log of the exposure (N,), zeros without one."""
    if exposure is None:
        return np.zeros(n_rows)
    if not isinstance(likelihood, Poisson | NegativeBinomial):
        raise InputError(
            f"exposure is for counts, but the likelihood is {likelihood.name}; drop it, or take 'poisson'."
        )
    try:
        values = np.asarray(exposure, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"exposure must be numbers, one for each row: {error}.") from error
    values = np.full(n_rows, float(values)) if values.ndim == 0 else values
    if values.shape != (n_rows,):
        raise InputError(f"exposure has shape {values.shape}, expected ({n_rows},); give one for each row.")
    bad = ~((values > 0) & np.isfinite(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"exposure must be above 0 and finite, got {values[row]:g} in row {row} (counted from 0); "
            "drop rows without exposure."
        )
    return np.log(values)
