"""Quantities that are computed in Python from the values of variables."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from bricks.algorithms.states import AnyVariable
from bricks.attributes import Attributes
from bricks.monitoring.names import unique_names

_START = "_attributes_at_start"
_NOT_AGGREGATED = ("requires", "name", _START)


class MonitoredQuantity(ABC):
    """Something to monitor that is computed in Python, batch by batch.

    Parameters
    ----------
    requires : list of Variable, optional
        What it is computed from.
    name : str, optional
        Its name in the log; by default the name of the class.
    """

    def __init__(
        self, requires: Sequence[AnyVariable] | None = None, name: str | None = None
    ) -> None:
        self.requires = list(requires or [])
        self.name = type(self).__name__ if name is None else name

    @abstractmethod
    def initialize(self) -> None:
        """Forget all batches."""

    @abstractmethod
    def aggregate(self, *args: Any) -> None:
        """Take a batch into account.

        Parameters
        ----------
        *args : array
            The values of `requires` on the batch, in their order.
        """

    @abstractmethod
    def get_aggregated_value(self) -> Any:
        """Give the value for all batches since `initialize`.

        Returns
        -------
        object
            Plain data: a number or an array.
        """

    def get_state(self) -> dict[str, Any]:
        """Give what was aggregated so far, for a checkpoint.

        Returns
        -------
        dict
            Plain data; here all attributes that have changed since the quantity was given to who
            monitors it: so not the arguments that it was made with.

        Raises
        ------
        TypeError
            If one that has changed is no plain data.
        """
        plain, others = self._at_start().changed(self)
        if others:
            kinds = [f"`{name}` ({type(getattr(self, name)).__name__})" for name in others]
            raise TypeError(
                f"{self.name}: what it has aggregated cannot be saved in a checkpoint, because "
                f"{', '.join(kinds)} has changed and is neither a number, a string, an array, nor "
                f"a list, tuple or dict of them. Let {type(self).__name__} override `get_state` "
                "and `set_state`, or keep plain data in it."
            )
        return plain

    def set_state(self, state: dict[str, Any]) -> None:
        """Put back what `get_state` gave.

        Parameters
        ----------
        state : dict
            The state.
        """
        self._at_start().put_back(self, state)

    def remember_start(self) -> None:
        """Note the attributes as they are, unless that was done; see `get_state`."""
        self.__dict__.setdefault(_START, Attributes(self, _NOT_AGGREGATED, deep=True))

    def _at_start(self) -> Attributes:
        return self.__dict__.get(_START) or Attributes(SimpleNamespace(), _NOT_AGGREGATED)


class MonitoredQuantityBuffer:
    """Several quantities, and the variables that they are computed from.

    Parameters
    ----------
    quantities : iterable of MonitoredQuantity
        The quantities, with unique names.

    Attributes
    ----------
    requires : list of Variable
        What all of them are computed from, each variable once.
    quantity_names : list of str
        Their names.

    Raises
    ------
    ValueError
        If a name is missing or used twice.
    """

    def __init__(self, quantities: Iterable[MonitoredQuantity]) -> None:
        self.quantities = list(quantities)
        for quantity in self.quantities:
            quantity.remember_start()
        self.quantity_names = unique_names(self.quantities, "MonitoredQuantityBuffer")
        self.requires = list(
            dict.fromkeys(v for quantity in self.quantities for v in quantity.requires)
        )
        place = {variable: index for index, variable in enumerate(self.requires)}
        self._places = [[place[v] for v in quantity.requires] for quantity in self.quantities]
        self._initialized = False

    def initialize_quantities(self) -> None:
        """Let all quantities forget all batches."""
        self._initialized = True
        for quantity in self.quantities:
            quantity.initialize()

    def aggregate_quantities(self, numerical_values: Sequence[Any]) -> None:
        """Take a batch into account.

        Parameters
        ----------
        numerical_values : sequence of array
            The values of `requires` on the batch.

        Raises
        ------
        RuntimeError
            If `initialize_quantities` was not called.
        """
        self._check_initialized("aggregate_quantities")
        for quantity, places in zip(self.quantities, self._places, strict=True):
            quantity.aggregate(*[numerical_values[place] for place in places])

    def get_aggregated_values(self) -> "OrderedDict[str, Any]":
        """Give the values of all quantities.

        Returns
        -------
        OrderedDict
            From name to value.

        Raises
        ------
        RuntimeError
            If `initialize_quantities` was not called.
        """
        self._check_initialized("get_aggregated_values")
        return OrderedDict((q.name, q.get_aggregated_value()) for q in self.quantities)

    def _check_initialized(self, method: str) -> None:
        if not self._initialized:
            raise RuntimeError(
                f"MonitoredQuantityBuffer: call `initialize_quantities` before `{method}`."
            )

    def get_state(self) -> dict[str, Any]:
        """Give the state of all quantities, for a checkpoint.

        Returns
        -------
        dict
            From name to the quantity's state.
        """
        return {quantity.name: quantity.get_state() for quantity in self.quantities}

    def set_state(self, state: dict[str, Any]) -> None:
        """Put back what `get_state` gave.

        Parameters
        ----------
        state : dict
            The state.

        Raises
        ------
        ValueError
            If its names are not those of the quantities.
        """
        if set(state) != set(self.quantity_names):
            raise ValueError(
                "MonitoredQuantityBuffer: the state must have the quantities "
                f"{', '.join(sorted(self.quantity_names)) or 'none'}; got "
                f"{', '.join(sorted(state)) or 'none'}."
            )
        for quantity in self.quantities:
            quantity.set_state(state[quantity.name])
        self._initialized = True
