"""A transformer that works ahead in another process: `MultiProcessing`."""

from typing import Any

from fuel_data.abstract import height_of, open_child
from fuel_data.identity import describe
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import Transformer
from fuel_data.utils.arguments import whole_number


class MultiProcessing(Transformer):
    """Read the stream below ahead, in a process in the background.

    It gives exactly what the stream below gives, in its order, and resumes at any item: the
    position is that of the stream below, and what was read ahead is read again. It may be put in or
    left out when a run goes on. The process begins when the first epoch does, as a new interpreter
    to which the stream is sent by pickle. It ends with `close`, when the stream is forgotten, or
    with this process, however that ends; if it is killed, another one takes its place. An error of
    the stream below comes where its item would have, with its traceback.

    To let the process build the stream itself, from a file, see `fuel_data.server.serve`.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below. Functions in it must have a name in a module or in the script; what the
        script runs must then stand under ``if __name__ == "__main__":``, since the process imports
        it.
    max_store : int
        How many items are read ahead at most. They take memory in both processes.
    **kwargs
        See `Transformer`.

    Raises
    ------
    ValueError
        If the stream below draws from a generator that was handed in, or `max_store` is below 1.
    RecipeError
        If the stream cannot be pickled, when it is first read.
    PipelineError
        If the stream below raises, when it does.

    Examples
    --------
    >>> from fuel_data.datasets import IndexableDataset
    >>> from fuel_data.schemes import SequentialScheme
    >>> from fuel_data.streams import DataStream
    >>> dataset = IndexableDataset({"x": range(6)})
    >>> batches = DataStream(dataset, iteration_scheme=SequentialScheme(6, batch_size=2))
    >>> with MultiProcessing(batches) as stream:
    ...     [x for x, in stream.get_epoch_iterator()]
    [[0, 1], [2, 3], [4, 5]]
    """

    def __init__(
        self, data_stream: AbstractDataStream, max_store: int = 100, **kwargs: Any
    ) -> None:
        self.max_store = whole_number("MultiProcessing", "max_store", max_store, least=1)
        if hasattr(data_stream, "all_rngs") and data_stream.all_rngs():
            raise ValueError(
                "MultiProcessing: the stream below draws from a generator that was handed in "
                "(`rng=`), which would move on in the other process and not in this one. Give "
                f"`seed=` instead: {data_stream!r}."
            )
        super().__init__(data_stream, **kwargs)
        # It brings zmq, which most streams do without.
        from fuel_data.server.background import BackgroundStream

        self._process = BackgroundStream(_Below(data_stream), hwm=self.max_store)

    def _refuse_misfit(self) -> None:
        self._refuse_change()

    @property
    def num_batches(self) -> int | None:
        """How many items an epoch has, examples or batches; None if that is not known."""
        return self.data_stream.num_batches

    @property
    def num_examples(self) -> int | None:
        """How many examples an epoch has, in batches or not; None if that is not known."""
        return self.data_stream.num_examples

    @property
    def _height(self) -> str:
        """How high it stands: where what it gives does; see `height_over`."""
        return height_of(self.data_stream)

    @property
    def holds_anything(self) -> bool:
        """Whether a stage may hold what is not plain data: what comes from afar never is."""
        return False

    def identity(self) -> dict[str, Any]:
        """Say what this pipeline is: that below, for which process reads it makes no difference.

        Returns
        -------
        dict of plain data
        """
        return describe(self.data_stream)

    def open_stage(self, epoch: int, branch: str = "") -> Any:
        """Open an epoch; see `AbstractDataStream.open_stage`.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        branch : str
            Tells the branches of a pipeline apart, for random keys.

        Returns
        -------
        BackgroundStage
        """
        from fuel_data.server.background import BackgroundStage

        return BackgroundStage(self._process, epoch, f"{branch}/{self._height}")

    def close(self) -> None:
        """End the process, and let go of what is open below. Reading starts it again."""
        self._process.close()
        super().close()


class _Below(Transformer):
    """The stream in the background: what stands below, even if its class is none of ours."""

    def _refuse_misfit(self) -> None:
        self._refuse_change()

    @property
    def _height(self) -> str:
        return height_of(self.data_stream)

    def open_stage(self, epoch: int, branch: str = "") -> Any:
        return open_child(self.data_stream, epoch, branch)
