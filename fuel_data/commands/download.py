"""The command `fuel-download`: fetch the files of a data set, checked by their digests.

Exit status: 0 if all files are there, 1 if one could not be fetched (the reasons are on standard
error; what has come of it is gone on with the next time), 2 if the command was called wrongly.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from fuel_data.commands.output import end_in_their_code, say, tidy, writing
from fuel_data.config_parser import config
from fuel_data.downloaders import all_downloaders
from fuel_data.exceptions import NeedURLPrefix
from fuel_data.utils.registry import command_parser, registered

EPILOG = (
    "Files that are there and right are not fetched again. Exit status: 0 if all files are there; "
    "1 if one could not be fetched; 2 if the command was called wrongly."
)
LEFT = "What has come is kept as NAME.part for the next time."


@tidy("fuel-download", "what has come is kept as NAME.part for the next time")
def main(args: Sequence[str] | None = None) -> int:
    """Fetch the files of a data set.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments, by default those of the process.

    Returns
    -------
    int
        0 if all files are there, 1 if not. A wrong argument ends the process with 2.
    """
    program = "fuel-download"
    try:
        options = vars(_parser().parse_args(args))
        program += f" {options.pop('_name')}"
        clear, download = options["clear"], options.pop("func")
        folder = options["directory"]
        with writing(folder, "choose another folder by -d", LEFT, below=folder):
            paths = download(**options) or ()
        for path in paths:
            say(f"{path}: removed" if clear else f"{path}: {os.path.getsize(path):,} bytes")
        if clear and not paths:
            say("Nothing to remove.")
    except (OSError, ValueError, NeedURLPrefix) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        return end_in_their_code(program, error)
    return 0


def _parser() -> argparse.ArgumentParser:
    return command_parser(
        "fuel-download",
        "Fetch the files of a data set.",
        EPILOG,
        registered(all_downloaders, config.extra_downloaders, "all_downloaders"),
        _add_common_arguments,
    )


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-d",
        "--directory",
        type=os.path.expanduser,
        default=os.curdir,
        help="folder for the files, made if it is not there; by default the current folder",
    )
    parser.add_argument("--clear", action="store_true", help="remove the files instead")


if __name__ == "__main__":
    sys.exit(main())
