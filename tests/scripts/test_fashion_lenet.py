"""The LeNet learns, tests itself by the population's statistics, and survives being killed."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy
import pytest

import bricks
from bricks.serialization import load_state
from fuel_data.datasets.hdf5 import H5PYDataset

SCRIPT = Path(__file__).parents[2] / "scripts/fashion_lenet.py"
NUM_TRAINING, NUM_TEST, KILLED_AT = 96, 32, 7
OPTIONS = [
    "--epochs=2",
    "--feature-maps",
    "2",
    "3",
    "--hidden=8",
    "--batch-size=16",
    "--learning-rate=0.01",
    "--checkpoint-every=3",
]
# What the command runs, and an end that comes without any warning.
KILLED_RUN = f"""
import os, signal, sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import fashion_lenet
from extensions import TrainingExtension

class Killer(TrainingExtension):
    def after_batch(self, batch):
        if self.main_loop.status["iterations_done"] == {KILLED_AT}:
            os.kill(os.getpid(), signal.SIGKILL)

main_loop = fashion_lenet.build_main_loop(fashion_lenet.parse_arguments(sys.argv[1:]))
main_loop.extensions.append(Killer())
main_loop.run(resume="auto")
"""


def load_script():
    spec = importlib.util.spec_from_file_location("fashion_lenet", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train(folder):
    """Start a run, or go on with it, in this process."""
    script = load_script()
    options = [*OPTIONS, f"--checkpoint={folder / 'run.zip'}"]
    main_loop = script.build_main_loop(script.parse_arguments(options))
    try:
        main_loop.run(resume="auto")
    finally:
        main_loop.data_stream.close()
        main_loop.find_extension("DataStreamMonitoring").data_stream.close()
    return main_loop


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write images whose upper part is bright in one half of the classes, as a data set."""
    folder = tmp_path_factory.mktemp("data")
    rng = numpy.random.default_rng(5)
    total = NUM_TRAINING + NUM_TEST
    targets = rng.integers(0, 10, size=(total, 1), dtype="uint8")
    images = rng.integers(0, 100, size=(total, 1, 28, 28), dtype="uint8")
    images[targets[:, 0] < 5, :, :14] += 100
    with h5py.File(folder / "fashion_mnist.hdf5", "w") as file:
        file["features"], file["targets"] = images, targets
        bounds = {"train": (0, NUM_TRAINING), "test": (NUM_TRAINING, total)}
        splits = {n: dict.fromkeys(("features", "targets"), place) for n, place in bounds.items()}
        file.attrs["split"] = H5PYDataset.create_split_array(splits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUEL_DATA_PATH", str(folder))
        yield images[NUM_TRAINING:], targets[NUM_TRAINING:]


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory):
    """Train without any kill; give the folder and the main loop."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, train(folder)


def test_a_run_that_is_killed_goes_on_as_if_it_had_not_been(undisturbed, tmp_path):
    folder, main_loop = undisturbed
    command = [sys.executable, "-c", KILLED_RUN, *OPTIONS, f"--checkpoint={tmp_path / 'run.zip'}"]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])}
    killed = subprocess.run(command, env=environment, capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert load_state(tmp_path / "run.zip")["log"]["status"]["iterations_done"] == 6

    resumed = train(tmp_path)

    ours, others = load_state(tmp_path / "run.zip"), load_state(folder / "run.zip")
    for part in ("parameters", "persistent", "algorithm"):
        assert ours[part].keys() == others[part].keys()
        for name, value in ours[part].items():
            numpy.testing.assert_array_equal(value, others[part][name], name)
    for batches in (6, 12):
        for record in ("train_cost", "test_cost", "test_error_rate"):
            assert resumed.log[batches][record] == main_loop.log[batches][record]


def test_it_learns_and_is_tested_by_the_statistics_of_the_population(undisturbed, data):
    folder, main_loop = undisturbed
    images, targets = data
    statistics = load_state(folder / "run.zip")["persistent"]

    function = bricks.load(folder / "run.zip", outputs="error_rate")
    features = (images.reshape(len(images), -1) / 255).astype("float32")

    assert main_loop.log[12]["train_cost"] < main_loop.log[6]["train_cost"]
    assert len(statistics) == 6
    assert all(numpy.abs(value).max() > 0 for value in statistics.values())
    # The rate is that of one image after the other, so no batch had a say in it.
    alone = [function(features[i : i + 1], targets[i : i + 1]) for i in range(len(images))]
    assert numpy.mean(alone) == pytest.approx(main_loop.log[12]["test_error_rate"])
