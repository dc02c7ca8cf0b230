"""Rules on one view, structure in another: handwritten digits of mfeat, in six morphological numbers."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from common import parser, write_results, write_table
from rectangle_rivals import k_means, tree
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

from nongauss import RectangleMixture

RULES, STRUCTURE, COMPONENTS, K = "mor", "fac", 15, 10


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=3)
    chosen = options.parse_args()
    path = chosen.data / "mfeat" / "mfeat.npz"
    if not path.exists():
        raise SystemExit(
            f"{path} is not there: put the views fac (2000 x 216) and mor (2000 x 6) and target in it."
        )
    views = np.load(path)
    y = views["target"]
    components = PCA(COMPONENTS, random_state=0).fit_transform(
        StandardScaler().fit_transform(views[STRUCTURE])
    )
    rule = StandardScaler().fit_transform(views[RULES])
    frame = pd.DataFrame(np.hstack([views[RULES], components])).add_prefix("c")
    names = list(frame)
    every = []
    for seed in range(chosen.seeds):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = RectangleMixture(
                K, rule_columns=names[:6], structure_columns=names[6:], random_state=seed
            ).fit(frame)
        seconds = time.perf_counter() - began
        posterior = model.predict_posterior(frame).argmax(axis=1)
        labels = {
            "rectangle mixture, rules": model.labels_,
            "rectangle mixture, all columns": posterior,
            "k-means of the structure + tree, K leaves": tree(
                rule, k_means(components, K, seed).labels_, K, seed
            ).labels,
            "k-means of the structure + tree, 2K leaves": tree(
                rule, k_means(components, K, seed).labels_, 2 * K, seed
            ).labels,
            "posterior + tree, 2K leaves": tree(rule, posterior, 2 * K, seed).labels,
        }
        every.append(
            {
                "seconds": seconds,
                "conditions": len(model.rules_),
                "inside_one": model.inside_one_,
                **{
                    name: [normalized_mutual_info_score(y, z), adjusted_rand_score(y, z)]
                    for name, z in labels.items()
                },
            }
        )
        print(every[-1], flush=True)
    write_results("rectangle_views", {"rules": RULES, "structure": STRUCTURE, "seeds": every})
    lines = [
        f"Rules on `{RULES}`, structure in {COMPONENTS} components of `{STRUCTURE}`.",
        "",
        "| method | NMI | ARI |",
    ]
    lines.append("|---|---|---|")
    for name in labels:
        nmi, ari = np.mean([figures[name] for figures in every], axis=0)
        lines.append(f"| {name} | {nmi:.3f} | {ari:.3f} |")
    means = {f: np.mean([figures[f] for figures in every]) for f in ("seconds", "inside_one")}
    lines += [
        "",
        f"{means['seconds']:.1f} s a fit; {100 * means['inside_one']:.1f} % of rows inside exactly one rule.",
    ]
    write_table("rectangle_views", lines)


if __name__ == "__main__":
    main()
