"""A downloader of one's own: a class that says where the files are, and what they must be."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from fuel_data.downloaders.base import fill_from_mirrors


class Downloader:
    """Base of downloaders of one's own, for `fuel-download`.

    A subclass in a file of one's own is found if the setting `extra_downloaders` names the file or
    its module, or if an installed package has an entry point for it in the group
    ``fuel_data.downloaders``. The first line of its docstring is its help.

    Attributes
    ----------
    kind : str
        ``'downloaders'``, which tells them apart where both are in one file.
    name : str
        What `fuel-download` calls it.
    mirrors : sequence of str
        Addresses of folders with the files, each with a slash at the end, tried in turn.
    digests : dict of str to str or None
        Name of each file → its SHA-256 digest, or None if nobody has published it.

    Examples
    --------
    >>> class Towns(Downloader):
    ...     name = "towns"
    ...     mirrors = ("https://example.org/towns/",)
    ...     digests = {"towns.txt": None}
    """

    kind: ClassVar[str] = "downloaders"
    name: ClassVar[str]
    mirrors: ClassVar[Sequence[str]] = ()
    digests: ClassVar[Mapping[str, str | None]] = {}

    @classmethod
    def fill_subparser(cls, subparser: argparse.ArgumentParser) -> Callable:
        """Describe the downloader to `fuel-download`.

        Parameters
        ----------
        subparser : argparse.ArgumentParser
            Parser of its arguments.

        Returns
        -------
        function
            The downloader.
        """
        subparser.description = (cls.__doc__ or "").partition("\n")[0]
        return fill_from_mirrors(cls.mirrors, cls.digests)(subparser)
