import sys

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.converters.storage import Storage, default_storage
from fuel_data.datasets import H5PYDataset

VALUES = numpy.arange(1000 * 49, dtype="int32").reshape(1000, 7, 7)


def written(tmp_path, storage):
    with new_hdf5_file(tmp_path / "x.hdf5") as h5file:
        fill_hdf5_file(
            h5file, [("a", "x", VALUES[:900]), ("b", "x", VALUES[900:])], None, None, storage
        )
    with H5PYDataset(tmp_path / "x.hdf5", ("a", "b")) as dataset:
        assert_array_equal(dataset.get_data(None, [999, 3, 899])[0], VALUES[[999, 3, 899]])
    return h5py.File(tmp_path / "x.hdf5")["x"]


def test_values_lie_in_one_piece_by_default(tmp_path):
    assert written(tmp_path, None).chunks is None


@pytest.mark.parametrize(
    ("storage", "rows", "code"),
    [
        (Storage("gzip"), 15, 1),
        (Storage("gzip", 9, 10), 10, 1),
        (Storage("lzf", chunk_examples=5000), 1000, 32000),
        (Storage("zstd", 7), 15, 32015),
        (Storage("blosc"), 15, 32001),
        (Storage(chunk_examples=20), 20, None),
    ],
    ids=str,
)
def test_chunks_of_3_kib_are_compressed_as_asked(tmp_path, storage, rows, code):
    dataset = written(tmp_path, storage)
    properties = dataset.id.get_create_plist()
    codes = [properties.get_filter(number)[0] for number in range(properties.get_nfilters())]

    assert dataset.chunks == (rows, 7, 7)
    assert codes[-1:] == ([] if code is None else [code])


def test_sources_may_be_stored_each_in_its_own_way(tmp_path):
    with new_hdf5_file(tmp_path / "x.hdf5") as h5file, default_storage(Storage("lzf")):
        data = [("a", "x", VALUES), ("a", "y", VALUES)]
        fill_hdf5_file(h5file, data, storage={"x": Storage("gzip")})
        assert [h5file[name].compression for name in "xy"] == ["gzip", "lzf"]


@pytest.mark.parametrize(
    ("storage", "left"),
    [
        (Storage("gzip"), "words, sounds"),
        ({"x": Storage("gzip"), "sounds": Storage("lzf")}, "sounds"),
        ({"x": Storage("gzip"), "words": Storage(chunk_examples=2)}, None),
        (None, None),
    ],
    ids=str,
)
def test_what_hdf5_does_not_compress_is_said_once_and_written(tmp_path, caplog, storage, left):
    words = ["some", "words"]
    sounds = [numpy.arange(3.0), numpy.arange(5.0)]
    data = [("a", "words", words), ("a", "x", VALUES[:2]), ("a", "sounds", sounds)]
    with new_hdf5_file(tmp_path / "x.hdf5") as h5file:
        fill_hdf5_file(h5file, data, storage=storage)
        assert h5file["words"].asstr()[()].tolist() == words
        assert [sound.tolist() for sound in h5file["sounds"]] == [
            *map(numpy.ndarray.tolist, sounds)
        ]

    begin = f"fill_hdf5_file: compression does nothing for {left}: HDF5 does not compress values"
    assert [message[: len(begin)] for message in caplog.messages] == ([begin] if left else [])


def test_what_a_command_asks_for_all_converters_it_warns_of_itself(tmp_path, caplog):
    with new_hdf5_file(tmp_path / "x.hdf5") as h5file, default_storage(Storage("gzip")):
        fill_hdf5_file(h5file, [("a", "words", ["some", "words"])])
    assert not caplog.messages


@pytest.mark.parametrize(
    ("storage", "error", "message"),
    [
        ({"features": Storage("gzip")}, ValueError, r"names 'features', .* mean 'feature'\?"),
        ("gzip", TypeError, r"must be a Storage, such as Storage\('gzip'\), .* got 'gzip'"),
        ({"feature": "gzip"}, TypeError, r"must be .* to Storage; got {'feature': 'gzip'}\."),
    ],
)
def test_a_storage_that_would_do_nothing_is_refused(tmp_path, storage, error, message):
    with (
        new_hdf5_file(tmp_path / "x.hdf5") as h5file,
        pytest.raises(error, match=f"^fill_hdf5_file: `storage` {message}"),
    ):
        fill_hdf5_file(h5file, [("a", "feature", VALUES)], storage=storage)


def test_an_example_larger_than_a_chunk_has_one_of_its_own():
    assert Storage("gzip").options((5, 3, 500, 500), numpy.dtype("u1"))["chunks"] == (
        1,
        3,
        500,
        500,
    )
    assert Storage("gzip").options((0, 3), numpy.dtype("u1")) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zip", "must be one of gzip, lzf, zstd, blosc; got 'zip'"),
        ("gzip:12", "gzip takes levels 0 to 9; got 12"),
        ("lzf:1", "lzf takes no level; got 1"),
        ("gzip:best", "NAME or NAME:LEVEL, such as gzip:9; got 'gzip:best'"),
    ],
)
def test_what_cannot_be_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Storage.parse(text)


def test_a_command_line_is_read():
    assert Storage.parse(None) == Storage()
    assert Storage.parse("zstd:7", 3) == Storage("zstd", 7, 3)
    with pytest.raises(ValueError, match="at least one example; got 0"):
        Storage.parse(None, 0)


def test_without_hdf5plugin_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "hdf5plugin", None)

    with pytest.raises(ImportError, match=r"'zstd' needs hdf5plugin: pip install hdf5plugin"):
        Storage("zstd").options((5, 3), numpy.dtype("u1"))
