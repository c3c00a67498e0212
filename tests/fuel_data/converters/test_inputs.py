import pytest

from fuel_data.converters.inputs import read_rows


def test_rows_come_with_the_numbers_of_their_lines(tmp_path):
    path = tmp_path / "x"
    path.write_text('a, "b\nc"\n\nd\n')

    rows = list(read_rows(str(path), skipinitialspace=True))

    assert rows == [(2, ["a", "b\nc"]), (3, []), (4, ["d"])]


@pytest.mark.parametrize("content", [b"a,b\n\xff\n", b"a," + b"x" * 200_000 + b"\n"])
def test_what_is_no_table_is_refused_by_name(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)

    with pytest.raises(ValueError, match=f"^{path} cannot be read as a table: "):
        list(read_rows(str(path)))
