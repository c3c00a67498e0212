"""What the lists of the contract are made of."""

from collections.abc import Callable
from typing import NamedTuple

from fuel_data.streams import AbstractDataStream


class StreamCase(NamedTuple):
    """How to build a stream, and what may be asked of it.

    Attributes
    ----------
    name : str
        What is special about it.
    build : function from int to AbstractDataStream
        Builds it over about so many examples.
    shares_rng : bool
        Whether it draws from a generator that was handed in, so that its iterators must be used one
        after the other.
    """

    name: str
    build: Callable[[int], AbstractDataStream]
    shares_rng: bool = False


class TransformerCase(NamedTuple):
    """How to put a transformer over a stream.

    Attributes
    ----------
    name : str
        What it does.
    over : function from AbstractDataStream to AbstractDataStream
        Puts it over a stream.
    kind : {'any', 'examples', 'batches'}
        What the stream must give.
    once : bool
        Whether it makes epochs longer, so that compositions have it once at most.
    reads_twice : bool
        Whether it reads the stream by two ways, which must not share a generator.
    draws : bool
        Whether it draws which items there are, or what is in them, so that two ways through it
        differ.
    in_step : bool
        Whether it reads two ways side by side, which must not differ in their numbers of items.
    """

    name: str
    over: Callable[[AbstractDataStream], AbstractDataStream]
    kind: str = "any"
    once: bool = False
    reads_twice: bool = False
    draws: bool = False
    in_step: bool = False
