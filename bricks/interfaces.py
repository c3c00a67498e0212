"""What bricks have in common: dimensions, random numbers, schemes of initialization.

**Seeds.** The numbers that a brick draws depend on nothing but the seed above it and its own
place: its seed is a stable hash of the nearest seed given explicitly (to itself or to one of its
ancestors; ``config.default_seed`` if to none) and of the names on the path from there. Bricks
made before, after or beside it change nothing. Children of one parent that share a name are told
apart by their number among those of that name. Top bricks of one name draw the same numbers, which
is noted in the log: name them apart, or give them seeds.
"""

from __future__ import annotations

import hashlib
import logging
import weakref
from typing import Any

import numpy

from bricks.base import Brick, _Brick
from bricks.utils.plain import is_integer

__all__ = [
    "Activation",
    "DimensionPreserving",
    "Feedforward",
    "Initializable",
    "LinearLike",
    "RNGMixin",
    "Random",
    "check_last_dim",
    "derive_seed",
]

logger = logging.getLogger(__name__)

# The top brick of each name that last drew by default, to notice those of one name.
_TOPS: weakref.WeakValueDictionary[str, Brick] = weakref.WeakValueDictionary()


def derive_seed(seed: int, *names: str) -> int:
    """Return a seed that depends on another seed and on names, and on nothing else.

    Parameters
    ----------
    seed : int
        The other seed.
    *names : str
        The names, such as those on a path.

    Returns
    -------
    int
        At least 0 and below 2 ** 31, the same in every process.
    """
    text = "\0".join([str(seed), *names])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 33


def check_last_dim(
    brick: Brick, variable: Any, dim: Any, argument: str = "input_", application: str = "apply"
) -> None:
    """Refuse an input whose last axis is known to have another length than the brick takes.

    Parameters
    ----------
    brick : Brick
        The brick that is applied.
    variable : Variable
        The input.
    dim : int
        The length that its last axis must have.
    argument : str, optional
        Name of the input.
    application : str, optional
        Name of the application.

    Raises
    ------
    ValueError
        If the length is known before run time, and differs.
    """
    shape = getattr(getattr(variable, "type", None), "shape", None)
    if not shape or not isinstance(dim, int | numpy.integer) or shape[-1] in (None, dim):
        return
    raise ValueError(
        f"{brick.path}.{application}: `{argument}` must have {dim} features on its last axis; "
        f"got {variable} of shape {tuple('?' if n is None else n for n in shape)}. "
        "Set the brick's input dimension, or reshape the input first."
    )


class _DocumentedActivation(_Brick):
    """Writes the documentation of activations that have none."""

    def __new__(mcs, name: str, bases: tuple, namespace: dict) -> type:
        namespace.setdefault("__doc__", f"Apply the {name.lower()} function to each element.")
        return super().__new__(mcs, name, bases, namespace)


class Activation(Brick, metaclass=_DocumentedActivation):
    """The base class of bricks that apply a function to each element."""


class Feedforward(Brick):
    """The base class of bricks that have one input and one output, each with a size.

    Attributes
    ----------
    input_dim, output_dim : int
        Sizes of the last axes of input and output; set by subclasses.
    """

    input_dim: Any
    output_dim: Any


class DimensionPreserving(Feedforward):
    """The base class of bricks whose output has as many features as their input.

    Attributes
    ----------
    dim : int
        Size of the last axes of input and output; set by subclasses.
    """

    dim: Any

    @property
    def input_dim(self) -> Any:
        """Features of the input, which are those of the output."""
        return self.dim

    @input_dim.setter
    def input_dim(self, value: int) -> None:
        self.dim = value

    @property
    def output_dim(self) -> Any:
        """Features of the output, which are those of the input."""
        return self.dim

    @output_dim.setter
    def output_dim(self, value: int) -> None:
        self.dim = value


class RNGMixin(Brick):
    """A brick that draws random numbers.

    Parameters
    ----------
    seed : int, optional
        Seed of the brick and, through their paths, of its children; see the module's notes.
    **kwargs : object
        For :class:`bricks.base.Brick`.
    """

    def __init__(self, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._seed: int | None = None
        self._rng: numpy.random.RandomState | None = None
        self._rng_is_given = False
        if seed is not None:
            self.seed = seed

    @property
    def seed(self) -> int:
        """The seed: the one given, or the one derived from the brick's place."""
        if self._seed is not None:
            return self._seed
        return derive_brick_seed(self, "_seed", "initialization")

    @seed.setter
    def seed(self, value: int) -> None:
        if self._rng is not None:
            raise ValueError(
                f"{self.path}: `seed` cannot be set any more, since `rng` has been used. Set it "
                "before the brick is initialized, or assign a new generator to `rng`."
            )
        self._seed = _checked_seed(self, "seed", value)

    @property
    def rng(self) -> numpy.random.RandomState:
        """The generator, made from :attr:`seed` when it is first asked for."""
        if self._rng is None:
            self._rng = numpy.random.RandomState(self.seed)
        return self._rng

    @rng.setter
    def rng(self, value: numpy.random.RandomState) -> None:
        self._rng = value
        self._rng_is_given = value is not None


def _checked_seed(brick: Brick, argument: str, value: Any) -> int:
    if not is_integer(value) or value < 0:
        raise ValueError(f"{brick.path}: `{argument}` must be an integer from 0; got {value!r}.")
    return int(value)


def derive_brick_seed(brick: Brick, attribute: str, purpose: str) -> int:
    """Derive the seed of a brick from the nearest seed that was given, and from its place.

    Parameters
    ----------
    brick : Brick
        The brick.
    attribute : str
        Where a brick keeps a seed that was given.
    purpose : str
        What the numbers are for, so that a brick's parameters and its noise differ.

    Returns
    -------
    int
        The seed.
    """
    from bricks.config import config

    path = brick.get_unique_path()
    names = [purpose, path[0].name, *map(_name_among_siblings, path[:-1], path[1:])]
    for level in range(len(path) - 1, -1, -1):
        given = path[level].__dict__.get(attribute)
        if given is not None:
            # Relative to the brick that has the seed: where that brick stands does not matter.
            return derive_seed(given, purpose, *names[level + 2 :])
    top = path[0]
    if _TOPS.setdefault(top.name, top) is not top:
        logger.warning(
            "Two top bricks are named %r: without seeds they draw the same random numbers. "
            "Name them apart, or give one a seed.",
            top.name,
        )
        _TOPS[top.name] = top
    return derive_seed(config.default_seed, *names)


def _name_among_siblings(parent: Brick, child: Brick) -> str:
    """Return a child's name, with its number if other children before it have the same."""
    namesakes: list[Brick] = []
    for sibling in parent.children:
        if sibling is child:
            break
        if sibling.name == child.name and not any(sibling is other for other in namesakes):
            namesakes.append(sibling)
    return f"{child.name}#{len(namesakes)}" if namesakes else child.name


class Initializable(RNGMixin):
    """A brick whose parameters are drawn by schemes of initialization.

    Parameters
    ----------
    weights_init : NdarrayInitialization, optional
        How weights are drawn.
    biases_init : NdarrayInitialization, optional
        How biases are drawn; a brick that has none hands it on to its children.
    use_bias : bool, optional
        Whether there are biases; the class's own choice by default.
    seed : int, optional
        See :class:`RNGMixin`.
    **kwargs : object
        For :class:`bricks.base.Brick`.

    Attributes
    ----------
    has_biases : bool
        Whether the class knows of biases at all.

    Notes
    -----
    Schemes that are set here are pushed to children that are `Initializable`.
    """

    has_biases = True
    use_bias = True

    def __init__(
        self,
        weights_init: Any = None,
        biases_init: Any = None,
        use_bias: bool | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed=seed, **kwargs)
        self.weights_init = weights_init
        self.biases_init = biases_init
        if not self.has_biases:
            if use_bias:
                raise ValueError(
                    f"{type(self).__name__} (name={self.name!r}) has no biases: leave out "
                    "`use_bias`."
                )
            self.use_bias = False
        if use_bias is not None:
            self.use_bias = use_bias

    def _push_initialization_config(self) -> None:
        for child in self.children:
            if not isinstance(child, Initializable):
                continue
            if self._rng_is_given and child._seed is None and not child._rng_is_given:
                child.rng = self.rng
            if self.weights_init:
                child.weights_init = self.weights_init
            if self.biases_init:
                child.biases_init = self.biases_init


class LinearLike(Initializable):
    """A brick with a matrix of weights and, perhaps, a vector of biases.

    Notes
    -----
    `W` and `b` look among the parameters; override them for other parameterizations.
    """

    @property
    def W(self) -> Any:
        """The weights."""
        return self.parameters[0]

    @property
    def b(self) -> Any:
        """The biases.

        Raises
        ------
        AttributeError
            If the brick has none.
        """
        if not self.use_bias:
            raise AttributeError(f"{self.path} has no biases: use_bias is False.")
        return self.parameters[1]

    def _initialize(self) -> None:
        # Biases first, as it has always been: a given generator draws the same numbers.
        if self.use_bias:
            draw_parameter(self, "biases_init", self.b)
        draw_parameter(self, "weights_init", self.W)


def draw_parameter(brick: Initializable, scheme_name: str, parameter: Any) -> None:
    """Draw the value of a parameter by one of its brick's schemes.

    Parameters
    ----------
    brick : Initializable
        The brick.
    scheme_name : str
        The attribute that holds the scheme, such as ``'weights_init'``.
    parameter : SharedVariable
        The parameter.

    Raises
    ------
    ValueError
        If there is no scheme.
    """
    scheme: Any = getattr(brick, scheme_name, None)
    if not hasattr(scheme, "initialize"):
        raise ValueError(
            f"{brick.path} cannot be initialized: `{scheme_name}` must be a scheme of "
            f"bricks.initialization, to draw {parameter.name!r}; got {scheme!r}. Give it to the "
            "brick, or to a parent that pushes it."
        )
    try:
        scheme.initialize(parameter, brick.rng)
    except ValueError as error:
        raise ValueError(f"{brick.path}.{parameter.name} by `{scheme_name}`: {error}") from error


class Random(Brick):
    """A brick whose applications draw random numbers in the graph.

    Parameters
    ----------
    theano_seed : int, optional
        Seed of the graph's random numbers; see the module's notes.
    **kwargs : object
        For :class:`bricks.base.Brick`.
    """

    def __init__(self, theano_seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._theano_seed: int | None = None
        self._theano_rng: Any = None
        if theano_seed is not None:
            self.theano_seed = theano_seed

    @property
    def theano_seed(self) -> int:
        """The seed: the one given, or the one derived from the brick's place."""
        if self._theano_seed is not None:
            return self._theano_seed
        return derive_brick_seed(self, "_theano_seed", "graph")

    @theano_seed.setter
    def theano_seed(self, value: int) -> None:
        if self._theano_rng is not None:
            raise ValueError(
                f"{self.path}: `theano_seed` cannot be set any more, since `theano_rng` has been "
                "used. Set it before the brick is applied."
            )
        self._theano_seed = _checked_seed(self, "theano_seed", value)

    @property
    def theano_rng(self) -> Any:
        """The random stream of the graph, made when it is first asked for."""
        if self._theano_rng is None:
            from bricks.xla import RandomStream

            self._theano_rng = RandomStream(self.theano_seed, name=self.path)
        return self._theano_rng

    @theano_rng.setter
    def theano_rng(self, value: Any) -> None:
        self._theano_rng = value
