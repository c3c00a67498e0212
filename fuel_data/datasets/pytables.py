"""Data sets in files that PyTables wrote, which are HDF5 files; PyTables is not needed."""

import os
from collections.abc import Sequence

from fuel_data.datasets.hdf5_plain import PlainHDF5Dataset


class PytablesDataset(PlainHDF5Dataset):
    """Arrays of a file of PyTables.

    Parameters
    ----------
    path : path
        The file.
    sources : sequence of str
        Names for the sources.
    start, stop : int, optional
        Use the examples from `start` to before `stop` only.
    data_node : str, optional
        The group that the arrays are in.
    sources_in_file : sequence of str, optional
        The names of the arrays in that group, by default those of the sources.

    Raises
    ------
    FileNotFoundError
        If the file is neither at its path nor in the data path.
    ValueError
        If there is no such array, as many names as sources are not given, or if the file is
        compressed by what is not installed. Blosc and bzip2 need the extra ``hdf5``.

    Notes
    -----
    Fuel's class read by PyTables, gave a list and had a state; this one reads by h5py, gives a
    tuple, and has none.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        sources: Sequence[str],
        start: int = 0,
        stop: int | None = None,
        data_node: str = "Data",
        sources_in_file: Sequence[str] | None = None,
    ) -> None:
        if isinstance(sources, str):
            raise ValueError(f"PytablesDataset: `sources` must be names, such as ({sources!r},).")
        names = tuple(sources) if sources_in_file is None else tuple(sources_in_file)
        if len(names) != len(sources):
            raise ValueError(
                f"PytablesDataset: `sources_in_file` must have one name for each of the "
                f"{len(sources)} sources; got {list(names)}."
            )
        self.data_node = data_node
        nodes = [f"/{data_node.strip('/')}/{name}" for name in names]
        super().__init__(path, dict(zip(sources, nodes, strict=True)), start, stop)
