"""The 1,797 handwritten digits that come with this package."""

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.transformers import Cast, ScaleAndShift


class Digits(ConvertedDataset):
    """Small images of handwritten digits, UCI's Optical Recognition of Handwritten Digits.

    `features` are uint8 images of shape (batch, 1, 8, 8) from 0 to 16, which the default
    transformers turn into floatX from 0 to 1; `targets` are uint8 classes of shape (batch, 1).
    The splits are `train` (1,437) and `test` (360); `fuel_data.converters.digits` says how they
    were made. See `ConvertedDataset` for the arguments.

    Licence CC BY 4.0. Cite E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*,
    UCI Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49.
    """

    filename = "digits.hdf5"
    converter = "digits"
    default_transformers = (
        (ScaleAndShift, [1 / 16, 0], {"which_sources": ("features",)}),
        (Cast, ["floatX"], {"which_sources": ("features",)}),
    )
