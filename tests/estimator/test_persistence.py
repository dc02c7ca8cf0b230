import contextlib
import json
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.linear_model import LinearRegression

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.records import persistable
from nongauss.core.sealed import write_sealed
from nongauss.estimator.base import NongaussEstimator
from nongauss.estimator.model_file import manifest_of
from nongauss.estimator.persistence import load, save
from nongauss.optimise.course import FitResult, Status


@persistable("test.Line")
class Line(NongaussEstimator):
    """The least-squares line: the smallest thing that has parameters, arrays and a trace."""

    def __init__(self, ridge=0.1, sizes=(3, 2), callbacks=None, random_state=None):
        self.ridge = ridge
        self.sizes = sizes
        self.callbacks = callbacks
        self.random_state = random_state

    def fit(self, X, y):
        self.coef_ = np.linalg.solve(X.T @ X + self.ridge * np.eye(X.shape[1]), X.T @ y)
        self._scale = {"mean": X.mean(axis=0), "names": ("a", "b")}
        self.scratch = object()  # no trailing or leading underscore: not part of what fit leaves behind
        trace = [{"iteration": 1, "bound": -np.inf, "seconds": 0.1}]
        self._record_fit(FitResult(None, trace, Status.CONVERGED, 1))
        return self

    def predict(self, X):
        return X @ self.coef_


class Foreign(Line):
    """Not marked and not of the package."""


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 4)), rng.normal(size=30)


@pytest.fixture
def saved(tmp_path, data):
    path = tmp_path / "model.nongauss"
    save(Line(random_state=3).fit(*data), path)
    return path


@contextlib.contextmanager
def at_most_a_megabyte():
    """No file of this process may grow past this size, as on a full disk."""
    resource = pytest.importorskip("resource", reason="limits of a process are there on Unix only")
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)


def rewrite(path, **changes):
    """The file with parts of its manifest replaced."""
    with safe_open(path, framework="numpy") as file:
        manifest = json.loads(file.metadata()["nongauss"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    del manifest["sha256"]
    write_sealed(path, tensors, "nongauss", {**manifest, **changes})
    return manifest


def test_there_and_back_to_the_last_bit(saved, data):
    X, y = data
    model, back = Line(random_state=3).fit(X, y), load(str(saved))
    assert type(back) is Line
    assert back.get_params() == model.get_params()
    assert np.array_equal(back.predict(X), model.predict(X))
    assert back._scale["names"] == ("a", "b")
    assert back.trace_.equals(model.trace_)
    assert back.converged_ is True
    assert back.coef_.flags.writeable
    assert set(vars(model)) - set(vars(back)) == {"scratch"}
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_an_unfitted_estimator_can_be_saved(tmp_path):
    save(Line(ridge=float("inf")), tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.ridge == float("inf")
    assert not hasattr(back, "coef_")


def test_functions_and_generators_are_left_out_with_a_warning(tmp_path, data):
    live = [
        ({"callbacks": [print]}, {"callbacks": []}),
        ({"callbacks": print}, {"callbacks": None}),
        ({"random_state": np.random.RandomState(0)}, {"random_state": None}),
        ({"random_state": np.random.default_rng(0)}, {"random_state": None}),
    ]
    for given, kept in live:
        with pytest.warns(NongaussWarning, match=f"'{next(iter(given))}' holds functions") as caught:
            save(Line(**given).fit(*data), tmp_path / "m")
        assert caught[0].filename == __file__
        assert load(tmp_path / "m").get_params() == {**Line().get_params(), **kept}


def test_routing_requests_are_left_out_with_a_warning(tmp_path):
    model = Line()
    model._metadata_request = object()  # what set_fit_request leaves there is scikit-learn's own
    with pytest.warns(NongaussWarning, match="Metadata-routing") as caught:
        save(model, tmp_path / "m")
    assert caught[0].filename == __file__
    assert not hasattr(load(tmp_path / "m"), "_metadata_request")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(saved, data, monkeypatch):
    before = saved.read_bytes()
    model = Line().fit(*data)
    model.bad_ = {1, 2}
    with pytest.raises(InputError, match="Attribute 'bad_' of Line cannot be saved"):
        save(model, saved)
    del model.bad_

    monkeypatch.setattr(model, "coef_", np.zeros(10**6))  # 8 MB, of which a file of at most 1 MB takes a part
    with at_most_a_megabyte(), pytest.raises(OSError):
        save(model, saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_only_estimators_that_can_come_back_are_saved(tmp_path):
    for other in (LinearRegression(), Foreign(), "text"):
        with pytest.raises(InputError, match="Only nongauss estimators can be saved"):
            save(other, tmp_path / "m")
    with pytest.raises(InputError, match="does not exist"):
        save(Line(), tmp_path / "nowhere" / "m")
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_ours_get_a_clear_error(tmp_path, saved):
    with pytest.raises(InputError, match="There is no file"):
        load(tmp_path / "missing")
    (tmp_path / "text").write_text("a,b\n1,2\n" * 20)
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "text")
    for metadata in (None, {"format": "pt"}, {"nongauss": "{"}, {"nongauss": "[]"}):
        save_file({"w": np.zeros(2)}, tmp_path / "foreign", metadata=metadata)
        with pytest.raises(InputError, match=r"not written by nongauss\.save"):
            load(tmp_path / "foreign")
    whole = saved.read_bytes()
    for length in (0, 4, 100, len(whole) - 1):
        saved.write_bytes(whole[:length])
        with pytest.raises(InputError, match="truncated"):
            load(saved)


def test_versions(saved):
    rewrite(saved, format_version=99, package_version="7.0")
    with pytest.raises(InputError, match=r"version 99, written by nongauss 7\.0.*upgrade"):
        load(saved)
    rewrite(saved, format_version=None)
    with pytest.raises(InputError, match="damaged"):
        load(saved)


@pytest.mark.parametrize(
    "name",
    [
        "subprocess:Popen", "os:system", "nongauss.nowhere:Model", "nongauss.core.errors:InputError",
        "nongauss.estimator.persistence:Path", "nongauss.estimator.persistence:NongaussEstimator",
        "nongauss.__main__:x", "nongauss:os", "", ":", "nongauss.:x",
        "Foreign", "load", "__version__",
    ],
)  # fmt: skip
def test_a_class_that_files_may_not_name_is_never_built(saved, name):
    imported = set(sys.modules)
    rewrite(saved, **{"class": name})
    with pytest.raises(InputError, match="unknown class"):
        load(saved)
    assert not [module for module in set(sys.modules) - imported if not module.startswith("nongauss")]


def test_a_changed_byte_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        saved.write_bytes(changed)
        with pytest.raises(InputError, match=r"cannot be read|holds no nongauss model|checksum is gone"):
            load(saved)
    saved.write_bytes(whole)
    load(saved)


def test_a_file_that_lost_its_checksum_is_refused_and_an_older_one_warned_of(saved):
    manifest = rewrite(saved)
    with safe_open(saved, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, saved, metadata={"nongauss": json.dumps(manifest)})
    with pytest.raises(InputError, match="its checksum is gone"):
        load(saved)
    save_file(tensors, saved, metadata={"nongauss": json.dumps({**manifest, "format_version": 2})})
    with pytest.warns(NongaussWarning, match="have no checksum.*Save the model anew"):
        load(saved)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manifest_of(saved)  # load has warned


def test_nothing_is_allocated_that_the_file_does_not_hold(saved):
    fitted = rewrite(saved)["fitted"]
    wide = {"$": "strings", "dtype": "<U100000000", "shape": [2], "items": ["a", "b"]}
    rewrite(saved, fitted={**fitted, "wide_": wide})
    assert load(saved).wide_.nbytes == 8
    rewrite(saved, fitted={**fitted, "wide_": {**wide, "dtype": "<U1", "items": ["ab", "c"]}})
    with pytest.raises(InputError, match="does not fit this version"):
        load(saved)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 10_000, '{"format": NaN}'])
def test_text_that_no_model_has_is_refused(saved, text):
    save_file({}, saved, metadata={"nongauss": text})
    with pytest.raises(InputError, match="holds no nongauss model"):
        load(saved)


@pytest.mark.parametrize("version", [True, 2.0, "3", -1, None])
def test_a_format_is_a_whole_number(saved, version):
    rewrite(saved, format_version=version)
    with pytest.raises(InputError, match="damaged"):
        load(saved)


def test_a_tampered_manifest_is_refused(saved):
    manifest = rewrite(saved)
    for changes, message in [
        ({"parameters": {**manifest["parameters"], "depth": 3}}, "does not fit this version"),
        ({"fitted": {**manifest["fitted"], "predict": 3}}, "which no fit does"),
        ({"fitted": {**manifest["fitted"], "__dict__": 3}}, "which no fit does"),
        ({"fitted": {"coef_": {"$": "tensor", "name": "t99", "fortran": False}}}, "does not fit"),
        ({"fitted": 3}, "does not fit"),
    ]:
        rewrite(saved, **changes)
        with pytest.raises(InputError, match=message):
            load(saved)
        rewrite(saved, **manifest)


def test_a_new_process_predicts_the_same_bits(tmp_path):
    from nongauss import TGGMRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few iterations are enough here
        model = TGGMRegressor(hidden_layer_sizes=(3,), max_epochs=5, random_state=0).fit(X, y)
    save(model, tmp_path / "model.nongauss")
    np.save(tmp_path / "X.npy", X)
    code = """
        import sys, numpy as np, nongauss
        model = nongauss.load(sys.argv[1] + "/model.nongauss")
        X = np.load(sys.argv[1] + "/X.npy")
        distribution = model.predict_distribution(X)
        np.savez(sys.argv[1] + "/out.npz", mean=model.predict(X), interval=distribution.interval(0.9))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], check=True)
    with np.load(tmp_path / "out.npz") as out:
        assert np.array_equal(out["mean"], model.predict(X))
        assert np.array_equal(out["interval"], model.predict_interval(X, 0.9))
