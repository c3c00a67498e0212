"""Adult, census records."""

from fuel_data.datasets.converted import ConvertedDataset


class Adult(ConvertedDataset):
    """Whether people earn over 50,000 dollars a year, by what a census knows of them.

    `features` are float64 of shape (batch, 104), numbers and one column for each word that a field
    can have (`fuel_data.converters.adult.column_names` names them); `targets` are bool of shape
    (batch, 1). The splits are `train` (30,162) and `test` (15,060). See `ConvertedDataset` for the
    arguments.

    Licence CC BY 4.0. Cite B. Becker and R. Kohavi, *Adult*, UCI Machine Learning Repository, 1996,
    https://doi.org/10.24432/C5XW20.
    """

    filename = "adult.hdf5"
    converter = "adult"
