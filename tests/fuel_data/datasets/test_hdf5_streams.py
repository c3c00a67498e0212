"""The contract of streams, over HDF5 files on disk and in memory."""

import functools
import os
import subprocess
import sys

import h5py
import numpy
import pytest

from fuel_data.converters.base import new_hdf5_file
from fuel_data.datasets.hdf5 import H5PYDataset
from fuel_data.schemes import ShuffledExampleScheme, ShuffledScheme
from fuel_data.streams import DataStream
from fuel_data.testing import check_contract
from fuel_data.transformers import Padding


def write(path, num_examples):
    """Examples at odd places of the file, in an order of their own, chosen by indices."""
    total = 2 * num_examples
    with new_hdf5_file(path) as h5file:
        h5file["features"] = numpy.arange(total * 2.0).reshape(total, 2)
        ragged = h5file.create_dataset("ragged", (total,), dtype=h5py.vlen_dtype("float32"))
        shapes = numpy.array([(1 + number % 3, 2) for number in range(total)])
        for number, shape in enumerate(shapes):
            ragged[number] = numpy.full(shape.prod(), number)
        h5file["shapes"], h5file["labels"] = shapes, numpy.array([b"time", b"feature"])
        h5file["shapes"].make_scale("shapes")
        h5file["labels"].make_scale("shape_labels")
        ragged.dims[0].attach_scale(h5file["shapes"])
        ragged.dims[0].attach_scale(h5file["labels"])
        ragged.dims[0].label = "batch"
        h5file["indices"] = numpy.arange(1, total, 2)
        indices = (-1, -1, h5file["indices"].ref)
        h5file.attrs["split"] = H5PYDataset.create_split_array(
            {"train": {"features": indices, "ragged": indices}}
        )


def build(folder, load_in_memory, kind, num_examples):
    path = folder / f"{num_examples:06}.hdf5"
    if not path.exists():
        write(path, num_examples)
    dataset = H5PYDataset(path, ("train",), load_in_memory=load_in_memory)
    if kind == "examples":
        return DataStream(dataset, iteration_scheme=ShuffledExampleScheme(num_examples))
    stream = DataStream(dataset, iteration_scheme=ShuffledScheme(num_examples, 3))
    return Padding(stream, mask_sources=("ragged",)) if kind == "padded" else stream


@pytest.mark.parametrize("kind", ["batches", "examples", "padded"])
@pytest.mark.parametrize("load_in_memory", [False, True], ids=["disk", "memory"])
def test_a_stream_over_a_file_keeps_the_contract(tmp_path, load_in_memory, kind):
    check_contract(functools.partial(build, tmp_path, load_in_memory, kind))


def test_the_digest_is_the_same_on_disk_in_memory_and_in_another_process(tmp_path):
    on_disk = build(tmp_path, False, "batches", 11)
    program = (
        "import sys\n"
        "from fuel_data.datasets import H5PYDataset\n"
        "from fuel_data.schemes import ShuffledScheme\n"
        "from fuel_data.streams import DataStream\n"
        "dataset = H5PYDataset(sys.argv[1], ('train',))\n"
        "print(DataStream(dataset, iteration_scheme=ShuffledScheme(11, 3)).digest())\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "000011.hdf5"],
        env={**os.environ, "PYTHONPATH": os.getcwd(), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == on_disk.digest()
    assert build(tmp_path, True, "batches", 11).digest() == on_disk.digest()
