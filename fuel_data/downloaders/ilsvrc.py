"""The files of ImageNet's challenges.

Who may have the images has agreed to ImageNet's terms and has an account at
https://image-net.org/download; the address that it gives is `--url-prefix`.
"""

import argparse
import os
from collections.abc import Callable

from fuel_data.converters.ilsvrc import Challenge
from fuel_data.downloaders.base import default_downloader
from fuel_data.exceptions import NeedURLPrefix


def ilsvrc_downloader(challenge: Challenge, public: dict[str, list[str]]) -> Callable:
    """Make what describes the downloader of a year.

    Parameters
    ----------
    challenge : Challenge
        The year.
    public : dict of str to list of str
        Name of a file → its addresses, for files that need no account.

    Returns
    -------
    function
        ``fill_subparser(subparser)``.
    """
    names = [challenge.devkit, challenge.test_truth, challenge.train[0], challenge.valid[0]]
    names += [challenge.test[-1], challenge.patch]
    files = [name for name in names if name is not None]

    def download(
        directory: str | os.PathLike[str], url_prefix: str | None = None, clear: bool = False
    ) -> list[str]:
        """Fetch the files of a year, or remove them."""
        closed = [name for name in files if name not in public]
        if url_prefix is None and not clear:
            raise NeedURLPrefix(
                f"{', '.join(closed)} have no public address. Get an account at "
                "https://image-net.org/download, and give the address of the folder that it shows "
                "by --url-prefix."
            )
        return default_downloader(
            directory,
            [public.get(name) for name in files],
            files,
            url_prefix=url_prefix or "",
            clear=clear,
            digests=[challenge.digests.get(name) for name in files],
        )

    def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
        """Describe the downloader to `fuel-download`."""
        subparser.add_argument(
            "--url-prefix", help="address of the folder of the images, which needs an account"
        )
        return download

    download.__name__ = download.__qualname__ = f"download_ilsvrc{challenge.year}"
    return fill_subparser
