"""What transformers have in common that give the batches of the stream below in parts."""

from typing import Any

from fuel_data.iterator import Stage
from fuel_data.transformers.base import Transformer
from fuel_data.transformers.ragged import count_examples


class Leftover:
    """A batch of which a part was given, and where it was read.

    Parameters
    ----------
    batch : tuple
        One item for each source, all of one length.
    size : int
        How many examples it has.
    before : dict
        Position of the stage below before the batch was read.
    """

    __slots__ = ("batch", "before", "offset", "size")

    def __init__(self, batch: tuple, size: int, before: dict[str, Any]) -> None:
        self.batch = batch
        self.size = size
        self.before = before
        self.offset = 0


class LeftoverTransformer(Transformer):
    """Base of transformers that give the batches of the stream below in parts.

    A subclass reads with `leftover`, moves its `offset` on and calls `drop_if_empty`. The position
    is that of the stream below before the batch, and the offset.
    """

    def leftover(self, stage: Stage) -> Leftover:
        """Give the batch that is being given, reading it if need be.

        Parameters
        ----------
        stage : Stage
            The stage of this transformer.

        Returns
        -------
        Leftover

        Raises
        ------
        StopIteration
            If there is no further batch.
        ValueError
            If the sources of a batch have different lengths.
        """
        while stage.state is None:
            before = stage.child.get_position()
            batch = next(stage.child)
            size = self._size(batch)
            stage.state = Leftover(batch, size, before) if size else None
        return stage.state

    def _size(self, batch: tuple) -> int:
        """Count the parts of what was read."""
        who = type(self).__name__
        sizes = {
            source: count_examples(
                who, f"the source {source!r}", item, "Leave it out with FilterSources."
            )
            for source, item in zip(self.data_stream.sources, batch, strict=True)
        }
        if len(set(sizes.values())) != 1:
            raise ValueError(
                f"{who}: all sources of a batch must have the same number of examples; got {sizes}."
            )
        return sizes.popitem()[1]

    def drop_if_empty(self, stage: Stage) -> None:
        """Forget the batch once all of it was given.

        Parameters
        ----------
        stage : Stage
            The stage of this transformer.
        """
        if stage.state.offset == stage.state.size:
            stage.state = None

    def get_position(self, stage: Stage) -> dict[str, Any]:
        """Give the position; see `AbstractDataStream.get_position`."""
        if stage.state is None:
            return super().get_position(stage)
        leftover = stage.state
        position = self._own_position(stage)
        return {**position, "child": leftover.before, "offset": leftover.offset}

    def set_position(self, stage: Stage, position: dict[str, Any]) -> None:
        """Read the batch again; see `AbstractDataStream.set_position`."""
        super().set_position(stage, position)
        stage.state = None
        if "offset" in position:
            try:
                self.leftover(stage).offset = position["offset"]
            except StopIteration:
                raise ValueError(
                    f"{type(self).__name__}: the epoch ends before the batch of which a part had "
                    "been given when the state was saved. The data have changed; put the old ones "
                    "back, or begin anew."
                ) from None
