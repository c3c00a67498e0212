"""The decorator that makes a sequence application of one step, and the base of recurrent bricks.

A method decorated by :func:`recurrent` computes one step. Calling it repeats the step over time;
``iterate=False`` takes the step alone. What the method takes is declared:

* ``sequences``: of axes (time, batch, ...); the step gets one element of each;
* ``states``: the step gets the values of the step before, and returns the next ones;
* ``contexts``: the same in every step;
* ``outputs``: what the step returns; those that are states are fed back.

The variables of the step are found by ``ComputationGraph(…).scan_variables``: they have the names,
roles and annotations that they have in a call with ``iterate=False``, which each step is.

**Random numbers in a step** differ from step to step. The key of a draw is shared by all steps of
a call; each step derives its own from it and from its number. So one update of the key, which does
not depend on the loop, serves the whole call, and every function that is compiled applies it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import aesara
import numpy
from aesara import tensor
from aesara.graph.basic import Constant, Variable
from aesara.raise_op import Assert
from aesara.tensor.type import TensorType

from bricks.aesara_expressions import lengths_of
from bricks.base import Application, Brick, application
from bricks.checks import describe
from bricks.initialization import NdarrayInitialization
from bricks.interfaces import RNGMixin
from bricks.recurrent.tracing import TracedStep, keys_over_time, new_shareds, stretchable
from bricks.utils import is_shared_variable
from bricks.utils.plain import is_integer
from fuel_data.utils.names import nearest_name

__all__ = ["BaseRecurrent", "recurrent"]

_INJECTED = ("application", "application_call")

#: What a call of a recurrent application takes beside the arguments of its step.
_OPTIONS = {
    "iterate": True,
    "reverse": False,
    "return_initial_states": False,
    "n_steps": None,
    "batch_size": None,
    "scan_kwargs": None,
}


def recurrent(*args: Callable, **kwargs: Any) -> Any:
    """Decorate a method of a brick that computes one step, so that calls of it repeat the step.

    Parameters
    ----------
    *args : callable
        The method, when the decorator is used bare; then properties or a delegate of the
        application declare what it takes.
    **kwargs : list of str
        ``sequences``, ``states``, ``contexts`` and ``outputs``: what the step takes and returns,
        by the names of its arguments. Other attributes of the application.

    Returns
    -------
    Application or callable
        The application, or a decorator when used with arguments.

    Raises
    ------
    TypeError
        When called: if an argument is unknown or missing.
    ValueError
        When called: if arguments do not fit each other.

    Notes
    -----
    Calls take the arguments of the step by position or name (sequences whole, initial states,
    contexts; what is None counts as not given), and by keyword:

    ``iterate``
        False takes one step: sequences are then elements, and all states must be given.
    ``reverse``
        True goes from the last element to the first. Outputs come in the order in which they are
        computed.
    ``return_initial_states``
        True puts the initial value of each state before the others.
    ``n_steps``, ``batch_size``
        How often to take the step, and on how many examples. Needed where no sequence tells;
        sequences must be of that length.
    ``scan_kwargs``
        Further arguments of ``aesara.scan``, such as ``{'truncate_gradient': 20}``.

    A state that is not given comes from the brick's ``initial_states``. One that is a scheme of
    initialization is drawn once, the same for all examples; one that is an application is called
    with the state's name, the batch size and the other arguments.

    Examples
    --------
    >>> import numpy
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> class Decay(BaseRecurrent):
    ...     @recurrent(sequences=["inputs"], states=["states"], outputs=["states"], contexts=[])
    ...     def apply(self, inputs, states):
    ...         return 0.5 * states + inputs
    ...     def get_dim(self, name):
    ...         return 1
    >>> x = tensor.tensor3("x")                                # axes: time, batch, feature
    >>> states = Decay().apply(x)
    >>> ones = numpy.ones((3, 1, 1), x.dtype)
    >>> xla.function([x], states)(ones).ravel().tolist()
    [1.0, 1.5, 1.75]
    """

    def wrap(function: Callable) -> Application:
        wrapped = Application(_repeated(function))
        for name, value in kwargs.items():
            setattr(wrapped, name, value)
        return wrapped

    if not args:
        return wrap
    if len(args) > 1 or kwargs or not callable(args[0]):
        raise TypeError(
            "recurrent: use it bare, or with keyword arguments only, as in "
            "`@recurrent(sequences=['inputs'], states=['states'], outputs=['states'], "
            "contexts=[])`."
        )
    return wrap(args[0])


def _repeated(function: Callable) -> Callable:
    """Return a function that takes whole sequences, from one that computes a step."""
    parameters = list(inspect.signature(function).parameters.values())

    @wraps(function)
    def apply(
        brick: Brick,
        *args: Any,
        application: Any,
        application_call: Any,
        iterate: bool = True,
        **kwargs: Any,
    ) -> Any:
        options = {name: kwargs.pop(name) for name in _OPTIONS if name in kwargs}
        names = [p.name for p in parameters[1:] if p.kind is p.POSITIONAL_OR_KEYWORD]
        names = [name for name in names if name not in _INJECTED]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        step = _Step(function, brick, application, application_call)
        step.check_names(given, len(args) - len(names))
        if iterate:
            return _Loop(step, given, **options).run()
        step.check_single(given, options)
        return step.take(given)

    shown: Any = apply
    shown.__signature__ = _signature_of_calls(parameters)
    return apply


def _signature_of_calls(parameters: list[inspect.Parameter]) -> inspect.Signature:
    """Return the signature of a recurrent application, from the parameters of its step."""
    brick, *others = parameters
    others = [p for p in others if p.name not in _INJECTED]
    optional = [
        p.replace(default=None) if p.default is p.empty and "VAR" not in p.kind.name else p
        for p in others
    ]
    by_keyword = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in {**_OPTIONS, **dict.fromkeys(_INJECTED)}.items()
    ]
    is_rest = [p.kind is p.VAR_KEYWORD for p in optional]
    rest = [p for p, last in zip(optional, is_rest, strict=True) if last]
    first = [p for p, last in zip(optional, is_rest, strict=True) if not last]
    return inspect.Signature([brick, *first, *by_keyword, *rest])


class _Step:
    """The method that computes one step, with what it is called for."""

    def __init__(self, function: Callable, brick: Brick, bound: Any, call: Any) -> None:
        self.brick, self.bound, self.call = brick, bound, call
        self._function = function
        self.parameters = dict(list(inspect.signature(function).parameters.items())[1:])
        self.sequences, self.states, self.contexts, self.outputs = (
            list(self._declared(kind)) for kind in ("sequences", "states", "contexts", "outputs")
        )

    def _declared(self, kind: str) -> Iterable[str]:
        try:
            return getattr(self.bound, kind)
        except AttributeError:
            if kind == "contexts":
                return []
            raise

    @property
    def path(self) -> str:
        """The path of the application, for messages."""
        return self.bound.path

    @property
    def declared(self) -> list[str]:
        """All names of arguments that are declared."""
        return [*self.sequences, *self.states, *self.contexts]

    def check_names(self, given: Mapping[str, Any], surplus: int) -> None:
        """Refuse arguments that nobody declares, in a method that takes any."""
        named = [n for n, p in self.parameters.items() if "VAR" not in p.kind.name]
        known = [*self.declared, *(name for name in named if name not in _INJECTED)]
        if surplus > 0:
            raise TypeError(
                f"{self.path}: {surplus} positional argument(s) too many. Give sequences, states "
                f"and contexts by name: {', '.join(self.declared)}."
            )
        for name in given:
            if name not in known:
                raise TypeError(
                    f"{self.path}: unexpected argument {name!r}.{nearest_name(name, known)}"
                )
        lost = [name for name in self.states if name not in self.outputs]
        if lost:
            raise ValueError(
                f"{self.path}: each state must be among the outputs, to be fed back; "
                f"{', '.join(lost)} not in {self.outputs}."
            )

    def check_single(self, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Refuse what makes no sense of a single step."""
        useless = [name for name, value in options.items() if value != _OPTIONS[name]]
        if useless:
            raise TypeError(f"{self.path}: {', '.join(useless)} means nothing with iterate=False.")
        self.check_complete({n: v for n, v in given.items() if v is not None}, "with iterate=False")

    def check_complete(self, given: Mapping[str, Any], how: str = "") -> None:
        """Refuse to go on while an argument that the method needs is missing."""
        missing = [
            name
            for name, parameter in self.parameters.items()
            if parameter.default is parameter.empty
            and "VAR" not in parameter.kind.name
            and name not in _INJECTED
            and name not in given
        ]
        if missing:
            raise TypeError(f"{self.path}: {', '.join(missing)} must be given {how}".rstrip() + ".")

    def take(self, given: Mapping[str, Any]) -> Any:
        """Call the method."""
        injected = {"application": self.bound, "application_call": self.call}
        wanted = {name: value for name, value in injected.items() if name in self.parameters}
        return self._function(self.brick, **given, **wanted)


class _Loop:
    """One call of a recurrent application over whole sequences.

    Parameters
    ----------
    step : _Step
        What is repeated.
    given : mapping of str to object
        The arguments by name.
    n_steps, batch_size, reverse, return_initial_states, scan_kwargs : object
        The options of the call.
    """

    def __init__(
        self,
        step: _Step,
        given: Mapping[str, Any],
        reverse: bool = False,
        return_initial_states: bool = False,
        n_steps: Any = None,
        batch_size: Any = None,
        scan_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.step = step
        self.reverse, self.return_initial_states = reverse, return_initial_states
        self.scan_kwargs = dict(scan_kwargs or {})
        given = {name: value for name, value in given.items() if value is not None}
        self.sequences = {n: _as_tensor(given[n]) for n in step.sequences if n in given}
        rest = {n: value for n, value in given.items() if n not in step.states + step.sequences}
        symbolic = {
            n: _as_tensor(v)
            for n, v in rest.items()
            if n in step.contexts or isinstance(v, Variable)
        }
        self.contexts = symbolic
        self.flags = {n: value for n, value in rest.items() if n not in symbolic}
        self.n_steps = self._number_of_steps(n_steps)
        self.batch_size = self._size_of_batch(batch_size)
        others = {**self.sequences, **self.contexts, **self.flags}
        states = self._initial_states({n: given[n] for n in step.states if n in given}, others)
        self.states = {name: stretchable(state) for name, state in states.items()}
        step.check_complete({**others, **self.states})

    def _number_of_steps(self, given: Any) -> Any:
        """Return the number of steps: that of the sequences, which must agree."""
        path = self.step.path
        for name, sequence in self.sequences.items():
            if sequence.ndim < 1:
                raise ValueError(
                    f"{path}: `{name}` must have a time axis; got {describe(sequence)}."
                )
        if given is not None:
            self._check_count("n_steps", given)
            self._check_lengths("n_steps", given)
            return given
        if not self.sequences:
            raise TypeError(
                f"{path}: give one of the sequences {', '.join(self.step.sequences)}, or `n_steps`."
            )
        name = min(self.sequences, key=lambda name: not _is_given(self.sequences[name]))
        n_steps = lengths_of(self.sequences[name])[0]
        self._check_lengths(name, n_steps)
        return n_steps

    def _check_count(self, name: str, given: Any) -> None:
        if not isinstance(given, Variable) and (not is_integer(given) or given < 0):
            raise ValueError(
                f"{self.step.path}: `{name}` must be an integer from 0; got {given!r}."
            )

    def _check_lengths(self, first: str, n_steps: Any) -> None:
        """Refuse sequences of another length, now or at run time."""
        for name, sequence in self.sequences.items():
            if name == first:
                continue
            length = lengths_of(sequence)[0]
            message = (
                f"{self.step.path}: `{first}` and `{name}` must tell of the same number of steps, "
                "on the first axis"
            )
            if not (isinstance(length, int) and isinstance(n_steps, int)):
                same = tensor.eq(length, n_steps)
                self.sequences[name] = Assert(message + ".")(sequence, same)
            elif length != n_steps:
                raise ValueError(f"{message}; got {n_steps} and {length}.")

    def _size_of_batch(self, given: Any) -> Any:
        if given is not None:
            self._check_count("batch_size", given)
            return given
        wide = [sequence for sequence in self.sequences.values() if sequence.ndim > 1]
        return lengths_of(min(wide, key=lambda one: not _is_given(one)))[1] if wide else None

    def _initial_states(self, given: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
        """Return the initial value of each state."""
        step = self.step
        needs_size = [n for n in step.states if _is_drawn(given.get(n))]
        if needs_size and self.batch_size is None:
            raise TypeError(
                f"{step.path}: `batch_size` must be given, for the initial {', '.join(needs_size)}."
            )
        found: Mapping[str, Any] = {}
        if any(name not in given for name in step.states):
            brick: Any = step.brick
            found = brick.initial_states(self.batch_size, as_dict=True, **others)
        values = {}
        for name in step.states:
            if name not in given and name not in found:
                raise ValueError(
                    f"{step.path}: no initial value for the state {name!r}. Give it, or let "
                    f"`initial_states` of {type(step.brick).__name__} return it; it returns "
                    f"{list(found)}."
                )
            values[name] = self._initial_state(name, given.get(name, found.get(name)), others)
        return values

    def _initial_state(self, name: str, value: Any, others: dict[str, Any]) -> Any:
        """Return an initial state as a variable, whatever it was given as."""
        brick = self.step.brick
        if isinstance(value, NdarrayInitialization):
            if not isinstance(brick, RNGMixin):
                raise ValueError(
                    f"{self.step.path}: `{name}` cannot be drawn by {value!r}, since "
                    f"{type(brick).__name__} has no `rng`. Give a variable."
                )
            shape = _shape_of_state(brick.get_dim(name))
            row = value.generate(brick.rng, (1, *shape))[0]
            return tensor.alloc(row, self.batch_size, *shape)
        if callable(value) and not isinstance(value, Variable):
            return value(name, self.batch_size, **others)
        return tensor.as_tensor_variable(value)

    def run(self) -> list[Any]:
        """Build the loop.

        Returns
        -------
        list of Variable
            The outputs over time.
        """
        traced = self._trace()
        outputs, updates = aesara.scan(
            traced.repeat,
            sequences=[*self.sequences.values(), *keys_over_time(traced.keys, self.n_steps)],
            outputs_info=[self.states.get(name) for name in self.step.outputs],
            non_sequences=[*self.contexts.values(), *traced.shared],
            n_steps=self.n_steps,
            go_backwards=self.reverse,
            name=f"{self.step.brick.name}_{self.step.bound.name}_scan",
            strict=True,
            return_list=True,
            **self.scan_kwargs,
        )
        self.step.call.add_updates(updates)
        self.step.call.inner_inputs = traced.inputs
        self.step.call.inner_outputs = traced.outputs
        if self.return_initial_states:
            outputs = [
                tensor.concatenate([self.states[name][None], output])
                if name in self.states
                else output
                for name, output in zip(self.step.outputs, outputs, strict=True)
            ]
        return outputs

    def _trace(self) -> TracedStep:
        """Take the step once, with variables that stand for its arguments."""
        step = self.step
        elements = {n: _type_of_elements(s)(name=n) for n, s in self.sequences.items()}
        fed_back = [name for name in step.outputs if name in self.states]
        states = {name: self.states[name].type(name=name) for name in fed_back}
        # Constants and shared variables are known in the step as they are.
        contexts = {
            n: v if isinstance(v, Constant) or is_shared_variable(v) else v.type(name=n)
            for n, v in self.contexts.items()
        }
        stand_ins = {**elements, **states, **contexts}
        with new_shareds() as created:
            outputs = step.bound(**stand_ins, **self.flags, iterate=False, as_list=True)
        self._check_outputs(outputs)
        return TracedStep(list(stand_ins.values()), len(elements), outputs, created)

    def _check_outputs(self, outputs: list[Any]) -> None:
        """Refuse a step whose outputs cannot be fed back."""
        names, path = self.step.outputs, self.step.path
        if len(outputs) != len(names):
            raise ValueError(
                f"{path}: the step must return {len(names)} values, {', '.join(names)}; "
                f"got {len(outputs)}."
            )
        for name, output in zip(names, outputs, strict=True):
            state = self.states.get(name)
            if state is None:
                continue
            if (output.ndim, output.dtype) != (state.ndim, state.dtype):
                given = {**self.sequences, **self.contexts}
                wide = [n for n, one in given.items() if one.dtype == output.dtype != state.dtype]
                hint = f" Of that dtype: {', '.join(wide)}." if wide else ""
                raise ValueError(
                    f"{path}: the next value of the state {name!r} must have the type of its "
                    f"initial value, {state.dtype} with {state.ndim} axes; the step returns "
                    f"{describe(output)}.{hint} Cast or reshape one of them."
                )
            for axis, pair in enumerate(zip(output.type.shape, state.type.shape, strict=True)):
                if None not in pair and pair[0] != pair[1]:
                    raise ValueError(
                        f"{path}: the state {name!r} has {pair[1]} elements on axis {axis} before "
                        f"the step, and {pair[0]} after it."
                    )


def _is_drawn(state: Any) -> bool:
    """Tell whether an initial state is made when it is needed, so that it has no size yet."""
    is_scheme = isinstance(state, NdarrayInitialization)
    return state is None or is_scheme or (callable(state) and not isinstance(state, Variable))


def _as_tensor(value: Any) -> Any:
    """Return a variable as it is, and anything else as a constant."""
    return value if isinstance(value, Variable) else tensor.as_tensor_variable(value)


def _is_given(sequence: Any) -> bool:
    """Say whether a sequence is an input of the graph, or the copy that an application makes.

    Aesara works out what is known of a length from all that it is computed from, again and again;
    in a stack of loops that takes seconds. So lengths are taken of inputs, if there are any.
    """
    while sequence.owner is not None and sequence.owner.op == tensor.tensor_copy:
        (sequence,) = sequence.owner.inputs
    return sequence.owner is None


def _type_of_elements(sequence: Any) -> TensorType:
    """Return the type of what each step gets of a sequence, with the lengths that are known."""
    return TensorType(sequence.dtype, sequence.type.shape[1:])


def _shape_of_state(dim: Any) -> tuple[int, ...]:
    """Return the axes behind the batch axis, from what `Brick.get_dim` tells."""
    if isinstance(dim, tuple | list):
        return tuple(dim)
    return (dim,) if dim else ()


class BaseRecurrent(Brick):
    """The base class of bricks that have a recurrent application called ``apply``.

    Parameters
    ----------
    **kwargs : object
        For `Brick`.

    Notes
    -----
    Subclasses define ``apply`` by :func:`recurrent`, and `get_dim` for its states. States begin
    with zeros unless :meth:`initial_states` is overridden.
    """

    apply: Any

    @application
    def initial_states(self, batch_size: Any, **kwargs: Any) -> list[Any]:
        """Return the values that the states have before the first step.

        Parameters
        ----------
        batch_size : int or Variable
            The number of examples.
        **kwargs : Variable
            The sequences and contexts of the call that asks.

        Returns
        -------
        list of Variable of shape (batch_size, dim)
            One for each state of ``apply``, in their order.
        """
        return [self._zeros(name, batch_size) for name in self.apply.states]

    @initial_states.property("outputs")
    def initial_states_outputs(self) -> list[str]:
        """Give the names of the states.

        Returns
        -------
        list of str
            Those of ``apply``.
        """
        return self.apply.states

    def _zeros(self, name: str, batch_size: Any) -> Any:
        shape = _shape_of_state(self.get_dim(name))
        return tensor.alloc(numpy.zeros((), aesara.config.floatX), batch_size, *shape)
