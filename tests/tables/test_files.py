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
    with pytest.warns(NongaussWarning, match="'p' holds numbers such as '1,234', read as 1234 and not"):
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
        ("a b\n1|2\n3|4\n", r"separated by '\|'"),
        ("a b\n1 2\n3 4\n", "separated by blanks"),
        ("a b\n1;2\n3;4\n", "separated by semicolons"),
        ("a,b,a, b\n1,2,3,4\n", "more than one column named 'a', 'b'"),
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


def test_a_column_in_two_styles_stays_text_and_leaves_the_others_numbers(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a;b\n1,5;2,5\n2.5;3,25\n")
    with pytest.warns(NongaussWarning, match=r"'a' mixes decimal commas and decimal points .*'1,5', row 1"):
        table = read_table(file)
    assert table["a"].tolist() == ["1,5", "2.5"]
    assert table["b"].tolist() == [2.5, 3.25]


def test_headings_above_several_columns_are_part_of_their_names(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(
        ",Q1,,Q2,,\nRegion,Units,Price,Units,Price,Sum\n" + "N,1,2.5,3,4.5,5\nS,2,1.5,4,3.5,6\n" * 3
    )
    with pytest.warns(
        NongaussWarning, match=r"Two lines of column names .* 'Q1 Units', 'Q1 Price', 'Q2 Units'"
    ):
        table = read_table(file)
    assert list(table) == ["Region", "Q1 Units", "Q1 Price", "Q2 Units", "Q2 Price", "Sum"]
    assert table["Q2 Price"].tolist()[:2] == [4.5, 3.5]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("a,b,c,d,e\nkg,m,m,s,kg", ["a", "b", "c", "d", "e"]),
        ("a,b,c,d,e\nint,int,float,float,int", ["a", "b", "c", "d", "e"]),
        ("a,a,b,b,e\nkg,m,kg,m,s", ["a kg", "a m", "b kg", "b m", "e"]),
        ("a,,b,,e\nkg,m,kg,m,s", None),
        ("A,,B,,\nkg,m,kg,s,m2", ["A kg", "m", "B kg", "s", "m2"]),
    ],
)
def test_units_and_types_below_the_names_replace_no_name(tmp_path, lines, names):
    file = tmp_path / "t.csv"
    file.write_text(lines + "\n" + "1,2.5,3,4.5,5\n2,1.5,4,3.5,6\n" * 3)
    if names is None:
        with pytest.raises(InputError, match="more than one column named 'm'"):
            read_table(file)
        return
    with pytest.warns(NongaussWarning, match="ines? of column names"):
        assert list(read_table(file)) == names


def test_numbers_in_the_first_line_warn(tmp_path):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    with pytest.warns(NongaussWarning, match="first line of t.csv holds numbers"):
        read_table(tmp_path / "t.csv")


def test_paths_and_damaged_files(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"^'[^']*' is a folder; [^(]*$"):
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


def read(tmp_path, text):
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "text",
    [
        "a|b\n1|x\n2|y\n",
        "sep=;\na;b\n1;x\n2;y\n",
        "a,b,\n1,x,\n2,y,\n",
        "a,b\n1,x,\n2,y,\n",
        "a,b,\n1,x\n2,y\n",
        "#a,b\n1,x\n2,y\n",
        " a , b \n1,x\n\n2,y\n",
        "a,b\n1,x\n2,y\n".encode("utf-16-le"),
        "a,b\n1,x\n2,y\n".encode("utf-16-be"),
    ],
)
def test_layouts_that_need_no_word(tmp_path, text):
    pd.testing.assert_frame_equal(read(tmp_path, text), pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Report\nby me\n\na,b\n1,x\n2,y\n", r"first 2 lines were left out .* \('Report', 'by me'\)"),
        ("# by me\na,b\n1,x\n# more\n2,y\n", "2 lines of t.csv that begin with # were left out"),
        (",a,b\n0,1,x\n1,2,y\n", "first column of t.csv has no name and numbers the rows"),
        ('"","a","b"\n"1",1,"x"\n"2",2,"y"\n', "first column of t.csv has no name and numbers the rows"),
        ('"a","b"\n"1",1,"x"\n"2",2,"y"\n', "first column of t.csv has no name and numbers the rows"),
    ],
)
def test_lines_and_columns_that_are_no_data_are_left_out_and_said(tmp_path, text, message):
    with pytest.warns(NongaussWarning, match=message):
        frame = read(tmp_path, text)
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))


def test_titles_in_a_wide_sheet(tmp_path):
    with pytest.warns(NongaussWarning, match=r"The first line was left out of t.csv as titles \('Sales'\)"):
        assert list(read(tmp_path, "Sales,,\na,b,c\n1,x,2\n2,y,3\n")) == ["a", "b", "c"]


def test_one_style_of_numbers_for_the_whole_file(tmp_path):
    frame = read(tmp_path, "p;q;r\n1.234,5;1.234;12 €\n2,5;5.678;1.234,50 €\n")
    assert frame["p"].tolist() == [1234.5, 2.5]
    assert frame["q"].tolist() == [1234, 5678]
    assert frame["r"].tolist() == ["12 €", "1234.50 €"]
    frame = read(tmp_path, 'p,q\n"0,123",1\n"1,234",2\n')
    assert frame["p"].tolist() == [0.123, 1.234]
    frame = read(tmp_path, 'p,q\n"1,234",1.5\n"5,678",2.5\n')
    assert frame["p"].tolist() == [1234, 5678]
    assert read(tmp_path, "p;q\n1.234;1\n5.6;2\n")["p"].tolist() == [1.234, 5.6]
    assert read(tmp_path, "p\n1,5\n2,5\n")["p"].tolist() == [1.5, 2.5]
    with pytest.warns(NongaussWarning, match="'p' holds .* '1.234', read as 1.234 and not as 1234"):
        assert read(tmp_path, "p;q\n1.234;1\n5.678;2\n")["p"].tolist() == [1.234, 5.678]
    with pytest.warns(NongaussWarning, match="decimal commas in some columns and decimal points in others"):
        frame = read(tmp_path, 'p,q\n"0,1",1.5\n"2,5",2.5\n')
    assert frame.to_numpy().tolist() == [[0.1, 1.5], [2.5, 2.5]]


def test_codes_keep_their_leading_zeros(tmp_path):
    frame = read(tmp_path, 'zip,old,v\n01234,"00501",10\n94110,,20\n')
    assert frame["zip"].tolist() == ["01234", "94110"]
    assert frame["old"].tolist()[0] == "00501"
    assert frame["v"].tolist() == [10, 20]


def test_links_in_a_circle_are_one_sentence(tmp_path):
    (tmp_path / "t.csv").symlink_to(tmp_path / "t.csv")
    with pytest.raises(InputError, match="broken or circular link"):
        read_table(tmp_path / "t.csv")


def test_texts_that_a_spreadsheet_would_run_are_written_as_texts(tmp_path):
    frame = pd.DataFrame({"=x": ["=1+1", "-2", "+a", "@b", None], "y": [-1.0, 2, 3, 4, 5]})
    write_table(frame, tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines == ["'=x,y", "'=1+1,-1.0", "-2,2.0", "'+a,3.0", "'@b,4.0", ",5.0"]
    assert frame["=x"][0] == "=1+1"
