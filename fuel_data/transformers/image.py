"""Transformers of images: decode, enlarge, crop and rotate them.

Images are arrays of shape (channel, height, width). A batch of images of one size is an array of
shape (batch, channel, height, width); where sizes differ, it is a list, or an object array, with
one array for each image. Decoding and resizing need Pillow, the extra ``image``.
"""

import io
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy

from fuel_data.axes import BATCH, CHANNEL, HEIGHT, WIDTH
from fuel_data.config_parser import config
from fuel_data.iterator import Stage
from fuel_data.randomness import Rng, is_rng
from fuel_data.streams import AbstractDataStream
from fuel_data.transformers.base import ExpectsAxisLabels, SourcewiseTransformer
from fuel_data.transformers.batches import stack
from fuel_data.transformers.ragged import ragged
from fuel_data.utils.names import nearest_name
from fuel_data.utils.pillow import has_16_bits, import_pillow, upper_8_bits

_IMAGE = (CHANNEL, HEIGHT, WIDTH)
_RESAMPLES = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
_ROTATION_RESAMPLES = ("nearest", "bilinear", "bicubic")


class ImagesFromBytes(SourcewiseTransformer):
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
        How many images of a batch are decoded at a time. They are the same for any number. More
        than one pays for large images on cores that have nothing else to do.
    **kwargs
        See `SourcewiseTransformer`.

    Raises
    ------
    ValueError
        If an item is no image that Pillow can read, or has pixels of 32 bits, which RGB and L
        cannot hold; when it is met.
    ImportError
        If Pillow is missing.

    Notes
    -----
    It gives uint8 arrays of shape (channel, height, width), and a list of them for a batch. Of
    images with 16 bits, RGB and L have the upper 8; with ``color_mode=None``, arrays have the
    dtype of the file, such as uint16.

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
        if num_threads < 1:
            raise ValueError(
                f"ImagesFromBytes: `num_threads` must be at least 1; got {num_threads!r}."
            )
        super().__init__(data_stream, **kwargs)
        self.color_mode = color_mode
        self.num_threads = num_threads
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
        return _decode(source_example, self.color_mode, f"the source {source_name!r}")

    def transform_source_batch(self, source_batch: Any, source_name: str) -> list[numpy.ndarray]:
        """Decode a batch of images; see `SourcewiseTransformer.transform_source_batch`."""

        def decode(number: int) -> numpy.ndarray:
            where = f"number {number} in a batch of the source {source_name!r}"
            return _decode(source_batch[number], self.color_mode, where)

        numbers = range(len(source_batch))
        num_threads = min(self.num_threads, len(numbers))
        if num_threads <= 1:
            return [decode(number) for number in numbers]
        # Pillow lets go of the interpreter while it decodes.
        with ThreadPoolExecutor(num_threads) as pool:
            return list(pool.map(decode, numbers))


def _decode(encoded: Any, color_mode: str | None, where: str) -> numpy.ndarray:
    is_bytes = isinstance(encoded, (bytes, bytearray, memoryview))
    if not is_bytes and getattr(encoded, "dtype", None) != numpy.uint8:
        found = getattr(encoded, "dtype", type(encoded).__name__)
        raise ValueError(
            f"ImagesFromBytes: {where} must be an encoded image, as bytes or as a uint8 array; got "
            f"{found}. Name the sources that have images as `which_sources`."
        )
    file = io.BytesIO(encoded if is_bytes else encoded.tobytes())
    # Pillow's readers fail on damage in many ways.
    try:
        image = import_pillow("ImagesFromBytes").open(file)
    except Exception as error:
        raise _unreadable(error, where) from error
    to_8_bits = color_mode in ("RGB", "L") and has_16_bits(image, f"ImagesFromBytes: {where}")
    try:
        if to_8_bits:
            image = upper_8_bits(image)
        if color_mode is not None and image.mode != color_mode:
            image = image.convert(color_mode)
        pixels = numpy.array(image)
    except Exception as error:
        raise _unreadable(error, where) from error
    return pixels[numpy.newaxis] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _unreadable(error: Exception, where: str) -> ValueError:
    return ValueError(
        f"ImagesFromBytes: {where} is no image that Pillow can read: {error}. Leave it out "
        "with Filter before it is decoded, or convert the data set again."
    )


class _Images(SourcewiseTransformer, ExpectsAxisLabels):
    """Base of transformers that need images with their axes in order."""

    def __init__(self, data_stream: AbstractDataStream, **kwargs: Any) -> None:
        super().__init__(data_stream, **kwargs)
        expected = _IMAGE if self.produces_examples else (BATCH, *_IMAGE)
        for source in self.which_sources:
            labels = (data_stream.axis_labels or {}).get(source)
            self.verify_axis_labels(expected, labels, source)

    def _check_image(self, image: Any, source: str) -> numpy.ndarray:
        if not isinstance(image, numpy.ndarray) or image.ndim != 3:
            found = numpy.shape(image) if isinstance(image, numpy.ndarray) else type(image).__name__
            raise ValueError(
                f"{type(self).__name__}: an image of the source {source!r} must be an array of "
                f"shape (channel, height, width); got {found}. Name the sources that have images "
                "as `which_sources`."
            )
        return image


class MinimumImageDimensions(_Images):
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
        image = self._check_image(source_example, source_name)
        shape = _enlarged(image.shape[1:], self.minimum_shape)
        if shape == image.shape[1:]:
            return image
        resample = _pillows(self.resample)
        return _with_pillow(
            "MinimumImageDimensions", image, lambda part: part.resize(shape[::-1], resample)
        )

    def transform_source_batch(self, source_batch: Any, source_name: str) -> list[numpy.ndarray]:
        """Enlarge a batch of images; see `SourcewiseTransformer.transform_source_batch`."""
        return [self.transform_source_example(image, source_name) for image in source_batch]


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
        self.seed = int(config.default_seed if seed is None else seed) if rng is None else None

    @property
    def _gives_one_for_one(self) -> bool:
        return type(self).read is _RandomImages.read

    def user_rngs(self) -> dict[str, Rng]:
        """Give the generator that was handed in."""
        return super().user_rngs() | ({} if self.rng is None else {"rng": self.rng})

    def read(self, stage: Stage, request: Any) -> tuple:
        """Read one item and change its images; see `AbstractDataStream.read`."""
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
    different sizes.

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
        self._check_image(image, source)
        self._check_size(image.shape, source)
        top, left = (
            int(_integers(rng, length - window))
            for length, window in zip(image.shape[1:], self.window_shape, strict=True)
        )
        return self._cut(image, top, left)

    def change_batch(self, images: Any, source: str, rng: Rng) -> numpy.ndarray:
        """Cut a window out of each image of a batch."""
        if not isinstance(images, numpy.ndarray) or images.ndim != 4:
            return stack([self.change_example(image, source, rng) for image in images])
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

    def _cut(self, image: numpy.ndarray, top: int, left: int) -> numpy.ndarray:
        height, width = self.window_shape
        return image[:, top : top + height, left : left + width]

    def _check_size(self, shape: Sequence[int], source: str) -> None:
        height, width = shape[1:]
        if height < self.window_shape[0] or width < self.window_shape[1]:
            raise ValueError(
                f"RandomFixedSizeCrop: an image of the source {source!r} has {height} x {width} "
                f"pixels, fewer than the window of {self.window_shape[0]} x "
                f"{self.window_shape[1]}. Put MinimumImageDimensions between them."
            )


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
    A batch stays an array, an object array or a list.

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
        if not 0 <= maximum_rotation < math.inf:
            raise ValueError(
                "Random2DRotation: `maximum_rotation` must be an angle in radians, at least 0; got "
                f"{maximum_rotation!r}."
            )
        self.maximum_rotation = maximum_rotation
        self.resample = _check_resample("Random2DRotation", resample, _ROTATION_RESAMPLES)
        super().__init__(data_stream, rng, seed, **kwargs)

    def change_example(self, image: Any, source: str, rng: Rng) -> numpy.ndarray:
        """Rotate one image."""
        self._check_image(image, source)
        degrees = math.degrees(rng.uniform(-self.maximum_rotation, self.maximum_rotation))
        resample = _pillows(self.resample)
        return _with_pillow("Random2DRotation", image, lambda part: part.rotate(degrees, resample))

    def change_batch(self, images: Any, source: str, rng: Rng) -> Any:
        """Rotate each image of a batch."""
        rotated = [self.change_example(image, source, rng) for image in images]
        if not isinstance(images, numpy.ndarray):
            return rotated
        return ragged(rotated) if images.dtype == object else numpy.stack(rotated)


def _check_shape(who: str, argument: str, shape: Any) -> tuple[int, int]:
    try:
        height, width = (int(length) for length in shape)
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


def _with_pillow(who: str, image: numpy.ndarray, function: Callable[[Any], Any]) -> numpy.ndarray:
    """Let Pillow do something with an image.

    Parameters
    ----------
    who : str
        The transformer, for the error.
    image : array of shape (channel, height, width)
        The image.
    function : function
        From Pillow's image to another.

    Returns
    -------
    array of shape (channel, height, width)
        Of the same dtype.
    """
    from_array = import_pillow(who).fromarray
    if image.dtype == numpy.uint8 and len(image) == 3:
        together = function(from_array(numpy.ascontiguousarray(image.transpose(1, 2, 0))))
        return numpy.array(together).transpose(2, 0, 1)
    # Each channel by itself: of four, Pillow would take the last for transparency and weigh by it.
    return numpy.stack([_one_channel(who, channel, function, from_array) for channel in image])


def _one_channel(who: str, channel: Any, function: Callable, from_array: Callable) -> numpy.ndarray:
    if channel.dtype not in (numpy.uint8, numpy.float32, numpy.float64):
        raise ValueError(
            f"{who}: images must be uint8, float32 or float64; got {channel.dtype}. Put Cast "
            "between them."
        )
    as_pillow_has_it = numpy.uint8 if channel.dtype == numpy.uint8 else numpy.float32
    result = function(from_array(numpy.ascontiguousarray(channel, dtype=as_pillow_has_it)))
    return numpy.array(result).astype(channel.dtype, copy=False)
