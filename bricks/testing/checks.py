"""What holds for every brick, as checks that take a description of one.

People who write bricks describe theirs and run the same checks::

    case = BrickCase(
        name="doubler",
        build=Doubler,
        inputs={"x": numpy.ones((3, 4), "float32")},
        reference=lambda parameters, x: 2 * x,
    )
    for check in CHECKS:
        check(case)

Compiling is what takes the time, so the checks of one case that follow each other share two
functions of the outputs and their gradients: ``xla`` is compiled, ``py`` interprets the graph as it
was written, without any rewrite.
"""

import functools
import pickle
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aesara
import numpy
from aesara import config, tensor
from aesara.compile.mode import Mode
from aesara.graph.basic import equal_computations
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.link.vm import VMLinker

from bricks import xla
from bricks.base import Brick
from bricks.graph import ComputationGraph
from bricks.interfaces import Initializable
from bricks.model import Model
from bricks.serialization import dump, load, load_parameters
from bricks.utils import pack

Arrays = Mapping[str, numpy.ndarray]

#: By how much sequences are lengthened, and how far what is put there is from what is usual.
_PADDING, _FAR = 2, 7.0


@dataclass(frozen=True, eq=False)
class BrickCase:
    """A brick to be checked: how to build it, what to feed it, what has to come out.

    Parameters
    ----------
    name : str
        Of the case.
    build : callable
        Makes the brick, with its schemes of initialization and without arguments.
    inputs : mapping of str to array
        One example for each input of the application.
    reference : callable, optional
        Takes the parameters (and statistics) by path and the inputs by name, all floats in
        ``float64``, and returns the output or a list of outputs, computed by numpy. Without it
        the brick itself is the reference, built and computed in ``float64``; then its values have
        to be tested elsewhere.
    application : str
        Which application is checked.
    wrong_shapes : mapping of str to tuple of int
        Static shapes of some of the inputs that the brick has to refuse, if there are any.
    options : mapping of str to object
        Arguments of the application that are no variables.
    smooth : bool
        Whether the gradient exists at the example, so that it can be compared.
    sequences : mapping of str to mapping of str to int
        For each mask, or input of lengths, the axis of time of each input that gets longer with
        the sequences, the mask itself among them: ``{"mask": {"inputs": 0, "mask": 0}}``.
    """

    name: str
    build: Callable[[], Brick]
    inputs: Arrays
    reference: Callable[..., Any] | None = None
    application: str = "apply"
    wrong_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    smooth: bool = True
    sequences: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<case {self.name}>"


class _Applied:
    """A brick that was built, initialized and applied to variables like the example."""

    def __init__(self, case: BrickCase, seed: int | None = None):
        self.brick = case.build()
        if seed is not None and isinstance(self.brick, Initializable):
            self.brick.seed = seed
        self.brick.initialize()
        self.inputs = {
            name: tensor.TensorType(_as_built(array).dtype, (None,) * array.ndim)(name)
            for name, array in case.inputs.items()
        }
        application = getattr(self.brick, case.application)
        self.outputs = pack(application(**self.inputs, **case.options))

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(Model(self.outputs).get_parameter_dict())

    @property
    def saved(self) -> dict[str, Any]:
        """The parameters and the other variables that belong to the model, by name."""
        return self.parameters | dict(Model(self.outputs).get_persistent_dict())

    def values(self) -> dict[str, numpy.ndarray]:
        return {name: p.get_value() for name, p in self.saved.items()}

    def state(self) -> list[Any]:
        """The shared variables that hold numbers, without the keys of random streams."""
        shared = ComputationGraph(self.outputs).shared_variables
        return [variable for variable in shared if variable.dtype.startswith("float")]


class _Compiled:
    """One function of a case for each backend, of outputs and gradients.

    The gradients are those of the sum of all outputs, weighted by arguments of the function.
    """

    def __init__(self, case: BrickCase) -> None:
        self.case = case
        self.applied = _Applied(case)
        wrt = {**self.applied.parameters, **self.applied.inputs}
        self.wrt = {
            name: variable
            for name, variable in wrt.items()
            if variable.dtype.startswith("float") and name not in case.sequences
        }
        self.floats = [o for o in self.applied.outputs if o.dtype.startswith("float")]
        if not case.smooth or not self.floats or not self.wrt:
            self.wrt, self.floats = {}, []
        self._functions: dict[str, Any] = {}

    def function(self, backend: str) -> Any:
        if backend not in self._functions:
            weights = [o.type(name=f"weights_{i}") for i, o in enumerate(self.floats)]
            gradients: Any = []
            if self.wrt:
                gradients = tensor.grad(
                    sum((o * w).sum() for o, w in zip(self.floats, weights, strict=True)),
                    list(self.wrt.values()),
                    disconnected_inputs="ignore",
                )
            inputs = [*self.applied.inputs.values(), *weights]
            compile_ = xla.function if backend == "xla" else _interpret
            self._functions[backend] = compile_(
                inputs, [*self.applied.outputs, *gradients], on_unused_input="ignore"
            )
        return self._functions[backend]

    @functools.cached_property
    def reference(self) -> Callable[[Arrays, Arrays], list[numpy.ndarray]]:
        """Compute the outputs in ``float64`` from values of parameters and of inputs."""
        reference = self.case.reference
        if reference is None:
            return _wide_graph(self.case)
        return lambda parameters, inputs: pack(reference(parameters, **inputs))

    def expected(self, inputs: Arrays) -> list[numpy.ndarray]:
        return _compute_wide(self.reference, self.applied.values(), inputs)

    def weights(self, expected: list[Any]) -> list[numpy.ndarray]:
        """Weights of the elements of the outputs, different and positive."""
        outputs = zip(self.applied.outputs, expected, strict=True)
        floats = [numpy.asarray(value) for o, value in outputs if o.dtype.startswith("float")]
        return [_weights_like(value) for value in floats[: len(self.floats)]]

    def compute(self, backend: str, inputs: Arrays, weights: list[Any]) -> list[numpy.ndarray]:
        given = [_as_built(array) for array in inputs.values()]
        # What is written is computed as it stands, also what a rewrite or a switch leaves out.
        with numpy.errstate(all="ignore"):
            return self.function(backend)(*given, *map(_as_built, weights))


def _interpret(inputs: list[Any], outputs: list[Any], **options: Any) -> Any:
    """Compute a graph operation by operation in Python, as it was written.

    Without rewrites: so it is soon compiled, and what rewrites do is compared too.
    """
    linker = VMLinker(use_cloop=False, c_thunks=False)
    return aesara.function(inputs, outputs, mode=Mode(linker, RewriteDatabaseQuery([])), **options)


@functools.lru_cache(maxsize=4)
def _compile(case: BrickCase) -> _Compiled:
    return _Compiled(case)


def check_it_pickles(case: BrickCase) -> None:
    """Check that the brick and its graph come back from a pickle and compute the same.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If they do not.
    """
    applied = _Applied(case)
    loaded = pickle.loads(pickle.dumps(applied))
    assert loaded.brick.path == applied.brick.path
    assert list(loaded.saved) == list(applied.saved)
    _assert_same_state(loaded, applied)
    _assert_same_computation(case, loaded, applied)


def check_it_has_a_path(case: BrickCase) -> None:
    """Check that the brick says its name, and that its outputs and parameters are named by it.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If they are not.
    """
    applied = _Applied(case)
    name = applied.brick.name
    assert f"name={name!r}" in repr(applied.brick), f"{applied.brick!r} does not say its name"
    for output in applied.outputs:
        assert output.name.startswith(f"{name}_{case.application}_"), output.name
    for path in applied.saved:
        assert path.startswith(f"/{name}"), f"{path} is not named by its brick"


def check_it_refuses_wrong_arguments(case: BrickCase) -> None:
    """Check that each wrong shape, and an unknown argument, is an error that names the path.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If one is accepted, or the message does not begin with a path.
    """
    usual = {name: (None,) * array.ndim for name, array in case.inputs.items()}
    for wrong, shape in case.wrong_shapes.items():
        shapes: Any = {**usual, wrong: shape}
        _assert_refused(case, shapes, ValueError, f"{wrong!r} of shape {shape}")
    _assert_refused(case, usual, TypeError, "an unknown argument", unknwon_argument=1)


def _assert_refused(
    case: BrickCase, shapes: Any, error: type[Exception], what: str, **more: Any
) -> None:
    brick = case.build()
    variables = {
        name: tensor.TensorType(_as_built(array).dtype, shapes[name])(name)
        for name, array in case.inputs.items()
    }
    try:
        getattr(brick, case.application)(**variables, **case.options, **more)
    except error as caught:
        assert str(caught).startswith(brick.path), f"{caught} does not name {brick.path}"
    else:
        raise AssertionError(f"{brick.path} took {what}")


def check_it_computes_its_reference(case: BrickCase) -> None:
    """Check values and dtypes on the backends ``xla`` and ``py`` against the reference.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If they differ by more than the precision of ``float32``.
    """
    compiled = _compile(case)
    expected = compiled.expected(case.inputs)
    for backend in ("xla", "py"):
        found = compiled.compute(backend, case.inputs, compiled.weights(expected))
        values = found[: len(expected)]
        assert len(compiled.applied.outputs) == len(expected), "another number of outputs"
        for value, reference in zip(values, expected, strict=True):
            allowed = (config.floatX, "int64", "int32", "uint8", "bool")
            assert value.dtype in allowed, f"{backend}: {value.dtype}"
            assert value.shape == reference.shape, f"{backend}: {value.shape}"
            numpy.testing.assert_allclose(value, reference, 1e-4, 1e-5, err_msg=backend)


def check_its_gradients(case: BrickCase) -> None:
    """Check gradients against difference quotients of the reference, and on both backends.

    Each gradient is compared in one direction, in which the reference is computed in ``float64``,
    and as a whole between ``xla`` and ``py``.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If they differ by more than the precision of ``float32``.
    """
    compiled = _compile(case)
    if not compiled.wrt:
        return
    expected = compiled.expected(case.inputs)
    weights = compiled.weights(expected)
    found = [
        compiled.compute(backend, case.inputs, weights)[len(expected) :]
        for backend in ("xla", "py")
    ]
    for name, one, other in zip(compiled.wrt, *found, strict=True):
        numpy.testing.assert_allclose(one, other, 1e-4, 1e-4, err_msg=f"backends: {name}")
    gradients = dict(zip(compiled.wrt, found[0], strict=True))
    _compare_with_quotients(compiled, gradients, weights)


def check_padding_changes_nothing(case: BrickCase) -> None:
    """Check that longer sequences, masked out where they are longer, give the same.

    What stands there is far from what is usual. Compared are the outputs, where they were before,
    and their gradients.

    Parameters
    ----------
    case : BrickCase
        The brick; nothing is checked without `sequences`.

    Raises
    ------
    AssertionError
        If anything differs by more than the precision of ``float32``.
    """
    compiled = _compile(case)
    for mask, axes in case.sequences.items():
        assert mask in case.inputs, f"{case.name}: no input {mask!r}"
        padded = {
            name: _lengthen(array, axes[name], mask == name) if name in axes else array
            for name, array in case.inputs.items()
        }
        expected = compiled.expected(case.inputs)
        weights = compiled.weights(expected)
        longer = [
            _fill_to(numpy.shape(reference), own)
            for reference, own in zip(
                _floats_of(compiled, compiled.expected(padded)), weights, strict=True
            )
        ]
        before = compiled.compute("py", case.inputs, weights)
        after = compiled.compute("py", padded, longer)
        names = [*(o.name for o in compiled.applied.outputs), *compiled.wrt]
        for name, one, other in zip(names, before, after, strict=True):
            where = tuple(slice(length) for length in one.shape)
            numpy.testing.assert_allclose(
                other[where], one, 1e-4, 1e-5, err_msg=f"{name}, with padding by {mask}"
            )


def check_it_is_restored_by_name(case: BrickCase) -> None:
    """Check that another brick of this kind, given what was saved by name, computes the same.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If it does not: for instance, if it has numbers that are neither parameters nor persistent.
    """
    saved, other = _Applied(case, seed=1), _Applied(case, seed=2)
    for variable in saved.state():
        variable.set_value(variable.get_value() * 1.5 + 0.25)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "brick.zip"
        dump(saved, path, parameters=saved.saved.values())
        values, loaded = load_parameters(path), load(path)
    assert sorted(values) == sorted(saved.saved)
    for name, variable in other.saved.items():
        variable.set_value(values[name])
    for restored in (other, loaded):
        _assert_same_state(restored, saved)
        _assert_same_computation(case, restored, saved)


def check_it_lowers_for_cuda(case: BrickCase) -> None:
    """Check that the brick and its gradients can be compiled for CUDA, without such a device.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If they cannot.
    """
    compiled = _compile(case)
    weights = compiled.weights(compiled.expected(case.inputs))
    examples = [_as_built(array) for array in [*case.inputs.values(), *weights]]
    exported = xla.export_for("cuda", compiled.function("xla"), *examples)
    assert exported.platforms == ("cuda",)


#: All checks, each of which takes a `BrickCase`.
CHECKS: tuple[Callable[[BrickCase], None], ...] = (
    check_it_pickles,
    check_it_has_a_path,
    check_it_refuses_wrong_arguments,
    check_it_is_restored_by_name,
    check_it_computes_its_reference,
    check_its_gradients,
    check_padding_changes_nothing,
    check_it_lowers_for_cuda,
)


def _as_built(array: numpy.ndarray) -> numpy.ndarray:
    """Floats as wide as ``floatX``, which is ``float64`` where the graph is its own reference."""
    return array.astype(config.floatX) if array.dtype.kind == "f" else array


def _wide(arrays: Arrays) -> dict[str, numpy.ndarray]:
    return {n: a.astype("float64") if a.dtype.kind == "f" else a for n, a in arrays.items()}


def _compute_wide(reference: Any, parameters: Arrays, inputs: Arrays) -> list[numpy.ndarray]:
    return list(map(numpy.asarray, reference(_wide(parameters), _wide(inputs))))


def _wide_graph(case: BrickCase) -> Callable[[Arrays, Arrays], list[numpy.ndarray]]:
    """Build the case once more in ``float64``, and return what computes its outputs."""
    with aesara.config.change_flags(floatX="float64"):
        applied = _Applied(case)
        function = xla.function(
            list(applied.inputs.values()), applied.outputs, on_unused_input="ignore"
        )

    def compute(parameters: Arrays, inputs: Arrays) -> list[numpy.ndarray]:
        with aesara.config.change_flags(floatX="float64"):
            for name, variable in applied.saved.items():
                variable.set_value(parameters[name])
            return function(*inputs.values())

    return compute


def _weights_like(value: numpy.ndarray) -> numpy.ndarray:
    weights = numpy.full(value.shape, 2.5)
    for axis, length in enumerate(value.shape):
        along = numpy.cos((axis + 1.0) * numpy.arange(length))
        weights += along.reshape([-1 if i == axis else 1 for i in range(value.ndim)])
    return weights


def _floats_of(compiled: _Compiled, values: list[Any]) -> list[Any]:
    """Of the values of all outputs, those that have weights."""
    outputs = zip(compiled.applied.outputs, values, strict=True)
    floats = [value for output, value in outputs if output.dtype.startswith("float")]
    return floats[: len(compiled.floats)]


def _lengthen(array: numpy.ndarray, axis: int, is_mask: bool) -> numpy.ndarray:
    """Make sequences longer: a mask by zeros, integers by themselves, others by what is far off."""
    shape = [_PADDING if i == axis else n for i, n in enumerate(array.shape)]
    if is_mask:
        more = numpy.zeros(shape, array.dtype)
    elif array.dtype.kind == "f":
        noise = numpy.random.RandomState(3).standard_normal(shape)
        more = (_FAR * noise).astype(array.dtype)
    else:
        more = numpy.resize(array, shape)
    return numpy.concatenate([array, more], axis)


def _fill_to(shape: tuple[int, ...], array: numpy.ndarray) -> numpy.ndarray:
    """Return an array in the corner of a larger one of zeros."""
    larger = numpy.zeros(shape)
    larger[tuple(slice(length) for length in array.shape)] = array
    return larger


def _compare_with_quotients(compiled: _Compiled, gradients: Arrays, weights: list[Any]) -> None:
    """Compare gradients with the difference quotient of the reference, in one direction each."""
    rng, step = numpy.random.RandomState(7), 1e-6
    parameters, inputs = _wide(compiled.applied.values()), _wide(compiled.case.inputs)

    def scalar(changed: str, change: numpy.ndarray) -> float:
        values = {**parameters, **inputs}
        values[changed] = values[changed] + change
        split = ({n: values[n] for n in parameters}, {n: values[n] for n in inputs})
        outputs = _floats_of(compiled, _compute_wide(compiled.reference, *split))
        return sum((o * w).sum() for o, w in zip(outputs, weights, strict=True))

    for name, gradient in gradients.items():
        direction = rng.standard_normal(gradient.shape)
        quotient = (scalar(name, step * direction) - scalar(name, -step * direction)) / (2 * step)
        found = (gradient * direction).sum()
        numpy.testing.assert_allclose(found, quotient, 1e-3, 1e-4, err_msg=name)


def _assert_same_state(first: _Applied, second: _Applied) -> None:
    """Check that all numbers that two graphs hold are equal, named or not."""
    for one, other in zip(first.state(), second.state(), strict=True):
        message = f"{one.name} does not come back: is it a parameter, or of role PERSISTENT?"
        numpy.testing.assert_array_equal(one.get_value(), other.get_value(), message)


def _assert_same_computation(case: BrickCase, first: _Applied, second: _Applied) -> None:
    """Check that two graphs with equal numbers compute the same: node by node, or by doing it."""
    leaves = [
        [*one.inputs.values(), *ComputationGraph(one.outputs).shared_variables]
        for one in (first, second)
    ]
    if equal_computations(first.outputs, second.outputs, *leaves):
        return
    results = [
        xla.function(list(one.inputs.values()), one.outputs, on_unused_input="ignore")(
            *map(_as_built, case.inputs.values())
        )
        for one in (first, second)
    ]
    for one, other in zip(*results, strict=True):
        numpy.testing.assert_array_equal(one, other)
