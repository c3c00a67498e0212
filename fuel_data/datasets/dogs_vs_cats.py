"""Dogs vs. Cats."""

from collections.abc import Iterable
from typing import Any

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.transformers.defaults import uint8_pixels_to_floatX


class DogsVsCats(ConvertedDataset):
    """Photographs of dogs and cats, of any size.

    `image_features` are ragged uint8 images with the axes batch, channel, height, width, which the
    default transformers turn into floatX from 0 to 1; `targets` are uint8 of shape (batch, 1), 0
    for a cat and 1 for a dog. The splits are `train` (25,000) and `test` (12,500, without
    targets). The images are read from disk.

    Kaggle's rules of the competition hold. Cite J. Elson, J. R. Douceur, J. Howell and J. Saul,
    *Asirra: a CAPTCHA that Exploits Interest-Aligned Manual Image Categorization*, ACM CCS 2007.

    Parameters
    ----------
    which_sets : iterable of str
        The splits.
    load_in_memory : bool, optional
        Whether to read the examples into memory; by default they stay on disk.
    **kwargs
        Further arguments of `H5PYDataset`.
    """

    filename = "dogs_vs_cats.hdf5"
    converter = "dogs_vs_cats"
    default_transformers = uint8_pixels_to_floatX(("image_features",))

    def __init__(
        self,
        which_sets: Iterable[str] | None = None,
        load_in_memory: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(which_sets, load_in_memory=load_in_memory, **kwargs)
