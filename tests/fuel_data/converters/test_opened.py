import gzip
import hashlib
import json
import os

import h5py
import numpy
import pytest

from fuel_data.commands.convert import main
from fuel_data.converters.opened import notice, watch_files
from fuel_data.datasets import H5PYDataset

# As converters are written for Fuel, with the import renamed.
PLUGIN = """
import gzip
import os

import h5py
import numpy

from fuel_data.converters.base import check_exists, fill_hdf5_file


def convert(directory, output_directory, output_filename="plain.hdf5", most=10**6):
    with gzip.open(os.path.join(directory, "x.gz")) as file:
        x = [len(file.read())]
    for number, name in enumerate(sorted(os.listdir(os.path.join(directory, "deep")))):
        if number < most:
            x.append(numpy.load(os.path.join(directory, "deep", name)).item())
    path = os.path.join(output_directory, output_filename)
    with h5py.File(path, mode="w") as h5file:
        fill_hdf5_file(h5file, [("train", "x", numpy.array(x))])
        h5file["x"].dims[0].label = "batch"
    return (path,)


@check_exists(required_files=["other.h5"])
def checked(directory, output_directory, output_filename="checked.hdf5"):
    with h5py.File(os.path.join(directory, "other.h5")) as file:
        x = file["x"][()]
    path = os.path.join(output_directory, output_filename)
    with h5py.File(path, mode="w") as h5file:
        fill_hdf5_file(h5file, [("train", "x", x)])
    return (path,)


def fill_plain(subparser):
    subparser.add_argument("--most", type=int, default=10**6)
    subparser.set_defaults(func=convert)
    return convert


all_converters = [("plain", fill_plain), ("checked", lambda subparser: checked)]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    with gzip.open(tmp_path / "x.gz", "wb") as file:
        file.write(b"12345")
    for name in ("x.gz", "y.npy"):
        with open(tmp_path / "deep" / name, "wb") as file:
            numpy.save(file, 7)
    (tmp_path / "not_read.txt").write_text("text")
    (tmp_path / "plugin.py").write_text(PLUGIN)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = [1, 2]
    monkeypatch.setenv("FUEL_EXTRA_CONVERTERS", "plugin.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def inputs_of(path):
    with h5py.File(path) as h5file:
        return json.loads(h5file.attrs["fuel_convert_inputs"])


def test_the_files_that_a_converter_in_fuels_way_opens_are_named(folder):
    assert main(["plain"]) == 0

    # As much of the paths as tells them apart.
    assert inputs_of("plain.hdf5") == {
        f"{folder.name}/x.gz": sha256(folder / "x.gz"),
        "deep/x.gz": sha256(folder / "deep" / "x.gz"),
        "deep/y.npy": sha256(folder / "deep" / "y.npy"),
    }


def test_files_that_it_checks_for_are_named_though_hdf5_opens_them(folder):
    assert main(["checked", "-d", str(folder), "-o", "out"]) == 0

    assert inputs_of("out/checked.hdf5") == {"other.h5": sha256(folder / "other.h5")}


def test_of_many_files_there_is_one_digest(folder, monkeypatch):
    monkeypatch.setattr("fuel_data.commands.convert.MAX_INPUTS", 2)

    assert main(["plain", "-d", "."]) == 0

    names = ["deep/x.gz", "deep/y.npy", "x.gz"]
    lines = "".join(f"{sha256(folder / name)}  {name}\n" for name in names)
    assert inputs_of("plain.hdf5") == {
        f"3 files in {folder.name}": hashlib.sha256(lines.encode()).hexdigest()
    }


def test_only_files_that_are_read_in_the_folder_are_noticed(tmp_path):
    inside, outside, output = tmp_path / "in", tmp_path / "other", tmp_path / "in" / "out"
    for place in (inside, outside, output):
        place.mkdir()
        (place / "x").write_text("x")
    (inside / "code.py").write_text("x = 1")
    (inside / "gone").write_text("x")
    with watch_files(inside / "x", str(output)) as found:
        for path in (inside / "x", outside / "x", output / "x", inside / "code.py"):
            path.read_text()
        (inside / "written").write_text("x")
        (inside / "gone").read_text()
        (inside / "gone").unlink()
        os.close(os.open(os.fsencode(inside / "written"), os.O_RDWR))
        with pytest.raises(FileNotFoundError):
            (inside / "missing").read_text()
        notice([str(inside / "named")])
        (inside / "named").touch()
    open(inside / "code.py").close()

    assert found == [str(inside / "named"), str(inside / "x")]


def test_what_a_converter_writes_after_the_arrays_is_part_of_the_file(folder, caplog):
    main(["plain"])

    dataset = H5PYDataset("plain.hdf5", ("train",))
    dataset.verify()

    assert dataset.axis_labels == {"x": ("batch",)}
    # It would say that the file has no digests.
    assert caplog.text == ""
