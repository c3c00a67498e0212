"""The names under which monitored values are logged."""

from collections.abc import Sequence
from typing import Any


def unique_names(monitored: Sequence[Any], owner: str) -> list[str]:
    """Give the names of what is monitored.

    Parameters
    ----------
    monitored : sequence of Variable or MonitoredQuantity
        What is monitored.
    owner : str
        Who asks, for messages.

    Returns
    -------
    list of str
        The names, in the same order.

    Raises
    ------
    ValueError
        If a name is missing or used twice.
    """
    names: list[str] = []
    for position, item in enumerate(monitored):
        if not item.name:
            raise ValueError(
                f"{owner}: everything monitored needs a name, because values are logged by it; "
                f"{item} in position {position} has none. Set its `name`."
            )
        if item.name in names:
            raise ValueError(
                f"{owner}: names must be unique, because values are logged by them; "
                f"{item.name!r} is in positions {names.index(item.name)} and {position}. "
                "Rename one of them."
            )
        names.append(item.name)
    return names
