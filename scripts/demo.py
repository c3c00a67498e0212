"""Show the main job on real data, and that a killed run goes on as if nothing had happened.

``scripts/demo`` runs this in an environment of its own. It converts the data, trains an MLP that a
server process feeds, trains it again and kills that run from outside at a batch drawn now, goes on
with it in a new process, and compares what the two checkpoints hold, bit by bit.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

from fuel_data.commands import convert, download

HERE = Path(__file__).resolve().parent
CHECKPOINT_EVERY = 50
EPOCHS = {"digits": 100, "mnist": 5, "fashion_mnist": 12}
# What is about the clock or about files, not about the run.
OF_THE_MOMENT = ("saved_to",)


def main(args: list[str] | None = None) -> int:
    """Run the demonstration.

    Parameters
    ----------
    args : list of str, optional
        In place of the command line.

    Returns
    -------
    int
        0 if every step showed what it should.
    """
    arguments = parse_arguments(args)
    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["FUEL_DATA_PATH"] = str(folder.resolve())
    print(f"\n1. The raw images become {folder / arguments.dataset}.hdf5.\n", flush=True)
    if status := prepare_data(arguments, folder):
        return status
    runs = Runs(arguments.dataset, EPOCHS[arguments.dataset], folder)

    print("\n2. A run that nothing disturbs. A server process feeds it.\n", flush=True)
    runs.train("undisturbed", seed=1)
    print("\n3. The same run again, killed.\n", flush=True)
    runs.train_and_kill("killed", seed=1)
    print("\n4. bricks-continue goes on with it, in a new process.\n", flush=True)
    runs.go_on("killed")
    print("\n5. The same script with another seed.\n", flush=True)
    runs.train("other", seed=2)
    return 0 if compare_runs(runs) else 1


def parse_arguments(args: list[str] | None) -> argparse.Namespace:
    """Read the command line.

    Parameters
    ----------
    args : list of str or None
        In place of the command line.

    Returns
    -------
    argparse.Namespace
        The arguments.
    """
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description="Train, kill, go on, and compare bit by bit."
    )
    parser.add_argument("--dataset", choices=sorted(EPOCHS), default="digits")
    parser.add_argument("--directory", help="where the raw files are; downloaded if not given")
    parser.add_argument(
        "--folder", default=HERE.parent / "demo-files", help="where everything is written"
    )
    return parser.parse_args(args)


def prepare_data(arguments: argparse.Namespace, folder: Path) -> int:
    """Convert the raw files, downloading them first if they are not here.

    Parameters
    ----------
    arguments : argparse.Namespace
        What `parse_arguments` gives.
    folder : path
        Where the HDF5 file is written.

    Returns
    -------
    int
        0, or the status of the command that failed.
    """
    command = [arguments.dataset, "--output-directory", str(folder)]
    if arguments.dataset != "digits":
        raw = arguments.directory or str(folder / "raw" / arguments.dataset)
        if arguments.directory is None:
            Path(raw).mkdir(parents=True, exist_ok=True)
            if status := download.main([arguments.dataset, "--directory", raw]):
                return status
        command += ["--directory", raw]
    return convert.main(command)


class Runs:
    """Runs of ``train_mlp.py``, each with a checkpoint in one folder.

    Parameters
    ----------
    dataset : str
        What to train on.
    epochs : int
        How long.
    folder : path
        Where the checkpoints are.
    """

    def __init__(self, dataset: str, epochs: int, folder: Path) -> None:
        self.dataset = dataset
        self.epochs = epochs
        self.folder = folder

    def checkpoint(self, name: str) -> Path:
        """Give the checkpoint of a run.

        Parameters
        ----------
        name : str
            The run.

        Returns
        -------
        path
        """
        return self.folder / f"{name}.zip"

    def command(self, name: str, seed: int) -> list[str]:
        """Give the command that starts a run, with nothing left of an earlier one.

        Parameters
        ----------
        name : str
            The run.
        seed : int
            Of parameters, dropout and data.

        Returns
        -------
        list of str
        """
        for leftover in (self.checkpoint(name), self.log(name)):
            leftover.unlink(missing_ok=True)
        command = [sys.executable, str(HERE / "train_mlp.py"), f"--dataset={self.dataset}"]
        command += [f"--epochs={self.epochs}", f"--seed={seed}", "--log-every=1"]
        return command + [
            f"--checkpoint={self.checkpoint(name)}",
            f"--checkpoint-every={CHECKPOINT_EVERY}",
        ]

    def log(self, name: str) -> Path:
        """Give the log of a run, which can be followed while it runs.

        Parameters
        ----------
        name : str
            The run.

        Returns
        -------
        path
        """
        return self.checkpoint(name).with_suffix(".jsonl")

    def train(self, name: str, seed: int) -> None:
        """Train to the end.

        Parameters
        ----------
        name : str
            The run.
        seed : int
            Of parameters, dropout and data.
        """
        subprocess.run(self.command(name, seed), check=True)

    def train_and_kill(self, name: str, seed: int) -> None:
        """Train up to a batch drawn now, later than a checkpoint, and kill the process there.

        Parameters
        ----------
        name : str
            The run.
        seed : int
            Of parameters, dropout and data.
        """
        after_checkpoint = random.SystemRandom().randrange(1, CHECKPOINT_EVERY - 5)
        last = CHECKPOINT_EVERY * random.SystemRandom().randrange(2, 20)
        print(f"It will be killed once it has done batch {last + after_checkpoint}.", flush=True)
        process = subprocess.Popen(self.command(name, seed))
        try:
            for batch in batches_done(self.log(name), process):
                if batch >= last + after_checkpoint:
                    process.send_signal(signal.SIGKILL)
                    break
        finally:
            process.kill()
            process.wait()
        print(f"\nKilled (SIGKILL) after batch {batch}.", flush=True)

    def go_on(self, name: str) -> None:
        """Continue a run from its checkpoint, without the script.

        Parameters
        ----------
        name : str
            The run.
        """
        command = [str(Path(sys.executable).with_name("bricks-continue"))]
        subprocess.run([*command, str(self.checkpoint(name))], check=True)


def batches_done(log: Path, process: subprocess.Popen) -> Iterator[int]:
    """Follow the log of a run.

    Parameters
    ----------
    log : path
        Lines of JSON, which need not be there yet.
    process : subprocess.Popen
        Who writes it.

    Yields
    ------
    int
        The number of each batch that was logged.

    Raises
    ------
    RuntimeError
        If the process ends before anybody stops listening.
    """
    rest, position = "", 0
    while process.poll() is None:
        if log.exists():
            with open(log, encoding="utf-8") as file:
                file.seek(position)
                rest += file.read()
                position = file.tell()
        *lines, rest = rest.split("\n")
        for line in lines:
            row = json.loads(line)
            if "batch_cost" in row:
                yield row["iterations_done"]
        time.sleep(0.005)
    raise RuntimeError(f"the run ended by itself, with status {process.returncode}")


def compare_runs(runs: Runs) -> bool:
    """Compare what the runs ended with, and say so.

    Parameters
    ----------
    runs : Runs
        With ``undisturbed``, ``killed`` and ``other``.

    Returns
    -------
    bool
        Whether the killed run equals the undisturbed one, and the other does not.
    """
    undisturbed, killed, other = (
        flatten(final_state(runs.checkpoint(name))) for name in ("undisturbed", "killed", "other")
    )
    different = differences(undisturbed, killed)
    print("\n6. Comparison, bit by bit.\n")
    for part in ("parameters", "algorithm", "log", "stream"):
        names = [name for name in undisturbed if name.startswith(f"{part}/")]
        wrong = [name for name in different if name.startswith(f"{part}/")]
        result = f"{len(wrong)} DIFFER: {', '.join(wrong[:3])}" if wrong else "all identical"
        print(f"   killed and resumed run, {part}: {len(names)} values, {result}")
    from_other = differences(undisturbed, other)
    print(f"   run with another seed: {len(from_other)} values differ, as they should")
    errors = [value for name, value in undisturbed.items() if name.endswith("/test_error_rate")]
    print(f"\n   Test accuracy after the last epoch: {100 * (1 - errors[-1]):.2f} %")
    good = not different and bool(from_other)
    print(f"\n{'The killed run ended as the undisturbed one did.' if good else 'FAILED.'}")
    return good


def final_state(checkpoint: Path) -> dict[str, Any]:
    """Read what a checkpoint holds by name, unpickling nothing.

    Parameters
    ----------
    checkpoint : path
        The file.

    Returns
    -------
    dict
    """
    from bricks.log import TrainingLog
    from bricks.serialization import load_state

    state = load_state(checkpoint)
    log = TrainingLog()
    log.set_state(state["log"])
    return {**state, "log": {time: dict(row) for time, row in log.items()}}


def flatten(tree: Any, path: str = "") -> dict[str, Any]:
    """Give the leaves of nested dicts and lists by path.

    Parameters
    ----------
    tree : plain data
        Anything.
    path : str
        Where it stands.

    Returns
    -------
    dict of str to plain data
        Without what is about the clock or about files.
    """
    if isinstance(tree, dict):
        items = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, list | tuple):
        items = [(f"{number:06}", value) for number, value in enumerate(tree)]
    else:
        return {path: tree}
    leaves: dict[str, Any] = {}
    for name, value in items:
        if name not in OF_THE_MOMENT:
            leaves |= flatten(value, f"{path}/{name}" if path else name)
    return leaves


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Name the leaves that are not bit for bit the same in both.

    Parameters
    ----------
    one, other : dict
        What `flatten` gives.

    Returns
    -------
    list of str
    """
    names = sorted(one.keys() | other.keys())
    return [
        name
        for name in names
        if name not in one or name not in other or not same_bits(one[name], other[name])
    ]


def same_bits(one: Any, other: Any) -> bool:
    """Tell whether two values are of one type and hold the same bits.

    Parameters
    ----------
    one, other : plain data
        Leaves.

    Returns
    -------
    bool
    """
    one, other = numpy.asarray(one), numpy.asarray(other)
    same_type = one.dtype == other.dtype and one.shape == other.shape
    return same_type and one.tobytes() == other.tobytes()


if __name__ == "__main__":
    sys.exit(main())
