"""Features of 20 Newsgroups in words (Table III of the paper): for each group the feature it has most of all.

    python benchmarks/harmonium_features.py --data FOLDER

Features that are learned with labels and without, the former in words: those whose occurrence correlates most
with the feature. Writes results/harmonium_features.json and the table.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from common import parser, write_results, write_table
from harmonium_common import newsgroups

from nongauss import Harmonium, HarmoniumClassifier

TOP_ROWS, TOP_WORDS = 15, 8


def own_features(H: np.ndarray, y: np.ndarray) -> tuple[list[int], list[float]]:
    """The feature that each group has most, against all rows and in standard deviations, and the share of the
    group in that feature's top rows."""
    means = np.array([H[y == group].mean(axis=0) for group in np.unique(y)])
    chosen = ((means - H.mean(axis=0)) / H.std(axis=0)).argmax(axis=1)
    top = np.argsort(-H, axis=0, kind="stable")[:TOP_ROWS, chosen]
    return chosen.tolist(), [float(np.mean(y[top[:, group]] == group)) for group in range(len(chosen))]


def words_of(X: Any, h: np.ndarray, words: np.ndarray) -> list[str]:
    """The words whose occurrence correlates most with a feature h (N,)."""
    share = np.asarray(X.mean(axis=0)).ravel()
    together = X.T @ (h - h.mean()) / np.sqrt(share * (1.0 - share))
    return [str(words[d]) for d in np.argsort(-together)[:TOP_WORDS]]


def main() -> None:
    chosen = parser(__doc__.splitlines()[0]).parse_args()
    warnings.simplefilter("ignore")
    X, y, _, _, words, groups = newsgroups(chosen.data)
    with_labels = HarmoniumClassifier(50, random_state=0).fit(X, y).transform(X)
    features, shares = own_features(with_labels, y)
    others, other_shares = own_features(Harmonium(50, random_state=0).fit_transform(X), y)
    results = [
        {"group": str(group), "feature": k, "share": share, "words": words_of(X, with_labels[:, k], words)}
        for group, k, share in zip(groups, features, shares, strict=True)
    ]
    lines = [
        f"Share of a group in the {TOP_ROWS} top rows of its feature, mean: {np.mean(shares):.2f} "
        f"with labels ({len(set(features))} features for 20 groups), {np.mean(other_shares):.2f} "
        f"without ({len(set(others))}).",
        "",
        "| group | feature | its share of the top rows | words |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row['group']} | F{row['feature']} | {row['share']:.2f} | {', '.join(row['words'])} |"
        for row in results
    ]
    write_results("harmonium_features", {"features": results, "without_labels": other_shares})
    write_table("harmonium_features", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
