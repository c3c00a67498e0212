"""How a transformer of images hands pictures up to another, image by image, instead of arrays.

Where such transformers stand right above each other and name the same sources, each image goes
through all of them before the next is decoded, and only the last makes an array, of what is left.
The pixels are the same as if each made its own.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from fuel_data.iterator import Stage
from fuel_data.transformers.base import SourcewiseTransformer

Step = Callable[[Any], Any]
"""What is done to each image, a `Picture`, or an array if its mode is none of a picture's."""


class GivesPictures(SourcewiseTransformer):
    """Base of transformers that can hand pictures on.

    Its parameters are those of `SourcewiseTransformer`.
    """

    @abstractmethod
    def can_give_pictures(self, stage: Stage) -> bool:
        """Say whether all images come as pictures.

        Parameters
        ----------
        stage : Stage
            The transformer's own.

        Returns
        -------
        bool
        """

    @abstractmethod
    def read_pictures(self, stage: Stage, step: Step) -> tuple:
        """Read one item, without an array of its images.

        Parameters
        ----------
        stage : Stage
            The transformer's own.
        step : function
            What is done to each image, in the threads that decode if there are any.

        Returns
        -------
        tuple
            As `read` gives it, but an image is what the step makes of it, and a batch of images
            is a `DecodedInTurn` of those.
        """


class DecodedInTurn:
    """A batch of images, each decoded when its turn comes.

    Parameters
    ----------
    decode : function
        From the number of an image to what is made of it.
    count : int
        How many images there are.
    num_threads : int
        How many are decoded at a time.

    Examples
    --------
    >>> batch = DecodedInTurn(lambda number: number**2, count=4, num_threads=2)
    >>> len(batch), list(batch)
    (4, [0, 1, 4, 9])
    """

    def __init__(self, decode: Callable[[int], Any], count: int, num_threads: int) -> None:
        self._decode = decode
        self._count = count
        self._num_threads = min(num_threads, count)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator:
        if self._num_threads > 1:
            return self._in_threads()
        return map(self._decode, range(self._count))

    def _in_threads(self) -> Iterator:
        # Pillow lets go of the interpreter while it decodes.
        with ThreadPoolExecutor(self._num_threads) as pool:
            ahead: deque[Future] = deque()
            for number in range(self._count):
                # Decoded images are large: a few ahead keep the threads busy.
                if len(ahead) == 2 * self._num_threads:
                    yield ahead.popleft().result()
                ahead.append(pool.submit(self._decode, number))
            while ahead:
                yield ahead.popleft().result()


def gives_pictures(stage: Any, above: SourcewiseTransformer) -> bool:
    """Say whether a stage can hand pictures on to the transformer above it.

    Parameters
    ----------
    stage : Stage
        What is read from.
    above : SourcewiseTransformer
        Who reads, and can take pictures in all its sources.

    Returns
    -------
    bool
    """
    stream = getattr(stage, "stream", None)
    # A user's class may change what goes into it or comes out, which it knows as arrays.
    if not isinstance(stream, GivesPictures) or not (stream._is_ours and above._is_ours):
        return False
    return set(stream.which_sources) == set(above.which_sources) and stream.can_give_pictures(stage)


def next_pictures(stage: Stage, step: Step) -> tuple:
    """Read one item of a stage that `gives_pictures`.

    Parameters
    ----------
    stage : Stage
        What is read from.
    step : function
        What is done to each image.

    Returns
    -------
    tuple
        See `GivesPictures.read_pictures`.
    """
    data = stage.stream.read_pictures(stage, step)
    stage.index += 1
    return data
