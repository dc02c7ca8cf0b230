"""Tables of a few rows: what the automatic estimators lose against the law without columns, on new rows.

Three columns; the target has nothing to do with them, or a weak relation to the first. Figures are nats a
row on new rows, the mean over draws: the law without columns (constant) less the choice, so that above 0
the choice is worse; the largest loss of any draw; and how sure the choice is, by the mean probability of its
most probable class or by the ratio of the smallest to the largest of its standard deviations.

    python benchmarks/auto_tiny.py [--sizes 12 20 40] [--draws 10] [--kinds labels counts numbers]

Results are kept after each draw: `results/auto_tiny.json`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import hours_of_fits, keep_results, known_results, write_table

from nongauss import AutoClassifier, AutoRegressor

N_NEW = 500
KINDS = ("labels", "three labels", "counts", "numbers")
RELATIONS = {"none": 0.0, "weak": 0.5}


def target(rng: np.random.Generator, kind: str, f: np.ndarray) -> np.ndarray:
    """Targets (N,) of a kind, about a function f (N,) of the row."""
    n = len(f)
    if kind == "labels":
        return (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * f))).astype(int)
    if kind == "three labels":
        return np.argmax(np.column_stack([2.0 * f, np.zeros(n), -2.0 * f]) + rng.gumbel(size=(n, 3)), axis=1)
    if kind == "counts":
        return rng.poisson(3.0 * np.exp(f)).astype(float)
    return f + rng.normal(size=n)


def constant(kind: str, y: np.ndarray, new: np.ndarray) -> float:
    """Mean log density of new targets under the law that knows the training targets alone.

    Shares with half a row more of each class; the negative binomial law of a gamma prior of one row with the
    targets' mean; Student's t of unknown mean and variance.
    """
    from scipy import stats

    n = len(y)
    if "labels" in kind:
        classes = int(max(y.max(), new.max())) + 1
        shares = (np.bincount(y, minlength=classes) + 0.5) / (n + 0.5 * classes)
        return float(np.log(shares[new]).mean())
    if kind == "counts":
        shape, rate = y.sum() + max(y.mean(), 0.5), n + 1.0
        return float(stats.nbinom(shape, rate / (rate + 1.0)).logpmf(new).mean())
    return float(stats.t(n - 1, y.mean(), y.std(ddof=1) * np.sqrt(1.0 + 1.0 / n)).logpdf(new).mean())


def one(kind: str, relation: str, n: int, draw: int) -> dict[str, Any]:
    """Nats a row lost against the constant law on new rows, how sure the choice is, its shares, seconds."""
    rng = np.random.default_rng([n, draw, KINDS.index(kind), list(RELATIONS).index(relation)])
    X = rng.normal(size=(n + N_NEW, 3))
    y = target(rng, kind, RELATIONS[relation] * X[:, 0])
    old, new = slice(n), slice(n, None)
    made: Any = AutoClassifier if "labels" in kind else AutoRegressor
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made(random_state=draw).fit(X[old], y[old])
        if "labels" in kind:
            shares = np.full((N_NEW, int(y.max()) + 1), 1e-12)
            shares[:, np.asarray(model.classes_, int)] = model.predict_proba(X[new])
            own = np.log(shares[np.arange(N_NEW), y[new]])
            sure = float(shares.max(axis=1).mean())
        else:
            law = model.predict_distribution(X[new])
            own, sd = law.log_prob(y[new]), law.std
            sure = float(sd.min() / sd.max())
    board = model.leaderboard_.dropna(subset="log_density")
    return {
        "loss": constant(kind, y[old], y[new]) - float(own.mean()),
        "sure": sure,
        "weights": model.weights_,
        "left_out": dict(zip(board["candidate"], board["log_density"], strict=True)),
        "seconds": time.process_time() - begin,
    }


def lines(known: dict[str, Any]) -> list[str]:
    """A row for each kind, relation and size."""
    out = ["| target | relation | rows | draws | loss | largest | how sure | fit CPU s |", "|---" * 8 + "|"]
    for key, draws in known.items():
        found = list(draws.values())
        loss, sure, seconds = ([one[name] for one in found] for name in ("loss", "sure", "seconds"))
        figures = f"{np.mean(loss):.3f} | {np.max(loss):.3f} | {np.mean(sure):.2f} | {np.mean(seconds):.1f}"
        out.append(f"| {' | '.join(key.split(', '))} | {len(found)} | {figures} |")
    return out


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", nargs="+", type=int, default=[12, 20, 40])
    options.add_argument("--draws", type=int, default=10)
    options.add_argument("--kinds", nargs="+", default=list(KINDS))
    options.add_argument("--relations", nargs="+", default=list(RELATIONS))
    chosen = options.parse_args()
    known = known_results("auto_tiny")
    for kind in chosen.kinds:
        for relation in chosen.relations:
            for n in chosen.sizes:
                for draw in range(chosen.draws):
                    place = known.setdefault(f"{kind}, {relation}, {n}", {})
                    if str(draw) not in place:
                        place[str(draw)] = one(kind, relation, n, draw)
                        print(kind, relation, n, draw, place[str(draw)], flush=True)
                        keep_results("auto_tiny", known)
    write_table("auto_tiny", lines(known) + hours_of_fits(known))


if __name__ == "__main__":
    main()
