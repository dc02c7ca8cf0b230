import threading
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nongauss.tables.source import Stream, added, joined, read_ahead


class Record(NamedTuple):
    total: float
    by_column: np.ndarray


def record(part, power):
    return Record(float((part**power).sum()), (part**power).sum(axis=0)) if len(part) else None


ROWS = np.arange(42.0).reshape(21, 2)
PARTS = [ROWS[:5], ROWS[:0], ROWS[5:6], ROWS[6:15], ROWS[15:]]


def doubled(part):
    return 2.0 * part


def test_records_add_entry_by_entry_and_none_is_nothing():
    found = added({"a": 1, "b": (2, np.ones(2))}, {"a": 3, "b": (4, np.ones(2))})
    assert found["a"] == 4
    assert found["b"][0] == 6
    assert_array_equal(found["b"][1], [2, 2])
    assert added(None, 3) == added(3, None) == 3
    assert isinstance(added(Record(1.0, np.ones(2)), Record(2.0, np.ones(2))), Record)


def test_the_sum_is_that_of_all_rows_however_they_are_cut():
    source = Stream(PARTS).map(doubled)
    total, by_column = source.sum(record, 2)
    assert total == (4 * ROWS**2).sum()
    assert_array_equal(by_column, (4 * ROWS**2).sum(axis=0))
    assert source.n_parts == 5
    assert [len(part) for part in source.each(np.asarray)] == [5, 0, 1, 9, 6]


def test_blocks_hold_each_row_once_in_an_order_that_the_seed_decides():
    source = Stream(PARTS).map(np.asarray)
    first, again, other = (
        np.concatenate(list(source.blocks(np.random.default_rng(seed), 2))) for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert_array_equal(np.sort(first[:, 0]), ROWS[:, 0])
    assert [len(part) for part in joined([(ROWS, None), (ROWS, None)])[:1]] == [42]


def test_what_goes_wrong_while_reading_ahead_is_raised_and_no_thread_is_left():
    before = threading.active_count()

    def broken():
        yield 1
        raise OSError("part 2 is gone")

    found = []
    with pytest.raises(OSError, match="part 2 is gone"):
        found += list(read_ahead(broken()))
    assert next(read_ahead(range(100))) == 0  # leaves early
    assert threading.active_count() == before
