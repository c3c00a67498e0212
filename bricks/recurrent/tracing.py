"""The graph of one step, and what becomes of it when the step is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aesara import tensor
from aesara.compile import sharedvalue
from aesara.graph.basic import clone_get_equiv

from bricks.graph.computation import ComputationGraph

__all__ = ["TracedStep", "keys_over_time", "new_shareds", "stretchable"]


class TracedStep:
    """The graph of one step.

    Parameters
    ----------
    inputs : list of Variable
        What stands for elements of sequences, states and contexts, in this order.
    num_elements : int
        How many of them are elements of sequences.
    outputs : list of Variable
        What the step returned.
    created : list of shared variables
        Those made by the step.

    Attributes
    ----------
    keys : list of shared variables
        The random keys that the step made, of which it needs another value each time.
    shared : list of shared variables
        What else the step uses, and does not update.
    """

    def __init__(
        self, inputs: list[Any], num_elements: int, outputs: list[Any], created: list[Any]
    ) -> None:
        self.inputs, self.outputs, self._num_elements = inputs, outputs, num_elements
        graph = ComputationGraph(outputs)
        new = set(created)
        self.keys = [
            v for v in graph.shared_variables if v in new and hasattr(v.tag, "is_random_key")
        ]
        self._updates: dict[Any, Any] = {
            shared: value
            for shared, value in dict[Any, Any](graph.updates).items()
            if shared not in self.keys and (shared in new or value is not shared.default_update)
        }
        for shared in self._updates:
            shared.default_update = None
        known = {*self.keys, *self._updates, *inputs}
        self.shared = [v for v in graph.shared_variables if v not in known]

    def repeat(self, *args: Any) -> tuple[list[Any], dict]:
        """Return the outputs and updates of a step for the arguments that a scan gives.

        Parameters
        ----------
        *args : Variable
            Elements of sequences, keys, states, contexts.

        Returns
        -------
        outputs : list of Variable
            What the step computes of them.
        updates : dict of shared variable to Variable
            What the step updates.
        """
        from bricks.xla.keys import NextKey

        elements, rest = args[: self._num_elements], args[self._num_elements :]
        keys, rest = rest[: len(self.keys)], rest[len(self.keys) :]
        given = [*elements, *rest]
        replaced = dict(zip(self.inputs, given, strict=False))
        replaced.update((old, NextKey()(key)) for old, key in zip(self.keys, keys, strict=True))
        wanted = [*self.outputs, *self._updates.values()]
        # What is given stands in the new graph as it is: a copy of a context that is computed
        # would be computed anew in each step. It has lengths that are not known; they were
        # known, to be checked.
        copies = clone_get_equiv(
            list(replaced),
            wanted,
            copy_inputs=False,
            copy_orphans=False,
            memo=dict(replaced),
            strict=False,
        )
        new = [copies.get(variable, variable) for variable in wanted]
        outputs, updates = new[: len(self.outputs)], new[len(self.outputs) :]
        # As the states are; axes of length 1 would be taken for such that may be stretched.
        outputs = [stretchable(output) for output in outputs]
        return outputs, dict(zip(self._updates, updates, strict=True))


@contextmanager
def new_shareds() -> Iterator[list[Any]]:
    """Collect the shared variables that are made meanwhile.

    They are told to a collection around this one too: Aesara, which has the like, hides them.

    Yields
    ------
    list of shared variables
        Which grows.
    """
    with sharedvalue.collect_new_shareds() as created:
        yield created
    around = getattr(sharedvalue, "__SHARED_CONTEXT__", None)
    if isinstance(around, list):
        around.extend(created)


def keys_over_time(keys: list[Any], n_steps: Any) -> list[Any]:
    """Return a different value of each key for each step, to be hashed there.

    Parameters
    ----------
    keys : list of Variable of shape (2,)
        Random keys.
    n_steps : int or Variable
        The number of steps.

    Returns
    -------
    list of Variable of shape (n_steps, 2)
        One for each key.
    """
    if not keys:
        return []
    # From 1: the hash of the key itself is the key of the next call.
    numbers = tensor.arange(1, tensor.as_tensor_variable(n_steps) + 1).astype("uint32")
    words = tensor.stack([numbers, tensor.zeros_like(numbers)], axis=1)
    return [tensor.bitwise_xor(key[None, :], words) for key in keys]


def stretchable(state: Any) -> Any:
    """Return a variable without axes whose length is known to be 1, which a step may stretch.

    Parameters
    ----------
    state : Variable
        A state before the first step, or after a step.

    Returns
    -------
    Variable
        The same, of a type that does not tell of lengths of 1.
    """
    axes = [axis for axis, length in enumerate(state.type.shape) if length == 1]
    return tensor.unbroadcast(state, *axes) if axes else state
