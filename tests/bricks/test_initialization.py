"""Schemes of initialization."""

import pickle

import numpy
import pytest
from aesara import config as aesara_config
from numpy.random import RandomState
from numpy.testing import assert_allclose, assert_array_equal

from bricks.initialization import (
    Constant,
    Identity,
    IsotropicGaussian,
    NdarrayInitialization,
    Orthogonal,
    Sparse,
    SparseND,
    Uniform,
)
from bricks.utils import shared_floatx, shared_floatx_zeros

SCHEMES = [
    Constant(2),
    Identity(),
    IsotropicGaussian(),
    Orthogonal(),
    Sparse(2, Constant(1)),
    SparseND((0,), 0.5, IsotropicGaussian()),
    Uniform(width=2),
]


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: type(scheme).__name__)
def test_every_scheme_gives_the_shape_and_dtype_and_only_uses_the_generator(scheme):
    before = numpy.random.get_state()[1].copy()

    first, second = (scheme.generate(RandomState(3), (4, 6)) for _ in range(2))

    assert first.shape == (4, 6)
    assert first.dtype == aesara_config.floatX
    assert_array_equal(first, second)
    assert_array_equal(numpy.random.get_state()[1], before)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: type(scheme).__name__)
def test_every_scheme_pickles_and_shows_its_class(scheme):
    clone = pickle.loads(pickle.dumps(scheme))

    assert_array_equal(
        clone.generate(RandomState(1), (3, 4)), scheme.generate(RandomState(1), (3, 4))
    )
    assert type(scheme).__name__ in repr(scheme)


def test_constant_gives_the_value_or_broadcasts_an_array():
    assert_array_equal(Constant(3).generate(None, (2, 2)), [[3, 3], [3, 3]])
    assert_array_equal(Constant([1, 2]).generate(None, (2, 2)), [[1, 2], [1, 2]])
    with pytest.raises(ValueError, match=r"Constant: .*\(3,\) does not broadcast to \(2, 2\)"):
        Constant([1, 2, 3]).generate(None, (2, 2))


def test_constant_gives_an_array_of_its_own_each_time():
    scheme = Constant([1.0, 2.0])
    scheme.generate(None, (2,))[0] = 9

    assert_array_equal(scheme.generate(None, (2,)), [1, 2])


def test_gaussian_draws_what_numpy_draws():
    expected = RandomState(1).normal(2, 3, size=(5, 4)).astype(aesara_config.floatX)

    assert_array_equal(IsotropicGaussian(std=3, mean=2).generate(RandomState(1), (5, 4)), expected)


def test_uniform_draws_within_the_width_with_the_given_deviation():
    values = Uniform(mean=1, width=2).generate(RandomState(1), (200, 200))
    assert values.min() >= 0
    assert values.max() <= 2
    assert_allclose(values.mean(), 1, atol=0.01)

    values = Uniform(std=0.5).generate(RandomState(1), (200, 200))
    assert_allclose(values.std(), 0.5, atol=0.01)


@pytest.mark.parametrize("arguments", [{}, {"width": 1, "std": 1}])
def test_uniform_wants_one_of_width_and_deviation(arguments):
    with pytest.raises(ValueError, match="Uniform: give one of `width` and `std`"):
        Uniform(**arguments)


def test_identity_has_the_factor_on_its_diagonal():
    assert_array_equal(Identity(2).generate(None, (2, 3)), [[2, 0, 0], [0, 2, 0]])


@pytest.mark.parametrize("shape", [(5, 5), (5, 3), (3, 5)])
def test_orthogonal_matrices_have_orthonormal_short_sides(shape):
    values = Orthogonal(2).generate(RandomState(1), shape).astype("float64")

    product = values @ values.T if shape[0] <= shape[1] else values.T @ values
    assert_allclose(product, 4 * numpy.eye(min(shape)), atol=1e-5)


@pytest.mark.parametrize("scheme", [Identity(), Orthogonal()])
def test_schemes_for_matrices_refuse_other_shapes(scheme):
    with pytest.raises(ValueError, match=r"only matrices can be drawn; got shape \(3,\)"):
        scheme.generate(RandomState(1), (3,))


def test_sparse_sets_as_many_places_of_each_row():
    values = Sparse(2, Constant(5), Constant(1)).generate(RandomState(1), (6, 5))

    assert ((values == 5).sum(axis=1) == 2).all()
    assert ((values == 1).sum(axis=1) == 3).all()
    assert len({tuple(row) for row in values}) > 1


def test_sparse_takes_a_share_of_the_places():
    values = Sparse(0.5, Constant(1)).generate(RandomState(1), (3, 8))

    assert (values.sum(axis=1) == 4).all()


def test_sparse_nd_counts_within_the_units_of_its_axes():
    values = SparseND((0, 2), 3, Constant(1)).generate(RandomState(1), (2, 4, 3, 2))
    assert (values.sum(axis=(1, 3)) == 3).all()

    values = SparseND(1, 2, Constant(1)).generate(RandomState(1), (4, 3))
    assert (values.sum(axis=0) == 2).all()


@pytest.mark.parametrize("num_init", [0, -1, 1.5, 0.0, True, numpy.bool_(True), numpy.nan, "1"])
def test_sparse_refuses_counts_and_shares_that_make_no_sense(num_init):
    with pytest.raises(ValueError, match="`num_init` must be a positive integer or a share"):
        Sparse(num_init, Constant(1))


def test_sparse_refuses_more_places_than_there_are():
    with pytest.raises(ValueError, match="Sparse: `num_init` is 5, but a unit has 3 places"):
        Sparse(5, Constant(1)).generate(RandomState(1), (2, 3))


def test_initialize_sets_a_shared_variable_and_may_change_its_shape():
    variable = shared_floatx(numpy.zeros((2, 2)), shape=(None, None), name="W")

    Constant(3).initialize(variable, RandomState(1))
    assert_array_equal(variable.get_value(), [[3, 3], [3, 3]])
    Constant(3).initialize(variable, RandomState(1), shape=(1, 3))
    assert_array_equal(variable.get_value(), [[3, 3, 3]])


def test_a_scheme_that_gives_another_shape_is_refused():
    class Wrong(NdarrayInitialization):
        def generate(self, rng, shape):
            return numpy.zeros(3)

    with pytest.raises(ValueError, match=r"Wrong: 'W' must get a value of shape \(2, 2\); got.*3"):
        Wrong().initialize(shared_floatx_zeros((2, 2), name="W"), RandomState(1))
