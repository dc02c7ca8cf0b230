"""Tables past memory from the command line, on files in parts."""

import json
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from nongauss import SparseGPRegressor
from nongauss.cli import out_of_core
from nongauss.cli.app import app
from nongauss.cli.split import HeldOut
from nongauss.core.errors import InputError
from nongauss.estimator.persistence import load

QUICK = ["--max-epochs", "3", "--set", "n_inducing=5"]


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("table")
    X = rng.normal(size=(400, 2))
    frame = pd.DataFrame(X, columns=["width", "height"])
    frame["colour"] = rng.choice(["red", "blue"], 400)
    frame["sales"] = rng.poisson(np.exp(2 + np.sin(X[:, 0]) + (frame["colour"] == "red")))
    frame["id"] = [f"customer {number}" for number in range(400)]
    frame["sales"] = frame["sales"].where(frame.index % 100 != 7)  # a few are missing
    for i in range(2):
        frame[200 * i : 200 * i + 200].to_parquet(path / f"{i}.parquet", row_group_size=50, index=False)
    return path


def fitted(folder, out, engine):
    options = ["--target", "sales", "--out", out, "--engine", engine, "--json", *QUICK]
    result = run("fit", f"{folder}/*.parquet", *options)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def streamed(folder, tmp_path_factory):
    """The model file of a fit from disk, and what was printed."""
    out = tmp_path_factory.mktemp("out")
    return out / "model.nongauss", json.loads(fitted(folder, out, "stream").stdout)


def test_a_table_is_fitted_from_disk_judged_on_other_parts_and_predicted_part_by_part(
    folder, streamed, tmp_path
):
    file, record = streamed
    (name, figures), *_ = record["held_out"].items()
    assert name == "SparseGPRegressor"
    assert figures["coverage_90"] > 0.5
    assert any("from 2 of 8 parts" in note for note in record["notes"])
    assert list(record["held_out"]) == [name, "mean of the target", "log-linear regression"]
    assert record["verdict"]["worth"] in ("better", "no better")
    assert (file.parent / "report.html").exists()
    out = tmp_path / "pred.parquet"
    done = run("predict", file, folder, "--out", out)
    assert done.exit_code == 0, done.output
    table, model = pd.read_parquet(folder), load(file)
    assert list(model.feature_names_in_) == ["width", "height", "colour"]
    np.testing.assert_allclose(
        pd.read_parquet(out)["mean"], model.predict(table[["width", "height", "colour"]])
    )


def test_a_local_cluster_starts_where_no_address_is_given(monkeypatch):
    distributed = pytest.importorskip("distributed")
    small = partial(distributed.LocalCluster, n_workers=1, processes=False)  # processes: tests/test_parted.py
    monkeypatch.setattr(distributed, "LocalCluster", small)
    with out_of_core.dask_client(None) as where:
        assert distributed.get_client().ncores()
    assert where.startswith("Dask cluster of")
    assert "dashboard http" in where


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "spark"], "There is no engine 'spark'; there are: 'memory', 'stream', 'dask'."),
        (["--scheduler", "tcp://1"], "--scheduler goes with --engine dask, not memory"),
        (["--engine", "stream", "--target", "sale"], "did you mean 'sales'?"),
    ],
)
def test_what_cannot_be_is_one_sentence(folder, tmp_path, options, message):
    result = run("fit", folder, "--target", "sales", "--out", tmp_path, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert [line for line in result.stderr.splitlines() if " s  " not in line] == result.stderr.splitlines()[
        -1:
    ]
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_dask_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'nongauss\[dask\]'"), out_of_core.dask_client(None):
        pass


def test_a_part_that_fails_leaves_no_predictions(folder, streamed, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    good = pd.read_parquet(folder / "0.parquet")
    good.to_parquet(data / "0.parquet")
    good.assign(width=np.inf).to_parquet(data / "1.parquet")
    done = run("predict", streamed[0], data, "--out", tmp_path / "pred.parquet")
    assert done.exit_code == 2
    assert "1.parquet, row group 0: X holds infinity (inf) in column 'width', row 0" in done.stderr
    assert not list(tmp_path.glob("*pred*"))


@pytest.mark.filterwarnings("ignore:.*Stopped on request", "ignore:X has columns that are ignored")
@pytest.mark.parametrize("test_size", [0.0, 0.2])
def test_a_fit_that_is_stopped_is_not_kept(folder, test_size):
    table = out_of_core.sampled_table(folder, "sales")
    model = SparseGPRegressor("poisson", n_inducing=5, callbacks=[lambda progress: True], random_state=0)
    options = {"held_out": HeldOut(share=test_size), "seed": 0, "checkpoint": None}
    with pytest.raises(KeyboardInterrupt):
        out_of_core.fit_parts(model, table, folder, "stream", **options)
