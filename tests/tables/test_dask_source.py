"""Real worker processes on loopback; partitions that cannot be computed are named."""

import os
import signal
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nongauss.core.errors import InputError
from nongauss.tables import dask_source as cluster_module
from nongauss.tables.dask_source import Cluster, named
from nongauss.tables.source import Stream, total
from on_workers import Sent, fails, gram, made, shard, too_slow

dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
PARTS = [RNG.normal(size=(n, 3)) for n in (40, 1, 25, 60, 33, 12, 50)]


def test_sums_blocks_and_errors_are_those_of_a_stream(client):
    here, there = (source.map(made, 2.0) for source in (Stream(PARTS), Cluster(client, PARTS)))
    found, expected = there.sum(gram, np.ones(3)), here.sum(gram, np.ones(3))
    assert found["n"] == expected["n"] == 221
    np.testing.assert_allclose(found["gram"], expected["gram"], rtol=1e-13)
    blocks = [list(source.blocks(np.random.default_rng(3), 2)) for source in (here, there)]
    for mine, its in zip(*blocks, strict=True):
        assert_array_equal(mine, its)
    assert [len(part) for part in there.each(made, 1.0)] == [len(part) for part in PARTS]
    with pytest.raises(InputError, match=r"a part of \d+ rows is no good; mend it"):
        there.sum(fails)
    with pytest.raises(TimeoutError, match="the store did not answer"):  # not taken for waiting
        there.sum(too_slow)


def test_parts_one_by_one_cost_no_more_copies_of_the_arguments_than_a_sum(client):
    source, written = Cluster(client, PARTS).map(made, 1.0), []
    for found in (lambda: source.sum(gram, Sent(2.0)), lambda: total(source.each(gram, Sent(2.0)))):
        Sent.times = 0
        assert found()["n"] == 221
        written.append(Sent.times)
    assert written[0] == written[1] > 0


KILLS = 2


def test_workers_killed_at_random_moments_change_nothing(client):
    """Kills while passes run: the sums are the same to the last bit, since pairs add in a fixed order."""
    rng, stop, killed = np.random.default_rng(0), threading.Event(), []

    def kill():
        while not stop.wait(float(rng.uniform(0.1, 0.5))) and len(killed) < KILLS:
            alive = [pid for pid in client.run(os.getpid, on_error="ignore").values() if isinstance(pid, int)]
            if len(alive) == 2:
                killed.append(alive[int(rng.integers(2))])
                os.kill(killed[-1], signal.SIGKILL)

    source = Cluster(client, PARTS).map(made, 2.0)
    expected = source.sum(gram, np.zeros(3))["gram"]
    thread = threading.Thread(target=kill)
    thread.start()
    try:
        found = []
        while len(killed) < KILLS and len(found) < 200:
            found.append(source.sum(gram, np.zeros(3), 0.05)["gram"])
    finally:
        stop.set()
        thread.join()
    assert len(killed) == KILLS
    for gram_ in found:
        assert_array_equal(gram_, expected)
    assert set(killed).isdisjoint(client.run(os.getpid, on_error="ignore").values())


def test_no_worker_left_is_one_sentence(monkeypatch):
    monkeypatch.setattr(cluster_module, "GRACE", 0.2)
    monkeypatch.setattr(cluster_module, "_LOOK", 0.1)
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        source = Cluster(client, PARTS)
        cluster.scale(0)
        with pytest.raises(ConnectionError, match="No worker has been left on the Dask cluster"):
            source.sum(gram, np.zeros(3))
        cluster.close()
        with pytest.raises(ConnectionError, match="The Dask scheduler is gone"):
            source.sum(gram, np.zeros(3))


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
        "correct its source, or leave it out."
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
