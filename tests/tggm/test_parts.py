import numpy as np
from numpy.testing import assert_array_equal

from nongauss.tables.sample import Encoded, Sample
from nongauss.tables.source import Stream
from nongauss.tggm.config import NetworkConfig, TrainingRecipe
from nongauss.tggm.data import HeldOutInputs, NetworkRows
from nongauss.tggm.fit import fit

RNG = np.random.default_rng(0)
CONFIG = NetworkConfig((4,), "ml", "moments", 5, None, None)
RECIPE = TrainingRecipe(2, 64, 0.01, 3, patience=10, tol=1e-4, validation_fraction=0.2)


def rows(n):
    X = RNG.normal(size=(n, 2)).astype(np.float32)
    return Encoded(X, np.sin(X[:, :1]), RNG.uniform(5.0, 9.0, n))


def test_held_out_rows_are_told_by_their_inputs_wherever_they_are():
    all_rows = rows(300)
    data = NetworkRows(*Sample.of(all_rows, 100).rows)
    fold = np.where(np.arange(100) % 4 < 2, np.arange(100) % 4, -1).astype(np.int32)
    folds = HeldOutInputs.of_rows(data, fold)
    assert_array_equal(folds.folds_of(data.X), fold)
    assert (folds.folds_of(all_rows.X) >= 0).sum() == 50
    assert_array_equal(folds.folds_of(rows(20).X), np.full(20, -1))


def test_a_fit_does_not_depend_on_the_unit_of_the_weights():
    all_rows = rows(300)
    found = []
    for unit in (1.0, 64.0):
        cut = [Encoded(*(array[a:b] for array in all_rows)) for a, b in ((0, 90), (90, 300))]
        source = Stream([part._replace(weight=unit * part.weight) for part in cut])
        first = Sample.of(all_rows._replace(weight=unit * all_rows.weight), 100)
        result, ensemble = fit(0, NetworkRows(*first.rows), CONFIG, RECIPE, source)
        found.append(ensemble.params.W0)
        assert len(result.trace) == 3
        assert "held_out" in result.trace[0]
    assert_array_equal(*found)
