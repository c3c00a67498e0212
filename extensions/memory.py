"""What an extension remembers over a stop if nobody wrote code for it: its plain attributes."""

import logging
from collections.abc import Mapping
from typing import Any

from bricks.attributes import Attributes

logger = logging.getLogger(__name__)

_FIRST = "_first_attributes"
_TOLD = "_told_what_is_lost"
# Of the base classes; the script gives them again.
_NO_STATE = (
    "name",
    "_main_loop",
    "_conditions",
    "sub_extensions",
    "run_before_children",
    _FIRST,
    _TOLD,
)
_ATTRIBUTES = "attributes"


class Remembering:
    """A base of extensions, with a state that consists of the attributes that have changed.

    They are compared with what they were when the extension got its main loop. The classes of this
    package say themselves what they remember, by overriding `get_state` and `set_state`.
    """

    name: str

    @property
    def _is_of_this_package(self) -> bool:
        return type(self).__module__.partition(".")[0] == __name__.partition(".")[0]

    def _note_first_attributes(self) -> None:
        inherited = type(self).get_state.__module__.partition(".")[0] == __name__.partition(".")[0]
        if inherited and not self._is_of_this_package and _FIRST not in self.__dict__:
            first = Attributes(self, _NO_STATE)
            self.__dict__[_FIRST] = first

    def get_state(self) -> dict[str, Any]:
        """Give what has to be remembered over a stop.

        Returns
        -------
        dict
            Plain data. Here, for classes that are not of this package, the attributes that have
            changed since the extension got its main loop, as far as they are plain data
            (numbers, strings, arrays, lists, tuples and dicts); a warning names others.
        """
        first = self.__dict__.get(_FIRST)
        if first is None:
            return {}
        plain, others = first.changed(self)
        told = self.__dict__.setdefault(_TOLD, [])
        lost = [name for name in others if name not in told]
        if lost:
            told += lost
            logger.warning(
                "%s: %s changed while training and cannot be restored from a checkpoint by name, "
                "being no plain data. Override `get_state` and `set_state` of %s to remember it, "
                "or to say that this need not be.",
                self.name,
                ", ".join(f"`{name}`" for name in lost),
                type(self).__name__,
            )
        return {_ATTRIBUTES: plain} if plain else {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Put back what `get_state` gave.

        Parameters
        ----------
        state : dict
            Plain data.

        Raises
        ------
        ValueError
            If there is a state, and this extension has none.
        """
        first = self.__dict__.get(_FIRST)
        if first is not None and not set(state) - {_ATTRIBUTES}:
            first.put_back(self, state.get(_ATTRIBUTES, {}))
        elif state:
            raise ValueError(f"{self.name}: this extension has no state; got {sorted(state)}.")
