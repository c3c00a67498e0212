"""A main loop as plain data by name, and back, bit for bit, with nothing pickled.

The state has six parts: ``parameters``, ``persistent`` (arrays that belong to the model and are
not trained) and ``algorithm`` (buffers, hyperparameters, random keys) map names to arrays;
``log``, ``extensions`` and ``stream`` are what these say about themselves. Names do not change
with the version of a library or with the place of a class, so a state is what to keep.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import Any

import numpy
from aesara.compile.sharedvalue import SharedVariable

from bricks.annotations import get_annotations
from fuel_data.randomness import rng_states, rngs_of_stream, set_rng_states
from fuel_data.utils.names import nearest_name

ARRAY_PARTS = ("parameters", "persistent", "algorithm")
PLAIN_PARTS = ("log", "extensions", "stream")
PARTS = ARRAY_PARTS + PLAIN_PARTS
_IGNORABLE_PARTS = ("log", "stream")


def get_state(main_loop: Any) -> dict[str, Any]:
    """Say everything that a main loop has to remember, as plain data and arrays.

    Parameters
    ----------
    main_loop : MainLoop
        Any, at any batch.

    Returns
    -------
    dict
        The six parts by name. The arrays are copies.

    Raises
    ------
    DonatedStateLost
        If the values on the device were lost in a failed step.
    """
    check_not_lost(main_loop)
    state: dict[str, Any] = {
        part: {name: variable.get_value() for name, variable in variables.items()}
        for part, variables in named_variables(main_loop).items()
    }
    return state | plain_state(main_loop)


def set_state(
    main_loop: Any,
    state: Mapping[str, Any],
    parts: Iterable[str] | None = None,
    ignore: str | Iterable[str] = (),
) -> None:
    """Put a state, or a part of it, into a main loop that a script has built.

    Parameters
    ----------
    main_loop : MainLoop
        Built with the names and shapes of the one that the state comes from. To restore the
        stream it needs no more than its `data_stream`.
    state : mapping
        What `get_state` returned, or `bricks.serialization.load_state` read.
    parts : iterable of str, optional
        Which parts; all that the state has by default.
    ignore : str or iterable of str
        Names that stay as they are in the main loop, whatever the state says, and that may be
        missing on either side. ``*`` stands for any text. Extensions are called
        ``extensions/<name>``. With ``stream``, the epoch that had begun begins anew, with the
        stream of this main loop; with ``log``, the main loop's log takes the status of the state,
        but no rows.

    Raises
    ------
    ValueError
        If names are missing or unexpected, or arrays have another shape or dtype: one error with
        the whole list. Also if an unknown part is asked for, something to ignore is on neither
        side, or the log, the stream or an extension refuses its state. Whatever is raised, the
        main loop is as it was.
    """
    wanted = _wanted_parts(state, parts)
    ignored = [ignore] if isinstance(ignore, str) else list(ignore)
    patterns = [name for name in ignored if name not in _IGNORABLE_PARTS]
    variables = {part: v for part, v in named_variables(main_loop).items() if part in wanted}
    extensions = named_extensions(main_loop) if "extensions" in wanted else {}
    _refill_lost(variables, state)
    fit = _Fit(patterns)
    for part in variables:
        fit.compare_arrays(variables[part], state[part])
    fit.compare_extensions(extensions, state["extensions"] if "extensions" in wanted else {})
    fit.check()
    with ExitStack() as undo:
        for name, extension in extensions.items():
            if name in state["extensions"] and not fit.ignores(f"extensions/{name}"):
                undo.callback(extension.set_state, extension.get_state())
                extension.set_state(state["extensions"][name])
        if "stream" in wanted and "stream" not in ignored:
            undo.callback(_put_stream_back, main_loop, *_stream_position(main_loop))
            _set_stream_state(main_loop, state["stream"])
        if "log" in wanted and "log" not in ignored:
            main_loop.log.set_state(state["log"])
        # All that could be refused was taken.
        undo.pop_all()
    if "log" in wanted and "log" in ignored:
        main_loop.log.begin_at(state["log"])
    if "stream" in wanted and "stream" in ignored:
        _begin_epoch_anew(main_loop)
    for part in variables:
        for name, variable in variables[part].items():
            if not fit.ignores(name):
                variable.set_value(state[part][name])


def named_variables(main_loop: Any) -> dict[str, "OrderedDict[str, SharedVariable]"]:
    """Name every shared variable whose value a main loop has to remember.

    Parameters
    ----------
    main_loop : MainLoop
        Any.

    Returns
    -------
    dict of str to OrderedDict of str to shared variable
        One for each of the parts ``parameters``, ``persistent`` and ``algorithm``. A variable is
        in the first that has it.
    """
    model, algorithm = main_loop.model, main_loop.algorithm
    found: dict[str, Mapping[str, SharedVariable]] = {
        "parameters": _parameters(model, algorithm),
        "persistent": model.get_persistent_dict() if model is not None else {},
        "algorithm": getattr(algorithm, "get_state_variables", dict)(),
    }
    seen: set[SharedVariable] = set()
    parts = {}
    for part, variables in found.items():
        parts[part] = OrderedDict((n, v) for n, v in variables.items() if v not in seen)
        seen.update(variables.values())
    return parts


def plain_state(main_loop: Any) -> dict[str, Any]:
    """Say the parts of the state that are no shared variables: log, extensions and stream.

    Parameters
    ----------
    main_loop : MainLoop
        Any.

    Returns
    -------
    dict
        Plain data.
    """
    extensions = named_extensions(main_loop)
    return {
        "log": main_loop.log.get_state(),
        "extensions": {name: extension.get_state() for name, extension in extensions.items()},
        "stream": _get_stream_state(main_loop),
    }


def named_extensions(main_loop: Any) -> dict[str, Any]:
    """Name the extensions of a main loop: their own names, numbered where two share one.

    Parameters
    ----------
    main_loop : MainLoop
        Any.

    Returns
    -------
    dict of str to extension
        In the order of the loop.
    """
    named: dict[str, Any] = {}
    for extension in main_loop.extensions:
        name, count = str(extension.name), 1
        while name in named:
            count += 1
            name = f"{extension.name}#{count}"
        named[name] = extension
    return named


def check_not_lost(main_loop: Any) -> None:
    """Refuse a main loop whose values on the device were lost.

    Parameters
    ----------
    main_loop : MainLoop
        Any.

    Raises
    ------
    DonatedStateLost
        If a step failed after it had been given the memory of the parameters or buffers.
    """
    from bricks import xla

    for part in named_variables(main_loop).values():
        lost = [name for name, variable in part.items() if xla.state_is_lost([variable])]
        if lost:
            raise xla.DonatedStateLost(
                f"the values of {', '.join(lost[:5])}{' and others' if len(lost) > 5 else ''} "
                "were lost in a step that failed, so there is nothing to save. "
                "Go on from the last checkpoint, which is still there."
            )


def _refill_lost(
    variables: Mapping[str, Mapping[str, SharedVariable]], state: Mapping[str, Any]
) -> None:
    """Give variables whose values were lost new ones, so that they can be compared."""
    from bricks import xla

    for part, named in variables.items():
        for name, variable in named.items():
            if name in state[part] and xla.state_is_lost([variable]):
                variable.set_value(state[part][name])


def _parameters(model: Any, algorithm: Any) -> Mapping[str, SharedVariable]:
    if model is not None:
        return model.get_parameter_dict()
    named: dict[str, SharedVariable] = {}
    for parameter in getattr(algorithm, "parameters", ()):
        name = parameter_path(parameter)
        if name in named:
            raise ValueError(
                f"two parameters are called {name!r}; give the bricks (or the variables) "
                "names of their own, so that they can be told apart in a checkpoint."
            )
        named[name] = parameter
    return named


def parameter_path(parameter: SharedVariable) -> str:
    """Name a parameter by the brick that owns it, as ``/mlp/linear_0.W``.

    Parameters
    ----------
    parameter : shared variable
        Of a brick, or any other.

    Returns
    -------
    str
        The path, or the variable's own name if no brick owns it.

    Raises
    ------
    ValueError
        If it belongs to no brick and has no name.
    """
    for annotation in get_annotations(parameter):
        if hasattr(annotation, "get_hierarchical_name"):
            return annotation.get_hierarchical_name(parameter)
    if parameter.name is None:
        raise ValueError(
            f"a parameter of shape {parameter.get_value(borrow=True).shape} belongs to no brick "
            "and has no name, so a checkpoint cannot tell what it is. Give it a name."
        )
    return parameter.name


def _wanted_parts(state: Mapping[str, Any], parts: Iterable[str] | None) -> list[str]:
    wanted = [part for part in PARTS if part in state] if parts is None else list(parts)
    for part in wanted:
        if part not in PARTS:
            raise ValueError(f"there is no part {part!r} of a state.{nearest_name(part, PARTS)}")
        if part not in state:
            raise ValueError(f"the state has no {part!r}; it has {', '.join(state)}.")
    return wanted


class _Fit:
    """Compare a state with a main loop and gather all that does not fit."""

    def __init__(self, patterns: list[str]):
        self._patterns = patterns
        self._used: set[str] = set()
        self._names: list[str] = []
        self._problems: dict[str, list[str]] = {
            "missing in the state": [],
            "not in the main loop": [],
            "of another shape or dtype": [],
        }

    def ignores(self, name: str) -> bool:
        """Tell whether a name is to stay as it is."""
        # Names have brackets in them, which are no patterns here.
        matching = [p for p in self._patterns if fnmatchcase(name, p.replace("[", "[[]"))]
        self._used.update(matching)
        return bool(matching)

    def compare_arrays(
        self, variables: Mapping[str, SharedVariable], arrays: Mapping[str, numpy.ndarray]
    ) -> None:
        """Compare shared variables with arrays."""
        self._compare_names(set(variables), set(arrays))
        for name in variables:
            if name in arrays and not self.ignores(name):
                here, there = _kind(variables[name].get_value(borrow=True)), _kind(arrays[name])
                if here != there and not _has_open_shape(variables[name], arrays[name]):
                    words = f"{name} ({there} in the state, {here} in the main loop)"
                    self._problems["of another shape or dtype"].append(words)

    def compare_extensions(self, extensions: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        """Compare extensions with states. One without a state of its own may come and go."""
        here = {name for name, extension in extensions.items() if _counts(extension.get_state())}
        there = {name for name, state in states.items() if _counts(state)}
        self._compare_names(
            {f"extensions/{name}" for name in here | (there & set(extensions))},
            {f"extensions/{name}" for name in there | (here & set(states))},
        )

    def _compare_names(self, here: set[str], there: set[str]) -> None:
        self._names += sorted(here | there)
        for title, names in zip(self._problems, (here - there, there - here), strict=False):
            self._problems[title] += [name for name in sorted(names) if not self.ignores(name)]

    def check(self) -> None:
        """Raise one error with all that was found."""
        for name in self._names:
            self.ignores(name)
        for pattern in self._patterns:
            if pattern not in self._used:
                raise ValueError(
                    f"nothing is called {pattern!r}, which was to be ignored."
                    f"{nearest_name(pattern, self._names)}"
                )
        problems = [(title, found) for title, found in self._problems.items() if found]
        lines = [f"  {title}: {', '.join(found)}" for title, found in problems]
        if lines:
            raise ValueError(
                "the state does not fit the main loop, and nothing was changed:\n"
                + "\n".join(lines)
                + "\nName in `ignore` what shall stay as it is in the main loop ('*' stands for "
                "any text), or build the main loop as it was."
            )


def _counts(extension_state: Mapping[str, Any]) -> bool:
    """Tell whether an extension has more than attributes that happen to have changed."""
    return bool(set(extension_state) - {"attributes"})


def _has_open_shape(variable: SharedVariable, array: numpy.ndarray) -> bool:
    """Tell whether a variable that gets its shape from the first batch may have an array's."""
    here = variable.get_value(borrow=True)
    is_open = bool(getattr(variable.tag, "first_batch", ()))
    return is_open and (here.dtype, here.ndim) == (array.dtype, array.ndim)


def _kind(array: numpy.ndarray) -> str:
    return f"{array.dtype} of shape {array.shape}"


def _get_stream_state(main_loop: Any) -> dict[str, Any]:
    stream, iterator = main_loop.data_stream, main_loop.epoch_iterator
    return {
        "iterator": None if iterator is None else iterator.get_state(),
        "pipeline": _pipeline(stream) if iterator is None else None,
        "epochs_begun": getattr(stream, "epochs_begun", None),
        # Within an epoch they are in the position of the iterator.
        "rngs": rng_states(rngs_of_stream(stream)) if iterator is None else [],
    }


def _pipeline(stream: Any) -> str | None:
    # Streams of a user's own need not have what those of fuel_data have.
    return stream.digest() if hasattr(stream, "digest") else None


def _stream_position(main_loop: Any) -> tuple[Any, int | None, list[Any]]:
    stream = main_loop.data_stream
    rngs = rng_states(rngs_of_stream(stream))
    return main_loop.epoch_iterator, getattr(stream, "epochs_begun", None), rngs


def _put_stream_back(
    main_loop: Any, iterator: Any, epochs_begun: int | None, rngs: Sequence[Any]
) -> None:
    main_loop.epoch_iterator = iterator
    if epochs_begun is not None:
        main_loop.data_stream.epochs_begun = epochs_begun
    # Those of releases up to 0.1.0 are missing.
    if rngs:
        set_rng_states(rngs_of_stream(main_loop.data_stream), rngs)


_WITH_ANOTHER_STREAM = (
    "To go on with the stream as it is now, from the beginning of the epoch: "
    "`restore(path, ignore=['stream'])`, or `run(resume=path, ignore=['stream'])`."
)


def _begin_epoch_anew(main_loop: Any) -> None:
    status = main_loop.log.status
    status["epoch_started"] = False
    _put_stream_back(main_loop, None, None, [])
    # A stream that is not asked for an epoch by its number counts by itself.
    if getattr(main_loop.data_stream, "epochs_begun", None) is not None:
        main_loop.data_stream.epochs_begun = status["epochs_done"]


def _set_stream_state(main_loop: Any, state: Mapping[str, Any]) -> None:
    stream, position = main_loop.data_stream, state["iterator"]
    iterator = None
    if position is not None:
        iterator = stream.get_epoch_iterator(as_dict=True, epoch=position["epoch"])
        try:
            iterator.set_state(position)
        except ValueError as error:
            raise ValueError(f"{error} {_WITH_ANOTHER_STREAM}") from error
    elif state["pipeline"] != _pipeline(stream):
        raise ValueError(
            f"the state is of the pipeline {state['pipeline']}, the main loop's stream is of "
            f"{_pipeline(stream)}: {stream!r}. Build the stream with the same data, schemes, "
            f"transformers, arguments and seeds. {_WITH_ANOTHER_STREAM}"
        )
    _put_stream_back(main_loop, iterator, state["epochs_begun"], state.get("rngs", []))
