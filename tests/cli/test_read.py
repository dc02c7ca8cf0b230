from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nongauss.cli.choose import Choice
from nongauss.cli.read import Declared, load_table, prepare
from nongauss.cli.split import declared_split
from nongauss.core.errors import InputError
from report.stand_in import small_data


def frame(n=60):
    X, y = small_data(n)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)


def test_rows_without_target_and_ids_are_dropped_with_a_note():
    table = frame().assign(code=[f"id{i}" for i in range(60)], label=["u", "v"] * 30, flat=1.0)
    table.loc[[3, 7], "y"] = np.nan
    ready = prepare(table, "y")
    assert len(ready.y) == 58
    assert list(ready.X.columns) == ["a", "b", "c", "label"]
    assert ready.kind.value == "real"
    assert (ready.choice.model, ready.choice.task) == ("auto", "regression")
    notes = " ".join(ready.notes)
    assert "Left out: 1 id: code (a different text in every row)." in notes
    assert "Every model that suits numbers was tried" in notes
    assert "58 rows (2 more have no target)" in str(ready.before)
    used = ready.info().used
    assert [(name, kind.partition(":")[0]) for name, kind in used] == [
        *((name, "number") for name in "abc"),
        ("label", "label"),
    ]
    assert [name for name, _ in ready.info().ignored] == ["code", "flat"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "Y_"}, "did you mean 'y'"),
        ({"target": "zzz"}, "there are: 'a', 'b', 'c', 'y'"),
        ({"table": frame().assign(y=np.nan)}, "missing in every row"),
        (
            {"table": frame().assign(y=[f"text {i}" for i in range(60)])},
            "60 different texts in 60 rows.*--kind label",
        ),
        ({"table": frame().assign(y=["no", "yes"] * 30), "task": "regression"}, "not numbers"),
        ({"table": frame()[["y"]]}, "No column is left"),
        ({"table": frame().iloc[:0]}, "no rows"),
        ({"model": "tgm"}, "did you mean 'tggm'"),
        ({"table": pd.concat([frame(), frame()[["a"]]], axis=1)}, "more than one column named 'a'"),
    ],
)
def test_what_cannot_be_fitted_is_named(change, message):
    arguments = {"table": frame(), "target": "y", "model": "auto", "task": "auto", **change}
    with pytest.raises(InputError, match=message):
        prepare(arguments["table"], arguments["target"], arguments["model"], arguments["task"])


def test_numbers_asked_for_as_numbers_overrule_the_kind():
    table = frame().assign(y=[0, 1] * 30)
    for asked in ({"task": "regression"}, {"model": "tggm", "task": "regression"}):
        ready = prepare(table, "y", **asked)
        assert ready.kind.value == "binary"
        assert (ready.choice.model, ready.choice.task) == (asked.get("model", "auto"), "regression")
        assert ready.y.dtype == np.float64
    assert "as asked" in ready.notes[1]


@pytest.mark.parametrize(
    ("y", "task", "labels"),
    [
        (["no", "yes"], "classification", ["no", "yes"]),
        ([1, 0], "classification", [0, 1]),
        ([1.0, 0.0], "classification", [0, 1]),
        (pd.array([True, False], dtype="boolean"), "classification", [False, True]),
        (pd.array([7, 5], dtype="Int64"), "classification", [5, 7]),
        (["c", "a", "b"], "classification", ["a", "b", "c"]),
        ([2, 1, 3], "classification", [1, 2, 3]),
    ],
)
def test_labels_keep_their_type(y, task, labels):
    table = frame(60).assign(y=pd.concat([pd.Series(y)] * (60 // len(y)), ignore_index=True))
    ready = prepare(table, "y")
    assert (ready.choice.model, ready.choice.task) == ("auto", task)
    assert np.unique(ready.y).tolist() == labels
    assert [type(label) for label in np.unique(ready.y).tolist()] == [type(label) for label in labels]
    assert (ready.levels is None) == (task == "classification")


def test_whole_numbers_with_a_gap_in_the_column_stay_whole():
    ready = prepare(frame().assign(y=[1.0, 2.0, np.nan] * 20), "y")
    assert ready.y.dtype == np.int64
    assert len(ready.X) == 40


def test_an_ordered_category_keeps_its_order_and_the_note_says_it():
    y = pd.Categorical(["bad", "good", "fair"] * 20, ["bad", "poor", "fair", "good"], ordered=True)
    ready = prepare(frame().assign(y=y), "y")
    assert ready.levels.tolist() == ["bad", "poor", "fair", "good"]
    assert ready.y.dtype == y.dtype
    assert (
        "Order: bad < poor < fair < good. It could also be label: --kind WORD overrides this"
        in ready.notes[0]
    )


def test_the_likelihood_is_named_and_can_be_set():
    table = frame().assign(y=np.random.RandomState(0).negative_binomial(2, 0.2, size=60))
    alone = prepare(table, "y", "sparse_gp")
    assert "with likelihood=negative_binomial (or " in str(alone.before)
    assert alone.notes[1].endswith("numbers with the negative binomial likelihood.")  # for readers of reports
    ready = prepare(table, "y", settings=["likelihood=poisson"])
    assert ready.choice.settings == {"likelihood": "poisson"}
    assert "with likelihood=poisson (or " in str(ready.before)


def test_one_bad_cell_among_numbers_is_named():
    y = [f"{i}.5" for i in range(60)]
    y[7], y[9] = "n/k", None
    ready = prepare(frame().assign(y=y), "y")
    assert len(ready.y) == 58
    assert any("'n/k'" in note for note in ready.notes)
    mixed = frame().assign(y=["1", "2", "x"] * 20)
    with pytest.raises(InputError, match="'x' in row 3"):
        prepare(mixed, "y")
    assert np.unique(prepare(mixed, "y", task="classification").y).tolist() == ["1", "2", "x"]
    assert prepare(frame().assign(y=["1", "x", "y"] * 20), "y").kind.value == "label"


def test_texts_that_all_differ_are_an_id_only_in_many_rows():
    names = [f"town {i}" for i in range(60)]
    few = frame(20).assign(town=names[:20])
    assert list(prepare(few, "y").X) == ["a", "b", "c", "town"]
    assert list(prepare(frame().assign(town=names), "y").X) == ["a", "b", "c"]


def test_what_evidence_does_not_take_is_fitted_alone_and_the_block_says_why():
    alone = prepare(frame(), "y", settings=["n_inducing=9"])
    assert (alone.choice.model, dict(alone.choice.settings)) == ("sparse_gp", {"n_inducing": 9})
    assert "a single model because the search over all models does not accept n_inducing" in " ".join(
        str(alone.before).split()
    )
    budget = prepare(frame(), "y", settings=["time_budget=60"])
    assert budget.choice == Choice("auto", "regression", {"time_budget": 60})
    declared = prepare(frame(), "y", declared=Declared(kind="real"))
    assert declared.choice.settings == {"kind": "real"}
    grades = pd.Categorical(["bad", "good", "fair"] * 20, ["bad", "fair", "good"], ordered=True)
    assert prepare(frame().assign(y=grades), "y").choice == Choice("auto", "ordinal", {"ordered": True})


def test_a_file_is_read(tmp_path):
    frame().to_csv(tmp_path / "data.csv", index=False)
    table = load_table(tmp_path / "data.csv", "y", settings=["tol=0.1"])
    assert (table.source, table.choice.settings) == ("data.csv", {"tol": 0.1})


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["x"] * 30, "nothing to predict in the target 'y'. It holds only the value x."),
        ([1.0, 2.5, np.inf] * 10, "'y' holds inf in row 3 below the names"),
    ],
)
def test_a_target_that_no_fit_can_use_is_refused_before_the_fit(cells, message):
    frame = pd.DataFrame({"a": np.arange(30) ** 2 % 17, "y": cells})
    with pytest.raises(InputError, match=message):
        prepare(frame, "y")


def test_how_a_file_was_read_stands_in_the_block_before_the_fit(tmp_path):
    rows = [f"{i % 7},caf\u00e9,{i * 0.37:.2f}" for i in range(40)]
    (tmp_path / "old.csv").write_bytes("\n".join(["Report of 2024", "a,b,y", *rows]).encode("latin-1"))
    table = load_table(tmp_path / "old.csv", "y")
    for said in ("not UTF-8; it was read as cp1252", "left out of old.csv as titles"):
        assert sum(said in note for note in table.before.notes) == 1
        assert any(said in note for note in table.notes)


def test_cells_that_were_declared_gaps_are_counted():
    frame = pd.DataFrame({"year built": [0, 1990, 0, 1954, 2001] * 8, "y": np.arange(40) * 0.3})
    table = prepare(frame, "y", declared=Declared(missing=("year built=0", "year built=7")))
    assert "--missing year built=0: 16 cells count as missing." in table.before.notes
    assert "--missing year built=7: no cell holds that value." in table.before.notes


def test_held_out_rows_that_are_settled_are_not_hinted_at():
    frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=40), "y": np.sin(np.arange(40))})
    assert "--split last" in str(prepare(frame, "y").before)
    for split in ("last", "test", "folds"):
        assert "--split" not in str(prepare(frame, "y", declared=Declared(split=split)).before)
    _, declared = declared_split("last", None, 0.2, Declared())
    assert declared.split == "last"


def test_a_name_that_is_not_there_is_told_with_the_encoding_of_the_file(tmp_path):
    (tmp_path / "t.csv").write_bytes("売上,気温\n1,2\n3,4\n".encode("shift_jis"))
    with pytest.raises(InputError, match=r"no column '売上'.* is not UTF-8; .*save it as UTF-8"):
        load_table(tmp_path / "t.csv", "売上")
