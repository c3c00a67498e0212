"""Errors that callers may want to tell apart."""

from collections.abc import Iterable


class AxisLabelsMismatchError(ValueError):
    """A source has other axes than a transformer needs."""


class ConfigurationError(AttributeError):
    """A setting was asked for that has no value anywhere.

    It is an AttributeError, so that ``hasattr(config, 'key')`` answers False.
    """


class KindMismatchError(ValueError, NotImplementedError):
    """A transformer is put over examples and takes batches, or the other way round.

    It is known when the transformer is made. Fuel raised NotImplementedError at the first item,
    which is why it is one.
    """


class MissingInputFiles(Exception):
    """Files that a converter needs are not there.

    Parameters
    ----------
    message : str
        What is missing and where it was looked for.
    filenames : iterable of str
        The files that are missing.
    """

    def __init__(self, message: str, filenames: Iterable[str]) -> None:
        self.filenames = list(filenames)
        super().__init__(message, self.filenames)

    def __str__(self) -> str:
        return f"{self.args[0]}: {', '.join(self.filenames)}"


class NeedURLPrefix(Exception):
    """A downloader needs a URL prefix, because its files have no public address."""
