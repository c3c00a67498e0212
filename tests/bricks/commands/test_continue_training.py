"""``bricks-continue`` on checkpoints of a small run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bricks.commands.continue_training import main
from bricks.serialization import dump, load, load_state

ROOT = Path(__file__).parents[3]

MODULE = '''
"""What a script would build, in a module that the checkpoint can name."""

import sys

import numpy

from bricks import xla
from bricks.algorithms import Scale, UpdatesAlgorithm
from bricks.main_loop import MainLoop
from extensions import FinishAfter, SimpleExtension
from extensions.saveload import Checkpoint
from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream

from aesara import tensor


class Wait(SimpleExtension):
    """Tells that a batch is done, and waits until it is told to go on."""

    def do(self, which_callback, *args):
        print("batch", flush=True)
        sys.stdin.readline()


def build(path, batches, *extensions):
    """Sum up the numbers from 0 to 5, two a batch, three batches an epoch, times a scale."""
    total = xla.shared(numpy.float32(0), name="total")
    scale = xla.shared(numpy.float32(1), name="scale")
    x = tensor.vector("x")
    algorithm = UpdatesAlgorithm([(total, total + scale * x.sum())])
    data = IndexableDataset({"x": numpy.arange(6, dtype="float32")})
    stream = DataStream(data, iteration_scheme=SequentialScheme(6, 2))
    finish = FinishAfter(after_n_batches=batches) if batches else FinishAfter()
    return MainLoop(
        algorithm, stream, extensions=[finish, Checkpoint(path), *extensions]
    )
'''


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """Import the module as a user's script would, and let processes do so too."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "small_training.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(folder)]))
        import small_training

        yield small_training
        del sys.modules["small_training"]


@pytest.fixture
def path(training, tmp_path):
    """A checkpoint after four of the batches."""
    path = tmp_path / "checkpoint.zip"
    training.build(path, 4).run()
    return path


def total(path):
    (value,) = [v for name, v in load_state(path)["algorithm"].items() if name.endswith("total")]
    return float(value)


def batches(path):
    return load_state(path)["log"]["status"]["iterations_done"]


def test_a_finished_run_trains_no_further_and_says_why(path, capsys):
    assert main([str(path)]) == 0
    told = capsys.readouterr().err
    assert "is of a run that had ended, after 4 batches, so none was done now." in told
    assert "`--epochs N` or `--batches N` lets it go on" in told
    assert (batches(path), total(path)) == (4, 15 + 1)


def test_a_run_goes_on_for_more_batches(path, capsys):
    assert main([str(path), "--batches", "2"]) == 0
    assert "had ended" not in capsys.readouterr().err
    assert (batches(path), total(path)) == (6, 30)


def test_a_run_goes_on_for_more_epochs(path):
    assert main([str(path), "--epochs", "2"]) == 0
    assert (batches(path), total(path)) == (9, 45)


def test_a_number_of_the_algorithm_is_changed(path):
    (name,) = [n for n in load_state(path)["algorithm"] if n.endswith("scale")]

    assert main([str(path), "--batches", "1", "--set", f"{name}=10"]) == 0
    assert total(path) == 16 + 50


def test_a_name_that_the_algorithm_does_not_have_is_refused(path, capsys):
    assert main([str(path), "--set", "algorithm/shared/skale=10"]) == 2
    assert "nothing of the algorithm is called 'algorithm/shared/skale'" in capsys.readouterr().err
    assert batches(path) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: CHECKPOINT"),
        (["x", "--epochs", "0"], "expected a number of at least 1, got '0'"),
        (["x", "--batches", "many"], "expected a number of at least 1, got 'many'"),
        (["x", "--epochs", "1", "--batches", "1"], "not allowed with argument"),
        (["x", "--set", "rate"], "expected NAME=NUMBER, got 'rate'"),
        (["x", "--set", "rate=high"], "expected NAME=NUMBER, got 'rate=high'"),
    ],
)
def test_wrong_arguments_are_told(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_more_epochs_need_something_that_ends_the_run(training, tmp_path, capsys):
    path = tmp_path / "checkpoint.zip"
    loop = training.build(path, 1)
    loop.run()
    del loop.extensions[0]
    dump(loop, path)

    assert main([str(path), "--epochs", "1"]) == 2
    assert "the run has no FinishAfter to change" in capsys.readouterr().err


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def write_text(path):
    path.write_text("no checkpoint at all")


def without_pickle(path):
    dump(load(path), path, save_main_loop=False)


def something_else(path):
    dump([1, 2, 3], path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (Path.unlink, "does not exist"),
        (damage, "checkpoint.zip"),
        (cut, "checkpoint.zip"),
        (write_text, "checkpoint.zip"),
        (without_pickle, "holds no pickled main loop"),
        (something_else, "holds no main loop but a list"),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_one_line_and_status_3(path, capsys, spoil, message):
    spoil(path)

    assert main([str(path)]) == 3
    error = capsys.readouterr().err
    assert error.startswith("bricks-continue: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_run_is_continued_in_a_process_that_gets_sigterm_and_saves(training, tmp_path):
    path = tmp_path / "checkpoint.zip"
    training.build(path, 2, training.Wait()).run()
    loop = load(path)
    loop.find_extension("FinishAfter").set_conditions()
    loop.find_extension("Wait").set_conditions(after_batch=True)
    dump(loop, path)
    command = [sys.executable, "-m", "bricks.commands.continue_training", str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout.readline() == "batch\n"
        process.terminate()
        _, error = process.communicate("\n", timeout=120)

    assert "SIGTERM received: training ends after this batch" in error
    assert process.returncode == 143
    assert (batches(path), total(path)) == (3, 15)
