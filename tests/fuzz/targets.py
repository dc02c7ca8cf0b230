"""What is tried with bad input: each target takes a random generator and a folder, and says how it ended.

A target returns "refused" (one sentence, InputError), "warned" or "fine"; anything else that it raises, a
number that is not finite without a warning, and a damaged file that is taken for whole, is a fault.
"""

from __future__ import annotations

import contextlib
import functools
import io
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer.main

import nongauss
from fuzz.asked import questions
from fuzz.tampering import tampered
from nongauss.cli.app import app
from nongauss.cli.describe import description_text, model_description
from nongauss.core.errors import InputError
from nongauss.core.sealed import read_sealed, write_sealed
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.course import Snapshot, Status
from nongauss.report.text import to_json
from nongauss.tables.files import read_table
from nongauss.tables.learn import as_source, learn

Target = Callable[[np.random.Generator, Path], str]
SMALL: dict[str, dict[str, Any]] = {
    "SparseGPRegressor": {"n_inducing": 5, "max_iter": 3},
    "SparseGPClassifier": {"n_inducing": 5, "max_iter": 3},
    "SparseGPOrdinalClassifier": {"n_inducing": 5, "max_iter": 3},
    "RankFactorClassifier": {"n_factors": 2, "max_iter": 3},
    "RankFactorAnalysis": {"n_factors": 2, "max_iter": 3},
    "RectangleMixture": {"n_clusters": 2, "n_init": 1, "max_iter": 5},
    "Harmonium": {"n_components": 3, "max_epochs": 3},
    "HarmoniumClassifier": {"n_components": 3, "max_epochs": 3},
    "HarmoniumRegressor": {"n_components": 3, "max_epochs": 3},
    "TGGMRegressor": {"hidden_layer_sizes": (3,), "max_epochs": 3, "n_members": 1},
    "TGGMClassifier": {"hidden_layer_sizes": (3,), "max_epochs": 3, "n_members": 1},
    "AutoRegressor": {"candidates": ("linear",), "calibrate": False},
    "AutoClassifier": {"candidates": ("linear labels",)},
    "AutoImputer": {"candidates": ("rank_factor",)},
}
SEARCHES = (
    "AutoRegressor",
    "AutoClassifier",
    "AutoImputer",
    "RectangleMixture",
    "TGGMClassifier",
    "TGGMRegressor",
)
"""Those whose fit takes some tenths of a second: they are tried more seldom."""
WITHOUT_TARGET = ("AutoImputer", "Harmonium", "RankFactorAnalysis", "RectangleMixture")
SIZES = (1e-320, 1e-300, 1e-150, 1e-8, 1.0, 1e8, 2.0**53 + 2, 1e150, 1e200, 1e300)


WORDS = [
    *("fit", "predict", "cluster", "describe", "impute", "score", "compare"),
    *("t.csv", "m", "loop", ".", "/dev/null", "none.csv", "a,b", "x" * 300),
    *("--target", "--out", "--json", "--cv", "--set", "--coverage", "--draws", "--force", "--at"),
    *("a", "x=1", "max_iter=nan", "-1", "0", "", "\x00", "\x1b[2J", "1e999", "é"),
]
RIGHT = {
    "describe m": 0.25,
    "describe m --json": 0.15,
    "predict m t.csv --out p.csv": 0.25,
    "predict m t.csv --coverage 0.9 --out p.csv": 0.15,
    "score m t.csv --target y": 0.15,
    "fit t.csv --target y --model sparse_gp --set max_iter=2 --out o": 0.02,
    "impute t.csv --model rank_factor --out f.csv": 0.03,
}
"""Commands that end well, and how often each is tried."""


class Fault(AssertionError):
    """What no input may bring about."""


def model_bytes(rng: np.random.Generator, folder: Path) -> str:
    """A model file with a changed, missing or added byte is never taken for whole."""
    source = saved_model(str(rng.choice(sorted(SMALL))))
    path = folder / "model"
    path.write_bytes(_damaged(source.read_bytes(), rng))
    return _refused(functools.partial(nongauss.load, path))


def model_content(rng: np.random.Generator, folder: Path) -> str:
    """A model file that was changed on purpose and sealed again is refused, or is described and predicts."""
    name = str(rng.choice(sorted(SMALL)))
    what = tampered(saved_model(name), folder / "model", rng)

    def use() -> np.ndarray:
        model = nongauss.load(folder / "model")
        description_text(model, folder / "model")
        to_json(model_description(model, folder / "model"))
        return _said(model, _rows())

    return _outcome(use, f"{name}: {what}")


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
    (folder / "t.parquet").write_bytes(_damaged(_parquet(int(rng.integers(16))), rng))
    return _outcome(lambda: read_table(folder / "t.parquet"), "bytes")


def command_line(rng: np.random.Generator, folder: Path) -> str:
    """Any words as a command, or a right one with a word of another: an exit code, never a traceback."""
    (folder / "t.csv").write_text("a,b,c,y\n" + "".join(f"{i},{i % 3},{i * i},{i}\n" for i in range(12)))
    (folder / "loop").symlink_to(folder / "loop")
    shutil.copy(saved_model("SparseGPRegressor"), folder / "m")
    line = [str(word) for word in rng.choice(WORDS, int(rng.integers(0, 7)))]
    if rng.random() < 0.7:
        line = str(rng.choice(list(RIGHT), p=list(RIGHT.values()))).split()
        for _ in range(int(rng.integers(0, 3))):
            line[int(rng.integers(len(line)))] = str(rng.choice(WORDS))
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            _command().main(line, prog_name="nongauss")
        except SystemExit as end:
            if end.code not in (None, 0, 1, 2):
                raise Fault(f"{line}: exit code {end.code}") from end
            return "fine" if not end.code else "refused"
        except Exception as error:
            raise Fault(f"{line}: {error!r}") from error
    return "fine"


def estimators(rng: np.random.Generator, folder: Path) -> str:
    """A small table of strange numbers: at the fit, and in whatever the model is then asked of others."""
    shares = [1.0 if name in SEARCHES else 8.0 for name in sorted(SMALL)]
    name = str(rng.choice(sorted(SMALL), p=np.divide(shares, sum(shares))))
    X, new = _cells(rng), _cells(rng)
    y = (np.arange(len(X)) % 2) if name.endswith("Classifier") else _column(rng, len(X))
    weight = np.exp(rng.uniform(-690, 690, len(X))) if rng.random() < 0.3 else None
    if name == "AutoImputer":
        weight = None  # it takes none
    model = getattr(nongauss, name)(**SMALL[name], random_state=0)

    given = () if name in WITHOUT_TARGET else (y,)
    weighed = {} if weight is None else {"sample_weight": weight}
    what = f"{name} {X.tolist()} {y.tolist()} {weight} {new.tolist()}"
    ends = [_outcome(lambda: model.fit(X, *given, **weighed), what)]
    if ends != ["refused"]:
        asked = questions(model, new, np.resize(y, len(new)))
        ends += [_outcome(ask, f"{question} of {what}") for question, ask in asked.items()]
    return next((end for end in ("refused", "warned") if end in ends), "fine")


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
            if type(error).__module__.startswith(("sklearn", "nongauss")) or is_of_scikit_learn(error):
                return "refused"
            raise Fault(f"{what[:3000]}: {error!r}") from error
        except Exception as error:
            raise Fault(f"{what[:3000]}: {error!r}") from error
    numeric = [str(each.message) for each in said if issubclass(each.category, RuntimeWarning)]
    if numeric:
        raise Fault(f"{what[:3000]}: {numeric[0]}")
    array = np.asarray(found) if isinstance(found, np.ndarray) else np.zeros(1)
    if array.dtype.kind == "f" and not np.isfinite(array).all() and not said:
        raise Fault(f"{what[:3000]}: not finite, and nothing is said")
    return "warned" if said else "fine"


def is_of_scikit_learn(error: Exception) -> bool:
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
        model = getattr(nongauss, name)(**SMALL[name], random_state=0)
        nongauss.save(model.fit(X, *(() if name in WITHOUT_TARGET else (y,))), _folder() / name)
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


@functools.cache
def _parquet(number: int) -> bytes:
    """The bytes of a Parquet file with columns of several types."""
    rng = np.random.default_rng(number)
    frame = pd.DataFrame(rng.normal(size=(5, 2)), columns=["a", "b"]).assign(
        c=["x", "y", None, "=1", "\x1b"], d=pd.Categorical(list("uvuvu")), e=pd.date_range("2020", periods=5)
    )
    return frame.to_parquet(compression=("snappy", None)[number % 2])


@functools.cache
def _command() -> Any:
    """The command line, made once."""
    return typer.main.get_command(app)
