"""Features of 20 Newsgroups in words (Table III of the paper): for each group the feature that tells it best.

    python benchmarks/harmonium_features.py --data FOLDER

That is the feature whose hundred top rows hold most of the group; its words are those that these rows have
more often than others, in standard deviations. With labels and, for the share alone, without. Writes
results/harmonium_features.json and the table.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from common import parser, write_results, write_table
from harmonium_common import newsgroups

from nongauss import Harmonium, HarmoniumClassifier

TOP_ROWS, TOP_WORDS = 100, 8


def top_rows(H: np.ndarray) -> np.ndarray:
    """Numbers of the rows that have each feature most, (TOP_ROWS, K)."""
    return np.argsort(-H, axis=0, kind="stable")[:TOP_ROWS]


def shares_of(top: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Share of each group in the top rows of each feature, (groups, K)."""
    return np.array([(y[top] == group).mean(axis=0) for group in np.unique(y)])


def words_of(X: Any, rows: np.ndarray, words: np.ndarray) -> list[str]:
    """The words that are most frequent in some rows, against all and in standard deviations."""
    usual = np.asarray(X.mean(axis=0)).ravel()
    lift = (np.asarray(X[rows].mean(axis=0)).ravel() - usual) / np.sqrt(usual * (1.0 - usual))
    return [str(words[d]) for d in np.argsort(-lift)[:TOP_WORDS]]


def main() -> None:
    chosen = parser(__doc__.splitlines()[0]).parse_args()
    warnings.simplefilter("ignore")
    X, y, _, _, words, groups = newsgroups(chosen.data)
    top = top_rows(HarmoniumClassifier(50, random_state=0).fit(X, y).transform(X))
    shares, others = shares_of(top, y), shares_of(top_rows(Harmonium(50, random_state=0).fit_transform(X)), y)
    results = [
        {"group": str(group), "feature": int(k), "share": share, "words": words_of(X, top[:, k], words)}
        for group, k, share in zip(groups, shares.argmax(axis=1), shares.max(axis=1), strict=True)
    ]
    lines = [
        f"Share of a group in the {TOP_ROWS} top rows of its feature, mean over groups: "
        f"{shares.max(axis=1).mean():.2f} with labels, {others.max(axis=1).mean():.2f} without.",
        "",
        "| group | feature | its share of the top rows | words |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row['group']} | F{row['feature']} | {row['share']:.2f} | {', '.join(row['words'])} |"
        for row in results
    ]
    write_results("harmonium_features", {"features": results, "without_labels": others.max(axis=1).tolist()})
    write_table("harmonium_features", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
