"""What `fuel-info` says of the values and lengths in a file."""

import numpy
import pytest

from fuel_data.commands import info
from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file


@pytest.fixture
def described(tmp_path, capsys):
    def described(data, labels=None, dtype=None):
        path = tmp_path / "x.hdf5"
        with new_hdf5_file(path) as h5file:
            rows = [("all", source, values) for source, values in data.items()]
            fill_hdf5_file(h5file, rows, labels)
            if "targets" in data:
                h5file["class_names"] = [b"cup", b"owl"]
        assert info.main([str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        return [line.strip() for line in lines[lines.index("sources") : lines.index("splits")]]

    return described


def test_the_range_of_numbers_is_told(described):
    values = numpy.array([[1.5, numpy.nan], [-2.25, numpy.inf]])
    lines = described(
        {"x": values, "targets": numpy.array([[3], [200]], "uint8"), "z": [b"a", b"b"]}
    )

    assert "from -2.25 to 1.5" in lines and "2 values are not finite" in lines
    assert "from 3 to 200" in lines and "classes: cup, owl" in lines


def test_large_whole_numbers_keep_their_digits(described):
    lines = described({"x": numpy.array([-12345678, 2**62 + 1])})

    assert f"from -12345678 to {2**62 + 1}" in lines


def test_of_a_large_source_examples_at_equal_distances_are_looked_at(described, monkeypatch):
    monkeypatch.setattr(info, "RANGE_BYTES", 800)
    lines = described({"x": numpy.arange(1000.0)})

    assert any(
        line.startswith("from 0 to 99") and line.endswith("(of 100 examples that were looked at)")
        for line in lines
    )


def test_lengths_of_ragged_examples_are_drawn_for_each_axis(described):
    shapes = [(1, 4, 9), (1, 4, 7), (1, 5, 7), (1, 4, 7)]
    lines = described(
        {"x": [numpy.zeros(shape, "uint8") for shape in shapes]},
        {"x": ("batch", "channel", "height", "width")},
    )

    assert lines[2:] == [
        "from 0 to 0",
        "channel: 1",
        "height:",
        "length 4: ############################## 3",
        "length 5: ########## 1",
        "width:",
        "length 7: ############################## 3",
        "length 9: ########## 1",
    ]


def test_lengths_of_bytes_are_drawn_too(described):
    lines = described({"x": [b"ab", b"abc", b"ab"]})

    assert lines[2:] == [
        "from 97 to 99",
        "length 2: ############################## 2",
        "length 3: ############### 1",
    ]
