"""Example inputs of cases, and what several references are made of, all by numpy."""

from typing import Any

import numpy

from bricks.initialization import IsotropicGaussian

__all__ = [
    "INIT",
    "WEIGHTS",
    "cross_entropy",
    "draw_floats",
    "draw_probabilities",
    "linear",
    "softmax",
]

#: Schemes for bricks that have weights and biases.
INIT: dict[str, Any] = {
    "weights_init": IsotropicGaussian(0.5),
    "biases_init": IsotropicGaussian(0.5),
}
#: A scheme for bricks that have weights only.
WEIGHTS: dict[str, Any] = {"weights_init": IsotropicGaussian(0.5)}


def draw_floats(*shape: int, seed: int = 0) -> numpy.ndarray:
    """Draw numbers from the normal distribution.

    Parameters
    ----------
    *shape : int
        The lengths of the axes.
    seed : int
        Other seeds give other numbers.

    Returns
    -------
    array of float32 of that shape
    """
    return numpy.random.RandomState(seed).standard_normal(shape).astype("float32")


def draw_probabilities(*shape: int, seed: int = 0) -> numpy.ndarray:
    """Draw distributions over the last axis, with no probability near 0.

    Parameters
    ----------
    *shape : int
        The lengths of the axes.
    seed : int
        Other seeds give other numbers.

    Returns
    -------
    array of float32 of that shape
        With the sum 1 over the last axis.
    """
    numbers = numpy.random.RandomState(seed).uniform(0.1, 1.0, shape)
    return (numbers / numbers.sum(axis=-1, keepdims=True)).astype("float32")


def softmax(x: numpy.ndarray) -> numpy.ndarray:
    """Compute the softmax over the last axis.

    Parameters
    ----------
    x : array of shape (..., class)

    Returns
    -------
    array of shape (..., class)
    """
    exponentials = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def cross_entropy(y: numpy.ndarray, p: numpy.ndarray) -> numpy.ndarray:
    """Compute the cross-entropy of each example, over the last axis.

    Parameters
    ----------
    y : array of shape (..., batch), (..., batch, 1) or (..., batch, class)
        Integers, the classes; or weights of the classes.
    p : array of shape (..., batch, class)
        Probabilities of the classes.

    Returns
    -------
    array of shape (..., batch)
        In nats.
    """
    y = y[..., 0] if y.shape[-1:] == (1,) else y
    if y.ndim == p.ndim:
        return -(y * numpy.log(p)).sum(axis=-1)
    return -numpy.log(numpy.take_along_axis(p, y[..., None].astype(int), axis=-1)[..., 0])


def linear(parameters: Any, path: str, x: numpy.ndarray) -> numpy.ndarray:
    """Compute what a `Linear` at a path computes.

    Parameters
    ----------
    parameters : mapping of str to array
        By path, as references get them.
    path : str
        Of the brick: ``'/mlp/linear_0'``. It may have no bias.
    x : array of shape (..., input_dim)

    Returns
    -------
    array of shape (..., output_dim)
    """
    return x @ parameters[path + ".W"] + parameters.get(path + ".b", 0)
