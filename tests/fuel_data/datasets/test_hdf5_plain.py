"""Files that others made: laid out here as MATLAB, netCDF-4 and PyTables lay them out."""

import h5py
import hdf5plugin
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.datasets import PlainHDF5Dataset, PytablesDataset

VALUES = numpy.arange(20 * 6, dtype="float64").reshape(20, 2, 3)
KINDS = numpy.arange(20, dtype=">i4")


@pytest.fixture
def path(tmp_path):
    """A file with a user block, as of MATLAB, compressed nodes, as of PyTables, and more."""
    with h5py.File(tmp_path / "foreign.mat", "w", userblock_size=512) as file:
        file["images"] = VALUES
        file["cells"] = numpy.array([file["images"].ref] * 20, dtype=h5py.ref_dtype)
        file["one"] = 5
        file["short"] = VALUES[:3]
        file.create_dataset("Data/x", data=VALUES, chunks=(7, 2, 3), **hdf5plugin.Blosc())
        file.create_dataset("Data/y", data=KINDS)
        file["height"] = numpy.arange(2)
        file["height"].make_scale("This is a netCDF dimension")
        file["images"].dims[1].attach_scale(file["height"])
        file["loop"] = h5py.SoftLink("/")
        time = h5py.h5d.create(file.id, b"time", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((20,)))
        del time
    return tmp_path / "foreign.mat"


@pytest.mark.parametrize("load_in_memory", [False, True])
def test_named_data_sets_are_sources(path, load_in_memory):
    dataset = PlainHDF5Dataset(
        path, {"x": "images", "kind": "/Data/y"}, start=5, load_in_memory=load_in_memory
    )

    x, kind = dataset.get_data(None, [14, 0, 0])

    assert dataset.num_examples == 15
    assert_array_equal(x, VALUES[[19, 5, 5]])
    assert_array_equal(kind, KINDS[[19, 5, 5]])
    assert dataset.axis_labels == {"x": ("", "height", ""), "kind": None}
    assert PlainHDF5Dataset(path, ["images", "Data/y"]).sources == ("images", "y")


def test_pytables_files_are_read_without_pytables(path):
    dataset = PytablesDataset(path, ("features", "targets"), 2, 12, sources_in_file=("x", "y"))

    features, targets = dataset.get_data(None, [9, 0])

    assert_array_equal(features, VALUES[[11, 2]])
    assert_array_equal(targets, KINDS[[11, 2]])
    assert PytablesDataset(path, ("y",)).num_examples == 20
    with pytest.raises(ValueError, match=r"one name for each of the 1 sources; got \['x', 'y'\]"):
        PytablesDataset(path, ("x",), sources_in_file=("x", "y"))
    with pytest.raises(ValueError, match=r"must be names, such as \('x',\)"):
        PytablesDataset(path, "x")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            {"x": "cells"},
            "'cells' cannot be a source: it holds references, as cell arrays of MATLAB",
        ),
        ({"x": "one"}, "'one' cannot be a source: it has no axis"),
        ({"x": "time"}, "'time' cannot be a source: its type is none that numpy has"),
        ({"x": "Data"}, "'Data' is a folder, not a data set"),
        ({"x": "image"}, "there is no data set 'image'.*Did you mean 'images'"),
        ({}, "name its data sets. The file has Data/x, Data/y, "),
        ({"x": "images", "y": "short"}, "equal numbers of examples.*'x': 20, 'y': 3"),
        ("images", r"must be several paths, such as \('images',\)"),
        (["images", "Data/images"], "names two data sets whose paths end alike"),
    ],
    ids=str,
)
def test_what_cannot_be_a_source_is_refused_with_what_there_is(path, names, message):
    with pytest.raises(ValueError, match=message):
        PlainHDF5Dataset(path, names)


def test_sources_are_chosen_by_name(path):
    dataset = PlainHDF5Dataset(path, ["images", "Data/y"], sources=["y"])

    assert dataset.sources == ("y",)
    with pytest.raises(ValueError, match="`sources_in_file` has no source 'z'"):
        PlainHDF5Dataset(path, ["images"], sources=["z"])


def test_names_that_matlab_gives_to_what_cells_refer_to_are_listed_last(tmp_path):
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        for number in range(30):
            file[f"#refs#/{number}"] = VALUES
        file["voltage"] = VALUES

    with pytest.raises(ValueError, match=r"The file has voltage, #refs#/0, .*, …\."):
        PlainHDF5Dataset(tmp_path / "x.mat", ["volt"])


def test_numbers_that_numpy_has_not_are_widened_but_in_records_refused(tmp_path):
    half = h5py.h5t.IEEE_F32LE.copy()
    half.set_fields(15, 7, 8, 0, 7)
    half.set_size(2)
    record = h5py.h5t.create(h5py.h5t.COMPOUND, 4)
    record.insert(b"a", 0, half)
    record.insert(b"b", 2, h5py.h5t.STD_I16LE)
    inner = h5py.h5t.create(h5py.h5t.COMPOUND, 8)
    inner.insert(b"c", 0, h5py.h5t.array_create(record, (2,)))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, kind in (("plain", half), ("record", record), ("inner", inner)):
            h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((5,)))
        file["plain"][...] = [1, -2, 3.5, 0, 0.125]
        file["right"] = numpy.array([(1, 2.5)], numpy.dtype([("a", "i1"), ("b", "f8")], align=True))

    # Of 16 bits, 8 of them the exponent; these five are exact.
    plain = PlainHDF5Dataset(tmp_path / "x.h5", ["plain"]).get_data(None, slice(0, 5))[0]
    assert_array_equal(plain, [1, -2, 3.5, 0, 0.125])
    assert PlainHDF5Dataset(tmp_path / "x.h5", ["right"]).get_data(None, 0)[0].item() == (1, 2.5)
    # h5py writes over other memory when it reads these, and mostly ends the process.
    for name in ("record", "inner"):
        with pytest.raises(ValueError, match=f"'{name}' cannot be a source: its records have fie"):
            PlainHDF5Dataset(tmp_path / "x.h5", [name])
