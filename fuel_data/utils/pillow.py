"""Pillow, which only those need who have encoded images or change images' sizes.

An image is an array of shape (channel, height, width), or a `Picture`, which has no array yet.
"""

import io
from collections.abc import Callable
from typing import Any

import numpy

# Their images of 16 bits have Pillow's mode for 32: of PNG in older versions, of PGM in all.
_OF_16_BITS = ("PNG", "PPM")

# Pillow's modes, but for those that only say in which order the bytes of I;16 are.
_WIDE_MODES = ("F", "I", "I;16")
_GREY_MODES = ("1", "L", "LA", "La", "P", "PA")
_NARROW_MODES = (*_GREY_MODES, "CMYK", "HSV", "LAB", "RGB", "RGBA", "RGBX", "RGBa", "YCbCr")
COLOR_MODES = (*_NARROW_MODES, *_WIDE_MODES)


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
        raise ImportError(f"{who} needs Pillow: pip install Pillow.") from error
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


class Picture:
    """An image of shape (channel, height, width) as Pillow has decoded it, before it is an array.

    What only a window is needed of, or is resized, need not become an array as a whole.

    Parameters
    ----------
    image : PIL.Image.Image
        Of mode ``'RGB'`` or ``'L'``.

    Attributes
    ----------
    image
        As given.
    shape : tuple of (int, int, int)
        Number of channels, height and width.

    Examples
    --------
    >>> import PIL.Image
    >>> picture = Picture(PIL.Image.new("RGB", (5, 3), "orange"))
    >>> picture.shape
    (3, 3, 5)
    >>> picture.window(1, 2, 1, 2).tolist()
    [[[255, 255]], [[165, 165]], [[0, 0]]]
    """

    # In these, Pillow treats each channel by itself, as `change_pixels` does.
    MODES = ("RGB", "L")

    def __init__(self, image: Any) -> None:
        self.image = image
        width, height = image.size
        self.shape = (len(image.mode), height, width)

    def window(self, top: int, left: int, height: int, width: int) -> numpy.ndarray:
        """Cut a window out.

        Parameters
        ----------
        top, left : int
            Where it begins.
        height, width : int
            Its size, within the picture.

        Returns
        -------
        uint8 array of shape (channel, height, width)
            It cannot be written to.
        """
        part = self.image.crop((left, top, left + width, top + height))
        # Each line has all its reds first: what is copied later are rows, not single pixels.
        lines = part.tobytes("raw", "RGB;L" if part.mode == "RGB" else "L")
        pixels = numpy.frombuffer(lines, numpy.uint8).reshape(height, -1, width)
        return pixels.transpose(1, 0, 2)

    def to_array(self) -> numpy.ndarray:
        """Make an array.

        Returns
        -------
        uint8 array of shape (channel, height, width)
        """
        return _with_channel_first(self.image)


def _with_channel_first(image: Any) -> numpy.ndarray:
    pixels = numpy.array(image)
    return pixels[numpy.newaxis] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def decode(encoded: Any, color_mode: str | None, where: str) -> Any:
    """Decode an image.

    Parameters
    ----------
    encoded : bytes or uint8 array of shape (bytes,)
        JPEG, PNG or what else Pillow reads.
    color_mode : str or None
        One of `COLOR_MODES`, to which it is converted. None leaves it as it is encoded.
    where : str
        What to call it in errors.

    Returns
    -------
    Picture or array of shape (channel, height, width)
        A picture, if its mode is one of a picture's.

    Raises
    ------
    ValueError
        If it is no image that Pillow can read, or has pixels of 32 bits, which the mode cannot
        hold.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> import_pillow("a doctest").new("L", (2, 3)).save(file, "PNG")
    >>> decode(file.getvalue(), "RGB", "an image").shape
    (3, 3, 2)
    """
    is_bytes = isinstance(encoded, (bytes, bytearray, memoryview))
    if not is_bytes and getattr(encoded, "dtype", None) != numpy.uint8:
        found = getattr(encoded, "dtype", type(encoded).__name__)
        raise ValueError(
            f"{where} must be an encoded image, as bytes or as a uint8 array; got "
            f"{found}. Name the sources that have images as `which_sources`."
        )
    file = io.BytesIO(encoded if is_bytes else encoded.tobytes())
    # Pillow's readers fail on damage in many ways.
    try:
        image = import_pillow("Decoding images").open(file)
    except Exception as error:
        raise _unreadable(error, where) from error
    to_8_bits = color_mode in _NARROW_MODES and has_16_bits(image, where)
    try:
        if to_8_bits:
            image = upper_8_bits(image)
        if color_mode is not None and image.mode != color_mode:
            image = image.convert(color_mode)
        image.load()
        return Picture(image) if image.mode in Picture.MODES else _with_channel_first(image)
    except Exception as error:
        raise _unreadable(error, where) from error


def _unreadable(error: Exception, where: str) -> ValueError:
    return ValueError(
        f"{where} is no image that Pillow can read: {error}. Leave it out "
        "with Filter before it is decoded, or convert the data set again."
    )


def pixels_of(image: Any) -> numpy.ndarray:
    """Give an image as an array.

    Parameters
    ----------
    image : Picture or array of shape (channel, height, width)
        The image.

    Returns
    -------
    array of shape (channel, height, width)
        The same one, if it was one.

    Examples
    --------
    >>> import PIL.Image
    >>> pixels_of(Picture(PIL.Image.new("L", (2, 1), 7))).tolist()
    [[[7, 7]]]
    """
    return image.to_array() if isinstance(image, Picture) else image


def change_pixels(who: str, image: Any, function: Callable[[Any], Any]) -> Any:
    """Let Pillow do something with an image.

    Parameters
    ----------
    who : str
        The transformer, for the error.
    image : Picture or array of shape (channel, height, width)
        The image. An array must be uint8, float32 or float64.
    function : function
        From Pillow's image to another.

    Returns
    -------
    Picture or array of shape (channel, height, width)
        As it came, and of the same dtype.

    Raises
    ------
    ValueError
        If it is of another dtype.

    Examples
    --------
    >>> change_pixels("a doctest", numpy.eye(2)[None], lambda image: image.rotate(90)).tolist()
    [[[0.0, 1.0], [1.0, 0.0]]]
    """
    if isinstance(image, Picture):
        return Picture(function(image.image))
    from_array = import_pillow(who).fromarray
    if image.dtype == numpy.uint8 and len(image) == 3:
        together = function(from_array(numpy.ascontiguousarray(image.transpose(1, 2, 0))))
        return numpy.array(together).transpose(2, 0, 1)
    # Each channel by itself: of four, Pillow would take the last for transparency and weigh by it.
    return numpy.stack([_one_channel(who, channel, function, from_array) for channel in image])


def _one_channel(who: str, channel: Any, function: Callable, from_array: Callable) -> numpy.ndarray:
    if channel.dtype not in (numpy.uint8, numpy.float32, numpy.float64):
        raise ValueError(
            f"{who}: images must be uint8, float32 or float64; got {channel.dtype}. Put Cast "
            "between them."
        )
    as_pillow_has_it = numpy.uint8 if channel.dtype == numpy.uint8 else numpy.float32
    result = function(from_array(numpy.ascontiguousarray(channel, dtype=as_pillow_has_it)))
    return numpy.array(result).astype(channel.dtype, copy=False)
