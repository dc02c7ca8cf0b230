import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine

from nongauss import RankFactorAnalysis, RankFactorClassifier
from nongauss.core.errors import InputError


@pytest.mark.filterwarnings("ignore:.*largest number of iterations")
def test_a_sample_of_the_rows_in_memory_or_of_parts(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    X.assign(kind=y).to_parquet(tmp_path / "wine.parquet", row_group_size=50)
    quick = {"n_factors": 2, "max_iter": 5, "random_state": 0}
    chosen = np.sort(np.random.default_rng(0).choice(len(X), 60, replace=False))
    sampled = RankFactorClassifier(max_rows=60, **quick).fit(X, y)
    alone = RankFactorClassifier(**quick).fit(X.iloc[chosen], y.iloc[chosen])
    assert_array_equal(sampled.predict_proba(X), alone.predict_proba(X))
    whole = RankFactorClassifier(**quick).fit(X, y)
    parts = RankFactorClassifier(max_rows=1000, **quick).fit(tmp_path, "kind")
    assert_allclose(parts.predict_proba(tmp_path), whole.predict_proba(X), rtol=1e-4, atol=1e-6)
    with pytest.raises(InputError, match="RankFactorAnalysis needs its rows in memory, since the rank"):
        RankFactorAnalysis().fit(tmp_path)
