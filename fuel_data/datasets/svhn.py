"""Street View House Numbers."""

from collections.abc import Iterable
from typing import Any

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.transformers.defaults import uint8_pixels_to_floatX


class SVHN(ConvertedDataset):
    """House numbers, photographed from the street.

    Of format 1, the sources are ragged: `features` are uint8 images of any size, with the axes
    batch, channel, height, width; `bbox_heights`, `bbox_widths`, `bbox_lefts`, `bbox_tops`
    (uint16) and `bbox_labels` (uint8, the digits) have a number for each digit of an image. The
    splits are `train` (33,402), `test` (13,068) and `extra` (202,353).

    Of format 2, `features` are uint8 images of shape (batch, 3, 32, 32) and `targets` uint8 digits
    of shape (batch, 1). The splits are `train` (73,257), `test` (26,032) and `extra` (531,131).

    The default transformers turn `features` into floatX from 0 to 1. The images are read from disk.

    For non-commercial use only. Cite Y. Netzer, T. Wang, A. Coates, A. Bissacco, B. Wu and A. Y.
    Ng, *Reading Digits in Natural Images with Unsupervised Feature Learning*, NIPS Workshop on Deep
    Learning and Unsupervised Feature Learning, 2011.

    Parameters
    ----------
    which_format : {1, 2}
        The format.
    which_sets : iterable of str
        The splits.
    load_in_memory : bool, optional
        Whether to read the examples into memory; by default they stay on disk.
    **kwargs
        Further arguments of `H5PYDataset`.

    Raises
    ------
    ValueError
        If there is no such format.
    """

    default_transformers = uint8_pixels_to_floatX(("features",))

    def __init__(
        self,
        which_format: int,
        which_sets: Iterable[str] | None = None,
        load_in_memory: bool = False,
        **kwargs: Any,
    ) -> None:
        if which_format not in (1, 2):
            raise ValueError(f"SVHN: `which_format` must be 1 or 2; got {which_format!r}.")
        self.filename = f"svhn_format_{which_format}.hdf5"
        self.converter = f"svhn {which_format}"
        super().__init__(which_sets, load_in_memory=load_in_memory, **kwargs)
