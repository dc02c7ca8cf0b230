"""Gaps of mixed tables filled by rank factors, harmoniums, scikit-learn's imputers, columns alone.

    python benchmarks/imputation.py --data FOLDER [--sets wine ...] [--shares .1 .3 .5] [--methods rank_factor
    ...]

Cells are hidden at random, or more often the larger the first column of numbers is, which then has no gap.
Point error is the mean absolute error of numbers in standard deviations, label error the share of wrong
labels, CRPS in standard deviations, log-loss in nats a label, coverage that of central 90 % intervals, energy
score that of the numbers that a row lacks together, in standard deviations (20 draws). A method without laws
has point masses. Every case is written to results/imputation.json when it is done, and not computed again;
`--again` forgets them.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import RESULTS, load_table, parser, write_results, write_table
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from nongauss import AutoImputer, Harmonium, RankFactorAnalysis
from nongauss.auto.imputer import ColumnsAlone
from nongauss.predictive.cells import LabelDistribution, drawn_values, law_of

N_DRAWS, MOST_ROWS = 20, 500
OF_SKLEARN = {
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "iris": load_iris,
}
OF_FOLDER = ("abalone", "bike_day", "boston", "concrete", "esl", "german", "glass", "pima", "titanic", "zoo")


def table_of(name: str, data: Path) -> pd.DataFrame:
    """A table with its target as a column; classes and pairs of values as labels; MOST_ROWS at most."""
    if name in OF_SKLEARN:
        found = OF_SKLEARN[name](as_frame=True)
        frame = found.data.copy()
        frame["target"] = found.target if name == "diabetes" else [f"c{k}" for k in found.target]
    else:
        frame, y = load_table(data, name)
        frame["target"] = [f"c{k}" for k in y] if len(np.unique(y)) <= 3 else y
    for column in frame:
        if is_number(frame[column]) and frame[column].nunique() == 2:
            frame[column] = [f"v{value:g}" for value in frame[column]]
    frame = frame.loc[:, frame.nunique() > 1]
    rows = np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS]
    return frame.iloc[np.sort(rows)].reset_index(drop=True)


def hidden(frame: pd.DataFrame, share: float, depends: bool, seed: int) -> np.ndarray:
    """Which cells (N, D) are hidden."""
    rng = np.random.default_rng(seed)
    chance = np.full(frame.shape, share)
    if depends:
        pivot = next(j for j, name in enumerate(frame) if is_number(frame[name]))
        place = frame.iloc[:, pivot].rank(pct=True).to_numpy()
        chance[:] = np.minimum(2.0 * share * place, 0.95)[:, None]
        chance[:, pivot] = 0.0
    return rng.random(frame.shape) < chance


def is_number(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


class Said(NamedTuple):
    """What a method says of hidden cells: values, CRPS in units, chances of the true labels, draws.

    `points` (N, D) objects; `crps` and `held` by column of numbers (None: a point mass); `chances` by column
    of labels, the probability of the true one; `draws` (S, N, numbers) or None.
    """

    points: pd.DataFrame
    crps: dict[str, np.ndarray]
    held: dict[str, np.ndarray]
    chances: dict[str, np.ndarray]
    draws: np.ndarray | None


def ours(make: Callable[[], Any]) -> Callable[[pd.DataFrame, pd.DataFrame], Said]:
    """One of our models; its points, laws and draws come of one pass over the rows."""

    def run(gaps: pd.DataFrame, full: pd.DataFrame) -> Said:
        model = make().fit(gaps)
        found = model._gaps(gaps)
        points, crps, held, chances = gaps.copy(), {}, {}, {}
        numbers = [name for name in full if is_number(full[name])]
        draws = np.tile(gaps[numbers].to_numpy(float), (N_DRAWS, 1, 1))
        for margin, cells in zip(model._cell_margins, model._complete(found, 0, N_DRAWS), strict=True):
            name, rows, law = margin.name, cells.rows, law_of(margin, cells)
            true = full[name].to_numpy()[rows]
            if isinstance(law, LabelDistribution):
                place = {label: k for k, label in enumerate(law.labels)}
                p = law.probabilities()
                points.loc[rows, name] = np.array(law.labels, dtype=object)[law.mode]
                chances[name] = np.array([p[i, place[t]] if t in place else 0.0 for i, t in enumerate(true)])
            elif len(rows):
                points.loc[rows, name] = law.quantile(0.5)
                low, high = law.interval(0.9).T
                crps[name], held[name] = law.crps(true.astype(float)), (low <= true) & (true <= high)
                draws[:, rows, numbers.index(name)] = drawn_values(margin, cells)
        return Said(points, crps, held, chances, draws)

    return run


def encoded(gaps: pd.DataFrame) -> tuple[np.ndarray, list[tuple[str, list[str] | None, slice]]]:
    """Standardised numbers and 0/1 columns of labels, NaN where missing, and the columns of each."""
    blocks, parts, at = [], [], 0
    for name in gaps:
        column = gaps[name]
        if is_number(column):
            parts.append(((column - column.mean()) / (column.std() or 1.0)).to_numpy(float)[:, None])
            blocks.append((name, None, slice(at, at + 1)))
        else:
            labels = sorted(column.dropna().unique())
            own = (column.to_numpy()[:, None] == np.array(labels, dtype=object)).astype(float)
            own[column.isna().to_numpy()] = np.nan
            parts.append(own)
            blocks.append((name, labels, slice(at, at + len(labels))))
        at += parts[-1].shape[1]
    return np.hstack(parts), blocks


def theirs(fill: Callable[[np.ndarray], np.ndarray]) -> Callable[[pd.DataFrame, pd.DataFrame], Said]:
    """An imputer of matrices: `fill` gives draws (S, N, P), or one filled matrix (1, N, P)."""

    def run(gaps: pd.DataFrame, full: pd.DataFrame) -> Said:
        matrix, blocks = encoded(gaps)
        filled = fill(matrix)
        points, crps, held, chances, numbers = gaps.copy(), {}, {}, {}, []
        for name, labels, place in blocks:
            rows = np.flatnonzero(gaps[name].isna())
            own = filled[:, :, place]
            if labels is None:
                scale, centre = gaps[name].std() or 1.0, gaps[name].mean()
                cells = centre + scale * own[:, :, 0]
                numbers.append(np.where(gaps[name].isna(), cells, gaps[name].to_numpy(float)))
                points.loc[rows, name] = np.median(cells, axis=0)[rows]
                if len(filled) > 1 and len(rows):
                    drawn, true = cells[:, rows], full[name].to_numpy(float)[rows]
                    apart = np.abs(drawn[:, None] - drawn[None]).mean(axis=(0, 1))
                    crps[name] = np.abs(drawn - true).mean(axis=0) - 0.5 * apart
                    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
                    held[name] = (low <= true) & (true <= high)
            elif len(rows):
                p = np.clip(own[:, rows], 0.02, 1.0)
                p = (p / p.sum(axis=2, keepdims=True)).mean(axis=0)
                points.loc[rows, name] = np.array(labels, dtype=object)[p.argmax(axis=1)]
                known = {label: k for k, label in enumerate(labels)}
                true = full[name].to_numpy()[rows]
                chances[name] = np.array([p[i, known[t]] if t in known else 0.0 for i, t in enumerate(true)])
        draws = np.stack(numbers, axis=2) if len(filled) > 1 else None
        return Said(points, crps, held, chances, draws)

    return run


def iterative(matrix: np.ndarray) -> np.ndarray:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(random_state=0, keep_empty_features=True).fit_transform(matrix)[None]


def iterative_draws(matrix: np.ndarray) -> np.ndarray:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    def one(seed: int) -> np.ndarray:
        how = {"sample_posterior": True, "max_iter": 5, "keep_empty_features": True}
        return IterativeImputer(random_state=seed, **how).fit_transform(matrix)

    return np.stack([one(seed) for seed in range(N_DRAWS // 2)])


def neighbours(matrix: np.ndarray) -> np.ndarray:
    from sklearn.impute import KNNImputer

    return KNNImputer(keep_empty_features=True).fit_transform(matrix)[None]


def forest(matrix: np.ndarray) -> np.ndarray:
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    trees = ExtraTreesRegressor(30, min_samples_leaf=3, random_state=0)
    return IterativeImputer(trees, max_iter=3, random_state=0, keep_empty_features=True).fit_transform(
        matrix
    )[None]


METHODS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Said]] = {
    "rank_factor": ours(lambda: RankFactorAnalysis(random_state=0)),
    "harmonium": ours(lambda: Harmonium(random_state=0)),
    "auto": ours(lambda: AutoImputer(random_state=0)),
    "columns alone": ours(lambda: ColumnsAlone(random_state=0)),
    "iterative": theirs(iterative),
    "iterative, draws": theirs(iterative_draws),
    "neighbours": theirs(neighbours),
    "forest": theirs(forest),
}
USUAL = tuple(name for name in METHODS if name not in ("auto", "forest"))


def figures(full: pd.DataFrame, gone: np.ndarray, said: Said) -> dict[str, float]:
    """The figures of a case, pooled over cells."""
    error, crps, wrong, loss, held = [], [], [], [], []
    for j, name in enumerate(full):
        rows = np.flatnonzero(gone[:, j])
        if not len(rows):
            continue
        true = full[name].to_numpy()[rows]
        if is_number(full[name]):
            sd = full[name].std()
            own = np.abs(said.points[name].to_numpy(float)[rows] - true.astype(float)) / sd
            error.append(own)
            crps.append(said.crps[name] / sd if name in said.crps else own)
            held.append(said.held.get(name, np.zeros(0)))
        else:
            wrong.append(said.points[name].to_numpy()[rows] != true)
            loss.append(-np.log(np.maximum(said.chances[name], 1e-3)))

    def mean(parts: list[np.ndarray]) -> float:
        return float(np.mean(np.concatenate(parts))) if parts and sum(map(len, parts)) else float("nan")

    names = ("point", "crps", "wrong", "log_loss", "coverage")
    out = dict(zip(names, map(mean, (error, crps, wrong, loss, held)), strict=True))
    return out | {"energy": energy(full, gone, said)}


def energy(full: pd.DataFrame, gone: np.ndarray, said: Said) -> float:
    """Mean energy score of the numbers that a row lacks together, over the root of their number."""
    numbers = [j for j, name in enumerate(full) if is_number(full[name])]
    true = full.iloc[:, numbers].to_numpy(float)
    sd, lost = true.std(axis=0), gone[:, numbers]
    draws = said.points.iloc[:, numbers].to_numpy(float)[None] if said.draws is None else said.draws
    out = []
    for i in np.flatnonzero(lost.sum(axis=1) >= 2):
        own = lost[i]
        z = (draws[:, i][:, own] - true[i, own]) / sd[own]
        apart = np.linalg.norm(z[:, None] - z[None], axis=2).mean()
        out.append((np.linalg.norm(z, axis=1).mean() - 0.5 * apart) / np.sqrt(own.sum()))
    return float(np.mean(out)) if out else float("nan")


def summary(results: dict[str, Any]) -> list[str]:
    """The table: means over cases, and mean ranks by CRPS and log-loss together."""
    lines = [
        "| gaps | method | cases | point | CRPS | label error | log-loss | coverage | energy | rank | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    names = ("set", "gaps", "seed", "method")
    rows = [dict(zip(names, key.split("|"), strict=True)) | value for key, value in results.items()]
    frame = pd.DataFrame(rows)
    for gaps, part in frame.groupby("gaps"):
        both = part.pivot_table(
            index=["set", "seed"], columns="method", values=["crps", "log_loss"], dropna=False
        )
        ranks = both.T.groupby(level=0).rank().T.T.groupby(level=1).mean().T.mean()
        means, sizes = part.groupby("method").mean(numeric_only=True), part.groupby("method").size()
        order = means.assign(rank=ranks, cases=sizes)
        for method, row in order.sort_values("rank").iterrows():
            told = ("point", "crps", "wrong", "log_loss", "coverage", "energy", "rank", "seconds")
            cells = [f"{row[name]:.3f}" if name != "seconds" else f"{row[name]:.1f}" for name in told]
            lines.append(
                f"| {gaps} | {method} | {row['cases']:.0f} | " + " | ".join(cells).replace("nan", "") + " |"
            )
    return lines


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--sets", nargs="*", default=[*OF_SKLEARN, *OF_FOLDER])
    options.add_argument("--shares", nargs="*", type=float, default=[0.1, 0.3, 0.5])
    options.add_argument("--methods", nargs="*", default=list(USUAL))
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--again", action="store_true")
    chosen = options.parse_args()
    path = RESULTS / "imputation.json"
    results = {} if chosen.again or not path.exists() else json.loads(path.read_text())["cases"]
    for name in chosen.sets:
        full = table_of(name, chosen.data)
        for share in chosen.shares:
            for kind in ("random", "depends"):
                for seed in range(chosen.seeds):
                    gone = hidden(full, share, kind == "depends", seed)
                    gaps = full.mask(gone)
                    for method in chosen.methods:
                        key = f"{name}|{kind} {share:.0%}|{seed}|{method}"
                        if key in results:
                            continue
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            began = time.perf_counter()
                            said = METHODS[method](gaps, full)
                        seconds = time.perf_counter() - began
                        results[key] = figures(full, gone, said) | {"seconds": seconds}
                        print(key, {k: round(v, 3) for k, v in results[key].items()}, flush=True)
                        write_results("imputation", {"rows": MOST_ROWS, "cases": results})
    write_table("imputation", summary(results))
    print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
