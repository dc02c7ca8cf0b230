"""Gaps of mixed tables filled by our models, the yardstick, scikit-learn's imputers, gcimpute, columns alone.

    python benchmarks/imputation.py --data FOLDER [--sets wine ...] [--shares .1 .3 .5] [--methods rank_factor
    ...] [--peer-python PYTHON] [--minutes 3]

Cells are hidden at random, or more often the larger the first column of numbers is, which then has no gap.
Point error is the mean absolute error of numbers in standard deviations, label error the share of wrong
labels, CRPS in standard deviations, log-loss in nats a label, energy score that of the numbers that a row
lacks together, in standard deviations (20 draws). Coverage is that of central 90 % intervals by the place of
the true number in its law, at random within a value that has a probability of its own: a true law has .900,
where closed intervals of a column of four values hold more. A method without laws has point masses. The
yardstick is a page of code: EM for the correlations of normal scores and 0/1 columns of labels, mapped back
through the columns' quantiles. Every case is written to results/imputation.json when it is done, and not
computed again; `--again` forgets those of `--methods`, `--minutes` ends a piece in time.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import known_results, parser, write_results, write_table
from imputation_tables import FRESH, MOST_ROWS, OF_FOLDER, OF_SKLEARN, hidden, is_number, table_of
from scipy.special import ndtr, ndtri

from nongauss import AutoImputer, Harmonium, RankFactorAnalysis
from nongauss.auto.imputer import ColumnsAlone
from nongauss.auto.normal_scores import NormalScores
from nongauss.predictive.cells import LabelDistribution, drawn_values, law_of

N_DRAWS = 20
FEW_DRAWS = 10
"""Draws of imputers that fit anew for each, or are slow."""
PEER: dict[str, str] = {}
"""The interpreter of an environment with gcimpute, as `python`."""


class Said(NamedTuple):
    """What a method says of hidden cells: values, CRPS in units, chances of the true labels, draws.

    `points` (N, D) objects; `crps` and `place`, that of the true number in its law, by column of numbers;
    `chances` by column of labels, the probability of the true one; `draws` (S, N, numbers) or None. A
    column of names that differ in nearly every row is filled by none of ours, and is in none of these.
    """

    points: pd.DataFrame
    crps: dict[str, np.ndarray]
    place: dict[str, np.ndarray]
    chances: dict[str, np.ndarray]
    draws: np.ndarray | None


def ours(make: Callable[[], Any]) -> Callable[[pd.DataFrame, pd.DataFrame], Said]:
    """One of our models; its points, laws and draws come of one pass over the rows."""

    def run(gaps: pd.DataFrame, full: pd.DataFrame) -> Said:
        model = make().fit(gaps)
        found = model._gaps(gaps)
        points, crps, place, chances = gaps.copy(), {}, {}, {}
        numbers = [name for name in full if is_number(full[name])]
        draws = np.tile(gaps[numbers].to_numpy(float), (N_DRAWS, 1, 1))
        for margin, cells in zip(model._cell_margins, model._complete(found, 0, N_DRAWS), strict=True):
            name, rows, law = margin.name, cells.rows, law_of(margin, cells)
            true = full[name].to_numpy()[rows]
            if isinstance(law, LabelDistribution):
                known = {label: k for k, label in enumerate(law.labels)}
                p = law.probabilities()
                points.loc[rows, name] = np.array(law.labels, dtype=object)[law.mode]
                chances[name] = np.array([p[i, known[t]] if t in known else 0.0 for i, t in enumerate(true)])
            elif len(rows):
                points.loc[rows, name] = law.quantile(0.5)
                below, up_to = (law._share(true.astype(float), side) for side in ("left", "right"))
                crps[name], place[name] = law.crps(true.astype(float)), between(below, up_to)
                draws[:, rows, numbers.index(name)] = drawn_values(margin, cells)
        return Said(points, crps, place, chances, draws)

    return run


def between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Random numbers between two (N,)."""
    return low + np.random.default_rng(0).random(len(low)) * (high - low)


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
    """An imputer of matrices: `fill` gives one (N, P), or draws and last the point (S + 1, N, P)."""

    def run(gaps: pd.DataFrame, full: pd.DataFrame) -> Said:
        matrix, blocks = encoded(gaps)
        filled = fill(matrix)
        point, draws = (filled, filled[None]) if filled.ndim == 2 else (filled[-1], filled[:-1])
        said = Said(gaps.copy(), {}, {}, {}, None)
        numbers = []
        for name, labels, place in blocks:
            rows, true = np.flatnonzero(gaps[name].isna()), full[name].to_numpy()
            if labels is None:
                scale, centre = gaps[name].std() or 1.0, gaps[name].mean()
                cells = centre + scale * draws[:, :, place.start]
                numbers.append(np.where(gaps[name].isna(), cells, gaps[name].to_numpy(float)))
                said.points.loc[rows, name] = (centre + scale * point[:, place.start])[rows]
                if len(draws) > 1 and len(rows):
                    said.crps[name], said.place[name] = of_draws(cells[:, rows], true[rows].astype(float))
            elif len(rows):
                p = np.clip(point[rows][:, place], 0.02, 1.0)
                p /= p.sum(axis=1, keepdims=True)
                said.points.loc[rows, name] = np.array(labels, dtype=object)[p.argmax(axis=1)]
                known = {label: k for k, label in enumerate(labels)}
                p = np.hstack([p, np.zeros((len(p), 1))])  # the last: labels that were not seen
                said.chances[name] = p[np.arange(len(p)), [known.get(label, -1) for label in true[rows]]]
        return said._replace(draws=np.stack(numbers, axis=2) if len(draws) > 1 and numbers else None)

    return run


def of_draws(drawn: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """CRPS of the law of which there are draws (S, R), unbiased, and the place of the true number in it."""
    n = len(drawn)
    apart = np.abs(drawn[:, None] - drawn[None]).sum(axis=(0, 1)) / (n * (n - 1))
    crps = np.abs(drawn - true).mean(axis=0) - 0.5 * apart
    below, up_to = (drawn < true).sum(axis=0), (drawn <= true).sum(axis=0)
    return crps, between(below / (n + 1.0), (up_to + 1.0) / (n + 1.0))


def yardstick(matrix: np.ndarray) -> np.ndarray:
    """EM for the covariance of normal scores, 0/1 columns as they are; draws and conditional means."""
    known = ~np.isnan(matrix)
    values = [np.sort(matrix[known[:, p], p]) for p in range(matrix.shape[1])]
    is_number = [len(np.unique(v)) > 2 for v in values]
    w = matrix.copy()
    for p, (own, number) in enumerate(zip(values, is_number, strict=True)):
        if number:
            middle = 0.5 * (np.searchsorted(own, matrix[:, p]) + np.searchsorted(own, matrix[:, p], "right"))
            w[:, p] = np.where(known[:, p], ndtri(np.clip(middle / len(own), 1e-6, 1 - 1e-6)), np.nan)
    mean, V = conditional(w, known)
    rng, N, P = np.random.default_rng(0), *matrix.shape
    root = np.linalg.cholesky(V + 1e-9 * np.eye(P))
    drawn = mean + np.einsum("npq,snq->snp", root, rng.standard_normal((100, N, P)))
    out = np.concatenate([drawn, mean[None]])
    for p, (own, number) in enumerate(zip(values, is_number, strict=True)):
        if number:
            out[:, :, p] = np.quantile(own, ndtr(out[:, :, p]))
    return np.where(known, matrix, out)


def conditional(w: np.ndarray, known: np.ndarray, n_iter: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Means (N, P) and covariances (N, P, P) of unknown cells given the known, by EM for the normal law."""
    P = w.shape[1]
    mean, C, lost = np.nanmean(w, axis=0), np.eye(P), ~known
    for _ in range(n_iter):
        Q = np.linalg.inv(C + 1e-3 * np.eye(P))
        block = Q * lost[:, :, None] * lost[:, None, :]
        block[:, np.arange(P), np.arange(P)] += known
        V = np.linalg.inv(block) * lost[:, :, None] * lost[:, None, :]
        left = np.where(known, w - mean, 0.0)
        left = left - np.einsum("npq,nq->np", V, (left @ Q) * lost)
        x = mean + left
        mean = x.mean(axis=0)
        C = ((x - mean).T @ (x - mean) + V.sum(axis=0)) / len(w)
    return x, V


def gcimpute(matrix: np.ndarray) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "gaps.npy", Path(folder) / "out.npy"
        np.save(source, matrix)
        script = Path(__file__).with_name("imputation_peer.py")
        command = [PEER["python"], str(script), str(source), str(out), str(FEW_DRAWS)]
        subprocess.run(command, check=True, capture_output=True)
        return np.load(out)


def iterative(matrix: np.ndarray) -> np.ndarray:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(random_state=0, keep_empty_features=True).fit_transform(matrix)


def iterative_draws(matrix: np.ndarray) -> np.ndarray:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    def one(seed: int) -> np.ndarray:
        how = {"sample_posterior": True, "max_iter": 5, "keep_empty_features": True}
        return IterativeImputer(random_state=seed, **how).fit_transform(matrix)

    draws = np.stack([one(seed) for seed in range(FEW_DRAWS)])
    return np.concatenate([draws, np.mean(draws, axis=0, keepdims=True)])


def neighbours(matrix: np.ndarray) -> np.ndarray:
    from sklearn.impute import KNNImputer

    return KNNImputer(keep_empty_features=True).fit_transform(matrix)


def forest(matrix: np.ndarray) -> np.ndarray:
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    trees = ExtraTreesRegressor(15, min_samples_leaf=3, random_state=0)
    return IterativeImputer(trees, max_iter=2, random_state=0, keep_empty_features=True).fit_transform(matrix)


METHODS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Said]] = {
    "rank_factor": ours(lambda: RankFactorAnalysis(random_state=0)),
    "harmonium": ours(lambda: Harmonium(random_state=0)),
    "normal scores": ours(lambda: NormalScores(random_state=0)),
    "auto": ours(lambda: AutoImputer(random_state=0)),
    "columns alone": ours(lambda: ColumnsAlone(random_state=0)),
    "yardstick": theirs(yardstick),
    "gcimpute": theirs(gcimpute),
    "iterative": theirs(iterative),
    "iterative, draws": theirs(iterative_draws),
    "neighbours": theirs(neighbours),
    "forest": theirs(forest),
}


def figures(full: pd.DataFrame, gone: np.ndarray, said: Said) -> dict[str, float]:
    """The figures of a case, pooled over cells."""
    error, crps, wrong, loss, place = [], [], [], [], []
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
            place.append(said.place.get(name, np.zeros(0)))
        else:
            wrong.append(said.points[name].to_numpy()[rows] != true)
            loss.append(-np.log(np.maximum(said.chances.get(name, np.zeros(len(rows))), 1e-3)))

    def mean(parts: list[np.ndarray]) -> float:
        return float(np.mean(np.concatenate(parts))) if parts and sum(map(len, parts)) else float("nan")

    names = ("point", "crps", "wrong", "log_loss", "coverage")
    held = [(own >= 0.05) & (own <= 0.95) for own in place]
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
        apart = np.linalg.norm(z[:, None] - z[None], axis=2).sum() / max(len(z) * (len(z) - 1), 1)
        out.append((np.linalg.norm(z, axis=1).mean() - 0.5 * apart) / np.sqrt(own.sum()))
    return float(np.mean(out)) if out else float("nan")


def summary(results: dict[str, Any]) -> list[str]:
    """The table: means over the cases that every method of `LEADERS` has done, and mean ranks among all.

    The rank is by CRPS and log-loss together; "worse" is the share of cases with a CRPS more than .01 above
    the yardstick's, "lost" that of CRPS or log-loss above that of columns alone by more than .01.
    """
    lines = [
        "| gaps | method | cases | point | CRPS | label error | log-loss | coverage | energy | rank | worse "
        "| lost | s |",
        "|" + "---|" * 13,
    ]
    names = ("set", "gaps", "seed", "method")
    frame = pd.DataFrame([dict(zip(names, key.split("|"), strict=True)) | v for key, v in results.items()])
    case = frame["set"] + "|" + frame["gaps"]
    done = [set(case[frame["method"] == name]) for name in LEADERS]
    frame = frame[case.isin(set.intersection(*done))]
    is_fresh = frame["set"].isin(FRESH)
    parts = [*frame.groupby("gaps"), ("all", frame), ("fresh sets", frame[is_fresh])]
    for gaps, part in parts if is_fresh.any() else parts[:-1]:
        by = {"index": ["set", "gaps"], "columns": "method"}
        table = {name: part.pivot_table(values=name, **by) for name in SCORES}
        ranks = pd.concat([scores.rank(axis=1) for scores in table.values()]).mean()
        worse = (table["crps"].sub(table["crps"]["yardstick"], axis=0) > 0.01).mean()
        lost = pd.concat([t.sub(t["columns alone"], axis=0) > 0.01 for t in table.values()]).mean()
        means, sizes = part.groupby("method").mean(numeric_only=True), part.groupby("method").size()
        order = means.assign(rank=ranks, cases=sizes, worse=worse, lost=lost)
        for method, row in order.sort_values("rank").iterrows():
            told = ("point", "crps", "wrong", "log_loss", "coverage", "energy", "rank", "worse", "lost")
            cells = [*(f"{row[name]:.3f}" for name in told), f"{row['seconds']:.1f}"]
            told_of = " | ".join(cells).replace("nan", "")
            lines.append(f"| {gaps} | {method} | {row['cases']:.0f} | {told_of} |")
    return lines


SCORES = ("crps", "log_loss")
LEADERS = ("rank_factor", "columns alone", "yardstick", "neighbours")


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--sets", nargs="*", default=[*OF_SKLEARN, *OF_FOLDER, *FRESH])
    options.add_argument("--shares", nargs="*", type=float, default=[0.1, 0.3, 0.5])
    options.add_argument("--methods", nargs="*", default=list(METHODS))
    options.add_argument("--peer-python", help="interpreter of an environment with gcimpute")
    options.add_argument("--minutes", type=float, default=np.inf)
    options.add_argument("--again", action="store_true")
    chosen = options.parse_args()
    PEER.update({"python": chosen.peer_python} if chosen.peer_python else {})
    results = known_results("imputation").get("cases", {})
    if chosen.again:
        results = {key: v for key, v in results.items() if key.rpartition("|")[2] not in chosen.methods}
    began = time.perf_counter()
    for share in chosen.shares:
        for name in chosen.sets:
            for kind in ("random", "depends"):
                for method in chosen.methods:
                    is_late = time.perf_counter() - began > 60 * chosen.minutes
                    if is_late or (method == "gcimpute" and not PEER):
                        continue
                    key = f"{name}|{kind} {share:.0%}|0|{method}"
                    if key not in results:
                        results[key] = case(name, share, kind == "depends", method, chosen.data)
                        print(key, {k: round(v, 3) for k, v in results[key].items()}, flush=True)
                        write_results("imputation", {"rows": MOST_ROWS, "cases": results})
    write_table("imputation", summary(results))
    print("\n".join(summary(results)))


def case(name: str, share: float, depends: bool, method: str, data: Path) -> dict[str, float]:
    """The figures of one method on one table with one set of gaps."""
    full = table_of(name, data)
    gone = hidden(full, share, depends, 0)
    gaps = full.mask(gone)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = sum(os.times()[:4])
        said = METHODS[method](gaps, full)
        return figures(full, gone, said) | {"seconds": sum(os.times()[:4]) - began}


if __name__ == "__main__":
    main()
