"""``bricks-continue CHECKPOINT``: go on with a run, without the script that began it."""

import argparse
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from fuel_data.utils.names import nearest_name

EXIT_UNUSABLE = 3

_DESCRIPTION = """\
Go on with the training run that is saved in CHECKPOINT, from the batch at which it was saved.
The file holds the main loop as a pickle, which runs code: only for files that you trust.
Modules of yours are looked for in the current folder too."""

_ENDED = (
    "is of a run that had ended, after {} batches, so none was done now. `--epochs N` or "
    "`--batches N` lets it go on beyond that."
)

_EPILOG = """\
exit status:
  0    training ended by itself
  1    training was stopped by an exception
  2    an argument is wrong
  3    the checkpoint is missing, damaged, foreign, or holds no main loop that can be loaded
  129  SIGHUP: as SIGTERM, because the terminal was closed
  130  SIGINT: training ended after the epoch (once) or the batch (twice)
  143  SIGTERM: training ended after the batch; a checkpoint was written if the run writes them"""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit status.
    """
    options = _parser().parse_args(args)
    # As `python -m` has it, so that modules beside the run are found.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        main_loop = _load(options.checkpoint)
    except _Unusable as error:
        print(f"bricks-continue: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    try:
        _change(main_loop, options)
    except ValueError as error:
        print(f"bricks-continue: {error}", file=sys.stderr)
        return 2
    done = main_loop.status["iterations_done"]
    main_loop.run()
    if main_loop.exit_status == 0 and main_loop.status["iterations_done"] == done:
        print(f"bricks-continue: {options.checkpoint} {_ENDED.format(done)}", file=sys.stderr)
    return main_loop.exit_status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bricks-continue",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="the file")
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--epochs", type=_count, metavar="N", help="end after N more epochs (changes FinishAfter)"
    )
    more.add_argument(
        "--batches", type=_count, metavar="N", help="end after N more batches (changes FinishAfter)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=_assignment,
        metavar="NAME=VALUE",
        dest="assignments",
        help="set a number of the algorithm first, such as "
        "algorithm/step_rule.learning_rate=0.01; may be given several times",
    )
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text!r}")
    return int(text)


def _assignment(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    try:
        return name, float(value) if equals else float("")
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, got {text!r}") from None


class _Unusable(Exception):
    """Why a checkpoint cannot be used, in one line."""


def _load(path: str) -> Any:
    """Unpickle the main loop of a checkpoint."""
    from bricks.serialization import load

    if not os.path.exists(path):
        raise _Unusable(f"{path} does not exist.")
    try:
        loaded = load(path)
    except (OSError, ValueError, KeyError, pickle.UnpicklingError) as error:
        # The text of a KeyError is quoted by `str`.
        reason = str(error.args[0] if isinstance(error, KeyError) else error)
        raise _Unusable(" ".join(reason.split())) from error
    if not hasattr(loaded, "run") or not hasattr(loaded, "data_stream"):
        raise _Unusable(f"{path} holds no main loop but a {type(loaded).__name__}.")
    return loaded


def _change(main_loop: Any, options: argparse.Namespace) -> None:
    _extend(main_loop, options)
    if not options.assignments:
        return
    from bricks.state import named_variables

    variables: Mapping[str, Any] = named_variables(main_loop)["algorithm"]
    for name, value in options.assignments:
        if name not in variables:
            raise ValueError(
                f"--set: nothing of the algorithm is called {name!r}."
                f"{nearest_name(name, variables)}"
            )
        variable = variables[name]
        if variable.ndim:
            raise ValueError(f"--set: {name} is no number but an array.")
        variable.set_value(numpy.asarray(value, dtype=variable.dtype))


def _extend(main_loop: Any, options: argparse.Namespace) -> None:
    if options.epochs is None and options.batches is None:
        return
    ending = [extension for extension in main_loop.extensions if hasattr(extension, "extend")]
    if not ending:
        raise ValueError("--epochs and --batches: the run has no FinishAfter to change.")
    for extension in ending:
        extension.extend(epochs=options.epochs, batches=options.batches)


if __name__ == "__main__":
    sys.exit(main())
