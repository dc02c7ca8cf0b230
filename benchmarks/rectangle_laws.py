"""The number of clusters that is chosen for tables from made laws, whose number is known: 20 draws each.

What is there already is kept: a run goes on with the draws that are missing, one of each law in turn.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from common import known_results, parser, write_results, write_table

from nongauss import RectangleMixture

Law = Callable[[np.random.Generator], np.ndarray | pd.DataFrame]


def _boxes(rng: np.random.Generator, centres: np.ndarray, sizes: list[int], half: float = 1.0) -> np.ndarray:
    """Rows spread evenly over boxes around some centres (K, P)."""
    which = np.repeat(np.arange(len(centres)), sizes)
    return centres[which] + rng.uniform(-half, half, (len(which), centres.shape[1]))


def grid_in_noise(rng: np.random.Generator) -> np.ndarray:
    """2 x 2 boxes in two columns, eight columns of uniform noise."""
    grid = _boxes(rng, 4.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), [150] * 4)
    return np.hstack([grid, rng.uniform(size=(600, 8))])


def ten_columns(rng: np.random.Generator) -> np.ndarray:
    """Four clean boxes that differ in all of ten columns."""
    return _boxes(rng, 4.0 * rng.permuted(np.tile(np.arange(4), (10, 1)), axis=1).T, [100] * 4)


def uniform_noise(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(size=(500, 5))


def uniform_plane(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(size=(300, 2)) * [5.0, 1.0]


def stretched(rng: np.random.Generator) -> np.ndarray:
    """One Gaussian, ten times as long as wide, askew."""
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return rng.normal(size=(500, 3)) * [10.0, 3.0, 1.0] @ turn


def heavy_tails(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_t(3, (500, 3))


def skewed(rng: np.random.Generator) -> np.ndarray:
    return rng.lognormal(sigma=0.7, size=(500, 3))


def nested(rng: np.random.Generator) -> np.ndarray:
    """A dense box inside a wide one."""
    wide, dense = rng.uniform(0, 10, (300, 2)), rng.uniform([6, 5], [8, 7], (300, 2))
    return np.vstack([wide, dense])


def unequal(rng: np.random.Generator) -> np.ndarray:
    """50, 30, 14, 5 and 1 % of 1,000 rows."""
    centres = 4.0 * np.array([[0, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0], [2, 2, 2]])
    return _boxes(rng, centres, [500, 300, 140, 50, 10])


def blobs_in_noise(rng: np.random.Generator) -> np.ndarray:
    """Three Gaussians in two columns, eight columns of Gaussian noise."""
    which = np.repeat(np.arange(3), 150)
    centres = 5.0 * np.array([[0, 0], [1, 0], [0.5, 0.9]])
    return np.hstack([centres[which] + rng.normal(size=(450, 2)), rng.normal(size=(450, 8))])


def crescents(rng: np.random.Generator) -> np.ndarray:
    """Two half moons, each of several pieces."""
    angle = rng.uniform(0, np.pi, 600)
    upper = np.arange(600) < 300
    moons = np.column_stack(
        [
            np.where(upper, np.cos(angle), 1 - np.cos(angle)),
            np.where(upper, np.sin(angle), 0.4 - np.sin(angle)),
        ]
    )
    return moons + rng.normal(scale=0.06, size=(600, 2))


def corner(rng: np.random.Generator) -> np.ndarray:
    """An L of two long boxes, and a box in its corner."""
    long, across = rng.uniform([0, 0], [2, 10], (250, 2)), rng.uniform([2, 0], [10, 2], (200, 2))
    return np.vstack([long, across, rng.uniform([6, 6], [10, 10], (200, 2))])


def skewed_three(rng: np.random.Generator) -> np.ndarray:
    """Three clusters with long tails to the right."""
    which = np.repeat(np.arange(3), 150)
    return np.array([[0, 0], [8, 0], [0, 8]])[which] + rng.exponential(size=(450, 2))


def small_direction(rng: np.random.Generator) -> np.ndarray:
    """Two groups that differ only across the common direction of four columns."""
    group = np.repeat([-1.0, 1.0], 200)
    noise = 0.05 * rng.normal(size=(400, 4))
    return rng.normal(size=(400, 1)) + noise + 0.15 * group[:, None] * [1.0, -1.0, 1.0, -1.0]


def classes(rng: np.random.Generator) -> np.ndarray:
    """Three classes in eight columns of labels."""
    which = np.repeat(np.arange(3), 150)
    typical = rng.permuted(np.tile(np.arange(3), (8, 1)), axis=1).T[which]
    return np.where(rng.uniform(size=(450, 8)) < 0.8, typical, rng.integers(0, 3, (450, 8))).astype(str)


def label_across(rng: np.random.Generator) -> pd.DataFrame:
    """Three Gaussians, and a label that moves each a little, as the sex of an animal does."""
    which, label = np.repeat(np.arange(3), 120), rng.integers(0, 2, 360)
    centres = 6.0 * np.array([[0, 0, 0], [1, 0, 1], [0, 1, 1]])
    values = centres[which] + 1.2 * label[:, None] + rng.normal(size=(360, 3))
    return pd.DataFrame(values, columns=["x0", "x1", "x2"]).assign(label=np.array(["a", "b"])[label])


def pairs(rng: np.random.Generator) -> np.ndarray:
    """Two classes in ten columns of labels, and in each three coins, each seen in two columns more."""
    which, coins = rng.integers(0, 2, 500), rng.integers(0, 2, (500, 3))
    typical = np.hstack([np.repeat(coins, 2, axis=1), np.tile(which[:, None], (1, 10))])
    return np.where(rng.uniform(size=(500, 16)) < 0.9, typical, 1 - typical).astype(str)


def unrelated_labels(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 3, (450, 6)).astype(str)


def zeros(rng: np.random.Generator) -> np.ndarray:
    """A column of which nine tenths are 0, beside one of noise."""
    amounts = np.where(rng.uniform(size=500) < 0.9, 0.0, rng.exponential(size=500))
    return np.column_stack([amounts, rng.normal(size=500)])


def blobs_and_zeros(rng: np.random.Generator) -> np.ndarray:
    """Three Gaussians in two columns, and two columns of noise of which .9 and .5 are 0."""
    centres = 5.0 * np.array([[0, 0], [1, 0], [0.5, 0.9]])[np.repeat(np.arange(3), 150)]
    amounts = np.where(rng.uniform(size=(450, 2)) < [0.9, 0.5], 0.0, rng.exponential(size=(450, 2)))
    return np.hstack([centres + rng.normal(size=(450, 2)), amounts])


LAWS: dict[str, tuple[Law, int]] = {
    "2 x 2 boxes, 8 noise columns": (grid_in_noise, 4),
    "4 boxes in 10 columns": (ten_columns, 4),
    "3 Gaussians, 8 noise columns": (blobs_in_noise, 3),
    "uniform noise, 5 columns": (uniform_noise, 1),
    "uniform oblong": (uniform_plane, 1),
    "one stretched Gaussian": (stretched, 1),
    "one Student's t": (heavy_tails, 1),
    "one log-normal": (skewed, 1),
    "nested boxes": (nested, 2),
    "sizes 50, 30, 14, 5, 1 %": (unequal, 5),
    "two crescents": (crescents, 2),
    "an L and a box": (corner, 2),
    "3 exponential clusters": (skewed_three, 3),
    "2 groups in a small direction": (small_direction, 2),
    "3 classes of labels": (classes, 3),
    "2 classes, labels in pairs": (pairs, 2),
    "a label across 3 Gaussians": (label_across, 3),
    "unrelated labels": (unrelated_labels, 1),
    "90 % zeros beside noise": (zeros, 1),
    "3 Gaussians, 2 columns of zeros": (blobs_and_zeros, 3),
}


def draw(name: str, seed: int) -> tuple[pd.DataFrame, int]:
    """A table of the law, and its number of clusters."""
    law, K = LAWS[name]
    values = law(np.random.default_rng(seed))
    columns = [f"x{i}" for i in range(values.shape[1])]
    return values if isinstance(values, pd.DataFrame) else pd.DataFrame(values, columns=columns), K


def chosen_number(X: pd.DataFrame) -> tuple[int, float]:
    """The number chosen, and processor seconds."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RectangleMixture(random_state=0).fit(X)
    return model.n_clusters_, time.process_time() - began


def table(laws: dict[str, dict]) -> list[str]:
    lines = ["| law | clusters | right | chosen: draws | CPU s a fit |", "|---|---|---|---|---|"]
    for name, figures in laws.items():
        counts = pd.Series(figures["chosen"]).value_counts().sort_index()
        told = ", ".join(f"{K}: {n}" for K, n in counts.items())
        right = np.array(figures["chosen"]) == figures["clusters"]
        seconds = np.mean(figures["seconds"])
        lines.append(
            f"| {name} | {figures['clusters']} | {right.sum()} of {len(right)} | {told} | {seconds:.1f} |"
        )
    hits = np.concatenate([np.array(f["chosen"]) == f["clusters"] for f in laws.values()])
    return [*lines, "", f"Right in {100 * hits.mean():.0f} % of {len(hits)} tables."]


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS), metavar="LAW")
    options.add_argument("--draws", type=int, default=20)
    options.add_argument("--seconds", type=float, default=np.inf, help="no fit is begun after so many")
    options.add_argument("--anew", action="store_true", help="forget what the chosen laws have")
    chosen = options.parse_args()
    began = time.perf_counter()
    laws = known_results("rectangle_laws").get("laws", {})
    if chosen.anew:
        laws = {name: figures for name, figures in laws.items() if name not in chosen.laws}
    for seed in range(chosen.draws):
        for name in chosen.laws:
            figures = laws.setdefault(name, {"clusters": LAWS[name][1], "chosen": [], "seconds": []})
            if len(figures["chosen"]) != seed or time.perf_counter() - began > chosen.seconds:
                continue
            number, seconds = chosen_number(draw(name, seed)[0])
            figures["chosen"].append(number)
            figures["seconds"].append(round(seconds, 1))
            print(name, seed, number, f"{seconds:.1f} s", flush=True)
            done = {key: laws[key] for key in LAWS if key in laws and laws[key]["chosen"]}
            write_results("rectangle_laws", {"laws": done})
            write_table("rectangle_laws", table(done))
    print("\n".join(table({key: laws[key] for key in LAWS if key in laws and laws[key]["chosen"]})))


if __name__ == "__main__":
    main()
