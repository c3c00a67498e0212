"""The three files of Street View House Numbers, in one of two formats."""

import argparse
import os
from collections.abc import Callable

from fuel_data.converters.svhn import DIGESTS
from fuel_data.downloaders.base import default_downloader

FOLDER = "ufldl.stanford.edu/housenumbers/"
MIRRORS = (f"http://{FOLDER}", f"https://{FOLDER}")
#: Format → name of a file → its digest, if anybody has published one.
FILES: dict[int, dict[str, str | None]] = {
    1: dict.fromkeys(("train.tar.gz", "test.tar.gz", "extra.tar.gz")),
    2: dict(DIGESTS),
}


def download_svhn(
    directory: str | os.PathLike[str], which_format: int, clear: bool = False
) -> list[str]:
    """Fetch the files of a format, or remove them.

    Parameters
    ----------
    directory : path
        Folder for the files.
    which_format : {1, 2}
        The format.
    clear : bool, optional
        Whether to remove the files instead.

    Returns
    -------
    list of str
        Paths of the files.

    Raises
    ------
    DownloadError
        If a file could not be fetched.
    """
    files = FILES[which_format]
    urls = [[mirror + name for mirror in MIRRORS] for name in files]
    digests = list(files.values())
    return default_downloader(directory, urls, list(files), clear=clear, digests=digests)


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the downloader to `fuel-download`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `download_svhn`.
    """
    subparser.add_argument(
        "which_format",
        metavar="FORMAT",
        type=int,
        choices=sorted(FILES),
        help="1: whole numbers, 2: single digits",
    )
    return download_svhn
