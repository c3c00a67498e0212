"""CIFAR-10, its archive of pickles as one HDF5 file.

Sources `features` and `targets`; splits `train` of 50,000 and `test` of 10,000 images.
"""

from fuel_data.converters.cifar import Batch, cifar_converter

ARCHIVE = "cifar-10-python.tar.gz"
BATCHES = (
    Batch("train", "data_batch_1", 10000, "c99cafc152244af753f735de768cd75f"),
    Batch("train", "data_batch_2", 10000, "d4bba439e000b95fd0a9bffe97cbabec"),
    Batch("train", "data_batch_3", 10000, "54ebc095f3ab1f0389bbae665268c751"),
    Batch("train", "data_batch_4", 10000, "634d18415352ddfa80567beed471001a"),
    Batch("train", "data_batch_5", 10000, "482c414d41f54cd18b22e5b47cb7c3cb"),
    Batch("test", "test_batch", 10000, "40351d587109b95175f43aff81a1287e"),
)
LABELS = {"targets": ("labels", 10)}

convert_cifar10, fill_subparser = cifar_converter("cifar10", ARCHIVE, BATCHES, LABELS)
