"""Transformers of images: decode, enlarge, crop and rotate them.

Images are arrays of shape (channel, height, width). A batch of images of one size is an array of
shape (batch, channel, height, width); where sizes differ, it is a list, or an object array, with
one array for each image. All but cropping needs Pillow, the extra ``image``.

Put them right above each other, over the same sources: then each image is decoded, resized and
cropped before the next, and only what is left of it becomes an array (see
`fuel_data.transformers.pictures`).
"""

import math
import operator
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from numbers import Real
from typing import Any

import numpy

from fuel_data.axes import BATCH, CHANNEL, HEIGHT, WIDTH
from fuel_data.iterator import Stage
from fuel_data.randomness import Rng, is_rng
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import ExpectsAxisLabels, SourcewiseTransformer, Transformer
from fuel_data.transformers.batches import stack
from fuel_data.transformers.pictures import (
    DecodedInTurn,
    GivesPictures,
    Step,
    gives_pictures,
    next_pictures,
)
from fuel_data.transformers.ragged import ragged
from fuel_data.utils.arguments import seed_number, whole_number
from fuel_data.utils.names import nearest_name
from fuel_data.utils.pillow import (
    COLOR_MODES,
    Picture,
    change_pixels,
    decode,
    import_pillow,
    pixels_of,
)

_IMAGE = (CHANNEL, HEIGHT, WIDTH)
_RESAMPLES = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
_ROTATION_RESAMPLES = ("nearest", "bilinear", "bicubic")


class ImagesFromBytes(GivesPictures):
    """Decode images.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below. An encoded image, JPEG, PNG or what else Pillow reads, is ``bytes`` or a
        uint8 array of shape (bytes,).
    color_mode : str or None
        Pillow's mode to which images are converted, such as ``'RGB'`` or ``'L'``. None leaves them
        as they are encoded.
    num_threads : int
        How many images of a batch are decoded, and enlarged, at a time. They are the same for any
        number. More than one pays for large images on cores that have nothing else to do.
    **kwargs
        See `SourcewiseTransformer`.

    Raises
    ------
    ValueError
        If Pillow has no such mode. If an item is no image that it can read, or has pixels of 32
        bits, which modes of 8 cannot hold; when it is met.
    ImportError
        If Pillow is missing.

    Notes
    -----
    It gives uint8 arrays of shape (channel, height, width), and a list of them for a batch. Of
    images with 16 bits, RGB, L and all modes of 8 have the upper 8; with ``color_mode=None``,
    arrays have the dtype of the file, such as uint16.

    Examples
    --------
    >>> import io, PIL.Image
    >>> from fuel_data.datasets import IterableDataset
    >>> file = io.BytesIO()
    >>> PIL.Image.new("RGB", (5, 3), "orange").save(file, "PNG")
    >>> stream = IterableDataset({"image": [file.getvalue()]}).get_example_stream()
    >>> image, = next(ImagesFromBytes(stream).get_epoch_iterator())
    >>> image.shape, image[:, 0, 0].tolist()
    ((3, 3, 5), [255, 165, 0])
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        color_mode: str | None = "RGB",
        *,
        num_threads: int = 1,
        **kwargs: Any,
    ) -> None:
        import_pillow("ImagesFromBytes")
        if color_mode is not None and color_mode not in COLOR_MODES:
            raise ValueError(
                "ImagesFromBytes: `color_mode` must be a mode of Pillow's or None; got "
                f"{color_mode!r}.{nearest_name(str(color_mode), COLOR_MODES)}"
            )
        super().__init__(data_stream, **kwargs)
        self.color_mode = color_mode
        self.num_threads = whole_number("ImagesFromBytes", "num_threads", num_threads, least=1)
        if kwargs.get("axis_labels") is None:
            image = _IMAGE if self.produces_examples else (BATCH, *_IMAGE)
            below = dict.fromkeys(self.sources) | dict(self.axis_labels or {})
            self.axis_labels = below | dict.fromkeys(self.which_sources, image)

    def identity(self) -> dict[str, Any]:
        """Say what this pipeline is; the number of threads makes no difference.

        Returns
        -------
        dict of plain data
        """
        identity = super().identity()
        del identity["arguments"]["num_threads"]
        return identity

    def transform_source_example(self, source_example: Any, source_name: str) -> numpy.ndarray:
        """Decode one image; see `SourcewiseTransformer.transform_source_example`."""
        return self._decode_example(source_example, source_name, pixels_of)

    def transform_source_batch(self, source_batch: Any, source_name: str) -> list[numpy.ndarray]:
        """Decode a batch of images; see `SourcewiseTransformer.transform_source_batch`."""
        return list(self._decode_batch(source_batch, source_name, pixels_of))

    def can_give_pictures(self, stage: Stage) -> bool:
        """Say that all images come as pictures; see `GivesPictures.can_give_pictures`."""
        return True

    def read_pictures(self, stage: Stage, step: Step) -> tuple:
        """Read one item, and decode its images in turn; see `GivesPictures.read_pictures`."""
        data = next(stage.child)
        decode = self._decode_example if self.produces_examples else self._decode_batch
        return self._transform_sources(data, lambda item, source: decode(item, source, step))

    def _decode_example(self, encoded: Any, source: str, step: Step) -> Any:
        return step(decode(encoded, self.color_mode, f"ImagesFromBytes: the source {source!r}"))

    def _decode_batch(self, batch: Any, source: str, step: Step) -> DecodedInTurn:
        def decode_one(number: int) -> Any:
            where = f"ImagesFromBytes: number {number} in a batch of the source {source!r}"
            return step(decode(batch[number], self.color_mode, where))

        return DecodedInTurn(decode_one, len(batch), self.num_threads)


class _Images(SourcewiseTransformer, ExpectsAxisLabels):
    """Base of transformers that need images with their axes in order."""

    def __init__(self, data_stream: AbstractDataStream, **kwargs: Any) -> None:
        super().__init__(data_stream, **kwargs)
        expected = _IMAGE if self.produces_examples else (BATCH, *_IMAGE)
        for source in self.which_sources:
            labels = (data_stream.axis_labels or {}).get(source)
            self.verify_axis_labels(expected, labels, source)

    @property
    def _gives_one_for_one(self) -> bool:
        cls = type(self)
        reads = (MinimumImageDimensions.read, _RandomImages.read)
        return cls.read in reads and cls.get_data is Transformer.get_data

    def _check_image(self, image: Any, source: str) -> None:
        if not isinstance(image, (numpy.ndarray, Picture)) or len(image.shape) != 3:
            found = numpy.shape(image) if isinstance(image, numpy.ndarray) else type(image).__name__
            raise ValueError(
                f"{type(self).__name__}: an image of the source {source!r} must be an array of "
                f"shape (channel, height, width); got {found}. Name the sources that have images "
                "as `which_sources`."
            )
        if 0 in image.shape:
            raise ValueError(
                f"{type(self).__name__}: an image of the source {source!r} has no pixels: its "
                f"shape is {image.shape}. Leave it out with Filter."
            )


class MinimumImageDimensions(_Images, GivesPictures):
    """Enlarge images that are too small, keeping their proportions.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below. Images are uint8, float32 or float64, the last resized in float32.
    minimum_shape : tuple of (int, int)
        Least height and width.
    resample : {'nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos'}
        How Pillow finds the new pixels.
    **kwargs
        See `SourcewiseTransformer`.

    Raises
    ------
    AxisLabelsMismatchError
        If the axes are others.
    ValueError
        If an item is no image, when it is met.
    ImportError
        If Pillow is missing.

    Notes
    -----
    A batch becomes a list of images. Images that are large enough pass as they are.

    Examples
    --------
    >>> from fuel_data.datasets import IndexableDataset
    >>> images = numpy.zeros((1, 3, 20, 30), dtype="uint8")
    >>> labels = {"image": ("batch", "channel", "height", "width")}
    >>> stream = IndexableDataset({"image": images}, axis_labels=labels).get_example_stream()
    >>> image, = next(MinimumImageDimensions(stream, (32, 32)).get_epoch_iterator())
    >>> image.shape
    (3, 32, 48)
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        minimum_shape: tuple[int, int],
        resample: str = "nearest",
        **kwargs: Any,
    ) -> None:
        import_pillow("MinimumImageDimensions")
        self.minimum_shape = _check_shape("MinimumImageDimensions", "minimum_shape", minimum_shape)
        self.resample = _check_resample("MinimumImageDimensions", resample, _RESAMPLES)
        super().__init__(data_stream, **kwargs)

    def transform_source_example(self, source_example: Any, source_name: str) -> numpy.ndarray:
        """Enlarge one image; see `SourcewiseTransformer.transform_source_example`."""
        self._check_image(source_example, source_name)
        return self._enlarge(source_example)

    def transform_source_batch(self, source_batch: Any, source_name: str) -> list[numpy.ndarray]:
        """Enlarge a batch of images; see `SourcewiseTransformer.transform_source_batch`."""
        return [self.transform_source_example(image, source_name) for image in source_batch]

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read one item and enlarge its images; see `AbstractDataStream.read`."""
        if request is not None or not self.can_give_pictures(stage):
            return super().read(stage, request)
        data = self.read_pictures(stage, pixels_of)
        if self.produces_examples:
            return data
        return self._transform_sources(data, lambda images, source: list(images))

    def can_give_pictures(self, stage: Stage) -> bool:
        """Say whether the images are decoded below; see `GivesPictures.can_give_pictures`."""
        return gives_pictures(stage.child, self)

    def read_pictures(self, stage: Stage, step: Step) -> tuple:
        """Read one item, and enlarge its images in turn; see `GivesPictures.read_pictures`."""
        return next_pictures(stage.child, lambda image: step(self._enlarge(image)))

    def _enlarge(self, image: Any) -> Any:
        shape = _enlarged(image.shape[1:], self.minimum_shape)
        if shape == image.shape[1:]:
            return image
        resample = _pillows(self.resample)
        return change_pixels(
            "MinimumImageDimensions", image, lambda part: part.resize(shape[::-1], resample)
        )


def _enlarged(shape: tuple[int, ...], least: tuple[int, int]) -> tuple[int, int]:
    """Give the shape of an image once it is large enough, in whole numbers throughout."""
    height, width = shape
    if height >= least[0] and width >= least[1]:
        return height, width
    if least[0] * width >= least[1] * height:
        return least[0], -(-width * least[0] // height)
    return -(-height * least[1] // width), least[1]


class _RandomImages(_Images):
    """Base of transformers that change images at random.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below.
    rng : RandomState or Generator, optional
        Draw from this generator, whose state moves on and is saved.
    seed : int, optional
        Seed of the generators that are made for each item if no `rng` is given.
    **kwargs
        See `SourcewiseTransformer`.
    """

    def __init__(
        self, data_stream: AbstractDataStream, rng: Rng | None, seed: int | None, **kwargs: Any
    ) -> None:
        who = type(self).__name__
        if rng is not None and not is_rng(rng):
            raise ValueError(
                f"{who}: `rng` must be a RandomState or Generator of numpy; got {rng!r}. Give a "
                "number as `seed`."
            )
        if rng is not None and seed is not None:
            raise ValueError(f"{who}: give `rng` or `seed`, not both.")
        super().__init__(data_stream, **kwargs)
        self.rng = rng
        self.seed = seed_number(who, seed) if rng is None else None

    def user_rngs(self) -> dict[str, Rng]:
        """Give the generator that was handed in."""
        return super().user_rngs() | ({} if self.rng is None else {"rng": self.rng})

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read one item and change its images; see `AbstractDataStream.read`."""
        if request is not None:
            return super().read(stage, request)
        if gives_pictures(stage.child, self):
            data = next_pictures(stage.child, lambda image: image)
        else:
            data = next(stage.child)
        rng = stage.rng(self.seed) if self.seed is not None else self._own_rng()
        change = self.change_example if self.produces_examples else self.change_batch
        return self._transform_sources(data, lambda item, source: change(item, source, rng))

    def _own_rng(self) -> Rng:
        if self.rng is None:
            raise ValueError(
                f"{type(self).__name__}: it draws anew for each item of an epoch, so it is read by "
                "get_epoch_iterator. To call it by itself, give `rng`."
            )
        return self.rng

    def transform_source_example(self, source_example: Any, source_name: str) -> numpy.ndarray:
        """Change one image with the generator that was handed in.

        Parameters
        ----------
        source_example : array of shape (channel, height, width)
            The image.
        source_name : str
            Name of the source.

        Returns
        -------
        array of shape (channel, height, width)
        """
        return self.change_example(source_example, source_name, self._own_rng())

    def transform_source_batch(self, source_batch: Any, source_name: str) -> Any:
        """Change a batch with the generator that was handed in.

        Parameters
        ----------
        source_batch : array of shape (batch, channel, height, width), or images of several sizes
            The images.
        source_name : str
            Name of the source.

        Returns
        -------
        array of shape (batch, channel, height, width), or images of several sizes
        """
        return self.change_batch(source_batch, source_name, self._own_rng())

    @abstractmethod
    def change_example(self, image: Any, source: str, rng: Rng) -> numpy.ndarray:
        """Change one image.

        Parameters
        ----------
        image : array of shape (channel, height, width)
            The image.
        source : str
            Name of the source.
        rng : RandomState or Generator
            What to draw from.

        Returns
        -------
        array of shape (channel, height, width)
        """

    @abstractmethod
    def change_batch(self, images: Any, source: str, rng: Rng) -> Any:
        """Change a batch of images.

        Parameters
        ----------
        images : array of shape (batch, channel, height, width), or images of several sizes
            The images.
        source : str
            Name of the source.
        rng : RandomState or Generator
            What to draw from.

        Returns
        -------
        array of shape (batch, channel, height, width), or images of several sizes
        """


class RandomFixedSizeCrop(_RandomImages):
    """Cut a window of one size out of each image, at a random place.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below. Images may have any dtype.
    window_shape : tuple of (int, int)
        Height and width of the window.
    rng : RandomState or Generator, optional
        Draw from this generator, whose state moves on and is saved, as in Fuel.
    seed : int, optional
        Without `rng`: draw from generators made for each item from this seed and the place in the
        epoch, ``config.default_seed`` by default.
    **kwargs
        See `SourcewiseTransformer`.

    Raises
    ------
    AxisLabelsMismatchError
        If the axes are others.
    ValueError
        If an image is smaller than the window, when it is met.

    Notes
    -----
    A batch becomes an array of shape (batch, channel, height, width), also if the images have
    different sizes. Each source has windows of its own, as in Fuel: to cut the same out of an image
    and its mask, make them channels of one source.

    Examples
    --------
    >>> from fuel_data.datasets import IndexableDataset
    >>> images = numpy.arange(24).reshape(1, 1, 4, 6)
    >>> labels = {"image": ("batch", "channel", "height", "width")}
    >>> stream = IndexableDataset({"image": images}, axis_labels=labels).get_example_stream()
    >>> cropped = RandomFixedSizeCrop(stream, (2, 2), seed=1)
    >>> [next(cropped.get_epoch_iterator(epoch=n))[0].tolist() for n in (0, 1, 0)]
    [[[[1, 2], [7, 8]]], [[[10, 11], [16, 17]]], [[[1, 2], [7, 8]]]]
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        window_shape: tuple[int, int],
        rng: Rng | None = None,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.window_shape = _check_shape("RandomFixedSizeCrop", "window_shape", window_shape)
        super().__init__(data_stream, rng, seed, **kwargs)

    def change_example(self, image: Any, source: str, rng: Rng) -> numpy.ndarray:
        """Cut a window out of one image."""
        # A view would keep the whole image in memory for as long as its window.
        return self._window(image, source, rng).copy()

    def change_batch(self, images: Any, source: str, rng: Rng) -> numpy.ndarray:
        """Cut a window out of each image of a batch."""
        if not isinstance(images, numpy.ndarray) or images.ndim != 4:
            windows = (self._window(image, source, rng) for image in images)
            return _stack_in_turn(windows, len(images), source)
        self._check_size(images.shape[1:], source)
        # As Fuel draws them: all of one axis, then all of the other.
        tops, lefts = (
            _integers(rng, length - window, len(images)).tolist()
            for length, window in zip(images.shape[2:], self.window_shape, strict=True)
        )
        cut = numpy.empty((*images.shape[:2], *self.window_shape), images.dtype)
        for image, top, left, into in zip(images, tops, lefts, cut, strict=True):
            into[...] = self._cut(image, top, left)
        return cut

    def _window(self, image: Any, source: str, rng: Rng) -> numpy.ndarray:
        self._check_image(image, source)
        self._check_size(image.shape, source)
        top, left = (
            int(_integers(rng, length - window))
            for length, window in zip(image.shape[1:], self.window_shape, strict=True)
        )
        return self._cut(image, top, left)

    def _cut(self, image: Any, top: int, left: int) -> numpy.ndarray:
        height, width = self.window_shape
        if isinstance(image, Picture):
            return image.window(top, left, height, width)
        return image[:, top : top + height, left : left + width]

    def _check_size(self, shape: Sequence[int], source: str) -> None:
        height, width = shape[1:]
        if height < self.window_shape[0] or width < self.window_shape[1]:
            raise ValueError(
                f"RandomFixedSizeCrop: an image of the source {source!r} has {height} x {width} "
                f"pixels, fewer than the window of {self.window_shape[0]} x "
                f"{self.window_shape[1]}. Put MinimumImageDimensions between them."
            )


def _stack_in_turn(windows: Iterator, count: int, source: str) -> numpy.ndarray:
    """Stack windows as `stack` does, each as soon as it is cut, in the order of the axes."""
    stacked = None
    for number, window in enumerate(windows):
        if stacked is None:
            stacked = numpy.empty((count, *window.shape), window.dtype)
        if (window.shape, window.dtype) != (stacked.shape[1:], stacked.dtype):
            # Each its own: a view would keep what it is cut out of, and may be read-only.
            return stack([part.copy() for part in chain(stacked[:number], [window], windows)])
        stacked[number] = window
    if stacked is None:
        raise ValueError(
            f"RandomFixedSizeCrop: a batch of the source {source!r} is empty, so that the number "
            "of its channels is not known. Leave it out with Filter."
        )
    return stacked


def _integers(rng: Rng, highest: int, size: int | None = None) -> Any:
    """Draw whole numbers up to and with the highest."""
    if isinstance(rng, numpy.random.RandomState):
        return rng.randint(0, highest + 1, size=size)
    return rng.integers(0, highest, size=size, endpoint=True)


class Random2DRotation(_RandomImages):
    """Rotate each image by a random angle about its middle, keeping its size.

    What comes from outside the image is 0.

    Parameters
    ----------
    data_stream : AbstractDataStream
        The stream below. Images are uint8, float32 or float64, the last rotated in float32.
    maximum_rotation : float
        Greatest angle either way, in radians.
    resample : {'nearest', 'bilinear', 'bicubic'}
        How Pillow finds the new pixels.
    rng : RandomState or Generator, optional
        Draw from this generator, whose state moves on and is saved, as in Fuel.
    seed : int, optional
        Without `rng`: draw from generators made for each item from this seed and the place in the
        epoch, ``config.default_seed`` by default.
    **kwargs
        See `SourcewiseTransformer`.

    Raises
    ------
    AxisLabelsMismatchError
        If the axes are others.
    ValueError
        If an item is no image, when it is met.
    ImportError
        If Pillow is missing.

    Notes
    -----
    A batch stays an array, an object array or a list. Each source has angles of its own, as in
    Fuel: to rotate an image and its mask alike, make them channels of one source.

    Examples
    --------
    >>> from fuel_data.datasets import IndexableDataset
    >>> images = numpy.zeros((1, 3, 20, 30), dtype="uint8")
    >>> labels = {"image": ("batch", "channel", "height", "width")}
    >>> stream = IndexableDataset({"image": images}, axis_labels=labels).get_example_stream()
    >>> image, = next(Random2DRotation(stream, maximum_rotation=0.1).get_epoch_iterator())
    >>> image.shape
    (3, 20, 30)
    """

    def __init__(
        self,
        data_stream: AbstractDataStream,
        maximum_rotation: float = math.pi,
        resample: str = "nearest",
        rng: Rng | None = None,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        import_pillow("Random2DRotation")
        if not (isinstance(maximum_rotation, Real) and 0 <= maximum_rotation < math.inf):
            raise ValueError(
                "Random2DRotation: `maximum_rotation` must be an angle in radians, at least 0; got "
                f"{maximum_rotation!r}."
            )
        self.maximum_rotation: float = maximum_rotation
        self.resample: str = _check_resample("Random2DRotation", resample, _ROTATION_RESAMPLES)
        super().__init__(data_stream, rng, seed, **kwargs)

    def change_example(self, image: Any, source: str, rng: Rng) -> numpy.ndarray:
        """Rotate one image."""
        self._check_image(image, source)
        degrees = math.degrees(rng.uniform(-self.maximum_rotation, self.maximum_rotation))
        resample = _pillows(self.resample)
        return pixels_of(
            change_pixels("Random2DRotation", image, lambda part: part.rotate(degrees, resample))
        )

    def change_batch(self, images: Any, source: str, rng: Rng) -> Any:
        """Rotate each image of a batch."""
        rotated = [self.change_example(image, source, rng) for image in images]
        if not isinstance(images, numpy.ndarray):
            return rotated
        if not rotated:
            return images
        return ragged(rotated) if images.dtype == object else numpy.stack(rotated)


def _check_shape(who: str, argument: str, shape: Any) -> tuple[int, int]:
    try:
        height, width = (operator.index(length) for length in shape)
    except (TypeError, ValueError):
        height = width = 0
    if height < 1 or width < 1:
        raise ValueError(
            f"{who}: `{argument}` must be a height and a width, at least 1; got {shape!r}."
        )
    return height, width


def _check_resample(who: str, resample: str, known: Sequence[str]) -> str:
    if resample not in known:
        raise ValueError(
            f"{who}: `resample` must be one of {', '.join(known)}; got {resample!r}."
            f"{nearest_name(str(resample), known)}"
        )
    return resample


def _pillows(resample: str) -> Any:
    return import_pillow("images").Resampling[resample.upper()]
