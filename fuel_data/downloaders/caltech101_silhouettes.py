"""The file of CalTech 101 Silhouettes, of one of two sizes."""

import argparse
import os
from collections.abc import Callable

from fuel_data.downloaders.base import default_downloader

MIRROR = "https://people.cs.umass.edu/~marlin/data/"
SIZES = (16, 28)


def download_silhouettes(
    directory: str | os.PathLike[str], size: int, clear: bool = False
) -> list[str]:
    """Fetch the file of a size, or remove it; nobody has published its digest.

    Parameters
    ----------
    directory : path
        Folder for the file.
    size : {16, 28}
        Height and width of the images.
    clear : bool, optional
        Whether to remove the file instead.

    Returns
    -------
    list of str
        Path of the file.

    Raises
    ------
    DownloadError
        If it could not be fetched.
    """
    name = f"caltech101_silhouettes_{size}_split1.mat"
    return default_downloader(directory, [MIRROR + name], [name], clear=clear)


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the downloader to `fuel-download`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `download_silhouettes`.
    """
    subparser.add_argument("size", type=int, choices=SIZES, help="height and width of the images")
    return download_silhouettes
