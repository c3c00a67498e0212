"""What to say when a name is not known."""

import difflib
from collections.abc import Iterable


def nearest_name(name: str, candidates: Iterable[str]) -> str:
    """Say which of the known names was probably meant, as the end of an error message.

    Parameters
    ----------
    name : str
        The name that is not known.
    candidates : iterable of str
        The names that are.

    Returns
    -------
    str
        A sentence that begins with a space: the nearest name if one is near, all of them if not.

    Examples
    --------
    >>> nearest_name("fetures", ["features", "targets"])
    " Did you mean 'features'?"
    >>> nearest_name("x", ["features", "targets"])
    ' Known: features, targets.'
    >>> nearest_name("x", [])
    ' None is known.'
    """
    known = sorted(candidates)
    if not known:
        return " None is known."
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Known: {', '.join(known)}."
