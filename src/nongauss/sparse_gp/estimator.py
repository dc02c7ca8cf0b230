"""`SparseGPRegressor`, what a user calls for numbers. Wiring."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

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
    Verbosity,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.predictive.distribution import PredictiveDistribution, checked_count
from nongauss.sparse_gp.base import SparseGP
from nongauss.sparse_gp.beside import log_exposure, seen_through, whole_trials
from nongauss.sparse_gp.config import KernelLike, Number
from nongauss.sparse_gp.data import (
    ScaleTarget,
    SummariseTarget,
    target_limits,
    target_scaler,
)
from nongauss.sparse_gp.draws import target_draws
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.left_out import left_out_density
from nongauss.sparse_gp.likelihoods import REGRESSION, Custom, Likelihood
from nongauss.sparse_gp.predict import GPAverage
from nongauss.tables.frame import read_input
from nongauss.tables.learn import learn
from nongauss.tables.target import TargetScaler, warn_if_far

LikelihoodLike = Annotated[
    str | Callable[[Any, Any], Any] | Likelihood, StrOptions(set(REGRESSION)), callable, Likelihood
]


class SparseGPRegressor(DistributionRegressorMixin, RegressorMixin, SparseGP):  # type: ignore[misc]
    r"""Nonlinear regression for real, heavy-tailed, positive or count targets: a sparse Gaussian process.

    The target depends on a latent function f with a Gaussian-process prior, y ~ p(y | f(x)). M inducing
    values summarise f; their distribution q(u) maximises a lower bound of the log evidence. There is no
    step size and no training loop: hyper-parameters and inducing inputs are optimised together by L-BFGS,
    q(u) by steps that cannot lower the bound. Columns and targets may have any units, missing cells and
    text columns are handled, and each input column has its own length-scale.

    Parameters
    ----------
    likelihood : str or callable, default "gaussian"
        "gaussian"; "heteroscedastic" (Gaussian, noise depends on the inputs); "laplace", "student_t" (heavy
        tails); "exponential", "gamma" (positive, mean e^f), "log_normal" (positive, log y = f + noise),
        "weibull" (positive, such as times, scale e^f);
        "hurdle_gamma", "hurdle_log_normal" (positive with exact zeros); "beta" (between 0 and 1, mean s(f)),
        "zero_one_beta" (shares with exact 0 or 1); "poisson", "negative_binomial" (counts, mean e^f),
        "zero_inflated_poisson", "zero_inflated_negative_binomial" (counts with more zeros), "hurdle_poisson",
        "hurdle_negative_binomial" (more zeros or fewer), "poisson_square" (counts, mean f^2); "binomial",
        "beta_binomial" (counts out of `trials`, mean s(f) times these); "discretised",
        "discretised_student_t" (whole numbers of any sign and spread: f + noise, rounded). A function
        `log_prob(y, f)` of arrays that broadcast defines your own likelihood; `support` says which values y
        can take.
    kernel : str or Kernel, default "matern52"
        Names joined by + and *, with columns in brackets: "matern52 + linear(age)". There are
        squared_exponential, matern12, matern32, matern52, rational_quadratic, periodic, cyclic (weekdays,
        months and hours of dates), linear, categorical, group, constant, white. Columns named in
        categorical and group are treated as labels, even if they are numbers.
    group : str or int, default None
        A column, by name or number, with the group of each row: schools, patients, shops. Each group then
        has an effect of its own on f, normal about 0 with a variance that is learned (the random intercept
        of mixed models); `kernel` uses the other columns. A new or missing group has an effect drawn from
        that normal distribution, so predictions for it are wider. At most 255 groups.
    n_scales : "auto" or int, default "auto"
        The latent function is a sum of this many independent functions, all with `kernel`, each with its
        own variance and length-scales, which start at different values, smooth to rough. "auto": with
        Gaussian noise, and up to 2,000 rows with other likelihoods of numbers on a continuous scale, an
        average of two models, with 1 and with 4 functions (with 1 and 2 if not every row is an inducing
        input, or noise is not Gaussian, Laplace or Student-t; above 5,000 rows the one with 2 alone). With
        fewer than 30 rows for each column a third model joins, in which all columns share one length-scale.
        If `kernel` is a sum, and in all other cases, 1. Tables with dates have one more model, also for
        counts and labels, in which weekdays, months and hours are periodic. Where inducing inputs are fewer
        than rows, predictions are corrected from the nearest rows if that predicts left-out rows better.
    n_inducing : "auto" or int, default "auto"
        Number M of inducing inputs; time grows as N M^2. "auto": with Gaussian, Laplace and Student-t noise
        every row up to 1,000 (with Gaussian noise the exact Gaussian process); above that 500. For other
        likelihoods 100, or 300 with up to 2,000 rows if y is measured, not counted (varying noise, positive
        numbers).
    posterior : {"gaussian", "mixture"}, default "gaussian"
        Form of q(u). "mixture": `n_components` Gaussians, fitted after the hyper-parameters, for targets
        that f may explain in several ways, so that the posterior has several modes. It costs little, but
        gains nothing if log p(y | f) is concave in f; with Gaussian noise a single Gaussian is exact.
    n_components : int, default 2
        Number of Gaussians of a mixture.
    expectation : {"auto", "closed_form", "quadrature", "monte_carlo"}, default "auto"
        How expectations of log p(y | f) are computed, if the likelihood offers a choice.
    support : {"real", "positive", "unit", "count"}, default "real"
        Possible values of y, if `likelihood` is a function.
    hyper_parameters : {"auto", "best", "laplace"}, default "auto"
        "laplace": predictions are averaged over the best hyper-parameters and four draws from a normal
        around them, with the curvature there. This is for few rows, where hyper-parameters are uncertain,
        and takes some more evaluations; `to_arviz` gives draws. "auto": "laplace" with fewer than 100
        distinct rows, unless there are more than 60 hyper-parameters. "best": only the best ones.
    keep_columns : {"auto", "all"} or list of str, default "auto"
        "auto": in a table with more columns than rows, and more than 200, only the columns that are by
        themselves significantly associated with the target are used (`nongauss.tables.screen`). "all":
        every column. Names: as "auto", but these columns are always used.
    max_iter : int, default 400
        Maximum number of L-BFGS iterations.
    tol : float, default 1e-3
        Stop when 20 iterations together gain less than this, nats a row; ten times this with so many rows
        that models are fitted to some of them first (above 20,000 with 500 inducing inputs).
    callbacks : list of callables, default None
        Each is called with a `Progress` after each iteration; the fit stops if one returns True.
    checkpoint : path, default None
        A file written about every second. If it exists at the start and belongs to the same fit, the fit
        resumes from it and ends as if it had not been interrupted. It is removed at the end.
    random_state : int, RandomState, Generator or None, default None
        Seed for the starting inducing inputs.
    verbose : int, default 0

    Attributes
    ----------
    lengthscales_ : dict
        Length-scale of each column, in its standard deviations: the distance over which f changes. For a
        sum of kernels, the length-scale of a single kernel with the same variance and mean squared slope.
    kernel_params_, likelihood_params_ : dict
        All hyper-parameters by name; noise and scales in units of the target (for an average of models,
        their average). Terms of a sum of kernels that are so rough that they are independent between rows
        count as noise.
    group_effects_ : DataFrame or None
        With `group`, a row for each group: its effect on f and its standard deviation, in units of the
        target if f is the mean, otherwise of f (a logarithm or a logit). With several functions or classes,
        a row for each ("function").
    bound_ : float
        Lower bound of the log evidence of the (scaled) target, nats.
    posterior_ : Posterior
        Everything needed for prediction: inducing inputs, q(u), hyper-parameters.
    posteriors_ : tuple of Posterior, weights_ : ndarray (C,)
        The models whose predictions are averaged, in descending order of weight, and their weights: those
        under which each row is predicted best from all others. The other attributes are those of the first,
        `posterior_`.
    kept_columns_ : tuple of str or None
        The columns that are used, or None if all are.
    is_exact_ : bool
        Whether the model is the exact Gaussian process: Gaussian noise, every row an inducing input.
    holds_training_rows_ : bool
        Whether a saved model holds encoded rows of the table: rows whose cells stand in for missing ones,
        inducing inputs if these are all rows, and all rows if predictions are corrected from the nearest
        rows.
    loo_ : ndarray (N,) or None
        Leave-one-out log density (or probability) of each training row, by dividing its site out of q(u);
        the hyper-parameters have seen the row. None for tables in parts and very large ones. See
        `nongauss.compare`.
    n_iter_, converged_, stop_reason_, trace_ : how the fit went.

    Raises
    ------
    ValueError
        For parameters, tables or targets that cannot be used; one sentence with the remedy.

    References
    ----------
    Bui and Turner, On the paper: sparse non-conjugate Gaussian-process regression, 2014. Titsias, AISTATS
    2009. Khan and Lin, AISTATS 2017; Adam, Chang, Khan and Solin, NeurIPS 2021 (how q is found). Yao,
    Vehtari, Simpson and Gelman, Bayesian Analysis 13, 2018 (averages). Vecchia, J. R. Stat. Soc. B 50, 1988
    (nearest rows).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nongauss import SparseGPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseGPRegressor(likelihood="gamma", n_inducing=20, random_state=0).fit(X, y)
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    _scaler: TargetScaler
    _target_limits: tuple[float, float] = (-np.inf, np.inf)
    """Within which the fit took targets to be."""

    def __init__(
        self,
        likelihood: LikelihoodLike = "gaussian",
        *,
        kernel: KernelLike = "matern52",
        group: str | int | None = None,
        n_scales: Number = "auto",
        n_inducing: Number = "auto",
        posterior: Literal["gaussian", "mixture"] = "gaussian",
        n_components: PositiveInt = 2,
        expectation: Literal["auto", "closed_form", "quadrature", "monte_carlo"] = "auto",
        support: Literal["real", "positive", "unit", "count"] = "real",
        hyper_parameters: Literal["auto", "best", "laplace"] = "auto",
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
        self.group = group
        self.n_scales = n_scales
        self.n_inducing = n_inducing
        self.posterior = posterior
        self.n_components = n_components
        self.expectation = expectation
        self.support = support
        self.hyper_parameters = hyper_parameters
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
        trials: ArrayLike | None = None,
        truncation: ArrayLike | None = None,
        truncation_upper: ArrayLike | None = None,
    ) -> Self:
        """Fit to a table X (N, D) and targets y (N,), or a table in parts (see `docs/scale.md`).

        A row of weight 2 counts as the row twice, one of weight 0 is not there. `exposure` (N,), for counts:
        the time, area or number at risk behind each count; rates are per unit of it (of a table in parts the
        name of a column, as for the two that follow).

        Rows of which y is a limit: `censoring` (N,) is 1 where the true value is above y (right-censored, as
        a time without the event), -1 where it is below, 0 where y is known. Or `y_upper` (N,): the true value
        is between y and that; equal where it is known, `inf` where nothing limits it. Predictions are of the
        true value. For likelihoods of real and positive numbers and of shares, without point masses.

        Rows that are there only because their y is large enough (people who entered a study late, amounts
        below a threshold that nobody records): `truncation` (N,) is what the true value had to be above,
        `truncation_upper` (N,) what it could not be above; one number stands for all rows. Predictions are of
        all, not of those that would be recorded. `trials` (N,), for "binomial" and "beta_binomial": of how
        many each count is.

        Warns if the target is constant or the fit did not end well. Raises ValueError.
        """
        recipe = self._recipe(int(self.n_components) if self.posterior == "mixture" else 1)
        seed = self._key_seed(self.random_state)
        likelihood, name = self._likelihood(), type(self).__name__
        beside: dict[str, Any] = {
            "exposure": exposure,
            "censoring": censoring,
            "y_upper": y_upper,
            "trials": trials,
            "truncation": truncation,
            "truncation_upper": truncation_upper,
        }
        source = self._read(X, y, sample_weight, recipe, **beside)
        seen, n_values = seen_through(likelihood, beside)
        learned = learn(source, name, SummariseTarget(likelihood, name))
        scaler = target_scaler(learned.target, likelihood)
        if likelihood.target == "standardised":
            warn_if_far(learned.target.moments, stacklevel=3)
        limits = target_limits(learned.target, likelihood)
        read = ScaleTarget(scaler, likelihood, name, n_values, limits)
        result = self._fit(source, learned, read, seen, recipe, seed, float(scaler.scale[0]))
        self._scaler, self._target_limits = scaler, limits
        posterior, average = self.posterior_, GPAverage(self.posteriors_, self.weights_)
        self.likelihood_params_ = average.likelihood_params(abs(float(scaler.scale[0])), self._near)
        self.loo_ = left_out_density(self, source, likelihood, n_values)
        self._record_fit(result)
        warn_of_limits(posterior.likelihood, posterior.psi)
        return self

    @by_parts
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        exposure: ArrayLike | None = None,
        trials: ArrayLike | None = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean of y for each row, original units: (N,). With `return_std`, also its standard deviation.

        Of counts with exposure or trials the mean for an exposure of 1 or one trial, unless these are given.
        """
        if not return_std and exposure is None and trials is None:
            mean: FloatArray = self._over_gaps(X, self._mean)
            return mean
        distribution = self.predict_distribution(X, exposure, trials)
        return (distribution.mean, distribution.std) if return_std else distribution.mean

    def predict_distribution(
        self, X: Any, exposure: ArrayLike | None = None, trials: ArrayLike | None = None
    ) -> PredictiveDistribution:
        """The whole distribution of y for each row, discrete for counts.

        `exposure` and `trials` as in `fit`, 1 where they are not given.
        """
        table = read_input(self._new_rows(X), type(self).__name__)
        shift = log_exposure(exposure, len(table), self.posterior_.likelihood)
        beside = [shift]
        if trials is not None:
            seen_through(self.posterior_.likelihood, {"trials": trials})
            beside.append(whole_trials(trials, len(table)))
        law: PredictiveDistribution = self._over_gaps(table, self._law, *beside)
        return law

    def posterior_draws(
        self, X: Any, n: int = 1, random_state: Any = None, *, with_noise: bool = False
    ) -> FloatArray:
        """`n` draws of the mean of y as a function, at the rows of X: (N, n), in units of the target.

        A draw is one function: its values at different rows belong together, as those of `sample_y` do not,
        so that sums, differences and places of maxima over rows have the right spread. `with_noise`: draws of
        y instead, about one function each. Up to 1,000 distinct rows are drawn from the joint posterior;
        more follow from 1,000 of them. For an exposure of 1, or one trial. Equal seed, equal draws.
        """
        count, rng = checked_count(n), np.random.default_rng(self._key_seed(random_state))
        return target_draws(self, X, count, rng, with_noise)

    def _mean(self, encoded: FloatArray) -> FloatArray:
        if self.posterior_.likelihood.mean_is_latent:
            average = GPAverage(self.posteriors_, self.weights_)
            mean = average.mean(encoded) + (0.0 if self._near is None else self._near.at(encoded)[0])
            return self._scaler.inverse_mean(mean[:, None])[:, 0]
        return self._law(encoded, np.zeros(len(encoded))).mean

    def _law(
        self, encoded: FloatArray, shift: FloatArray, trials: FloatArray | None = None
    ) -> PredictiveDistribution:
        centre, scale = float(self._scaler.centre[0]), float(self._scaler.scale[0])
        average = GPAverage(self.posteriors_, self.weights_)
        return average.law(encoded, shift, centre, scale, trials, self._near)

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
