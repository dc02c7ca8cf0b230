"""The order in which a fit is run: inducing inputs, L-BFGS with q converged at each evaluation, then q.

Several models of the same rows are fitted one after the other, and averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from nongauss.core.errors import InputError
from nongauss.optimise import loop
from nongauss.optimise.course import FitResult, Rule, Run, Status, say
from nongauss.optimise.lbfgs import PATIENCE, lbfgs
from nongauss.sparse_gp.buffers import recycled
from nongauss.sparse_gp.cavity import left_out_moments
from nongauss.sparse_gp.config import SMALL_SHARE, GPRecipe, takes_every_row
from nongauss.sparse_gp.data import GPRows, GPTable
from nongauss.sparse_gp.every_row import is_without_white
from nongauss.sparse_gp.group_effects import with_group
from nongauss.sparse_gp.hyper_draws import hyper_parameters, nearby
from nongauss.sparse_gp.kernels import FloatArray, Kernel, Space
from nongauss.sparse_gp.likelihoods import Gaussian, Likelihood
from nongauss.sparse_gp.objective import LatentQ, exact_evidence
from nongauss.sparse_gp.params import (
    GaussianSites,
    GPModel,
    GPParams,
    KernelBlocks,
    are_all_rows,
    box,
    inducing_inputs,
    learning_rows,
    sites_at,
    start,
)
from nongauss.sparse_gp.posterior_mixture import fit_mixture
from nongauss.sparse_gp.predict import FittedGP, GPAverage, GPPosterior, HyperSpread
from nongauss.sparse_gp.stacking import weights_of
from nongauss.sparse_gp.streamed_posterior import converged_latents
from nongauss.sparse_gp.updates import HyperObjective
from nongauss.tables.source import Source, Stream

MOST_REPEATED = 2
"""Rows for each distinct one up to which matrices between rows cost less than between distinct ones."""

USUAL_ITERATIONS = 40
"""Of a fit to all rows that begins where one to some of them has ended."""

MOST_LEFT_OUT = 5000
"""Rows that are left out to correct a likelihood."""

WORTH_THREADS = 5e8
"""N M^2 from which matrix products gain from several threads; below, these mostly wait for each other."""


def fit(
    table: GPTable,
    likelihood: Likelihood,
    recipe: GPRecipe,
    seed: int,
    run: Run,
    former: Sequence[GPPosterior] = (),
) -> tuple[FitResult, GPAverage, FittedGP]:
    """Fit a model with each kernel of the recipe and average them.

    `former`: posteriors of earlier fits; a model begins where one of its own form has ended.
    Returns how the fit of the model with the greatest share went (its status the worst of all), the average,
    and that model. Raises InputError for a kernel of columns that are not there.
    """
    if recipe.n_components > 1:
        _refuse_mixture(table, likelihood)
    n_rows = len(table.rows.y)
    kernels = recipe.kernels(likelihood, n_rows) + recipe.with_cycles(table.space)
    if table.group:
        kernels = [with_group(kernel, table.space, table.group) for kernel in kernels]
    kernels[0].labels(table.space)  # a column that is not there is an error now
    known = learning_rows(table.rows, recipe.most_inducing(likelihood))
    models, psi = models_of(kernels, table.space, likelihood, known)
    if recipe.averages(likelihood, n_rows) and recipe.shares_scales(table.space, n_rows):
        models.append(models[0]._replace(space=table.space.as_one))
    if table.everywhere is not None or known is not table.rows:
        _refuse_spread(recipe)  # now, not after the first fits
    if not former:
        first = first_fits(models, table, psi, recipe, seed, run)
        former = [member.posterior for member in first]
        if any(member.result.status is Status.STOPPED for member in first):  # nor is it to go on here
            run = replace(run, callbacks=(lambda progress: True,), checkpoint=None)
    last = recipe if recipe.first_rows(likelihood, n_rows) is None else recipe.rougher()
    members = fit_models(models, table, psi, last, seed, run, former)
    weights = weights_of(members, table.rows) if len(members) > 1 else np.ones(1)
    order = np.argsort(-weights, kind="stable")
    weights = weights[order]
    members = [_worth(members[c], share) for c, share in zip(order, weights, strict=True)]
    statuses = [member.result.status for member in members]
    worst = min(statuses, key=lambda status: (status is not Status.STOPPED, status.converged))
    members = [m._replace(posterior=_recalibrated(m.posterior, table.rows)) for m in members]
    main = members[0]
    sizes = [len(member.posteriors) for member in members]
    shares = np.repeat(weights / sizes, sizes)
    average = GPAverage(tuple(p for m in members for p in m.posteriors), shares)
    return replace(main.result, status=worst), average, main


def _worth(member: FittedGP, share: float) -> FittedGP:
    """A member, of a small share without draws of its hyper-parameters, which cost as much as itself."""
    return member if share >= SMALL_SHARE else member._replace(spread=None)


def _recalibrated(posterior: GPPosterior, rows: GPRows) -> GPPosterior:
    """What predicts, with the likelihood corrected by what it says of rows without them, if it asks for that.

    Of many rows some, which are a random sample, tell the few numbers of a correction well enough.
    """
    likelihood = posterior.likelihood
    if not likelihood.recalibrates:
        return posterior
    some = rows.take(slice(MOST_LEFT_OUT))
    moments = left_out_moments(posterior, some)
    return posterior._replace(
        likelihood=likelihood.recalibrated(some.y, some.weight, *moments, posterior.psi)
    )


def models_of(
    kernels: Sequence[Kernel], space: Space, likelihood: Likelihood, known: GPRows
) -> tuple[list[GPModel], FloatArray]:
    """The model with each kernel, and the likelihood's parameters psi to start from, by some rows."""
    offset, psi = likelihood.start(known.y, known.weight)
    if known.shift.any():
        offset = offset + likelihood.rates * np.log(known.weight.sum() / (known.weight @ np.exp(known.shift)))
    L = likelihood.n_latent
    kernel_of = tuple(range(L)) if likelihood.own_kernels else (0,) * L
    shared = [(kernel,) * (1 + max(kernel_of)) for kernel in kernels]
    return [GPModel(each, kernel_of, space, likelihood, offset) for each in shared], psi


def first_fits(
    models: Sequence[GPModel], table: GPTable, psi: FloatArray, recipe: GPRecipe, seed: int, run: Run
) -> list[FittedGP]:
    """Fits of the models in which those to all rows begin; none where they begin from nothing.

    Of many rows they are to some, which are a random sample. Of noise that is not far from normal there is
    one with normal noise before.
    """
    likelihood = models[0].likelihood
    few = recipe.first_rows(likelihood, len(table.rows.y))
    some = table if few is None else table._replace(rows=table.rows.take(slice(few)), everywhere=None)
    found: list[FittedGP] = []
    if some.everywhere is None and recipe.begins_with_gaussian(likelihood):
        normal = gaussian_start(models, some, recipe, seed, run)
        found = [m._replace(posterior=_beside_normal(m, likelihood)) for m in normal]
    if few is None or any(member.result.status is Status.STOPPED for member in found):
        return found
    best = replace(recipe, hyper_parameters="best", n_components=1)
    begin = [member.posterior for member in found]
    members = fit_models(models, some, psi, best, seed, run.within("some rows"), begin)
    if run.verbose:
        say(_what_follows([member.result for member in members], few, len(table.rows.y)))
    return members


def _what_follows(results: Sequence[FitResult], few: int, n_rows: int) -> str:
    """A line that says how long the fits to all rows take, by those to a few of them."""
    taken = [result.trace[-1]["seconds"] for result in results if result.trace]
    each = sum(t / max(result.n_iter, 1) for t, result in zip(taken, results, strict=False)) * n_rows / few
    return (
        f"fitted to {few:,} of {n_rows:,} rows in {sum(taken):.0f} s; the fit to all begins there, at about "
        f"{each:.1f} s an iteration, {USUAL_ITERATIONS * each:.0f} s if it takes {USUAL_ITERATIONS}"
    )


def gaussian_start(
    models: Sequence[GPModel], table: GPTable, recipe: GPRecipe, seed: int, run: Run
) -> list[FittedGP]:
    """The models with normal noise, fitted, beside which models of noise that is not far from it begin.

    That takes no longer than the iterations it saves (kin8nm), and climbs that begin elsewhere ended up to .8
    nats a row below on held-out rows (energy, Student's t).
    """
    known = learning_rows(table.rows, len(table.rows.y))
    offset, psi = Gaussian().start(known.y, known.weight)
    normal = [model._replace(likelihood=Gaussian(), offset=offset) for model in models]
    best = replace(recipe, hyper_parameters="best")
    return fit_models(normal, table, psi, best, seed, run.within("normal"))


def _beside_normal(member: FittedGP, likelihood: Likelihood) -> GPPosterior:
    """A posterior with normal noise, with the parameters of the noise that is as near to that as it gets."""
    posterior = member.posterior
    return posterior._replace(psi=likelihood.beside_gaussian(math.exp(posterior.psi[0])))


def fit_models(
    models: Sequence[GPModel],
    table: GPTable,
    psi: FloatArray,
    recipe: GPRecipe,
    seed: int,
    run: Run,
    former: Sequence[GPPosterior] = (),
) -> list[FittedGP]:
    """Each model by itself; a fit that is stopped on request is the last.

    Those without a bound are left out where there are others.
    """
    members: list[FittedGP] = []
    for number, model in enumerate(models):
        own_run = run.within(f"model {number}")
        begin = next((p for p in former if _has_form(model, psi, p)), None)
        member = fit_model(
            model, table.rows, psi, recipe, seed, own_run, everywhere=table.everywhere, begin=begin
        )
        members.append(member)
        if member.result.status is Status.STOPPED:
            break
    return [member for member in members if np.isfinite(member.bound)] or members[:1]


def _refuse_mixture(table: GPTable, likelihood: Likelihood) -> None:
    """Raises InputError where q cannot be a mixture."""
    if table.everywhere is not None and not likelihood.conjugate:
        raise InputError(
            "posterior='mixture' takes tables in memory; give posterior='gaussian', or fewer rows."
        )
    if not likelihood.several_modes:
        raise InputError(
            f"posterior='mixture' is not for the {likelihood.name} likelihood; give posterior='gaussian'."
        )


def _refuse_spread(recipe: GPRecipe) -> None:
    """Raises InputError where the spread of hyper-parameters is asked of a fit that cannot tell it."""
    if recipe.hyper_parameters == "laplace":
        raise InputError(
            "hyper_parameters='laplace' goes with posterior='gaussian' and rows whose kernel matrices fit in "
            "memory; so many rows leave no doubt of hyper-parameters: give 'best'."
        )


def fit_model(
    model: GPModel,
    rows: GPRows,
    psi: FloatArray,
    recipe: GPRecipe,
    seed: int,
    run: Run,
    *,
    everywhere: Source | None = None,
    begin: GPPosterior | None = None,
) -> FittedGP:
    """Maximise the bound of one model: the optimiser's result, and the posterior at the best parameters.

    With how sure these are, where the recipe asks for it, which raises InputError of many rows.

    `everywhere` has all rows where there are more than `rows`, which all else is then learned from. `begin`:
    where an earlier fit of the same form has ended, and this one begins.
    """
    n_inducing = recipe.inducing_for(model.likelihood, len(rows.y))
    learned_from = learning_rows(rows, min(n_inducing, len(rows.y)) * model.n_leaves)
    Z = inducing_inputs(learned_from.X, n_inducing, seed)
    is_all = learned_from is rows and everywhere is None
    if not is_all or recipe.n_components > 1:
        _refuse_spread(recipe)
    small = len(learned_from.y) * len(Z) ** 2 < WORTH_THREADS
    with threadpool_limits(limits=1 if small else None, user_api="blas"), recycled():
        whole = is_all and (recipe.n_components == 1 or model.likelihood.conjugate)
        bound = _objective(model, learned_from, start(model, psi, Z), whole)
        bound = bound if begin is None else _begun(bound, begin)
        fixed, params = not bound.moves_inputs, bound.params
        tol = recipe.tol * learned_from.weight.sum()
        rule = Rule(recipe.max_iter, lambda _: tol, PATIENCE)
        climber = lbfgs(bound, box(model, 0 if fixed else Z.size))
        result = loop.run(climber, params.flat(not fixed), run, rule, name="hyper-parameters")
        params = params.like(result.state)
        member = partial(FittedGP, model, first_bound=math.nan if result.trace else _bound_at(bound, params))
        if recipe.n_components > 1 and not (model.likelihood.conjugate or result.status is Status.STOPPED):
            on_all = bound if learned_from is rows else HyperObjective(model, rows, params, False, False)
            return member(*_with_mixture(on_all, params, result, recipe, seed, run))
        if is_all:
            unsure = result.status is not Status.STOPPED and recipe.spreads(model, len(rows.y))
            return member(result, posterior_at(bound, params), _spread(bound, params) if unsure else None)
        latents = converged_latents(everywhere or Stream([rows]), model, params, run.checkpoint)
        return member(result, _posterior(model, params, *_stacked(latents)))


def _objective(model: GPModel, rows: GPRows, params: GPParams, whole: bool) -> HyperObjective:
    """The objective of some inducing inputs; by matrices between rows if these are all, and that is cheaper.

    `whole`: are they all rows of the fit, and is q one Gaussian? Of noise that is not normal or near it a
    function may become so large that those matrices have no digits left, where labels are separable.
    """
    fixed, likelihood = are_all_rows(params.Z, rows.X), model.likelihood
    is_exact = (
        whole and fixed and takes_every_row(likelihood) and len(rows.y) <= MOST_REPEATED * len(params.Z)
    )
    is_exact = is_exact and (likelihood.conjugate or is_without_white(model, params, rows))
    at = params._replace(Z=rows.X) if is_exact else params
    return HyperObjective(model, rows, at, not fixed, is_exact)


def _begun(cold: HyperObjective, begin: GPPosterior) -> HyperObjective:
    """An objective that begins at a posterior, if that is of the same law or better than where it would."""
    kept = begin.Z if cold.moves_inputs and begin.Z.shape == cold.params.Z.shape else cold.params.Z
    params = GPParams(begin.thetas, begin.psi, kept)
    same = begin.space == cold.model.space
    sites = _sites_beside(begin, cold.model, cold.rows) if same else None
    warm = HyperObjective(cold.model, cold.rows, params, cold.moves_inputs, cold.is_exact, sites)
    if type(begin.likelihood) is type(cold.model.likelihood.fitted):
        return warm
    values = [_objective_at(bound, bound.params) for bound in (warm, cold)]
    return warm if values[0] >= values[1] else cold


def _sites_beside(posterior: GPPosterior, model: GPModel, rows: GPRows) -> GaussianSites:
    """Sites where a posterior's moments of f at the rows put them; none is negative."""
    mean, variance = (part[0] for part in posterior.moments(rows.X))
    shift = rows.shift[:, None] * model.likelihood.rates
    of = model.likelihood.expected_log_prob(rows.y, mean + shift, variance, posterior.psi)
    of = of._replace(d_variance=np.minimum(of.d_variance, 0.0))
    return sites_at(mean - model.offset, of, rows.weight)


def _objective_at(bound: HyperObjective, params: GPParams) -> float:
    """What is maximised, at these parameters; -inf where there is none."""
    try:
        value = bound(params.flat(bound.moves_inputs))[0]
    except np.linalg.LinAlgError:
        return -math.inf
    return value if math.isfinite(value) else -math.inf


def _bound_at(bound: HyperObjective, params: GPParams) -> float:
    """F at these parameters, NaN where there is none."""
    try:
        return bound(params.flat(bound.moves_inputs))[2]
    except np.linalg.LinAlgError:
        return math.nan


def _spread(bound: HyperObjective, params: GPParams) -> HyperSpread:
    """How sure the best parameters of an objective are, and posteriors at draws of them."""
    so_far = bound.snapshot()
    at = hyper_parameters(bound, params)
    posteriors = []
    for near in nearby(bound, params, at):
        bound.restore(so_far)
        posteriors.append(posterior_at(bound, near))
    bound.restore(so_far)
    return HyperSpread(at, tuple(posteriors))


def _has_form(model: GPModel, psi: FloatArray, posterior: GPPosterior) -> bool:
    """Do the hyper-parameters of a posterior belong to a model of this form?"""
    sizes = tuple(map(len, posterior.thetas))
    return sizes == model.sizes and len(posterior.psi) == len(psi)


def _with_mixture(
    bound: HyperObjective, params: GPParams, former: FitResult, recipe: GPRecipe, seed: int, run: Run
) -> tuple[FitResult, GPPosterior]:
    """The mixture that q becomes at these parameters."""
    blocks, q = bound.at_rest(params)
    assert isinstance(blocks, KernelBlocks)
    tol = recipe.tol * bound.rows.weight.sum()
    rule = Rule(recipe.max_iter, lambda _: tol, PATIENCE)
    result, alpha, W = fit_mixture(blocks, q, former, recipe.n_components, seed, run, rule)
    return result, _posterior(bound.model, params, alpha, W)


def posterior_at(bound: HyperObjective, params: GPParams) -> GPPosterior:
    """What predicts, at the best parameters that an objective has seen."""
    if bound.is_exact and bound.model.likelihood.conjugate:
        at = exact_evidence(bound.model, params, bound.rows)
        return _posterior(bound.model, params, at.alpha[None, None], at.W[None, None])
    return _posterior(bound.model, params, *_stacked(bound.at_rest(params)[1].latents))


def _stacked(latents: Sequence[LatentQ]) -> tuple[FloatArray, FloatArray]:
    """alpha (1, L, M) and W (1, L, M, M): one component."""
    return np.stack([q.alpha for q in latents])[None], np.stack([q.W for q in latents])[None]


def _posterior(model: GPModel, params: GPParams, alpha: FloatArray, W: FloatArray) -> GPPosterior:
    """Fixed and estimated parts of a model in one record, with components alpha (C, L, M), W (C, L, M, M)."""
    return GPPosterior(
        model.kernels, model.kernel_of, model.space, model.likelihood.fitted, model.offset, *params, alpha, W
    )
