"""Write the figures of docs/beside_others.md from what the benchmarks measured.

    python docs/beside_figures.py

The page has blocks between `<!-- figures:NAME -->` and `<!-- end -->`; each is made from files in
benchmarks/results, and a test compares them. A bold figure is the best of its row as it is printed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "beside_others.md"
RESULTS = ROOT / "benchmarks" / "results"
_BLOCK = re.compile(r"<!-- figures:(\w+) -->\n.*?<!-- end -->", re.DOTALL)


def results(name: str) -> dict[str, Any]:
    """What a benchmark measured, by set or by model."""
    found = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    sets: dict[str, Any] = found.get("sets") or found["models"]
    return sets


def mean(runs: Sequence[dict[str, Any]], figure: str) -> float:
    """The mean of a figure over runs."""
    return float(np.mean([run[figure] for run in runs]))


def error(runs: Sequence[dict[str, Any]], figure: str) -> float:
    """Its standard error."""
    values = [run[figure] for run in runs]
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def table(head: str, rows: Sequence[tuple[str, list[tuple[float, str]], bool]]) -> str:
    """Lines of a table: (first cells, (figure, text) of each competitor, is higher better?) a row."""
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    for first, cells, higher in rows:
        printed = [float(re.match(r"-?[\d.]+", text)[0]) for _, text in cells]  # type: ignore[index]
        best = max(printed) if higher else min(printed)
        is_tie = printed.count(best) == len(printed)
        shown = [
            re.sub(r"^-?[\d.]+", lambda figure: f"**{figure[0]}**", text)
            if value == best and not is_tie
            else text
            for value, (_, text) in zip(printed, cells, strict=True)
        ]
        lines.append(f"| {first} | {' | '.join(shown)} |")
    return "\n".join(lines)


def speed() -> str:
    """Gaussian processes beside GPflow and GPyTorch."""
    rows = []
    for name, found in results("gp_speed").items():
        race = [recipe for recipe in found["race"].values() if "failed" not in recipe]
        ratios = [recipe["seconds"] / recipe["ours"] for recipe in race]
        best = max(recipe["test_log_density"] for recipe in race)
        ours = mean(found["default"], "test_log_density")
        low, high = (
            f"{ratio:.2g}" if ratio < 9.95 else f"{ratio:.0f}" for ratio in (min(ratios), max(ratios))
        )
        cells = [(best, f"{best:.3f}"), (ours, f"{ours:.3f}")]
        rows.append((f"{name} | {low} to {high} times", cells, True))
    return table("| set | ours is faster by | test: best recipe | test: ours |", rows)


_COUNTS = ("bike_day", "randhie", "star98", "cancer", "cpunish", "committee")
_GRADES = ("wine_red", "esl", "era", "abalone, 5 levels")


def likelihoods() -> str:
    """Counts and grades beside statsmodels."""
    found = results("gp_likelihoods")
    rows = []
    for name, ours, theirs, what in [
        *((name, "GP negative binomial", "GLM negative binomial", "negative binomial") for name in _COUNTS),
        *((name, "GP ordinal", "OrderedModel", "ordinal") for name in _GRADES),
    ]:
        cells = []
        for runs in (found[name][ours], found[name][theirs]):
            value, spread = mean(runs, "log_loss"), error(runs, "log_loss")
            cells.append((value, f"{value:.3f} ± {spread:.2g}"))
        rows.append((f"{name}, {what}", cells, False))
    return table("| set | ours | statsmodels |", rows)


def times() -> str:
    """Censored times beside lifelines."""
    found = results("likelihoods_peers")
    rows = []
    for name, what in (("simulated", "linear"), ("bent", "nonlinear")):
        values = [
            mean(found[name][model], "log_density") for model in ("GP Weibull", "lifelines Weibull AFT")
        ]
        rows.append((what, [(value, f"{value:.4f}") for value in values], True))
    return table("| relation | GP, Weibull | lifelines, Weibull AFT |", rows)


def published() -> dict[str, dict[str, float]]:
    """What the papers on PBP and MC dropout report, from the benchmark's own source."""
    tree = ast.parse((ROOT / "benchmarks" / "tggm_uci.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PUBLISHED":
            return dict(ast.literal_eval(node.value))
    raise LookupError("benchmarks/tggm_uci.py holds no figures of the papers.")


def networks() -> str:
    """Networks on the published splits of the UCI sets."""
    papers, rows = published(), []
    for name, runs in results("tggm_uci_ml").items():
        value = mean(runs, "log_likelihood")
        spread = f"± {error(runs, 'log_likelihood'):.1g}" if len(runs) > 1 else "(one split)"
        pbp, dropout = papers[name]["pbp"], papers[name]["dropout"]
        cells = [(pbp, f"{pbp:.2f}"), (dropout, f"{dropout:.2f}"), (value, f"{value:.2f} {spread}")]
        rows.append((name, cells, True))
    return table("| set | PBP | MC dropout | TGGM |", rows)


_CLASSIFIERS = """\
`python benchmarks/tggm_mnist.py --data FOLDER`: on MNIST with 100 units the TGGM has an accuracy of
{ours[0]:.2f} % and a log-loss of {ours[1]:.3f}, scikit-learn's MLP {mlp[0]:.2f} % and {mlp[1]:.3f}.
`python benchmarks/tggm_binary.py --data FOLDER`: the log-loss of the TGGM is no worse than that of the MLP on
{no_worse} of {n} small sets."""


def classifiers() -> str:
    """Networks for classification."""
    digits, small = results("tggm_mnist"), results("tggm_binary")
    ours, mlp = (
        (100 * mean(digits[name], "accuracy"), mean(digits[name], "log_loss"))
        for name in ("ml 100", "MLP 100")
    )
    losses = [[mean(found[name], "log_loss") for name in ("ml", "MLP")] for found in small.values()]
    no_worse = sum(own <= other for own, other in losses)
    return _CLASSIFIERS.format(ours=ours, mlp=mlp, no_worse=no_worse, n=len(losses))


def intervals() -> str:
    """Intervals beside NGBoost and MAPIE."""
    head = "| set | model | log density | 90 % hold | interval score | CPU seconds |"
    lines = [head, "|---|---|---|---|---|---|"]
    for name, models in results("peers_intervals").items():
        for model, runs in models.items():
            density = mean(runs, "log_density")
            cells = [
                "–" if np.isnan(density) else f"{density:.2f} ± {error(runs, 'log_density'):.2f}",
                f"{100 * mean(runs, 'coverage'):.0f} %",
                f"{mean(runs, 'interval_score'):.2f} ± {error(runs, 'interval_score'):.2f}",
                f"{mean(runs, 'cpu_seconds'):.1f}",
            ]
            lines.append(f"| {name} | {model} | {' | '.join(cells)} |")
    return "\n".join(lines)


_OTHERS_WIN = """\
- **Boosted trees on digits**: log-loss {digits[0]:.3f}, our Gaussian process {digits[1]:.3f}, logistic
  regression {digits[2]:.3f} (`gp_likelihoods.py`).
- **Logistic regression on breast cancer**: log-loss {cancer[2]:.3f}, ours {cancer[1]:.3f}
  (`gp_likelihoods.py`).
- **Gene expression**: on golub a linear SVM classifies {golub_svm} correctly, rank factors by variational
  Bayes {golub}, and the SVM has the larger AUC; on alon rank factors classify {alon} correctly, the SVM
  {alon_svm} (`rank_genes.py`).
- **Clusters without rules**: on iris and seeds a Gaussian mixture recovers the labels better (NMI
  {iris[1]:.3f} and {seeds[1]:.3f}) than our rules ({iris[0]:.3f} and {seeds[0]:.3f}). The mean over {n_sets}
  sets is {all_sets[1]:.3f} for the mixture and {all_sets[0]:.3f} for the rules (`rectangle_uci.py`).
- **Text**: on 20 Newsgroups logistic regression has an accuracy of {words[0]:.2f} %, a TGGM {words[1]:.2f} %;
  the log-loss is {words[2]:.2f} for logistic regression and {words[3]:.2f} for the TGGM
  (`tggm_newsgroups.py`)."""


def others_win() -> str:
    """Where another method is better, or as good and plainer."""
    likelihood, genes, news = (results(n) for n in ("gp_likelihoods", "rank_genes", "tggm_newsgroups"))
    boxes = {name: found for name, found in results("rectangle_uci").items() if name not in _LATER}

    def losses(name: str) -> list[float]:
        models = ("gradient boosting", "GP logistic", "logistic regression")
        return [mean(likelihood[name][model], "log_loss") for model in models]

    def right(name: str, model: str) -> str:
        runs = genes[name][model]
        return f"{sum(run['right'] for run in runs)} of {sum(run['rows'] for run in runs)}"

    def nmi(*names: str) -> list[float]:
        models = ("rectangle mixture", "Gaussian mixture")
        return [float(np.mean([boxes[name][model]["nmi"] for name in names])) for model in models]

    both = news["logistic regression"], news["ml 100"]
    return _OTHERS_WIN.format(
        digits=losses("digits"),
        cancer=losses("breast cancer"),
        golub=right("golub", "rank, vb"),
        golub_svm=right("golub", "linear SVM"),
        alon=right("alon", "rank, vb"),
        alon_svm=right("alon", "linear SVM"),
        iris=nmi("iris"),
        seeds=nmi("seeds"),
        n_sets=len(boxes),
        all_sets=nmi(*boxes),
        words=[
            *(100 * mean(runs, "accuracy") for runs in both),
            *(mean(runs, "log_loss") for runs in both),
        ],
    )


_LATER = ("penguins", "banknote", "anuran", "mushroom", "breast_wisconsin", "ionosphere", "pima", "image")
"""Sets of the cluster benchmark that are not among its first eight."""

BLOCKS: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (speed, likelihoods, times, networks, classifiers, intervals, others_win)
}


def written(page: str) -> str:
    """The page with its blocks as they are measured now."""
    return _BLOCK.sub(
        lambda found: f"<!-- figures:{found[1]} -->\n\n{BLOCKS[found[1]]()}\n\n<!-- end -->", page
    )


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
