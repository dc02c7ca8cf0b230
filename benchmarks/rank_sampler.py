"""Effective draws a second of the pairwise density: our Gibbs sampler beside NUTS of NumPyro, at small size.

    python benchmarks/rank_sampler.py

Wine, 60 rows, 6 columns, 2 factors; seconds with burn-in and compilation. Needs the package numpyro for the
second line. Writes results/rank_sampler.json.
"""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
from common import write_results, write_table
from sklearn.datasets import load_wine

from nongauss import RankFactorAnalysis
from nongauss.rank_factor.chains import effective_size
from nongauss.rank_factor.data import find_levels
from nongauss.rank_factor.pairs import find_pairs

N_SWEEPS, N_NUTS = 2000, 300
MARGINS = (1.0, 10.0)


def gibbs(X: np.ndarray, eps: float) -> dict[str, float]:
    began = time.perf_counter()
    model = RankFactorAnalysis(
        2,
        neighbours="pairwise",
        epsilon=eps,
        inference="gibbs",
        max_iter=N_SWEEPS,
        n_chains=2,
        random_state=0,
    ).fit(X)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "effective": float(model.effective_draws_[:2].min())}


def nuts(X: np.ndarray, eps: float) -> dict[str, float]:
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    found = find_pairs(find_levels(X, np.ones(len(X)), None).codes(X))
    column, low, high = (jnp.asarray(part) for part in found[:3])

    def model() -> None:
        t = numpyro.sample("t", dist.Gamma(0.5, 1.0))
        phi = numpyro.sample("phi", dist.Gamma(0.5, t).expand([2]))
        eta = numpyro.sample("eta", dist.Gamma(0.5, phi).expand([X.shape[1], 2]))
        xi = numpyro.sample("xi", dist.Gamma(0.5, eta))
        A = numpyro.sample("A", dist.Normal(0.0, jnp.sqrt(xi)))
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([len(X), 2]))
        u = eps - (A[column] * (z[high] - z[low])).sum(-1)
        numpyro.factor("ranks", -2.0 * jnp.maximum(u, 0.0).sum() - 0.5 * (A**2).sum())
        numpyro.deterministic("loss", jnp.maximum(u, 0.0).sum())

    sampler = MCMC(
        NUTS(model), num_warmup=N_NUTS, num_samples=N_NUTS, num_chains=2, chain_method="sequential"
    )
    began = time.perf_counter()
    sampler.run(jax.random.key(0))
    draws = sampler.get_samples(group_by_chain=True)
    watched = (np.asarray(draws["loss"]), (np.asarray(draws["A"]) ** 2).sum((2, 3)))
    return {"seconds": time.perf_counter() - began, "effective": min(effective_size(w) for w in watched)}


def main() -> None:
    X = load_wine().data[::3, :6]
    results: dict[str, Any] = {}
    lines = ["| epsilon | sampler | seconds | fewest effective draws | a second |", "|---|---|---|---|---|"]
    for eps, (name, sampler) in product(MARGINS, (("gibbs", gibbs), ("NUTS", nuts))):
        try:
            row = results[f"{name}, epsilon {eps:g}"] = sampler(X, eps)
        except ImportError:
            print("numpyro is not installed: the comparison is left out")
            continue
        rate = row["effective"] / row["seconds"]
        lines.append(f"| {eps:g} | {name} | {row['seconds']:.1f} | {row['effective']:.0f} | {rate:.2f} |")
        print(lines[-1], flush=True)
        write_results("rank_sampler", results)
        write_table("rank_sampler", lines)


if __name__ == "__main__":
    main()
