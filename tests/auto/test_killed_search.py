"""A search whose process is killed goes on from its file."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nongauss import AutoRegressor, SparseGPRegressor

SEARCH = textwrap.dedent("""
    import sys, time
    import numpy as np
    from nongauss import AutoRegressor

    def wait(progress):
        time.sleep(1.5)  # so that what is done is due to be written
        print(progress.iteration, flush=True)
        while progress.iteration == 3:
            time.sleep(60)

    table = np.load(sys.argv[1])
    names = ["constant", "linear", "gp", "gp laplace"]
    AutoRegressor(candidates=names, random_state=0, checkpoint=sys.argv[2], callbacks=[wait]).fit(
        table[:, :2], table[:, 2]
    )
""")


@pytest.mark.gate
def test_a_search_goes_on_after_its_process_was_killed(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(60, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=60)
    np.save(tmp_path / "table.npy", np.column_stack([X, y]))
    path = tmp_path / "search"
    command = [sys.executable, "-c", SEARCH, str(tmp_path / "table.npy"), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().strip() for _ in range(3)]
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
    assert seen == ["1", "2", "3"]
    assert path.exists()
    fits = []
    plain = SparseGPRegressor.fit
    monkeypatch.setattr(
        SparseGPRegressor, "fit", lambda self, *a, **k: fits.append(self.likelihood) or plain(self, *a, **k)
    )
    names = ["constant", "linear", "gp", "gp laplace"]
    model = AutoRegressor(candidates=names, random_state=0, checkpoint=path).fit(X, y)
    assert fits in (["laplace"], ["gaussian", "laplace"])  # the last one done may not have been written
    alone = AutoRegressor(candidates=names, random_state=0).fit(X, y)
    assert_array_equal(model.predict(X), alone.predict(X))
    assert not path.exists()
