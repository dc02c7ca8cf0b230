import gzip

import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.files import read_table, write_table

EXPECTED = pd.DataFrame({"a": [1.5, 2.25, -3.0], "name": ["Ann", "Bo", "Cé"]})


@pytest.mark.parametrize(
    "text",
    [
        "a,name\n1.5,Ann\n2.25,Bo\n-3.0,Cé\n",
        "a, name\r\n1.5, Ann\r\n2.25, Bo\r\n-3.0, Cé\r\n",
        "\n\na;name\n1,5;Ann\n2,25;Bo\n\n-3;Cé\n\n\n",
        "a\tname\n1,5\tAnn\n2,25\tBo\n-3,0\tCé",
        '"a","name"\n"1,5","Ann"\n"2,25","Bo"\n"-3,0","Cé"\n',
        "a;name\r1.5;Ann\r2.25;Bo\r-3.0;Cé\r",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_dialects_give_the_same_table(tmp_path, text, encoding):
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv"), EXPECTED)


def test_latin_1_is_read_with_a_warning(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes("a,name\n1.5,Ann\n2.25,Bo\n-3.0,Cé\n".encode("latin-1"))
    with pytest.warns(NongaussWarning, match="not UTF-8; it was read as cp1252") as caught:
        frame = read_table(file)
    pd.testing.assert_frame_equal(frame, EXPECTED)
    assert caught[0].filename == __file__
    file.write_bytes(b"a,name\n1,\x81\xe9\n")
    with pytest.warns(NongaussWarning, match="latin-1"):
        assert read_table(file)["name"][0] == "\x81é"


def test_missing_cells_and_quoted_fields(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('x,s\n1,"a, b"\n?,"two\nlines"\nNA,""\nnan,"say ""hi"""\n ,?\n')
    frame = read_table(file)
    np.testing.assert_array_equal(frame["x"], [1, np.nan, np.nan, np.nan, np.nan])
    assert frame["s"].tolist()[:2] == ["a, b", "two\nlines"]
    assert frame["s"][3] == 'say "hi"'
    assert frame["s"].isna().tolist() == [False, False, True, False, True]


def test_thousands_and_one_column(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("p;q\n1.234,5;1\n12,25;2\n")
    assert read_table(file)["p"].tolist() == [1234.5, 12.25]
    file.write_text('p,q\n"1,234",1\n"12,345",2\n')
    assert read_table(file)["p"].tolist() == [1234, 12345]
    file.write_text("p\n1\n\n3\n")
    np.testing.assert_array_equal(read_table(file)["p"], [1, np.nan, 3])
    file.write_text("first name\nAnn Lee\nBo Ek\n")
    assert read_table(file)["first name"].tolist() == ["Ann Lee", "Bo Ek"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv is empty"),
        ("\n \n", "t.csv is empty"),
        ("a,b\n", "column names but no rows"),
        ('"a","b"\n\n', "column names but no rows"),
        ("a,b\n1,2\n3\n4,5\n", r"line 3: expected 2 fields separated by commas, got 1"),
        ("a,b\n\n1,2\n3,4,5\n", r"line 4: expected 2 fields separated by commas, got 3"),
        ('a;b\n"x\ny";2\n3;4;5\n', r"line 4: expected 2 fields separated by semicolons, got 3"),
        ('a,b\n1,2\n"x,4\n5,6\n', "line 3"),
        ("a,b\n1;2\n3;4\n", r"line 2: expected 2 fields separated by commas, got 1"),
        ("a|b\n1|2\n3|4\n", r"separated by '\|'"),
        ("a b\n1 2\n3 4\n", "separated by blanks"),
        ("a b\n1;2\n3;4\n", "separated by semicolons"),
        ("a,b,a, b\n1,2,3,4\n", "more than one column named 'a', 'b'"),
        ("a;b\n1,5;2\n2.5;3\n", r"mixes decimal commas and decimal points in column 'a'.*'1,5', row 1"),
        ("a,b\0\n1,2\n", "not text"),
    ],
)
def test_faults_are_one_clear_sentence(tmp_path, content, message):
    file = tmp_path / "t.csv"
    file.write_text(content)
    with pytest.raises(InputError, match=message) as error:
        read_table(file)
    assert "t.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_numbers_in_the_first_line_warn(tmp_path):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    with pytest.warns(NongaussWarning, match="first line of t.csv holds numbers"):
        read_table(tmp_path / "t.csv")


def test_paths_and_damaged_files(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
    for name, message in [
        ("t.xlsx", "unknown ending '.xlsx'"),
        ("t.parquet", "cannot be read as Parquet"),
        ("t.csv.gz", "damaged or not gzipped"),
    ]:
        (tmp_path / name).write_text("nonsense")
        with pytest.raises(InputError, match=message):
            read_table(str(tmp_path / name))
    whole = gzip.compress(b"a,b\n1,2\n" * 100)
    (tmp_path / "t.csv.gz").write_bytes(whole[:-12])
    with pytest.raises(InputError, match="damaged or not gzipped"):
        read_table(tmp_path / "t.csv.gz")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
def test_round_trip(tmp_path, name):
    frame = EXPECTED.assign(n=[1, 2, 3], text=['with "quotes"', "a, b", "two\nlines"])
    write_table(frame, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), frame)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    with pytest.raises(InputError, match="column names but no rows"):
        write_table(frame[:0], tmp_path / name) or read_table(tmp_path / name)


def test_unknown_ending_writes_nothing(tmp_path):
    with pytest.raises(InputError, match="unknown ending"):
        write_table(EXPECTED, tmp_path / "t.xyz")
    assert not list(tmp_path.iterdir())
