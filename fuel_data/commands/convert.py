"""The command `fuel-convert`: the files of a data set become one HDF5 file.

Exit status: 0 if the file is written, 1 if it could not be (the reason is on standard error, an old
file is still there), 2 if the command was called wrongly.
"""

import argparse
import contextlib
import functools
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import h5py

from fuel_data.commands.output import end_in_their_code, say, tidy, writing
from fuel_data.config_parser import config
from fuel_data.converters import all_converters
from fuel_data.converters.base import (
    INPUTS_ATTRIBUTE,
    STAGING,
    UsageError,
    record_folder,
    record_inputs,
)
from fuel_data.converters.opened import watch_files
from fuel_data.converters.provenance import write_provenance
from fuel_data.converters.storage import (
    LEVELS,
    Storage,
    default_storage,
    warn_of_what_is_not_compressed,
)
from fuel_data.datasets import hdf5_format
from fuel_data.datasets.hdf5_digests import add_digests
from fuel_data.downloaders import all_downloaders
from fuel_data.exceptions import MissingInputFiles
from fuel_data.utils.files import move_into_place, working_folder
from fuel_data.utils.parsers import positive
from fuel_data.utils.registry import command_parser, registered

SUFFIXES = (".hdf5", ".hdf", ".h5")
# Arguments that the downloader of the same name has too.
DOWNLOADED_BY = {"svhn": ("which_format",), "caltech101_silhouettes": ("size",)}
#: Of more input files there is one digest of all.
MAX_INPUTS = 100
EPILOG = (
    "Exit status: 0 if the file is written; 1 if it could not be, and then an old file of that "
    "name is still there; 2 if the command was called wrongly."
)
LEFT = "Nothing was written, and an old file is as it was."


@tidy("fuel-convert", "no file is half written")
def main(args: Sequence[str] | None = None) -> int:
    """Convert a data set.

    Parameters
    ----------
    args : sequence of str, optional
        The arguments, by default those of the process.

    Returns
    -------
    int
        0 if the file is written, 1 if it could not be, 2 if arguments do not fit together. What
        the parser refuses ends the process with 2.
    """
    args = list(sys.argv[1:] if args is None else args)
    program = "fuel-convert"
    try:
        options = vars(_parser().parse_args(args))
        name, convert = options.pop("_name"), options.pop("func")
        command = shlex.join([program, *args])
        program = f"{program} {name}"
        _set_target(options)
        storage = _storage(options)
        with default_storage(storage):
            for path in _convert(convert, command, options):
                say(f"{path}: {os.path.getsize(path):,} bytes")
                if storage.compression is not None:
                    _tell_what_is_not_compressed(program, path)
    except MissingInputFiles as error:
        print(f"{program}: {error}. {_way_out(name, options)}", file=sys.stderr)
        return 1
    except (OSError, ValueError, ImportError, NotImplementedError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except Exception as error:
        return end_in_their_code(program, error)
    return 0


def _parser() -> argparse.ArgumentParser:
    return command_parser(
        "fuel-convert",
        "Turn the files of a data set into an HDF5 file. For data of your own there are arrays, "
        "image_folder and stream; join is for HDF5 files.",
        EPILOG,
        registered(all_converters, config.extra_converters, "all_converters"),
        _add_common_arguments,
    )


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-d",
        "--directory",
        # Shells leave the ~ of --option=~/folder as it is.
        type=os.path.expanduser,
        default=os.curdir,
        help="folder with the input files, or one of them; by default the current folder",
    )
    parser.add_argument(
        "-o",
        "--output-directory",
        type=os.path.expanduser,
        default=os.curdir,
        help="folder for the HDF5 file, made if it is not there; by default the current folder",
    )
    parser.add_argument(
        "-r",
        "--output-filename",
        help="name of the HDF5 file; '.hdf5' is added if it has no such suffix",
    )
    parser.add_argument(
        "--compression",
        metavar="NAME[:LEVEL]",
        help=f"compress the values: {', '.join(LEVELS)} (the last two need hdf5plugin); by default "
        "they are not, and are read fastest. HDF5 does not compress values of variable length, as "
        "ragged sources, texts and encoded images have them; a warning names such",
    )
    parser.add_argument(
        "--chunk-examples",
        type=positive(int),
        metavar="NUMBER",
        help="examples in a chunk that is compressed; by default as many as fit into 3 KiB, which "
        "suits shuffled reading",
    )


def _storage(options: dict[str, Any]) -> Storage:
    try:
        return Storage.parse(options.pop("compression"), options.pop("chunk_examples"))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _way_out(name: str, options: dict[str, Any]) -> str:
    if name in dict(all_downloaders):
        folder = shlex.quote(options["directory"])
        command = " ".join([name, *(str(options[key]) for key in DOWNLOADED_BY.get(name, ()))])
        return f"Get them by `fuel-download {command} -d {folder}`, or say where they are by -d."
    return "Say where they are by -d."


def _set_target(options: dict[str, Any]) -> None:
    """Give the name of the file its suffix; refuse a path in its place, or a file as folder."""
    filename = options.pop("output_filename")
    given = options["output_directory"]
    if given.endswith(SUFFIXES) and not os.path.isdir(given):
        folder, name = os.path.split(given)
        put = f"-o {shlex.quote(folder)} " if folder else ""
        raise UsageError(
            f"--output-directory is a folder, and -r says the name in it, as in `{put}-r "
            f"{shlex.quote(name)}`; got {given!r}."
        )
    if filename is None:
        return
    folder, name = os.path.split(filename)
    if folder or not name:
        put = f", as in `-o {shlex.quote(folder)} -r {shlex.quote(name)}`" if name else ""
        raise UsageError(
            f"--output-filename is a name without a folder, which -o says{put}; got {filename!r}."
        )
    options["output_filename"] = name if name.endswith(SUFFIXES) else f"{name}.hdf5"


def _convert(convert: Callable, command: str, options: dict[str, Any]) -> Iterator[str]:
    """Convert in a folder beside the target, so that no converter can leave half a file."""
    folder = options.pop("output_directory")
    trouble = functools.partial(writing, folder, "choose another folder by -o", LEFT)
    with contextlib.ExitStack() as at_end:
        with trouble():
            os.makedirs(folder, exist_ok=True)
            staging = at_end.enter_context(working_folder(folder, STAGING))
        with trouble(below=staging):
            with watch_files(options["directory"], left_out=str(staging)) as inputs:
                written = convert(output_directory=str(staging), **options)
            _check_written(written)
            for path in written:
                # By way of a Python file: see `new_hdf5_file`.
                with open(path, "r+b") as raw, h5py.File(raw, mode="r+") as h5file:
                    write_provenance(h5file, command)
                    add_digests(h5file)
                    _record_noticed(h5file, options["directory"], inputs)
        for path in written:
            target = os.path.normpath(os.path.join(folder, os.path.basename(path)))
            with writing(target, "choose another name by -r, or another folder by -o", LEFT):
                move_into_place(path, target)
            yield target


def _tell_what_is_not_compressed(program: str, path: str) -> None:
    with h5py.File(path) as h5file:
        sources = hdf5_format.get_all_sources(h5file) if "split" in h5file.attrs else []
        warn_of_what_is_not_compressed(h5file, sources, f"{program}: warning: --compression")


def _check_written(written: Any) -> None:
    """Refuse what a converter of the user's gives if it is no list of HDF5 files."""
    is_list = isinstance(written, (list, tuple))
    wrong = [path for path in written if not _is_hdf5(path)] if is_list else [written]
    if wrong:
        raise ValueError(
            "the converter must write HDF5 files into `output_directory` and return a list of "
            f"their paths; got {wrong[0]!r}."
        )


def _is_hdf5(path: Any) -> bool:
    return isinstance(path, (str, os.PathLike)) and os.path.isfile(path) and h5py.is_hdf5(path)


def _record_noticed(h5file: h5py.File, directory: str, inputs: Sequence[str]) -> None:
    """Name what was read by a converter that does not do so itself."""
    if INPUTS_ATTRIBUTE in h5file.attrs or not inputs:
        return
    if len(inputs) <= MAX_INPUTS:
        record_inputs(h5file, inputs)
        return
    folder = os.path.abspath(directory)
    record_folder(h5file, folder, [os.path.relpath(path, folder) for path in inputs], "files")


if __name__ == "__main__":
    sys.exit(main())
