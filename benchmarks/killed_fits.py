"""Fits of each family that are killed by SIGKILL at random moments, and go on from their checkpoints.

Counted are fits whose file had progress when they died: whether they then end with the bits of a fit that
nobody disturbed, without computing again what the file had, and leave no file behind.
It goes on from the counts that `results/killed_fits.json` has.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import RESULTS, write_results, write_table
from sklearn.base import clone

import nongauss
from nongauss.core.sealed import read_sealed
from nongauss.optimise.checkpoint import Checkpoint

WANTED = 20
"""Fits of each family whose file had progress."""


class Family(NamedTuple):
    """A model, its table, its target. What is compiled is not to be forked afterwards."""

    model: Any
    X: np.ndarray
    y: np.ndarray | None
    is_compiled: bool = False


def families() -> dict[str, Family]:
    """One model of each family whose fit takes some tenths of a second; that which is compiled last."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).round(3)
    rate = np.exp(np.sin(2.0 * X[:, 0]))
    bits = (rng.random((200, 12)) < 0.2 + 0.6 * (rng.random((200, 3)) < 0.3)[:, np.arange(12) % 3]).astype(
        float
    )
    boxes = X + 3.0 * (rate > 2.0)[:, None]
    labels = np.digitize(rate, [0.7, 2.0])
    return {
        "sparse_gp": Family(
            nongauss.SparseGPRegressor("poisson", n_inducing=10, max_iter=25), X, rng.poisson(rate)
        ),
        "rank_factor": Family(nongauss.RankFactorClassifier(n_factors=2, max_iter=40), X, labels),
        "rectangle": Family(nongauss.RectangleMixture(2, n_init=2), boxes, None),
        "harmonium": Family(nongauss.Harmonium(4, max_epochs=30), bits, None),
        "tggm": Family(nongauss.TGGMRegressor((4,), n_members=2, max_epochs=30), X, rate, is_compiled=True),
    }


def fitted(family: Family, **changes: Any) -> Any:
    """The model after a fit that writes its checkpoint after each step."""
    model = clone(family.model).set_params(random_state=0, **changes)
    return model.fit(family.X) if family.y is None else model.fit(family.X, family.y)


def said(model: Any, X: np.ndarray) -> list[np.ndarray]:
    """All that a model says of rows, and its course."""
    names = [name for name in ("predict_proba", "transform", "predict") if hasattr(model, name)]
    return [np.asarray(getattr(model, name)(X)) for name in names] + [model.trace_["bound"].to_numpy()]


def in_a_child(work: Callable[[], Any]) -> int:
    """The process that does it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 (a child says what it died of)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def n_kept(path: Path) -> int:
    """How many iterations of its steps a file has."""
    if not path.exists():
        return 0
    (text,) = read_sealed(path).labels.values()
    return sum(step["n_iter"] for step in json.loads(text)["steps"].values())


def killed(family: Family, folder: Path, moment: float) -> dict[str, Any] | None:
    """What a fit left in the folder that was killed at that moment; None where it had ended before."""
    child = in_a_child(lambda: fitted(family, checkpoint=folder / "fit"))
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        return None
    return {"after": moment, "kept": n_kept(folder / "fit"), "left": sorted(os.listdir(folder))}


def resumed(family: Family, folder: Path, whole: list[np.ndarray]) -> dict[str, Any]:
    """What came of the fit that went on from there."""
    heard: list[int] = []
    model = fitted(family, checkpoint=folder / "fit", callbacks=[lambda at: heard.append(at.iteration)])
    pairs = zip(said(model, family.X), whole, strict=True)
    equal = all(np.array_equal(mine, its, equal_nan=True) for mine, its in pairs)
    return {"equal": equal, "computed": len(heard), "clean": os.listdir(folder) == []}


def explored(family: Family, own: list[dict[str, Any]], until: float) -> None:
    """Kill as many as are wanted, and then let each go on."""
    whole = None if family.is_compiled else said(fitted(family), family.X)
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "whole").mkdir()
        began = time.monotonic()
        os.waitpid(in_a_child(lambda: fitted(family, checkpoint=Path(place) / "whole" / "fit")), 0)
        seconds = time.monotonic() - began
        rng, fits = np.random.default_rng(len(own)), list[tuple[Path, dict[str, Any]]]()
        wanted = WANTED - sum(fit["kept"] > 0 for fit in own)
        while time.monotonic() < until and sum(fit["kept"] > 0 for _, fit in fits) < wanted:
            folder = Path(place) / str(len(fits))
            folder.mkdir(exist_ok=True)
            fit = killed(family, folder, float(rng.uniform(0.0, 1.0)) * seconds)
            if fit is not None:
                fits.append((folder, fit))
        whole = whole or said(fitted(family), family.X)
        for folder, fit in fits:
            own.append({**fit, **(resumed(family, folder, whole) if fit["kept"] else {})})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--anew", action="store_true", help="forget what was counted")
    options.add_argument("--family", choices=list(families()), help="this one alone")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    Checkpoint.due = lambda self: True  # type: ignore[method-assign]
    file = RESULTS / "killed_fits.json"
    found = json.loads(file.read_text())["fits"] if file.exists() and not chosen.anew else {}
    until = time.monotonic() + chosen.seconds
    for name, family in families().items():
        if chosen.family not in (None, name):
            continue
        own = found.setdefault(name, [])
        if time.monotonic() < until and sum(fit["kept"] > 0 for fit in own) < WANTED:
            explored(family, own, until)
            print(name, own[-2:], flush=True)
            write_results("killed_fits", {"fits": found})
            tell(found)


def tell(found: dict[str, Any]) -> None:
    """The table of all fits so far."""
    lines = [
        "| family | killed | with progress kept | equal to the bit | no file left |",
        "|---|---|---|---|---|",
    ]
    for name, fits in found.items():
        kept = [fit for fit in fits if fit["kept"]]
        equal, clean = sum(fit["equal"] for fit in kept), sum(fit["clean"] for fit in kept)
        lines.append(f"| {name} | {len(fits)} | {len(kept)} | {equal} | {clean} |")
    write_table("killed_fits", lines)


if __name__ == "__main__":
    main()
