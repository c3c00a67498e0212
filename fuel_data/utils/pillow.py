"""Pillow, which only those need who have encoded images or change images' sizes."""

from typing import Any


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
