from __future__ import annotations

import numpy as np  # noqa: F401 (its BLAS is what is asked)
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from nongauss.core.threads import threads_for


@pytest.mark.parametrize(("n_cells", "expected"), [(800 * 9, 1), (10**6, 2)])
def test_a_small_table_is_worked_on_by_one_thread(n_cells, expected):
    with threadpool_limits(limits=2):
        before = [pool["num_threads"] for pool in threadpool_info()]
        with threads_for(n_cells):
            inside = [pool["num_threads"] for pool in threadpool_info()]
        assert [pool["num_threads"] for pool in threadpool_info()] == before
    assert before
    assert set(inside) == {expected}
