"""The files of CelebA that its converter reads, from the authors' Google Drive.

The drive often refuses a large file that many have fetched that day; the file can be put into the
folder by hand then, from http://mmlab.ie.cuhk.edu.hk/projects/CelebA.html.
"""

import argparse
from collections.abc import Callable

from fuel_data.converters.celeba import DIGESTS, PARTITION
from fuel_data.downloaders.base import default_downloader

#: Name of a file → its number on the drive.
IDENTITIES = {
    "img_align_celeba.zip": "0B7EVK8r0v71pZjFTYXZWM3FlRnM",
    "list_attr_celeba.txt": "0B7EVK8r0v71pblRyaVFSWGxPY0U",
    "list_eval_partition.txt": "0B7EVK8r0v71pY0NSMzRuSXJEVkk",
}
SHA256 = {
    **DIGESTS,
    PARTITION: "fc955bcb3ef8fbdf7d5640d9a8693a8431b5f2ee291a5c1449a1549e7e073fe7",
}
#: Of a large file, the first says that it could not be looked through for viruses.
PLACES = (
    "https://drive.usercontent.google.com/download?export=download&confirm=t&id=",
    "https://drive.google.com/uc?export=download&id=",
)


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the downloader to `fuel-download`; the parser's defaults get the addresses.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments: there are none of its own.

    Returns
    -------
    function
        `default_downloader`.
    """
    subparser.set_defaults(
        urls=[[place + identity for place in PLACES] for identity in IDENTITIES.values()],
        filenames=list(IDENTITIES),
        digests=[SHA256[name] for name in IDENTITIES],
    )
    return default_downloader
