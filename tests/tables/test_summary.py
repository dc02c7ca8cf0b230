import itertools
from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.parquet import Part
from nongauss.tables.summary import summarise

RNG = np.random.default_rng(0)
N = 400
TABLE = pd.DataFrame(
    {
        "skewed": 1e6 - RNG.gamma(2.0, size=N),
        "gaps": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "tiny": 1e-200 * RNG.gamma(1.0, size=N),
        "label": RNG.choice(["low", "high", "10", "9"], N),
        "pair": RNG.choice(["yes", "no"], N),
        "late": [None] * 350 + ["a", "b"] * 25,
        "constant": 0.3,
        "empty": [None] * N,
        "id": [f"row {i}" for i in range(N)],
    }
)
WEIGHT = RNG.integers(0, 3, N).astype(float)


def summary(cuts, table=TABLE, weight=WEIGHT):
    pairs = itertools.pairwise(cuts)
    parts = [Part(f"part {a}", table.iloc[a:b], None, weight[a:b]) for a, b in pairs]
    return reduce(add, [s for s in (summarise(part, "test") for part in parts) if s is not None])


@pytest.mark.parametrize("cuts", [[0, 400], [0, 1, 1, 350, 351, 400]])
@pytest.mark.filterwarnings("ignore:X has columns that are ignored")
def test_the_encoder_of_the_parts_is_that_of_the_table(cuts):
    whole, parts = TableEncoder.fit(TABLE, WEIGHT), summary(cuts).encoder()
    assert parts.encoded_names == whole.encoded_names
    for mine, its in zip(parts.columns, whole.columns, strict=True):
        assert (mine.name, mine.role, mine.gaps, mine.levels) == (its.name, its.role, its.gaps, its.levels)
        numbers = [(c.unit, c.mean, c.sd, c.share) for c in (mine, its)]
        assert_allclose(*numbers, rtol=1e-10)
    assert_allclose(parts.transform(TABLE), whole.transform(TABLE), atol=1e-8)
    counted = whole.transform(TABLE)[WEIGHT > 0]
    largest = np.abs(counted).max(axis=0)
    extremes = summary(cuts).extremes(parts)
    is_number = [name in ("skewed", "gaps", "tiny") for name in parts.encoded_names]
    assert_allclose(extremes[is_number], largest[is_number], rtol=1e-8)


def test_parts_of_different_kinds_or_columns_are_named():
    odd = TABLE.assign(gaps=["text"] * N)
    with pytest.raises(InputError, match="Column 'gaps' holds text in part 0 but numbers in part 0"):
        summary([0, 400]) + summary([0, 400], odd)
    with pytest.raises(InputError, match="differ in column 'pair'; give all parts the same columns"):
        summary([0, 400]) + summary([0, 400], TABLE.drop(columns="pair"))


def test_columns_are_told_by_their_names_where_they_have_some():
    turned = TABLE[TABLE.columns[::-1]]
    both = (summary([0, 100]) + summary([0, 400], turned[100:], WEIGHT[100:])).encoder
    with pytest.warns(NongaussWarning, match="ignored"):
        assert both().columns == summary([0, 100, 400]).encoder().columns
    arrays = [summary([0, 3], pd.DataFrame(np.eye(3)[:, names], columns=names)) for names in ([0, 1], [1, 0])]
    with pytest.raises(InputError, match="differ in columns '0', '1'"):
        arrays[0] + arrays[1]


def test_an_ordered_category_keeps_its_order_whatever_each_part_declares():
    def part(*levels):
        cells = pd.Categorical(levels, categories=levels, ordered=True)
        return summarise(Part("part", pd.DataFrame({"size": cells}), None, None), "test")

    (code,) = (part("s", "l") + part("s", "m", "l") + part("m", "l")).encoder().columns
    assert dict(zip(code.levels, code.ranks, strict=True)) == {"s": 0, "m": 1, "l": 2}
    (code,) = (part("s", "l") + part("l", "s")).encoder().columns
    assert code.ranks == ()


def test_whole_weights_are_repetitions_and_rows_of_weight_0_are_not_there():
    once, twice = summary([0, 400], weight=np.ones(N)), summary([0, 400], weight=2 * np.ones(N))
    assert (once.counted.n_rows, twice.counted.n_rows) == (400, 800)
    assert summary([0, 10, 400], weight=np.where(np.arange(N) < 10, 0.0, 0.5)).counted.n_rows == 390
