"""Transformers that apply a function: `Mapping`, `Filter`, and `SortMapping` to be mapped."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from fuel_data.abstract import check_label_names
from fuel_data.iterator import Stage
from fuel_data.randomness import Rng, rngs_of
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import Transformer, call
from fuel_data.transformers.ragged import count_examples
from fuel_data.utils.arguments import seed_number, truth_value
from fuel_data.utils.names import nearest_name


class Mapping(Transformer):
    """Apply a function to each example or batch.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    mapping : function
        From tuple to tuple, or from dict to dict. What it gives depends on its argument only, or on
        the generator that it is given, or on generators of numpy that it holds: those are saved.
    add_sources : sequence of str, optional
        Names of what the function gives, which is then appended. By default it takes the place of
        what the function was given.
    mapping_accepts : {list, dict}
        What the function is given: a tuple for `list`, a dict by source for `dict`.
    random : bool
        Call ``mapping(data, rng)`` with a new generator for each item.
    seed : int, optional
        Seed of these generators, ``config.default_seed`` by default.
    **kwargs
        See `Transformer`. Pass `axis_labels` of the sources whose axes the function changes or that
        are added; added ones have none otherwise.

    Raises
    ------
    ValueError
        If the function gives another number of items than there are sources.

    Examples
    --------
    >>> from fuel_data.datasets import IndexableDataset
    >>> from fuel_data.schemes import SequentialScheme
    >>> from fuel_data.streams import DataStream
    >>> dataset = IndexableDataset({"x": numpy.arange(4)})
    >>> stream = DataStream(dataset, iteration_scheme=SequentialScheme(4, batch_size=2))
    >>> list(Mapping(stream, lambda data: (10 * data[0],)).get_epoch_iterator())
    [(array([ 0, 10]),), (array([20, 30]),)]

    With random numbers, each epoch has its own, and the same ones whenever it is read:

    >>> def shake(data, rng):
    ...     (x,) = data
    ...     return (x + rng.uniform(-0.5, 0.5, x.shape),)
    >>> shaken = Mapping(stream, shake, random=True, seed=1)
    >>> first, second, again = (list(shaken.get_epoch_iterator(epoch=n)) for n in (0, 1, 0))
    >>> numpy.array_equal(first, again), numpy.array_equal(first, second)
    (True, False)
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        mapping: Callable,
        add_sources: Sequence[str] | None = None,
        mapping_accepts: type = list,
        *,
        random: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        _check_function("Mapping", "mapping", mapping)
        if mapping_accepts not in (list, dict):
            raise ValueError(
                f"Mapping: `mapping_accepts` must be list or dict; got {mapping_accepts!r}."
            )
        if seed is not None and not random:
            raise ValueError("Mapping: `seed` has no effect without random=True.")
        self.mapping = mapping
        self.add_sources = self._check_added(data_stream, add_sources)
        self.mapping_accepts = mapping_accepts
        self.random = random
        self.seed = seed_number("Mapping", seed) if random else None
        given = kwargs.pop("axis_labels", None)
        super().__init__(data_stream, **kwargs)
        check_label_names(self, given or {})
        if given is not None or self.axis_labels is not None:
            added = dict.fromkeys(self.add_sources)
            self.axis_labels = {**(self.axis_labels or {}), **added, **(given or {})}

    @staticmethod
    def _check_added(
        data_stream: AbstractDataStream, add_sources: Sequence[str] | None
    ) -> tuple[str, ...]:
        if isinstance(add_sources, str):
            raise ValueError(
                f"Mapping: `add_sources` must be a sequence of names; got the text "
                f"{add_sources!r}. Write ({add_sources!r},)."
            )
        added = tuple(add_sources or ())
        for source in added:
            if source in data_stream.sources:
                raise ValueError(
                    f"Mapping: `add_sources` names {source!r}, which the stream below has already."
                )
            if added.count(source) > 1:
                raise ValueError(
                    f"Mapping: `add_sources` names {source!r} more than once: {added}."
                )
        return added

    @property  # type: ignore[misc]
    def sources(self) -> tuple[str, ...]:
        """Names of the items of each example or batch."""
        return self.data_stream.sources + self.add_sources

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has; None if that is not known."""
        return self.data_stream.num_batches

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has; None if that is not known."""
        return self.data_stream.num_examples if self.produces_examples else None

    def _refuse_misfit(self) -> None:
        self._refuse_change()

    def user_rngs(self) -> dict[str, Rng]:
        """Give the generators that the function draws from."""
        return {**super().user_rngs(), **rngs_of(self.mapping)}

    def start(self, stage: Stage) -> None:
        """Ask for the sources below, once; see `AbstractDataStream.start`."""
        super().start(stage)
        stage.state = self.data_stream.sources

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read one item and map it; see `AbstractDataStream.read`."""
        data = next(stage.child)
        given = stage.state
        by_name = self.mapping_accepts is dict
        argument = dict(zip(given, data, strict=True)) if by_name else data
        if self.seed is None:
            image = call(self, self.mapping, argument)
        else:
            image = call(self, self.mapping, argument, stage.rng(self.seed))
        expected = self.add_sources or given
        if type(image) is not tuple or len(image) != len(expected):
            image = self._check_image(image, expected)
        return (*data, *image) if self.add_sources else image

    @staticmethod
    def _check_image(image: Any, expected: tuple[str, ...]) -> tuple:
        if isinstance(image, dict):
            for source in image:
                if source not in expected:
                    raise ValueError(
                        f"Mapping: the function gave {source!r}, which is not among the sources "
                        f"{expected}.{nearest_name(source, expected)}"
                    )
            missing = [source for source in expected if source not in image]
            if missing:
                raise ValueError(f"Mapping: the function gave no {missing} but {list(image)}.")
            return tuple(image[source] for source in expected)
        if not isinstance(image, (tuple, list)) or len(image) != len(expected):
            found = f"{len(image)} items" if isinstance(image, (tuple, list)) else type(image)
            raise ValueError(
                f"Mapping: the function must give a tuple with one item for each of {expected}; "
                f"got {found}."
            )
        return tuple(image)


class Filter(Transformer):
    """Leave out examples, or whole batches, that a function does not want.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    predicate : function from tuple to bool
        Whether an example, or a batch, is kept.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        When an item is read, if the function answers neither a bool nor a whole number, nor an
        array of just one of these: None, a list, one answer for each example of a batch.
    """

    def __init__(
        self, data_stream: AbstractDataStream, predicate: Callable[[tuple], bool], **kwargs: Any
    ) -> None:
        _check_function("Filter", "predicate", predicate)
        self.predicate = predicate
        super().__init__(data_stream, **kwargs)

    def _refuse_misfit(self) -> None:
        self._refuse_change()

    def user_rngs(self) -> dict[str, Rng]:
        """Give the generators that the function draws from."""
        return {**super().user_rngs(), **rngs_of(self.predicate)}

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read until an item is wanted; see `AbstractDataStream.read`."""
        way_out = "" if self.produces_examples else " To choose examples, put Unpack below."
        for data in stage.child:
            answer = call(self, self.predicate, data)
            if truth_value("Filter", "predicate", answer, way_out):
                return data
        raise StopIteration


def _check_function(who: str, argument: str, value: Any) -> None:
    if not callable(value):
        raise ValueError(f"{who}: `{argument}` must be a function; got {value!r}.")


class SortMapping:
    """A function for `Mapping` that sorts the examples of each batch.

    Parameters
    ----------
    key : function
        From one example, a tuple of its sources, to what is compared.
    reverse : bool
        Begin with the greatest.

    Examples
    --------
    >>> batch = (numpy.array([3, 1, 2]), ["c", "a", "b"])
    >>> SortMapping(key=lambda example: example[0])(batch)
    (array([1, 2, 3]), ['a', 'b', 'c'])
    """

    def __init__(self, key: Callable[[tuple], Any], reverse: bool = False) -> None:
        _check_function("SortMapping", "key", key)
        self.key = key
        self.reverse = reverse

    def __repr__(self) -> str:
        name = getattr(self.key, "__qualname__", repr(self.key))
        return f"SortMapping({name}{', reverse=True' if self.reverse else ''})"

    def __call__(self, batch: tuple) -> tuple:
        """Sort a batch.

        Parameters
        ----------
        batch : tuple
            One array or list for each source, all of one length.

        Returns
        -------
        tuple
            The same examples in order; equal ones stay in the order in which they were.
        """
        way_out = "Put Batch below, or sort with a function that leaves this source as it is."
        counts = [count_examples("SortMapping", "each source", item, way_out) for item in batch]
        if len(set(counts)) > 1:
            raise ValueError(
                "SortMapping: all sources of a batch must have the same number of examples; got "
                f"{counts}."
            )
        examples = list(zip(*batch, strict=True))
        order = sorted(
            range(len(examples)), key=lambda i: self.key(examples[i]), reverse=self.reverse
        )
        return tuple(_take(source, order) for source in batch)


def _take(source: Any, order: list[int]) -> Any:
    if isinstance(source, numpy.ndarray):
        return source[order]
    return type(source)([source[index] for index in order])
