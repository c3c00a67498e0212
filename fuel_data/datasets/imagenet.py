"""ImageNet's challenges of 2010 and 2012."""

from collections.abc import Iterable
from typing import Any

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.transformers.defaults import rgb_images_from_encoded_bytes


class _ILSVRC(ConvertedDataset):
    default_transformers = rgb_images_from_encoded_bytes(("encoded_images",))

    def __init__(
        self,
        which_sets: Iterable[str] | None = None,
        load_in_memory: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(which_sets, load_in_memory=load_in_memory, **kwargs)


class ILSVRC2010(_ILSVRC):
    """Photographs of a thousand kinds of things, as JPEG files.

    `encoded_images` are the bytes of the files, which the default transformers turn into uint8
    images of shape (channel, height, width); `targets` are int16 classes from 0 to 999 of shape
    (batch, 1); `filenames` are bytes of shape (batch, 1). The splits are `train` (1,261,406, in a
    shuffled order), `valid` (50,000) and `test` (150,000). The images are read from disk.

    ImageNet's terms of access hold: non-commercial research and education. Cite O. Russakovsky,
    J. Deng, H. Su et al., *ImageNet Large Scale Visual Recognition Challenge*, International
    Journal of Computer Vision 115(3), 2015.

    Parameters
    ----------
    which_sets : iterable of str
        The splits.
    load_in_memory : bool, optional
        Whether to read the examples into memory; by default they stay on disk.
    **kwargs
        Further arguments of `H5PYDataset`.
    """

    filename = "ilsvrc2010.hdf5"
    converter = "ilsvrc2010"


class ILSVRC2012(_ILSVRC):
    """Photographs of a thousand kinds of things, as JPEG files.

    `encoded_images` are the bytes of the files, which the default transformers turn into uint8
    images of shape (channel, height, width); `targets` are int16 classes from 0 to 999 of shape
    (batch, 1); `filenames` are bytes of shape (batch, 1). The splits are `train` (1,281,167, in a
    shuffled order), `valid` (50,000) and `test` (100,000, without targets). The images are read
    from disk.

    ImageNet's terms of access hold: non-commercial research and education. Cite O. Russakovsky,
    J. Deng, H. Su et al., *ImageNet Large Scale Visual Recognition Challenge*, International
    Journal of Computer Vision 115(3), 2015.

    Parameters
    ----------
    which_sets : iterable of str
        The splits.
    load_in_memory : bool, optional
        Whether to read the examples into memory; by default they stay on disk.
    **kwargs
        Further arguments of `H5PYDataset`.
    """

    filename = "ilsvrc2012.hdf5"
    converter = "ilsvrc2012"
