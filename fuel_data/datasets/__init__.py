"""Data sets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuel_data.datasets.base import Dataset, IndexableDataset, IterableDataset

if TYPE_CHECKING:
    from fuel_data.datasets.digits import Digits
    from fuel_data.datasets.fashion_mnist import FashionMNIST
    from fuel_data.datasets.hdf5 import H5PYDataset
    from fuel_data.datasets.hdf5_plain import PlainHDF5Dataset
    from fuel_data.datasets.mnist import MNIST
    from fuel_data.datasets.pytables import PytablesDataset

__all__ = [
    "MNIST",
    "Dataset",
    "Digits",
    "FashionMNIST",
    "H5PYDataset",
    "IndexableDataset",
    "IterableDataset",
    "PlainHDF5Dataset",
    "PytablesDataset",
]

# These bring h5py, which pipelines over arrays do without.
_ON_DEMAND = {
    "Digits": "digits",
    "FashionMNIST": "fashion_mnist",
    "H5PYDataset": "hdf5",
    "MNIST": "mnist",
    "PlainHDF5Dataset": "hdf5_plain",
    "PytablesDataset": "pytables",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"fuel_data.datasets.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
