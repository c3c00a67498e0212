"""CIFAR-100."""

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.transformers.defaults import uint8_pixels_to_floatX


class CIFAR100(ConvertedDataset):
    """Small colour images of a hundred kinds of things, in twenty groups.

    `features` are uint8 images of shape (batch, 3, 32, 32), which the default transformers turn
    into floatX from 0 to 1; `coarse_labels` (20 classes) and `fine_labels` (100 classes) are uint8
    of shape (batch, 1). The splits are `train` (50,000) and `test` (10,000). See
    `ConvertedDataset` for the arguments.

    No licence is stated; the authors ask to cite A. Krizhevsky, *Learning Multiple Layers of
    Features from Tiny Images*, technical report, University of Toronto, 2009.
    """

    filename = "cifar100.hdf5"
    converter = "cifar100"
    default_transformers = uint8_pixels_to_floatX(("features",))
