"""`pytest -m fuzz --budget 600`: bad inputs for so many seconds. and the faults that it has found."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fuzz import targets
from fuzz.targets import TARGETS


@pytest.mark.fuzz
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@pytest.mark.filterwarnings("default")
def test_bad_input_is_refused_or_answered(target, request):
    until = time.monotonic() + request.config.getoption("budget") / len(TARGETS)

    @hypothesis.settings(max_examples=100, derandomize=False, database=None)
    @hypothesis.given(st.integers(0, 2**63))
    def explore(seed):
        if time.monotonic() < until:
            with tempfile.TemporaryDirectory() as folder:
                target(np.random.default_rng(seed), Path(folder))

    while time.monotonic() < until:
        explore()


@pytest.mark.parametrize(
    ("target", "seeds"),
    [
        ("checkpoint_content", (139, 227)),
        ("parquet", (108, 263, 283, 1826, 2174)),
        pytest.param("estimators", (1, 5, 9, 38, 71, 81, 316, 377, 427, 448, 472), marks=pytest.mark.gate),
        ("model_content", (179, 814, 1338, 1692)),
        pytest.param(
            "model_content",
            (319, 805, 845, 847, 983, 1259, 1539, 1574, 1727, 2063, 2293, 2836, 2974, 3730, 3739, 3877),
            marks=pytest.mark.gate,
        ),
    ],
)
@pytest.mark.filterwarnings("default")
def test_faults_of_former_days_stay_mended(target, seeds, tmp_path):
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        getattr(targets, target)(np.random.default_rng(seed), folder)
