"""The command line keeps what JAX compiles; a library fit does not."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

COUNTED = """
import atexit, sys, jax
from nongauss.cli import app

heard = []
jax.monitoring.register_event_listener(lambda name, **more: heard.append(name))
atexit.register(lambda: print(heard.count("/jax/compilation_cache/cache_hits"), file=sys.stderr))
app()
"""


@pytest.mark.gate
def test_a_second_command_finds_what_the_first_has_compiled(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    frame.assign(y=frame["a"] + rng.normal(size=60)).to_csv(tmp_path / "x.csv", index=False)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("JAX_")}
    environment |= {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-c", COUNTED, "fit", "x.csv", "--target", "y", "--model", "tggm"]
    command += ["--set", "method=bp"]  # small fits by the default compile nothing
    command += ["--max-epochs", "2", "--force", "--out", "out"]

    def run():
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment
        )
        kept = (tmp_path / "cache" / "nongauss" / "compiled").iterdir()
        entries = {file.name for file in kept if file.name.endswith("-cache")}
        return entries, int(done.stderr.split()[-1])

    first, _ = run()
    second, hits = run()
    assert first
    assert second == first
    assert hits >= len(first)
