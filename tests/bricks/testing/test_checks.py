"""The contract of bricks notices what is broken. Each case here breaks one check."""

from dataclasses import replace

import numpy
import pytest
from aesara import tensor
from aesara.gradient import disconnected_grad

from bricks import xla
from bricks.annotations import add_annotation
from bricks.base import application
from bricks.initialization import IsotropicGaussian
from bricks.interfaces import Initializable, draw_parameter
from bricks.roles import PERSISTENT, WEIGHT, add_role
from bricks.testing import CHECKS, BrickCase
from bricks.testing.checks import (
    check_it_computes_its_reference,
    check_it_has_a_path,
    check_it_is_restored_by_name,
    check_it_lowers_for_cuda,
    check_it_pickles,
    check_it_refuses_wrong_arguments,
    check_its_gradients,
    check_padding_changes_nothing,
)
from bricks.utils import shared_floatx, shared_floatx_nans

X = numpy.random.RandomState(0).standard_normal((3, 2, 4)).astype("float32")
MASK = numpy.array([[1, 1], [1, 1], [1, 0]], "float32")


class Weigher(Initializable):
    """Weighs features, and averages them over time where a mask says so."""

    has_biases = False

    def _allocate(self):
        self.parameters.append(shared_floatx_nans((4,), name="w"))
        add_role(self.parameters[0], WEIGHT)
        self.offset = shared_floatx(numpy.zeros(4), name="offset")
        add_role(self.offset, PERSISTENT)
        add_annotation(self.offset, self)

    def _initialize(self):
        draw_parameter(self, "weights_init", self.parameters[0])

    @application(inputs=["x", "mask"], outputs=["mean"])
    def apply(self, x, mask):
        if x.type.shape[-1] not in (4, None):
            raise ValueError(f"{self.path}.apply: 4 features, please")
        weights = mask / mask.sum(axis=0, keepdims=True)
        return (self.weigh(x) * weights[:, :, None]).sum(axis=0) + self.offset

    def weigh(self, x):
        return x * self.parameters[0]


class Forgetful(Weigher):
    """Does not say that its offset is to be saved."""

    def _allocate(self):
        super()._allocate()
        self.offset.tag.roles = []


class Unpicklable(Weigher):
    """Holds on to a generator."""

    def _initialize(self):
        super()._initialize()
        self.numbers = (number for number in ())


def reference(parameters, x, mask):
    weights = mask / mask.sum(axis=0)
    return (x * parameters["/weigher.w"] * weights[:, :, None]).sum(axis=0)


CASE = BrickCase(
    "weigher",
    lambda: Weigher(weights_init=IsotropicGaussian(1)),
    {"x": X, "mask": MASK},
    reference,
    wrong_shapes={"x": (3, 2, 5)},
    sequences={"mask": {"x": 0, "mask": 0}},
)


def broken(**methods):
    """The case of a brick that does something else than `Weigher`."""
    brick = type("Weigher", (Weigher,), methods)
    return replace(CASE, build=lambda: brick(weights_init=IsotropicGaussian(1)))


OWN_REFERENCE = replace(CASE, reference=None)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_brick_that_is_its_own_reference_passes(check):
    check(OWN_REFERENCE)


def test_a_wrong_value_is_noticed():
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_it_computes_its_reference(broken(weigh=lambda self, x: 2 * x * self.parameters[0]))


def test_a_shape_that_only_broadcasts_to_the_expected_one_is_noticed():
    case = replace(CASE, reference=lambda p, **inputs: reference(p, **inputs)[None])

    with pytest.raises(AssertionError, match=r"xla: \(2, 4\)"):
        check_it_computes_its_reference(replace(case, smooth=False))


def test_a_wrong_gradient_is_noticed():
    def weigh(self, x):
        return x * disconnected_grad(self.parameters[0])

    with pytest.raises(AssertionError, match="weigher.w"):
        check_its_gradients(broken(weigh=weigh))


def test_padding_that_leaks_into_a_value_is_noticed():
    @application(inputs=["x", "mask"], outputs=["mean"])
    def apply(self, x, mask):
        return (self.weigh(x) * mask[:, :, None]).mean(axis=0)

    with pytest.raises(AssertionError, match="weigher_apply_mean, with padding by mask"):
        check_padding_changes_nothing(broken(apply=apply))


def test_numbers_that_are_not_saved_are_noticed():
    case = replace(CASE, build=lambda: Forgetful(weights_init=IsotropicGaussian(1)))

    with pytest.raises(AssertionError, match="offset does not come back"):
        check_it_is_restored_by_name(case)


def test_a_brick_that_takes_wrong_shapes_is_noticed():
    @application(inputs=["x", "mask"], outputs=["mean"])
    def apply(self, x, mask):
        return self.weigh(x)

    with pytest.raises(AssertionError, match=r"/weigher took 'x' of shape \(3, 2, 5\)"):
        check_it_refuses_wrong_arguments(broken(apply=apply))


def test_a_brick_that_cannot_be_pickled_is_noticed():
    case = replace(CASE, build=lambda: Unpicklable(weights_init=IsotropicGaussian(1)))

    with pytest.raises(TypeError, match="cannot pickle 'generator'"):
        check_it_pickles(case)


def test_a_representation_without_the_name_is_noticed():
    with pytest.raises(AssertionError, match="anonymous does not say its name"):
        check_it_has_a_path(broken(__repr__=lambda self: "anonymous"))


def test_an_operation_that_cannot_be_lowered_is_noticed():
    @application(inputs=["x", "mask"], outputs=["places"])
    def apply(self, x, mask):
        return tensor.nonzero(x)[0]

    case = replace(
        broken(apply=apply), smooth=False, reference=lambda _, x, mask: numpy.nonzero(x)[0]
    )
    with pytest.raises(xla.DataDependentShape):
        check_it_lowers_for_cuda(case)
