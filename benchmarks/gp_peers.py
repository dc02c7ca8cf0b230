"""One recipe of GPflow or GPyTorch on given rows: its curve of processor seconds and bound.

    PEER_PYTHON benchmarks/gp_peers.py RECIPE ROWS.npz OUT.json [--limit 40]

Started by gp_speed.py with an interpreter that has the packages of peers.txt: GPflow needs NumPy 1, the
project NumPy 2. So this file imports neither the project nor what the other benchmarks share.

ROWS.npz holds X, y, X_test, y_test, Z and `likelihood`. Every recipe starts from these inducing inputs, a
squared exponential kernel with one length-scale a column at sqrt(columns), variance 1 and noise variance 0.1,
and learns a constant mean. Seconds are those of the process from building the model on, with tracing and
compilation, without imports and without the bound over all rows that is taken for the curve.

The recipes are those of the packages' own guides:

- gpflow-adam: SVGP, Adam at 0.01, mini-batches
- gpflow-natgrad: natural gradients at 0.1 for q(u), Adam at 0.01 for the rest
- gpflow-lbfgs: SVGP, all rows, L-BFGS; gpflow-collapsed: SGPR, L-BFGS
- gpytorch-adam: ApproximateGP, Cholesky factor, Adam at 0.01, mini-batches
- gpytorch-natgrad: natural gradients at 0.1 for q(u), Adam at 0.01 for the rest
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BATCH = {"gpflow": 256, "gpytorch": 1024}
"""Rows of a mini-batch. The guides have 100 and 1,024; GPflow climbs faster with 256."""
NOISE = 0.1
GAIN = 1e-3
"""A recipe is over when its best bound has gained less, in nats a row, over the last third of its seconds."""


class Curve:
    """Processor seconds and bound a row; the clock stands still while the bound is taken."""

    def __init__(self, bound: Callable[[], float], limit: float) -> None:
        self.bound, self.limit, self.every = bound, limit, limit / 60
        self.points: list[tuple[float, float]] = []
        self.began = time.process_time()
        self.due = 0.0

    def seconds(self) -> float:
        """Since the start."""
        return time.process_time() - self.began

    def look(self) -> bool:
        """Take the bound if it is due. Is the recipe over?"""
        now = self.seconds()
        if now < self.due:
            return False
        self.points.append((now, self.bound()))
        self.due = now + self.every
        self.began += self.seconds() - now
        return now > self.limit or (now > self.limit / 6 and self.gain(now) < GAIN)

    def gain(self, now: float) -> float:
        """What the last third of the seconds brought."""
        early = [bound for seconds, bound in self.points if seconds <= 2 * now / 3]
        return max(bound for _, bound in self.points) - max(early, default=-np.inf)


def batches(n_rows: int, size: int) -> Any:
    """Row numbers of one mini-batch after the other, each epoch in a new order."""
    rng = np.random.default_rng(0)
    size = min(size, n_rows)
    while True:
        order = rng.permutation(n_rows)
        yield from (order[i : i + size] for i in range(0, n_rows - size + 1, size))


# ---------------------------------------------------------------- GPflow


def gpflow_model(rows: dict[str, Any], collapsed: bool) -> Any:
    import gpflow
    import tensorflow as tf

    X, Z = rows["X"], rows["Z"]
    y = rows["y"][:, None]
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.full(X.shape[1], np.sqrt(X.shape[1])))
    mean = gpflow.functions.Constant()
    if collapsed:
        return gpflow.models.SGPR((X, y), kernel, Z, mean_function=mean, noise_variance=NOISE)
    likelihood, latents = {
        "gaussian": lambda: (gpflow.likelihoods.Gaussian(NOISE), 1),
        "bernoulli": lambda: (gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid), 1),
        "poisson": lambda: (gpflow.likelihoods.Poisson(), 1),
        "softmax": lambda: (gpflow.likelihoods.Softmax(int(y.max()) + 1), int(y.max()) + 1),
    }[rows["likelihood"]]()
    if latents > 1:
        mean = gpflow.functions.Constant(np.zeros(latents))
    return gpflow.models.SVGP(
        kernel, likelihood, Z, mean_function=mean, num_latent_gps=latents, num_data=len(X)
    )


def run_gpflow(recipe: str, rows: dict[str, Any], limit: float) -> dict[str, Any]:
    import tensorflow as tf
    import tf_keras

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.random.set_seed(0)
    X, y = rows["X"], rows["y"][:, None]
    state: dict[str, Any] = {}
    curve = Curve(lambda: float(state["bound"]()) / len(X), limit)
    model = gpflow_model(rows, recipe == "gpflow-collapsed")
    data = (tf.constant(X), tf.constant(y))
    state["bound"] = tf.function(model.elbo if recipe == "gpflow-collapsed" else lambda: model.elbo(data))
    if recipe in ("gpflow-collapsed", "gpflow-lbfgs"):
        loss = model.training_loss_closure(*(() if recipe == "gpflow-collapsed" else (data,)))
        gpflow_lbfgs(model, loss, curve)
    else:
        gpflow_stochastic(model, curve, X, y, recipe == "gpflow-natgrad", tf, tf_keras)
    test = model.predict_log_density((rows["X_test"], rows["y_test"][:, None]))
    return {"curve": curve.points, "test_log_density": float(np.mean(test))}


def gpflow_lbfgs(model: Any, loss: Any, curve: Curve) -> None:
    import gpflow

    class Over(Exception):
        pass

    def look(*_: Any) -> None:
        if curve.look():
            raise Over

    try:
        gpflow.optimizers.Scipy().minimize(
            loss, model.trainable_variables, step_callback=look, options={"maxiter": 10_000}
        )
    except Over:
        return
    curve.due = 0.0
    curve.look()


def gpflow_stochastic(
    model: Any, curve: Curve, X: np.ndarray, y: np.ndarray, natural: bool, tf: Any, tf_keras: Any
) -> None:
    import gpflow

    adam = tf_keras.optimizers.legacy.Adam(0.01)
    gamma = gpflow.optimizers.NaturalGradient(gamma=0.1)
    if natural:
        gpflow.set_trainable(model.q_mu, False)
        gpflow.set_trainable(model.q_sqrt, False)

    @tf.function
    def step(batch: Any) -> None:
        loss = lambda: model.training_loss(batch)  # noqa: E731
        adam.minimize(loss, model.trainable_variables)
        if natural:
            gamma.minimize(loss, [(model.q_mu, model.q_sqrt)])

    for index in batches(len(X), BATCH["gpflow"]):
        step((tf.constant(X[index]), tf.constant(y[index])))
        if curve.look():
            return


# ---------------------------------------------------------------- GPyTorch


def gpytorch_parts(rows: dict[str, Any], natural: bool) -> tuple[Any, Any]:
    """Model and likelihood."""
    import gpytorch
    import torch

    class OneParameter(gpytorch.likelihoods.likelihood._OneDimensionalLikelihood):
        """As its guide writes likelihoods of one's own: there is no Poisson, and only a probit Bernoulli."""

        def __init__(self, distribution: Callable[[Any], Any]) -> None:
            super().__init__()
            self.distribution = distribution

        def forward(self, f: Any, *_: Any, **__: Any) -> Any:
            return self.distribution(f)

    n_columns = rows["X"].shape[1]
    latents = int(rows["y"].max()) + 1 if rows["likelihood"] == "softmax" else 1
    shape = torch.Size([latents] if latents > 1 else [])
    likelihood = {
        "gaussian": gpytorch.likelihoods.GaussianLikelihood,
        "bernoulli": lambda: OneParameter(lambda f: torch.distributions.Bernoulli(logits=f)),
        "poisson": lambda: OneParameter(lambda f: torch.distributions.Poisson(f.exp())),
        "softmax": lambda: gpytorch.likelihoods.SoftmaxLikelihood(num_classes=latents, mixing_weights=False),
    }[rows["likelihood"]]()
    if rows["likelihood"] == "gaussian":
        likelihood.noise = NOISE
    kind = "NaturalVariationalDistribution" if natural else "CholeskyVariationalDistribution"

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, Z: Any) -> None:
            q = getattr(gpytorch.variational, kind)(len(Z), batch_shape=shape)
            strategy = gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True)
            if latents > 1:
                strategy = gpytorch.variational.IndependentMultitaskVariationalStrategy(strategy, latents)
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
            kernel = gpytorch.kernels.RBFKernel(ard_num_dims=n_columns)
            kernel.lengthscale = float(np.sqrt(n_columns))
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)
            self.covar_module.outputscale = 1.0

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    return Model(torch.tensor(rows["Z"])), likelihood


def run_gpytorch(recipe: str, rows: dict[str, Any], limit: float) -> dict[str, Any]:
    import gpytorch
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    state: dict[str, Any] = {}
    curve = Curve(lambda: state["bound"](), limit)
    natural = recipe == "gpytorch-natgrad"
    model, likelihood = gpytorch_parts(rows, natural)
    X = torch.tensor(rows["X"])
    y = torch.tensor(rows["y"])
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    parts = [{"params": model.hyperparameters()}, {"params": likelihood.parameters()}]
    if natural:
        optimizers = [
            gpytorch.optim.NGD(model.variational_parameters(), num_data=len(y), lr=0.1),
            torch.optim.Adam(parts, lr=0.01),
        ]
    else:
        optimizers = [torch.optim.Adam([{"params": model.parameters()}, parts[1]], lr=0.01)]

    def bound() -> float:
        with torch.no_grad(), gpytorch.settings.num_likelihood_samples(100):
            return float(objective(model(X), y))

    state["bound"] = bound
    model.train()
    likelihood.train()
    for index in batches(len(y), BATCH["gpytorch"]):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = -objective(model(X[index]), y[index])
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        if curve.look():
            break
    return {"curve": curve.points, "test_log_density": gpytorch_test(model, likelihood, rows)}


def gpytorch_test(model: Any, likelihood: Any, rows: dict[str, Any]) -> float:
    import gpytorch
    import torch

    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.num_likelihood_samples(500):
        at = model(torch.tensor(rows["X_test"]))
        return float(likelihood.log_marginal(torch.tensor(rows["y_test"]), at).mean())


RECIPES: dict[str, Callable[[str, dict[str, Any], float], dict[str, Any]]] = {
    **dict.fromkeys(("gpflow-adam", "gpflow-natgrad", "gpflow-lbfgs", "gpflow-collapsed"), run_gpflow),
    **dict.fromkeys(("gpytorch-adam", "gpytorch-natgrad"), run_gpytorch),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("recipe", choices=RECIPES)
    options.add_argument("rows", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--limit", type=float, default=40.0, help="processor seconds after which to stop")
    chosen = options.parse_args()
    stored = np.load(chosen.rows)
    rows = {name: stored[name] for name in stored.files} | {"likelihood": str(stored["likelihood"])}
    if rows["likelihood"] == "softmax":
        rows |= {name: rows[name].astype(np.int64) for name in ("y", "y_test")}
    library = chosen.recipe.split("-")[0]
    __import__(library)
    result = RECIPES[chosen.recipe](chosen.recipe, rows, chosen.limit)
    packages = (library, "tensorflow" if library == "gpflow" else "torch", "numpy")
    versions = {package: importlib.metadata.version(package) for package in packages}
    chosen.out.write_text(json.dumps(result | {"versions": versions}))


if __name__ == "__main__":
    main()
