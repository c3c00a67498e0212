"""CelebA."""

from collections.abc import Iterable
from typing import Any

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.transformers.defaults import uint8_pixels_to_floatX


class CelebA(ConvertedDataset):
    """Faces of celebrities, with 40 attributes such as smiling or wearing a hat.

    `features` are uint8 images of shape (batch, 3, 218, 178) or (batch, 3, 64, 64), which the
    default transformers turn into floatX from 0 to 1; `targets` are uint8 of shape (batch, 40), 1
    for an attribute that the face has. The splits are `train` (162,770), `valid` (19,867) and
    `test` (19,962). The images are read from disk.

    For non-commercial research only. Cite Z. Liu, P. Luo, X. Wang and X. Tang, *Deep Learning Face
    Attributes in the Wild*, ICCV 2015.

    Parameters
    ----------
    which_format : {'aligned_cropped', '64'}
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
        which_format: str,
        which_sets: Iterable[str] | None = None,
        load_in_memory: bool = False,
        **kwargs: Any,
    ) -> None:
        if which_format not in ("aligned_cropped", "64"):
            raise ValueError(
                f"CelebA: `which_format` must be 'aligned_cropped' or '64'; got {which_format!r}."
            )
        self.filename = f"celeba_{which_format}.hdf5"
        self.converter = f"celeba {which_format}"
        super().__init__(which_sets, load_in_memory=load_in_memory, **kwargs)
