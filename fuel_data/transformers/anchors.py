"""What transformers have in common that hold examples back."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any

from fuel_data.iterator import Stage
from fuel_data.transformers.base import Transformer

_STRIDE = 64


class AnchoredReader:
    """Reads a stage, and remembers from where it can read what was read last again.

    A transformer that holds examples back saves none of them. It saves an anchor: a position of the
    stage below before the oldest of them, of which one is noted every 64 items. From there it reads
    again up to where it was.

    Parameters
    ----------
    child : Stage
        The stage below, at the beginning of an epoch.

    Attributes
    ----------
    num_read : int
        How many items were read; the next one has this number.
    """

    def __init__(self, child: Any) -> None:
        self.num_read = 0
        self._child = child
        self._has_ended = False
        self._anchors: deque[tuple[int, Any]] = deque()

    def read(self) -> tuple[int, tuple]:
        """Read one item.

        Returns
        -------
        int
            Its number in the epoch.
        tuple
            The item.

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        if self._has_ended:
            raise StopIteration
        number = self.num_read
        if number % _STRIDE == 0 and not (self._anchors and self._anchors[-1][0] == number):
            self._anchors.append((number, self._child.get_position()))
        try:
            item = next(self._child)
        except StopIteration:
            self._has_ended = True
            raise
        self.num_read += 1
        return number, item

    def get_position(self, oldest: int | None) -> dict[str, Any]:
        """Give the position as plain data, and forget anchors that nobody needs any more.

        Parameters
        ----------
        oldest : int or None
            Number of the oldest item that is held back. None if there is none.

        Returns
        -------
        dict
            ``child``: a position of the stage below, ``anchor``: how many items were read before
            it, ``num_read``, and ``ended`` once the stage below has ended.
        """
        if oldest is None:
            child, anchor = self._child.get_position(), self.num_read
        else:
            while len(self._anchors) > 1 and self._anchors[1][0] <= oldest:
                self._anchors.popleft()
            anchor, child = self._anchors[0]
        position = {"child": child, "anchor": anchor, "num_read": self.num_read}
        return {**position, "ended": True} if self._has_ended else position

    def set_position(self, position: dict[str, Any]) -> Iterator[tuple[int, tuple]]:
        """Go to a position.

        Parameters
        ----------
        position : dict
            From `get_position`.

        Yields
        ------
        int
            Number of an item that was read after the anchor.
        tuple
            The item.

        Raises
        ------
        ValueError
            If there are fewer items now than there were.
        """
        self._child.set_position(position["child"])
        self.num_read = position["anchor"]
        self._has_ended = False
        self._anchors = deque([(self.num_read, position["child"])])
        while self.num_read < position["num_read"]:
            try:
                yield self.read()
            except StopIteration:
                raise ValueError(
                    f"set_state: the epoch has {self.num_read} items before a transformer that "
                    f"had read {position['num_read']} when the state was saved. The data have "
                    "changed; put the old ones back, or begin anew."
                ) from None
        if "ended" in position:
            # What the stages below noticed at their end, they notice again.
            if next(self._child, None) is not None:
                raise ValueError(
                    f"set_state: the epoch had {self.num_read} items before a transformer, and has "
                    "more now. The data have changed; put the old ones back, or begin anew."
                )
            self._has_ended = True


class AnchoredTransformer(Transformer):
    """Base of transformers that hold items back and save anchors instead; see `AnchoredReader`.

    A generator that is drawn from below it may not be drawn from elsewhere in the pipeline.
    """

    _reads_again = True

    @abstractmethod
    def open_buffer(self, stage: Stage) -> Any:
        """Make what holds the items of an epoch.

        Parameters
        ----------
        stage : Stage
            The stage of this transformer.

        Returns
        -------
        object
            With `get_position` and `set_position`. It becomes `stage.state`.
        """

    def start(self, stage: Stage) -> None:
        """Begin with an empty buffer; see `AbstractDataStream.start`."""
        super().start(stage)
        stage.state = self.open_buffer(stage)

    def get_position(self, stage: Stage) -> dict[str, Any]:
        """Give the position; see `AbstractDataStream.get_position`."""
        # Without that of the stage below, which the buffer says.
        return {**self._own_position(stage), "buffer": stage.state.get_position()}

    def set_position(self, stage: Stage, position: dict[str, Any]) -> None:
        """Read what was held again; see `AbstractDataStream.set_position`."""
        super().set_position(stage, position)
        stage.state.set_position(position["buffer"])
