"""What is tried with bad input: each target takes a random generator and a folder, and says how it ended.

A target returns "refused" (one sentence, InputError), "warned" or "fine"; anything else that it raises, a
number that is not finite without a warning, and a damaged file that is taken for whole, is a fault.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import nongauss
from fuzz.tampering import tampered
from nongauss.cli.app import app
from nongauss.core.errors import InputError
from nongauss.core.sealed import read_sealed, write_sealed
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.course import Snapshot, Status
from nongauss.tables.files import read_table
from nongauss.tables.learn import as_source, learn

Target = Callable[[np.random.Generator, Path], str]
SMALL: dict[str, dict[str, Any]] = {
    "SparseGPRegressor": {"n_inducing": 5, "max_iter": 3},
    "SparseGPClassifier": {"n_inducing": 5, "max_iter": 3},
    "RankFactorClassifier": {"n_factors": 2, "max_iter": 3},
    "RankFactorAnalysis": {"n_factors": 2, "max_iter": 3},
    "RectangleMixture": {"n_clusters": 2, "n_init": 1, "max_iter": 5},
    "Harmonium": {"n_components": 3, "max_epochs": 3},
    "HarmoniumClassifier": {"n_components": 3, "max_epochs": 3},
    "TGGMRegressor": {"hidden_layer_sizes": (3,), "max_epochs": 3, "n_members": 1},
}
SIZES = (1e-320, 1e-300, 1e-150, 1e-8, 1.0, 1e8, 2.0**53 + 2, 1e150, 1e200, 1e300)


class Fault(AssertionError):
    """What no input may bring about."""


def model_bytes(rng: np.random.Generator, folder: Path) -> str:
    """A model file with a changed, missing or added byte is never taken for whole."""
    source = saved_model(str(rng.choice(sorted(SMALL))))
    path = folder / "model"
    path.write_bytes(_damaged(source.read_bytes(), rng))
    return _refused(functools.partial(nongauss.load, path))


def model_content(rng: np.random.Generator, folder: Path) -> str:
    """A model file that was changed on purpose and sealed again is refused, or predicts."""
    name = str(rng.choice(sorted(SMALL)))
    what = tampered(saved_model(name), folder / "model", rng)
    return _outcome(lambda: _said(nongauss.load(folder / "model"), _rows()), f"{name}: {what}")


def checkpoint_bytes(rng: np.random.Generator, folder: Path) -> str:
    """A checkpoint with a changed, missing or added byte is never gone on from."""
    (folder / "fit").write_bytes(_damaged(_checkpoint().read_bytes(), rng))
    return _refused(lambda: Checkpoint(folder / "fit", "a").entry("loop"))


def checkpoint_content(rng: np.random.Generator, folder: Path) -> str:
    """A checkpoint of steps of another form is refused, or gone on from."""
    found, label = read_sealed(_checkpoint()), "nongauss-checkpoint-4"
    progress: dict[str, Any] = {"trace": [], "n_iter": 1, "seconds": 0.0, "status": None, "has_best": False}
    values = (None, True, -1, 10**400, "x", [], {}, [1], {"a": [None]})
    progress[str(rng.choice(sorted(progress)))] = values[int(rng.integers(len(values)))]
    steps: Any = {"loop": progress}
    if rng.random() < 0.3:
        steps = values[int(rng.integers(len(values)))]
    write_sealed(folder / "fit", found.arrays, label, {"fingerprint": "a", "steps": steps})

    def load() -> None:
        file = Checkpoint(folder / "fit", "a")
        try:
            file.entry("loop").load(Snapshot({"x": np.zeros(3)}, [], 0, 0.0))
        finally:
            file.end(Status.STOPPED)

    return _outcome(load, str(steps))


def csv(rng: np.random.Generator, folder: Path) -> str:
    """Any text as a table."""
    pieces = [*",;\t\n'a1 #€ä", '"', "\r\n", "-1.5", "1e400", "nan", "=1+1", "\x00", "\x1b[2J"]
    pieces += ["2020-01-01", "12:30", "1,5", "\ufeff", "<5", "1_000", "9" * 30]
    text = "".join(rng.choice(pieces, int(rng.integers(0, 80))))
    coding = str(rng.choice(["utf-8", "utf-16", "latin-1", "cp1252"]))
    path = folder / str(rng.choice(["t.csv", "t.tsv", "t.csv.gz"]))
    path.write_bytes(text.encode(coding, "ignore"))
    return _outcome(lambda: learn(as_source(read_table(path)), "the fuzzer", None), repr(text))


def parquet(rng: np.random.Generator, folder: Path) -> str:
    """A Parquet file with changed bytes."""
    _frame(rng).to_parquet(folder / "t.parquet")
    (folder / "t.parquet").write_bytes(_damaged((folder / "t.parquet").read_bytes(), rng))
    return _outcome(lambda: read_table(folder / "t.parquet"), "bytes")


def command_line(rng: np.random.Generator, folder: Path) -> str:
    """Any words as a command: an exit code, never a traceback."""
    (folder / "t.csv").write_text("a,b\n1,2\n")
    (folder / "loop").symlink_to(folder / "loop")
    words = ["fit", "predict", "cluster", "describe", "impute", "score", "compare"]
    words += ["t.csv", "loop", ".", "/dev/null", "--target", "--out", "--json", "--cv", "--set"]
    words += ["a", "x=1", "-1", "", "\x00", "--coverage", "1e999"]
    line = [str(word) for word in rng.choice(words, int(rng.integers(0, 7)))]
    with contextlib.chdir(folder):
        outcome = CliRunner().invoke(app, ["describe", *line] if rng.random() < 0.3 else line)
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise Fault(f"{line}: {outcome.exception!r}") from outcome.exception
    return "fine" if outcome.exit_code == 0 else "refused"


def estimators(rng: np.random.Generator, folder: Path) -> str:
    """A small table of strange numbers, at the fit and at the prediction."""
    name = str(rng.choice(sorted(SMALL)))
    X, new = _cells(rng), _cells(rng)
    y = (np.arange(len(X)) % 2) if name.endswith("Classifier") else _column(rng, len(X))
    weight = np.exp(rng.uniform(-690, 690, len(X))) if rng.random() < 0.3 else None
    model = getattr(nongauss, name)(**SMALL[name], random_state=0)
    supervised = () if name in ("RectangleMixture", "Harmonium", "RankFactorAnalysis") else (y,)

    def fit() -> Any:
        fitted = model.fit(X, *supervised, **({} if weight is None else {"sample_weight": weight}))
        return _said(fitted, new)

    return _outcome(fit, f"{name} {X.tolist()} {y.tolist()} {weight} {new.tolist()}")


TARGETS: tuple[Target, ...] = (
    model_bytes,
    model_content,
    checkpoint_bytes,
    checkpoint_content,
    csv,
    parquet,
    command_line,
    estimators,
)


def _outcome(work: Callable[[], Any], what: str) -> str:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = work()
        except InputError:
            return "refused"
        except (ValueError, TypeError) as error:
            if type(error).__module__.startswith(("sklearn", "nongauss")) or _is_of_scikit_learn(error):
                return "refused"
            raise Fault(f"{what[:3000]}: {error!r}") from error
        except Exception as error:
            raise Fault(f"{what[:3000]}: {error!r}") from error
    array = np.asarray(found) if isinstance(found, np.ndarray) else np.zeros(1)
    if array.dtype.kind == "f" and not np.isfinite(array).all() and not said:
        raise Fault(f"{what[:3000]}: not finite, and nothing is said")
    return "warned" if said else "fine"


def _is_of_scikit_learn(error: Exception) -> bool:
    """Is it one of scikit-learn's own sentences?"""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and "sklearn" in trace.tb_frame.f_code.co_filename


def _refused(load: Callable[[], Any]) -> str:
    try:
        load()
    except InputError:
        return "refused"
    raise Fault("a damaged file was taken for whole")


def _said(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.predict(X) if hasattr(model, "predict") else model.transform(X))


def _damaged(content: bytes, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(len(content)))
    ways = (
        content[:place],
        content + bytes([int(rng.integers(256))]),
        content[:place] + bytes([content[place] ^ (1 << int(rng.integers(8)))]) + content[place + 1 :],
        content[:place] + content[place + 1 :],
        content[:place] + bytes(rng.integers(0, 256, 9, dtype=np.uint8)) + content[place + 8 :],
    )
    return ways[int(rng.integers(len(ways)))]


def _rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(30, 3))


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="nongauss-fuzz-"))


@functools.cache
def saved_model(name: str) -> Path:
    """The file of a small fit of this estimator."""
    X = _rows()
    y = (X[:, 0] > 0).astype(int) if name.endswith("Classifier") else X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nongauss.save(getattr(nongauss, name)(**SMALL[name], random_state=0).fit(X, y), _folder() / name)
    return _folder() / name


@functools.cache
def _checkpoint() -> Path:
    path = _folder() / "checkpoint"
    file = Checkpoint(path, "a")
    file.entry("loop").end(Snapshot({"x": np.zeros(3)}, [{"bound": 1.0}], 1, 0.5), Status.STOPPED)
    file.end(Status.STOPPED)
    return path


def _column(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    size = float(rng.choice(SIZES))
    column = size * rng.choice([-1.0, 1.0, 0.0, 0.5], n_rows)
    if rng.random() < 0.2:
        column[int(rng.integers(n_rows))] = float(rng.choice(SIZES))
    return column


def _cells(rng: np.random.Generator) -> np.ndarray:
    n_rows = int(rng.integers(6, 12))
    X = np.stack([_column(rng, n_rows) for _ in range(3)], axis=1)
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.2] = np.nan
    if rng.random() < 0.1:
        X[:, 0] = np.nan
    return X


def _frame(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(5, 2)), columns=["a", "b"]).assign(c=["x", "y", None, "=1", "\x1b"])
