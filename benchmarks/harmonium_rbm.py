"""Without labels, beside scikit-learn's BernoulliRBM: seconds an epoch, and held-out log-likelihood (AIS).

    python benchmarks/harmonium_rbm.py --data FOLDER [--sets mnist newsgroups] [--units 50 200 500]

Equal number of units, rows a batch and epochs; every step size of the RBM is run, the best on held-out rows
is shown. With 500 units all 60,000 images and persistent chains alone. Pixels above 127 count as 1, others as
0. Writes results/harmonium_rbm.json and the table.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import known_results, parser, write_results, write_table
from harmonium_common import newsgroups, timed
from sklearn.neural_network import BernoulliRBM

from nongauss import Harmonium
from nongauss.harmonium.ais import annealed_log_partition
from nongauss.harmonium.exponential_families import dense
from nongauss.harmonium.objective import log_marginal
from nongauss.harmonium.params import FeaturePrior, HarmoniumParams
from nongauss.harmonium.predict import Machine

EPOCHS, BATCH, HELD_OUT, MANY = 12, 100, 1000, 500
RATES = (0.003, 0.01, 0.03, 0.1)
CHAINS, STEPS = 100, 2000


def rows_of(data: Path, name: str, K: int) -> tuple[Any, Any]:
    """Binary rows to learn from and 1,000 others."""
    if name == "newsgroups":
        X, _, test, *_ = newsgroups(data)
    else:
        archive = np.load(data / "mnist" / "mnist.npz")
        X, test = (
            (archive[part].reshape(len(archive[part]), -1) > 127).astype(np.float32)
            for part in ("X_train", "X_test")
        )
        X = X if K >= MANY else X[:20_000]
    return X, test[np.random.default_rng(0).permutation(test.shape[0])[:HELD_OUT]]


def as_machine(rbm: BernoulliRBM, ours: Machine) -> Machine:
    """An RBM with our columns as a machine."""
    K, D = rbm.components_.shape
    params = HarmoniumParams(
        rbm.components_.T, rbm.intercept_visible_, rbm.intercept_hidden_, np.ones(D), np.zeros((0, K)),
        np.zeros(0),
    )  # fmt: skip
    return ours._replace(params=params, prior=FeaturePrior(np.zeros(K), np.zeros((0, 2))))


def judged(machine: Machine, X: Any, held: Any) -> dict[str, float]:
    """Mean log-likelihood of held-out rows, and the standard errors of log Z and of the mean over rows."""
    use = machine.hidden(X[:STEPS]).mean(axis=0)
    log_z, error = annealed_log_partition(machine, np.random.default_rng(0), CHAINS, STEPS, use)
    each = log_marginal(machine.params, "binary", machine.prior.log_odds, dense(held, np.float64)) - log_z
    spread = float(each.std() / np.sqrt(len(each)))
    return {"log_likelihood": float(each.mean()), "annealing_error": error, "row_error": spread}


def run(data: Path, name: str, K: int) -> list[dict]:
    """Ours by contrastive divergence and with persistent chains, and the RBM."""
    X, held = rows_of(data, name, K)
    out = []
    view = {"all": (slice(0, X.shape[1]), "binary")}
    for method in ("pcd",) if K >= MANY else ("cd", "pcd"):
        model = Harmonium(K, views=view, method=method, batch_size=BATCH, max_epochs=EPOCHS, random_state=0)
        _, seconds = timed(lambda model=model: model.fit(X))
        encoded, own = model._encoded(held)[0], model._encoded(X[:STEPS])[0]
        row = {"set": name, "K": K, "model": f"Harmonium, {method}", "cpu_seconds": seconds}
        out.append({**row, **judged(model.machine_, own, encoded)})
        print(out[-1], flush=True)
    for rate in () if K >= MANY else RATES:
        rbm = BernoulliRBM(K, learning_rate=rate, batch_size=BATCH, n_iter=EPOCHS, random_state=0)
        used = X[:, [unit.column for unit in model._coder.units]]
        _, seconds = timed(lambda rbm=rbm, used=used: rbm.fit(used))
        row = {"set": name, "K": K, "model": f"BernoulliRBM, {rate:g}", "cpu_seconds": seconds}
        out.append({**row, **judged(as_machine(rbm, model.machine_), own, encoded)})
        print(out[-1], flush=True)
    return out


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="*", default=["mnist", "newsgroups"])
    options.add_argument("--units", nargs="*", type=int, default=[50, 200, 500])
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    results = known_results("harmonium_rbm").get("runs", {})
    for name in chosen.sets:
        for K in chosen.units:
            results[f"{name} {K}"] = run(chosen.data, name, K)
            write_results("harmonium_rbm", {"runs": results})
    lines = [
        "| set | K | model | log-likelihood, nats a row | error of annealing | of rows | CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for rows in results.values():
        ours = [row for row in rows if "RBM" not in row["model"]]
        rivals = [row for row in rows if "RBM" in row["model"]]
        best = [max(rivals, key=lambda row: row["log_likelihood"])] if rivals else []
        lines += [
            f"| {row['set']} | {row['K']} | {row['model']} | {row['log_likelihood']:.2f} "
            f"| {row['annealing_error']:.2f} | {row['row_error']:.2f} | {row['cpu_seconds']:.0f} |"
            for row in [*ours, *best]
        ]
    write_table("harmonium_rbm", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
