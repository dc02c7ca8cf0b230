"""Seconds an epoch beside scikit-learn's MLPRegressor, growth in rows, memory, and the first fit.

    python benchmarks/tggm_speed.py [--data FOLDER] [--largest 500000] [--only-first]

Same width, same batch, same rows, one process after the other. Needs no data set but boston for the first
fit (left out where it is absent), which `--only-first` measures alone. Writes results/tggm_speed.json and the
table in benchmarks/README.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from common import RESULTS, parser, write_results, write_table

N_ROWS, N_COLUMNS, WIDTH, BATCH, EPOCHS = 10_000, 10, 50, 200, 20
GROWTH = (5_000, 50_000, 500_000)


def made(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n_rows)


def ours(n_rows: int, n_columns: int, epochs: int, **settings: object) -> float:
    """Seconds an epoch of a compiled fit: the slope between two fits of the same shapes."""
    from nongauss import TGGMRegressor

    X, y = made(n_rows, n_columns)
    settings = {"batch_size": BATCH, "early_stopping": False, "random_state": 0, **settings}

    def seconds(max_epochs: int) -> float:
        started = time.perf_counter()
        TGGMRegressor((WIDTH,), max_epochs=max_epochs, **settings).fit(X, y)
        return time.perf_counter() - started

    seconds(1)
    short = min(seconds(1) for _ in range(3))
    return (min(seconds(1 + epochs) for _ in range(2)) - short) / epochs


def peer() -> float:
    """The same for MLPRegressor."""
    from sklearn.neural_network import MLPRegressor

    X, y = made(N_ROWS, N_COLUMNS)

    def seconds(max_iter: int) -> float:
        model = MLPRegressor(
            hidden_layer_sizes=(WIDTH,), batch_size=BATCH, max_iter=max_iter, tol=0.0, n_iter_no_change=10**6
        )
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        return time.perf_counter() - started

    short = min(seconds(1) for _ in range(3))
    return (min(seconds(1 + EPOCHS) for _ in range(2)) - short) / EPOCHS


def steady(n_rows: int, n_columns: int, epochs: int) -> float:
    """Seconds an epoch inside one compiled fit, by its own trace: what the host prepares is left out."""
    from nongauss import TGGMRegressor

    X, y = made(n_rows, n_columns)
    settings = {"batch_size": 256, "early_stopping": False, "random_state": 0, "n_members": 1}
    TGGMRegressor((WIDTH,), max_epochs=1, **settings).fit(X, y)
    seconds = TGGMRegressor((WIDTH,), max_epochs=1 + epochs, **settings).fit(X, y).trace_["seconds"]
    return float(seconds.iloc[-1] - seconds.iloc[0]) / epochs


def grown(n_rows: int) -> dict[str, float]:
    """Seconds an epoch and peak memory (MiB, whole process) at `n_rows` x 90, in a process of its own."""
    code = (
        "import json, resource, sys; sys.path.insert(0, sys.argv[1]); import tggm_speed as b; "
        f"s = b.steady({n_rows}, 90, {max(4, 400_000 // n_rows)}); "
        "print(json.dumps({'seconds': s, 'mib': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def first_fit(options) -> dict[str, float] | None:
    """CPU seconds of the same default fit on boston, twice in a new process, without the import."""
    if not (options.data / "boston").exists():
        return None
    code = (
        "import json, sys, time; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from common import load_splits; from nongauss import TGGMRegressor\n"
        "X, y, splits = load_splits(Path(sys.argv[2]), 'boston'); train = splits[0][0]; out = []\n"
        "for _ in range(2):\n"
        "    started = time.process_time(); TGGMRegressor(random_state=0).fit(X[train], y[train])\n"
        "    out.append(time.process_time() - started)\n"
        "print(json.dumps({'first': out[0], 'second': out[1]}))"
    )
    folder = str(Path(__file__).parent)
    command = [sys.executable, "-c", code, folder, str(options.data)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measured(chosen) -> dict:
    """Everything but the first fit."""
    kinds = {
        "bp, one member": {"method": "bp", "n_members": 1},
        "ml, one member": {"n_members": 1},
        "ml by mean field, one member": {"posterior": "mean_field", "n_members": 1},
        "bp, five members": {"method": "bp"},
        "ml, five members (default)": {},
    }
    mlp = peer()
    epochs = {label: ours(N_ROWS, N_COLUMNS, EPOCHS, **settings) for label, settings in kinds.items()}
    again = peer()
    rows = {n: grown(n) for n in GROWTH if n <= chosen.largest}
    sizes, seconds = np.log(list(rows)), np.log([row["seconds"] for row in rows.values()])
    return {
        "mlp_epoch": [mlp, again],
        "epochs": epochs,
        "growth": {str(n): row for n, row in rows.items()},
        "exponent_50k_to_largest": float(np.polyfit(sizes[1:], seconds[1:], 1)[0]) if len(rows) > 2 else None,
    }


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--largest", type=int, default=GROWTH[-1])
    options.add_argument("--only-first", action="store_true")
    chosen = options.parse_args()
    path = RESULTS / "tggm_speed.json"
    content = json.loads(path.read_text()) if chosen.only_first else measured(chosen)
    content.pop("about", None)
    content["first_fit_boston"] = first = first_fit(chosen)
    write_results("tggm_speed", content)
    base = min(content["mlp_epoch"])
    lines = [
        f"| an epoch of {N_ROWS} x {N_COLUMNS}, {WIDTH} units, batches of {BATCH} | ms | times the MLP |",
        "|---|---|---|",
        f"| scikit-learn MLPRegressor | {1e3 * base:.1f} | 1 |",
        *(f"| {label} | {1e3 * took:.1f} | {took / base:.2f} |" for label, took in content["epochs"].items()),
        "",
        "| rows x 90, ml, one member | s an epoch | peak MiB of the process |",
        "|---|---|---|",
        *(f"| {n} | {row['seconds']:.2f} | {row['mib']:.0f} |" for n, row in content["growth"].items()),
    ]
    if content["exponent_50k_to_largest"] is not None:
        exponent = content["exponent_50k_to_largest"]
        lines += ["", f"Exponent of the time from 50,000 rows on: {exponent:.3f}."]
    if first:
        took = f"first {first['first']:.1f} CPU s, second {first['second']:.1f} CPU s"
        lines += ["", f"Default fit on boston: {took}."]
    write_table("tggm_speed", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
