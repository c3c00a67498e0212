"""Fashion-MNIST."""

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.datasets.mnist import MNIST


class FashionMNIST(ConvertedDataset):
    """Images of pieces of clothing, of the sizes and in the form of `MNIST`.

    Licence MIT, Zalando SE. Cite H. Xiao, K. Rasul and R. Vollgraf, *Fashion-MNIST: a novel image
    dataset for benchmarking machine learning algorithms*, arXiv:1708.07747, 2017.
    """

    filename = "fashion_mnist.hdf5"
    converter = "fashion_mnist"
    default_transformers = MNIST.default_transformers
