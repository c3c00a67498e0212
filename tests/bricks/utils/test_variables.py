"""Helpers for symbolic and shared variables."""

import jax
import numpy
import pytest
from aesara import config as aesara_config
from aesara import tensor
from numpy.testing import assert_array_equal

from bricks import xla
from bricks.utils import (
    check_aesara_variable,
    check_theano_variable,
    is_graph_input,
    is_shared_variable,
    print_shape,
    print_sum,
    put_hook,
    shared_floatx,
    shared_floatx_nans,
    shared_floatx_zeros,
    shared_floatx_zeros_matching,
    shared_like,
)


def test_shared_floatx_casts_to_the_float_type_or_the_given_one():
    assert shared_floatx([1, 2], name="a").dtype == aesara_config.floatX
    assert shared_floatx([1, 2], name="a").name == "a"
    assert shared_floatx([1, 2], dtype="float64").dtype == "float64"


def test_shared_zeros_and_nans_have_the_shape():
    assert_array_equal(shared_floatx_zeros((2, 3)).get_value(), numpy.zeros((2, 3)))
    assert numpy.isnan(shared_floatx_nans(3).get_value()).all()


def test_zeros_that_match_have_shape_dtype_and_static_shape():
    other = shared_floatx(numpy.ones((2, 1)), dtype="float64", shape=(None, 1))

    matching = shared_floatx_zeros_matching(other, name="zeros")

    assert_array_equal(matching.get_value(), [[0], [0]])
    assert matching.type == other.type
    assert matching.name == "zeros"
    with pytest.raises(ValueError, match="expected a shared variable"):
        shared_floatx_zeros_matching(tensor.matrix())


def test_shared_like_can_hold_the_values_of_the_variable():
    variable = tensor.tensor("int32", shape=(None, 1, 4))

    shared = shared_like(variable, name="like")

    assert shared.type == variable.type
    shared.set_value(numpy.ones((7, 1, 4), dtype="int32"))
    assert shared.get_value().shape == (7, 1, 4)


def test_inputs_shared_variables_and_the_rest_are_told_apart():
    x, shared, constant = tensor.scalar(), shared_floatx(1), tensor.constant(1)

    assert [is_graph_input(v) for v in (x, shared, constant, x + 1, 3)] == [True] + 4 * [False]
    assert [is_shared_variable(v) for v in (x, shared, constant, 3)] == [False, True, False, False]


def test_check_variable_says_what_was_expected():
    check_aesara_variable(tensor.matrix(), 2, "float")
    check_aesara_variable(tensor.lmatrix(), None, None)
    with pytest.raises(ValueError, match="expected 3 dimensions, got 2"):
        check_aesara_variable(tensor.matrix(), 3, "float")
    with pytest.raises(ValueError, match="expected dtype int.*, got float"):
        check_theano_variable(tensor.matrix(), 2, "int")


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_hooks_see_the_value_when_it_is_computed(backend, capsys):
    x, seen = tensor.matrix("x"), []
    hooked = put_hook(x, lambda value, more: seen.append((value.shape, more)), "more")

    function = xla.function([x], [hooked, print_sum(x), print_shape(x, "s ")], backend=backend)
    function(numpy.ones((2, 3), dtype=x.dtype))
    jax.effects_barrier()

    assert seen == [((2, 3), "more")]
    printed = capsys.readouterr().out
    assert "x: 6.0" in printed
    assert "s (2, 3)" in printed
