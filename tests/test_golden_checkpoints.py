"""Checkpoints of earlier releases load, hold what they held, and their runs go on.

What is expected was computed by numpy (``tests/golden/write.py``), in float64; so values are
compared with what float32 can do. Bit for bit the same are, whatever the versions, the arrays of
the data and of the random keys; and, where the versions are those of the checkpoint and the step is
still the same program, the ends of the run that was unpickled and of the one that was restored by
name.
"""

import contextlib
import importlib
from pathlib import Path

import numpy
import pytest

from bricks.archive import Archive
from bricks.main_loop import MainLoop
from bricks.provenance import describe, differences, lowered_steps
from bricks.serialization import load, load_parameters, load_state
from bricks.state import get_state

FOLDER = Path(__file__).with_name("golden")
RELEASES = sorted(path.stem for path in FOLDER.glob("*.zip"))
# What the pickle of a main loop holds objects of, or is computed by.
PICKLED = ("aesara", "jax", "jaxlib", "numpy")
TOLERANCE = {"rtol": 1e-4, "atol": 1e-6}

# Between two releases the compiled step may become another program.
pytestmark = pytest.mark.filterwarnings("ignore:The training step for batches:UserWarning")


@pytest.fixture(params=RELEASES)
def golden(request, monkeypatch):
    """Give a golden checkpoint, what is to be found in it, and the module of its run."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return Golden(request.param, importlib.import_module("golden_run"))


class Golden:
    """A golden checkpoint.

    Parameters
    ----------
    release : str
        Its version.
    run : module
        How its run was built.
    """

    def __init__(self, release, run):
        self.path = FOLDER / f"{release}.zip"
        self.run = run
        with numpy.load(FOLDER / f"{release}.npz") as arrays:
            self.expected = dict(arrays)
        with Archive(self.path) as archive:
            self.manifest = archive.manifest
            archive.verify()

    def at(self, num_batches):
        """Give the arrays that are expected after some batches."""
        start = f"{num_batches} "
        arrays = self.expected
        return {name[len(start) :]: arrays[name] for name in arrays if name.startswith(start)}

    def warning(self):
        """Expect the warning that names other versions, if there are any."""
        if differences(self.manifest):
            return pytest.warns(UserWarning, match=r"was made with .* \(now ")
        return contextlib.nullcontext()

    def versions_are_the_same(self):
        """Tell whether the pickle is promised to load: later releases of firebrick do so."""
        here = describe()
        return self.manifest["python"].split(".")[:2] == here["python"].split(".")[:2] and all(
            self.manifest["libraries"][name] == here["libraries"][name] for name in PICKLED
        )

    def restored(self, folder):
        """Build the run anew, restore it by name, and train it to its end."""
        loop = self.run.build_main_loop(folder / "golden.zip", self.run.ENDS_AFTER)
        with self.warning():
            loop.restore(self.path)
            loop.run()
        return loop

    def unpickled(self, folder):
        """Load the pickled run, and train it to its end."""
        with self.warning():
            loop = load(self.path)
        loop.find_extension("Checkpoint").path = str(folder / "golden.zip")
        loop.find_extension("FinishAfter").extend(
            batches=self.run.ENDS_AFTER - self.run.SAVED_AFTER
        )
        loop.run()
        return loop


def arrays_of(state):
    """Give the arrays of a state by name."""
    return {**state["parameters"], **state["persistent"], **state["algorithm"]}


def check_arrays(state, expected):
    """Compare the arrays that are expected."""
    found = arrays_of(state)
    for name, array in expected.items():
        if array.dtype == "uint32":
            assert found[name].tolist() == array.tolist()
        else:
            assert found[name].dtype == "float32"
            numpy.testing.assert_allclose(found[name], array, err_msg=name, **TOLERANCE)


def check_costs(log, costs):
    """Compare the costs that were logged for each batch and each epoch of three."""
    times = range(1, len(costs) + 1)
    found = [log[time]["batch_cost"] for time in times]
    numpy.testing.assert_allclose(found, costs, **TOLERANCE)
    ends = [time for time in times if time % 3 == 0]
    found = [log[time]["train_cost"] for time in ends]
    means = [costs[time - 3 : time].mean() for time in ends]
    numpy.testing.assert_allclose(found, means, **TOLERANCE)


def test_there_is_a_golden_checkpoint():
    assert "0.1.0" in RELEASES


def test_the_stream_still_gives_the_batches_of_the_run(golden):
    stream = golden.run.make_stream()
    batches = [batch for _ in range(4) for batch in stream.get_epoch_iterator()]

    for source, name in enumerate(("features", "targets")):
        expected = golden.expected[name]
        found = numpy.stack([batch[source] for batch in batches[: len(expected)]])
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


def test_anyone_with_numpy_reads_the_parameters(golden):
    expected = golden.at(golden.run.SAVED_AFTER)
    parameters = load_parameters(golden.path)

    assert set(parameters) == {name for name in expected if name.startswith("/")}
    with numpy.load(golden.path) as arrays:
        for name, value in parameters.items():
            assert arrays[name].tobytes() == value.tobytes()
            numpy.testing.assert_allclose(value, expected[name], **TOLERANCE)


def test_the_state_is_read_by_name(golden):
    with golden.warning():
        state = load_state(golden.path)

    check_arrays(state, golden.at(golden.run.SAVED_AFTER))
    assert state["algorithm"]["algorithm/step_rule.time"] == golden.run.SAVED_AFTER
    assert state["log"]["status"]["_epoch_ends"] == [3]
    position = state["stream"]["iterator"]
    assert (position["epoch"], position["index"]) == (1, 2)


def test_the_run_is_restored_by_name_and_goes_on(golden, tmp_path):
    loop = golden.restored(tmp_path)

    check_arrays(get_state(loop), golden.at(golden.run.ENDS_AFTER))
    check_costs(loop.log, golden.expected["costs"])
    assert loop.status["epochs_done"] == 3


def test_with_the_same_versions_the_pickled_run_goes_on_like_the_restored_one(golden, tmp_path):
    ways = [golden.restored]
    if golden.versions_are_the_same():
        ways.append(golden.unpickled)
    loops = [way(tmp_path) for way in ways]

    ends, steps = [], []
    for loop in loops:
        assert isinstance(loop, MainLoop)
        check_arrays(get_state(loop), golden.at(golden.run.ENDS_AFTER))
        costs = [loop.log[time]["batch_cost"] for time in range(1, golden.run.ENDS_AFTER + 1)]
        arrays = {name: array.tobytes() for name, array in arrays_of(get_state(loop)).items()}
        ends.append((arrays, costs))
        steps.append(lowered_steps(loop.algorithm))
    assert all(end == ends[0] for end, step in zip(ends, steps, strict=True) if step == steps[0])
