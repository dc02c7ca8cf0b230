"""Each family from disk and on a cluster of two real worker processes, beside the same rows in memory."""

import os
import signal
import subprocess
import sys
import threading

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from nongauss import (
    Harmonium,
    HarmoniumClassifier,
    HarmoniumRegressor,
    RankFactorAnalysis,
    RankFactorClassifier,
    RectangleMixture,
    SparseGPClassifier,
    SparseGPOrdinalClassifier,
    SparseGPRegressor,
    TGGMClassifier,
    TGGMRegressor,
)
from nongauss.cli import out_of_core as engines
from nongauss.cli.split import HeldOut
from nongauss.core.errors import InputError
from nongauss.harmonium import data as harmonium_data
from nongauss.optimise.minibatch import Batch, statistics
from nongauss.rank_factor import fit as rank_factor_fit
from nongauss.rank_factor import reading as rank_reading
from nongauss.rectangle import data as rectangle_data
from nongauss.sparse_gp import params as gp_params
from nongauss.tables import completion
from nongauss.tables.dask_source import Cluster
from nongauss.tables.learn import as_source, is_parted
from nongauss.tables.source import Stream, itself, sample
from nongauss.tggm import base as tggm_base
from nongauss.tggm.config import NetworkConfig
from nongauss.tggm.params import start
from nongauss.tggm.updates import GradientSums
from on_workers import process, shard

N = 600
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "b": np.where(RNG.random(N) < 0.05, np.nan, RNG.gamma(2.0, size=N)),
        "c": RNG.choice(["u", "v", "w"], N),
    }
)
RATE = np.exp(np.sin(2.0 * X.a) + (X.c == "u"))
TABLE = X.assign(
    count=RNG.poisson(RATE),
    real=RATE + 0.1 * RNG.normal(size=N),
    label=np.where(X.c == "u", "up", np.where(X.a > 0, "right", "left")),
    grade=np.digitize(RATE, [0.7, 2.0]),
    weight=RNG.integers(0, 3, N),
)
ESTIMATORS = {
    "gp": (SparseGPRegressor("poisson", n_inducing=8, max_iter=20, random_state=0), "count"),
    "gp_gaussian": (SparseGPRegressor(n_inducing=8, max_iter=20, random_state=0), "real"),
    "gp_labels": (SparseGPClassifier(n_inducing=6, max_iter=10, random_state=0), "label"),
    "gp_grades": (SparseGPOrdinalClassifier(n_inducing=6, max_iter=10, random_state=0), "grade"),
    "tggm": (TGGMRegressor((5,), n_members=2, max_epochs=3, random_state=0), "real"),
    "rectangle": (RectangleMixture(2, n_init=2, max_iter=10, random_state=0), None),
    "ranks": (RankFactorAnalysis(2, max_iter=20, random_state=0), None),
    "ranks_labels": (RankFactorClassifier(2, max_iter=10, random_state=0), "label"),
    "harmonium": (Harmonium(4, max_epochs=3, random_state=0), None),
    "harmonium_labels": (HarmoniumClassifier(4, max_epochs=3, random_state=0), "label"),
    "harmonium_numbers": (HarmoniumRegressor(4, max_epochs=3, raw_features=True, random_state=0), "real"),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*largest number of iterations"),
    pytest.mark.filterwarnings("ignore:.*activations are outside"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts")
    write(TABLE, path)
    return path


@pytest.fixture
def few_in_memory(monkeypatch):
    """Tables of some hundred rows are past memory."""
    monkeypatch.setattr(gp_params, "KEPT_NUMBERS", 8 * 150)
    monkeypatch.setattr(tggm_base, "MOST_SAMPLED", 150)
    monkeypatch.setattr(harmonium_data, "MOST_SAMPLED", 150)
    monkeypatch.setattr(rectangle_data, "MOST_ROWS", 150)
    monkeypatch.setattr(rank_reading, "MOST_SAMPLED", 150)
    monkeypatch.setattr(completion, "MOST_DONORS", 100)  # always fewer than the rows that fit in memory


def columns(target, weight="weight"):
    """The table that an estimator is shown."""
    return TABLE[[*X.columns, *([target] if target else []), *([weight] if weight else [])]]


def write(table, path):
    for i in range(2):
        table[300 * i : 300 * i + 300].to_parquet(path / f"{i}.parquet", index=False, row_group_size=75)
    return str(path)


def answers(model, table):
    """What a model says of rows, as one array."""
    name = "transform" if isinstance(model, Harmonium | RankFactorAnalysis) else "predict"
    name = "predict_proba" if hasattr(model, "predict_proba") else name
    return getattr(model, name)(table)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if not name.startswith("tggm")])
def test_a_table_on_disk_that_fits_in_memory_gives_the_same_model(name, tmp_path):
    model, target = ESTIMATORS[name]
    path = write(columns(target), tmp_path)
    y = None if target is None else TABLE[target]
    expected = answers(model.fit(X, y, sample_weight=TABLE.weight), X)
    model.fit(path, target, sample_weight="weight")
    assert_allclose(answers(model, X), expected, rtol=1e-6, atol=1e-8)
    assert_allclose(answers(model, path), answers(model, X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["gp", "gp_gaussian", "gp_labels"])
def test_what_all_rows_say_is_the_same_from_disk_and_in_memory(name, tmp_path, few_in_memory):
    model, target = ESTIMATORS[name]
    if name == "gp_gaussian":  # without near rows, which a table in memory alone has
        model = clone(model).set_params(n_scales=1)
    path = write(columns(target), tmp_path)
    model.fit(X, TABLE[target], sample_weight=TABLE.weight)
    expected, alpha = answers(model, X), model.posterior_.alpha
    power = getattr(model.posterior_.likelihood, "power", None)
    model.fit(path, target, sample_weight="weight")
    assert_allclose(model.posterior_.alpha, alpha, rtol=1e-8, atol=1e-9)
    whole = slice(None)
    if power is not None:  # of labels, which a sample of the rows tells; means over gaps are taken after it
        expected = expected ** (model.posterior_.likelihood.power / power)
        expected /= expected.sum(axis=1, keepdims=True)
        whole = X.notna().all(axis=1).to_numpy()
    assert_allclose(answers(model, X)[whole], expected[whole], rtol=1e-8)


@pytest.mark.parametrize("target", ["real", "label"])
def test_a_tggm_reads_a_table_on_disk_as_one_in_memory(target, tmp_path):
    model = TGGMRegressor() if target == "real" else TGGMClassifier(class_weight="balanced")
    whole = sample(model._read_table(X, TABLE[target], TABLE.weight, "all")[1], 1000)
    rows = sample(model._read_table(write(columns(target), tmp_path), target, "weight", "all")[1], 1000)
    for mine, its in zip(rows.rows, whole.rows, strict=True):
        assert_allclose(mine, its, rtol=1e-6)


@pytest.mark.gate
@pytest.mark.parametrize("name", ["tggm", "rectangle", "harmonium_labels", "ranks", "ranks_labels"])
def test_tables_past_memory_are_learned_from_as_well(name, tmp_path, few_in_memory):
    model, target = ESTIMATORS[name]
    path = write(columns(target, None), tmp_path)
    model.fit(path, target)
    first = answers(model, X)
    assert_array_equal(answers(model.fit(path, target), X), first)
    assert np.isfinite(first.astype(float)).all()
    if name == "rectangle":
        assert model.clusters_["rows"].sum() == N


@pytest.mark.gate
def test_rules_are_learned_from_the_same_rows_wherever_they_are(tmp_path, client, few_in_memory):
    model, _ = ESTIMATORS["rectangle"]
    path = write(columns(None), tmp_path)
    model.fit(X, sample_weight=TABLE.weight)
    rules, clusters, inside_one = model.rules_, model.clusters_, model.inside_one_
    labels = model.labels_
    assert_array_equal(labels, model.predict(X))
    for table in (path, frame_of(path, "weight")):
        model.fit(table, sample_weight="weight")
        assert_frame_equal(model.rules_, rules, check_exact=True)
        assert_frame_equal(model.clusters_, clusters, rtol=1e-12)
        assert model.inside_one_ == pytest.approx(inside_one, rel=1e-12)
        assert_array_equal(model.predict(X), labels)


def test_what_cannot_be_in_parts_is_one_sentence(folder):
    for model, arguments, message in (
        (SparseGPRegressor(), (TABLE["count"],), "y must be the name of a column of the Parquet files"),
        (SparseGPRegressor(), ("counts",), "row group 0 has no column 'counts' for the target"),
        (SparseGPRegressor(), ("label",), "row group 0: y holds '.*' in row .*, which is not a number"),
        (SparseGPRegressor(), ("count", "label"), "row group 0: sample_weight must be numbers"),
        (
            SparseGPRegressor("poisson"),
            ("count", None, TABLE["count"]),
            "exposure must be the name of a column",
        ),
        (
            SparseGPRegressor("student_t", posterior="mixture", n_inducing=200_000),  # so that few rows fit
            ("real",),
            "'mixture' takes tables in memory",
        ),
        (
            RankFactorAnalysis(inference="gibbs"),
            (),
            "RankFactorAnalysis with inference='gibbs' needs",
        ),
        (Harmonium(3, early_stopping=True), (), "early_stopping of Harmonium take tables in memory"),
    ):
        with pytest.raises(InputError, match=message):
            model.fit(folder, *arguments)
    model, target = ESTIMATORS["gp"]
    with pytest.raises(InputError, match="return_std and exposure take tables in memory"):
        model.fit(folder, target).predict(folder, return_std=True)
    with pytest.raises(InputError, match="which only fit, predict and transform accept"):
        model.predict_interval(folder)


@pytest.mark.gate
def test_without_the_extra_all_that_is_in_memory_or_on_disk_works(folder):
    code = (
        "import sys; sys.modules.update(dask=None, distributed=None)\n"
        "from nongauss import SparseGPRegressor as GP\n"
        "import pandas as pd\n"
        f"folder = {str(folder)!r}\n"
        "X = pd.read_parquet(folder)[['a', 'b', 'c', 'real']]\n"
        "GP(n_inducing=4, max_iter=3, random_state=0).fit(X[['a', 'b', 'c']], X['real']).predict(X)\n"
        "GP(n_inducing=4, max_iter=3, random_state=0).fit(folder, 'real').predict(folder)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- on a cluster


def frame_of(folder, target):
    import dask.dataframe as dd

    return dd.read_parquet(folder, columns=[*X.columns, *([target] if target else [])], split_row_groups=True)


@pytest.mark.gate
@pytest.mark.parametrize("name", ["gp", "rectangle"])
def test_a_cluster_gives_the_model_of_the_disk_and_lazy_answers(
    name, folder, tmp_path, client, few_in_memory
):
    model, target = ESTIMATORS[name]
    expected = answers(model.fit(write(columns(target, None), tmp_path), target), X)
    frame = frame_of(folder, target)
    lazy = answers(model.fit(frame, target), frame)
    assert type(lazy).__module__.startswith("dask.array")
    assert_allclose(lazy.compute(), expected, rtol=1e-6, atol=1e-7)
    assert lazy.ndim == expected.ndim


@pytest.mark.gate
def test_arrays_and_a_target_of_their_own(client, few_in_memory):
    import dask.array as da

    numbers = TABLE[["a", "real"]].to_numpy()
    model, _ = ESTIMATORS["gp_gaussian"]
    expected = model.fit(numbers[:, :1], numbers[:, 1]).predict(numbers[:, :1])
    array = da.from_array(numbers, chunks=(110, 1))
    lazy = model.fit(array[:, :1], array[:, 1]).predict(array[:, :1])
    assert lazy.shape == (N,)
    assert_allclose(lazy.compute(), expected, rtol=1e-8)
    with pytest.raises(InputError, match="X has 6 partitions and y has 1; partition both alike"):
        model.fit(array[:, :1], array[:, 1].rechunk(N))
    with pytest.raises(InputError, match="y must be in parts like X: got ndarray"):
        model.fit(array[:, :1], numbers[:, 1])
    with pytest.raises(InputError, match="is an array, whose columns have no names"):
        model.fit(array, "real")


@pytest.mark.gate
def test_a_frame_and_its_columns_are_partitioned_alike_however_dask_would_read_them(folder, client):
    import dask.dataframe as dd

    frame = dd.read_parquet(folder, filesystem="arrow")  # would read two small files as one partition
    model, target = ESTIMATORS["gp"]
    inputs = frame[list(X.columns)]
    expected = model.fit(X, TABLE[target], TABLE["weight"]).predict(inputs.compute())
    lazy = model.fit(inputs, frame[target], frame["weight"]).predict(inputs)
    assert lazy.npartitions == frame.npartitions == 2
    assert_allclose(lazy.compute(), expected, rtol=1e-6)


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore:.*chains:sklearn.exceptions.ConvergenceWarning")
def test_searches_and_chains_run_on_the_cluster(client, monkeypatch):
    model, _ = ESTIMATORS["gp"]
    search = GridSearchCV(
        model, {"n_inducing": [2, 8]}, cv=2, scoring={"fit": "r2", "place": process}, refit="fit"
    )
    sampler = RankFactorAnalysis(2, inference="gibbs", n_chains=2, max_iter=4, n_draws=4, random_state=0)
    here = search.fit(X, TABLE["count"]).cv_results_["mean_test_fit"]
    loadings = sampler.fit(X[:60]).loadings_
    with joblib.parallel_config(backend="dask"):
        there = search.fit(X, TABLE["count"]).cv_results_
        monkeypatch.setattr(rank_factor_fit, "warm", None)  # in this process, where no chain is to run
        chains = sampler.fit(X[:60])
    assert_array_equal(there["mean_test_fit"], here)
    assert set(there["split0_test_place"]) <= set(client.run(os.getpid).values())
    assert_array_equal(chains.loadings_, loadings)
    assert chains.trace_["iteration"].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert chains.trace_["seconds"].is_monotonic_increasing


@pytest.mark.gate
def test_the_steps_of_the_command_line_on_a_cluster_that_runs(folder, client):
    with engines.dask_client(client.scheduler.address) as where:
        assert where.startswith(f"Dask cluster at {client.scheduler.address}, dashboard http")
        table = engines.sampled_table(folder, "count")
        first, second = (
            engines.fit_parts(
                ESTIMATORS["gp"][0], table, folder, engine, held_out=HeldOut(), seed=0, checkpoint=None
            )
            for engine in ("stream", "dask")
        )
    assert_allclose(second.final.posterior_.alpha, first.final.posterior_.alpha, rtol=1e-8, atol=1e-9)
    assert "150 rows from 2 of 8 parts" in first.notes[0]


@pytest.mark.gate
def test_a_gradient_is_the_same_where_the_part_is(client):
    config = NetworkConfig((2,), "bp", "moments", 1, None, None)
    params = start(np.random.default_rng(0), config, 1, 1, np.ones((2, 1), np.float32))
    rows = TABLE[["a"]].to_numpy(np.float32), TABLE[["real"]].to_numpy(np.float32), np.zeros(N, np.int32) - 1
    batch = Batch(rows, np.ones(N, np.float32))
    arguments = (statistics, GradientSums(config), np.zeros(2, np.uint32), params)
    here, there = (source.sum(*arguments) for source in (Stream([batch]), Cluster(client, [batch])))
    assert_allclose(there["gradient"].W0, here["gradient"].W0, rtol=1e-5)
    assert_allclose(there["bound"], here["bound"], rtol=1e-5)


def test_a_partition_that_dask_cannot_compute_is_named_by_fit_and_by_lazy_predictions(request, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    for number in range(3):
        shard(number).to_parquet(tmp_path / f"{number}.parquet", index=False)
    files, store = dd.read_parquet(tmp_path), dd.from_map(shard, [0, -1, 2], meta=shard(0))
    model = SparseGPRegressor(n_inducing=4, max_iter=3, random_state=0).fit(files, "real")
    lazy = model.predict(files[["a"]])
    file = tmp_path / "2.parquet"
    file.write_bytes(file.read_bytes()[:300])
    for where in ("here", "workers"):
        if where == "workers":
            request.getfixturevalue("client")
        for number, work in (
            (1, lambda: model.fit(store, "real")),
            (1, lambda: model.fit(store[["a"]], store["real"])),
            (1, lambda: model.predict(store[["a"]]).compute()),
            (2, lambda: model.fit(files, "real")),
            (2, lambda: lazy.compute()),
        ):
            with pytest.raises(InputError, match=f"^partition {number}: Dask cannot compute it .*") as caught:
                work()
            assert caught.value.__cause__ is not None
            assert len(str(caught.value).splitlines()) == 1


@pytest.mark.gate
def test_killing_a_worker_in_a_fit_changes_nothing(folder, client, few_in_memory):
    model, target = ESTIMATORS["gp"]
    frame = frame_of(folder, target)
    expected = model.fit(frame, target).posterior_.alpha
    victim = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(0.2, os.kill, (victim, signal.SIGKILL))
    timer.start()
    try:
        found = model.fit(frame, target).posterior_.alpha
    finally:
        timer.join()
    assert_array_equal(found, expected)
    assert victim not in client.run(os.getpid, on_error="ignore").values()


def cut(place):
    """Some rows; nothing but their cells tells that a column holds numbers."""
    first, last = place
    return TABLE[first:last].astype({"b": object})


@pytest.mark.gate
def test_without_a_cluster_a_dask_frame_is_read_part_by_part_and_parts_may_be_empty(few_in_memory):
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    assert not is_parted(X)
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_map(cut, [(0, 0), (0, 250), (250, 250), (250, 600)], meta=cut((0, 0)))
    for name in ("gp", "rectangle", "harmonium_labels"):
        model, target = ESTIMATORS[name]
        used = frame[[*X.columns, *([target] if target else [])]]
        lazy = answers(model.fit(used, target), used)
        assert_allclose(lazy.compute(scheduler="synchronous"), answers(model, X), rtol=1e-12, atol=1e-14)
    assert [len(part.X) for part in as_source(frame).each(itself)] == [0, 250, 0, 350]
