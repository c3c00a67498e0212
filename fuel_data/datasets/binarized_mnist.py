"""Binarized MNIST."""

from fuel_data.datasets.converted import ConvertedDataset


class BinarizedMNIST(ConvertedDataset):
    """Images of handwritten digits, each pixel drawn once as 0 or 1, without classes.

    `features` are uint8 images of shape (batch, 1, 28, 28). The splits are `train` (50,000),
    `valid` (10,000) and `test` (10,000). See `ConvertedDataset` for the arguments.

    No licence is stated. Cite H. Larochelle and I. Murray, *The Neural Autoregressive Distribution
    Estimator*, AISTATS 2011, and R. Salakhutdinov and I. Murray, *On the Quantitative Analysis of
    Deep Belief Networks*, ICML 2008.
    """

    filename = "binarized_mnist.hdf5"
    converter = "binarized_mnist"
