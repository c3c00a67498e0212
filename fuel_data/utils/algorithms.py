"""Telling digests apart."""

ALGORITHMS = {32: "md5", 64: "sha256"}


def algorithm_of(digest: str) -> str:
    """Tell which algorithm made a digest.

    Parameters
    ----------
    digest : str
        In hexadecimal digits: 32 of them for MD5, 64 for SHA-256.

    Returns
    -------
    {'md5', 'sha256'}

    Raises
    ------
    ValueError
        If there are more or fewer digits.

    Examples
    --------
    >>> algorithm_of("d41d8cd98f00b204e9800998ecf8427e")
    'md5'
    """
    if len(digest) not in ALGORITHMS:
        raise ValueError(f"A digest has 32 (MD5) or 64 (SHA-256) digits; got {digest!r}.")
    return ALGORITHMS[len(digest)]
