import gzip

import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.tables import read_arrays, read_csv

TABLE = 'width,height,"kind, given"\n1.5,2,3\n2.5,4,1\n\n-1e3,6,2\n'


@pytest.fixture
def table(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path / "table.csv"


def test_each_column_is_a_source(table):
    sources = read_csv(table)

    assert list(sources) == ["width", "height", "kind, given"]
    assert_array_equal(sources["width"], [[1.5], [2.5], [-1000]])
    assert_array_equal(sources["kind, given"], [[3], [1], [2]])
    assert sources["width"].dtype == "float64"
    assert sources["height"].dtype == "int64"


def test_columns_can_be_one_source(table):
    sources = read_csv(table, {"size": "height,width", "all": "width:kind, given"})

    assert_array_equal(sources["size"], [[2, 1.5], [4, 2.5], [6, -1000]])
    assert_array_equal(sources["all"], [[1.5, 2, 3], [2.5, 4, 1], [-1000, 6, 2]])


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (["9007199254740993", "-3", "2.0"], "int64"),
        (["9223372036854775807", "-9223372036854775808"], "int64"),
        (["18446744073709551615", '" 0009223372036854775809"', "+7"], "uint64"),
    ],
)
def test_whole_numbers_that_float64_would_round_are_kept(tmp_path, cells, dtype):
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{cell},0.5\n\n" for cell in cells))

    found = read_csv(tmp_path / "x.csv")

    expected = [int(float(cell)) if "." in cell else int(cell.strip('"')) for cell in cells]
    assert found["a"][:, 0].tolist() == expected
    assert found["a"].dtype == dtype and found["b"].dtype == "float64"


@pytest.mark.parametrize("cells", ["1e17,3", "inf,1", "9007199254740993,0.5", "nan,1"])
def test_what_is_not_written_as_whole_numbers_is_float64(tmp_path, cells):
    (tmp_path / "x.csv").write_text("a\n" + cells.replace(",", "\n"))

    found = read_csv(tmp_path / "x.csv")["a"]

    assert found.dtype == "float64"
    assert_array_equal(found[:, 0], [float(cell) for cell in cells.split(",")])


def test_columns_that_are_left_out_may_hold_text(tmp_path):
    (tmp_path / "x.csv").write_text('a,label,b\n1,cat,2.5\n3,"dog, brown",4\n')

    assert_array_equal(read_csv(tmp_path / "x.csv", {"x": "b,a"})["x"], [[2.5, 1], [4, 3]])


def test_a_packed_table_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("\ufeffgröße\n7\n".encode()))

    assert_array_equal(read_arrays(path)["größe"], [[7]])


def test_missing_numbers_stay_not_a_number(tmp_path):
    (tmp_path / "x.csv").write_text("a\nnan\n1\n")

    assert_array_equal(read_csv(tmp_path / "x.csv")["a"], [[numpy.nan], [1]])


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a,b\n1,2\n3,setosa\n", None, "line 3: column 'b' must hold numbers; got 'setosa'"),
        ("a,b\n1,2\n\n3,\n", None, "line 4: column 'b' must hold numbers; got ''"),
        ("a,b\n1,2\n3\n", None, "line 3: 1 cells, and the first line names 2 columns"),
        ("a,b,c\n1,2,x\n3,4\n", {"x": "a"}, "line 3: 2 cells, and the first line names 3"),
        ("a,b,c\n1,2,x\n3,y,z\n", {"x": "a,b"}, "line 3: column 'b' must hold numbers"),
        ("a\n-1\n9223372036854775808\n", None, "neither int64 nor uint64 holds .* 'a', which go"),
        (f"a\n1\n{'9' * 9999}\n", None, "neither int64 nor uint64 holds .* from 1 to inf"),
        ("a,b\n1,2,3\n", None, "names 2 columns, the others have 3"),
        ("a,b\n", None, "has no lines after the names"),
        ("", None, "must name the columns; it is "),
        ("1,2\n3,4\n", None, "must name the columns; it is .'1', '2'"),
        ("a,b,a\n1,2,3\n", None, "first line has twice 'a'"),
        ("width,b\n1,2\n", {"x": "widht"}, "has no column 'widht'. Did you mean 'width'"),
        ("a,b\n1,2\n", {"x": "a:c"}, "has no column 'c'"),
        ("a,b\n1,2\n", {"x": "b:a"}, "'first:last'; got 'b:a'"),
    ],
)
def test_a_wrong_table_is_refused_by_name_and_line(tmp_path, text, columns, message):
    path = tmp_path / "x.csv"
    path.write_text(text)

    with pytest.raises(ValueError, match=f"^{path}.*{message}"):
        read_csv(path, columns)


def test_arrays_are_read_from_npy_and_npz(tmp_path):
    x, y = numpy.arange(6, dtype="uint8").reshape(3, 2), numpy.array([0.5, 1, 2])
    numpy.save(tmp_path / "x.npy", x)
    numpy.savez_compressed(tmp_path / "both.npz", x=x, y=y)

    assert_array_equal(read_arrays(tmp_path / "x.npy")["x"], x)
    assert_array_equal(read_arrays(tmp_path / "x.npy", "features")["features"], x)
    both = read_arrays(tmp_path / "both.npz")
    assert_array_equal(both["x"], x)
    assert both["x"].dtype == "uint8"
    assert_array_equal(both["y"], y)


def test_what_is_no_array_of_numbers_is_refused_by_name(tmp_path):
    numpy.save(tmp_path / "scalar.npy", 3)
    numpy.save(tmp_path / "text.npy", numpy.array(["a", "b"]))
    numpy.save(tmp_path / "objects.npy", numpy.array([{}, None]), allow_pickle=True)
    numpy.savez(tmp_path / "objects.npz", y=numpy.array([{}, None]))
    numpy.savez(tmp_path / "cut.npz", y=numpy.arange(1000))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:500])
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "x.mat").write_bytes(b"")

    for name, message in (
        ("scalar.npy", "source 'scalar' is one number"),
        ("text.npy", "source 'text' must hold numbers or bytes; its dtype is <U1"),
        ("objects.npy", "holds Python objects; save arrays of numbers or bytes"),
        ("objects.npz", "holds Python objects"),
        ("cut.npz", "cannot be read"),
        ("empty.npy", "cannot be read"),
        ("x.mat", "expected a file that ends in .npy, .npz, .csv, .csv.gz"),
    ):
        with pytest.raises(ValueError, match=f"^{tmp_path / name}.*{message}"):
            read_arrays(tmp_path / name)
    with pytest.raises(ValueError, match="only a .npy file takes the name of a source"):
        read_arrays(tmp_path / "objects.npz", "features")


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe,b\n1,2\n",
        b"a,b\n1,\xff\n",
        b"a,b\n1,2\x00\n",
        b"a,\x00b\n1,2\n",
        b"a,,b\n1,2,3\n",
    ],
    ids=["header", "cell", "zero", "zero in header", "empty name"],
)
def test_a_table_that_is_no_text_or_has_no_names_is_refused_by_name(tmp_path, content):
    (tmp_path / "x.csv").write_bytes(content)

    with pytest.raises(ValueError, match=f"^{tmp_path}/x.csv"):
        read_csv(tmp_path / "x.csv")


def test_a_table_that_is_not_packed_as_it_says_is_refused_by_name(tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(b"a,b\n1,2\n")

    with pytest.raises(ValueError, match=f"^{tmp_path}/x.csv.gz cannot be read as a table: Not"):
        read_csv(tmp_path / "x.csv.gz")
