"""Data sets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuel_data.datasets.base import Dataset, IndexableDataset, IterableDataset

if TYPE_CHECKING:
    from fuel_data.datasets.adult import Adult
    from fuel_data.datasets.binarized_mnist import BinarizedMNIST
    from fuel_data.datasets.caltech101_silhouettes import CalTech101Silhouettes
    from fuel_data.datasets.celeba import CelebA
    from fuel_data.datasets.cifar10 import CIFAR10
    from fuel_data.datasets.cifar100 import CIFAR100
    from fuel_data.datasets.digits import Digits
    from fuel_data.datasets.dogs_vs_cats import DogsVsCats
    from fuel_data.datasets.fashion_mnist import FashionMNIST
    from fuel_data.datasets.hdf5 import H5PYDataset
    from fuel_data.datasets.hdf5_plain import PlainHDF5Dataset
    from fuel_data.datasets.iris import Iris
    from fuel_data.datasets.mnist import MNIST
    from fuel_data.datasets.one_billion_word import OneBillionWord
    from fuel_data.datasets.pytables import PytablesDataset
    from fuel_data.datasets.svhn import SVHN
    from fuel_data.datasets.text import TextFile
    from fuel_data.datasets.toy import Spiral, SwissRoll

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "SVHN",
    "Adult",
    "BinarizedMNIST",
    "CalTech101Silhouettes",
    "CelebA",
    "Dataset",
    "Digits",
    "DogsVsCats",
    "FashionMNIST",
    "H5PYDataset",
    "IndexableDataset",
    "Iris",
    "IterableDataset",
    "OneBillionWord",
    "PlainHDF5Dataset",
    "PytablesDataset",
    "Spiral",
    "SwissRoll",
    "TextFile",
]

# These bring h5py, which pipelines over arrays do without.
_ON_DEMAND = {
    "Adult": "adult",
    "BinarizedMNIST": "binarized_mnist",
    "CIFAR10": "cifar10",
    "CIFAR100": "cifar100",
    "CalTech101Silhouettes": "caltech101_silhouettes",
    "CelebA": "celeba",
    "Digits": "digits",
    "DogsVsCats": "dogs_vs_cats",
    "FashionMNIST": "fashion_mnist",
    "H5PYDataset": "hdf5",
    "Iris": "iris",
    "MNIST": "mnist",
    "OneBillionWord": "one_billion_word",
    "PlainHDF5Dataset": "hdf5_plain",
    "PytablesDataset": "pytables",
    "SVHN": "svhn",
    "Spiral": "toy",
    "SwissRoll": "toy",
    "TextFile": "text",
}


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(f"fuel_data.datasets.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
