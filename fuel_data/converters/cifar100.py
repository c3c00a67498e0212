"""CIFAR-100, its archive of pickles as one HDF5 file.

Sources `features`, `coarse_labels` (20 classes) and `fine_labels` (100 classes); splits `train` of
50,000 and `test` of 10,000 images.
"""

from fuel_data.converters.cifar import Batch, cifar_converter

ARCHIVE = "cifar-100-python.tar.gz"
BATCHES = (
    Batch("train", "train", 50000, "16019d7e3df5f24257cddd939b257f8d"),
    Batch("test", "test", 10000, "f0ef6b0ae62326f3e7ffdfab6717acfc"),
)
LABELS = {"coarse_labels": ("coarse_labels", 20), "fine_labels": ("fine_labels", 100)}

convert_cifar100, fill_subparser = cifar_converter("cifar100", ARCHIVE, BATCHES, LABELS)
