"""Fashion-MNIST, its four IDX files as one HDF5 file."""

from fuel_data.converters.idx import mnist_converter, mnist_files

FILES = mnist_files(
    train_images="f4a8712d7a061bf5bd6d2ca38dc4d50a",
    train_labels="9018921c3c673c538a1fc5bad174d6f9",
    test_images="8181f5470baa50b63fa0f6fddb340f0a",
    test_labels="15d484375f8d13e6eb1aabb0c3f46965",
)

convert_fashion_mnist, fill_subparser = mnist_converter("fashion_mnist", FILES)
