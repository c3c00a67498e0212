"""Pillow, which only those need who have encoded images or change images' sizes."""

from typing import Any

import numpy

# Their images of 16 bits have Pillow's mode for 32: of PNG in older versions, of PGM in all.
_OF_16_BITS = ("PNG", "PPM")


def import_pillow(who: str) -> Any:
    """Import Pillow, or say how to get it.

    Parameters
    ----------
    who : str
        What needs it, for the error.

    Returns
    -------
    module
        ``PIL.Image``.

    Raises
    ------
    ImportError
        If it is missing.

    Examples
    --------
    >>> import_pillow("a doctest").new("L", (2, 3)).size
    (2, 3)
    """
    try:
        import PIL.Image
    except ImportError as error:
        raise ImportError(f"{who} needs Pillow: pip install 'firebrick[image]'.") from error
    return PIL.Image


def has_16_bits(image: Any, where: str) -> bool:
    """Say whether an image has 16 bits, which Pillow's ``convert`` would clip.

    Only the header is looked at.

    Parameters
    ----------
    image : PIL.Image.Image
        As it was opened: what was made of it no longer knows its format.
    where : str
        What to call it in errors.

    Returns
    -------
    bool
        If so, take `upper_8_bits` before it is converted.

    Raises
    ------
    ValueError
        If its pixels are of 32 bits, whole or not: nobody knows which is white.

    Examples
    --------
    >>> import PIL.Image
    >>> has_16_bits(PIL.Image.new("I;16", (2, 3)), "an image")
    True
    """
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in _OF_16_BITS):
        return True
    if image.mode in ("I", "F"):
        raise ValueError(
            f"{where}: pixels of mode {image.mode} have no range of 8 bits; scale them first."
        )
    return False


def upper_8_bits(image: Any) -> Any:
    """Make an image of 8 bits from one of 16.

    Parameters
    ----------
    image : PIL.Image.Image
        One that `has_16_bits`.

    Returns
    -------
    PIL.Image.Image
        In grey, of mode ``'L'``.

    Examples
    --------
    >>> import PIL.Image
    >>> upper_8_bits(PIL.Image.new("I;16", (2, 3), 65535)).getpixel((0, 0))
    255
    """
    upper = numpy.asarray(image) >> 8
    return import_pillow("An image of 16 bits").fromarray(upper.astype(numpy.uint8))
