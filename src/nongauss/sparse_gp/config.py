"""What a user of the family chooses: the types of parameters, the frozen settings, and the defaults."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Annotated, Any

from nongauss.estimator.base import Interval, StrOptions, settings_of
from nongauss.sparse_gp.kernels import Cyclic, Kernel, Space, Stationary, Sum, parse
from nongauss.sparse_gp.likelihoods import Likelihood
from nongauss.sparse_gp.params import GPModel

KernelLike = Annotated[Any, str, Kernel]
Number = Annotated[str | int, StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")]

MANY_INDUCING, FEW_INDUCING = 500, 100
"""Inducing inputs by default: with Gaussian, Laplace and Student-t noise, and with other likelihoods. With
Student-t noise 500 instead of 100 gained .05 nats a row on kin8nm."""

FINE_INDUCING, MOST_FINE = 300, 2000
"""Inducing inputs for other likelihoods of numbers on a continuous scale, whose function may be known finely,
and the rows up to which they are worth their time: yacht gained 0.2 to 0.5 nats a row on held-out rows,
concrete 0.1. Counts and labels gained nothing."""

MOST_EXACT = 1000
"""Rows up to which every one is an inducing input by default, with Gaussian, Laplace and Student-t noise."""

FINE_SCALES, COARSE_SCALES = 4, 2
"""Terms of the sum that is averaged with one function: where every row is an inducing input, and else. Four
predict rows left out of training better than two or three, at a price."""

MOST_AVERAGED = 5000
"""Rows up to which one function is averaged with the sum of two. Of more the sum alone is fitted: it holds
one function as a special case, which more rows rule out by themselves, and had .94 of the weight on power."""

FIRST_NUMBERS = 2.5e9
"""N M^2 of the rows to which models are fitted first, where there are more than twice as many, for a third
of the time: 10,000 rows of 500 inducing inputs. A fit to all rows then begins there."""

ROUGHER = 10.0
"""What `tol` is multiplied by in a fit to all rows that begins where one to some of them ended. Its steps
are dear, and near rows tell what the last hundredths of a nat would. On protein 20 of them gained .011 nats a
row, 40 no more."""

FEW_ROWS_A_COLUMN = 30
"""Rows for each column below which a length-scale a column may fit noise: of ten columns of noise and 96 rows
the bound was 9 nats above the truth, and y interpolated. One length-scale for all then stands beside."""

FEW_ROWS, MOST_UNSURE = 100, 60
"""Distinct rows below which hyper-parameters are unsure enough to average over by default, and the most of
them: the curvature takes an evaluation for each. On six tables 20 rows gained .07 nats a row with Gaussian
noise and with the gamma law, 40 rows .12 and .15; counts gained nothing."""

SMALL_SHARE = 0.1
"""The share in an average below which only the best hyper-parameters of a model predict. However small it
is, it keeps the average from absurd certainty where the others are wrong."""


def takes_every_row(likelihood: Likelihood) -> bool:
    """Does it pay to have every row as an inducing input, where there are not too many?"""
    return likelihood.conjugate or likelihood.nears_gaussian


@dataclass(frozen=True)
class GPRecipe:
    """How models are fitted; see the parameters of `SparseGPRegressor`. None stands for "auto"."""

    kernel: Kernel
    n_scales: int | None = None
    n_inducing: int | None = None
    max_iter: int = 400
    tol: float = 1e-3
    n_components: int = 1
    hyper_parameters: str = "auto"
    group: str | int | None = None

    @classmethod
    def of(cls, estimator: Any, n_components: int = 1) -> GPRecipe:
        """The settings of an estimator by their names. Raises InputError for a text that is no kernel."""
        kernel = parse(estimator.kernel) if isinstance(estimator.kernel, str) else estimator.kernel
        return settings_of(cls, estimator, kernel=kernel, n_components=n_components)

    @property
    def label_columns(self) -> tuple[str | int, ...]:
        """The columns, by name or number, whose numbers are labels: those of groups and of label kernels."""
        return (*self.kernel.label_columns, *(() if self.group is None else (self.group,)))

    def kernels(self, likelihood: Likelihood, n_rows: int) -> list[Kernel]:
        """The kernel of each model that is fitted to so many distinct rows."""
        kernel = self.kernel
        if self.n_scales is not None:
            return [Sum((kernel,) * self.n_scales) if self.n_scales > 1 else kernel]
        if not self.averages(likelihood, n_rows) or isinstance(kernel, Sum):
            return [kernel]
        every_row = takes_every_row(likelihood) and self.inducing_for(likelihood, n_rows) >= n_rows
        several = Sum((kernel,) * (FINE_SCALES if every_row else COARSE_SCALES))
        return [several] if n_rows > MOST_AVERAGED else [kernel, several]

    def first_rows(self, likelihood: Likelihood, n_rows: int) -> int | None:
        """How many rows models are fitted to first, None where that is all of them."""
        n_inducing = self.inducing_for(likelihood, n_rows)
        few = int(FIRST_NUMBERS / n_inducing**2)
        return few if n_rows > 2 * few >= 4 * n_inducing else None

    def rougher(self) -> GPRecipe:
        """This recipe with a larger `tol`, for a fit to all rows that begins where another ended."""
        return replace(self, tol=self.tol * ROUGHER)

    def begins_with_gaussian(self, likelihood: Likelihood) -> bool:
        """Are models fitted with normal noise first, which tells where a fit with other noise begins?"""
        return likelihood.nears_gaussian and self.n_scales is None and self.n_components == 1

    def with_cycles(self, space: Space) -> list[Kernel]:
        """The kernel of one more model that is averaged, where weekdays, months or hours come again.

        A function of where in the week, the year and the day beside that of all columns, to which hours are
        labels without an order.
        """
        plain = isinstance(self.kernel, Stationary) and self.kernel.columns is None
        fits = self.n_scales is None and self.n_components == 1
        if not (plain and fits and space.cycles):
            return []
        return [Sum((self.kernel, *(Cyclic((name,)) for name in space.cycles)))]

    def asks_neighbours(self, likelihood: Likelihood, n_rows: int) -> bool:
        """May near rows tell what a sparse process leaves: of one function, fewer inducing inputs?"""
        plain = isinstance(self.kernel, Stationary) and self.kernel.columns is None and self.group is None
        known = likelihood.fitted is likelihood and not (likelihood.is_label or likelihood.takes_trials)
        of_one = likelihood.n_latent == 1 and known
        return plain and self.n_scales is None and of_one and n_rows > self.inducing_for(likelihood, n_rows)

    def averages(self, likelihood: Likelihood, n_rows: int) -> bool:
        """Are several models averaged, if nothing is said of scales: of y on a continuous scale?"""
        fine = likelihood.is_measured and n_rows <= MOST_FINE and self.n_components == 1
        return self.n_scales is None and (likelihood.conjugate or fine)

    def shares_scales(self, space: Space, n_rows: int) -> bool:
        """Is a model with one length-scale for all columns averaged too, as rows are few for one a column?"""
        few = n_rows < FEW_ROWS_A_COLUMN * len(space.names)
        plain = isinstance(self.kernel, Stationary) and self.kernel.columns is None
        return self.n_scales is None and self.group is None and plain and few and len(space.names) > 1

    def spreads(self, model: GPModel, n_rows: int) -> bool:
        """Is a model of so many rows averaged over what these leave open of its hyper-parameters?"""
        n_parameters = sum(model.sizes) + len(model.likelihood.bounds())
        few = n_rows < FEW_ROWS and n_parameters <= MOST_UNSURE
        unsure = few and model.likelihood.is_measured and self.n_components == 1
        return self.hyper_parameters == "laplace" or (self.hyper_parameters == "auto" and unsure)

    def most_inducing(self, likelihood: Likelihood) -> int:
        """Number of inducing inputs where there are many rows."""
        if self.n_inducing is not None:
            return self.n_inducing
        return MANY_INDUCING if takes_every_row(likelihood) else FEW_INDUCING

    def inducing_for(self, likelihood: Likelihood, n_rows: int) -> int:
        """Number of inducing inputs for so many distinct rows."""
        if self.n_inducing is None and takes_every_row(likelihood) and n_rows <= MOST_EXACT:
            return n_rows
        if self.n_inducing is None and likelihood.is_measured and not takes_every_row(likelihood):
            return FINE_INDUCING if n_rows <= MOST_FINE else FEW_INDUCING
        return self.most_inducing(likelihood)
