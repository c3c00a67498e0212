"""The files that converters of known data sets read: found, and compared with published ones."""

import argparse
import csv
import os
from collections.abc import Iterable, Iterator, Mapping

from fuel_data.exceptions import MissingInputFiles
from fuel_data.utils.algorithms import algorithm_of
from fuel_data.utils.digests import file_digest


def find_inputs(directory: str | os.PathLike[str], names: Iterable[str]) -> list[str]:
    """Find the input files of a converter.

    Parameters
    ----------
    directory : path
        Their folder, or one of them.
    names : iterable of str
        What they are called.

    Returns
    -------
    list of str
        Their paths.

    Raises
    ------
    MissingInputFiles
        If some are missing; all of them are named.
    """
    folder = os.path.dirname(directory) if os.path.isfile(directory) else os.fspath(directory)
    paths = {name: os.path.join(folder, name) for name in names}
    missing = [name for name, path in paths.items() if not os.path.isfile(path)]
    if missing:
        raise MissingInputFiles(f"Not in the folder {folder!r}", missing)
    return list(paths.values())


def read_rows(path: str, *, skipinitialspace: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Read a table with commas.

    Parameters
    ----------
    path : str
        The file, in UTF-8.
    skipinitialspace : bool, optional
        Whether to leave out spaces after a comma, as `csv.reader` does.

    Yields
    ------
    line : int
        Number of the line, or of the last one of the row.
    row : list of str
        Its cells.

    Raises
    ------
    ValueError
        If it is no text, or no table.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.reader(file, skipinitialspace=skipinitialspace)
            for row in reader:
                yield reader.line_num, row
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}.") from error


def check_digest(path: str | os.PathLike[str], expected: str) -> None:
    """Refuse a file that is not the published one.

    Parameters
    ----------
    path : path
        The file.
    expected : str
        Its digest in hexadecimal digits: MD5 if there are 32, SHA-256 if there are 64.

    Raises
    ------
    ValueError
        If its digest is another one.
    """
    algorithm = algorithm_of(expected)
    got = file_digest(path, algorithm)
    if got != expected:
        raise ValueError(
            f"{os.fspath(path)}: the {algorithm.upper()} digest of the published file is "
            f"{expected}, that of this one {got}. It is damaged or another version; fetch it "
            "again, or convert it as it is by --any-version."
        )


def check_digests(
    paths: Iterable[str], digests: Mapping[str, str | None], any_version: bool
) -> None:
    """Refuse files that are not the published ones.

    Parameters
    ----------
    paths : iterable of str
        The files.
    digests : mapping of str to str or None
        Name of the file → its digest; None if nobody has published it.
    any_version : bool
        Whether to take any.

    Raises
    ------
    ValueError
        At the first that is another file.
    """
    for path in paths:
        expected = digests.get(os.path.basename(path))
        if expected is not None and not any_version:
            check_digest(path, expected)


def check_count(path: str, what: str, got: int, expected: int, any_version: bool) -> None:
    """Refuse a file with more or fewer examples than the published one.

    Parameters
    ----------
    path : str
        The file.
    what : str
        What is counted, such as ``'images'``.
    got, expected : int
        Their number here, and in the published file.
    any_version : bool
        Whether to take any number, but none.

    Raises
    ------
    ValueError
        If there are more or fewer.
    """
    if got == 0 or (got != expected and not any_version):
        raise ValueError(
            f"{path}: expected {expected:,} {what}, found {got:,}. The file is not whole, or "
            "another version; fetch it again, or convert a smaller one by --any-version."
        )


def add_any_version_argument(subparser: argparse.ArgumentParser) -> None:
    """Add the argument `--any-version` to the parser of a converter.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        The parser.
    """
    subparser.add_argument(
        "--any-version",
        action="store_true",
        help="take files of this format with other digests or other numbers of examples than the "
        "published ones, such as a part of them",
    )
