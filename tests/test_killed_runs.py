"""Training runs are killed at random moments, go on, and end bit for bit as if nothing had been.

Trainer and servers get SIGKILL. Everything else is real too: an HDF5 file, server processes,
random transformers, dropout and noise, buffers, monitoring over batches, a checkpoint every few
batches. Each run says after each batch, and while it writes each checkpoint, that it is there, and
waits to be told to go on: so a kill never comes too late, whatever else the machine does.
"""

import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy
import pytest

from bricks.log import JSONLinesLog, SQLiteLog, TrainingLog
from bricks.serialization import load_state
from fuel_data.datasets.hdf5 import H5PYDataset
from fuel_data.server.protocol import HEARTBEAT

HERE = Path(__file__).with_name("killed_runs")
ROOT = Path(__file__).parents[1]
CHECKPOINT = "run.zip"
NUM_BATCHES = 45
NUM_TRAINING, NUM_TEST = 60, 20
# Far more than any process takes; a run that hangs is ended, and fails its test.
MAX_SECONDS = 120
# Who continues whom, in the status.
OF_THE_LOG = ("resumed_from", "_resumed_at")


class Moment(NamedTuple):
    """When to kill whom.

    Attributes
    ----------
    event : {'start', 'batch', 'saving'}
        When the first server of a process has appeared; when a batch was done; when a checkpoint is
        being written.
    batch : int
        Not before so many batches were done.
    delay : float
        Seconds after the event; the run goes on meanwhile. 0 while a checkpoint is written.
    victims : {'trainer', 'server', 'both'}
        Whom.
    server : int
        Which of the servers that are alive, counted over and over.
    """

    event: str
    batch: int
    delay: float
    victims: str
    server: int = 0


MAX_DELAYS = {
    # The time in which a server loads its data and the trainer compiles.
    "start": 1.0,
    # Longer than a batch: some kills hit a run that waits, and most one that works.
    "batch": 0.04,
    # The run waits; the checkpoint is half written.
    "saving": 0.0,
}


def draw_moments(rng, num_trainers, num_servers):
    """Draw when to kill a trainer so often and a server so often, some of them together."""
    both = min(num_trainers, num_servers) // 2
    victims = ["both"] * both
    victims += ["trainer"] * (num_trainers - both) + ["server"] * (num_servers - both)
    rng.shuffle(victims)
    # The last checkpoint but that of the end comes after batch 44.
    batches = sorted(rng.sample(range(1, NUM_BATCHES - 4), len(victims)))
    moments = []
    starts = True
    for batch, victim in zip(batches, victims, strict=True):
        events = ["batch", "batch", "batch", "saving"]
        events += ["start"] if starts and victim == "trainer" else []
        event = rng.choice(events)
        delay = rng.uniform(0, MAX_DELAYS[event])
        moments.append(Moment(event, batch, delay, victim, server=rng.randrange(2)))
        starts = victim != "server"
    return moments


class Run:
    """A training run in a folder of its own, gone on with in a new process after each kill.

    Parameters
    ----------
    folder : path
        Where its files are.
    sockets : path
        Where its servers have their sockets; named in their command lines.
    data : path
        The HDF5 file.
    *options : str
        Of the script.
    """

    def __init__(self, folder, sockets, data, *options):
        self.folder = folder
        self.sockets = sockets
        self.options = [f"--data={data}", f"--batches={NUM_BATCHES}", *options]
        self.killed = {"trainer": 0, "server": 0, "while saving": 0}
        folder.mkdir()

    def train(self, moments=(), ways=("restored",)):
        """Train to the end, whatever is killed on the way.

        Parameters
        ----------
        moments : iterable of Moment
            In the order of their batches. All of them come.
        ways : iterable of {'restored', 'pickled'}
            How to go on each time, over and over: by the script, which restores the checkpoint, or
            by bricks-continue, which unpickles it.

        Returns
        -------
        Run
            This one.
        """
        moments = deque(moments)
        for way in itertools.cycle(ways):
            with self._trainer(way) as process:
                ended = self._follow(process, moments)
            self._see_servers_end()
            if ended:
                break
        assert not moments
        return self

    def _command(self, way):
        # A run that was killed before its first checkpoint begins anew.
        if way == "pickled" and (self.folder / CHECKPOINT).exists():
            return [sys.executable, "-m", "bricks.commands.continue_training", CHECKPOINT]
        return [sys.executable, str(HERE / "train.py"), *self.options]

    @contextlib.contextmanager
    def _trainer(self, way):
        paths = os.pathsep.join([str(ROOT), str(HERE)])
        with (
            open(self.folder / "errors.txt", "a") as errors,
            subprocess.Popen(
                self._command(way),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": paths},
            ) as process,
        ):
            watchdog = threading.Timer(MAX_SECONDS, process.kill)
            watchdog.start()
            try:
                yield process
            finally:
                watchdog.cancel()
                process.kill()

    def _follow(self, process, moments):
        """Follow a process to its end; tell whether it came by itself."""
        if moments and moments[0].event == "start":
            wait_until(self.servers, MAX_SECONDS)
            return not self._strike(process, moments.popleft())
        for line in process.stdout:
            event, batch = line.split()
            due = moments and moments[0].event == event and moments[0].batch <= int(batch)
            # A server that was killed is replaced when it is needed, which may be a bit later.
            if due and (moments[0].victims == "trainer" or self.servers()):
                if self._strike(process, moments.popleft()):
                    return False
            else:
                go_on(process)
        assert process.wait() == 0, self.errors()
        return True

    def _strike(self, process, moment):
        """Kill; tell whether the trainer is dead."""
        if moment.event == "batch":
            go_on(process)
        # No pause for luck: it is the moment that was drawn.
        time.sleep(moment.delay)
        if moment.event == "saving":
            assert self.unfinished()
        if moment.victims != "trainer":
            servers = self.servers()
            os.kill(servers[moment.server % len(servers)], signal.SIGKILL)
            self.killed["server"] += 1
        if moment.victims != "server":
            process.kill()
            process.wait()
            self.killed["trainer"] += 1
            self.killed["while saving"] += moment.event == "saving"
            return True
        if moment.event == "saving":
            go_on(process)
        return False

    def servers(self):
        """Give the ids of the servers of this run that are alive."""
        return processes_naming(str(self.sockets))

    def unfinished(self):
        """Give the temporary files of checkpoints."""
        return list(self.folder.glob(f".{CHECKPOINT}.*"))

    def errors(self):
        """Give what the processes printed as errors."""
        return (self.folder / "errors.txt").read_text()

    def _see_servers_end(self):
        wait_until(lambda: not self.servers(), 2 * HEARTBEAT)

    def state(self):
        """Give all that the last checkpoint holds, and each row of the log, by path.

        Returns
        -------
        dict of str to (dtype, shape, bytes)
        """
        log = self.log()
        status = {name: log.status[name] for name in log.status if name not in OF_THE_LOG}
        state = load_state(self.folder / CHECKPOINT)
        return dict(leaves_of(state | {"log": {"status": status, "rows": rows_of(log)}}))

    def log(self):
        """Give the log that belongs to the last checkpoint."""
        state = load_state(self.folder / CHECKPOINT)["log"]
        # The checkpoint of such a run has no rows, but says where they are.
        log = SQLiteLog(self.folder / "run.sqlite") if "database" in state else TrainingLog()
        log.set_state(state)
        return log


def go_on(process):
    """Tell a run that waits to go on."""
    process.stdin.write("\n")
    process.stdin.flush()


def rows_of(log):
    """Give the rows of a log as plain dicts."""
    return {time: dict(log.peek(time)) for time in log}


def leaves_of(tree, path=""):
    """Yield the paths, types and bits of all that is in nested dicts and lists."""
    if isinstance(tree, dict | list | tuple):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        yield path, (type(tree), len(tree))
        for name, value in items:
            yield from leaves_of(value, f"{path}/{name}" if path else str(name))
    else:
        array = numpy.asarray(tree)
        yield path, (type(tree), array.dtype, array.shape, array.tobytes())


def differences(state, other):
    """Name what is not the same bit for bit in two states."""
    return sorted(name for name in state | other if state.get(name) != other.get(name))


def processes_naming(text):
    """Give the ids of the living processes whose command line has a text in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return sorted(found)


def wait_until(claim, seconds):
    """Wait for a claim to hold; fail if it does not in time."""
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, f"waited in vain for {seconds} seconds"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write an HDF5 file with features, targets and words of different lengths."""
    path = tmp_path_factory.mktemp("data") / "examples.hdf5"
    rng = numpy.random.default_rng(5)
    total = NUM_TRAINING + NUM_TEST
    with h5py.File(path, "w") as file:
        file["features"] = rng.integers(0, 256, size=(total, 6), dtype="uint8")
        file["targets"] = rng.integers(0, 3, size=(total, 1))
        file.create_dataset("words", (total,), dtype=h5py.vlen_dtype("float32"))
        for index in range(total):
            file["words"][index] = rng.normal(size=1 + index % 4)
        bounds = {"train": (0, NUM_TRAINING), "test": (NUM_TRAINING, total)}
        sources = ("features", "targets", "words")
        splits = {name: dict.fromkeys(sources, place) for name, place in bounds.items()}
        file.attrs["split"] = H5PYDataset.create_split_array(splits)
    return path


@pytest.fixture(scope="module")
def sockets():
    """Make a folder for sockets, whose paths have to be short, and see that no server remains."""
    folder = Path(tempfile.mkdtemp(prefix="kill-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder
    left = processes_naming(str(folder))
    # A server that was killed together with its trainer leaves its folder behind.
    shutil.rmtree(folder)
    assert left == []


@pytest.fixture(scope="module")
def undisturbed(data, sockets, tmp_path_factory):
    """Train without any kill."""
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    return Run(folder, sockets, data).train()


def check_end(run, undisturbed):
    """Check that a run ended as the one that nothing disturbed."""
    assert differences(run.state(), undisturbed.state()) == []
    # No word of other versions, or of a checkpoint that is written without its pickle.
    assert "UserWarning" not in run.errors()


def test_a_run_that_is_continued_without_its_script_ends_as_if_it_had_not_been_killed(
    undisturbed, data, sockets, tmp_path
):
    before_the_first_checkpoint = Moment("batch", 3, 0.0, "trainer")
    drawn = draw_moments(random.Random(14), num_trainers=2, num_servers=3)
    run = Run(tmp_path / "killed", sockets, data, "--log=jsonlines")
    run.train([before_the_first_checkpoint, *drawn], ways=["pickled"])

    assert run.killed == {"trainer": 3, "server": 3, "while saving": 1}
    check_end(run, undisturbed)
    # No row of the file is missing, and none stands there twice.
    rows = dict(leaves_of(rows_of(JSONLinesLog.read(run.folder / "run.jsonl"))))
    assert differences(rows, dict(leaves_of(rows_of(undisturbed.log())))) == []


def test_a_run_that_is_restored_by_its_script_ends_as_if_it_had_not_been_killed(
    undisturbed, data, sockets, tmp_path
):
    while_it_starts = Moment("start", 0, 0.3, "trainer")
    drawn = draw_moments(random.Random(6), num_trainers=1, num_servers=2)
    run = Run(tmp_path / "killed", sockets, data, "--log=sqlite", "--in-memory")
    run.train([while_it_starts, *drawn], ways=["restored"])

    assert (run.killed["trainer"], run.killed["server"]) == (2, 2)
    check_end(run, undisturbed)


def test_a_run_with_another_seed_ends_otherwise(undisturbed, data, sockets, tmp_path):
    other = Run(tmp_path / "other", sockets, data, "--seed=2").train()

    different = differences(other.state(), undisturbed.state())

    parameters = [name for name in undisturbed.state() if name.startswith("parameters//")]
    keys = [name for name in undisturbed.state() if name.startswith("algorithm/algorithm/random/")]
    batches = [f"log/rows/{number}/batch" for number in range(1, NUM_BATCHES + 1)]
    errors = ["log/rows/6/train_cost", "log/rows/5/recent_cost", "log/rows/0/test_cost"]
    assert keys
    assert {*parameters, *keys, *batches, *errors, "stream/iterator/pipeline"} <= set(different)


def test_one_bit_makes_two_states_differ(undisturbed):
    state = {"a": {"b": numpy.float32([1, 2])}, "c": [0.0, "text"]}
    other = {"a": {"b": numpy.nextafter(state["a"]["b"], 3)}, "c": [-0.0, "text"]}

    assert differences(dict(leaves_of(state)), dict(leaves_of(other))) == ["a/b", "c/0"]
    assert differences(dict(leaves_of(state)), dict(leaves_of(state))) == []


@pytest.mark.parametrize("load_in_memory", [True, False], ids=["in memory", "on disk"])
def test_the_batches_are_those_that_the_stream_gives_in_one_process(
    undisturbed, data, load_in_memory, monkeypatch
):
    monkeypatch.syspath_prepend(str(HERE))
    from lockstep import digest_of
    from pipelines import train

    stream = train(str(data), load_in_memory, seed=1)
    batches = []
    while len(batches) < NUM_BATCHES:
        batches += [digest_of(batch) for batch in stream.get_epoch_iterator(as_dict=True)]

    log = undisturbed.log()
    assert [log[number]["batch"] for number in range(1, NUM_BATCHES + 1)] == batches[:NUM_BATCHES]


@pytest.mark.soak
def test_two_hundred_trainers_and_servers_are_killed(undisturbed, data, sockets, tmp_path, capsys):
    seed = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(2**32)))
    with capsys.disabled():
        print(f"\nKILL_SEED={seed}")
    rng = random.Random(seed)
    killed = {"trainer": 0, "server": 0, "while saving": 0}
    for number in range(20):
        options = [f"--log={rng.choice(['python', 'jsonlines', 'sqlite'])}"]
        options += rng.choice([["--in-memory"], []])
        run = Run(tmp_path / f"killed-{number}", sockets, data, *options)
        ways = [rng.choice(["pickled", "restored"]) for _ in range(11)]
        run.train(draw_moments(rng, num_trainers=10, num_servers=10), ways)
        check_end(run, undisturbed)
        killed = {victim: killed[victim] + run.killed[victim] for victim in killed}

    assert (killed["trainer"], killed["server"]) == (200, 200)
    assert killed["while saving"] > 0
