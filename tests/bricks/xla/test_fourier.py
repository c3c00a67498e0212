"""Fourier transforms agree with numpy."""

import numpy
import pytest
from aesara import tensor
from aesara.tensor import fft
from aesara.tensor.fourier import Fourier

from bricks import xla

NORMS = [None, "ortho", "no_norm"]


def waves(*shape):
    return [numpy.random.default_rng(sum(shape)).normal(size=shape)]


@pytest.mark.parametrize("norm", NORMS)
def test_a_transform_of_real_arrays_and_its_gradient_are_those_of_numpy(norm, assert_agrees):
    batches = [waves(2, 6), waves(3, 5), waves(1, 1)]

    assert_agrees(lambda x: fft.rfft(x, norm), batches)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("is_odd", [False, True])
def test_the_way_back_and_its_gradient_are_those_of_numpy(norm, is_odd, assert_agrees):
    assert_agrees(lambda x: fft.irfft(x, norm, is_odd), [waves(2, 4, 2), waves(3, 5, 2)])


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 2, 3, 5), (2, 2, 3, 2, 4)])
def test_all_axes_but_the_first_are_transformed(shape, assert_agrees):
    # A gradient over several axes is wrong in Aesara itself, so it is not compared.
    assert_agrees(fft.rfft, [waves(*shape)], gradients=False)
    assert_agrees(fft.irfft, [waves(*shape, 2)], gradients=False)


def test_the_way_there_and_back_changes_nothing():
    x = tensor.dmatrix("x")
    (start,) = waves(3, 8)

    result = xla.function([x], fft.irfft(fft.rfft(x)))(start)

    numpy.testing.assert_allclose(result, start, atol=1e-14)


@pytest.mark.parametrize("length", [3, 6, 9])
def test_a_complex_transform_is_cut_or_padded_to_its_length(length, assert_agrees):
    real, imaginary = waves(6, 4)[0], waves(6, 5)[0][:, :4]

    assert_agrees(
        lambda x: Fourier()(x, length, 0), [[real + 1j * imaginary], [real]][:1], gradients=False
    )
    assert_agrees(lambda x: Fourier()(x, length, 1), [[real]], gradients=False)


def test_a_transform_keeps_single_precision():
    x = tensor.fmatrix("x")

    result = xla.function([x], fft.rfft(x))(numpy.ones((1, 4), "float32"))

    numpy.testing.assert_array_equal(result, numpy.array([[[4, 0], [0, 0], [0, 0]]], "float32"))
    assert result.dtype == "float32"


def test_the_length_of_a_transform_must_be_known():
    x, places = tensor.dmatrix("x"), tensor.lvector("places")

    with pytest.raises(xla.DataDependentShape, match="the length of a Fourier transform must be"):
        xla.function([x, places], Fourier()(x, places[0], 1))(numpy.eye(3), numpy.array([2]))
