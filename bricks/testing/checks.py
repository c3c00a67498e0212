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
"""

import pickle
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
from aesara import config, tensor

from bricks import xla
from bricks.base import Brick
from bricks.graph import ComputationGraph
from bricks.interfaces import Initializable
from bricks.model import Model
from bricks.serialization import dump, load, load_parameters
from bricks.utils import pack

Arrays = Mapping[str, numpy.ndarray]


@dataclass(frozen=True)
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
    reference : callable
        Takes the parameters by path and the inputs by name, all floats in ``float64``, and
        returns the output or a list of outputs, computed by numpy.
    application : str
        Which application is checked.
    wrong_shapes : mapping of str to tuple of int
        Static shapes of some of the inputs that the brick has to refuse, if there are any.
    options : mapping of str to object
        Arguments of the application that are no variables.
    smooth : bool
        Whether the gradient exists at the example, so that it can be compared.
    """

    name: str
    build: Callable[[], Brick]
    inputs: Arrays
    reference: Callable[..., Any]
    application: str = "apply"
    wrong_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    smooth: bool = True

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
            name: tensor.TensorType(array.dtype, (None,) * array.ndim)(name)
            for name, array in case.inputs.items()
        }
        application = getattr(self.brick, case.application)
        self.outputs = pack(application(**self.inputs, **case.options))
        self.parameters = dict(Model(self.outputs).get_parameter_dict())

    def compute(self, case: BrickCase, variables: Any, backend: str | None = None) -> Any:
        function = xla.function(
            list(self.inputs.values()), variables, backend=backend, on_unused_input="ignore"
        )
        return function(*case.inputs.values())

    def values(self) -> dict[str, numpy.ndarray]:
        return {name: p.get_value() for name, p in self.parameters.items()}


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
    _assert_equal(loaded.compute(case, loaded.outputs), applied.compute(case, applied.outputs))


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
    assert f"name={name!r}" in repr(applied.brick)
    assert all(o.name.startswith(f"{name}_{case.application}_") for o in applied.outputs)
    assert all(path.startswith(f"/{name}") for path in applied.parameters)


def check_it_refuses_wrong_shapes(case: BrickCase) -> None:
    """Check that each wrong shape is an error when the brick is applied, and names its path.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If one is accepted, or the message does not begin with a path.
    """
    for wrong, shape in case.wrong_shapes.items():
        brick = case.build()
        shapes: dict[str, Any] = {n: (None,) * array.ndim for n, array in case.inputs.items()}
        shapes[wrong] = shape
        variables = {
            name: tensor.TensorType(array.dtype, shapes[name])(name)
            for name, array in case.inputs.items()
        }
        try:
            getattr(brick, case.application)(**variables, **case.options)
        except ValueError as error:
            assert str(error).startswith(brick.path), f"{error} does not name {brick.path}"
        else:
            raise AssertionError(f"{brick.path} took {wrong!r} of shape {shape}")


def check_it_computes_its_reference(case: BrickCase) -> None:
    """Check values, dtypes and gradients on the backends ``xla`` and ``py`` against numpy.

    The gradient is compared with the difference quotient of the reference in one direction.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If they differ by more than the precision of ``float32``.
    """
    applied = _Applied(case)
    expected = _reference(case, applied.values(), case.inputs)
    wrt = {**applied.parameters, **applied.inputs}
    wrt = {name: v for name, v in wrt.items() if v.dtype.startswith("float")}
    gradients = _gradients(applied.outputs, wrt) if case.smooth else []
    for backend in ("xla", "py"):
        found = applied.compute(case, [*applied.outputs, *gradients], backend)
        for value, reference in zip(found, expected, strict=False):
            assert value.dtype in (config.floatX, "int64", "bool"), f"{backend}: {value.dtype}"
            numpy.testing.assert_allclose(value, reference, 1e-4, 1e-5, err_msg=backend)
        if gradients:
            found_gradients = dict(zip(wrt, found[len(expected) :], strict=True))
            _check_gradients(case, applied.values(), found_gradients, backend)


def check_it_is_restored_by_name(case: BrickCase) -> None:
    """Check that another brick of this kind, given the parameters by name, computes the same.

    Parameters
    ----------
    case : BrickCase
        The brick.

    Raises
    ------
    AssertionError
        If it does not.
    """
    saved, other = _Applied(case, seed=1), _Applied(case, seed=2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "brick.zip"
        dump(saved, path, parameters=saved.parameters.values())
        values, loaded = load_parameters(path), load(path)
    assert list(values) == list(saved.parameters)
    for name, parameter in other.parameters.items():
        parameter.set_value(values[name])
    outputs = saved.compute(case, saved.outputs)
    _assert_equal(other.compute(case, other.outputs), outputs)
    _assert_equal(loaded.compute(case, loaded.outputs), outputs)


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
    applied = _Applied(case)
    wrt = {n: v for n, v in applied.parameters.items() if v.dtype.startswith("float")}
    gradients = _gradients(applied.outputs, wrt) if case.smooth else []
    inputs = list(ComputationGraph(applied.outputs).inputs)
    function = xla.function(inputs, [*applied.outputs, *gradients], backend="xla")
    examples = [case.inputs[str(variable.name)] for variable in inputs]
    assert xla.export_for("cuda", function, *examples).platforms == ("cuda",)


#: All checks, each of which takes a `BrickCase`.
CHECKS: tuple[Callable[[BrickCase], None], ...] = (
    check_it_pickles,
    check_it_has_a_path,
    check_it_refuses_wrong_shapes,
    check_it_computes_its_reference,
    check_it_is_restored_by_name,
    check_it_lowers_for_cuda,
)


def _reference(case: BrickCase, parameters: Arrays, inputs: Arrays) -> list[numpy.ndarray]:
    wide = [
        {n: a.astype("float64") if a.dtype.kind == "f" else a for n, a in arrays.items()}
        for arrays in (parameters, inputs)
    ]
    return pack(case.reference(wide[0], **wide[1]))


def _gradients(outputs: list[Any], wrt: Mapping[str, Any]) -> list[Any]:
    weighted = [(o * _weights(o)).sum() for o in outputs if o.dtype.startswith("float")]
    if not weighted or not wrt:
        return []
    gradients: Any = tensor.grad(
        sum(weighted), list(wrt.values()), disconnected_inputs="ignore"
    )
    return gradients


def _weights(output: Any) -> Any:
    """Weights of the elements of an output, different and positive, in the graph or in numpy."""
    library: Any = numpy if isinstance(output, numpy.ndarray) else tensor
    weights = 2.5
    for axis in range(output.ndim):
        places = library.arange(output.shape[axis]).astype(output.dtype)
        # Indexing by None works in both libraries, and the graph knows what it may stretch.
        where = tuple(slice(None) if i == axis else None for i in range(output.ndim))
        weights = weights + library.cos((axis + 1) * places)[where]
    return weights


def _check_gradients(
    case: BrickCase, parameters: Arrays, gradients: Arrays, backend: str
) -> None:
    """Compare gradients with the difference quotient of the reference, in one direction each."""
    rng, step = numpy.random.RandomState(7), 1e-6

    def scalar(changed: str, change: numpy.ndarray) -> float:
        values = {**parameters, **case.inputs}
        values[changed] = values[changed].astype("float64") + change
        split = ({n: values[n] for n in parameters}, {n: values[n] for n in case.inputs})
        outputs = map(numpy.asarray, _reference(case, *split))
        return sum((o * _weights(o)).sum() for o in outputs if o.dtype.kind == "f")

    for name, gradient in gradients.items():
        direction = rng.standard_normal(gradient.shape)
        quotient = (scalar(name, step * direction) - scalar(name, -step * direction)) / (2 * step)
        found = (gradient * direction).sum()
        numpy.testing.assert_allclose(found, quotient, 1e-3, 1e-4, err_msg=f"{backend}: {name}")


def _assert_equal(first: list[Any], second: list[Any]) -> None:
    for one, other in zip(first, second, strict=True):
        numpy.testing.assert_array_equal(one, other)
