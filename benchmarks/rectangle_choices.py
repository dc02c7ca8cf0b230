"""What each choice beyond the paper is worth: the sets of `rectangle_uci.py` with one thing changed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from common import known_results, parser, write_results, write_table
from rectangle_uci import AIMS, load, ours
from scipy.special import softmax
from sklearn.metrics import normalized_mutual_info_score

from nongauss.rectangle import fit, objective, predict, updates
from nongauss.rectangle.config import STEEPNESS

NOISY = "as it is, eight columns of noise beside"
Patch = Callable[[], AbstractContextManager[Any]]


def steep_from_the_start() -> AbstractContextManager[Any]:
    return patch.object(fit, "STAGES", tuple(s._replace(slope=STEEPNESS[-1]) for s in fit.STAGES))


def mixing_weights() -> AbstractContextManager[Any]:
    """p(z = k) estimated, one row added to each cluster, instead of 1/K."""

    def weighted(log_G: np.ndarray, log_p: np.ndarray) -> np.ndarray:
        score, log_mass = objective.log_odds(log_G) + log_p, np.zeros((*log_p.shape[:2], 1))
        for _ in range(15):
            mass = softmax(score + log_mass, axis=1).sum(axis=2, keepdims=True) + 1.0
            log_mass = np.log(mass / mass.mean(axis=1, keepdims=True))
        return log_p + log_mass

    posterior, log_joint = objective.posterior, objective.log_joint
    stack = ExitStack()
    for module in (updates, predict):
        stack.enter_context(patch.object(module, "posterior", lambda G, p: posterior(G, weighted(G, p))))
    stack.enter_context(patch.object(objective, "log_joint", lambda G, p, w: log_joint(G, weighted(G, p), w)))
    return stack


CHOICES: dict[str, tuple[dict[str, Any], Patch]] = {
    "as it is": ({}, nullcontext),
    "full Gaussians": ({"structure": "full"}, nullcontext),
    "diagonal Gaussians": ({"structure": "diagonal"}, nullcontext),
    "one shared covariance": ({"structure": "shared"}, nullcontext),
    "rank scaling": ({"scaling": "rank"}, nullcontext),
    "steep from the start": ({}, steep_from_the_start),
    "mixing weights": ({}, mixing_weights),
    "exact rules, tolerance 0": ({"rule_tolerance": 0.0}, nullcontext),
    NOISY: ({}, nullcontext),
}


def with_noise(X: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The columns, and eight of standard normal noise that say nothing."""
    noise = np.random.default_rng(seed).normal(size=(len(X), 8))
    beside = pd.DataFrame(noise, index=X.index, columns=[f"noise {i}" for i in range(8)])
    return pd.concat([X, beside], axis=1)


def one_fit(X: pd.DataFrame, y: np.ndarray, choice: str, seed: int) -> dict[str, float]:
    """NMI by the rules and by all columns, conditions a rule, share of the rows inside exactly one."""
    arguments, patched = CHOICES[choice]
    X = with_noise(X, seed) if choice == NOISY else X
    with patched():
        answer, model = ours(X, len(np.unique(y)), seed, **arguments)
    figures = answer.figures(y, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = model.predict_posterior(X).argmax(axis=1)
    return figures | {"posterior": float(normalized_mutual_info_score(y, posterior))}


def table(choices: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    lines = [
        f"| NMI | {' | '.join(AIMS)} | mean | by all columns | conditions a rule | inside exactly one |",
        "|---" * (len(AIMS) + 5) + "|",
    ]
    for choice, sets in choices.items():
        mean = pd.DataFrame(sets)[list(AIMS)].mean(axis=1)
        cells = " | ".join(f"{sets[name]['nmi']:.3f}" for name in AIMS)
        lines.append(
            f"| {choice} | {cells} | {mean['nmi']:.3f} | {mean['posterior']:.3f} | {mean['conditions']:.1f} "
            f"| {100 * mean['inside_one']:.1f} % |"
        )
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--choices", nargs="+", choices=list(CHOICES), default=list(CHOICES), metavar="ONE")
    options.add_argument("--seeds", type=int, default=2)
    chosen = options.parse_args()
    choices = known_results("rectangle_choices").get("choices", {})
    for choice in chosen.choices:
        choices[choice] = {}
        for name in AIMS:
            X, y = load(chosen.data, name)
            fits = [one_fit(X, y, choice, seed) for seed in range(chosen.seeds)]
            choices[choice][name] = pd.DataFrame(fits).mean().to_dict()
        print(choice, choices[choice], flush=True)
        choices = {key: choices[key] for key in CHOICES if key in choices}
        write_results("rectangle_choices", {"seeds": chosen.seeds, "choices": choices})
        write_table("rectangle_choices", table(choices))


if __name__ == "__main__":
    main()
