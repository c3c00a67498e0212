"""``fuel-server``: serve the stream that a recipe builds."""

import argparse
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuel_data.commands.output import WriteError, say, writing
from fuel_data.server.addresses import hold_folder
from fuel_data.server.errors import AddressError, RecipeError, ServerError
from fuel_data.server.pickled import SentStream
from fuel_data.server.process import LAST_WORDS, end_with_owner, receive_recipe
from fuel_data.server.protocol import HEARTBEAT
from fuel_data.server.recipe import Recipe, failures_of_recipes, parse_arguments
from fuel_data.server.server import Server
from fuel_data.utils.parsers import Parser, positive

_EPILOG = """
A recipe is module:function or file.py:function; the function builds a stream and returns it.
Without --address, the server listens in a folder that only you can enter, where
ServerDataStream() finds it. A server at tcp://127.0.0.1:PORT asks for a token: that in
FUEL_SERVER_TOKEN, or else one that it makes, which your own processes on this machine find by
themselves.
"""


def main(args: Sequence[str] | None = None) -> int:
    """Serve until interrupted.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments of the command, by default those of the process.

    Returns
    -------
    int
        0 after an interrupt, 2 after an error of the user's.
    """
    options = _parser().parse_args(args)
    # A server with an owner speaks only when something is wrong.
    level = logging.INFO if options.owner is None else logging.WARNING
    logging.basicConfig(level=level, format="fuel-server: %(message)s")
    before = _handle_signals(signal.default_int_handler)
    try:
        _serve(options)
    except KeyboardInterrupt:
        return 0
    except (ServerError, RecipeError, AddressError, WriteError) as error:
        start = "fuel-server: " if options.owner is None else LAST_WORDS
        print(f"{start}{error}", file=sys.stderr)
        return 2
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _handle_signals(handler: Any) -> dict[int, Any]:
    return {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="fuel-server",
        description="Serve a data stream to training processes.",
        epilog=_EPILOG,
    )
    parser.add_argument("recipe", help="module:function or file.py:function")
    parser.add_argument(
        "--argument",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the function; the value is JSON or YAML",
    )
    parser.add_argument("--address", help="ipc://PATH or tcp://127.0.0.1:PORT")
    parser.add_argument(
        "--hwm",
        type=positive(int),
        default=10,
        help="batches prepared ahead for a client (default: 10)",
    )
    parser.add_argument(
        "--heartbeat",
        type=positive(float),
        default=HEARTBEAT,
        help="seconds between signs of life (default: %(default)s)",
    )
    parser.add_argument("--ready-file", help="written once clients can connect: the address")
    # What a training process passes to the server that it starts.
    parser.add_argument("--owner", type=int, help=argparse.SUPPRESS)
    return parser


def _serve(options: argparse.Namespace) -> None:
    recipe: Recipe | SentStream
    with contextlib.ExitStack() as at_end:
        if options.owner is None:
            recipe = Recipe(options.recipe, parse_arguments(options.argument))
        else:
            folder = Path(options.address.removeprefix("ipc://")).parent
            at_end.callback(os.close, hold_folder(folder))
            at_end.callback(shutil.rmtree, folder, ignore_errors=True)
            recipe = receive_recipe()
            end_with_owner(options.owner, options.heartbeat, folder)
        # Before the data is loaded: a busy address is known at once.
        is_own = options.owner is not None
        server = at_end.enter_context(
            Server(options.address, heartbeat=options.heartbeat, is_own=is_own)
        )
        with failures_of_recipes():
            stream = at_end.enter_context(contextlib.closing(recipe.build()))
        # An exception in the middle of it would leave a thread behind.
        _handle_signals(lambda *_: server.stop())
        at_end.callback(_handle_signals, signal.default_int_handler)
        if options.owner is None:
            say(f"fuel-server: serving {options.recipe} at {server.address}")
        ready = options.ready_file
        if ready is not None:
            way_out = "choose another --ready-file"
            at_end.enter_context(writing(ready, way_out, below=os.path.dirname(ready)))
        server.serve(stream, hwm=options.hwm, ready_file=ready)


if __name__ == "__main__":
    sys.exit(main())
