"""Customer segments that can be said out loud: rules on what is known, clusters in how people behave.

Run it with `python examples/rectangle_segments.py`. It needs no download and leaves no file behind. The
customers are made up, so that the truth is known: three groups by age and contract that behave differently.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import nongauss


def customers(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with gaps, and the true segment of each row."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, n_rows).astype(float)
    contract = rng.choice(["none", "basic", "plus"], n_rows)
    segment = np.where(age < 35, 0, np.where(contract == "plus", 2, 1))
    frame = pd.DataFrame({"age": age, "contract": contract, "shoe size": rng.normal(42, 3, n_rows)})
    frame["spent"] = np.exp(np.array([3.0, 4.0, 5.0])[segment] + 0.2 * rng.normal(size=n_rows))
    frame["visits"] = np.array([12.0, 4.0, 8.0])[segment] + rng.normal(size=n_rows)
    frame.loc[rng.choice(n_rows, n_rows // 20, replace=False), "visits"] = np.nan
    return frame, segment


def main() -> None:
    small = os.environ.get("NONGAUSS_EXAMPLE_SIZE") == "small"
    frame, segment = customers(300 if small else 2000)
    model = nongauss.RectangleMixture(
        "auto",
        rule_columns=["age", "contract", "shoe size"],
        structure_columns=["spent", "visits"],
        n_init=4 if small else 10,
        random_state=0,
    ).fit(frame)
    print(model.describe())

    # The number of segments and the segments are found, and no rule speaks of shoes.
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(segment, model.labels_) > 0.95
    assert "shoe size" not in set(model.rules_["column"])

    # A new customer needs only what the rules speak of.
    new = pd.DataFrame({"age": [25.0, 60.0, 60.0], "contract": ["none", "plus", "basic"], "shoe size": 42.0})
    names = [model.cluster_names_[k] for k in model.predict(new)]
    print(dict(zip(["25, none", "60, plus", "60, basic"], names, strict=True)))
    assert len(set(names)) == 3

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "segments.nongauss"
        nongauss.save(model, path)
        assert np.array_equal(nongauss.load(path).predict(new), model.predict(new))


if __name__ == "__main__":
    main()
