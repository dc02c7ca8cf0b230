"""`SparseGPRegressor`, what a user calls for numbers, and what all estimators of the family share. Wiring."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from nongauss.core.errors import NongaussWarning
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Columns,
    DistributionRegressorMixin,
    NonNegativeFloat,
    PositiveInt,
    RandomState,
    StrOptions,
    TableEstimator,
    Verbosity,
    check_parameters,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.optimise.course import FitResult
from nongauss.optimise.loop import close_checkpoint, open_checkpoint
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.sparse_gp.config import GPRecipe, KernelLike, Number
from nongauss.sparse_gp.data import (
    ReadTarget,
    ScaleTarget,
    ScreenTarget,
    SummariseTarget,
    log_exposure,
    read_table,
    target_scaler,
    with_a_column,
)
from nongauss.sparse_gp.fit import fit
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.likelihoods import REGRESSION, Censored, Custom, Likelihood, check_censoring
from nongauss.sparse_gp.params import most_rows, shares_a_row
from nongauss.sparse_gp.predict import GPAverage, GPPosterior
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import read_input
from nongauss.tables.learn import Learned, as_source, learn
from nongauss.tables.screen import KeepColumns, screened
from nongauss.tables.source import Encode, Source

LikelihoodLike = Annotated[
    str | Callable[[Any, Any], Any] | Likelihood, StrOptions(set(REGRESSION)), callable, Likelihood
]


class SparseGP(TableEstimator):
    """Base of the sparse Gaussian processes: a subclass reads its target and has these parameters."""

    _by_class: ClassVar[bool] = False
    """Are targets classes without an order?"""
    checkpoint: str | os.PathLike[str] | None
    keep_columns: KeepColumns
    random_state: Any
    posteriors_: tuple[GPPosterior, ...]
    weights_: FloatArray

    def begin_at(self, former: Any) -> Self:
        """Let the next fit begin where that of `former`, of the same settings and alike rows, has ended."""
        self._begin_at = former.posteriors_
        return self

    @property
    def posterior_(self) -> GPPosterior:
        """The posterior with the greatest share: the only one, but for averages (`posteriors_`)."""
        return self.posteriors_[0]

    def _recipe(self, n_components: int = 1) -> GPRecipe:
        """The settings, checked. Raises InputError."""
        check_parameters(self)
        return GPRecipe.of(self, n_components)

    def _fit(
        self,
        source: Source,
        learned: Learned,
        read: ReadTarget,
        likelihood: Likelihood,
        recipe: GPRecipe,
        seed: int,
        scale: float = 1.0,
    ) -> FitResult:
        """Fit and keep what came of it; the caller adds its own and then records the result.

        In that order a warning that is an error leaves a whole model.
        """
        encoder = self._screened(learned, source, read)
        most = most_rows(recipe.most_inducing(likelihood))
        table = read_table(source, encoder, read, type(self).__name__, most)
        likelihood = likelihood.adapted(table.rows.y, table.rows.weight, scale)
        told = (self._settings_that_matter(), encoder, likelihood, table.checksum)
        seed, checkpoint = open_checkpoint(self.checkpoint, seed, self.random_state, tuple(table.rows), *told)
        former = self.__dict__.pop("_begin_at", ())
        result, average, main = fit(table, likelihood, recipe, seed, self._run(checkpoint), former)
        self._keep_encoder(encoder)
        self._keep_known_rows(source, encoder)
        self.posteriors_, self.weights_ = average
        self.is_exact_ = main.is_exact(table.rows)
        self._keep_donors(table.donors, shares_a_row(main.posterior.Z, table.rows.X))
        self.kernel_params_, scales = main.posterior.readable()
        shared = main.model.space is not table.space and main.model.space == table.space.as_one
        self.lengthscales_ = dict.fromkeys(table.space.names, *scales.values()) if shared else scales
        self.bound_ = main.bound
        close_checkpoint(checkpoint, result.status)
        return result

    def _screened(self, learned: Learned, source: Source, read: ReadTarget) -> TableEncoder:
        """How the columns are encoded that are looked at. Warns where others are left out; InputError."""
        encode = Encode(learned.encoder, ScreenTarget(read), type(self).__name__)
        return screened(learned, source, encode, self.keep_columns, labels=self._by_class).encoder

    def _became(self) -> dict[str, Any]:
        n_inducing = {"n_inducing": len(self.posteriors_[0].Z)} if self.n_inducing == "auto" else {}
        return super()._became() | n_inducing

    def _as_rows(self, encoded: Any) -> Any:
        return with_a_column(encoded)


class SparseGPRegressor(DistributionRegressorMixin, RegressorMixin, SparseGP):  # type: ignore[misc]
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
        tails); "exponential", "gamma" (positive, mean e^f), "log_normal" (positive, log y = f + noise),
        "weibull" (positive, such as times, scale e^f);
        "hurdle_gamma", "hurdle_log_normal" (positive with exact zeros); "beta" (between 0 and 1, mean s(f)),
        "zero_one_beta" (shares with exact 0 or 1); "poisson", "negative_binomial" (counts, mean e^f),
        "zero_inflated_poisson", "zero_inflated_negative_binomial" (counts with more zeros); "discretised",
        "discretised_student_t" (whole numbers of any sign and spread: f + noise, rounded). A function
        `log_prob(y, f)` of arrays that broadcast is a likelihood of your own; `support` says which values y
        can take.
    kernel : str or Kernel, default "matern52"
        Names joined by + and *, with columns in brackets: "matern52 + linear(age)". There are
        squared_exponential, matern12, matern32, matern52, rational_quadratic, periodic, linear, categorical,
        constant, white.
    n_scales : "auto" or int, default "auto"
        The latent function is a sum of this many independent functions, all with `kernel`, each with variance
        and length-scales of its own; they start apart, smooth to rough. "auto": with Gaussian noise, unless
        `kernel` is a sum already, the average of two models, with 1 and with 4 (with 1 and with 2 where not
        every row is an inducing input), and with fewer than 30 rows a column of a third, whose columns share
        one length-scale; else 1.
    n_inducing : "auto" or int, default "auto"
        Number M of inducing inputs; time grows as N M^2. "auto": with Gaussian noise and up to 1,000 distinct
        rows every row (the exact Gaussian process), else 500; for other likelihoods 100, or 300 with up
        to 2,000 rows where y is measured, not counted (heavy tails, varying noise, positive numbers).
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
    keep_columns : {"auto", "all"} or list of str, default "auto"
        "auto": of a table with more columns than rows, and more than 200, only those are looked at that go
        with the target beyond chance, each by itself (`nongauss.tables.screen`). "all": every column. Names:
        as "auto", but these columns are always looked at.
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
    kept_columns_ : tuple of str or None
        The columns that are looked at, where others are not; None where all are.
    is_exact_ : bool
        Whether the model is the exact Gaussian process: Gaussian noise, every row an inducing input.
    holds_training_rows_ : bool
        Whether a saved model holds rows of the table, as encoded: those whose cells stand in for missing
        ones, and inducing inputs, where they are all rows, which stay where they are.
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

    def __init__(
        self,
        likelihood: LikelihoodLike = "gaussian",
        *,
        kernel: KernelLike = "matern52",
        n_scales: Number = "auto",
        n_inducing: Number = "auto",
        posterior: Literal["gaussian", "mixture"] = "gaussian",
        n_components: PositiveInt = 2,
        expectation: Literal["auto", "closed_form", "quadrature", "monte_carlo"] = "auto",
        support: Literal["real", "positive", "unit", "count"] = "real",
        keep_columns: Columns = "auto",
        max_iter: PositiveInt = 400,
        tol: NonNegativeFloat = 1e-3,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.likelihood = likelihood
        self.kernel = kernel
        self.n_scales = n_scales
        self.n_inducing = n_inducing
        self.posterior = posterior
        self.n_components = n_components
        self.expectation = expectation
        self.support = support
        self.keep_columns = keep_columns
        self.max_iter = max_iter
        self.tol = tol
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        censoring: ArrayLike | None = None,
        y_upper: ArrayLike | None = None,
    ) -> Self:
        """Fit to a table X (N, D) and targets y (N,), or a table in parts (see `docs/scale.md`).

        A row of weight 2 counts as the row twice, one of weight 0 is not there. `exposure` (N,), for counts:
        the time, area or number at risk behind each count; rates are per unit of it (of a table in parts the
        name of a column, as for the two that follow).

        Rows of which y is a limit: `censoring` (N,) is 1 where the true value is above y (right-censored, as
        a time without the event), -1 where it is below, 0 where y is known. Or `y_upper` (N,): the true value
        is between y and that; equal where it is known, `inf` where nothing limits it. Predictions are of the
        true value. For likelihoods of real and positive numbers and of shares.

        Warns if the target is constant or the fit did not end well. Raises ValueError.
        """
        recipe = self._recipe(int(self.n_components) if self.posterior == "mixture" else 1)
        seed = self._key_seed(self.random_state)
        likelihood, name = self._likelihood(), type(self).__name__
        beside: dict[str, Any] = {"exposure": exposure, "censoring": censoring, "y_upper": y_upper}
        source = as_source(X, y, sample_weight, estimator_name=name, **beside)
        is_censored = censoring is not None or y_upper is not None
        if is_censored:
            check_censoring(likelihood)
        learned = learn(source, name, SummariseTarget(likelihood, name))
        scaler = target_scaler(learned.target, likelihood)
        read = ScaleTarget(scaler, likelihood, name, is_censored)
        seen = Censored(of=likelihood) if is_censored else likelihood
        result = self._fit(source, learned, read, seen, recipe, seed, float(scaler.scale[0]))
        self._scaler = scaler
        posterior, size = self.posterior_, abs(float(scaler.scale[0]))
        self.likelihood_params_ = posterior.likelihood.readable(posterior.psi, size)
        self._record_fit(result)
        warn_of_limits(posterior.likelihood, posterior.psi)
        return self

    @by_parts
    def predict(
        self, X: Any, return_std: bool = False, exposure: ArrayLike | None = None
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean of y for each row, original units: (N,). With `return_std`, also its standard deviation."""
        if not return_std and exposure is None:
            mean: FloatArray = self._over_gaps(X, self._mean)
            return mean
        distribution = self.predict_distribution(X, exposure)
        return (distribution.mean, distribution.std) if return_std else distribution.mean

    def predict_distribution(self, X: Any, exposure: ArrayLike | None = None) -> PredictiveDistribution:
        """The whole distribution of y for each row, discrete for counts. `exposure` as in `fit`."""
        table = read_input(self._new_rows(X), type(self).__name__)
        shift = log_exposure(exposure, len(table), self.posterior_.likelihood)
        law: PredictiveDistribution = self._over_gaps(table, self._law, shift)
        return law

    def _mean(self, encoded: FloatArray) -> FloatArray:
        if self.posterior_.likelihood.mean_is_latent:
            average = GPAverage(self.posteriors_, self.weights_)
            return self._scaler.inverse_mean(average.mean(encoded)[:, None])[:, 0]
        return self._law(encoded, np.zeros(len(encoded))).mean

    def _law(self, encoded: FloatArray, shift: FloatArray) -> PredictiveDistribution:
        centre, scale = float(self._scaler.centre[0]), float(self._scaler.scale[0])
        return GPAverage(self.posteriors_, self.weights_).law(encoded, shift, centre, scale)

    def _likelihood(self) -> Likelihood:
        if isinstance(self.likelihood, Likelihood):
            return self.likelihood
        if isinstance(self.likelihood, str):
            return REGRESSION[self.likelihood](expectation=self.expectation)
        return Custom(expectation=self.expectation, function=self.likelihood, support=self.support)


def warn_of_limits(likelihood: Likelihood, psi: FloatArray) -> None:
    """Warns of a shape or precision at its largest: the target spreads less than the likelihood can say."""
    for name, value, (_, largest) in zip(likelihood.param_names, psi, likelihood.bounds(), strict=True):
        if name in ("shape", "precision") and value > largest - 1e-6:
            warnings.warn(
                f"The {name} of the {likelihood.name} likelihood is at its limit {np.exp(largest):.3g}: "
                "the target spreads less about its mean than that, and predicted spreads are too wide. Take "
                "'log_normal' or 'gaussian'.",
                NongaussWarning,
                stacklevel=3,
            )
