"""Fisher's irises."""

from fuel_data.datasets.converted import ConvertedDataset


class Iris(ConvertedDataset):
    """Measures of 150 flowers of three kinds.

    `features` are float32 of shape (batch, 4), length and width of sepal and petal in cm;
    `targets` are uint8 classes of shape (batch, 1). The split is `all`. See `ConvertedDataset` for
    the arguments.

    Licence CC BY 4.0. Cite R. A. Fisher, *The use of multiple measurements in taxonomic problems*,
    Annals of Eugenics 7(2), 1936.
    """

    filename = "iris.hdf5"
    converter = "iris"
