"""Tasks of Dask collections that fail: with the name of the partition that they are for, or as they were."""

import numpy as np
import pytest

from nongauss.core.errors import InputError
from nongauss.tables.partitions import named
from on_workers import shard

dask = pytest.importorskip("dask")

HERE = {"scheduler": "synchronous"}


def handles(*shards, below=0):
    """Partitions i of shard i + what is `below` them all."""
    base = dask.delayed(shard)(below)
    return [dask.delayed(np.add)(dask.delayed(shard)(number), base) for number in shards]


def test_what_fails_for_one_partition_names_it_and_chains_its_cause():
    parts = named(handles(0, 1, -1, 2))
    for number in (0, 1, 3):
        np.testing.assert_array_equal(
            parts[number].compute(**HERE), handles(0, 1, -1, 2)[number].compute(**HERE)
        )
    with pytest.raises(InputError) as caught:
        parts[2].compute(**HERE)
    assert str(caught.value) == (
        "partition 2: Dask cannot compute it (OSError: the store has no shard -1); "
        "mend what it is made from, or leave it out."
    )
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("parts", [handles(0, 1, below=-1), handles(0, -2)])
def test_what_several_need_and_memory_that_is_short_stay_as_they_are(parts):
    with pytest.raises((OSError, MemoryError), match=r"^(the store has no|no room for)"):
        dask.compute(*named(parts), **HERE)


def test_keys_are_those_of_before_and_rows_on_workers_are_not_made_again(client):
    frame = pytest.importorskip("dask.dataframe").from_map(shard, range(4), meta=shard(0))
    held = client.persist(frame)
    parts = named(held.to_delayed(optimize_graph=False))
    assert [part.key for part in parts] == held.__dask_keys__()
    del held
    assert sum(len(part) for part in client.gather(client.compute(parts))) == 4 * len(shard(0))
    with pytest.raises(InputError, match="partition 1: Dask cannot compute it"):
        client.gather(client.compute(named(handles(0, -1))))
