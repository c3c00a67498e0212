"""Shared variables whose values live on the device, and look like numpy arrays from outside.

A compiled function leaves new values on the device. Whoever asks for one gets a numpy copy, so
that no caller holds an array that the next call donates, which means deletes. Pickles and copies
hold numpy arrays. Any other function of Aesara that uses the variable finds a numpy array, because
its storage brings the value back to the host when it is read.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax
import numpy
from aesara.graph.basic import Variable
from aesara.link.basic import Container
from aesara.tensor.sharedvar import TensorSharedVariable
from aesara.tensor.type import TensorType

from bricks.xla.devices import place
from bricks.xla.errors import DonatedStateLost

__all__ = ["DeviceStorage", "SharedArray", "shared", "state_is_lost"]


class DeviceStorage(list):
    """The one-element list in which Aesara keeps a value, with a place for a copy on the device.

    Exactly one of the two is current: reading the element moves a value from the device to the
    host, writing it drops what is on the device.

    Parameters
    ----------
    value : array
        Kept as it is.
    name : str, optional
        Of the variable, for error messages.
    """

    __slots__ = ("device", "name")

    def __init__(self, value: Any, name: str | None = None):
        super().__init__([value])
        self.device: jax.Array | None = None
        self.name = name

    def __getitem__(self, index: Any) -> Any:
        if self.device is not None:
            # In this order, an interrupt in between leaves the value in both places, not in none.
            super().__setitem__(0, self.to_host())
            self.device = None
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self.device = None

    def __iter__(self) -> Any:
        return iter([self[0]])

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return DeviceStorage, (self.to_host(), self.name)

    def __deepcopy__(self, memo: dict) -> DeviceStorage:
        return DeviceStorage(numpy.array(self.to_host()), self.name)

    def on_device(self) -> jax.Array:
        """Move the value to the device, if it is not there.

        Returns
        -------
        jax.Array
            The value itself, of the shape and dtype of the variable. Donating it loses the value.
        """
        if self.device is None:
            self.device = place(numpy.array(super().__getitem__(0)))
            super().__setitem__(0, None)
        return self.device

    def keeper(self) -> Callable[[jax.Array], Any]:
        """Return a function that replaces the value by one that is on the device.

        Returns
        -------
        callable
            Takes an array of JAX. No instruction of Python runs in it, so no signal handler can
            raise there.
        """
        slot: Any = vars(DeviceStorage)["device"]
        return partial(slot.__set__, self)

    def to_host(self) -> Any:
        """Return the value as a numpy array, without moving it.

        Returns
        -------
        array
            A copy if the value is on the device, the value itself if it is on the host.

        Raises
        ------
        DonatedStateLost
            If a call that updates the variable failed after its old value was given up.
        """
        if self.device is None:
            return super().__getitem__(0)
        if not self.is_lost():
            return numpy.array(self.device)
        raise DonatedStateLost(
            f"the value of shared variable {self.name!r} is gone: a compiled call that updates it "
            "failed while it ran. Set every updated variable anew, for example from the last "
            "checkpoint, before going on."
        )

    def is_lost(self) -> bool:
        """Tell whether the value was given up by a call that failed.

        Returns
        -------
        bool
            False while the value is on the host. A value on the device is waited for.
        """
        if self.device is None:
            return False
        if self.device.is_deleted():
            return True
        try:
            self.device.block_until_ready()
        except Exception:
            # Whatever error the device reports, a value that cannot be awaited cannot be read.
            return True
        return False


class SharedArray(TensorSharedVariable):
    """A shared tensor variable whose value lives on the device while compiled functions use it."""

    container: Any

    @property
    def _storage(self) -> DeviceStorage:
        return self.container.storage

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> numpy.ndarray:
        """Return the value as a numpy array that is the caller's own.

        Parameters
        ----------
        borrow, return_internal_type : bool, optional
            Accepted as Aesara does; the device array is never given away.

        Returns
        -------
        array
            With ``borrow=True`` it may be the variable's memory if the value is on the host.

        Raises
        ------
        DonatedStateLost
            If a call that updates the variable failed after its old value was given up.
        """
        storage = self._storage
        value = storage.to_host()
        return value if borrow or storage.device is not None else copy.deepcopy(value)

    def set_value(self, new_value: Any, borrow: bool = False) -> None:
        """Replace the value by a copy.

        Parameters
        ----------
        new_value : array
            Of the variable's dtype and number of axes.
        borrow : bool, optional
            Accepted as Aesara does; the value is copied all the same, so that two variables never
            share memory.

        Raises
        ------
        TypeError
            If the value does not have the variable's type.
        """
        if not isinstance(new_value, int | float | numpy.generic):
            new_value = numpy.asarray(new_value)
        try:
            filtered = self.type.filter(new_value, allow_downcast=self.container.allow_downcast)
        except TypeError as error:
            got = numpy.asarray(new_value)
            raise TypeError(
                f"set_value: the shared variable {self.name!r} holds {self.type}; got {got.dtype} "
                f"of shape {got.shape}. Give it as many axes, and cast it first if need be: "
                f"value.astype({self.type.dtype!r})."
            ) from error
        self._storage[0] = numpy.array(filtered)

    def zero(self, borrow: bool = False) -> None:
        """Set the value to zeros of its shape."""
        self.set_value(numpy.zeros_like(self._storage.to_host()))


def shared(
    value: Any,
    name: str | None = None,
    shape: tuple[int | None, ...] | None = None,
    borrow: bool = False,
    *,
    allow_downcast: bool | None = None,
) -> SharedArray:
    """Make a shared variable.

    Parameters
    ----------
    value : array
        Its first value, copied. Its dtype is the variable's.
    name : str, optional
    shape : tuple of int or None, optional
        The lengths that never change; by default none is fixed. Only an axis that is declared to
        have length 1 is broadcast.
    borrow : bool, optional
        Accepted as Aesara does, without effect.
    allow_downcast : bool, optional
        Whether values of a wider dtype may be set.

    Returns
    -------
    SharedArray
        Usable in :func:`bricks.xla.function` and in ``aesara.function``.

    Raises
    ------
    TypeError
        If the value is symbolic, or is no array of numbers.

    Examples
    --------
    >>> from bricks import xla
    >>> count = xla.shared(numpy.zeros(2, "int32"), name="count")
    >>> step = xla.function([], updates={count: count + 1})
    >>> step()
    >>> step()
    >>> count.get_value()                             # a copy; the value stays on the device
    array([2, 2], dtype=int32)
    """
    if isinstance(value, Variable):
        raise TypeError("shared: `value` must be an array, not a symbolic variable.")
    array = numpy.array(value)
    if array.dtype == object:
        raise TypeError(f"shared: `value` must be an array of numbers; got {type(value).__name__}.")
    type_ = TensorType(array.dtype, shape=(None,) * array.ndim if shape is None else tuple(shape))
    container = Container(
        type_,
        storage=DeviceStorage(type_.filter(array), name),
        allow_downcast=allow_downcast,
        name=name,
    )
    # Aesara refuses both a container and a `strict` that is not None.
    strict: Any = None
    return SharedArray(type=type_, value=None, strict=strict, name=name, container=container)


def state_is_lost(variables: Iterable[Any]) -> bool:
    """Tell whether any shared variable lost its value because an updating call failed.

    Parameters
    ----------
    variables : iterable of shared variables

    Returns
    -------
    bool
    """
    storages = (variable.container.storage for variable in variables)
    return any(isinstance(storage, DeviceStorage) and storage.is_lost() for storage in storages)
