"""Scripts as one wrote them for Blocks and Fuel run with nothing but their imports renamed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy
import pytest

from fuel_data.datasets.hdf5 import H5PYDataset

HERE = Path(__file__).with_name("scripts_of_blocks")
DIGITS = Path(__file__).parents[1] / "fuel_data/datasets/data/digits.csv.gz"
#: The table of the README, from the longest name to the shortest.
RENAMED = {
    "blocks.bricks": "bricks",
    "blocks.extensions": "extensions",
    "blocks": "bricks",
    "fuel": "fuel_data",
    "theano": "aesara",
}


def rename_imports(script):
    """Rename the modules that a script imports from, and nothing else."""
    for old, new in RENAMED.items():
        script = re.sub(rf"^from {re.escape(old)}(?=[. ])", f"from {new}", script, flags=re.M)
    return script


def test_only_imports_are_renamed():
    script = "from blocks.bricks.cost import X\nfrom theano import tensor\nblocks = 1\n"

    renamed = rename_imports(script)

    assert renamed == "from bricks.cost import X\nfrom aesara import tensor\nblocks = 1\n"


def write_mnist(folder):
    """Write digits in MNIST's place: 28 × 28 pixels, 1,500 to train and 297 to test."""
    digits = numpy.loadtxt(DIGITS, dtype="uint8", delimiter=",")
    small = digits[:, :64].reshape(-1, 8, 8) * 15
    images = numpy.pad(numpy.kron(small, numpy.ones((3, 3), "uint8")), ((0, 0), (2, 2), (2, 2)))
    with h5py.File(folder / "mnist.hdf5", "w") as h5file:
        h5file["features"] = images[:, None]
        h5file["targets"] = digits[:, 64:]
        for i, label in enumerate(("batch", "channel", "height", "width")):
            h5file["features"].dims[i].label = label
        for i, label in enumerate(("batch", "index")):
            h5file["targets"].dims[i].label = label
        split = {
            name: dict.fromkeys(("features", "targets"), place)
            for name, place in {"train": (0, 1500), "test": (1500, 1797)}.items()
        }
        h5file.attrs["split"] = H5PYDataset.create_split_array(split)


def run(name, folder, *arguments):
    script = folder / name
    script.write_text(rename_imports((HERE / name).read_text()))
    ran = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        env={**os.environ, "FUEL_DATA_PATH": str(folder), "PYTHONPATH": str(HERE.parents[1])},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran


def test_an_mlp_on_mnist_trains_is_monitored_and_saved(tmp_path):
    write_mnist(tmp_path)

    printed = run("mnist.py", tmp_path, "--num-epochs", "6", "saved.pkl").stdout

    def last(record):
        return re.findall(rf"^ *{record} +(\S+)$", printed, re.M)[-1]

    assert float(last("test_error_rate")) < 0.2
    assert float(last("train_error_rate")) < 0.2
    assert float(last("train_total_gradient_norm")) > 0
    assert last("saved_to") == "saved.pkl"
    assert "Training has ended (180 batches, 6 epochs)" in printed
    parameters = numpy.load(tmp_path / "saved.pkl")
    weights = [parameters[f"/mlp/linear_{i}.W"] for i in range(2)]
    assert [w.shape for w in weights] == [(784, 100), (100, 10)]
    penalty = 0.0005 * sum((w.astype("float64") ** 2).sum() for w in weights)
    difference = float(last("test_final_cost")) - float(last("test_cost"))
    assert difference == pytest.approx(penalty, abs=2e-5)


def test_a_generator_with_attention_learns_samples_and_is_searched(tmp_path):
    words = ["paths", "words", "lines", "beams", "masks", "costs", "steps"]

    printed = run("reverse_words.py", tmp_path, "--words", *words).stdout

    assert "Training has ended (100 batches" in printed
    found = dict(re.findall(r"^Found: (\w+) (\w+)", printed, re.M))
    assert found == {word: word[::-1] for word in words[:3]}
    assert printed.count("Sampled: ") == 3
