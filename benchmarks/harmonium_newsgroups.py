"""20 Newsgroups by date, 5,000 binary words (Table II of the paper): harmoniums beside linear classifiers.

    python benchmarks/harmonium_newsgroups.py --data FOLDER [--seeds 5] [--rows MMH50 iMMH ...]

Defaults only; test rows are looked at once. Writes results/harmonium_newsgroups.json and the table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import known_results, parser, with_error, write_results, write_table
from harmonium_common import DRBM, JointRBM, newsgroups, timed
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.neural_network import BernoulliRBM, MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from nongauss import Harmonium, HarmoniumClassifier

PAPER = {
    "MMH50": 0.264,
    "MMH200": 0.250,
    "MMH700": 0.255,
    "iMMH": 0.252,
    "EFH50+SVM": 0.375,
    "EFH200+SVM": 0.305,
    "EFH700+SVM": 0.273,
    "iEFH+SVM": 0.283,
    "NNet": 0.282,
    "RBM1000": 0.249,
    "RBM1000+NNet": 0.268,
    "DRBM50": 0.276,
    "linear SVM": 0.328,
}


def with_svm(features: Any) -> Any:
    """Features, standardised, and a linear SVM."""
    return make_pipeline(features, StandardScaler(), LinearSVC(C=0.01, dual=False))


ROWS: dict[str, Callable[[int], Any]] = {
    "MMH50": lambda seed: HarmoniumClassifier(50, random_state=seed),
    "MMH200": lambda seed: HarmoniumClassifier(200, random_state=seed),
    "MMH700": lambda seed: HarmoniumClassifier(700, random_state=seed),
    "iMMH": lambda seed: HarmoniumClassifier(random_state=seed),
    "EFH50+SVM": lambda seed: with_svm(Harmonium(50, random_state=seed)),
    "EFH200+SVM": lambda seed: with_svm(Harmonium(200, random_state=seed)),
    "EFH700+SVM": lambda seed: with_svm(Harmonium(700, random_state=seed)),
    "iEFH (sticks alone)+SVM": lambda seed: with_svm(
        Harmonium(reading="global", alpha=5.0, random_state=seed)
    ),
    "iEFH+SVM": lambda seed: with_svm(Harmonium(random_state=seed)),
    "iEFH (chain graph)+SVM": lambda seed: with_svm(Harmonium(reading="chain", random_state=seed)),
    "BernoulliRBM50+SVM": lambda seed: with_svm(BernoulliRBM(50, learning_rate=0.05, random_state=seed)),
    "BernoulliRBM200+SVM": lambda seed: with_svm(BernoulliRBM(200, learning_rate=0.05, random_state=seed)),
    "MMH50, four averaged": lambda seed: BaggingClassifier(
        HarmoniumClassifier(50), n_estimators=4, bootstrap=False, random_state=seed
    ),
    "MMH50, four averaged, 14 epochs": lambda seed: BaggingClassifier(
        HarmoniumClassifier(50, max_epochs=14), n_estimators=4, bootstrap=False, random_state=seed
    ),
    "MMH50, six averaged, 14 epochs": lambda seed: BaggingClassifier(
        HarmoniumClassifier(50, max_epochs=14), n_estimators=6, bootstrap=False, random_state=seed
    ),
    "NNet": lambda seed: MLPClassifier(early_stopping=True, random_state=seed),
    "RBM1000": lambda seed: JointRBM(1000, seed=seed),
    "RBM1000+NNet": lambda seed: make_pipeline(
        Harmonium(1000, random_state=seed),
        StandardScaler(),
        MLPClassifier(early_stopping=True, random_state=seed),
    ),
    "DRBM50": lambda seed: DRBM(50, seed=seed),
    "linear SVM": lambda seed: LinearSVC(C=0.01, dual=False),
    "Crammer-Singer": lambda seed: LinearSVC(C=0.003, multi_class="crammer_singer", random_state=0),
    "logistic regression": lambda seed: LogisticRegression(C=0.1, max_iter=200),
    "naive Bayes, Bernoulli": lambda seed: BernoulliNB(),
    "naive Bayes, multinomial": lambda seed: MultinomialNB(),
}


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    X, y, X_test, y_test, _, _ = newsgroups(chosen.data)
    results = known_results("harmonium_newsgroups").get("rows", {})
    for name in chosen.rows:
        random = not name.startswith(("linear", "logistic", "naive", "Crammer"))
        results[name] = {"error": [], "cpu_seconds": [], "active": []}
        for seed in range(chosen.seeds if random else 1):
            model, seconds = timed(lambda name=name, seed=seed: ROWS[name](seed).fit(X, y))
            first = model[0] if hasattr(model, "steps") else model
            results[name]["error"].append(float(np.mean(model.predict(X_test) != y_test)))
            results[name]["cpu_seconds"].append(seconds)
            results[name]["active"].append(getattr(first, "n_active_", None))
            print(name, {key: values[-1] for key, values in results[name].items()}, flush=True)
            write_results("harmonium_newsgroups", {"rows": results})
    lines = ["| model | seeds | test error | paper | features | CPU s |", "|---|---|---|---|---|---|"]
    for name in ROWS:
        if name in results:
            error = with_error(results[name]["error"], ".4f", ".4f")
            active = ", ".join(str(n) for n in results[name]["active"] if n is not None)
            lines.append(
                f"| {name} | {len(results[name]['error'])} | {error} | {PAPER.get(name, '')} "
                f"| {active} "
                f"| {np.mean(results[name]['cpu_seconds']):.1f} |"
            )
    write_table("harmonium_newsgroups", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
