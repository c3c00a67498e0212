"""CalTech 101 Silhouettes."""

from collections.abc import Iterable
from typing import Any

from fuel_data.datasets.converted import ConvertedDataset


class CalTech101Silhouettes(ConvertedDataset):
    """Outlines of things of 101 kinds, as filled shapes.

    `features` are images of shape (batch, 1, size, size) of zeros and ones; `targets` are classes
    from 1 to 101 of shape (batch, 1). The splits are `train`, `valid` and `test`, of 4,100, 2,264
    and 2,307 images of 28 x 28 pixels, or 4,082, 2,257 and 2,302 of 16 x 16.

    No licence is stated. Cite B. Marlin, K. Swersky, B. Chen and N. de Freitas, *Inductive
    Principles for Restricted Boltzmann Machine Learning*, AISTATS 2010.

    Parameters
    ----------
    which_sets : iterable of str
        The splits.
    size : {28, 16}, optional
        Height and width of the images.
    load_in_memory : bool, optional
        Whether to read the examples into memory, as by default.
    **kwargs
        Further arguments of `H5PYDataset`.

    Raises
    ------
    ValueError
        If there is no such size.
    """

    def __init__(
        self,
        which_sets: Iterable[str] | None = None,
        size: int = 28,
        load_in_memory: bool = True,
        **kwargs: Any,
    ) -> None:
        if size not in (16, 28):
            raise ValueError(f"CalTech101Silhouettes: `size` must be 16 or 28; got {size!r}.")
        self.filename = f"caltech101_silhouettes{size}.hdf5"
        self.converter = f"caltech101_silhouettes {size}"
        super().__init__(which_sets, load_in_memory=load_in_memory, **kwargs)
