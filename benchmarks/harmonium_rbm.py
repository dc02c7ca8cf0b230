"""Without labels, beside scikit-learn's BernoulliRBM: seconds an epoch, and held-out log-likelihood (AIS).

    python benchmarks/harmonium_rbm.py --data FOLDER [--sets mnist newsgroups] [--units 50 200]

Equal number of units, rows a batch and epochs; every step size of the RBM is run, the best on held-out rows
is shown. Writes results/harmonium_rbm.json and the table.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, parser, write_results, write_table
from harmonium_common import newsgroups, timed
from sklearn.neural_network import BernoulliRBM

from nongauss import Harmonium
from nongauss.harmonium.ais import log_likelihood
from nongauss.harmonium.params import FeaturePrior, HarmoniumParams
from nongauss.harmonium.predict import Machine

EPOCHS, BATCH, HELD_OUT = 12, 256, 1000
RATES = (0.003, 0.01, 0.03, 0.1)


def rows_of(data: Path, name: str) -> tuple[Any, Any]:
    """Binary rows to learn from and 1,000 others."""
    if name == "newsgroups":
        X, _, test, *_ = newsgroups(data)
    else:
        archive = np.load(data / "mnist" / "mnist.npz")
        X, test = (
            (archive[part].reshape(len(archive[part]), -1) > 127).astype(np.float32)
            for part in ("X_train", "X_test")
        )
        X = X[:20_000]
    return X, test[np.random.default_rng(0).permutation(test.shape[0])[:HELD_OUT]]


def as_machine(rbm: BernoulliRBM, ours: Machine) -> Machine:
    """An RBM with our columns as a machine."""
    K, D = rbm.components_.shape
    params = HarmoniumParams(
        rbm.components_.T, rbm.intercept_visible_, rbm.intercept_hidden_, np.ones(D), np.zeros((0, K)),
        np.zeros(0),
    )  # fmt: skip
    return ours._replace(params=params, prior=FeaturePrior(np.zeros(K), np.zeros((0, 2))))


def judged(machine: Machine, held: Any) -> float:
    return float(log_likelihood(machine, held, np.random.default_rng(0), 100, 1000).mean())


def run(data: Path, name: str, K: int) -> list[dict]:
    """Ours by contrastive divergence and with persistent chains, and the RBM."""
    X, held = rows_of(data, name)
    out = []
    view = {"all": (slice(0, X.shape[1]), "binary")}
    for method in ("cd", "pcd"):
        model = Harmonium(K, views=view, method=method, batch_size=BATCH, max_epochs=EPOCHS, random_state=0)
        _, seconds = timed(lambda model=model: model.fit(X))
        encoded = model._encoded(held)[0]
        row = {"set": name, "K": K, "model": f"Harmonium, {method}", "epoch": seconds / EPOCHS}
        out.append({**row, "log_likelihood": judged(model.machine_, encoded)})
        print(out[-1], flush=True)
    for rate in RATES:
        rbm = BernoulliRBM(K, learning_rate=rate, batch_size=BATCH, n_iter=EPOCHS, random_state=0)
        used = X[:, [unit.column for unit in model._coder.units]]
        _, seconds = timed(lambda rbm=rbm, used=used: rbm.fit(used))
        row = {"set": name, "K": K, "model": f"BernoulliRBM, {rate:g}", "epoch": seconds / EPOCHS}
        out.append({**row, "log_likelihood": judged(as_machine(rbm, model.machine_), encoded)})
        print(out[-1], flush=True)
    return out


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="*", default=["mnist", "newsgroups"])
    options.add_argument("--units", nargs="*", type=int, default=[50, 200])
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "harmonium_rbm.json"
    results = json.loads(path.read_text())["runs"] if path.exists() else {}
    for name in chosen.sets:
        for K in chosen.units:
            results[f"{name} {K}"] = run(chosen.data, name, K)
            write_results("harmonium_rbm", {"runs": results})
    lines = [
        "| set | K | model | held-out log-likelihood, nats a row | CPU s an epoch |",
        "|---|---|---|---|---|",
    ]
    for rows in results.values():
        ours = [row for row in rows if "RBM" not in row["model"]]
        best = max((row for row in rows if "RBM" in row["model"]), key=lambda row: row["log_likelihood"])
        lines += [
            f"| {row['set']} | {row['K']} | {row['model']} | {row['log_likelihood']:.2f} "
            f"| {row['epoch']:.2f} |"
            for row in [*ours, best]
        ]
    write_table("harmonium_rbm", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
