"""Data sets in the file that one of the converters writes."""

import inspect
from collections.abc import Iterable
from typing import Any

from fuel_data.config_parser import config
from fuel_data.datasets.hdf5 import H5PYDataset
from fuel_data.utils.names import nearest_name
from fuel_data.utils.paths import find_in_data_path


class ConvertedDataset(H5PYDataset):
    """A data set in a file of the data path; its subclasses say in which.

    Parameters
    ----------
    which_sets : iterable of str
        The splits.
    load_in_memory : bool, optional
        Whether to read the examples into memory, as by default.
    **kwargs
        Further arguments of `H5PYDataset`.

    Attributes
    ----------
    filename : str
        Name of the file; of the class, or set before `ConvertedDataset.__init__`.
    converter : str
        Name of the converter that writes it, and the arguments that it needs; likewise.

    Raises
    ------
    FileNotFoundError
        If the file is in no folder of the data path; the message has the command that makes it.
    TypeError
        If an argument is not one of `H5PYDataset`, or `which_sets` is missing.
    """

    filename: str
    converter: str

    def __init__(
        self, which_sets: Iterable[str] | None = None, load_in_memory: bool = True, **kwargs: Any
    ) -> None:
        # Not left to Python, which would not name the class that was called.
        if which_sets is None:
            # Early releases of Fuel had `which_set`.
            split = kwargs.get("which_set", "train")
            raise TypeError(
                f"{type(self).__name__}: `which_sets` must name the splits, one or several. Write "
                f"which_sets=({split!r},)."
            )
        known = set(inspect.signature(H5PYDataset).parameters) - {"file_or_path"}
        for name in kwargs:
            if name not in known:
                raise TypeError(
                    f"{type(self).__name__}: unexpected argument {name!r}."
                    f"{nearest_name(name, known)}"
                )
        super().__init__(self._find_file(), which_sets, load_in_memory=load_in_memory, **kwargs)

    def _find_file(self) -> str:
        try:
            return find_in_data_path(self.filename)
        except OSError as error:
            folder = next(iter(config.data_path), "FOLDER")
            raise FileNotFoundError(
                f"{type(self).__name__}: {error} "
                f"The command `fuel-convert {self.converter} -o {folder}` makes it."
            ) from error
