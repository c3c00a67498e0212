"""Server and client are killed at any moment, and the sequence is that of one process."""

import contextlib
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy
import pytest
import server_recipes as recipes
from server_helpers import RECIPES, processes_naming, wait_until

from fuel_data.datasets.hdf5 import H5PYDataset

NUM_EPOCHS = 3
READER = str(Path(RECIPES).with_name("read_and_save.py"))


@pytest.fixture
def images(tmp_path):
    path = tmp_path / "images.hdf5"
    rng = numpy.random.default_rng(1)
    with h5py.File(path, "w") as file:
        file["features"] = rng.integers(0, 255, size=(100, 8), dtype="uint8")
        file["targets"] = numpy.arange(100)
        file.attrs["split"] = H5PYDataset.create_split_array(
            {"train": {"features": (0, 100), "targets": (0, 100)}}
        )
    return str(path)


def digests(stream):
    sys.path.append(str(Path(READER).parent))
    from read_and_save import digest

    return [digest(item) for _ in range(NUM_EPOCHS) for item in stream.get_epoch_iterator()]


@contextlib.contextmanager
def reader(checkpoint, recipe, arguments):
    command = [sys.executable, READER, checkpoint, str(NUM_EPOCHS), recipe, json.dumps(arguments)]
    root = str(Path(__file__).parents[3])
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root}
    ) as process:
        yield process
        process.kill()


def read_until(process, count):
    """Give the server's id once so many batches were read, or None at the end."""
    for line in process.stdout:
        server, read = map(int, line.split())
        if read >= count:
            return server
    return None


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def remove_folders(folder):
    """Remove what servers left that were killed together with their owners."""
    wait_until(lambda: not processes_naming(str(folder)))
    for left in folder.glob("fuel-*"):
        shutil.rmtree(left)


@pytest.mark.parametrize("load_in_memory", [True, False], ids=["in memory", "on disk"])
def test_the_sequence_is_the_same_when_server_and_client_are_killed(
    images, load_in_memory, tmp_path, folder
):
    arguments = {"path": images, "load_in_memory": load_in_memory}
    reference = digests(recipes.random(**arguments))
    victims = ["server", "client", "both"] * 2
    check_killed(f"{RECIPES}:random", arguments, reference, victims, tmp_path, folder)


def test_the_sequence_is_the_same_when_any_of_a_chain_of_servers_are_killed(
    images, tmp_path, folder
):
    arguments = {"path": images}
    reference = digests(recipes.chained(is_served=False, **arguments))
    victims = ["server", "server of the server", "client", "both", "server of the server"]
    check_killed(f"{RECIPES}:chained", arguments, reference, victims, tmp_path, folder)


def check_killed(recipe, arguments, reference, victims, tmp_path, folder):
    rng = random.Random(len(victims) + arguments.get("load_in_memory", 0))
    rng.shuffle(victims)
    moments = sorted(rng.sample(range(1, len(reference) - 10), len(victims)))
    checkpoint = str(tmp_path / "checkpoint")
    while True:
        with reader(checkpoint, recipe, arguments) as process:
            while victims and (server := read_until(process, moments[0])):
                victim = victims.pop()
                moments.pop(0)
                if victim == "server of the server":
                    for pid in {*processes_naming(str(folder))} - {server}:
                        kill(pid)
                    continue
                if victim != "client":
                    kill(server)
                if victim != "server":
                    kill(process.pid)
                    break
            else:
                assert read_until(process, len(reference) + 1) is None
                assert process.wait(20) == 0
                break
    result, _ = pickle.loads(Path(checkpoint).read_bytes())

    assert victims == []
    assert result == reference
    remove_folders(folder)


def test_a_server_ends_soon_after_its_owner_was_killed(images, tmp_path, folder):
    checkpoint = str(tmp_path / "checkpoint")
    with reader(checkpoint, f"{RECIPES}:random", {"path": images}) as process:
        server = read_until(process, 1)
        assert server in processes_naming(str(folder))
        kill(process.pid)

        wait_until(lambda: not processes_naming(str(folder)), seconds=4)

    assert list(folder.glob("fuel-*")) == []


def test_a_server_that_does_not_listen_to_signals_ends_with_its_owner_too(tmp_path, folder):
    checkpoint, sign = str(tmp_path / "checkpoint"), tmp_path / "sign"
    with reader(checkpoint, f"{RECIPES}:clings_to_life", {"sign": str(sign)}) as process:
        wait_until(sign.exists)
        kill(process.pid)

        wait_until(lambda: not processes_naming(str(folder)), seconds=4)
