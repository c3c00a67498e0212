"""A converter of one's own: a class with the names of its files and a method that reads them."""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.converters.inputs import find_inputs


class Converter:
    """Base of converters of one's own, for `fuel-convert`.

    A subclass in a file of one's own is found if the setting `extra_converters` names the file or
    its module, or if an installed package has an entry point for it in the group
    ``fuel_data.converters``. The first line of its docstring is its help.

    Attributes
    ----------
    kind : str
        ``'converters'``, which tells them apart where both are in one file.
    name : str
        What `fuel-convert` calls it, and the name of the HDF5 file.
    files : sequence of str
        Names of the input files.
    axis_labels : dict of str to sequence of str
        Source → a label for each axis; may be left out.

    Examples
    --------
    >>> class Towns(Converter):
    ...     name = "towns"
    ...     files = ("towns.txt",)
    ...
    ...     def read(self, towns):
    ...         with open(towns) as lines:
    ...             yield "train", "names", lines.read().split()
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/towns.txt", "w") as file:
    ...         print("Bonn Köln", file=file)
    ...     os.path.basename(Towns().convert(folder, folder)[0])
    'towns.hdf5'
    """

    kind: ClassVar[str] = "converters"
    name: ClassVar[str]
    files: ClassVar[Sequence[str]] = ()
    axis_labels: ClassVar[Mapping[str, Sequence[str]]] = {}

    def read(self, *paths: str, **arguments: Any) -> Iterable[tuple]:
        """Read the files; every subclass does it in its own way.

        Parameters
        ----------
        *paths : str
            Paths of `files`, in that order.
        **arguments
            What `add_arguments` has added.

        Returns
        -------
        iterable of (split, source, array) or (split, source, array, comment)
            What `fill_hdf5_file` takes.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define `read`, which gives (split, source, array)."
        )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add arguments of the command; by default there are none.

        Parameters
        ----------
        parser : argparse.ArgumentParser
            The parser.
        """

    def convert(
        self,
        directory: str | os.PathLike[str],
        output_directory: str | os.PathLike[str],
        output_filename: str | None = None,
        **arguments: Any,
    ) -> tuple[str]:
        """Convert the files.

        Parameters
        ----------
        directory : path
            Folder of the files.
        output_directory : path
            Folder to write into.
        output_filename : str, optional
            Name of the HDF5 file.
        **arguments
            For `read`.

        Returns
        -------
        tuple of str
            Path of the file.

        Raises
        ------
        MissingInputFiles
            If files are missing.
        ValueError
            If what `read` gives does not fit together.
        """
        if isinstance(self.files, str):
            raise ValueError(
                f"{type(self).__name__}: `files` must be a sequence of names; got the text "
                f"{self.files!r}. Write ({self.files!r},)."
            )
        paths = find_inputs(directory, self.files)
        output = os.path.join(output_directory, output_filename or f"{self.name}.hdf5")
        found = self.read(*paths, **arguments)
        if not isinstance(found, Iterable):
            raise ValueError(
                f"{type(self).__name__}.read must give (split, source, array) for each split and "
                f"source; got {found!r}."
            )
        data = list(found)
        with new_hdf5_file(output) as h5file:
            fill_hdf5_file(h5file, data, self.axis_labels)
            record_inputs(h5file, paths)
        return (output,)

    @classmethod
    def fill_subparser(cls, subparser: argparse.ArgumentParser) -> Callable:
        """Describe the converter to `fuel-convert`.

        Parameters
        ----------
        subparser : argparse.ArgumentParser
            Parser of its arguments.

        Returns
        -------
        function
            `convert` of a new converter.
        """
        converter = cls()
        subparser.description = (cls.__doc__ or "").partition("\n")[0]
        converter.add_arguments(subparser)
        return converter.convert
