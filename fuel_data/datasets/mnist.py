"""MNIST."""

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.transformers.defaults import uint8_pixels_to_floatX


class MNIST(ConvertedDataset):
    """Images of handwritten digits.

    `features` are uint8 images of shape (batch, 1, 28, 28), which the default transformers turn
    into floatX from 0 to 1; `targets` are uint8 classes of shape (batch, 1). The splits are `train`
    (60,000) and `test` (10,000). See `ConvertedDataset` for the arguments.

    Cite Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, *Gradient-based learning applied to document
    recognition*, Proceedings of the IEEE 86(11), 1998.
    """

    filename = "mnist.hdf5"
    converter = "mnist"
    default_transformers = uint8_pixels_to_floatX(("features",))
