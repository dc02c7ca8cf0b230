"""`SparseGPClassifier` and `SparseGPOrdinalClassifier`, what a user calls for labels."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Columns,
    NonNegativeFloat,
    PositiveInt,
    RandomState,
    StrOptions,
    Verbosity,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.estimator.probabilities import ProbabilityClassifierMixin
from nongauss.predictive.distribution import checked_count
from nongauss.sparse_gp.base import SparseGP
from nongauss.sparse_gp.config import KernelLike, Number
from nongauss.sparse_gp.data import NumberClasses
from nongauss.sparse_gp.draws import probability_draws
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.left_out import left_out_label_density
from nongauss.sparse_gp.likelihoods import Bernoulli, Likelihood, Multinomial, Ordinal, VaryingOrdinal
from nongauss.sparse_gp.predict import GPAverage
from nongauss.tables.labels import labels_of
from nongauss.tables.learn import learn


class _SparseGPLabels(ProbabilityClassifierMixin, SparseGP):
    """What the two classifiers share: they differ in their likelihood."""

    _ordered: ClassVar[bool] = False
    _by_class: ClassVar[bool] = True

    def __init__(
        self,
        *,
        kernel: KernelLike = "matern52",
        group: str | int | None = None,
        n_scales: Number = "auto",
        n_inducing: Number = "auto",
        expectation: str = "auto",
        keep_columns: Columns = "auto",
        max_iter: PositiveInt = 400,
        tol: NonNegativeFloat = 1e-3,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.kernel = kernel
        self.group = group
        self.n_scales = n_scales
        self.n_inducing = n_inducing
        self.expectation = expectation
        self.keep_columns = keep_columns
        self.max_iter = max_iter
        self.tol = tol
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table X (N, D) and labels y (N,) or a column's name.

        X may be in parts: see docs/scale.md.

        A row with weight 2 counts as the same row twice, a row with weight 0 as left out. Raises
        ValueError.
        """
        recipe = self._recipe()
        name = type(self).__name__
        seed = self._key_seed(self.random_state)
        source = self._read(X, y, sample_weight, recipe)
        learned = learn(source, name, partial(labels_of, name, ordered=self._ordered))
        coder = learned.target.coder(name, self._ordered)
        likelihood = self._likelihood(len(coder.classes))
        read = NumberClasses(coder, name)
        result = self._fit(source, learned, read, likelihood, recipe, seed)
        self.classes_ = coder.classes
        self.loo_ = left_out_label_density(self, source, coder)
        if self.group_effects_ is not None and not self._ordered and len(coder.classes) > 2:
            functions = dict(zip(self.posterior_.likelihood.latent_names, self.classes_, strict=True))
            names = {name.strip() or "f": str(label) for name, label in functions.items()}
            self.group_effects_["function"] = self.group_effects_["function"].replace(names)
        self._record_fit(result)
        return self

    @by_parts
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row: (N,)."""
        return super().predict(X)

    @by_parts
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of `classes_`: (N, C), rows sum to 1."""
        found: FloatArray = self._over_gaps(X, self._probabilities)
        return found

    def posterior_draws(self, X: Any, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws of each class's probability as a function, at the rows of X: (N, C, n).

        A draw is of the latent functions: its values at different rows belong together, so that sums and
        differences over rows have the right spread. The mean over draws is that of `predict_proba`, of
        three and more classes nearly. Up to 1,000 distinct rows are drawn from the joint posterior; more
        follow from 1,000 of them. Equal seed, equal draws.
        """
        count, rng = checked_count(n), np.random.default_rng(self._key_seed(random_state))
        return probability_draws(self, X, count, rng)

    def _probabilities(self, encoded: FloatArray) -> FloatArray:
        average = GPAverage(self.posteriors_, self.weights_)
        return average.probabilities([posterior.moments(encoded) for posterior in self.posteriors_])

    def _likelihood(self, n_classes: int) -> Any:
        raise TypeError("A subclass chooses its likelihood.")


class SparseGPClassifier(_SparseGPLabels):
    r"""Nonlinear classification with calibrated probabilities: a sparse Gaussian process and a logistic link.

    For two classes, P(y = 1 | f) is the logistic function of one latent function. For more, it is the
    softmax of one latent function for each class, all with the same kernel. The latent functions have
    Gaussian-process priors, summarised by M inducing values; see `SparseGPRegressor` for how they are
    fitted.

    Parameters
    ----------
    kernel, group, n_scales, n_inducing, keep_columns, max_iter, tol
        See `SparseGPRegressor`.
    callbacks, checkpoint, random_state, verbose
        See `SparseGPRegressor`. "auto" is 1 scale and 100 inducing inputs.
    expectation : str, default "auto"
        Two classes: "quadrature" (exact to 1e-9, the default), "piecewise" or "piecewise_linear" (20
        quadratic or straight pieces that bound log(1 + e^f) from above).
        More: "monte_carlo" (the default), or a bound of log sum exp: "one_vs_each",
        "tilted", "bouchard", "bohning", "jensen".

    Attributes
    ----------
    classes_ : ndarray (C,)
    kept_columns_, group_effects_, lengthscales_, kernel_params_, bound_, posterior_ :
        See `SparseGPRegressor`.
    loo_ : ndarray (N,) or None
        Leave-one-out log probability of each training row's label; see `SparseGPRegressor`.
    n_iter_, converged_, stop_reason_ :
        See `SparseGPRegressor`.

    References
    ----------
    Bui and Turner 2014, sections 3.3 and 3.4; Marlin, Khan and Murphy, ICML 2011 (piecewise bounds).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nongauss import SparseGPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseGPClassifier(n_inducing=20, random_state=0).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SparseGPLabels._parameter_constraints,
        "expectation": [
            StrOptions({"auto", *Bernoulli.own_rules, *Bernoulli.point_rules, *Multinomial.own_rules})
        ],
    }

    def _likelihood(self, n_classes: int) -> Likelihood:
        kind = Bernoulli if n_classes == 2 else Multinomial
        return kind(expectation=self.expectation, n_classes=n_classes)


class SparseGPOrdinalClassifier(_SparseGPLabels):
    r"""Classification into ordered classes (grades, agreement): a sparse Gaussian process, cut in pieces.

    P(y <= k | f) is the logistic function of phi_k - f(x), with cut points phi that are learned. An ordered
    pandas category keeps its own order and its unused levels. Numbers, also 3.5 or those in text, are
    ordered by size, words of a known scale (poor, fair, good) by their place on it; any other order is a
    guess, with a warning.

    Parameters
    ----------
    spread : {"constant", "varying"}, default "constant"
        "varying": the spread around f depends on the columns, too, by a second latent function, its
        logarithm.
    kernel, group, n_scales, n_inducing, keep_columns, max_iter, tol
        See `SparseGPRegressor`.
    callbacks, checkpoint, random_state, verbose
        See `SparseGPRegressor`. "auto" is 1 scale and 100 inducing inputs.
    expectation : {"auto", "quadrature", "piecewise", "piecewise_linear"}, default "auto"
        Exact to 1e-9 by quadrature, or 20 quadratic or straight pieces that bound log(1 + e^f) from above.

    Attributes
    ----------
    classes_ : ndarray (C,), in order
    cut_points_ : ndarray (C - 1,), on the scale of f
    kept_columns_, group_effects_, lengthscales_, kernel_params_, bound_, posterior_ :
        See `SparseGPRegressor`.
    loo_ : ndarray (N,) or None
        Leave-one-out log probability of each training row's label; see `SparseGPRegressor`.
    n_iter_, converged_, stop_reason_ :
        See `SparseGPRegressor`.

    References
    ----------
    Bui and Turner 2014, section 3.5; McCullagh, J. R. Stat. Soc. B 42 (1980); Chu and Ghahramani, JMLR 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from nongauss import SparseGPOrdinalClassifier
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> grades = np.digitize(X[:, 0], [0.3, 0.7])
    >>> model = SparseGPOrdinalClassifier(random_state=0).fit(X, grades)
    >>> model.predict_proba(X).shape
    (30, 3)
    """

    _ordered = True
    _by_class = False

    def __init__(
        self,
        *,
        spread: Literal["constant", "varying"] = "constant",
        kernel: KernelLike = "matern52",
        group: str | int | None = None,
        n_scales: Number = "auto",
        n_inducing: Number = "auto",
        expectation: str = "auto",
        keep_columns: Columns = "auto",
        max_iter: PositiveInt = 400,
        tol: NonNegativeFloat = 1e-3,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            group=group,
            n_scales=n_scales,
            n_inducing=n_inducing,
            expectation=expectation,
            keep_columns=keep_columns,
            max_iter=max_iter,
            tol=tol,
            callbacks=callbacks,
            checkpoint=checkpoint,
            random_state=random_state,
            verbose=verbose,
        )
        self.spread = spread

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SparseGPLabels._parameter_constraints,
        "expectation": [StrOptions({"auto", *Ordinal.own_rules})],
    }

    @property
    def cut_points_(self) -> FloatArray:
        """The cut points, increasing."""
        likelihood: Any = self.posterior_.likelihood
        cuts: FloatArray = likelihood.cuts(self.posterior_.psi)
        return cuts

    def _likelihood(self, n_classes: int) -> Likelihood:
        kind = VaryingOrdinal if self.spread == "varying" else Ordinal
        return kind(expectation=self.expectation, n_classes=n_classes)
