"""Pictures of fitted factors, as in figures 1 to 4 of the paper: loadings as images, coefficients, a network.

    python benchmarks/rank_figures.py --data FOLDER

usps 3 against 5, original split; golub, training arrays. Writes results/rank_figures.png.
"""

from __future__ import annotations

import pandas as pd
from common import RESULTS, parser
from matplotlib.figure import Figure
from rank_digits import threes_and_fives
from rank_genes import golub

from nongauss import RankFactorClassifier
from nongauss.report import CoefficientDisplay, FactorNetworkDisplay, LoadingImageDisplay


def main() -> None:
    chosen = parser(__doc__.splitlines()[0]).parse_args()
    figure = Figure(figsize=(12, 11), layout="constrained")
    axes = figure.subplots(2, 2)
    X, y, _, _ = threes_and_fives(chosen.data, "usps")
    pixels = pd.DataFrame(X, columns=[str(i) for i in range(X.shape[1])])
    for ax, observation in zip(axes[0], ("rank", "gaussian"), strict=True):
        digits = RankFactorClassifier(observation=observation, random_state=0).fit(pixels, y)
        place = digits.loadings_.index.astype(int)  # constant pixels have no loadings
        LoadingImageDisplay(digits.loadings_, (16, 16), place).plot(ax=ax)
        ax.set_title(f"Loadings, {observation}", loc="left", fontsize="medium", fontweight="bold")
    genes, kinds, splits, names = golub(chosen.data)
    train = splits[0][0]
    model = RankFactorClassifier(random_state=0).fit(pd.DataFrame(genes[train], columns=names), kinds[train])
    CoefficientDisplay.from_estimator(model, ax=axes[1, 0])
    FactorNetworkDisplay.from_estimator(model, n_columns=4, n_factors=6, ax=axes[1, 1])
    figure.savefig(RESULTS / "rank_figures.png", dpi=80)


if __name__ == "__main__":
    main()
