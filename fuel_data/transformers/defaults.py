"""Default transformers that several data sets have."""

from collections.abc import Sequence
from typing import Any

from fuel_data.transformers.values import Cast, ScaleAndShift


def uint8_pixels_to_floatX(which_sources: Sequence[str]) -> tuple[tuple[Any, list, dict], ...]:
    """Describe the transformers that turn pixels from 0 to 255 into floatX from 0 to 1.

    Parameters
    ----------
    which_sources : sequence of str
        The sources that have pixels.

    Returns
    -------
    tuple of (transformer, arguments, keywords)
        As `Dataset.default_transformers` has it.
    """
    return (
        (ScaleAndShift, [1 / 255, 0], {"which_sources": which_sources}),
        (Cast, ["floatX"], {"which_sources": which_sources}),
    )
