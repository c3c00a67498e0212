"""CIFAR-10."""

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.transformers.defaults import uint8_pixels_to_floatX


class CIFAR10(ConvertedDataset):
    """Small colour images of ten kinds of things.

    `features` are uint8 images of shape (batch, 3, 32, 32), which the default transformers turn
    into floatX from 0 to 1; `targets` are uint8 classes of shape (batch, 1): airplane, automobile,
    bird, cat, deer, dog, frog, horse, ship, truck. The splits are `train` (50,000) and `test`
    (10,000). See `ConvertedDataset` for the arguments.

    No licence is stated; the authors ask to cite A. Krizhevsky, *Learning Multiple Layers of
    Features from Tiny Images*, technical report, University of Toronto, 2009.
    """

    filename = "cifar10.hdf5"
    converter = "cifar10"
    default_transformers = uint8_pixels_to_floatX(("features",))
