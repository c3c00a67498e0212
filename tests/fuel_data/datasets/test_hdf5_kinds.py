import builtins
import gzip
import os
import shutil
import socket

import h5py
import numpy
import pytest

from fuel_data.datasets import H5PYDataset
from fuel_data.datasets.hdf5_files import open_file
from fuel_data.datasets.hdf5_kinds import check_kind


def write_hdf5(path, **options):
    with h5py.File(path, "w", **options) as file:
        file["x"] = numpy.arange(5)
    return path


def compressed(path):
    with gzip.open(path, "wb") as file:
        file.write(write_hdf5(path.with_suffix(".h5")).read_bytes())


def listening(path):
    # By its name in this folder: a path of a socket may have 107 bytes.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def saved(save):
    def write(path):
        with open(path, "wb") as file:
            save(file, numpy.arange(5))

    return write


def text(content):
    return lambda path: path.write_bytes(content)


KINDS = {
    "nothing": (lambda path: None, "there is no such file"),
    "folder": (os.mkdir, "it is a folder: give the file in it"),
    "pipe": (os.mkfifo, "it is a pipe: write what comes from it into a file"),
    "socket": (listening, "it is a socket"),
    "device": (lambda path: os.symlink("/dev/zero", path), "it is a device"),
    "circle": (lambda path: os.symlink(path, path), "Too many levels of symbolic links"),
    "empty": (text(b""), "it is empty: fetch or convert it again"),
    "table": (text(b"a,b\n1,2\n"), "it is a file of another kind.*signature of HDF5 is missing"),
    "gzip": (compressed, "it is compressed: unpack it with `gunzip`"),
    "npy": (saved(numpy.save), "it is an array of numpy: write it to HDF5 with `fuel-convert arr"),
    "npz": (saved(numpy.savez), "it is a zip archive, as .npz files are too: unpack it"),
    "mat": (text(b"MATLAB 5.0 MAT-file" + bytes(600)), "it is a MATLAB file of before 7.3: save"),
    "nc": (text(b"CDF\x01" + bytes(100)), "it is a netCDF file.*convert it with `nccopy -k nc4`"),
    "lfs": (text(b"version https://git-lfs.github.com/spec/v1\n"), "it is a pointer.*`git lfs"),
    "page": (text(b"<!DOCTYPE html>"), "it is a web page or XML, as a failed download leaves it"),
}


@pytest.mark.parametrize("driver", [None, "core"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_hdf5_file_is_named_with_what_to_do(tmp_path, monkeypatch, kind, driver):
    monkeypatch.chdir(tmp_path)
    make, message = KINDS[kind]
    make(tmp_path / kind)

    with pytest.raises(OSError, match=rf"{kind} cannot be opened as an HDF5 file: {message}"):
        open_file(tmp_path / kind, driver)


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_a_data_set_says_it_too(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path / "elsewhere"))
    make, message = KINDS[kind]
    make(tmp_path / kind)

    with pytest.raises(OSError, match=f"{kind} cannot be opened as an HDF5 file: {message}"):
        H5PYDataset(tmp_path / kind, ("train",))


def test_a_file_that_may_not_be_read_is_named_with_what_to_do(tmp_path, monkeypatch):
    path = write_hdf5(tmp_path / "x.h5")

    def refuse(name, *arguments):
        # The administrator may read everything, so no permission shows it.
        raise PermissionError(13, "Permission denied", name)

    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(PermissionError, match="x.h5 cannot be.*you may not read it. Ask its owner"):
        open_file(path)


@pytest.mark.parametrize("size", [0, 512, 4096])
def test_the_signature_may_stand_behind_a_user_block(tmp_path, size):
    check_kind(write_hdf5(tmp_path / "x.h5", userblock_size=size))


def test_a_file_that_was_not_closed_is_refused_with_what_to_do(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as file:
        file["x"] = numpy.arange(5)
        file.flush()
        # What is on the disk now is what a program leaves that is killed now.
        shutil.copyfile(tmp_path / "x.h5", tmp_path / "left.h5")

    with pytest.raises(OSError, match="left.h5 .*ended before it closed the file.*`h5clear -s`"):
        open_file(tmp_path / "left.h5")
