"""How much the settings matter on 20 Newsgroups (figures 9 and 10 of the paper), and which are the defaults.

    python benchmarks/harmonium_sensitivity.py --data FOLDER [--parts C steps ...]

Judged on a fifth of the training rows that is held out: the defaults were chosen by this script, and no test
row is looked at. Writes results/harmonium_sensitivity.json and the table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from common import known_results, parser, random_splits, write_results, write_table
from harmonium_common import newsgroups, timed
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from nongauss import Harmonium, HarmoniumClassifier
from nongauss.harmonium import fit
from nongauss.harmonium.exponential_families import saturated_share

Setting = dict[str, Any]

PARTS: dict[str, list[Setting]] = {
    "C": [{"C": C} for C in (3.0, 30.0, 100.0, 300.0, 1000.0, 10_000.0)],
    "ell": [{"margin": margin} for margin in (0.25, 1.0, 4.0)],
    "K": [{"n_components": K} for K in (20, 100, 200)],
    "dropout": [{"dropout": share} for share in (0.0, 0.25, 0.65)],
    "alpha": [
        {"n_components": "infinite"},
        *({"n_components": "infinite", "reading": "global", "alpha": alpha} for alpha in (0.5, 1.0, 5.0)),
    ],
    "steps": [{"step": step, "C": C} for step in (0.009, 0.08) for C in (100.0, 300.0, 1000.0)],
    "restraint": [
        *({"overlap": overlap} for overlap in (0.0, 3000.0, 30_000.0)),
        *({"spread": spread} for spread in (0.09, 0.9)),
        *({"ridge": ridge} for ridge in (0.0, 0.1)),
    ],
    "features": [
        *(
            {"features": True, "ridge": ridge, "overlap": overlap}
            for ridge, overlap in ((0.0, 0.0), (0.03, 0.0), (0.03, 500.0), (0.1, 500.0))
        ),
        *({"features": True, "step": step} for step in (0.03, 0.27)),
    ],
}


@contextmanager
def rates(setting: Setting) -> Iterator[None]:
    """Step size, start and restraint of a setting in place of the default's."""
    name = "UNSUPERVISED" if setting.get("features") else "SUPERVISED"
    usual = getattr(fit, name)
    changed = {key: setting[key] for key in usual._fields if key in setting}
    setattr(fit, name, usual._replace(**changed))
    yield
    setattr(fit, name, usual)


def model_of(setting: Setting) -> Any:
    """The estimator of a setting."""
    own = {k: v for k, v in setting.items() if k not in ("step", "spread", "ridge", "overlap", "features")}
    make = Harmonium if setting.get("features") else HarmoniumClassifier
    return make(**{"n_components": 50, "random_state": 0, **own})


def predictor(model: Any, X: Any, y: np.ndarray) -> Callable[[Any], np.ndarray]:
    """Classes of new rows: the model's own, or by a linear SVM on its features."""
    if hasattr(model, "predict"):
        return model.predict
    scale = StandardScaler().fit(model.transform(X))
    svm = LinearSVC(C=0.01, dual=False).fit(scale.transform(model.transform(X)), y)
    return lambda new: svm.predict(scale.transform(model.transform(new)))


def crammer_singer(model: Any, X: Any, y: np.ndarray, X_held: Any, y_held: np.ndarray) -> Iterator[Setting]:
    """The votes solved for by liblinear, features as the joint steps left them."""
    for C in (0.001, 0.01, 0.1):
        svm = LinearSVC(C=C, multi_class="crammer_singer")
        _, seconds = timed(lambda svm=svm: svm.fit(model.transform(X) - 0.5, y))
        error = float(np.mean(svm.predict(model.transform(X_held) - 0.5) != y_held))
        yield {"votes": f"liblinear, C={C:g}", "error": error, "cpu_seconds": seconds}


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--parts", nargs="*", choices=[*PARTS, "votes"], default=[*PARTS, "votes"])
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    X, y, *_ = newsgroups(chosen.data)
    ((train, held),) = random_splits(len(y), 4 * len(y) // 5, 1)
    results = known_results("harmonium_sensitivity").get("parts", {})
    for part in chosen.parts:
        results[part] = []
        for setting in PARTS.get(part, [{}]):
            with rates(setting):
                model, seconds = timed(lambda setting=setting: model_of(setting).fit(X[train], y[train]))
            H = model.transform(X[train])
            alike = np.abs(np.corrcoef(H[:, H.std(axis=0) > 1e-6].T) - np.eye((H.std(axis=0) > 1e-6).sum()))
            found = {
                "error": float(np.mean(predictor(model, X[train], y[train])(X[held]) != y[held])),
                "active": model.n_active_,
                "saturated": saturated_share(H, np.ones(len(H))),
                "alike": float(alike.max()),
                "cpu_seconds": seconds,
            }
            results[part].append({**setting, **found})
            print(part, results[part][-1], flush=True)
            if part == "votes":
                results[part] += crammer_singer(model, X[train], y[train], X[held], y[held])
            write_results("harmonium_sensitivity", {"parts": results})
    lines = [
        "| part | setting | held-out error | features | saturated | largest correlation | CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    figures = ("error", "active", "saturated", "alike", "cpu_seconds")
    for part, rows in results.items():
        for row in rows:
            shown = ", ".join(f"{key}={value}" for key, value in row.items() if key not in figures)
            cells = [f"{row[key]:.3g}" if key in row else "" for key in figures[1:]]
            lines.append(
                f"| {part} | {shown or 'default'} | {row['error']:.4f} | " + " | ".join(cells) + " |"
            )
    write_table("harmonium_sensitivity", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
