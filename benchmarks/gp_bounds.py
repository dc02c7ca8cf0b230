"""How far each bound is from the exact expectation, and what that does to held-out log-loss.

    python benchmarks/gp_bounds.py --data FOLDER [--sets digits] [--bounds jensen] [--splits 3]

Writes results/gp_bounds.json and the table in benchmarks/README.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from common import known_results, load_table, parser, random_splits, with_error, write_results, write_table
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from nongauss import SparseGPClassifier
from nongauss.prob.logistic import expected_log1pexp
from nongauss.prob.mixture_entropy import jensen_entropy, pairwise_entropy
from nongauss.prob.piecewise import expected_bound
from nongauss.prob.quadrature import gauss_hermite
from nongauss.prob.softmax import SOFTMAX

SETS = ("sonar", "ionosphere", "pima", "banana", "usps 3 against 5")
MOST_ROWS, MOST_DIGITS = 1500, 300
ENTROPIES = {
    "truth": "entropy beyond that of one, nats",
    "pairwise": "by pairs, as used",
    "jensen": "Jensen",
    "constant": "Jensen, with the constant that makes one exact: no bound",
}


def logistic_errors() -> dict[str, float]:
    """Largest error of E log(1 + e^f) over means from -8 to 8 and variances from 0.01 to 100."""
    mean, variance = np.linspace(-8, 8, 161)[:, None], np.geomspace(0.01, 100, 81)
    exact = expected_log1pexp(mean, variance)[0]
    points, weights = gauss_hermite(20)
    f = mean[..., None] + np.sqrt(variance)[:, None] * points
    errors = {"Gauss-Hermite, 20 points": float(np.abs(np.logaddexp(0, f) @ weights - exact).max())}
    for degree, word in ((1, "straight"), (2, "quadratic")):
        for pieces in (3, 5, 10, 20):
            gap = expected_bound(mean, variance, pieces, degree)[0] - exact
            errors[f"{pieces} {word} pieces"] = float(gap.max())
    return errors


def softmax_errors(n_rows: int = 100, n_draws: int = 20_000) -> dict[str, float]:
    """Mean shortfall of E log p(y) at random moments: 10 classes, means of sd 2, variances from 0.1 to 4."""
    rng = np.random.default_rng(0)
    mean, variance = 2.0 * rng.normal(size=(n_rows, 10)), rng.uniform(0.1, 4.0, (n_rows, 10))
    y = rng.integers(0, 10, n_rows)
    f = mean[:, None] + np.sqrt(variance)[:, None] * rng.normal(size=(n_rows, n_draws, 10))
    own = np.take_along_axis(f, y[:, None, None], axis=2)[..., 0]
    exact = (own - np.log(np.exp(f).sum(axis=2))).mean(axis=1)
    return {name: float((exact - rule(y, mean, variance)[0]).mean()) for name, rule in SOFTMAX.items()}


def entropies(gaps: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 8.0)) -> dict[str, list[float]]:
    """Two unit normals in 20 dimensions, `gaps` apart: what each bound adds to the entropy of one."""
    x = np.random.default_rng(0).normal(size=1_000_000)
    one = 10.0 * (1.0 + math.log(2.0 * math.pi))
    out: dict[str, list[float]] = {
        "gap": list(gaps),
        "truth": [],
        "pairwise": [],
        "jensen": [],
        "constant": [],
    }
    for gap in gaps:
        mean, log_sd = np.zeros((2, 20)), np.zeros(2)
        mean[1, 0] = gap
        jensen = jensen_entropy(mean, log_sd) - one
        out["truth"].append(math.log(2.0) - float(np.logaddexp(0.0, gap * x - gap**2 / 2).mean()))
        out["pairwise"].append(pairwise_entropy(mean, log_sd)[0] - one)
        out["jensen"].append(jensen)
        out["constant"].append(jensen + 10.0 * (1.0 - math.log(2.0)))
    return out


def load(data: Path, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and labels of a set; of USPS the threes and fives, both parts together."""
    if name == "digits":
        return load_digits(return_X_y=True, as_frame=True)
    if not name.startswith("usps"):
        return load_table(data, name)
    with np.load(data / "usps" / "usps.npz") as file:
        X, y = (np.concatenate([file[f"{part}_train"], file[f"{part}_test"]]) for part in "Xy")
    chosen = np.isin(y, (3, 5))
    return pd.DataFrame(X[chosen].reshape(chosen.sum(), -1)), y[chosen]


def held_out(data: Path, name: str, ways: Iterable[str], n_splits: int, most: int) -> dict[str, list[float]]:
    """Log-loss of each split by each way to the expectation, fitted to 70 % or at most `most` rows."""
    X, y = load(data, name)
    out: dict[str, list[float]] = {way: [] for way in ways}
    n_train = min(int(0.7 * len(y)), most)
    for number, (train, test) in enumerate(random_splits(len(y), n_train, n_splits)):
        for way, losses in out.items():
            model = SparseGPClassifier(expectation=way, random_state=number).fit(X.iloc[train], y[train])
            losses.append(float(log_loss(y[test], model.predict_proba(X.iloc[test]), labels=model.classes_)))
    return out


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--splits", type=int, default=3)
    options.add_argument("--sets", nargs="+", choices=("digits", *SETS), default=["digits", *SETS])
    options.add_argument("--bounds", nargs="+", choices=SOFTMAX, default=list(SOFTMAX), help="of digits")
    chosen = options.parse_args()
    kept = known_results("gp_bounds").get("log_loss", {})
    logistic, softmax, entropy = logistic_errors(), softmax_errors(), entropies()
    lines = ["| E log(1 + e^f) by | largest error |", "|---|---|"]
    lines += [f"| {name} | {error:.3g} |" for name, error in logistic.items()]
    digits = kept.get("digits", {})
    if "digits" in chosen.sets:
        digits |= held_out(chosen.data, "digits", chosen.bounds, chosen.splits, MOST_DIGITS)
    lines += ["", "| E log softmax by, 10 classes | mean shortfall, nats | held-out log-loss, digits |"]
    lines += ["|---|---|---|"]
    for name, error in softmax.items():
        label = f"{name} (the default)" if name == "monte_carlo" else name
        lines.append(f"| {label} | {error:.3g} | {with_error(digits[name], '.4f')} |")
    lines += ["", "| gap of two normals | " + " | ".join(f"{gap:g}" for gap in entropy["gap"]) + " |"]
    lines += ["|---" * (1 + len(entropy["gap"])) + "|"]
    for name, title in ENTROPIES.items():
        lines.append(f"| {title} | " + " | ".join(f"{number:.4f}" for number in entropy[name]) + " |")
    lines += ["", "| held-out log-loss | by quadrature | by 20 pieces |", "|---|---|---|"]
    sets = kept | {"digits": digits}
    for name in SETS:
        if name in chosen.sets:
            sets[name] = held_out(chosen.data, name, ("quadrature", "piecewise"), chosen.splits, MOST_ROWS)
        if name not in sets:
            continue
        cells = (with_error(values, ".4f") for values in sets[name].values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    write_results(
        "gp_bounds", {"logistic": logistic, "softmax": softmax, "entropy": entropy, "log_loss": sets}
    )
    write_table("gp_bounds", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
