"""One way in: a table in memory, in Parquet files and on Dask tells the same, and is decoded once."""

import itertools
from functools import partial, reduce
from operator import add

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from encoding import encoder_of
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables import kinds
from nongauss.tables.frame import read_input
from nongauss.tables.labels import LabelCoder, class_target, labels_of
from nongauss.tables.learn import as_source, learn, summarise, told_once
from nongauss.tables.source import Encode, Part, sample, sample_table
from nongauss.tables.target import TargetScaler, scaled_target, target_of

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
REAL = RNG.gamma(2.0, size=N)
ignores = pytest.mark.filterwarnings("ignore:X has columns that are ignored")


def summary(cuts, table=TABLE, weight=WEIGHT):
    pairs = itertools.pairwise(cuts)
    parts = [Part(f"part {a}", table.iloc[a:b], None, weight[a:b]) for a, b in pairs]
    return reduce(add, [s for s in (summarise(part, "test") for part in parts) if s is not None])


@pytest.fixture
def path(tmp_path):
    table = TABLE.assign(target=REAL, weight=WEIGHT, at_risk=1.0 + np.arange(N))
    table.to_parquet(tmp_path / "t.parquet", row_group_size=90)
    return str(tmp_path)


def scale_of(x, weight):
    """Mean and standard deviation as they have always been computed: shares of the largest weight."""
    unit = 2.0 ** np.floor(np.log2(np.abs(x).max()))
    z, share = x / unit, weight / weight.max()
    share = share / share.sum()
    mean = np.sum(share * z)
    mean += np.sum(share * (z - mean))
    return unit, float(mean), float(np.sqrt(np.sum(share * (z - mean) * (z - mean))))


@ignores
def test_of_one_part_in_memory_scales_are_those_of_its_rows_to_the_last_bit():
    encoder = learn(as_source(TABLE, None, WEIGHT)).encoder
    for code in encoder.columns[:3]:
        kept = (WEIGHT > 0) & TABLE[code.name].notna().to_numpy()
        unit, mean, sd = scale_of(TABLE[code.name].to_numpy()[kept], WEIGHT[kept])
        assert (code.unit, code.mean, abs(code.sd)) == (unit, mean, sd)
    assert encoder_of(TABLE, WEIGHT) == encoder


@ignores
@pytest.mark.parametrize("cuts", [[0, 400], [0, 1, 1, 350, 351, 400]])
def test_the_encoder_of_the_parts_is_that_of_the_table(cuts):
    whole, parts = learn(as_source(TABLE, None, WEIGHT)).encoder, summary(cuts).encoder
    assert parts.encoded_names == whole.encoded_names
    for mine, its in zip(parts.columns, whole.columns, strict=True):
        assert (mine.name, mine.role, mine.gaps, mine.levels) == (its.name, its.role, its.gaps, its.levels)
        numbers = [(c.unit, c.mean, c.sd, c.share) for c in (mine, its)]
        assert_allclose(*numbers, rtol=1e-10)
    assert_allclose(parts.as_scaled(TABLE), whole.as_scaled(TABLE), atol=1e-8)
    counted = whole.as_scaled(TABLE)[WEIGHT > 0]
    largest = np.abs(counted).max(axis=0)
    extremes = summary(cuts).extremes
    is_number = [name in ("skewed", "gaps", "tiny") for name in parts.encoded_names]
    assert_allclose(extremes[is_number], largest[is_number], rtol=1e-8)


@ignores
def test_memory_parquet_and_dask_give_the_same_rows(path):
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.read_parquet(path)
    lazy = dd.from_pandas(frame, npartitions=3)
    sources = [
        as_source(TABLE, REAL, WEIGHT, at_risk=1.0 + np.arange(N)),
        as_source(path, "target", "weight", at_risk="at_risk"),
        as_source(lazy, "target", "weight", at_risk="at_risk"),
        as_source(lazy[list(TABLE)], lazy.target, lazy.weight, at_risk=lazy.at_risk),
    ]
    assert [source.n_parts for source in sources] == [1, 5, 3, 3]
    learned = learn(sources[0], "test", partial(target_of, "test"))
    scaler = learned.target.scaler()
    assert scaler.centre == TargetScaler.fit(REAL[:, None], WEIGHT).centre
    encode = Encode(learned.encoder, partial(scaled_target, scaler, "test"), "test")
    first = sample(sources[0].map(encode), 10)
    assert first.is_all
    order = first.places(WEIGHT)
    assert_array_equal(order >= 0, WEIGHT > 0)
    scaled = learned.encoder.as_scaled(TABLE).astype(np.float32)
    assert_array_equal(first.rows.X[order[WEIGHT > 0]], scaled[WEIGHT > 0] + np.float32(0))
    at_risk = []
    for source in sources:
        other = learn(source, "test", partial(target_of, "test"))
        assert_allclose(other.target.scaler().centre, scaler.centre, rtol=1e-12)
        assert (other.counted.rows, other.gaps) == (learned.counted.rows, True)
        rows = sample(source.map(encode), 1000)
        assert rows.checksum == first.checksum
        assert_array_equal(rows.rows.X, first.rows.X)
        assert_array_equal(rows.rows.Y, first.rows.Y)
        at_risk.append(np.concatenate([np.asarray(part.beside["at_risk"]) for part in source.each(itself)]))
        table = sample_table(source, encode, 7)
        assert not table.is_all
        assert_array_equal(
            learned.encoder.as_scaled(table.table, warn=False).astype(np.float32)[:, 0], rows.rows.X[:7, 0]
        )
    for other in at_risk:
        assert_array_equal(other, at_risk[0])


def itself(part):
    return part


def test_labels_are_learned_and_encoded_on_the_way():
    y = np.where(REAL > 2, "large", "small")
    source = as_source(TABLE[["skewed"]], y, WEIGHT)
    learned = learn(source, "test", partial(labels_of, "test"))
    coder = learned.target.coder("test")
    assert_array_equal(coder.classes, LabelCoder.fit(y, WEIGHT).classes)
    (rows,) = source.map(Encode(learned.encoder, partial(class_target, coder, "test"))).each(itself)
    assert_array_equal(rows.Y[:, 0], (y == "small")[WEIGHT > 0])


@ignores
def test_a_part_in_memory_is_decoded_once(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "nongauss.tables.frame.decode", lambda *args: seen.append(args[0]) or kinds.decode(*args)
    )
    source = as_source(TABLE, None, WEIGHT)
    encoder = learn(source).encoder
    sample(source.map(Encode(encoder)), None)
    (part,) = source.each(itself)
    encoder.raw(part.X)
    encoder.as_ranks(part.X.take(np.arange(5)))
    assert sorted(seen) == sorted(TABLE)


def test_a_column_of_a_table_can_be_put_in_another_s_place(monkeypatch):
    table = read_input(TABLE)
    encoder = learn(as_source(TABLE[["skewed", "label", "gaps"]])).encoder
    with pytest.warns(NongaussWarning, match="ignored: columns 'tiny'"):
        before = encoder.as_scaled(table)
    seen = []
    monkeypatch.setattr(
        "nongauss.tables.frame.decode", lambda *args: seen.append(args[0]) or kinds.decode(*args)
    )
    turned = TABLE.assign(label=TABLE.label.to_numpy()[::-1])
    after = encoder.as_scaled(table.with_column("label", turned.label), warn=False)
    assert seen == ["label"]
    assert_array_equal(after, encoder.as_scaled(turned, warn=False))
    one = encoder.as_scaled(table.with_column("label", "low"), warn=False)
    assert_array_equal(one[:, encoder.encoded_names.index("label=low")], 1.0)
    assert_array_equal(encoder.as_scaled(table.select(["label", "gaps", "skewed"])), before)
    assert_array_equal(
        encoder.as_scaled(table.take(TABLE.label == "low"), warn=False), before[TABLE.label == "low"]
    )
    pd.testing.assert_frame_equal(table.with_column("label", turned.label).as_frame(), turned)
    array = read_input(np.eye(3)).with_column(1, [5.0, 6.0, 7.0])
    assert_array_equal(array.as_frame()["x1"], [5.0, 6.0, 7.0])
    assert_array_equal(array.column(1).values, [5.0, 6.0, 7.0])
    with pytest.raises(InputError, match="X has no column 'colour'"):
        table.with_column("colour", "red")
    with pytest.raises(InputError, match="would get 2 cells, but X has 3 rows"):
        read_input(np.eye(3)).with_column("x1", [1.0, 2.0])


@ignores
def test_a_sparse_table_tells_of_its_columns_what_the_dense_one_does():
    cells = sparse.random(60, 40, density=0.2, random_state=0, format="csr")
    cells.data = np.where(RNG.random(cells.nnz) < 0.5, np.ceil(4 * cells.data), cells.data - 0.5)
    dense = cells.toarray()
    dense[:, 3] = 0.0
    dense[:, 4] = RNG.normal(size=60)
    dense[:, 5] = 7.0
    dense[:, 6] = RNG.choice([0.0, 2.0], 60)
    dense[:, 7] = RNG.choice([1.0, 2.0], 60)
    weight = RNG.integers(0, 3, 60).astype(float)
    for kept in (weight, np.ones(60)):
        mine = learn(as_source(sparse.csr_array(dense), None, kept, accept_sparse=True))
        its = learn(as_source(dense, None, kept))
        assert mine.counted == its.counted
        assert mine.encoder.encoded_names == its.encoder.encoded_names
        for a, b in zip(mine.columns, its.columns, strict=True):
            assert (a.name, a.place, a.gaps) == (b.name, b.place, b.gaps)
            a, b = a.numbers, b.numbers
            assert (a.unit, a.low, a.high, sorted(a.few)) == (b.unit, b.low, b.high, sorted(b.few))
            assert_array_equal([a.fraction, a.whole], [b.fraction, b.whole])
            numbers = [(m.weight, m.mean, m.variance, m.skewness, m.positive) for m in (a, b)]
            assert_allclose(*numbers, rtol=1e-11, atol=1e-13)
    cells.data[5] = np.inf
    with pytest.raises(InputError, match="sparse and holds NaN or infinity"):
        as_source(cells, accept_sparse=True)


def test_parts_of_different_kinds_or_columns_are_named():
    odd = TABLE.assign(gaps=["text"] * N)
    with pytest.raises(InputError, match="Column 'gaps' holds text in part 0 but numbers in part 0"):
        summary([0, 400]) + summary([0, 400], odd)
    with pytest.raises(InputError, match="differ in column 'pair'; give all parts the same columns"):
        summary([0, 400]) + summary([0, 400], TABLE.drop(columns="pair"))


def test_columns_are_told_by_their_names_where_they_have_some():
    turned = TABLE[TABLE.columns[::-1]]
    both = summary([0, 100]) + summary([0, 400], turned[100:], WEIGHT[100:])
    assert both.encoder.columns == summary([0, 100, 400]).encoder.columns
    with pytest.warns(NongaussWarning, match="ignored"):
        both.warn()
    arrays = [summary([0, 3], pd.DataFrame(np.eye(3)[:, names], columns=names)) for names in ([0, 1], [1, 0])]
    with pytest.raises(InputError, match="differ in columns '0', '1'"):
        arrays[0] + arrays[1]


def test_an_ordered_category_keeps_its_order_whatever_each_part_declares():
    def part(*levels):
        cells = pd.Categorical(levels, categories=levels, ordered=True)
        return summarise(Part("part", pd.DataFrame({"size": cells}), None, None), "test")

    (code,) = (part("s", "l") + part("s", "m", "l") + part("m", "l")).encoder.columns
    assert dict(zip(code.levels, code.ranks, strict=True)) == {"s": 0, "m": 1, "l": 2}
    (code,) = (part("s", "l") + part("l", "s")).encoder.columns
    assert code.ranks == ()


def test_whole_weights_are_repetitions_and_rows_of_weight_0_are_not_there():
    once, twice = summary([0, 400], weight=np.ones(N)), summary([0, 400], weight=2 * np.ones(N))
    assert (once.counted.n_rows, twice.counted.n_rows) == (400, 800)
    assert summary([0, 10, 400], weight=np.where(np.arange(N) < 10, 0.0, 0.5)).counted.n_rows == 390
    X = np.array([[1.0], [3.0], [1e6]])
    source = as_source(X, None, [1, 1, 0])
    assert_allclose(learn(source).encoder.as_scaled(X)[:2, 0], [-1, 1])
    with pytest.raises(InputError, match="sample_weight"):
        as_source([[1.0], [2.0]], None, [1, 1, 1])
    with pytest.raises(InputError, match="All entries of sample_weight are zero"):
        as_source([[1.0], [2.0]], None, [0, 0])


def test_errors_of_a_table_in_memory_name_no_part(path):
    with pytest.raises(InputError, match=r"^X holds infinity"):
        learn(as_source([[1.0], [np.inf]]))
    with pytest.raises(TypeError, match=r"^Column 'x0' of X, row 1"):
        learn(as_source(np.array([[1.0], [{}]], dtype=object)))
    with pytest.raises(InputError, match=r"t.parquet, row group 0 has no column 'w' for the sample_weight"):
        learn(as_source(path, "target", "w"))
    with pytest.raises(InputError, match="at_risk must be the name of a column"):
        as_source(path, "target", at_risk=np.ones(3))


@ignores
def test_some_flat_columns_can_be_read_of_a_table_that_lacks_the_others():
    encoder = learn(as_source(TABLE)).encoder
    gaps, label = encoder.raw(TABLE[["label", "gaps"]], only=[1, 3])
    assert_array_equal(gaps.values, TABLE.gaps)
    assert label.levels == ("9", "10", "high", "low")
    with pytest.raises(InputError, match="X lacks column 'label'"):
        encoder.raw(TABLE[["gaps"]], only=[1, 3])
    X = RNG.normal(size=(5, 4))
    encoder = learn(as_source(X)).encoder
    for table in (X, X[:, [1, 3]]):
        assert_array_equal(
            np.stack([c.values for c in encoder.raw(table, only=[1, 3])], axis=1), X[:, [1, 3]]
        )
    with pytest.raises(InputError, match="X has 3 features, but Model is expecting 4 features as input"):
        encoder.raw(X[:, :3], "Model", only=[1, 3])


def test_texts_among_values_become_gaps_that_are_told_once_of_the_whole_column(recwarn):
    texts = [f"${n}" for n in range(10, 108)] + ["junk", "junk"]
    plain = pd.DataFrame({"x": np.arange(100.0)})
    table, said = told_once(read_input(plain.assign(price=texts)))
    assert said == ["Column 'price' has cells without a value, which count as missing: 'junk' (2 cells)."]
    price = table.take(np.arange(90, 100)).column(1)
    np.testing.assert_array_equal(price.values, [*range(100, 108), np.nan, np.nan])
    assert price.lost == ""
    learn(as_source(table))
    assert not recwarn.list


def test_an_ordered_category_keeps_its_order_on_disk(tmp_path):
    levels = ["low", "mid", "high", "top"]
    grade = pd.Categorical(["high"] * 4 + ["low"] * 4 + ["mid"] * 4, levels, ordered=True)
    frame = pd.DataFrame({"size": grade, "grade": grade})
    frame.to_parquet(tmp_path / "1.parquet", row_group_size=4)  # a level a part
    learned = learn(as_source(tmp_path, "grade"), "test", partial(labels_of, "test"))
    assert learned.target.coder("test", ordered=True).classes.tolist() == levels
    (code,) = learned.encoder.columns
    assert dict(zip(code.levels, code.ranks, strict=True)) == {"low": 0, "mid": 1, "high": 2}
