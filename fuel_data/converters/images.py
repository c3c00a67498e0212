"""Images of converters: decoded, cut to size, checked before memory is taken."""

import io
from typing import Any

import numpy

from fuel_data.utils.pillow import has_16_bits, import_pillow, upper_8_bits

# A photograph of 67 million pixels; Pillow itself warns above 89 million.
MAX_PIXELS = 2**26
_TOO_MANY = f"at most {MAX_PIXELS:,} are read. Scale it down before."


def open_image(content: bytes, where: str) -> Any:
    """Open an encoded image and read its header.

    Parameters
    ----------
    content : bytes
        The image, JPEG, PNG or what else Pillow knows.
    where : str
        What to call it in errors.

    Returns
    -------
    PIL.Image.Image
        Its pixels are not decoded yet.

    Raises
    ------
    ValueError
        If it is no image, or has too many pixels.
    """
    image_module = import_pillow("A converter of images")
    try:
        image = image_module.open(io.BytesIO(content))
    except image_module.UnidentifiedImageError as error:
        # Its words tell the address of the buffer.
        what = "is no image that Pillow can read" if content else "is empty, so it is no image"
        raise ValueError(f"{where} {what}.") from error
    except (image_module.DecompressionBombError, image_module.DecompressionBombWarning) as error:
        raise ValueError(f"{where} has too many pixels ({_reason(error)}); {_TOO_MANY}") from error
    # Pillow's readers fail on damage in many ways.
    except Exception as error:
        raise ValueError(f"{where} is no image that Pillow can read: {_reason(error)}.") from error
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ValueError(f"{where} says that it has {height} x {width} pixels; {_TOO_MANY}")
    return image


def _reason(error: Exception) -> str:
    """Give what an error says, without the stop at its end."""
    return str(error).rstrip(". ") or type(error).__name__


def pixels(image: Any, where: str, mode: str = "RGB") -> numpy.ndarray:
    """Decode an image.

    Parameters
    ----------
    image : PIL.Image.Image
        From `open_image`, perhaps cut to size.
    where : str
        What to call it in errors.
    mode : {'RGB', 'L'}, optional
        In colour or in grey.

    Returns
    -------
    uint8 array of shape (channel, height, width)
        Pixels from 0 to 255; of 16 bits the upper 8.

    Raises
    ------
    ValueError
        If it is damaged, or has pixels of 32 bits.
    """
    to_8_bits = has_16_bits(image, where)
    try:
        image = upper_8_bits(image) if to_8_bits else image
        array = numpy.asarray(image.convert(mode), dtype=numpy.uint8)
    # As above.
    except Exception as error:
        raise ValueError(f"{where} is a damaged image: {_reason(error)}.") from error
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def decode_image(
    content: bytes, where: str, mode: str = "RGB", shape: tuple[int, int] | None = None
) -> numpy.ndarray:
    """Decode an encoded image.

    Parameters
    ----------
    content : bytes
        The image.
    where : str
        What to call it in errors.
    mode : {'RGB', 'L'}, optional
        In colour or in grey.
    shape : tuple of int, optional
        Height and width that it must have.

    Returns
    -------
    uint8 array of shape (channel, height, width)
        Pixels from 0 to 255.

    Raises
    ------
    ValueError
        If it is no image, damaged, of another size, or has pixels of 32 bits.
    """
    image = open_image(content, where)
    if shape is not None and (image.height, image.width) != tuple(shape):
        raise ValueError(
            f"{where} must have {shape[0]} x {shape[1]} pixels; it has {image.height} x "
            f"{image.width}."
        )
    return pixels(image, where, mode)


def fill_size(image: Any, where: str, size: tuple[int, int]) -> Any:
    """Scale an image until it covers a size, and cut what stands over on both sides.

    Parameters
    ----------
    image : PIL.Image.Image
        From `open_image`.
    where : str
        What to call it in errors.
    size : tuple of int
        Height and width.

    Returns
    -------
    PIL.Image.Image
        Of that size, by Lanczos' filter; turned as its EXIF data say.

    Raises
    ------
    ValueError
        If it is damaged.
    """
    import PIL.ImageOps

    lanczos = import_pillow("A converter of images").Resampling.LANCZOS
    image = upright(image, where)
    try:
        return PIL.ImageOps.fit(image, size[::-1], lanczos)
    # As above.
    except Exception as error:
        raise ValueError(f"{where} is a damaged image: {_reason(error)}.") from error


def upright(image: Any, where: str) -> Any:
    """Turn an image as its EXIF data say that the camera was held.

    Parameters
    ----------
    image : PIL.Image.Image
        From `open_image`.
    where : str
        What to call it in errors.

    Returns
    -------
    PIL.Image.Image
        In colour or in grey.

    Raises
    ------
    ValueError
        If it is damaged, or has pixels of 32 bits.
    """
    import PIL.ImageOps

    to_8_bits = has_16_bits(image, where)
    try:
        image = PIL.ImageOps.exif_transpose(image)
        image = upper_8_bits(image) if to_8_bits else image
        # Palettes and transparency cannot be scaled.
        return image if image.mode in ("RGB", "L") else image.convert("RGB")
    # As above.
    except Exception as error:
        raise ValueError(f"{where} is a damaged image: {_reason(error)}.") from error
