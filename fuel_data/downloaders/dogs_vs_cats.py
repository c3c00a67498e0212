"""Kaggle's two archives of Dogs vs. Cats, from the place where Fuel has them.

With an account at Kaggle, https://www.kaggle.com/c/dogs-vs-cats has them as train.zip and
test1.zip. Nobody has published their digests.
"""

import argparse
from collections.abc import Callable

from fuel_data.downloaders.base import default_downloader

URLS = {
    "dogs_vs_cats.train.zip": "https://www.dropbox.com/s/s3u30quvpxqdbz6/train.zip?dl=1",
    "dogs_vs_cats.test1.zip": "https://www.dropbox.com/s/21rwu6drnplsbkb/test1.zip?dl=1",
}


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
    subparser.set_defaults(urls=list(URLS.values()), filenames=list(URLS))
    return default_downloader
