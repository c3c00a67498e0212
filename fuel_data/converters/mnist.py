"""MNIST, its four IDX files as one HDF5 file."""

from fuel_data.converters.idx import mnist_converter, mnist_files

FILES = mnist_files(
    train_images="6bbc9ace898e44ae57da46a324031adb",
    train_labels="a25bea736e30d166cdddb491f175f624",
    test_images="2646ac647ad5339dbf082846283269ea",
    test_labels="27ae3e4e09519cfbb04c329615203637",
)

convert_mnist, fill_subparser = mnist_converter("mnist", FILES)
