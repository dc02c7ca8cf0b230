from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from nongauss.core.threads import threads_for


@pytest.mark.parametrize(
    ("table", "expected"),
    [(np.zeros((800, 9)), 1), (np.zeros((10**5, 10)), 2), ("table.parquet", 2)],
    ids=["small", "large", "not read yet"],
)
def test_a_small_table_is_worked_on_by_one_thread(table, expected):
    with threadpool_limits(limits=2):
        before = [pool["num_threads"] for pool in threadpool_info()]
        with threads_for(table):
            inside = [pool["num_threads"] for pool in threadpool_info()]
        assert [pool["num_threads"] for pool in threadpool_info()] == before
    assert before
    assert set(inside) == {expected}
