"""How a transformer is written.

A transformer is a stream over another stream. Most are one small method:

=============================  ====================================================================
base                           what you write
=============================  ====================================================================
Transformer                    ``transform_example(example)`` and ``transform_batch(batch)``
AgnosticTransformer            ``transform_any(data)``, where it makes no difference
SourcewiseTransformer          ``transform_source_example(example, source)`` and
                               ``transform_source_batch(batch, source)``, for each source
AgnosticSourcewiseTransformer  ``transform_any_source(data, source)``
=============================  ====================================================================

>>> import numpy
>>> from fuel_data.datasets import IndexableDataset
>>> from fuel_data.schemes import SequentialScheme
>>> from fuel_data.streams import DataStream
>>> class Double(AgnosticSourcewiseTransformer):
...     def transform_any_source(self, data, source):
...         return data * 2
>>> stream = DataStream(IndexableDataset({"x": numpy.arange(5)}),
...                     iteration_scheme=SequentialScheme(5, batch_size=2))
>>> [x.tolist() for x, in Double(stream, produces_examples=False).get_epoch_iterator()]
[[0, 2], [4, 6], [8]]

One that reads in another rhythm than it gives, or remembers something, overrides `read`. What it
remembers belongs to the epoch, not to the transformer: it is kept in the `Stage` that `read` is
handed. ``next(stage.child)`` reads from below; what is put in ``stage.held`` is saved with the
position, so it must be plain data (see `fuel_data.state`) and should be small. ``StopIteration``
ends the epoch.

>>> class Difference(Transformer):
...     '''Give the difference of each batch's sum to the sum of the one before.'''
...     def start(self, stage):
...         stage.held["last"] = 0
...     def read(self, stage, request):
...         x, = next(stage.child)
...         last, stage.held["last"] = stage.held["last"], int(x.sum())
...         return (stage.held["last"] - last,)
>>> iterator = Difference(stream).get_epoch_iterator()
>>> next(iterator), next(iterator)
((1,), (4,))
>>> state = iterator.get_state()
>>> state["position"]
{'index': 2, 'held': {'last': 5}, 'child': {'index': 2, 'requests': 2}}
>>> again = Difference(stream).get_epoch_iterator()
>>> again.set_state(state)
>>> next(again) == next(iterator) == (-1,)
True

A big buffer is better saved as the place from which it can be read again; `LeftoverTransformer`
does that for a batch of which a part was given. What is random draws from ``stage.rng(seed)``, a
new generator for each item, and needs no memory at all.

``fuel_data.testing`` checks that a transformer resumes at every step.

A transformer written for Fuel, with ``get_data(request)`` and ``next(self.child_epoch_iterator)``,
works too; see `fuel_data.fuels_way`.
"""

import inspect
import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fuel_data.abstract import check_is_stream, check_label_names
from fuel_data.axes import BATCH, AxisLabels, labels_of, of_sources
from fuel_data.exceptions import AxisLabelsMismatchError, KindMismatchError
from fuel_data.fuels_way import is_ours
from fuel_data.iterator import Stage
from fuel_data.schemes import IterationScheme
from fuel_data.streams import AbstractDataStream
from fuel_data.utils.names import nearest_name

logger = logging.getLogger(__name__)


class Transformer(AbstractDataStream):
    """Base of all transformers.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    produces_examples : bool, optional
        Whether this gives single examples; as the stream below by default.
    iteration_scheme : IterationScheme, optional
        What the transformer itself is asked for.
    axis_labels : dict from source to tuple of str or None, optional
        Names of the axes, by default those of the stream below.
    metadata : dict of str to dict, optional
        Open information on each source, by default that of the stream below.
    **unknown
        Refused.

    Raises
    ------
    ValueError
        If the stream below gives examples but only batches can be transformed, or the other way.
    TypeError
        If a keyword is not known.
    """

    # Whether an `iteration_scheme` tells it what to give, where it is a class of the library.
    _takes_requests = False

    def __init__(
        self,
        data_stream: AbstractDataStream,
        produces_examples: bool | None = None,
        iteration_scheme: IterationScheme | None = None,
        axis_labels: AxisLabels | None = None,
        *,
        metadata: Mapping[str, dict[str, Any]] | None = None,
        **unknown: Any,
    ) -> None:
        self._refuse_unknown(unknown)
        check_is_stream(type(self).__name__, "data_stream", data_stream)
        if iteration_scheme is not None and self._is_ours and not self._takes_requests:
            raise ValueError(
                f"{type(self).__name__}: takes no `iteration_scheme`; got {iteration_scheme!r}. "
                "Leave it out, or give it to Batch, or to the stream at the bottom."
            )
        self.data_stream = data_stream
        if axis_labels is None:
            axis_labels = self._keep_known(labels_of(data_stream))
        elif self._is_ours:
            # The sources of a user's class may be set later.
            check_label_names(self, axis_labels)
        if metadata is None:
            known = getattr(data_stream, "metadata", None) or {}
            metadata = self._keep_known(of_sources(known, data_stream.sources))
        super().__init__(iteration_scheme, axis_labels, metadata=metadata)
        if iteration_scheme is None:
            below = data_stream.produces_examples
            self.produces_examples = below if produces_examples is None else produces_examples
        elif produces_examples not in (None, iteration_scheme.requests_examples):
            raise ValueError(
                f"{type(self).__name__}: `produces_examples` is {produces_examples}, but the "
                f"iteration scheme {iteration_scheme!r} says otherwise. Leave it out."
            )
        self._refuse_misfit()

    def _refuse_unknown(self, unknown: Mapping[str, Any]) -> None:
        if unknown:
            known: set[str] = set()
            for class_ in type(self).__mro__:
                if "__init__" in vars(class_):
                    known.update(inspect.signature(vars(class_)["__init__"]).parameters)
            name = next(iter(unknown))
            known -= {"self", "args", "kwargs", "unknown"}
            raise TypeError(
                f"{type(self).__name__}: unexpected argument {name!r}.{nearest_name(name, known)}"
            )

    def _keep_known(self, by_source: Mapping[str, Any] | None) -> Any:
        return None if by_source is None else dict(by_source)

    @property
    def _is_ours(self) -> bool:
        return is_ours(type(self))

    @property
    def _gives_one_for_one(self) -> bool:
        cls = type(self)
        return cls.read is Transformer.read and cls.get_data is Transformer.get_data

    def _refuse_misfit(self) -> None:
        if not self._gives_one_for_one:
            return
        self._refuse_change()
        names = {True: "examples", False: "batches"}
        method = "transform_example" if self.produces_examples else "transform_batch"
        if getattr(type(self), method) is getattr(Transformer, method):
            raise KindMismatchError(
                f"{type(self).__name__}: the stream below gives {names[self.produces_examples]}, "
                f"but `{method}` is not defined. Define it, or put "
                f"{'Batch' if self.produces_examples else 'Unpack'} between them."
            )

    def _refuse_change(self) -> None:
        """Refuse to give batches over examples, or examples over batches."""
        names = {True: "examples", False: "batches"}
        if self.produces_examples != self.data_stream.produces_examples:
            raise KindMismatchError(
                f"{type(self).__name__}: the stream below gives "
                f"{names[not self.produces_examples]}, but this should give "
                f"{names[self.produces_examples]}. Put Batch or Unpack between them, or override "
                "`read`."
            )

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the items of each example or batch."""
        return self._sources if "_sources" in self.__dict__ else self.data_stream.sources

    @sources.setter
    def sources(self, sources: Sequence[str]) -> None:
        self._sources = tuple(sources)

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has, examples or batches; None if that is not known."""
        return self.data_stream.num_batches if self._gives_one_for_one else None

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has, in batches or not; None if that is not known."""
        return self.num_batches if self.produces_examples else None

    @property
    def _is_endless(self) -> bool:
        # A user's class may end when it likes, a transformer or a scheme.
        scheme = self.iteration_scheme
        ends = scheme is not None and (scheme.num_requests is not None or not is_ours(type(scheme)))
        return self._is_ours and not ends and getattr(self.data_stream, "_is_endless", False)

    def _children(self) -> Sequence[Any]:
        return (self.data_stream,)

    def get_data(self, request: Any = None) -> tuple:
        """Read one item from within a subclass that is written in Fuel's way.

        Parameters
        ----------
        request : object, optional
            From the transformer's own iteration scheme.

        Returns
        -------
        tuple

        Raises
        ------
        ValueError
            If no epoch is open.
        """
        stage = self.__dict__.get("_stage")
        if stage is None:
            raise ValueError(
                f"{type(self).__name__}.get_data: no epoch is open. Read "
                "next(stream.get_epoch_iterator())."
            )
        return self.read(stage, request)

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read one item from below and transform it; see `AbstractDataStream.read`."""
        if request is not None:
            raise ValueError(
                f"{type(self).__name__}: takes no requests; got {request!r}. Leave "
                "`iteration_scheme` out."
            )
        data = next(stage.child)
        try:
            transform = self.transform_example if self.produces_examples else self.transform_batch
            transformed = transform(data)
        except StopIteration as error:
            raise _end_in_function(self, error) from error
        return transformed if type(transformed) is tuple else tuple(transformed)

    def skip(self, stage: Stage, count: int) -> int:
        """Pass over items, below if that makes no difference; see `AbstractDataStream.skip`."""
        if not (self._is_ours and self._gives_one_for_one) or stage.rngs:
            return super().skip(stage, count)
        passed = stage.child.skip(count)
        stage.index += passed
        return passed

    def transform_example(self, example: tuple) -> tuple:
        """Transform one example.

        Parameters
        ----------
        example : tuple
            One item for each source of the stream below.

        Returns
        -------
        tuple
            One item for each source.
        """
        raise NotImplementedError(f"{type(self).__name__}: does not transform examples.")

    def transform_batch(self, batch: tuple) -> tuple:
        """Transform one batch.

        Parameters
        ----------
        batch : tuple
            One item for each source of the stream below.

        Returns
        -------
        tuple
            One item for each source.
        """
        raise NotImplementedError(f"{type(self).__name__}: does not transform batches.")


def _end_in_function(stream: AbstractDataStream, error: StopIteration) -> RuntimeError:
    # Passed on as it is, it would look like the end of the epoch and cut it short in silence.
    return RuntimeError(
        f"{type(stream).__name__}: the function that it applies raised StopIteration ({error})."
    )


def call(stream: AbstractDataStream, function: Callable, *arguments: Any) -> Any:
    """Call a user's function so that a StopIteration in it cannot end the epoch.

    Parameters
    ----------
    stream : AbstractDataStream
        Who calls, for the error.
    function : function
        What is called.
    *arguments
        Its arguments.

    Returns
    -------
    object
        What it gives.

    Raises
    ------
    RuntimeError
        If it raises StopIteration.
    """
    try:
        return function(*arguments)
    except StopIteration as error:
        raise _end_in_function(stream, error) from error


class AgnosticTransformer(Transformer):
    """Base of transformers that treat examples and batches alike; see `Transformer`."""

    @abstractmethod
    def transform_any(self, data: tuple) -> tuple:
        """Transform one example or batch.

        Parameters
        ----------
        data : tuple
            One item for each source of the stream below.

        Returns
        -------
        tuple
            One item for each source.
        """

    def transform_example(self, example: tuple) -> tuple:
        """Transform one example; see `Transformer.transform_example`."""
        return self.transform_any(example)

    def transform_batch(self, batch: tuple) -> tuple:
        """Transform one batch; see `Transformer.transform_batch`."""
        return self.transform_any(batch)


class SourcewiseTransformer(Transformer):
    """Base of transformers that treat each source by itself.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    produces_examples : bool, optional
        Whether this gives single examples; as the stream below by default.
    which_sources : sequence of str, optional
        The sources to transform, all by default. The others pass as they are.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If `which_sources` names a source that the stream below does not have.
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        produces_examples: bool | None = None,
        which_sources: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        check_is_stream(type(self).__name__, "data_stream", data_stream)
        if which_sources is None:
            which_sources = data_stream.sources
        else:
            check_sources(type(self).__name__, "which_sources", which_sources, data_stream.sources)
        self.which_sources = tuple(which_sources)
        super().__init__(data_stream, produces_examples, **kwargs)

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has, in batches or not; None if that is not known."""
        # A user's class may change the number of examples in a batch.
        return self.data_stream.num_examples if self._is_ours else super().num_examples

    def _transform_sources(self, data: tuple, transform: Callable[[Any, str], Any]) -> tuple:
        return tuple(
            transform(item, source) if source in self.which_sources else item
            for source, item in zip(self.data_stream.sources, data, strict=True)
        )

    def transform_example(self, example: tuple) -> tuple:
        """Transform one example; see `Transformer.transform_example`."""
        return self._transform_sources(example, self.transform_source_example)

    def transform_batch(self, batch: tuple) -> tuple:
        """Transform one batch; see `Transformer.transform_batch`."""
        return self._transform_sources(batch, self.transform_source_batch)

    def transform_source_example(self, source_example: Any, source_name: str) -> Any:
        """Transform one source of an example.

        Parameters
        ----------
        source_example : object
            The item.
        source_name : str
            Name of the source.

        Returns
        -------
        object
        """
        raise NotImplementedError(f"{type(self).__name__}: does not transform examples.")

    def transform_source_batch(self, source_batch: Any, source_name: str) -> Any:
        """Transform one source of a batch.

        Parameters
        ----------
        source_batch : object
            The item.
        source_name : str
            Name of the source.

        Returns
        -------
        object
        """
        raise NotImplementedError(f"{type(self).__name__}: does not transform batches.")

    def _refuse_misfit(self) -> None:
        super()._refuse_misfit()
        kind = "example" if self.produces_examples else "batch"
        if getattr(type(self), f"transform_{kind}") is not getattr(
            SourcewiseTransformer, f"transform_{kind}"
        ):
            return
        method = f"transform_source_{kind}"
        if getattr(type(self), method) is getattr(SourcewiseTransformer, method):
            raise KindMismatchError(
                f"{type(self).__name__}: the stream below gives single items of the kind {kind}, "
                f"but `{method}` is not defined. Define it, or put Batch or Unpack between them."
            )


class AgnosticSourcewiseTransformer(SourcewiseTransformer):
    """Base of sourcewise transformers that treat examples and batches alike.

    Its parameters are those of `SourcewiseTransformer`.
    """

    @abstractmethod
    def transform_any_source(self, source_data: Any, source_name: str) -> Any:
        """Transform one source of an example or batch.

        Parameters
        ----------
        source_data : object
            The item.
        source_name : str
            Name of the source.

        Returns
        -------
        object
        """

    def transform_source_example(self, source_example: Any, source_name: str) -> Any:
        """Transform one source; see `SourcewiseTransformer.transform_source_example`."""
        return self.transform_any_source(source_example, source_name)

    def transform_source_batch(self, source_batch: Any, source_name: str) -> Any:
        """Transform one source; see `SourcewiseTransformer.transform_source_batch`."""
        return self.transform_any_source(source_batch, source_name)


class ExpectsAxisLabels:
    """Mixin of transformers that need certain axes."""

    def verify_axis_labels(
        self,
        expected: Sequence[str],
        actual: Sequence[str] | None,
        source_name: str,
    ) -> None:
        """Check the axes of a source, once.

        Parameters
        ----------
        expected : sequence of str
            The axes that are needed.
        actual : sequence of str or None
            The axes that there are. If they are not known, the log says so.
        source_name : str
            Name of the source.

        Raises
        ------
        AxisLabelsMismatchError
            If they differ.
        """
        checked = self.__dict__.setdefault("_checked_sources", set())
        if source_name in checked:
            return
        checked.add(source_name)
        if actual is None:
            logger.warning(
                "%s: the axes of %r are not labelled; %s are assumed.",
                type(self).__name__,
                source_name,
                tuple(expected),
            )
        elif tuple(actual) != tuple(expected):
            raise AxisLabelsMismatchError(
                f"{type(self).__name__}: the source {source_name!r} must have the axes "
                f"{tuple(expected)}; got {tuple(actual)}. Transpose it, or correct the labels with "
                "the `axis_labels` of its stream."
            )


def as_streams(who: str, streams: Any) -> tuple[AbstractDataStream, ...]:
    """Check the streams that one is to read from.

    Parameters
    ----------
    who : str
        Who is to read them, for the error.
    streams : sequence of AbstractDataStream
        What the user handed in.

    Returns
    -------
    tuple of AbstractDataStream

    Raises
    ------
    ValueError
        If there is none.
    TypeError
        If it is one stream, or has something else in it.
    """
    if hasattr(streams, "get_epoch_iterator"):
        raise TypeError(f"{who}: `data_streams` must be a sequence of streams; got {streams!r}.")
    found = tuple(streams)
    if not found:
        raise ValueError(f"{who}: `data_streams` must have at least one stream.")
    for number, stream in enumerate(found):
        check_is_stream(who, f"data_streams[{number}]", stream)
    return found


def check_sources(who: str, argument: str, asked: Iterable[str], known: Iterable[str]) -> None:
    """Check that all sources that are asked for are there.

    Parameters
    ----------
    who : str
        The transformer, for the error.
    argument : str
        The argument, for the error.
    asked : iterable of str
        Names asked for.
    known : iterable of str
        Names there are.

    Raises
    ------
    ValueError
        If one is not there, or `asked` is one text.
    """
    if isinstance(asked, str):
        raise ValueError(
            f"{who}: `{argument}` must be a sequence of names; got the text {asked!r}. Write "
            f"({asked!r},)."
        )
    known = tuple(known)
    for source in asked:
        if source not in known:
            raise ValueError(
                f"{who}: `{argument}` names {source!r}, which the stream below does not have."
                f"{nearest_name(source, known)}"
            )


def check_examples_first(
    who: str, stream: AbstractDataStream, sources: Sequence[str] | None = None
) -> None:
    """Refuse batches whose examples are not on the first axis, as far as the labels say.

    Parameters
    ----------
    who : str
        The transformer, for the error.
    stream : AbstractDataStream
        The stream below, of batches.
    sources : sequence of str, optional
        The sources that count, all by default.

    Raises
    ------
    AxisLabelsMismatchError
        If they are on another: the parts of such a batch would not be examples.
    """
    for source in stream.sources if sources is None else sources:
        labels = tuple((stream.axis_labels or {}).get(source) or ())
        if BATCH in labels[1:]:
            raise AxisLabelsMismatchError(
                f"{who}: the examples of the source {source!r} must be on the first axis of a "
                f"batch; its axes are {labels}. Put a Mapping between them that transposes it, "
                f"or correct the labels with the `axis_labels` of its stream."
            )
