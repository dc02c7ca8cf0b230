"""Features of 20 Newsgroups in words (Table III of the paper): for each group the feature it has most of all.

    python benchmarks/harmonium_features.py --data FOLDER

Writes results/harmonium_features.json and the table.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import parser, write_results, write_table
from harmonium_common import newsgroups

from nongauss import HarmoniumClassifier

TOP_ROWS, TOP_WORDS = 15, 8


def main() -> None:
    chosen = parser(__doc__.splitlines()[0]).parse_args()
    warnings.simplefilter("ignore")
    X, y, _, _, words, groups = newsgroups(chosen.data)
    model = HarmoniumClassifier(50, random_state=0).fit(X, y)
    distinct = model.class_means_ - model.class_means_.mean(axis=0)
    usual = np.asarray(X.mean(axis=0)).ravel()
    rows, by_weight = model.top_rows(X, TOP_ROWS), model.top_features(TOP_WORDS)
    lines, results = (
        ["| group | feature | words of its top rows | words by weight |", "|---|---|---|---|"],
        [],
    )
    for number, group in enumerate(groups):
        k = int(distinct[number].argmax())
        lift = np.asarray(X[rows[k]].mean(axis=0)).ravel() - usual
        frequent = [str(words[d]) for d in np.argsort(-lift)[:TOP_WORDS]]
        heavy = [str(words[int(name[1:])]) for name in by_weight[k]]
        results.append({"group": str(group), "feature": k, "rows": frequent, "weights": heavy})
        lines.append(f"| {group} | F{k} | {', '.join(frequent)} | {', '.join(heavy)} |")
    write_results("harmonium_features", {"features": results})
    write_table("harmonium_features", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
